"""What makes the command line quick to type and to read: beginnings of ids, times of a person, plain text."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.interfaces.cli.main import app
from tests.interfaces.conftest import Run

CODE = "from supervisor_memory.interfaces.cli.main import main; main()"
DAY = 86_400


@pytest.mark.parametrize("command", [("show",), ("history",), ("diff",), ("delete",), ("review", "restore")])
def test_the_beginning_of_an_id_names_a_record(
    run: Run, ids: dict[str, str], command: tuple[str, ...]
) -> None:
    id_ = ids["gone"] if "restore" in command else ids["bo"]
    others = [each for each in ids.values() if each != id_]
    shortest = next(n for n in range(4, 36) if not any(each.startswith(id_[:n]) for each in others))
    done = run(*command, id_[:shortest], "--json")
    assert done.code == 0, done.stderr
    assert id_ in done.stdout


def test_a_beginning_of_several_ids_names_them_and_one_of_none_is_not_there(
    run: Run, ids: dict[str, str]
) -> None:
    shared = max(n for n in range(36) if ids["delayed"].startswith(ids["table"][:n]))
    several = run("delete", ids["table"][:shared])
    assert several.code == 2
    assert "write more of it" in several.stderr
    assert ids["table"] in several.stderr
    assert run("show", "ffffffff").code == 1
    assert run("show", ids["table"][:3]).code == 1
    assert len(run("list", "-u", "ada", "--json").json["records"]) == 3


@pytest.mark.parametrize(
    ("said_ago", "option", "found"),
    [
        (2 * DAY, ("--since", "3d"), True),
        (2 * DAY, ("--since", "1d ago"), False),
        (2 * DAY, ("--until", "36h"), True),
        (2 * DAY, ("--since", "1w", "--until", "90m"), True),
        (0, ("--since", "today"), True),
        (2 * DAY, ("--since", "yesterday"), False),
        (2 * DAY, ("--until", "yesterday"), True),
    ],
)
@pytest.mark.usefixtures("backend")
def test_times_are_written_as_people_say_them(
    run: Run, said_ago: float, option: tuple[str, ...], found: bool
) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.write("The pier opens in June.", user_id="ada", created_at=time.time() - said_ago)
    assert bool(run("list", "-u", "ada", *option, "--json").json["records"]) is found
    assert bool(run("search", "pier", "-u", "ada", *option, "--json").json["hits"]) is found


@pytest.mark.usefixtures("ids")
def test_other_commands_take_such_times_too(run: Run) -> None:
    assert run("stats", "--since", "7d", "--json").code == 0
    assert run("audit", "replay", "--until", "today", "--json").code == 0
    assert run("timeline", "-u", "ada", "--since", "1h", "--json").json["sessions"]
    assert run("list", "-u", "ada", "--since", "7 moons").code == 2


@pytest.mark.one_in(2)  # of two stores
@pytest.mark.usefixtures("ids")
def test_no_color_leaves_no_escapes_on_a_terminal(tmp_path: Path) -> None:
    shows = {}
    for name in ("NO_COLOR", "FORCE_COLOR"):
        environment = {**os.environ, "FORCE_COLOR": "1", name: "1", "TERM": "xterm-256color"}
        words = [sys.executable, "-c", CODE, "search", "tables", "-u", "ada"]
        done = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        shows[name] = done.stdout
    assert "Use tables by default." in shows["NO_COLOR"]
    assert "\x1b" not in shows["NO_COLOR"]
    assert "\x1b[" in shows["FORCE_COLOR"]


def test_help_lists_every_command_under_what_it_is_for(run: Run) -> None:
    told = run("--help").stdout
    names = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
    for name in names:
        assert told.count(f"\n  {name} ") == 1, name
    assert told.index("What is remembered:") < told.index("\n  search ") < told.index("\nServers:")


@pytest.mark.usefixtures("backend")
def test_of_many_refused_lines_a_few_are_named(run: Run, tmp_path: Path) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.write("The pier opens in June.", user_id="ada")
    file = tmp_path / "broken.jsonl"
    assert run("export", str(file)).code == 0
    head, *rest = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([head, *["not a record"] * 50, *rest]), "utf-8")
    done = run("import", str(file))
    lines = done.stderr.splitlines()
    assert done.code == 1
    assert sum("line " in each for each in lines) == 10
    refused = run("import", str(file), "--json").json["refused"]
    assert len(refused) > 50
    assert lines[-1] == f"refused: {len(refused) - 10} more"
