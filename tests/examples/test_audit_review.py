"""The example that goes from an answer to the memory behind it, and undoes that."""

import re
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/05_audit_review.py"
SETS = {"MEMORY_BACKEND": "sqlite", "MEMORY_PATH": "", "EMBEDDING_MODEL": "none"}
"""What the example sets in its environment, which is as before when the test ends."""


def test_five_commands_lead_from_a_wrong_answer_to_an_undone_memory(
    beside_flights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = subprocess.run

    def run(words: Sequence[Any], **options: Any) -> "subprocess.CompletedProcess[str]":
        """The commands are forked off, as other programs of tests are."""
        is_command = words[0] == programs.COMMAND
        return programs.run(*words, timeout=240, check=True) if is_command else start(words, **options)

    for name, value in (programs.UNHURRIED | SETS).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(beside_flights)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(subprocess, "run", run)
    runpy.run_path(str(EXAMPLE))
    sessions, why, show, revert, preview, verify = re.split(
        r"^\$ supervisor-memory ", capsys.readouterr().out, flags=re.M
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
