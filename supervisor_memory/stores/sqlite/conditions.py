"""Turns filters into SQL. `Filter.matches` defines what a filter means; a property test compares the two."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from supervisor_memory.model.records import SESSION_FAMILY, Filter

__all__ = ["NOT_SAID_IN_A_SESSION", "Condition", "joined", "of_namespaces", "of_records", "visible"]

Condition: TypeAlias = tuple[str, tuple[str | float, ...]]
"""An SQL expression and its bindings."""

NOT_SAID_IN_A_SESSION: Final = f"family <> '{SESSION_FAMILY}'"
"""Written out, not bound, so that SQLite can use an index over the other families."""
_NEVER: Condition = ("0", ())
_FEW = 8


def of_records(where: Filter) -> Condition:
    """The condition on rows of `records` that match."""
    # The plus keeps SQLite from walking all records of a user to find those of some ids.
    plus = "" if where.ids is None else "+"
    return joined([(f"{plus}{sql}", values) for sql, values in _of_namespace(where)] + [*_of_record(where)])


@lru_cache(maxsize=256)
def of_namespaces(where: Filter) -> Condition:
    """The condition on rows of `namespaces` that can have matching records."""
    return joined([*_of_namespace(where)])


def visible(where: Filter, *, now: float) -> Condition:
    """The condition on rows of `records` that a search may return."""
    unexpired = ("(expires_at IS NULL OR expires_at > ?)", (now,))
    return joined([*_of_namespace(where), *_of_record(where), ("status = 'active'", ()), unexpired])


def joined(conditions: Sequence[Condition]) -> Condition:
    """All conditions, joined by AND."""
    return (
        " AND ".join(sql for sql, _ in conditions) or "1",
        tuple(value for _, values in conditions for value in values),
    )


def _of_namespace(where: Filter) -> Iterator[Condition]:
    if where.user_id is not None:
        yield _is("user_id", where.user_id)
    if where.families is not None:
        yield _in("family", where.families)
    if not _may_be_said_in_a_session(where):
        yield NOT_SAID_IN_A_SESSION, ()
    if where.tasks is not None:
        yield _in_task(where.tasks)


def _may_be_said_in_a_session(where: Filter) -> bool:
    if where.families is not None:
        return SESSION_FAMILY in where.families
    return where.ids is not None or where.session_id is not None


def _of_record(where: Filter) -> Iterator[Condition]:
    of_one = (where.kinds, where.statuses, where.layers, where.ids)
    for column, values in zip(("kind", "status", "layer", "id"), of_one, strict=True):
        if values is not None:
            yield _in(column, values)
    for column in ("session_id", "content_hash", "subject", "attribute"):
        if (value := getattr(where, column)) is not None:
            yield _is(column, value)
    if where.expired_by is not None:
        yield "expires_at <= ?", (where.expired_by,)
    if where.not_embedded_by is not None:
        vector, bindings = _is("embedder", where.not_embedded_by)
        yield f"NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.key = records.key AND {vector})", bindings
    yield from _of_data(where)


def _of_data(where: Filter) -> Iterator[Condition]:
    """The conditions on values that only the record's JSON has, as `Record.to_json` writes them."""
    if where.since is not None:
        yield "json_extract(records.data, '$.created_at') >= ?", (where.since,)
    if where.until is not None:
        yield "json_extract(records.data, '$.created_at') < ?", (where.until,)
    for tag in where.tags or ():
        held, bindings = _is("tag.value", tag)
        yield f"EXISTS (SELECT 1 FROM json_each(records.data, '$.tags') AS tag WHERE {held})", bindings
    for wanted in where.metadata or ():
        value, texts = _in("records.data -> ?", sorted(wanted.texts))
        yield value, (f'$.metadata."{wanted.key}"', *texts)


def _in_task(tasks: Sequence[str | None]) -> Condition:
    if tasks == (None,):
        return "task IS NULL", ()
    named, bindings = _in("task", [task for task in tasks if task is not None])
    return f"({named}{' OR task IS NULL' if None in tasks else ''})", bindings


def _is(column: str, value: str) -> Condition:
    return (f"{column} = ?", (value,)) if _can_be_stored(value) else _NEVER


def _in(column: str, values: Sequence[str]) -> Condition:
    texts = tuple(value for value in values if _can_be_stored(value))
    if len(texts) <= _FEW:
        return f"{column} IN ({', '.join('?' * len(texts))})", texts
    # One binding however many values, so that neither the number of variables nor the text of SQL grows.
    return f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(texts, ensure_ascii=False),)


def _can_be_stored(text: str) -> bool:
    """Whether UTF-8 can hold a text. It cannot hold lone surrogates, so no row has them."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
