"""The command that removes a user."""

import re
from pathlib import Path

import apsw
import pytest

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run

PAGE = Path(__file__).parents[2] / "docs/cli.md"


@pytest.mark.usefixtures("ids")
def test_erase_only_counts_unless_told_to_do_it(run: Run) -> None:
    told = run("erase", "--user", "ada")
    assert told.code == 0
    assert told.stdout.startswith("would remove of ada: 5 records, 1 versions, ")
    assert told.stderr == "nothing was removed; --yes removes it for good\n"
    assert "tables" in run("list", "-u", "ada").stdout


@pytest.mark.usefixtures("ids")
def test_erase_with_yes_removes_one_user_and_names_what_is_out_of_reach(run: Run) -> None:
    held = run("erase", "-u", "ada", "--json").json["counts"]
    told = run("erase", "-u", "ada", "--yes")
    assert (told.code, told.stderr) == (0, "")
    assert told.stdout.startswith(f"removed of ada: {held['records']} records, ")
    assert "out of reach: checkpoints of the graph" in told.stdout
    assert run("list", "-u", "ada").stdout == "nothing is remembered of ada\n"
    assert "coffee" in run("list", "-u", "bo").stdout
    assert run("erase", "-u", "ada", "--json").json["counts"]["records"] == 0
    assert "erase.done" in run("audit", "tail").stdout


@pytest.mark.usefixtures("ids")
def test_erase_as_json_has_the_keys_that_the_page_lists(run: Run) -> None:
    rows = dict(re.findall(r"^\| `(erase|counts)` \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    listed = {
        name: set(re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", row))) for name, row in rows.items()
    }
    for extra in ((), ("--yes",)):
        told = run("erase", "-u", "ada", "--json", *extra).json
        assert set(told) == listed["erase"]
        assert set(told["counts"]) == listed["counts"]
        assert (told["erased_at"] is None) == (not extra)


@pytest.mark.usefixtures("ids")
def test_erase_that_is_pending_says_so_and_fails(
    run: Run, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as while_somebody_reads:
        blocked = "supervisor_memory.disk.database.Database.scrub"
        while_somebody_reads.setattr(blocked, lambda *_, **__: "somebody reads it")
        told = run("erase", "-u", "ada", "--yes")
    assert (told.code, told.stderr) == (1, "pending: somebody reads it\n")
    file = Path(".supervisor_memory", {"json": "audit.db", "sqlite": "memory.db"}[backend])
    SupervisorMemory.from_env().close()  # the next start completes it
    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT count(*) FROM erasures").get == 0
    connection.close()


def test_erase_of_an_impossible_user_is_wrong_usage(run: Run, ids: dict[str, str]) -> None:
    assert ids
    assert run("erase", "-u", "null", "--yes").code == 2
