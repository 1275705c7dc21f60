"""Every store lists the same sessions, by its own means or by its messages."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory.model.records import Filter, Status
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, ListsSessions, MemoryBackend
from supervisor_memory.stores.sessions import list_parties, list_sessions
from supervisor_memory.stores.sqlite.store import FILE_NAME, SqliteBackend
from supervisor_memory.testing.erasing_contract import ErasingRecordsContract, erase_records
from supervisor_memory.testing.records import NOW
from supervisor_memory.testing.sessions_contract import SessionsContract, said
from tests.breadth import examples
from tests.opened import STORES, opened

MANY = 10_000 if os.environ.get("SLOW") else 800


class TestSessions(SessionsContract, ErasingRecordsContract):
    @pytest.fixture(params=STORES)
    def backend(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
        with opened(request.param, tmp_path) as backend:
            yield backend


@pytest.mark.slow
def test_a_thousand_threads_of_fifty_users_mix_nothing(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        for user in range(50):  # every user has threads of the same ids
            threads = (f"t{n}" for n in range(20))
            backend.write([said(each, n, user=f"u{user}") for each in threads for n in range(user + 1)])
        rows = list_sessions(backend, Filter(), limit=2_000)
        assert len(rows) == 1_000
        assert Counter(row.user_id for row in rows) == {f"u{user}": 20 for user in range(50)}
        assert all(row.messages == int(row.user_id[1:]) + 1 for row in rows)
        of_one = [record.id for record in backend.list(Filter("u7", session_id="t3"), limit=99)]
        assert backend.erase_records(of_one, user_id="u7", at=NOW).removed["records"] == 8
        left = Counter(row.user_id for row in list_sessions(backend, Filter(), limit=2_000))
        assert left == {f"u{user}": 19 if user == 7 else 20 for user in range(50)}


def test_a_session_of_thousands_of_messages_is_counted_and_erased(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([said("long", n, user="alice") for n in range(MANY)])
        (row,) = list_sessions(backend, Filter(), limit=9)
        assert (row.messages, row.first_at, row.last_at) == (MANY, NOW, NOW + MANY - 1)
        ids = [record.id for record in backend.list(Filter("alice", session_id="long"), limit=MANY)]
        backend.delete(ids[:500])
        (row,) = list_sessions(backend, Filter(), limit=9)
        assert (row.messages, row.last_at) == (MANY - 500, NOW + MANY - 501)
        assert erase_records(backend, ids).removed["records"] == MANY
        assert list_sessions(backend, Filter(), limit=9) == ()


def test_a_store_of_the_fifth_format_learns_its_sessions(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([said("s1", 1), said("s1", 2, agent="sql"), said("s2", 3)])
        expected = backend.sessions(Filter(), limit=9)
    with closing(apsw.Connection(str(tmp_path / FILE_NAME))) as connection:
        connection.execute("DROP TABLE sessions")
        connection.execute("PRAGMA user_version=5")
    with closing(SqliteBackend(tmp_path)) as backend:
        assert backend.sessions(Filter(), limit=9) == expected
        assert len(expected) == 2


def test_a_store_of_the_sixth_format_counts_users_and_agents(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([said("s1", 1), said("s1", 2, agent="sql"), said("s2", 3)])
    with closing(apsw.Connection(str(tmp_path / FILE_NAME))) as connection:
        connection.execute("DROP INDEX sessions_by_user")
        connection.execute("CREATE INDEX sessions_by_user ON sessions(agent_id, user_id, last_at)")
        connection.execute("PRAGMA user_version=6")
    with closing(SqliteBackend(tmp_path)) as backend:
        assert [row.id for row in backend.parties("agent", limit=9)] == ["sql"]
        assert backend.parties("user", limit=9)[0].messages == 3


def test_a_store_of_the_seventh_format_learns_what_was_said_last(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([said("s1", 1), said("s1", 3, agent="sql"), said("s1", 2)])
    with closing(apsw.Connection(str(tmp_path / FILE_NAME))) as connection:
        connection.execute("DROP INDEX entries_in_time")
        connection.execute("PRAGMA user_version=7")
    with closing(SqliteBackend(tmp_path)) as backend:
        (last,) = backend.said_last(Filter("alice", session_id="s1"), limit=1)
        assert last.created_at == NOW + 3


_ACTS = st.lists(
    st.tuples(
        st.sampled_from(["say", "delete", "restore", "erase"]),
        st.integers(0, 11),
        st.sampled_from([None, "sql", "charts"]),
    ),
    max_size=30,
)


@settings(max_examples=examples(60), deadline=None)
@given(acts=_ACTS)
def test_the_table_says_what_the_messages_say(acts: list[tuple[str, int, str | None]]) -> None:
    with TemporaryDirectory() as place, closing(SqliteBackend(Path(place))) as table:
        plain = InMemoryBackend()
        assert not isinstance(plain, ListsSessions)
        known: list[str] = []
        for act, number, agent in acts:
            if act == "say":
                record = said(f"s{number % 3}", number, agent=agent, user=f"u{number % 2}")
                known.append(record.id)
                for backend in (table, plain):
                    backend.write([record])
            elif known:
                chosen = known[number % len(known)]
                for backend in (table, plain):
                    _apply(act, chosen, backend)
        for where in (Filter(), Filter("u0"), Filter(agent_id="sql"), Filter(since=NOW + 5, until=NOW + 9)):
            assert table.sessions(where, limit=99) == list_sessions(plain, where, limit=99)
        for party, user in (("user", None), ("agent", None), ("agent", "u1")):
            counted = table.parties(party, user_id=user, limit=99)  # type: ignore[arg-type] # of a literal
            assert counted == list_parties(plain, party, user_id=user, limit=99)  # type: ignore[arg-type] # too


def _apply(act: str, record_id: str, backend: SqliteBackend | InMemoryBackend) -> None:
    for record in backend.get([record_id]):
        if act == "erase":
            backend.erase_records([record_id], user_id=record.user_id, at=NOW)
        else:
            status: Status = "deleted" if act == "delete" else "active"
            backend.update([Change(replace(record, status=status), record.version)])
