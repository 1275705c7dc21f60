"""The audit log grows by a known amount for an event, and is as quick to read at its end however long."""

import os
from pathlib import Path

import apsw
import pytest

from supervisor_memory.audit.access import ACCESS_ROWS
from supervisor_memory.audit.log import AuditLog, open_log
from supervisor_memory.audit.rows import GENESIS, Access, row_hash
from supervisor_memory.model.records import AuditEvent

ROWS = int(os.environ.get("THREAT_AUDIT_ROWS", "2000"))
TOGETHER = 1_000
BYTES_A_ROW = 1_600


def event(number: int) -> AuditEvent:
    return AuditEvent(
        "merge",
        user_id=f"user-{number % 50}",
        family="user_profile",
        record_id=f"{number % 500:036}",
        version_before=1,
        version_after=2,
        before="Use tables.",
        after="Use tables by default.",
        reason="near-duplicate",
        session_id=f"session-{number % 100}",
        run_id=f"run-{number}",
        detail={"rule": "overwrite", "likeness": "0.97"},
    )


class Steps:
    """Counts the steps of SQLite's machine on connections that are opened from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, self._watch])

    def of_the_end(self, log: AuditLog) -> int:
        """What the last twenty rows take."""
        before = self.taken
        log.tail(20)
        return self.taken - before

    def _watch(self, connection: apsw.Connection) -> None:
        connection.set_progress_handler(self._count, 1)

    def _count(self) -> bool:
        self.taken += 1
        return False


def test_a_long_log_is_a_whole_chain_of_small_rows_with_a_quick_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)
    log = open_log(tmp_path)
    log.append([event(number) for number in range(100)], at=1.0)
    short = steps.of_the_end(log)
    assert short > 0
    for start in range(100, ROWS, TOGETHER):
        log.append([event(n) for n in range(start, min(start + TOGETHER, ROWS))], at=2.0)
    assert log.count() == ROWS
    assert steps.of_the_end(log) <= short + 20
    before, seq = GENESIS, 0
    for row in log.tail(ROWS):
        assert (row.seq, row.hash) == (seq + 1, row_hash(log.log_id, before, row.payload))
        before, seq = row.hash, row.seq
    log.close()
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert size / ROWS < BYTES_A_ROW


def test_the_log_of_who_saw_what_has_a_most(tmp_path: Path) -> None:
    assert ACCESS_ROWS == 100_000
    log = AuditLog(open_log(tmp_path)._database, access_rows=50)
    for start in range(0, 300, 30):
        log.record_access(
            [Access("search", at=float(n), record_id=f"r{n}") for n in range(start, start + 30)]
        )
        log.flush()
    kept = log.accesses(999)
    assert [row.record_id for row in kept] == [f"r{n}" for n in range(250, 300)]
    log.close()
