"""A process around a journal is killed at a statement of its database: what it told is there, once."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from supervisor_memory.audit.verify import verified
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.model.records import AuditEvent, Record
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import tea

KILLS = int(os.environ.get("JOURNAL_KILLS", "3"))
"""How many in each kind of outage; 140 are all that there are."""
_MOST_STATEMENTS = 140


class Line(SqliteBackend):
    """A store in a file, behind a line that can be cut, or cut after the first commit has passed."""

    is_cut = loses_answers = False

    def _pass(self) -> None:
        if self.is_cut:
            raise BackendUnavailable("the line is cut")

    def batch(self, commit: Commit) -> Any:
        self._pass()
        done = super().batch(commit)
        if self.loses_answers:
            self.is_cut = True
            raise BackendUnavailable("the line was cut before the answer came")
        return done

    def get(self, *args: Any) -> Any:
        self._pass()
        return super().get(*args)


@pytest.fixture
def reopen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], JournalBackend]:
    monkeypatch.setattr("supervisor_memory.stores.journal.replay._ORPHANED_AFTER", 0.0)
    return lambda: JournalBackend(
        Line(tmp_path / "store"),
        tmp_path / "journal",
        copies=True,
        replays=False,
        breaker=Breaker(seconds=0.01),
        read_seconds=60,
        write_seconds=60,
    )


def _points() -> range:
    step = max(1, _MOST_STATEMENTS // KILLS)
    return range(step // 2, _MOST_STATEMENTS, step)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("at", _points())
@pytest.mark.parametrize("outage", ["none", "cut", "loses answers"])
def test_what_was_told_before_a_kill_is_there_once(
    reopen: Callable[[], JournalBackend], monkeypatch: pytest.MonkeyPatch, outage: str, at: int
) -> None:
    told = _killed(reopen, monkeypatch, outage, at)
    with closing(reopen()) as journal:
        assert journal.replay()
        for record_id in "ab":
            stored = journal.store.versions(record_id)
            versions = [record.version for record in stored]
            assert versions == list(range(1, len(stored) + 1))
            assert {int(each[1]) for each in told if each[0] == record_id} <= set(versions)
            rows = journal.audit.tail(99, record_id=record_id)
            assert [row.event["version_after"] for row in rows] == versions
            copy = journal._place.copy
            assert copy is not None
            assert copy.versions().get(record_id, 0) == len(stored)
        assert verified(journal.audit, journal.get).problems == []


def _killed(
    reopen: Callable[[], JournalBackend], monkeypatch: pytest.MonkeyPatch, outage: str, at: int
) -> list[str]:
    """What a child said before it was killed at this statement, or ended: record and version of each."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _speak(reopen(), outage, at, lambda said: os.write(into, f"{said} ".encode()))
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as said:
        told = said.read().split()
    os.waitpid(child, 0)
    return told


def _speak(journal: JournalBackend, outage: str, at: int, say: Callable[[str], object]) -> None:
    line = journal._store._store
    assert isinstance(line, Line)
    line.is_cut, line.loses_answers = outage == "cut", outage == "loses answers"
    _kill_at(journal, line, at)
    first, second = tea("one", id="a"), tea("two", id="b")

    def commit(record: Record, expects: int | None) -> None:
        version = (expects or 0) + 1
        event = AuditEvent(
            "add", user_id="alice", record_id=record.id, version_after=version, after=record.content
        )
        journal.batch(Commit((Change(record, expects),), (event,)))
        say(f"{record.id}{version}")

    commit(first, None)
    commit(second, None)
    commit(replace(first, content="three", content_hash=""), 1)
    commit(replace(second, status="deleted"), 1)
    line.is_cut = line.loses_answers = False
    journal._link.breaker.worked()
    journal.replay()


def _kill_at(journal: JournalBackend, line: Line, at: int) -> None:
    """Let the process be killed before the statement of this number, of the journal or the store."""
    left = [at]

    def count(_cursor: apsw.Cursor, _statement: str, _bindings: Any) -> bool:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    for database in (journal._place.database, line.database):
        database._writer_connection().exec_trace = count
