"""The store for trying the inbox: two hundred proposals wait, and what was decided is counted."""

import re
from pathlib import Path

from supervisor_memory import Settings, SupervisorMemory
from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/10_two_hundred_proposals.py"


def test_two_hundred_wait_and_decisions_are_counted(tmp_path: Path) -> None:
    helped = programs.run(EXAMPLE, "--help", cwd=tmp_path, timeout=120, check=True)
    assert "--told" in helped.stdout
    assert not list(tmp_path.iterdir())
    done = programs.run(EXAMPLE, "--fill", cwd=tmp_path, timeout=120, check=True)
    assert "0 approved, 0 rejected, 200 wait; 0 of the 5" in done.stdout
    settings = Settings(backend="sqlite", path=tmp_path / ".demo/inbox", embedding_model="none")
    with SupervisorMemory(settings) as memory:
        # Of these forty some join each other: they are decided all the same.
        ids = [each.id for each in memory.review.pending(limit=200) if each.record.source.agent_id == "web"]
        results = [memory.review.approve(id_, reviewer="rita@example.com").status for id_ in ids]
        assert set(results) > {"added"}
        undone, rejected = ids[0], [each.id for each in memory.review.pending(limit=3)]
        memory.review.undo(undone, reviewer="rita@example.com")
        for id_ in rejected:
            memory.review.reject(id_, reviewer="rita@example.com")
    told = programs.run(EXAMPLE, "--told", cwd=tmp_path, timeout=120, check=True).stdout
    assert f"{len(ids) - 1} approved, 3 rejected, {200 - len(ids) - 2} wait; " in told
    assert re.search(r"[0-5] of the 5 that are wrong were approved; \d+ s from the first", told)
