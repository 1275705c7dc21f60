"""What runs again, or is sent twice, is written once: a turn, a commit, a checkpoint that is resumed."""

from dataclasses import replace

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Record
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.testing.records import changed, tea

TIMES = 5


def stored(backend: MemoryBackend) -> list[Record]:
    families = (None, (SESSION_FAMILY,))
    return [r for each in families for r in backend.list(Filter(statuses=None, families=each), limit=99)]


def test_a_turn_that_is_replayed_five_times_is_written_once(backend: MemoryBackend) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
    seen: list[tuple[list[Record], list[str]]] = []
    for _ in range(TIMES):
        memory.remember(
            [("user", "From now on use tables. Delayed means more than 15 minutes late.")],
            Scope("ada", session_id="s"),
            turn_id="turn-1",
        )
        outcome = Outcome(final_answer="The share is 23 percent.", side_effects=({"path": "/tmp/a.csv"},))
        memory.remember((), Scope("ada", "analyst", "s"), outcome=outcome, turn_id="turn-1")
        changes = [
            r.op for r in backend.audit.tail(999) if r.outcome == "ok" and not r.op.startswith("commit")
        ]
        seen.append((stored(backend), changes))
    assert len(seen[0][0]) >= 4
    assert all(each == seen[0] for each in seen)
    assert {len(backend.versions(record.id)) for record in stored(backend)} == {1}


def test_a_commit_that_is_sent_again_changes_nothing(backend: MemoryBackend) -> None:
    record = tea()
    event = AuditEvent("add", user_id="alice", record_id=record.id, after=record.content)
    backend.batch(Commit((Change(record),), (event,)))
    renewed = replace(event, id="renewed", op="update")
    for commit in (
        Commit((Change(record),), (event,)),
        Commit((changed(record, content="coffee"),), (event,)),
        Commit(audit=(event,)),
        Commit((Change(record),), (renewed,)),
    ):
        for _ in range(TIMES):
            with pytest.raises(Conflict):
                backend.batch(commit)
    assert [r.content for r in stored(backend)] == [record.content]
    assert len(backend.versions(record.id)) == 1
    assert [row.op for row in backend.audit.tail(99) if row.record_id == record.id] == ["add"]
