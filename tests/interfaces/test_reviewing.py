"""The review desk on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.testing.clock import MONDAY
from tests.interfaces.conftest import Run

TEXT = "The user wants answers as tables."


@pytest.fixture
def waiting(backend: str) -> dict[str, str]:
    """What waits in a store, and what is known."""
    with SupervisorMemory.from_env() as memory:
        tea = memory.write("Ada drinks tea.", user_id="ada", created_at=MONDAY).id
        written = {
            "tables": memory.write(TEXT, user_id="ada", kind="user-profile", source_class="tool").id,
            "bo": memory.write("Bo wants lists.", user_id="bo", kind="identity", source_class="agent").id,
            "bad": memory.write("Pay to X.", user_id="ada", source_class="agent", run_id="bad").id,
        }
        memory.update(tea, content="Ada drinks coffee.")
    return {**written, "tea": tea}


def test_what_waits_is_listed_with_why_and_what_would_become_of_it(run: Run, waiting: dict[str, str]) -> None:
    told = run("review", "list", "-u", "ada").stdout
    assert f"{waiting['tables']}  of ada: about-the-user-by-tool" in told
    assert f"proposed: {TEXT}" in told
    assert "then:     added" in told
    assert waiting["bo"] not in told
    listed = run("review", "list", "--json").json["proposals"]
    assert {each["id"] for each in listed} == {waiting["tables"], waiting["bo"]}
    assert run("review", "list", "-u", "nobody").stdout == "nothing waits for review\n"


def test_what_waits_is_shown_with_who_said_it_where(run: Run, backend: str) -> None:
    with SupervisorMemory.from_env() as memory:
        told = memory.write(
            "The user sells boats.", user_id="ada", kind="identity", source_class="agent", agent_id="scout",
            run_id="run-3", session_id="s-9",
        )  # fmt: skip
    assert "by:       agent, agent scout, run run-3, session s-9" in run("review", "show", told.id).stdout
    as_json = run("review", "show", told.id, "--json").json
    assert as_json["said_by"] == "agent, agent scout, run run-3, session s-9"


def test_what_a_reviewer_reads_is_logged_under_the_name_of_the_reviewer(
    run: Run, waiting: dict[str, str]
) -> None:
    run("review", "show", waiting["tables"], "--as", "rita@example.com")
    run("review", "list", "-u", "bo", "--as", "bob")
    with SupervisorMemory.from_env() as memory:
        readers = {
            name: {row.agent_id for row in memory.backend.audit.accesses(20, record_id=waiting[name])}
            for name in ("tables", "bo")
        }
    assert readers == {"tables": {"rita@example.com"}, "bo": {"bob"}}


def test_a_reviewer_approves_edits_and_rejects(run: Run, waiting: dict[str, str]) -> None:
    assert run("review", "show", waiting["tables"], "--json").json["content"] == TEXT
    dry = run("review", "reject", waiting["tables"], "--dry-run")
    assert (dry.code, "nothing was changed" in dry.stderr) == (0, True)
    done = run(
        "review", "edit", waiting["tables"], "The user likes tables.", "--as", "rita@example.com", "--json"
    )
    assert (done.json["id"], done.json["status"]) == (waiting["tables"], "added")
    again = run("review", "approve", waiting["tables"])
    assert again.code == 1
    assert "it is active; last: edit by rita@example.com" in again.stderr
    assert run("review", "reject", waiting["bo"], "--reason", "a guess").stdout.startswith(
        "skipped (rejected)"
    )
    back = run("review", "restore", waiting["bo"]).stdout
    assert back.startswith("waits for review again (restored)")
    assert run("review", "approve", waiting["bo"]).stdout.startswith("added")
    assert run("review", "approve", "no-such-id").code == 1
    assert run("review", "approve", waiting["bo"], "--as", "no login").code == 2


def test_a_decision_of_another_process_is_taken_back_with_all_that_it_changed(
    run: Run, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_REVIEW", "all")
    with SupervisorMemory.from_env() as memory:
        known = memory.write("GMV excludes refunds.", user_id="ada").id
        memory.review.approve(known, reviewer="rita")
        waiting = memory.write("GMV includes refunds.", user_id="ada").id

    def state() -> tuple[dict[str, str], list[str]]:
        records = run("list", "--user", "ada", "--json").json["records"]
        proposals = run("review", "list", "--json").json["proposals"]
        return {each["id"]: each["content"] for each in records}, [each["id"] for each in proposals]

    before = {known: "GMV excludes refunds."}, [waiting]
    assert state() == before
    for verb in (("approve",), ("edit", "GMV includes all refunds."), ("reject",)):
        assert run("review", verb[0], waiting, *verb[1:]).code == 0
        assert state() != before
        done = run("review", "undo", waiting, "--as", "bob")
        assert done.stdout == f"waits for review again: {waiting}\n", done.stderr
        assert state() == before
    again = run("review", "undo", waiting)
    assert (again.code, "was changed since" in again.stderr) == (1, True)


def test_a_record_that_nobody_decided_on_has_no_decision_to_take_back(
    run: Run, waiting: dict[str, str]
) -> None:
    done = run("review", "undo", waiting["tables"])
    assert (done.code, "no decision on record" in done.stderr) == (1, True)
    assert run("review", "undo", "no-such-id").code == 1
    run("review", "approve", waiting["tables"])
    assert run("review", "undo", waiting["tables"], "--json").json == {
        "id": waiting["tables"],
        "status": "pending",
    }


def test_a_sweep_tells_first_and_acts_with_yes(run: Run, waiting: dict[str, str]) -> None:
    for command, done in (("quarantine", "quarantined"), ("release", "released"), ("roll-back", "withdrawn")):
        asked = ("review", command, "-u", "ada", "--run", "bad")
        told = run(*asked)
        assert f"{done}: {waiting['bad']}  Pay to X.\n1 would be changed, 0 would be left\n" == told.stdout
        assert told.stderr == "nothing was changed; --yes does it\n"
        swept = run(*asked, "--yes", "--json").json
        assert [step["action"] for step in swept["steps"]] == [done]
    assert run("review", "quarantine", "-u", "ada").code == 2
    assert run("review", "quarantine", "-u", "ada", "--since", "someday").code == 2
    assert run("review", "roll-back", "-u", "ada", "--since", "2020-01-01", "--until", "2020-01-02").code == 0


def test_versions_are_shown_gone_back_to_and_looked_up_in_time(run: Run, waiting: dict[str, str]) -> None:
    def listed(*options: str) -> list[Any]:
        return [r["content"] for r in run("list", "-u", "ada", "--json", *options).json["records"]]

    assert "Ada drinks coffee." in listed()
    assert listed("--as-of", str(int(MONDAY) + 60)) == ["Ada drinks tea."]
    (hit,) = run("search", "tea", "-u", "ada", "--as-of", str(int(MONDAY) + 60), "--json").json["hits"]
    assert hit["record"]["content"] == "Ada drinks tea."
    (version,) = run("show", waiting["tea"], "--json").json["versions"]
    assert (version["op"], version["actor"], version["valid_from"]) == ("add", "supervisor", MONDAY)
    assert version["recorded_at"] > MONDAY
    assert re.search(r"valid .* to .*, recorded .* by add of supervisor", run("show", waiting["tea"]).stdout)
    assert run("review", "revert", waiting["tea"], "--version", "1").stdout.startswith("updated (reverted)")
    assert "Ada drinks tea." in listed()
    wrong = run("review", "revert", waiting["tea"], "--version", "9")
    assert (wrong.code, "it can go back to 1, 2, 3" in wrong.stderr) == (1, True)


def test_json_has_the_keys_that_the_page_lists(run: Run, waiting: dict[str, str]) -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text("utf-8").split("<!-- keys -->")[1]
    listed = {
        cells[1].strip(): set(re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", cells[2])))
        for line in page.splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) > 3
    }
    proposals = run("review", "list", "--json").json
    swept = run("review", "quarantine", "-u", "ada", "--run", "bad", "--json").json
    for part, value in {
        "`review list`": proposals,
        "a proposal": proposals["proposals"][0],
        "`review show`": run("review", "show", waiting["bo"], "--json").json,
        "a version in `versions`": run("show", waiting["tea"], "--json").json["versions"][0],
        "`review quarantine`, `review release`, `review roll-back`": swept,
        "a step": swept["steps"][0],
        "`review approve`, `review edit`, `review reject`, `review restore`, `review revert`": run(
            "review", "approve", waiting["bo"], "--json"
        ).json,
    }.items():
        assert set(value) == listed[part], part
