"""What the workers of `--forks` tell of the tests that they run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs

TESTS = """
import os, warnings, pytest

@pytest.mark.parametrize("number", range(40))
def test_one(number):
    if number == 13:
        os._exit(3)
    if number == 25:
        warnings.warn("look at this")
    assert number != 30, "thirty"
    if number == 31:
        pytest.skip("not now")
"""


@pytest.mark.slow
@programs.forks
def test_each_test_is_told_of_once_and_a_worker_that_dies_fails_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(TESTS, "utf-8")
    words = ("pytest", "-p", "tests.forked", "--forks", "3", "-rA", "test_many.py")
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "SLOW": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    told = re.findall(r"^(\w+) test_many.py::test_one\[(\d+)\]", done.stdout, re.M)
    assert {number for outcome, number in told if outcome == "FAILED"} == {"13", "30"}
    assert len(told) == len({number for _, number in told}) == 39
    assert "the worker that ran it ended with 3" in done.stdout
    assert "not now" in done.stdout
    assert done.stdout.count("UserWarning: look at this") == 1
    assert "2 failed, 37 passed, 1 skipped, 1 warning" in done.stdout
