"""A user's own weights: proposed for what they gain elsewhere, not for chance."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory.model.records import Weights
from tests import programs

ROOT = Path(__file__).parents[2]


def tune(*paths: Path) -> subprocess.CompletedProcess[str]:
    given = [word for path in paths for word in ("--data", str(path))]
    command = ["benchmarks/tune.py", "--embedder", "none", "--rounds", "1", *given]
    return programs.run(*command, cwd=ROOT, timeout=300)


def terse(path: Path, *, count: int) -> Path:
    """Conversations whose answers are the shortest turns, so that the weight of information is too much."""
    conversations = []
    for number in range(count):
        turns: list[dict[str, Any]] = []
        questions: list[dict[str, Any]] = []
        for tea in ("oolong", "sencha", "assam"):
            said = [tea, *(f"{tea} {' '.join(f'{tea}{at}x{word}' for word in range(25))}" for at in range(8))]
            ids = [f"{tea}{place}" for place in range(len(said))]
            for id_, text in zip(ids, said, strict=True):
                when = 1_714_521_600 + 86_400 * len(turns)
                turns.append({"id": id_, "session": len(turns), "t": when, "speaker": "Ann", "text": text})
            questions.append({"q": f"{tea}?", "cat": "name", "evidence": ids[:1]})
        conversations.append(
            {"id": f"c{number}", "asked": 1_720_000_000, "turns": turns, "questions": questions}
        )
    path.write_text(json.dumps({"conversations": conversations}), encoding="utf-8")
    return path


@pytest.mark.slow
def test_one_corpus_is_not_enough(tmp_path: Path) -> None:
    done = tune(terse(tmp_path / "one.json", count=1))
    assert done.returncode == 1
    assert "one corpus is not enough" in done.stderr


def test_weights_that_gain_elsewhere_are_proposed_as_they_are_set(tmp_path: Path) -> None:
    done = tune(terse(tmp_path / "many.json", count=3))
    assert done.returncode == 0, done.stderr
    *_, gain, proposal = done.stdout.strip().splitlines()
    assert gain.startswith("gain +")
    name, _, value = proposal.partition("=")
    assert name == "MEMORY_SIGNAL_WEIGHTS"
    assert json.loads(value.strip("'"))["information"] < Weights().information


def test_without_a_gain_the_defaults_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    turns = [{"id": "1", "text": "Oolong for Ben"}, {"id": "2", "text": "The kettle is on"}]
    questions = [{"q": "Who wants oolong?", "cat": "name", "evidence": ["1"]}]
    both = [{"id": id_, "turns": turns, "questions": questions} for id_ in ("a", "b")]
    path.write_text(json.dumps({"conversations": both}), encoding="utf-8")
    done = tune(path)
    assert done.returncode == 0, done.stderr
    assert "keep the defaults" in done.stdout.splitlines()[-1]
    assert "MEMORY_SIGNAL_WEIGHTS" not in done.stdout
