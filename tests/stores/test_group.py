"""Commits of many threads in one transaction."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import AuditEvent, Filter, Record, new_id
from supervisor_memory.stores.protocol import Change, Commit, Committed
from supervisor_memory.stores.sqlite.store import Group, SqliteBackend, _Request


def record(text: str, user: str = "ada") -> Record:
    return Record(new_id(), ("domain_facts", user), text, "domain-facts", 1.0, 1.0)


def adding(text: str, user: str = "ada") -> Commit:
    new = record(text, user)
    return Commit((Change(new),), (AuditEvent("add", user_id=user, record_id=new.id),))


def in_threads(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call gave or raised, all of them begun together."""
    results: list[Any] = [None] * len(calls)
    together = threading.Barrier(len(calls))

    def run(at: int) -> None:
        together.wait()
        try:
            results[at] = calls[at]()
        except Exception as error:  # noqa: BLE001
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


@pytest.fixture
def backend(tmp_path: Path) -> Any:
    with_file = SqliteBackend(tmp_path)
    yield with_file
    with_file.close()


def test_each_of_many_gets_its_own_answer(backend: SqliteBackend) -> None:
    commits = [adding(f"fact {number % 20}") for number in range(40)]  # each text twice
    results = in_threads([lambda c=commit: backend.batch(c) for commit in commits])  # type: ignore[misc]
    stored = [result for result in results if isinstance(result, Committed)]
    refused = [result for result in results if isinstance(result, Conflict)]
    assert (len(stored), len(refused)) == (20, 20)
    assert {r.content for r in backend.list(Filter(user_id="ada"), limit=99)} == {
        f"fact {n}" for n in range(20)
    }
    rows = backend.audit.tail(99)
    assert {row.event["record_id"] for row in rows} == {result.records[0].id for result in stored}
    assert [row.seq for row in rows] == list(range(rows[0].seq, rows[0].seq + 20))


def test_those_that_wait_share_a_transaction(backend: SqliteBackend) -> None:
    begun, go_on = threading.Event(), threading.Event()
    transactions: list[int] = []

    def apply(connection: apsw.Connection, commit: Commit) -> Committed:
        transactions.append(id(commit))
        if commit.id == "first":
            begun.set()
            go_on.wait(10)
        assert connection.in_transaction
        return Committed(commit.id)

    group = Group(backend.database, apply)
    first = threading.Thread(target=lambda: group.commit(Commit(id="first")))
    first.start()
    assert begun.wait(10)
    threads = [threading.Thread(target=lambda: group.commit(Commit(id="later"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(group._waiting) < 8:
        pass
    began: list[str] = []
    connection = backend.database._writer_connection()
    connection.set_exec_trace(lambda _cursor, sql, _bindings: began.append(sql) or True)  # type: ignore[func-returns-value]
    go_on.set()
    for thread in (first, *threads):
        thread.join(10)
    connection.set_exec_trace(None)
    assert len(transactions) == 9
    assert began.count("BEGIN IMMEDIATE") == 1  # for the eight; the first had begun before
    assert began.count("COMMIT") == 2


def test_who_has_an_answer_does_not_wait_for_those_who_came_later(backend: SqliteBackend) -> None:
    begun = {name: threading.Event() for name in ("first", "together", "later")}
    go_on = {name: threading.Event() for name in begun}

    def apply(_: apsw.Connection, commit: Commit) -> Committed:
        begun[commit.id].set()
        assert go_on[commit.id].wait(10)
        return Committed(commit.id)

    group = Group(backend.database, apply)

    def started(name: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: group.commit(Commit(id=name)))
        thread.start()
        return thread

    first = started("first")
    assert begun["first"].wait(10)
    answered = [first, *(started("together") for _ in range(6))]
    while len(group._waiting) < 6:
        pass
    go_on["first"].set()
    assert begun["together"].wait(10)
    later = [started("later") for _ in range(2)]
    go_on["together"].set()
    assert begun["later"].wait(10)
    for thread in answered:
        thread.join(10)
    assert not any(thread.is_alive() for thread in answered)
    go_on["later"].set()
    for thread in later:
        thread.join(10)
    assert not any(thread.is_alive() for thread in later)


def test_one_that_breaks_the_transaction_is_alone_with_it(backend: SqliteBackend) -> None:
    def apply(connection: apsw.Connection, commit: Commit) -> Committed:
        if commit.id == "bad":
            connection.execute("ROLLBACK")  # as SQLite does by itself when the disk is full
            raise apsw.FullError("database or disk is full")
        return backend._apply(connection, commit)

    group = Group(backend.database, apply)
    good = [adding(f"fact {number}") for number in range(12)]
    results = in_threads([lambda c=c: group.commit(c) for c in [*good, Commit(id="bad")]])  # type: ignore[misc]
    assert all(isinstance(result, Committed) for result in results[:-1])
    assert isinstance(results[-1], Exception)
    assert backend.count(Filter(user_id="ada")) == 12


def test_inside_a_transaction_a_commit_is_part_of_it(backend: SqliteBackend) -> None:
    def undone() -> None:
        with backend.database.writing():
            backend.batch(adding("never there"))
            raise RuntimeError("undo")

    with pytest.raises(RuntimeError, match="undo"):
        undone()
    assert backend.count(Filter(user_id="ada")) == 0


def test_an_interrupt_right_behind_an_answer_stays_an_interrupt(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = _Request.call

    def interrupted(request: _Request) -> None:
        monkeypatch.setattr(_Request, "call", call)
        raise KeyboardInterrupt

    def waiting() -> None:
        with pytest.raises(KeyboardInterrupt):
            backend.batch(adding("fact"))

    thread = threading.Thread(target=waiting)
    with backend._group._turn:  # so that it waits, and leads by itself then
        thread.start()
        while not backend._group._waiting:
            pass
        monkeypatch.setattr(_Request, "call", interrupted)
    thread.join(10)
    assert _Request.call is call
    assert backend.count(Filter(user_id="ada")) == 1
