"""Dictionaries and lists that refuse changes, and their JSON."""

import json
from typing import Any, NoReturn, SupportsIndex


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


_EMPTY = FrozenDict()  # of most records and messages


def frozen(value: Any) -> Any:
    """A copy of a JSON value that cannot be changed, at any depth."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()}) if value else _EMPTY
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    """A JSON value that can be changed: a copy of a frozen one, else the value itself."""
    if isinstance(value, FrozenDict):
        return {key: thawed(each) for key, each in value.items()}
    return [thawed(each) for each in value] if isinstance(value, FrozenList) else value


COMPACT_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
