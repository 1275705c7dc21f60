"""List the sessions of a store, and tell their names and ends from their states."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from supervisor_memory.errors import BackendUnavailable, InvalidContent
from supervisor_memory.model.records import DIGEST_FAMILY, Filter, Record
from supervisor_memory.stores.protocol import (
    Copied,
    Incomplete,
    ListsSessions,
    MemoryBackend,
    Party,
    PartyRow,
    SessionRow,
)

SUBJECT: Final = "session"
"""The subject of each state; its attribute is the session's id, so that a session has one active state."""
NAME: Final = "name"
CLOSED_AT: Final = "closed_at"
CLOSED_MESSAGES: Final = "closed_messages"
"""The key for how many messages a session had when it was closed."""
UNTIL: Final = "until"
"""The key for the `created_at` of the newest message in the digest; without it there is no digest yet."""
HEARD: Final = "heard"
"""The key for how many messages a digest was made of: some may come late, or by a clock put back."""
LINES: Final = "lines"
_ALL: Final = 2**31 - 1


def states_of(user_id: str | None, session_id: str | None = None) -> Filter:
    """The filter of the active states of a user's sessions, or of a single session."""
    return Filter(user_id, families=(DIGEST_FAMILY,), subject=SUBJECT, attribute=session_id)


def list_sessions(
    backend: MemoryBackend, where: Filter, *, limit: int, after: tuple[float, str, str] | None = None
) -> Sequence[SessionRow]:
    """The sessions that match, as `ListsSessions.sessions` gives them.

    A store without that power is asked for all messages that can match.

    Raises:
        BackendUnavailable: the store is out of reach.
    """
    if isinstance(backend, ListsSessions):
        return backend.sessions(where, limit=limit, after=after)
    said = defaultdict[tuple[str, str], list[Record]](list)
    of_session = Filter(where.user_id, session_id=where.session_id, layers=("history",))
    for record in _list_states(backend, of_session):
        if record.source.session_id is not None:
            said[record.user_id, record.source.session_id].append(record)
    rows = [_row(key, messages) for key, messages in said.items()]
    first = sorted(
        (row for row in rows if _matches(row, where, after)), key=attrgetter("place"), reverse=True
    )[:limit]
    if not first:
        return ()
    states = {(each.user_id, each.attribute or ""): each for each in _states(backend, where)}
    return tuple(with_state(row, states.get((row.user_id, row.session_id))) for row in first)


def list_parties(
    backend: MemoryBackend,
    party: Party,
    *,
    user_id: str | None = None,
    limit: int,
    after: tuple[float, str] | None = None,
) -> Sequence[PartyRow]:
    """The users, or the agents, that spoke in sessions, as `ListsSessions.parties` gives them.

    A store without that power is asked for all messages that can match.

    Raises:
        BackendUnavailable: the store is out of reach.
    """
    if isinstance(backend, ListsSessions):
        return backend.parties(party, user_id=user_id, limit=limit, after=after)
    of_party = defaultdict[str, list[SessionRow]](list)
    for row in list_sessions(backend, Filter(user_id), limit=_ALL):
        for id_ in (row.user_id,) if party == "user" else row.agents:
            of_party[id_].append(row)
    parties = sorted(
        (_party(id_, rows) for id_, rows in of_party.items()), key=attrgetter("place"), reverse=True
    )
    return tuple(each for each in parties if after is None or each.place < after)[: max(0, limit)]


def said_last(backend: MemoryBackend, where: Filter, *, limit: int) -> Sequence[Record]:
    """The messages of a session that were said last, as `ListsSessions.said_last` gives them.

    A store without that power is asked for all messages of the session in that time.

    Raises:
        BackendUnavailable: the store is out of reach.
    """
    if isinstance(backend, ListsSessions):
        return backend.said_last(where, limit=limit)
    said = _list_states(backend, _said_in(where))
    return sorted(said, key=lambda each: (each.created_at, each.id), reverse=True)[: max(0, limit)]


def count_said(backend: MemoryBackend, where: Filter) -> int:
    """How many messages of a session there are, as `ListsSessions.count_said` counts them.

    Raises:
        BackendUnavailable: the store is out of reach.
    """
    return backend.count_said(where) if isinstance(backend, ListsSessions) else backend.count(_said_in(where))


def _said_in(where: Filter) -> Filter:
    said = Filter(where.user_id, session_id=where.session_id, layers=("history",))
    return replace(said, since=where.since, until=where.until)


def place_of(cursor: str | None) -> tuple[float, str, str] | None:
    """The place in the cursor of a session's row; InvalidContent: the text is no cursor."""
    if cursor is None:
        return None
    at, user_id, session_id = _read_cursor(cursor, parts=3)
    return at, user_id, session_id


def place_of_one(cursor: str | None) -> tuple[float, str] | None:
    """The place in a cursor; InvalidContent: the text is no cursor."""
    if cursor is None:
        return None
    at, id_ = _read_cursor(cursor, parts=2)
    return at, id_


def _read_cursor(cursor: str, *, parts: int) -> tuple[Any, ...]:
    try:
        at, *names = json.loads(cursor)
        if len(names) != parts - 1:
            raise ValueError(f"{len(names) + 1} parts")
        _ = "".join(map(str, names)).encode()
        return float(at), *map(str, names)
    except (ValueError, TypeError) as error:
        raise InvalidContent(
            f"after is {str(cursor)[:64]!r}; pass the cursor of a row as it was given", key="after"
        ) from error


def with_state(row: SessionRow, state: Record | None) -> SessionRow:
    """The row of a session with the name and the end from its state."""
    if state is None:
        return row
    name, closed_at, messages = (state.metadata.get(key) for key in (NAME, CLOSED_AT, CLOSED_MESSAGES))
    return replace(
        row,
        name=name if isinstance(name, str) else None,
        closed_at=float(closed_at) if isinstance(closed_at, (int, float)) else None,
        is_digested=UNTIL in state.metadata,
        closed_messages=messages if isinstance(messages, int) else None,
    )


def heard_by(state: Record) -> int | None:
    """The number of messages that a digest covers; None: it is unknown."""
    told = state.metadata.get(HEARD)
    return told if isinstance(told, int) else None


def _list_states(backend: MemoryBackend, where: Filter) -> Sequence[Record]:
    found = backend.list(where, limit=_ALL)
    if isinstance(found, Incomplete) and not isinstance(found, Copied):
        raise BackendUnavailable(
            "the store is out of reach, so its sessions cannot be listed; try again later"
        )
    return found


def _states(backend: MemoryBackend, where: Filter) -> Iterable[Record]:
    """The states, the latest last."""
    return reversed(_list_states(backend, states_of(where.user_id, where.session_id)))


def _row(key: tuple[str, str], messages: Sequence[Record]) -> SessionRow:
    times = [each.created_at for each in messages]
    agents = sorted({each.source.agent_id for each in messages if each.source.agent_id is not None})
    return SessionRow(key[1], key[0], tuple(agents), min(times), max(times), len(messages))


def _party(id_: str, rows: Sequence[SessionRow]) -> PartyRow:
    first, last = min(row.first_at for row in rows), max(row.last_at for row in rows)
    return PartyRow(id_, len(rows), sum(row.messages for row in rows), first, last)


def _matches(row: SessionRow, where: Filter, after: tuple[float, str, str] | None) -> bool:
    return (
        (where.agent_id is None or where.agent_id in row.agents)
        and (where.since is None or where.since <= row.last_at)
        and (where.until is None or row.first_at < where.until)
        and (after is None or row.place < after)
    )
