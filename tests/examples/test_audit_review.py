"""The example that goes from an answer to the memory behind it, and undoes that."""

import re
from pathlib import Path

from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/05_audit_review.py"


def test_five_commands_lead_from_a_wrong_answer_to_an_undone_memory(beside_flights: Path) -> None:
    done = programs.run(EXAMPLE, cwd=beside_flights, env=programs.environment(), timeout=240, check=True)
    sessions, why, show, revert, preview, verify = re.split(
        r"^\$ supervisor-memory ", done.stdout, flags=re.M
    )
    assert "arriving more than 60 minutes late" in sessions
    assert len(re.findall(r"^ *1\. .*\n.* more than 60 minutes late\.$", why, re.M)) >= 3
    assert "text2sql" in why
    notes = re.findall(r"inject for the supervisor, (\d+) tokens", why)
    assert len(notes) > len(set(notes)) == 1  # the supervisor speaks several times in a turn, with one note
    assert "version 1, active" in show
    assert "supervisor  inject" in show
    assert "updated (reverted)" in revert
    note, _, _ = preview.partition("</memory>")
    assert "Delayed means arrival more than 15 minutes late." in note
    assert "delayed means arrival more than 60" not in note
    assert "0 problems" in verify
