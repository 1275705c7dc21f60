"""A recipe and a store of another package work in a fresh process, found by their entry points alone."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import supervisor_memory
from tests import programs

PACKAGE = Path(__file__).parent / "package"
HELD = """
import json
from supervisor_memory import SupervisorMemory

with SupervisorMemory.from_env(None) as memory:
    first = memory.write("The depot is in Kiel.", user_id="ada")
    second = memory.write("The depot moved north to Lund.", user_id="ada")
    third = memory.write("Tea is at five.", user_id="ada")
    note = memory.search("where is the depot", user_id="ada")
    print(json.dumps({
        "store": memory.backend.name,
        "recipe": memory.recipe.name,
        "statuses": [first.status, second.status, third.status],
        "found": [[hit.record.content, hit.found] for hit in note],
        "commits": memory.backend.commits_of("ada"),
    }))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as an installer leaves it: its modules and its metadata."""
    target = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE / "src", target, dirs_exist_ok=True)
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    info = target / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    with (info / "entry_points.txt").open("w") as file:
        for group, named in project["entry-points"].items():
            file.write(f"[{group}]\n" + "".join(f"{each} = {where}\n" for each, where in named.items()))
    return target


def run(installed: Path, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    root = str(Path(supervisor_memory.__file__).parent.parent)
    known = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    path = os.pathsep.join([str(installed), root])
    env = {**known, "PYTHONPATH": path, "EMBEDDING_MODEL": "none", **environment}
    return programs.run(*command, env=env, cwd=installed, timeout=300)


def test_both_are_found_by_their_names(installed: Path, tmp_path: Path) -> None:
    named = {"MEMORY_BACKEND": "outside", "MEMORY_RECIPE": "outside", "MEMORY_PATH": str(tmp_path)}
    done = run(installed, "-c", HELD, **named)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "store": "outside",
        "recipe": "outside",
        "statuses": ["added", "updated", "added"],
        "found": [["The depot moved north to Lund.", None], ["Tea is at five.", "newest"]],
        "commits": 3,
    }
    assert (tmp_path / "memory.db").exists()


def test_a_store_without_what_the_recipe_needs_is_refused(installed: Path) -> None:
    done = run(installed, "-c", HELD, MEMORY_BACKEND="in_memory", MEMORY_RECIPE="outside")
    assert "recipe 'outside' needs a store that is Tallies, and InMemoryBackend is not" in done.stderr


def test_the_names_of_others_are_among_the_choices(installed: Path) -> None:
    done = run(installed, "-c", HELD, MEMORY_RECIPE="nothing_like_it")
    assert "choose one of " in done.stderr
    assert "outside" in done.stderr
    done = run(installed, "-c", HELD, MEMORY_BACKEND="redis")
    assert "'sqlite', 'qdrant', 'outside'" in done.stderr


@pytest.mark.slow
def test_both_keep_the_promises_of_all(installed: Path) -> None:
    contracts = installed / "test_contracts.py"
    shutil.copy(PACKAGE / "contracts_outside.py", contracts)
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(installed))
    done = run(installed, "-m", "pytest", *options, str(contracts))
    assert done.returncode == 0, done.stdout[-3_000:]
    assert "passed" in done.stdout
