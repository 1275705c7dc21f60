"""The commands that move memories."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.interfaces.cli.main import app
from supervisor_memory.testing.moving_contract import all_of, assert_same
from tests.interfaces.conftest import Run

PAGE = Path(__file__).parents[2] / "docs/cli.md"


def stored(name: str, path: str = ".supervisor_memory") -> SupervisorMemory:
    return SupervisorMemory(Settings(backend=name, path=Path(path), embedding_model="none"))


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("there", ["json", "sqlite"])
def test_what_is_exported_can_be_imported_elsewhere(
    run: Run, backend: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run("export", "all.jsonl")
    assert (told.code, told.stdout, told.stderr) == (0, "6 exported\n", "")
    monkeypatch.setenv("MEMORY_BACKEND", there)
    monkeypatch.setenv("MEMORY_PATH", "elsewhere")
    assert run("import", "all.jsonl").stdout == "6 added\n"
    assert run("import", "all.jsonl").stdout == "6 same\n"
    with stored(backend) as here, stored(there, "elsewhere") as other:
        assert_same(all_of(other.backend), all_of(here.backend))


@pytest.mark.usefixtures("ids")
def test_copy_makes_the_other_store_and_copies_one_user_where_told(run: Run, backend: str) -> None:
    told = run("copy", "--to", "sqlite", "--to-path", "elsewhere", "--user", "bo")
    assert (told.code, told.stdout, told.stderr) == (0, "1 added\n", "")
    told = run("copy", "--to", "sqlite", "--to-path", "elsewhere", "--json")
    assert told.json == {"counts": {"same": 1, "added": 5}, "refused": []}
    with stored(backend) as here, stored("sqlite", "elsewhere") as other:
        assert_same(all_of(other.backend), all_of(here.backend))


@pytest.mark.usefixtures("ids")
def test_lines_that_are_refused_are_told_one_by_one_and_fail(run: Run, backend: str) -> None:
    run("export", "all.jsonl")
    lines = Path("all.jsonl").read_text("utf-8").splitlines(keepends=True)
    Path("bad.jsonl").write_text("".join([*lines[:2], "\x1b[31mnonsense\n", *lines[3:-1]]), "utf-8")
    told = run("import", "bad.jsonl")
    assert told.code == 1
    assert told.stdout == "5 same, 2 refused\n"
    assert re.match(
        r"refused: line 3: the line cannot be read: .*\nrefused: the file has no last", told.stderr
    )
    assert "\x1b" not in told.stderr
    value = run("import", "bad.jsonl", "--json").json
    assert [(each["line"], each["reason"]) for each in value["refused"]] == [(3, "damaged"), (None, "cut")]
    listed = set(
        re.findall(
            r"`([a-z_]+)`",
            next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `refused` |")),
        )
    )
    assert set(value["refused"][0]) == listed - {"refused"}


@pytest.mark.usefixtures("ids")
def test_records_go_through_standard_output_and_input(
    run: Run, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run("export", "-", "--user", "bo")
    assert [set(json.loads(line)) for line in told.stdout.splitlines()][1:] == [
        {"record", "versions", "vector"},
        {"end"},
    ]
    monkeypatch.setenv("MEMORY_PATH", "elsewhere")
    assert CliRunner().invoke(app, ["import", "-"], input=told.stdout).stdout == "1 added\n"
    with stored(backend, "elsewhere") as other:
        assert [each.record.user_id for each in all_of(other.backend)] == ["bo"]
    assert run("export", "-", "--json").code == 2


@pytest.mark.usefixtures("ids")
def test_what_cannot_be_done_is_one_line_and_makes_nothing(
    run: Run, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, code, said in (
        (("copy", "--to", backend), 1, "into itself"),
        (("copy", "--to", "in_memory"), 1, "not persistent"),
        (("copy", "--to", "sqlit"), 1, "did you mean 'sqlite'"),
        (("copy", "--to", "qdrant"), 1, "QDRANT_URL"),
        (("import", "missing.jsonl"), 1, "missing.jsonl"),
        (("export", "out.jsonl", "--user", "null"), 2, "null"),
    ):
        told = run(*arguments)
        assert (told.code, told.stderr.count("\n")) == (code, 1), arguments
        assert said in told.stderr
    monkeypatch.setenv("MEMORY_PATH", "nothing here")
    assert run("export", "out.jsonl").code == 1
    assert not Path("nothing here").exists()
    assert not list(Path().glob("out.jsonl*"))
    monkeypatch.setenv("MEMORY_BACKEND", "in_memory")
    assert "not persistent" in run("import", "all.jsonl").stderr


@pytest.mark.usefixtures("ids", "backend")
def test_an_export_replaces_no_file_unless_told_to_and_is_for_its_owner_alone(run: Run) -> None:
    file = Path("all.jsonl")
    file.write_text("mine", encoding="utf-8")
    for options in ((), ("--resume",)):
        refused = run("export", "all.jsonl", *options)
        assert (refused.code, refused.stdout) == (1, "")
        assert "is there already" in refused.stderr
        assert "--force" in refused.stderr
    assert file.read_text(encoding="utf-8") == "mine"
    assert run("export", "all.jsonl", "--force").stdout == "6 exported\n"
    assert file.read_text(encoding="utf-8").count("\n") == 8
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("ids", "backend")
def test_an_export_that_was_cut_off_is_resumed(run: Run) -> None:
    run("export", "all.jsonl")
    whole = Path("all.jsonl").read_bytes()
    Path("all.jsonl").unlink()
    Path("all.jsonl.part").write_bytes(whole[: len(whole) // 2])
    assert run("export", "all.jsonl", "--resume").stdout == "6 exported\n"
    assert Path("all.jsonl").read_bytes() == whole
