"""Promises of a backend: its audit log and its access log."""

from supervisor_memory.audit.rows import Access
from supervisor_memory.model.records import AuditEvent, Source
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.testing.records import NOW, assert_chain, changed, tea, written

CANARIES = (
    *("canary-content", "canary-after", "canary-user"),
    *("canary-session", "canary reason", "canary détail"),
)


class Auditing:
    """Tests of what the logs hold, and what they do not."""

    def test_events_are_written_with_the_change_and_hold_no_content(self, backend: MemoryBackend) -> None:
        record = tea("canary-content", user="canary-user", source=Source(session_id="canary-session"))
        event = AuditEvent(
            "memory.add",
            user_id="canary-user",
            family=record.family,
            record_id=record.id,
            version_after=1,
            before="canary-content",
            after="canary-after",
            reason="canary reason",
            source_class="user",
            agent_id="text2sql",
            session_id="canary-session",
            run_id="run-1",
            detail={"cosine_milli": 970, "note": "canary détail", "big": 2**60, "none": None, "yes": True},
        )
        backend.batch(Commit((Change(record),), (event,)))
        row = backend.audit.tail(1, op="memory.add")[0]
        assert not [c for c in CANARIES if c in row.payload.decode() or c in str(row)]
        told = row.event
        assert told == told | {
            "event_id": event.id,
            "record_id": record.id,
            "version_after": 1,
            "reason": "redacted",
            "agent_id": "text2sql",
            "run_id": backend.audit.run_pseudonym("canary-user", "run-1"),
            "detail": dict(event.detail, note="redacted", big=str(2**60)),
        }
        assert told["commit_before"] != told["commit_after"]
        assert backend.audit.tail(5, user_id="canary-user", record_id=record.id)[-1] == row
        assert not backend.audit.tail(5, user_id="somebody else")

    def test_convenient_changes_are_in_the_audit_log_too(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        backend.update([changed(record, content="likes black tea")])
        backend.delete([record.id])
        rows = backend.audit.tail(10, record_id=record.id)
        assert [row.op for row in rows] == ["memory.write", "memory.update", "memory.delete"]
        events = [row.event for row in rows]
        assert [(e["version_before"], e["version_after"]) for e in events] == [(None, 1), (1, 2), (2, 3)]
        assert events[0]["commit_after"] == events[1]["commit_before"]
        assert events[1]["commit_after"] == events[2]["commit_before"]
        assert len({event["subject"] for event in events}) == 1

    def test_the_audit_log_is_a_gapless_chain(self, backend: MemoryBackend) -> None:
        for number in range(5):
            backend.write([tea(f"tea {number}a"), tea(f"tea {number}b")])
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)

    def test_the_access_log_says_who_saw_what(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        seen = [
            Access("memory.search", NOW, "alice", "text2sql", "canary-session", "run-1", record.id, rank, 0.5)
            for rank in (1, 2)
        ]
        backend.audit.record_access([*seen, Access("inject", NOW + 1, "bob", record_id="other")])
        rows = backend.audit.accesses(10, record_id=record.id)
        assert [(r.op, r.agent_id, r.run_id, r.rank, r.score_milli) for r in rows] == [
            ("memory.search", "text2sql", "run-1", 1, 500),
            ("memory.search", "text2sql", "run-1", 2, 500),
        ]
        assert "canary" not in str(rows)
        assert "alice" not in str(rows)
        assert [r.op for r in backend.audit.accesses(10)] == ["memory.search", "memory.search", "inject"]
        assert [r.record_id for r in backend.audit.accesses(10, user_id="bob")] == ["other"]
