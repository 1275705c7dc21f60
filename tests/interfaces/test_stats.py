"""The command that tells how well memory serves."""

import re
from pathlib import Path

from supervisor_memory import Scope, SupervisorMemory
from tests.interfaces.conftest import Run

PAGE = Path(__file__).parents[2] / "docs/cli.md"


def listed(part: str) -> set[str]:
    """The keys that the page lists of a part."""
    page = PAGE.read_text("utf-8").split("<!-- keys -->")[1]
    [line] = [line for line in page.splitlines() if line.startswith(f"| {part} |")]
    return set(re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", line.split("|")[2])))


def test_stats_have_the_keys_that_the_page_lists(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.recall([("user", "When is a flight delayed?")], Scope("ada", "sql"))
    told = run("stats", "--json").json
    assert set(told) == listed("`stats`")
    assert set(told["total"]) == listed("`total` of `stats`")
    assert set(told["agents"][0]) == set(told["total"]) | {"agent_id"}
    assert set(told["days"][0]) == set(told["total"]) | {"day"}


def test_stats_tell_each_agent_by_itself(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.recall([("user", "When is a flight delayed?")], Scope("ada", "sql"))
        memory.recall([("user", "When is a flight delayed?")], Scope("ada"))
    told = run("stats", "--user", "ada", "--json").json
    assert {each["agent_id"]: each["notes"] for each in told["agents"]} == {"sql": 1, None: 1}
    assert told["total"]["notes"] == 2
    assert run("stats", "--user", "bo", "--json").json["total"]["notes"] == 0
    shown = run("stats", "--user", "ada").stdout
    assert "\nsql\n" in shown
    assert "100.0% of notes showed a record" in shown
    assert "of searches" not in shown
    run("search", "when is a flight delayed?", "--user", "ada")
    shown = run("stats", "--user", "ada").stdout
    assert shown.startswith("2 turns, 2 notes, 1 search,")
    assert "100.0% of searches showed a record" in shown


def test_stats_since_a_time_to_come_are_empty(run: Run, ids: dict[str, str]) -> None:
    told = run("stats", "--since", "2999-01-01", "--json").json
    assert told["total"]["writes"] == 0
    assert told["total"]["duplicate_rate"] is None


def test_a_time_that_is_none_is_wrong_usage(run: Run, ids: dict[str, str]) -> None:
    assert run("stats", "--since", "lately").code == 2
