"""A filter as SQL. `Filter.matches` says what it means; a property test holds the two together."""

import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from supervisor_memory.records import SESSION_FAMILY, Filter

__all__ = ["Condition", "joined", "of_namespaces", "of_records", "visible"]

Condition: TypeAlias = tuple[str, tuple[str | float, ...]]
"""An SQL expression and its bindings."""

_NEVER: Condition = ("0", ())


def of_records(where: Filter) -> Condition:
    """What must hold of a row of `records`."""
    return joined([*_of_namespace(where), *_of_record(where)])


def of_namespaces(where: Filter) -> Condition:
    """What must hold of a row of `namespaces` that can have such records."""
    return joined([*_of_namespace(where)])


def visible(where: Filter, *, now: float) -> Condition:
    """What must hold of a row of `records` that a search may return."""
    unexpired = ("(expires_at IS NULL OR expires_at > ?)", (now,))
    return joined([*_of_namespace(where), *_of_record(where), ("status = 'active'", ()), unexpired])


def joined(conditions: Sequence[Condition]) -> Condition:
    """All of them."""
    return (
        " AND ".join(sql for sql, _ in conditions) or "1",
        tuple(value for _, values in conditions for value in values),
    )


def _of_namespace(where: Filter) -> Iterator[Condition]:
    if where.user_id is not None:
        yield _is("user_id", where.user_id)
    if where.families is not None:
        yield _in("family", where.families)
    elif where.ids is None and where.session_id is None:
        yield "family <> ?", (SESSION_FAMILY,)
    if where.tasks is not None:
        named, (texts,) = _in("task", [task for task in where.tasks if task is not None])
        yield f"({named}{' OR task IS NULL' if None in where.tasks else ''})", (texts,)


def _of_record(where: Filter) -> Iterator[Condition]:
    for column, values in (("kind", where.kinds), ("status", where.statuses), ("id", where.ids)):
        if values is not None:
            yield _in(column, values)
    for column in ("session_id", "content_hash", "subject", "attribute"):
        if (value := getattr(where, column)) is not None:
            yield _is(column, value)


def _is(column: str, value: str) -> Condition:
    return (f"{column} = ?", (value,)) if _can_be_stored(value) else _NEVER


def _in(column: str, values: Sequence[str]) -> Condition:
    # One binding however many values, so that neither the number of variables nor the text of SQL grows.
    texts = json.dumps([value for value in values if _can_be_stored(value)], ensure_ascii=False)
    return f"{column} IN (SELECT value FROM json_each(?))", (texts,)


def _can_be_stored(text: str) -> bool:
    """Lone surrogates have no UTF-8, so that no row can hold them and no statement ask for them."""
    return not any("\ud800" <= c <= "\udfff" for c in text)
