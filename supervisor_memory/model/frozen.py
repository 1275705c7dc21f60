"""Dictionaries and lists that cannot be changed, so that whoever holds them need not copy them.

They are dictionaries and lists to everybody who reads: to JSON, to `==`, to `{**metadata}`.
"""

from typing import Any, NoReturn, SupportsIndex

__all__ = ["FrozenDict", "FrozenList", "frozen", "thawed"]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = type(self).__bases__[0].__name__
    raise TypeError(
        f"this {kind} belongs to a record and cannot be changed: copy it, or use `memory.update` to change "
        "what is remembered"
    )


class FrozenDict(dict[str, Any]):
    """A dictionary that stays as it was made. `dict(frozen)` is one that can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that stays as it was made. `list(frozen)` is one that can be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return FrozenList, (list(self),)


def frozen(value: Any) -> Any:
    """A value of JSON that nobody can change, made of one that somebody may."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(each) for key, each in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    """What its holder may change: a copy where the value is frozen, else the value itself."""
    if isinstance(value, FrozenDict):
        return {key: thawed(each) for key, each in value.items()}
    return [thawed(each) for each in value] if isinstance(value, FrozenList) else value
