"""The promises of listing sessions, whichever way a store does it. Inherit, and add a fixture `backend`.

A store that `ListsSessions` and one whose messages are read give the same rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Record, Source
from supervisor_memory.stores.protocol import Change, MemoryBackend, PartyRow, SessionRow
from supervisor_memory.stores.sessions import (
    CLOSED_AT,
    NAME,
    SUBJECT,
    UNTIL,
    count_said,
    list_parties,
    list_sessions,
    said_last,
)
from supervisor_memory.testing.records import NOW, tea


def said(session: str, at: float, *, agent: str | None = None, **values: Any) -> Record:
    source = Source("user" if agent is None else "agent", agent, session)
    times = {"created_at": NOW + at, "updated_at": NOW + at}
    facts: dict[str, Any] = {
        "family": SESSION_FAMILY,
        "layer": "history",
        "source": source,
        **times,
        **values,
    }
    return tea(f"said {at} in {session}", **facts)


def told(backend: MemoryBackend, where: Filter, **options: Any) -> list[str]:
    return [row.session_id for row in list_sessions(backend, where, **{"limit": 100, **options})]


class SessionsContract:
    """The promises of a list of sessions. Each test gets an empty backend."""

    def test_a_row_tells_who_spoke_when_and_how_often(self, backend: MemoryBackend) -> None:
        backend.write(
            [said("s1", 1), said("s1", 3, agent="sql"), said("s1", 2, agent="charts"), said("s2", 9)]
        )
        backend.write([tea("likes tea", source=Source(session_id="s3")), said("s1", 5, user="bo")])
        rows = list_sessions(backend, Filter("alice"), limit=9)
        assert list(rows) == [
            SessionRow("s2", "alice", (), NOW + 9, NOW + 9, 1),
            SessionRow("s1", "alice", ("charts", "sql"), NOW + 1, NOW + 3, 3),
        ]
        assert told(backend, Filter()) == ["s2", "s1", "s1"]

    def test_fields_of_the_filter_restrict_the_list(self, backend: MemoryBackend) -> None:
        backend.write([said("s1", 1, agent="sql"), said("s1", 4), said("s2", 6), said("s3", 8, agent="sql")])
        expected: Sequence[tuple[dict[str, Any], list[str]]] = (
            ({"session_id": "s2"}, ["s2"]),
            ({"agent_id": "sql"}, ["s3", "s1"]),
            ({"agent_id": "sq"}, []),
            ({"since": NOW + 4}, ["s3", "s2", "s1"]),
            ({"since": NOW + 4.5}, ["s3", "s2"]),
            ({"until": NOW + 6}, ["s1"]),
            ({"since": NOW + 2, "until": NOW + 7, "agent_id": "sql"}, ["s1"]),
            ({"user_id": "bo"}, []),
        )
        for fields, sessions in expected:
            assert told(backend, Filter(**fields)) == sessions, fields

    def test_pages_go_on_where_the_last_one_ended(self, backend: MemoryBackend) -> None:
        backend.write([said(f"s{n}", n // 3, user=f"u{n % 2}") for n in range(10)])
        everything = told(backend, Filter())
        pages, after = [], None
        while rows := list_sessions(backend, Filter(), limit=3, after=after):
            pages += [row.session_id for row in rows]
            after = rows[-1].place
        assert pages == everything
        assert set(everything) == {f"s{n}" for n in range(10)}
        assert told(backend, Filter(), limit=0) == []

    def test_what_was_said_last_in_a_session_comes_first(self, backend: MemoryBackend) -> None:
        backend.write([said("s1", n) for n in (3, 1, 4, 2)])
        backend.write([said("s2", 9), said("s1", 8, user="bo"), tea("tea", source=Source(session_id="s1"))])
        of_session = Filter("alice", session_id="s1")
        times = {
            limit: [each.created_at - NOW for each in said_last(backend, of_session, limit=limit)]
            for limit in (0, 2, 9)
        }
        assert times == {0: [], 2: [4, 3], 9: [4, 3, 2, 1]}
        between = replace(of_session, since=NOW + 2, until=NOW + 4)
        assert [each.created_at - NOW for each in said_last(backend, between, limit=9)] == [3, 2]
        assert [count_said(backend, where) for where in (of_session, between)] == [4, 2]
        backend.delete([each.id for each in said_last(backend, of_session, limit=1)])
        assert [each.created_at - NOW for each in said_last(backend, of_session, limit=1)] == [3]
        assert not said_last(backend, Filter("cy", session_id="s1"), limit=9)

    def test_users_and_agents_are_those_who_spoke_in_sessions(self, backend: MemoryBackend) -> None:
        backend.write([said("s1", 1), said("s1", 3, agent="sql"), said("s1", 2, agent="charts")])
        backend.write([said("s2", 9, agent="sql"), said("s1", 5, user="bo"), tea("likes tea", user="cy")])
        alice, bo = (
            PartyRow("alice", 2, 4, NOW + 1, NOW + 9),
            PartyRow("bo", 1, 1, NOW + 5, NOW + 5),
        )
        sql, charts = (
            PartyRow("sql", 2, 4, NOW + 1, NOW + 9),
            PartyRow("charts", 1, 3, NOW + 1, NOW + 3),
        )
        assert list(list_parties(backend, "user", limit=9)) == [alice, bo]
        assert list(list_parties(backend, "user", user_id="bo", limit=9)) == [bo]
        assert list(list_parties(backend, "agent", limit=9)) == [sql, charts]
        assert list(list_parties(backend, "agent", limit=1)) == [sql]
        assert list(list_parties(backend, "agent", limit=9, after=sql.place)) == [charts]
        assert list(list_parties(backend, "agent", user_id="bo", limit=9)) == []
        backend.delete([record.id for record in backend.list(Filter("alice", session_id="s2"), limit=9)])
        assert list(list_parties(backend, "agent", limit=9)) == [
            PartyRow("sql", 1, 3, NOW + 1, NOW + 3),
            charts,
        ]

    def test_parties_of_one_time_come_by_their_ids_page_by_page(self, backend: MemoryBackend) -> None:
        backend.write([said(f"s{n}", 1, user=f"u{n}") for n in range(5)])
        pages, after = [], None
        while rows := list_parties(backend, "user", limit=2, after=after):
            pages += [row.id for row in rows]
            after = rows[-1].place
        assert pages == ["u4", "u3", "u2", "u1", "u0"]

    def test_messages_that_go_and_change_are_counted_anew(self, backend: MemoryBackend) -> None:
        first, second, last = said("s1", 1, agent="sql"), said("s1", 2), said("s1", 3, agent="charts")
        backend.write([first, second, last, said("s2", 2)])
        backend.delete([first.id, last.id])
        assert list_sessions(backend, Filter("alice", session_id="s1"), limit=1) == (
            SessionRow("s1", "alice", (), NOW + 2, NOW + 2, 1),
        )
        backend.delete([second.id])
        assert told(backend, Filter()) == ["s2"]
        (deleted,) = backend.get([last.id])
        backend.update([Change(replace(deleted, status="active"), expects=deleted.version)])
        assert told(backend, Filter(agent_id="charts")) == ["s1"]

    def test_the_state_of_a_session_gives_its_name_and_end(self, backend: MemoryBackend) -> None:
        facts = {NAME: "The trip", CLOSED_AT: NOW + 5, UNTIL: NOW + 4}
        about = {"family": DIGEST_FAMILY, "layer": "summary", "subject": SUBJECT}
        backend.write([said("s1", 4), said("s2", 9), said("s1", 3, user="bo")])
        backend.write([tea("The trip", **about, attribute="s1", metadata=facts)])
        backend.write([tea("other", **about, attribute="s2", metadata={CLOSED_AT: NOW + 8})])
        rows = {(row.user_id, row.session_id): row for row in list_sessions(backend, Filter(), limit=9)}
        trip, other = rows["alice", "s1"], rows["alice", "s2"]
        assert (trip.name, trip.closed_at, trip.is_digested, trip.status) == (
            "The trip",
            NOW + 5,
            True,
            "closed",
        )
        assert (other.name, other.is_digested, other.status) == (None, False, "open")
        assert rows["bo", "s1"].name is None
