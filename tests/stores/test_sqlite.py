"""SQLite: the contract, and what only a file can go through."""

import os
import signal
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory.disk import database
from supervisor_memory.disk.files import refuse_network_file_system
from supervisor_memory.errors import (
    BackendError,
    BackendUnavailable,
    CorruptStore,
    ReadOnlyStore,
)
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Query, Record, Source
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.stores.sqlite import store as sqlite
from supervisor_memory.stores.sqlite.namespaces import Namespaces
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.stores.sqlite.tables import of_records
from supervisor_memory.testing.backend_contract import PersistentBackendContract
from supervisor_memory.testing.records import assert_chain, contents, direction, query, tea, with_vector
from tests import programs
from tests.breadth import examples
from tests.cases import every_case
from tests.programs import forks

CYCLES = 20
ID_LENGTH = 36


class TestSqlite(PersistentBackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = SqliteBackend(tmp_path / "store")
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: SqliteBackend(tmp_path / "store")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one record, closed."""
    directory = tmp_path / "store"
    fill(directory)
    return directory


def fill(directory: Path) -> None:
    with closing(SqliteBackend(directory)) as backend:
        backend.write([with_vector(tea(), direction(0))])


def peek(directory: Path, sql: str) -> object:
    """The answer of the file itself. Never by the standard library's sqlite3, whose close drops our locks."""
    connection = apsw.Connection(str(directory / "memory.db"))
    try:
        return connection.execute(sql).get
    finally:
        connection.close()


# Lists that are kept


def test_a_list_that_is_kept_knows_what_others_write_and_erase(tmp_path: Path) -> None:
    where = Filter("alice", families=("user_profile",))
    with closing(SqliteBackend(tmp_path)) as one, closing(SqliteBackend(tmp_path)) as other:
        assert one.list(where, limit=9) == one.list(where, limit=9) == ()
        kept = tea("likes green tea")
        other.write([kept])
        assert contents(one.list(where, limit=9)) == ["likes green tea"]
        assert one.list(where, limit=9) is one.list(where, limit=9)
        other.batch(Commit((Change(replace(kept, content="likes black tea"), expects=1),)))
        assert contents(one.list(where, limit=9)) == ["likes black tea"]
        other.erase("alice", at=kept.created_at + 1)
        assert one.list(where, limit=9) == ()


def test_a_record_that_was_found_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        kept = tea("green tea")
        backend.write([kept])
        [first] = found(backend, "tea")
        backend.write([tea("black tea")])
        assert any(each is first for each in found(backend, "tea")), "another has changed, and not this one"
        backend.batch(Commit((Change(replace(kept, tags=("leaf",)), expects=1),)))
        backend.write([tea("red tea")])
        tags = {each.content: each.tags for each in found(backend, "tea")}
        assert tags == {"green tea": ("leaf",), "black tea": (), "red tea": ()}


def test_a_statement_is_planned_once_and_not_for_each_value(store: Path) -> None:
    with closing(SqliteBackend(store)) as backend:
        for looking in (backend.database.reading, backend.database.writing):
            with looking() as connection:
                assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1


# The file itself


def test_the_directory_is_for_its_owner_alone(store: Path) -> None:
    assert store.stat().st_mode & 0o777 == 0o700


def test_the_file_is_set_up_to_keep_what_it_acknowledged(store: Path) -> None:
    assert peek(store, "PRAGMA journal_mode") == "wal"
    assert peek(store, "PRAGMA user_version") == 10
    with closing(SqliteBackend(store)) as backend, backend.database.writing() as connection:
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("secure_delete") == 1
    with closing(SqliteBackend(store)) as backend, backend.database.reading() as connection:
        assert connection.pragma("query_only") == 1


def test_records_words_vectors_versions_and_audit_are_in_one_file(store: Path) -> None:
    for table in ("records", "vectors", "namespaces", "audit", "entries"):
        assert peek(store, f"SELECT count(*) FROM {table}") == 1


def test_the_terms_kept_for_searches_follow_every_change(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        records = [tea(f"tea number{n}") for n in range(20)]
        backend.write(records)
        backend.update([Change(replace(r, content=r.content + " more"), 1) for r in records[:10]])
        backend.delete([r.id for r in records[5:15]])
        with backend.database.reading() as connection:
            held = [str(row[0]) for row in connection.execute("SELECT terms FROM entries ORDER BY key")]
        assert held == [f"tea number{n} more" for n in range(5)] + [f"tea number{n}" for n in range(15, 20)]


def test_a_store_of_the_first_format_is_taken_to_the_present_one(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([tea("tea of the hills"), tea("tea of the plains"), tea("green")])
        backend.delete([found(backend, "plains")[0].id])
        with backend.database.writing() as connection:
            for statement in FIRST_FORMAT:
                connection.execute(statement)
    with closing(SqliteBackend(tmp_path)) as backend:
        assert [record.content for record in found(backend, "hills")] == ["tea of the hills"]
        assert not found(backend, "plains")
    assert peek(tmp_path, "PRAGMA user_version") == 10
    assert peek(tmp_path, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'fts%'") == 0


def test_a_store_of_the_second_format_learns_who_is_an_assistant(tmp_path: Path) -> None:
    said = Source("agent", session_id="s1")
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([tea("tea of the hills", layer="history", source=said)])
        with backend.database.writing() as connection:
            connection.execute("ALTER TABLE entries DROP COLUMN is_reply")
            connection.execute("PRAGMA user_version=2")
    with closing(SqliteBackend(tmp_path)) as backend:
        assert found(backend, "hills")
    assert peek(tmp_path, "SELECT is_reply FROM entries") == 1
    assert peek(tmp_path, "PRAGMA user_version") == 10


def test_a_store_of_the_third_format_learns_which_messages_its_records_tell_about(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        replaced, joined, one = tea("hot tea", ref_id="m1"), tea("cold tea", ref_id="m1"), tea(ref_id="m9")
        backend.write([replaced, joined, one])
        backend.update([Change(replace(replaced, content="black coffee", ref_id="m2"), 1)])
        backend.update([Change(replace(joined, content="cold tea. With ice", ref_id="m3"), 1)])
        with backend.database.writing() as connection:
            connection.execute("DROP TABLE told_of")
            connection.execute("PRAGMA user_version=3")
    with closing(SqliteBackend(tmp_path)) as backend:
        told = backend.list(Filter("alice", ref_ids=("m1",)), limit=9)
        assert {each.content: (each.joined_ref_ids, each.former_ref_ids) for each in told} == {
            "black coffee": ((), ("m1",)),
            "cold tea. With ice": (("m1",), ()),
        }
        assert contents(backend.list(Filter(ref_ids=("m9", "m3")), limit=9)) == [
            "cold tea. With ice",
            one.content,
        ]
        assert backend.get([one.id]) == (one,)


def test_records_are_looked_up_by_message_without_reading_the_others(tmp_path: Path) -> None:
    where = Filter("alice", statuses=None, ref_ids=tuple(f"m{n}" for n in range(60)))
    condition, bindings = of_records(where)
    sql = f"SELECT data FROM records WHERE {condition} ORDER BY updated_at DESC, id DESC LIMIT 9"
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([tea(f"tea {n}", ref_id=f"m{n}") for n in range(300)])
        with backend.database.reading() as connection:
            plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
    assert any("told_of" in step and step.startswith("SEARCH") for step in plan), plan
    assert any(step.startswith("SEARCH records USING INDEX sqlite_autoindex_records") for step in plan), plan


def found(backend: SqliteBackend, word: str) -> list[Record]:
    query = Query(word, Filter(user_id="alice"), terms(word))
    return [hit.record for hit in backend.search(query, limit=5)]


FIRST_FORMAT = (
    "DROP TABLE entries",
    "ALTER TABLE namespaces ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE namespaces ADD COLUMN terms INTEGER NOT NULL DEFAULT 0",
    "CREATE VIRTUAL TABLE fts_07 USING fts5(body, content='', contentless_delete=1, detail=none, "
    "tokenize=\"ascii tokenchars '_'\")",
    "INSERT INTO fts_07(rowid, body) VALUES(1, '0123456789abcdeftea')",
    "PRAGMA user_version=1",
)


def test_a_damaged_file_is_left_as_it_is(store: Path) -> None:
    file = store / "memory.db"
    damaged = bytearray(file.read_bytes())
    damaged[4096:] = os.urandom(len(damaged) - 4096)
    file.write_bytes(damaged)
    with pytest.raises(CorruptStore, match=str(file)):
        SqliteBackend(store).write([tea("something new")])
    assert file.read_bytes() == damaged


@pytest.mark.parametrize(
    "content", [b"not a database, but somebody's notes" * 300, b"short", b"SQLite format 2\0" * 40]
)
def test_a_file_that_is_no_database_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(content)
    with pytest.raises(CorruptStore, match="left as it is"):
        SqliteBackend(tmp_path)
    assert file.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "memory.db"))
    connection.execute("CREATE TABLE bookmarks(url)")
    connection.close()
    before = (tmp_path / "memory.db").read_bytes()
    with pytest.raises(CorruptStore, match="bookmarks"):
        SqliteBackend(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_deleted_messages_are_found_by_index_without_a_look_at_the_others(store: Path) -> None:
    where = Filter("alice", families=(SESSION_FAMILY,), statuses=("deleted",))
    told, bindings = of_records(where)
    sql = f"EXPLAIN QUERY PLAN SELECT data FROM records WHERE {told} ORDER BY updated_at DESC, id DESC"
    with closing(SqliteBackend(store)) as backend, backend.database.reading() as connection:
        steps = [str(row[3]) for row in connection.execute(sql, bindings)]
    assert steps[0] == "SEARCH records USING INDEX records_set_aside (user_id=? AND family=? AND status=?)"


def test_a_store_of_a_newer_release_is_refused(store: Path) -> None:
    connection = apsw.Connection(str(store / "memory.db"))
    connection.pragma("user_version", 11)
    connection.close()
    with pytest.raises(BackendUnavailable, match="newer release"):
        SqliteBackend(store)


def test_a_record_that_cannot_be_read_says_so(store: Path) -> None:
    connection = apsw.Connection(str(store / "memory.db"))
    connection.execute("UPDATE records SET data = substr(data, 1, 40)")
    connection.close()
    with closing(SqliteBackend(store)) as backend, pytest.raises(CorruptStore):
        backend.search(query(), limit=5)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    fill(tmp_path)
    assert peek(tmp_path, "SELECT count(*) FROM records") == 1


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BackendUnavailable):
        SqliteBackend(tmp_path / "file")


def test_after_closing_it_says_so(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path)
    backend.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        backend.count(Filter())
    with pytest.raises(BackendUnavailable, match="closed"):
        backend.write([tea()])
    assert not backend.health().ok


@given(
    queries=st.lists(
        st.text(st.characters()) | st.text("\"'*^(){}:-+,.\\/AND OR NOT NEAR\x00\ud800a_%茶"),
        min_size=5,
        max_size=30,
    )
)
@settings(max_examples=examples(100), deadline=None)
def test_no_query_fails(queries: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory, closing(SqliteBackend(Path(directory))) as backend:
        backend.write([tea("likes green tea 绿茶")])
        for text in queries:
            for searched in (terms(text), tuple(text), (text, *text.split())):
                backend.search(Query(text, Filter(user_id="alice"), searched), limit=5)
            backend.search(Query(text, Filter(user_id=text or "x"), ("tea",)), limit=5)


# Not allowed to write


def test_where_nothing_can_be_written_it_can_be_read(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    fill(open_place)
    files = {path.name: path.read_bytes() for path in open_place.iterdir()}
    with read_only(open_place), closing(SqliteBackend(open_place)) as backend:
        assert_reads_but_does_not_write(backend)
    assert {path.name: path.read_bytes() for path in open_place.iterdir()} == files


def test_beside_a_writer_a_reader_without_rights_sees_the_last_commit(open_place: Path) -> None:
    with closing(SqliteBackend(open_place)) as writer:
        writer.write([tea("tea one")])
        with closing(SqliteBackend(open_place, read_only=True)) as reader:
            writer.write([tea("tea two")])
            assert reader.count(Filter()) == 2
            with pytest.raises(ReadOnlyStore):
                reader.write([tea("tea three")])


def test_changes_left_in_the_log_are_not_passed_over(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    fill(open_place)
    run("backend.write([tea('one more')]); os._exit(0)", open_place)
    (open_place / "memory.db-shm").unlink()
    with read_only(open_place), pytest.raises(BackendError):
        SqliteBackend(open_place)
    open_place.chmod(0o755)
    for path in open_place.iterdir():
        path.chmod(0o644)
    with closing(SqliteBackend(open_place)) as backend:
        assert backend.count(Filter()) == 2


def test_it_can_be_opened_for_reading_on_purpose(store: Path) -> None:
    with closing(SqliteBackend(store, read_only=True)) as backend:
        assert_reads_but_does_not_write(backend)


def test_a_directory_that_is_not_there_and_cannot_be_made_is_refused(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with read_only(open_place):
        with pytest.raises(BackendUnavailable):
            SqliteBackend(open_place / "new")
        with pytest.raises(BackendError):
            SqliteBackend(open_place)


def assert_reads_but_does_not_write(backend: SqliteBackend) -> None:
    (hit,) = backend.search(query(vector=direction(0)), limit=5)
    assert {"cosine", "bm25"} < {*hit.parts}
    assert backend.audit.tail(5)
    for attempt in (
        lambda: backend.write([tea("new")]),
        lambda: backend.delete(Filter(user_id="alice")),
        lambda: backend.audit.append([AuditEvent("x")], at=0.0),
    ):
        with pytest.raises(ReadOnlyStore, match="MEMORY_PATH"):
            attempt()
    assert backend.health().ok
    assert "read-only" in backend.health().message


# Network file systems

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
/dev/vdb /mnt/nfs/local ext4 rw 0 0
"""


@every_case("place", ["/mnt/nfs", "/mnt/nfs/a/b", "/mnt/with space/x", "/mnt/ssh"])
def test_network_file_systems_are_refused(place: str) -> None:
    with pytest.raises(BackendUnavailable, match="network file system"):
        refuse_network_file_system(Path(place), mounts=MOUNTS)


@every_case("place", ["/", "/home/me", "/mnt/nfsx", "/mnt/nfs/local/x"])
def test_local_ones_are_not(place: str) -> None:
    refuse_network_file_system(Path(place), mounts=MOUNTS)


@pytest.mark.parametrize("ids", [1, 8, 9, 64])
@pytest.mark.parametrize("families", [None, ("facts", "chat")])
def test_some_ids_are_looked_up_and_not_searched_for_among_all_records_of_a_user(
    store: Path, ids: int, families: tuple[str, ...] | None
) -> None:
    wanted = Filter("alice", families, (None, "t"), ids=tuple(map(str, range(ids))))
    condition, bindings = of_records(wanted)
    plan = f"EXPLAIN QUERY PLAN SELECT data FROM records WHERE {condition} ORDER BY updated_at DESC, id DESC"
    connection = apsw.Connection(str(store / "memory.db"))
    try:
        steps = [str(step[-1]) for step in connection.execute(plan, bindings).fetchall()]
    finally:
        connection.close()
    (of_records_alone,) = [step for step in steps if " records " in step]
    assert of_records_alone.endswith("(id=?)")


# Memory


def test_matrices_make_room_for_each_other_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "Namespaces", lambda: Namespaces(most_bytes=1))
    with closing(SqliteBackend(tmp_path)) as backend:
        for user in ("alice", "bob", "alice", "bob"):
            backend.write([with_vector(tea(f"tea {time.monotonic_ns()}", user=user), direction(0))])
        for _ in range(3):
            for user in ("alice", "bob"):
                assert len(backend.search(query("nothing", user=user, vector=direction(0)), limit=5)) == 2


def test_a_search_inside_a_transaction_sees_it_and_leaves_no_trace_when_it_is_undone(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path)
    search = query(vector=direction(0))
    backend.write([with_vector(tea("tea one"), direction(0))])

    def write_and_fail() -> None:
        with backend.database.writing():
            backend.write([with_vector(tea("tea two"), direction(0))])
            assert len(backend.search(search, limit=5)) == 2
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            write_and_fail()
        assert len(backend.search(search, limit=5)) == 1
    backend.write([with_vector(tea("tea three"), direction(0))])
    assert len(backend.search(search, limit=5)) == 2
    backend.close()


def test_a_full_disk_is_an_error_and_nothing_is_half_written(store: Path) -> None:
    with closing(SqliteBackend(store)) as backend:
        with backend.database.writing() as connection:
            connection.pragma("max_page_count", connection.pragma("page_count") + 2)
        with pytest.raises(BackendError, match="no room left"):
            backend.write([tea(f"{n} " + "x" * 60_000) for n in range(5)])
        assert backend.count(Filter()) == len(backend.audit.tail(99)) == 1
        with backend.database.writing() as connection:
            connection.pragma("max_page_count", 1_000_000)
        backend.write([tea("x" * 60_000)])


# Other processes


def test_a_lock_that_is_held_too_long_is_an_error_and_reading_goes_on(store: Path) -> None:
    other = apsw.Connection(str(store / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    with closing(SqliteBackend(store, lock_seconds=0.05)) as backend:
        with pytest.raises(BackendUnavailable, match="locked by another process"):
            backend.write([tea("new")])
        assert backend.search(query(), limit=5)
        other.execute("ROLLBACK")
        backend.write([tea("new")])
    other.close()


def test_a_short_lock_is_waited_for(store: Path) -> None:
    other = apsw.Connection(str(store / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, lambda: other.execute("ROLLBACK")).start()
    with closing(SqliteBackend(store)) as backend:
        backend.write([tea("new")])
    other.close()


def script(body: str) -> tuple[str, str]:
    program = f"""
        import os, sys
        from pathlib import Path
        from supervisor_memory.stores.sqlite.store import SqliteBackend
        from supervisor_memory.testing.records import direction, tea, with_vector
        backend = SqliteBackend(Path(sys.argv[1]))
        {body}
    """
    return "-c", textwrap.dedent(program)


def run(body: str, directory: Path) -> str:
    return programs.run(*script(body), directory, timeout=60, check=True).stdout


def write_for_ever(directory: Path, acknowledge: int) -> int:
    """A process that writes until it is killed, and tells each id once its record is stored."""
    child = os.fork()
    if child:
        return child
    try:
        backend = SqliteBackend(directory)
        for number in count():
            record = with_vector(tea(f"{os.getpid()} tea {number}"), direction(number))
            backend.write([record])
            os.write(acknowledge, record.id.encode())
    finally:
        os._exit(1)


@forks
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    for cycle in range(CYCLES):
        told, tell = os.pipe()
        writers = [write_for_ever(tmp_path, tell) for _ in range(2)]
        os.close(tell)
        received = os.read(told, ID_LENGTH)
        time.sleep(0.005 * cycle)
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
        for writer in writers:
            os.waitpid(writer, 0)
        while chunk := os.read(told, 1 << 16):
            received += chunk
        os.close(told)
        acknowledged |= {received[at : at + ID_LENGTH].decode() for at in range(0, len(received), ID_LENGTH)}
    with closing(SqliteBackend(tmp_path)) as backend:
        assert len(backend.get(sorted(acknowledged))) == len(acknowledged) >= CYCLES
        stored = backend.count(Filter())
        assert len(backend.search(query(vector=direction(0)), limit=10**6)) == stored
        rows = backend.audit.tail(10**6)
        assert len(rows) == stored
        assert_chain(rows, backend.audit.log_id)
    assert peek(tmp_path, "PRAGMA integrity_check") == "ok"
    assert peek(tmp_path, "SELECT count(*) FROM vectors") == stored
    assert peek(tmp_path, "SELECT count(*) FROM entries") == stored


def test_processes_that_open_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    body = "[backend.write([tea(f'{os.getpid()} tea {n}')]) for n in range(40)]; backend.close()"
    writers = [programs.start(*script(body), tmp_path / "new") for _ in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    with closing(SqliteBackend(tmp_path / "new")) as backend:
        assert backend.count(Filter()) == 160
        assert len(backend.search(query(), limit=1000)) == 160
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)


@forks
def test_a_forked_child_has_connections_of_its_own(tmp_path: Path) -> None:
    """In a program of its own: a thread that another test left behind may hold a lock of SQLite's."""
    program = "import sys; from tests.stores import test_sqlite; test_sqlite.write_in_children(sys.argv[1])"
    with programs.start("-c", program, tmp_path) as started:
        assert started.wait(timeout=60) == 0
    assert peek(tmp_path, "PRAGMA integrity_check") == "ok"


def write_in_children(folder: str) -> None:
    with closing(SqliteBackend(Path(folder))) as backend:
        backend.write([with_vector(tea("of the parent"), direction(0))])
        assert backend.search(query(vector=direction(0)), limit=5)
        children = [fork_and_write(backend, number) for number in range(4)]
        for number in range(20):
            backend.write([tea(f"parent {number}")])
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
        assert backend.count(Filter()) == 1 + 4 * 10 + 20
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)


def test_a_store_that_is_made_while_another_process_looks_is_not_taken_for_a_stranger_s(
    tmp_path: Path,
) -> None:
    looking = apsw.Connection(str(tmp_path / "memory.db"))
    asked = count()

    def made_before_the_second_look(*_: object) -> bool:
        if next(asked) == 1:
            SqliteBackend(tmp_path).close()
        return True

    looking.exec_trace = made_before_the_second_look
    found, tables = database._look_at(looking)
    looking.close()
    assert next(asked) == 2
    assert found or not tables


@forks
def test_a_child_keeps_its_store_when_the_parent_closes(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path)
    backend.write([tea("of the parent")])
    go, say = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            backend.write([tea("first of the child")])
            os.read(go, 1)
            backend.write([tea("second of the child")])
            code = 0 if backend.count(Filter()) == 3 else 2
        finally:
            os._exit(code)
    while backend.count(Filter()) < 2:
        time.sleep(0.01)
    backend.close()
    fresh = SqliteBackend(tmp_path)
    os.write(say, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fresh.count(Filter()) == 3
    fresh.close()
    os.close(go)
    os.close(say)


def fork_and_write(backend: SqliteBackend, number: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for turn in range(10):
            backend.write([with_vector(tea(f"child {number} {turn}"), direction(0))])
            assert backend.search(query(vector=direction(0)), limit=5)
        code = 0
    finally:
        os._exit(code)
