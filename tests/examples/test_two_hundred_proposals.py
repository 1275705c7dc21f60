"""The store for trying the inbox: two hundred proposals wait, and none is let in by itself."""

from pathlib import Path

from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/10_two_hundred_proposals.py"


def test_two_hundred_wait(tmp_path: Path) -> None:
    done = programs.run(EXAMPLE, "--fill", cwd=tmp_path, timeout=120, check=True)
    assert "0 approved, 0 rejected, 200 wait" in done.stdout
    assert (tmp_path / ".demo/inbox/memory.db").exists()
