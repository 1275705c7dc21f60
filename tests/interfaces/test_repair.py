"""The commands that prove a store and make a damaged one anew."""

from pathlib import Path

import pytest

from tests.interfaces.conftest import Run

FILES = {"sqlite": "memory.db", "json": "memory.json"}


@pytest.mark.usefixtures("ids")
def test_a_whole_store_is_said_to_be_whole_and_left_alone(run: Run) -> None:
    told = run("repair")
    assert (told.code, told.stdout) == (0, "nothing is wrong with the store in .supervisor_memory\n")
    assert run("repair", "--json").json == {"wrong": [], "saved": {}, "lost": [], "put_aside": []}
    assert run("audit", "verify", "--deep").code == 0
    assert run("audit", "verify", "--deep", "--json").json["problems"] == []


@pytest.mark.usefixtures("ids")
def test_a_text_that_a_disk_has_changed_is_found_by_verify_and_put_aside_by_repair(
    run: Run, backend: str
) -> None:
    file = Path(".supervisor_memory", FILES[backend])
    file.write_bytes(file.read_bytes().replace(b"Use tables", b"Usf tables"))
    assert run("audit", "verify").code == 0
    verified = run("audit", "verify", "--deep")
    assert verified.code == 6
    assert "its text is not the one that was written" in verified.stdout
    told = run("repair")
    assert told.code == 1
    assert "it is kept, and not recalled" in told.stdout
    assert f"put aside: .supervisor_memory/{FILES[backend]}.damaged-" in told.stdout
    assert "Usf tables" not in run("list", "-u", "ada").stdout
    assert "coffee" in run("list", "-u", "bo").stdout
    assert run("audit", "verify", "--deep").code == 0
    assert run("repair").code == 0


def test_what_keeps_no_files_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "in_memory")
    told = run("repair")
    assert told.code == 1
    assert "nothing to repair" in told.stderr
