"""`why` takes a whole id: what is only a part of one is not found."""

from pathlib import Path

import pytest

from supervisor_memory import Scope, SupervisorMemory
from tests.interfaces.conftest import Run


@pytest.fixture
def told(backend: str) -> dict[str, str]:
    """Ids in a store in which two users were told something."""
    with SupervisorMemory.from_env() as memory:
        record = memory.write("Use tables by default.", user_id="ada").id
        memory.write("Tables are made of oak.", user_id="bo")
        memory.recall("which tables?", Scope("ada", session_id="session-ada", run_id="run-ada"))
        memory.recall("which tables?", Scope("bo", session_id="session-bo", run_id="run-bo"))
        [note] = memory.backend.audit.notes(9, user_id="ada")
    return {"record": record, "note": note.id, "run": "run-ada"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("part", ["a", "x", "0", "-", "e", '"', ":", "record", "%", "_"])
def test_one_letter_is_no_id(run: Run, told: dict[str, str], part: str) -> None:
    assert "nobody was told" in run("why", "--", part).stdout


@pytest.mark.parametrize("cut", [slice(0, 8), slice(1, None), slice(9, 23)], ids=["start", "end", "middle"])
def test_a_part_of_an_id_is_no_id(run: Run, told: dict[str, str], cut: slice) -> None:
    assert "nobody was told" in run("why", "--", told["record"][cut]).stdout


@pytest.mark.parametrize("what", ["record", "note", "run"])
def test_a_whole_id_is_found(run: Run, told: dict[str, str], what: str) -> None:
    [note] = run("why", told[what], "--json").json["notes"]
    assert note["id"] == told["note"]


def test_a_run_is_found_by_the_name_that_the_audit_log_has_for_it(run: Run, told: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.remember([("user", "I prefer tea.")], Scope("ada", session_id="s", run_id="run-ada"))
        memory.remember([("user", "I prefer tea.")], Scope("cy", session_id="s", run_id="run-cy"))
    names = [run("audit", "tail", "-u", user, "--json").json["rows"][-1]["run_id"] for user in ("ada", "cy")]
    [note] = run("why", names[0], "--json").json["notes"]
    assert note["id"] == told["note"]
    assert "nobody was told" in run("why", names[1]).stdout


def test_an_id_of_nothing_is_not_found(run: Run, told: dict[str, str], tmp_path: Path) -> None:
    refused = run("why", "01a200fb-f670-7000-8000-000000000000")
    assert (refused.code, "nobody was told" in refused.stdout) == (1, True)
    assert run("why", "run-ad", "--json").json["notes"] == []


def test_what_was_never_told_is_a_kept_record_or_nothing_and_the_next_step_is_named(
    run: Run, told: dict[str, str]
) -> None:
    with SupervisorMemory.from_env() as memory:
        kept = memory.write("The cellar key hangs behind the boiler.", user_id="cy").id
    answer = " ".join(run("why", kept).stdout.split())
    assert f"the record '{kept}' is kept, but nobody was told anything of it" in answer
    assert "supervisor-memory preview" in answer
    answer = " ".join(run("why", "run-nobody").stdout.split())
    assert "no record, note or run with this id" in answer
    assert "supervisor-memory list" in answer


def test_an_excerpt_is_told_as_a_quotation_with_who_said_it_and_when(run: Run, backend: str) -> None:
    said = "The report slipped by a week because Lena was ill."
    with SupervisorMemory.from_env() as memory:
        memory.remember([("user", said)], Scope("ada", session_id="monday"), turn_id="first")
        note = memory.recall("Why did the report slip?", Scope("ada", run_id="run-ada"))
    assert said in note.text
    [told] = run("why", "run-ada", "--json").json["notes"][0]["shown"]
    assert told["reason"] == "said"
    assert told["why"].startswith("quoted from user, 20")
    shown = run("why", "run-ada").stdout
    assert "quoted from user, 20" in " ".join(shown.split())
    assert said in " ".join(shown.split())
    assert "inject" in run("show", note.ids[0]).stdout


def test_a_digest_is_told_with_the_sections_and_messages_that_it_was_made_of(run: Run, backend: str) -> None:
    left = "The dealer import has not been tested yet."
    said = [
        ("user", "Find out why the nightly export fails."),
        ("assistant", f"Row 88,120 has a tab. {left}"),
    ]
    with SupervisorMemory.from_env() as memory:
        memory.remember(said, Scope("ada", session_id="monday"))
        memory.recall([("user", "Where were we?")], Scope("ada", session_id="tuesday", run_id="run-ada"))
    [told] = run("why", "run-ada", "--json").json["notes"][0]["shown"]
    assert told["reason"] == "digest"
    assert told["why"] == "a digest of the session that was the latest"
    texts = {each["section"]: each["record"]["content"] for each in told["made_of"]}
    assert (texts["asked"], texts["next"]) == (said[0][1], said[1][1])
    shown = " ".join(run("why", "run-ada").stdout.split())
    assert "a digest of the session" in shown
    assert f"next: {told['made_of'][-1]['id']}" in shown
    assert "inject" in run("why", told["made_of"][0]["id"]).stdout


def test_a_preview_shows_the_sentences_that_are_quoted_of_a_long_message(run: Run, backend: str) -> None:
    chatter = f"We {'walked along the coast and saw birds, then ' * 40}went home."
    said = "The report slipped by a week because Lena was ill."
    with SupervisorMemory.from_env() as memory:
        scope = Scope("ada", session_id="monday")
        memory.remember([("user", f"{chatter} {said}")], scope, turn_id="first")
    told = run("preview", "Why did the report slip?", "-u", "ada").stdout
    [row] = [line for line in told.splitlines() if line.startswith("1 ")]
    assert "said" in row
    assert "The report slipped" in row
    [hit] = run("preview", "Why did the report slip?", "-u", "ada", "--json").json["hits"]
    assert hit["excerpt"] == said


def test_a_record_that_was_added_names_what_came_nearest_and_why_it_is_another_thing(
    run: Run, backend: str
) -> None:
    with SupervisorMemory.from_env() as memory:
        mine = memory.write("My son is allergic to nuts.", user_id="ada").id
        other = memory.write("My daughter is allergic to nuts.", user_id="ada").id
        memory.write("Reports are due on Friday.", user_id="bo")
    decided = {id_: run("why", id_, "--json").json["decisions"] for id_ in (mine, other)}
    [first], [second] = decided[mine], decided[other]
    assert (first["op"], first["nearest"]) == ("add", None)
    assert (second["op"], second["nearest"]["id"], second["apart"]) == ("add", mine, "person")
    shown = " ".join(run("why", other).stdout.split())
    assert f"decided to add, apart from {mine} (person) My son is allergic to nuts." in shown
    [row] = [
        each for each in run("audit", "tail", "--record", other, "--json").json["rows"] if each["op"] == "add"
    ]
    assert (row["detail"]["nearest_id"], row["detail"]["apart"]) == (mine, "person")
