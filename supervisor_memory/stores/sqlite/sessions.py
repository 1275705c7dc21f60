"""List sessions from their table in a SQLite store."""

import json
from collections.abc import Sequence
from typing import Any, Final

import apsw

from supervisor_memory.model.records import DIGEST_FAMILY, Filter, Record
from supervisor_memory.stores.protocol import Party, PartyRow, SessionRow
from supervisor_memory.stores.sessions import SUBJECT, with_state
from supervisor_memory.stores.sqlite.tables import Condition, joined, record_of

_AGENTS: Final = """(SELECT json_group_array(agent_id ORDER BY agent_id) FROM sessions AS other
    WHERE other.user_id = s.user_id AND other.session_id = s.session_id AND other.agent_id <> '')"""
_STATE: Final = f"""(SELECT data FROM records WHERE records.user_id = s.user_id AND family = '{DIGEST_FAMILY}'
    AND subject = '{SUBJECT}' AND attribute = s.session_id AND status = 'active'
    ORDER BY updated_at DESC, id DESC LIMIT 1)"""

_NEWEST: Final = "last_at DESC, user_id DESC, session_id DESC"
_NEWEST_OF_S: Final = "s.last_at DESC, s.user_id DESC, s.session_id DESC"


def session_rows(
    connection: apsw.Connection, where: Filter, *, limit: int, after: tuple[float, str, str] | None
) -> Sequence[SessionRow]:
    """The sessions that match; see `ListsSessions.sessions`."""
    conditions: list[Condition] = [("agent_id = ?", (where.agent_id or "",))]
    for sql, value in (
        ("user_id = ?", where.user_id),
        ("session_id = ?", where.session_id),
        ("last_at >= ?", where.since),
        ("first_at < ?", where.until),
    ):
        if value is not None:
            conditions.append((sql, (value,)))
    if after is not None:
        # The first half is what an index can be entered by.
        conditions.append(("last_at <= ? AND (last_at, user_id, session_id) < (?, ?, ?)", (after[0], *after)))
    sql, bindings = joined(conditions)
    # The inner query reads an index alone, however many sessions there are between two pages.
    rows: Any = connection.execute(
        f"""WITH page AS MATERIALIZED (
            SELECT agent_id, last_at, user_id, session_id FROM sessions WHERE {sql}
            ORDER BY {_NEWEST} LIMIT ?)
        SELECT s.session_id, s.user_id, {_AGENTS}, s.first_at, s.last_at, s.messages, {_STATE}
        FROM page CROSS JOIN sessions AS s USING(user_id, session_id, agent_id) ORDER BY {_NEWEST_OF_S}""",
        (*bindings, max(0, limit)),
    )
    return tuple(
        with_state(
            SessionRow(session, user, tuple(json.loads(agents)), *rest),
            None if state is None else record_of(state),
        )
        for session, user, agents, *rest, state in rows
    )


def party_rows(
    connection: apsw.Connection,
    party: Party,
    *,
    user_id: str | None,
    limit: int,
    after: tuple[float, str] | None,
) -> Sequence[PartyRow]:
    """Those that spoke in sessions; see `ListsSessions.parties`."""
    conditions: list[Condition] = [("agent_id = ''" if party == "user" else "agent_id > ''", ())]
    if user_id is not None:
        conditions.append(("user_id = ?", (user_id,)))
    sql, bindings = joined(conditions)
    # The index holds all that is asked for, in the order of the groups.
    by_index = "INDEXED BY sessions_by_user" if user_id is None else ""
    further, place = ("HAVING (last, id) < (?, ?)", after) if after is not None else ("", ())
    rows: Any = connection.execute(
        f"""SELECT {party}_id AS id, count(*), sum(messages), min(first_at), max(last_at) AS last
        FROM sessions {by_index} WHERE {sql} GROUP BY id {further} ORDER BY last DESC, id DESC LIMIT ?""",
        (*bindings, *place, max(0, limit)),
    )
    return tuple(PartyRow(*row) for row in rows)


def messages_said_last(connection: apsw.Connection, where: Filter, *, limit: int) -> Sequence[Record]:
    """The messages of a session that were said last; see `ListsSessions.said_last`."""
    said, bindings = _said_in(where)
    # As with sessions, the inner query reads an index alone.
    rows: Any = connection.execute(
        f"""WITH page AS MATERIALIZED (SELECT key, said_at {said} ORDER BY said_at DESC, key DESC LIMIT ?)
        SELECT data FROM page CROSS JOIN records USING(key) ORDER BY said_at DESC, page.key DESC""",
        (*bindings, max(0, limit)),
    )
    return tuple(record_of(data) for (data,) in rows)


def messages_counted(connection: apsw.Connection, where: Filter) -> int:
    """How many messages of a session there are; see `ListsSessions.count_said`."""
    said, bindings = _said_in(where)
    return int(connection.execute(f"SELECT count(*) {said}", bindings).get)


def _said_in(where: Filter) -> Condition:
    """The rows of a session's messages in the index by time, from FROM on."""
    conditions: list[Condition] = [
        ("stream = ? AND stream > ''", (where.session_id or "",)),  # as the index has it
        ("namespace IN (SELECT namespace FROM namespaces WHERE user_id = ?)", (where.user_id or "",)),
    ]
    for sql, value in (("said_at >= ?", where.since), ("said_at < ?", where.until)):
        if value is not None:
            conditions.append((sql, (value,)))
    sql, bindings = joined(conditions)
    return f"FROM entries INDEXED BY entries_in_time WHERE {sql}", bindings
