"""Metadata that cannot be changed, and the conditions that a filter sets on metadata.

`FrozenDict` and `FrozenList` need no copies, since nobody can change them. For readers they are ordinary
dictionaries and lists: for JSON, for `==`, for `{**metadata}`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, SupportsIndex

from supervisor_memory.errors import InvalidContent

__all__ = [
    "FrozenDict",
    "FrozenList",
    "Wanted",
    "frozen",
    "spelled",
    "thawed",
]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__bases__[0].__name__
    raise TypeError(
        f"this {kind} belongs to a record and cannot be changed: copy it, or use `memory.update` to change "
        "what is remembered"
    )


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed; `dict(frozen)` makes a copy that can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed; `list(frozen)` makes a copy that can."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenList, (list(self),)


def frozen(value: Any) -> Any:
    """A copy of a JSON value that cannot be changed, at any depth."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    """A JSON value that can be changed: a copy of a frozen one, else the value itself."""
    if isinstance(value, FrozenDict):
        return {key: thawed(each) for key, each in value.items()}
    return [thawed(each) for each in value] if isinstance(value, FrozenList) else value


_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
_MOST_VALUES = 50
_SCALARS = (str, int, float, type(None))  # bool is an int
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition on metadata: a key, and the values it may have.

    `texts` are these values as JSON spells them, so that every store compares alike: True is not 1, 1 and
    1.0 are equal, None is a null and not a missing key. A list or a mapping in a record matches no value.
    `a.b` is a key with a dot in it, no path.
    """

    key: str
    texts: frozenset[str]

    @classmethod
    def of(cls, key: str, *values: object) -> "Wanted":
        """The condition that a key has one of these values.

        Raises:
            InvalidContent: the key is no plain name, there is no value or over 50, or a value is no text,
                finite number, boolean or None.
        """
        if not isinstance(key, str) or not _KEY.match(key):
            told = key[:40] if isinstance(key, str) else type(key).__name__
            raise InvalidContent(
                f"metadata has no key {told!r}; a key is 1 to 64 letters, digits, '_', '.' or '-'",
                key=told,
            )
        if not 0 < len(values) <= _MOST_VALUES:
            raise InvalidContent(
                f"metadata.{key} has {len(values)} values to choose from; give 1 to {_MOST_VALUES}, or leave "
                "the key out",
                key=key,
            )
        return cls(key, frozenset(text for value in values for text in _spellings(key, value)))

    def is_in(self, metadata: Mapping[str, Any]) -> bool:
        """Whether this metadata fulfils the condition."""
        return self.key in metadata and spelled(metadata[self.key]) in self.texts


def spelled(value: object) -> str | None:
    """A record's value as JSON spells it; None if it cannot be compared."""
    return _COMPACT.encode(value) if isinstance(value, _SCALARS) else None


def _spellings(key: str, value: object) -> Iterator[str]:
    """All spellings of a value in JSON: a number can be written in several ways."""
    if not isinstance(value, _SCALARS) or (isinstance(value, float) and not math.isfinite(value)):
        told = str(value) if isinstance(value, float) else f"a {type(value).__name__}"
        raise InvalidContent(
            f"metadata.{key} is {told}; give text, a finite number, a boolean, None or a list of these. "
            "There are no operators; 'since' and 'until' compare times",
            key=key,
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        yield _COMPACT.encode(value)
    except ValueError as error:  # Python writes 4,300 digits and no more
        raise InvalidContent(
            f"metadata.{key} is a number of too many digits; give it as text", key=key
        ) from error
    if isinstance(value, int) and not isinstance(value, bool):
        yield from () if value else ("-0.0",)
        with suppress(OverflowError):
            yield from (repr(float(value)),) if float(value) == value else ()
