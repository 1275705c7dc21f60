"""Filter conditions on values and namespaces, with the meaning of LangGraph's stores. Pure."""

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from langgraph.store.base import MatchCondition

from supervisor_memory.host.store.addresses import Labels

_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def matches(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Whether a value fulfils all conditions: plain values, or `$eq $ne $gt $gte $lt $lte`.

    A condition's name is a field, or a path of fields with dots. What cannot be compared does not match.

    Raises:
        ValueError: there is no such operator.
    """
    return all(_holds(_field(value, name), wanted) for name, wanted in (conditions or {}).items())


def _field(value: Mapping[str, Any], name: str) -> Any:
    if name in value or "." not in name:
        return value.get(name)
    first, rest = name.split(".", 1)
    inner = value.get(first)
    return _field(inner, rest) if isinstance(inner, Mapping) else None


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(found, operator, to) for operator, to in wanted.items())
        return isinstance(found, Mapping) and all(_holds(found.get(k), each) for k, each in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(found, (list, tuple)) and len(found) == len(wanted) and all(map(_holds, found, wanted))
        )
    return _equal(found, wanted)


def _compares(found: Any, operator: str, to: Any) -> bool:
    if operator == "$eq":
        return _equal(found, to)
    if operator == "$ne":
        return not _equal(found, to)
    if operator not in _ORDERED:
        raise ValueError(f"there is no operator {operator!r}; use $eq, $ne, {', '.join(_ORDERED)}")
    compare = _ORDERED[operator]
    try:
        return compare(float(found), float(to))
    except (TypeError, ValueError):
        return isinstance(found, str) and isinstance(to, str) and compare(found, to)
    except OverflowError:  # a whole number that no float holds
        return compare(found, to)


def _equal(found: Any, wanted: Any) -> bool:
    """Equal as JSON: True is not 1."""
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


def fits(labels: Labels, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends with a path, "*" standing for a label; else ValueError."""
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"there is no match type {condition.match_type!r}; use 'prefix' or 'suffix'")
    if len(labels) < len(path):
        return False
    part = labels[: len(path)] if condition.match_type == "prefix" else labels[len(labels) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
