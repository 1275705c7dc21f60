"""LangGraph's own tests of its stores pass over ours. Their source is downloaded; none of it is kept here.

`SUPERVISOR_MEMORY_OFFLINE=1` skips what cannot be downloaded; without it, no registry is a failure.
"""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

OFFLINE = "SUPERVISOR_MEMORY_OFFLINE"
INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
OUTCOME = re.compile(r"^tests/test_store\.py::(.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
NOT_OURS = {
    "test_vector_store_initialization": "asks SQLite for the tables of their vectors, through `store.conn`",
    "test_nonnull_migrations": "reads the SQL of their migrations, `SqliteStore.MIGRATIONS`",
    "test_sql_injection_vulnerability[memory]": "wants a name refused SQL might misread; ours meets none",
    "test_sql_injection_vulnerability[file]": "the same",
}


def source_of(package: str, version: str, cache: Path) -> Path:
    """The unpacked source of a release, with its tests. Downloaded once."""
    name = f"{package.replace('-', '_')}-{version}"
    if not (cache / name).is_dir():
        # What builds it may come as a wheel: from source, that takes minutes.
        wanted = [f"{package}=={version}", "--no-deps", "--no-binary", package, "--dest", str(cache)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", *wanted],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            why = f"the source of {package} {version} cannot be downloaded: {done.stderr.strip()[-500:]}"
            if os.environ.get(OFFLINE):
                pytest.skip(why)
            pytest.fail(f"{why}\nSet {OFFLINE}=1 to skip it where there is no network.", pytrace=False)
        with tarfile.open(cache / f"{name}.tar.gz") as archive:
            archive.extractall(cache / "unpacking", filter="data")
        (cache / "unpacking" / name).rename(cache / name)
    return cache / name


def outcomes(source: Path, ini: Path) -> dict[str, str]:
    """Each of their tests of a store, run over ours: its name → PASSED, FAILED, …"""
    ini.write_text(INI)
    plugin = Path(__file__).with_name("langgraph_stores.py")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "tests/test_store.py", "-v", "-rA", "--tb=short"),
            *("-c", str(ini), "--rootdir", str(source), "-p", plugin.stem, "-p", "no:cacheprovider"),
        ],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(plugin.parent), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = dict(
        re.findall(r"^tests/test_store\.py::(.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", done.stdout, re.M)
    )
    assert told, done.stdout + done.stderr
    return {name.rpartition("::")[2]: outcome for name, outcome in told.items()}


@pytest.fixture
def cache(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("langgraph-sources")


@pytest.mark.slow
def test_the_tests_of_their_store_in_memory_pass(cache: Path, tmp_path: Path) -> None:
    told = outcomes(source_of("langgraph-checkpoint", "4.3.2", cache), tmp_path / "pytest.ini")
    assert len(told) == 117
    assert set(told.values()) == {"PASSED"}


@pytest.mark.slow
def test_the_tests_of_their_sqlite_store_pass_but_for_those_of_its_sql(cache: Path, tmp_path: Path) -> None:
    told = outcomes(source_of("langgraph-checkpoint-sqlite", "3.1.2", cache), tmp_path / "pytest.ini")
    assert len(told) == 103
    assert {name for name, outcome in told.items() if outcome != "PASSED"} == set(NOT_OURS)
