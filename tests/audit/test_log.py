"""The audit log: a chain that holds no content, and beside it who saw what."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.audit.rows import GENESIS, Access, AuditRow, commitment, row_hash
from supervisor_memory.audit.turns import Given
from supervisor_memory.disk import database as database_module
from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendError, Conflict, WasErased
from supervisor_memory.model.records import AuditEvent, Reads, Scope, new_id
from supervisor_memory.testing.records import tea
from tests.programs import forks

NOW = 1_767_571_200.25


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "audit.db")
    yield database
    database.close()


@pytest.fixture
def log(database: Database) -> AuditLog:
    return AuditLog(database)


def broken_at(rows: Sequence[AuditRow], log_id: str) -> int | None:
    """The first row that does not follow from the ones before; None when all do."""
    previous = GENESIS
    for number, row in enumerate(rows, start=1):
        if (
            row.seq != number
            or row.prev_hash != previous
            or row.hash != row_hash(log_id, previous, row.payload)
        ):
            return number
        previous = row.hash
    return None


def test_a_chain_begins_with_nothing_and_each_row_follows(log: AuditLog) -> None:
    log.append([AuditEvent("memory.write"), AuditEvent("memory.delete")], at=NOW)
    log.append([AuditEvent("memory.update")], at=NOW + 1)
    rows = log.tail(10)
    assert rows[0].prev_hash == bytes(32)
    assert broken_at(rows, log.log_id) is None
    assert [row.ts_us for row in rows] == [1_767_571_200_250_000] * 2 + [1_767_571_201_250_000]
    assert log.count() == 3


def test_the_hash_is_what_the_documentation_says(log: AuditLog) -> None:
    log.append([AuditEvent("memory.write")], at=NOW)
    row = log.tail(1)[0]
    recipe = b"sm-audit/v1\0" + log.log_id.encode() + bytes(32) + row.payload
    assert row.hash == hashlib.sha256(recipe).digest()


def test_the_payload_is_the_whole_event_in_canonical_json(log: AuditLog) -> None:
    log.append([AuditEvent("memory.write", detail={"b": 1, "a": "x"})], at=NOW)
    row = log.tail(1)[0]
    assert row.payload == json.dumps(row.event, sort_keys=True, separators=(",", ":")).encode()
    assert set(row.event) == {
        *("schema", "log_id", "seq", "event_id", "ts_us", "op", "outcome", "reason", "actor", "source_class"),
        *(
            "subject",
            "family",
            "record_id",
            "version_before",
            "version_after",
            "commit_before",
            "commit_after",
        ),
        *("agent_id", "session", "run_id", "detail"),
    }
    assert (row.event["schema"], row.event["log_id"], row.event["seq"]) == (1, log.log_id, 1)


@given(text=st.text(max_size=20), number=st.integers(), flag=st.none() | st.booleans())
def test_the_payload_is_what_rfc_8785_makes_of_it(text: str, number: int, flag: bool | None) -> None:
    log = AuditLog(Database(None))
    log.append([AuditEvent("add", agent_id=text, detail={"b": number, "A": flag, "a": text})], at=NOW)
    row = log.tail(1)[0]
    assert row.payload == rfc8785.dumps(row.event)


def test_every_kind_of_tampering_breaks_the_chain(log: AuditLog) -> None:
    log.append([AuditEvent("memory.write", detail={"number": n}) for n in range(6)], at=NOW)
    rows = list(log.tail(10))
    flipped = bytearray(rows[2].payload)
    flipped[-3] ^= 1
    changed = AuditRow(**{**_fields(rows[2]), "payload": bytes(flipped)})
    assert broken_at([*rows[:2], changed, *rows[3:]], log.log_id) == 3
    assert broken_at([*rows[:2], *rows[3:]], log.log_id) == 3
    assert broken_at([rows[1], rows[0], *rows[2:]], log.log_id) == 1
    assert broken_at(rows, "another log") == 1
    assert broken_at(rows, log.log_id) is None


def _fields(row: AuditRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in AuditRow.__slots__}


@pytest.mark.parametrize(
    "statement", ["DELETE FROM audit", "UPDATE audit SET op = 'x'", "DELETE FROM audit WHERE seq = 2"]
)
def test_rows_cannot_be_changed_or_removed(log: AuditLog, database: Database, statement: str) -> None:
    log.append([AuditEvent("memory.write"), AuditEvent("memory.write")], at=NOW)
    with pytest.raises(BackendError, match="append-only"), database.writing() as connection:
        connection.execute(statement)
    assert log.count() == 2


def test_a_row_belongs_to_the_transaction_around_it(log: AuditLog, database: Database) -> None:
    def fail_after_appending() -> None:
        with database.writing():
            log.append([AuditEvent("memory.write")], at=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_appending()
    assert log.count() == 0
    log.append([AuditEvent("memory.write")], at=NOW)
    assert broken_at(log.tail(9), log.log_id) is None


def test_one_event_is_logged_once(log: AuditLog) -> None:
    event = AuditEvent("memory.write")
    log.append([event], at=NOW)
    with pytest.raises(Conflict):
        log.append([AuditEvent("memory.write"), event], at=NOW)
    assert log.count() == 1


def test_people_and_sessions_have_pseudonyms_that_stay(log: AuditLog) -> None:
    for user, session in (
        ("alice", "Alice's chat"),
        ("alice", "Alice's chat"),
        ("bob", "Alice's chat"),
        (None, "x"),
    ):
        log.append([AuditEvent("memory.write", user_id=user, session_id=session)], at=NOW)
    events = [row.event for row in log.tail(9)]
    assert events[0]["subject"] == events[1]["subject"] != events[2]["subject"]
    assert events[0]["session"] == events[1]["session"] != events[2]["session"]
    assert events[3]["subject"] is None
    assert "lice" not in str(events)


def test_pseudonyms_differ_between_logs() -> None:
    seen = set()
    for _ in range(5):
        log = AuditLog(Database(None))
        log.append([AuditEvent("memory.write", user_id="alice", session_id="s")], at=NOW)
        seen.add((log.tail(1)[0].event["subject"], log.tail(1)[0].event["session"]))
    assert len(seen) == len({subject for subject, _ in seen}) == len({session for _, session in seen}) == 5


def test_a_text_can_be_checked_against_its_commitment_while_the_key_is_there(
    log: AuditLog, database: Database
) -> None:
    log.append([AuditEvent("memory.write", record_id="r1", user_id="alice", after="likes tea")], at=NOW)
    log.append([AuditEvent("memory.write", record_id="r2", user_id="alice", after="likes tea")], at=NOW)
    first, second = (row.event["commit_after"] for row in log.tail(2))
    key = log.key("r1")
    assert key is not None
    assert commitment(key, "likes tea") == first != second
    with database.writing() as connection:  # as forgetting a person does
        connection.execute("DELETE FROM record_keys")
        connection.execute("DELETE FROM subjects")
    assert log.key("r1") is None
    assert broken_at(log.tail(9), log.log_id) is None
    assert not log.tail(9, user_id="alice")


def test_without_a_record_there_is_no_commitment(log: AuditLog) -> None:
    log.append([AuditEvent("memory.skip", after="something", outcome="skipped")], at=NOW)
    assert log.tail(1)[0].event["commit_after"] is None


@given(
    text=st.text(),
    number=st.integers() | st.floats() | st.booleans() | st.none(),
    names=st.lists(st.text(), max_size=3),
)
def test_any_event_can_be_logged_and_holds_no_free_text(text: str, number: Any, names: list[str]) -> None:
    log = AuditLog(Database(None))
    detail = dict.fromkeys(names, number) | {"text": "secret " + text}
    event = AuditEvent(
        "x", reason="secret " + text, actor="secret " + text, run_id="secret " + text, detail=detail
    )
    log.append([event], at=NOW)
    row = log.tail(1)[0]
    assert b"secret " not in row.payload
    assert row.event["reason"] == "redacted"
    assert broken_at([row], log.log_id) is None


def test_tails_can_be_asked_by_user_record_and_operation(log: AuditLog) -> None:
    for number in range(12):
        event = AuditEvent(
            ("memory.write", "memory.delete")[number % 2],
            user_id=("alice", "bob", "carol")[number % 3],
            record_id=f"r{number % 4}",
            detail={"number": number},
        )
        log.append([event], at=NOW)

    def numbers(limit: int, **wanted: Any) -> list[int]:
        return [row.event["detail"]["number"] for row in log.tail(limit, **wanted)]

    assert numbers(3) == [9, 10, 11]
    assert numbers(2, user_id="bob") == [7, 10]
    assert numbers(9, op="memory.delete", record_id="r1") == [1, 5, 9]
    assert numbers(9, user_id="alice", op="memory.write", record_id="r2") == [6]
    assert numbers(0) == numbers(-1) == numbers(9, user_id="mallory") == []


def test_the_access_log_keeps_the_newest_rows(database: Database) -> None:
    log = AuditLog(database, access_rows=10)
    for start in range(0, 25, 5):
        log.record_access(
            [Access("memory.search", NOW, "alice", record_id=f"r{start + n}") for n in range(5)]
        )
    assert [row.record_id for row in log.accesses(99)] == [f"r{n}" for n in range(15, 25)]
    log.record_access([])
    assert len(log.accesses(3)) == 3


def test_many_accesses_ask_to_be_written(log: AuditLog) -> None:
    log.record_access([Access("memory.search", NOW)] * 255)
    assert not log.has_much_to_write
    log.record_access([Access("memory.search", NOW)])
    assert log.has_much_to_write
    log.flush()
    assert not log.has_much_to_write
    assert len(log.accesses(999)) == 256


def test_the_access_log_holds_no_names(log: AuditLog) -> None:
    log.record_access(
        [
            Access(
                "memory.search",
                NOW,
                "alice",
                "text2sql",
                "her thread",
                "r",
                "id",
                1,
                0.9876,
                "a secret reason",
            )
        ]
    )
    row = log.accesses(1)[0]
    assert (row.ts_us, row.rank, row.score_milli, row.reason) == (1_767_571_200_250_000, 1, 988, "redacted")
    log.append([AuditEvent("memory.write", user_id="alice", session_id="her thread")], at=NOW)
    event = log.tail(1)[0].event
    assert (row.subject, row.session) == (event["subject"], event["session"])


def test_what_was_read_and_what_was_shown_are_written_in_the_order_in_which_they_came(log: AuditLog) -> None:
    def read(id: str) -> Access:
        return Access("memory.get", NOW, "alice", record_id=id)

    def shown(id: str) -> Given:
        return Given(id, "search", NOW, Scope("alice"), None, False, "[]", "[]")

    log.record_access([read("r1"), shown("n1"), shown("n2"), read("r2"), shown("n3")])
    assert [row.record_id for row in log.accesses(9)] == ["r1", "r2"]
    assert [row.id for row in log.notes(9)] == ["n3", "n2", "n1"]


def test_logs_on_one_file_share_a_chain(tmp_path: Path) -> None:
    logs = [AuditLog(Database(tmp_path / "audit.db")) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: logs[n % 3].append([AuditEvent("x"), AuditEvent("y")], at=NOW), range(60)))
    rows = logs[0].tail(1000)
    assert len({log.log_id for log in logs}) == 1
    assert len(rows) == 120
    assert broken_at(rows, logs[0].log_id) is None


def test_the_tables_are_made_once(tmp_path: Path) -> None:
    first = AuditLog(Database(tmp_path / "audit.db"))
    first.append([AuditEvent("x", id=new_id())], at=NOW)
    assert AuditLog(Database(tmp_path / "audit.db")).log_id == first.log_id
    connection = apsw.Connection(str(tmp_path / "audit.db"))
    assert connection.execute("SELECT count(*) FROM audit").get == 1
    connection.close()


def test_how_often_and_when_last_a_record_was_read_is_known_up_to_a_hundred_times(log: AuditLog) -> None:
    entries = [Access("search", NOW, user_id="u1", record_id="often")] * 150
    log.record_access([*entries, Access("inject", NOW + 9, user_id="u1", record_id="once")])
    log.flush()
    assert log.reads(["often", "once", "never"]) == {
        "often": Reads(100, NOW),
        "once": Reads(1, NOW + 9),
        "never": Reads(),
    }
    assert log.reads([]) == {}


def test_no_read_begins_within_another_where_erased_records_are_refused(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork waits for the reads that have begun, and a read that begins then waits for the fork."""
    said = tea(layer="history", created_at=NOW)
    log.erase("alice", [said], at=NOW)
    take = Database.take_reader

    def alone(database: Database) -> Any:
        assert not database.is_read
        return take(database)

    monkeypatch.setattr(Database, "take_reader", alone)
    for refused in (said, tea(created_at=NOW - 1)):
        with pytest.raises(WasErased):
            log.refuse_erased([refused, tea(created_at=NOW + 1)])


@forks
@pytest.mark.usefixtures("log")
def test_a_read_that_begins_while_another_thread_forks_waits_for_the_fork(database: Database) -> None:
    database.give_back(database.take_reader())  # it is there to be let go
    began, read = database.take_reader(), threading.Event()
    children: list[int] = []

    def fork() -> None:
        if not (child := os.fork()):
            os._exit(0)
        children.append(child)

    def take() -> None:
        database.give_back(database.take_reader())
        read.set()

    threads = [threading.Thread(target=each, daemon=True) for each in (fork, take)]
    threads[0].start()
    while not database_module._forks:
        time.sleep(0.001)
    threads[1].start()
    assert not read.wait(0.1)
    database.give_back(began)
    for thread in threads:
        thread.join(30)
    assert read.is_set()
    assert os.waitpid(children[0], 0)[1] == 0


def test_a_row_costs_no_look_at_the_schema(log: AuditLog, database: Database) -> None:
    event = AuditEvent("memory.write", user_id="alice", record_id="r1", after="green tea", version_after=1)
    log.append([event], at=NOW)
    asked: list[str] = []
    connection = database._writer_connection()
    connection.set_exec_trace(lambda _cursor, sql, _bindings: asked.append(sql) or True)  # type: ignore[func-returns-value]
    log.append([replace(event, id=new_id())], at=NOW)
    connection.set_exec_trace(None)
    assert any("INSERT INTO audit" in sql for sql in asked)
    assert not any("sqlite_schema" in sql for sql in asked)
