"""List sessions from their table in a SQLite store."""

import json
from collections.abc import Sequence
from typing import Any, Final

import apsw

from supervisor_memory.model.records import DIGEST_FAMILY, Filter
from supervisor_memory.stores.protocol import SessionRow
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
