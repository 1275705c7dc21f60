"""A frozen value with some fields changed, as `dataclasses.replace` makes it, in less than half the time.

For dataclasses with slots: a turn makes a hundred and forty such copies, of up to two dozen fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # by which mypy knows each class's fields
    from dataclasses import replace
else:

    def replace(old, /, **changes):
        """The same value with other values in some fields; what the class checks is checked again.

        Raises:
            TypeError: there is no such field.
        """
        kind = type(old)
        setters, values, is_checked = _fields_of(kind)
        made = object.__new__(kind)
        for put, value in zip(setters.values(), values(old), strict=False):
            put(made, value)
        for name, value in changes.items():
            if name not in setters:
                raise TypeError(f"{kind.__name__} has no field {name!r}; it has {', '.join(setters)}")
            setters[name](made, value)
        if is_checked:
            made.__post_init__()
        return made


@cache
def _fields_of(kind: type) -> tuple[Mapping[str, Callable[[Any, Any], None]], Callable[[Any], Any], bool]:
    """What puts a value into each field, what reads all of them, and whether the class checks them."""
    names = [each.name for each in fields(kind)]
    setters = {name: getattr(kind, name).__set__ for name in names}
    several = attrgetter(*names, "__class__")  # of one name it would read no tuple
    return setters, several, hasattr(kind, "__post_init__")


__all__ = ["replace"]
