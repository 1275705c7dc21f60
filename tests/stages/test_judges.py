"""Judges: what a stranger's decision leads to, and what it cannot lead to."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from supervisor_memory.errors import StageDenied
from supervisor_memory.flow import Judge, Remembering, remember
from supervisor_memory.model.decisions import (
    Add,
    Append,
    Decision,
    Hold,
    Merge,
    Replace,
    Retract,
    Rival,
    Rivals,
    Skip,
)
from supervisor_memory.model.records import Candidate, Filter, Record, Scope, Source, WriteResult
from supervisor_memory.ports import Ports, ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.judges.by_evidence import by_evidence
from supervisor_memory.stages.insert.place import deciding
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALICE = Scope("alice")
TEA = record("Alice drinks tea in the morning")
ON: dict[str, Callable[[Record], Decision]] = {
    "add": lambda old: Add(),
    "add-beside": Add,
    "merge": lambda old: Merge(old, "Alice drinks tea and coffee in the morning"),
    "replace": Replace,
    "append": Append,
    "skip": lambda old: Skip(old, "known"),
    "retract": Retract,
}


def judged(judge: Judge, world: Ports, text: str, *, source: Source | None = None) -> WriteResult:
    candidate = Candidate(text, "domain-facts", source or Source("user"))
    recipe = replace(DEFAULT, pre_insert=(), insert=(deciding(judge=judge),))
    (done,) = remember(Remembering(ALICE, candidates=(candidate,)), world, recipe).results
    return done


def on_the_first(decide: Callable[[Record], Decision]) -> Judge:
    def judge(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        return decide(rivals[0].record)

    return judge


@every_case(
    ("decision", "status", "active"),
    [
        ("add", "added", {"Alice drinks tea in the morning", "Alice drinks coffee in the morning"}),
        ("add-beside", "added", {"Alice drinks tea in the morning", "Alice drinks coffee in the morning"}),
        ("merge", "merged", {"Alice drinks tea and coffee in the morning"}),
        ("replace", "updated", {"Alice drinks coffee in the morning"}),
        ("skip", "skipped", {"Alice drinks tea in the morning"}),
        ("retract", "updated", set()),
    ],
)
def test_what_a_judge_decides_is_what_becomes_of_the_candidate(
    decision: str, status: str, active: set[str]
) -> None:
    world = ports([TEA])
    done = judged(on_the_first(ON[decision]), world, "Alice drinks coffee in the morning")
    assert done.status == status
    left = world.services.backend.list(Filter(user_id="alice"), limit=9)
    assert {each.content for each in left} == active


def test_what_a_judge_appends_is_a_line_more() -> None:
    world = ports([TEA])
    assert judged(on_the_first(Append), world, "Alice drinks coffee in the morning").status == "appended"
    (kept,) = world.services.backend.list(Filter(user_id="alice"), limit=9)
    assert len(kept.content.splitlines()) == 2


@every_case("decision", sorted(ON.keys() - {"add", "add-beside", "skip"}))
def test_no_judge_lets_an_agent_change_what_the_user_said(decision: str) -> None:
    world = ports([replace(TEA, source=Source("user"))])
    agents = Source("agent")
    judged(on_the_first(ON[decision]), world, "Alice drinks coffee in the morning", source=agents)
    left = world.services.backend.list(Filter(user_id="alice"), limit=9)
    assert TEA.content in {each.content for each in left}


def test_what_a_judge_holds_waits_for_a_person_and_counts_once_approved() -> None:
    def unsure(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        return Hold(("sounds-odd",))

    world = ports()
    done = judged(unsure, world, "The moon is a sheep")
    assert (done.status, done.reason) == ("pending", "sounds-odd")
    approved = Remembering(
        ALICE, candidates=(Candidate("The moon is a sheep", "domain-facts"),), is_reviewed=True
    )
    recipe = replace(DEFAULT, pre_insert=(), insert=(deciding(judge=unsure),))
    assert [each.status for each in remember(approved, world, recipe).results] == ["added"]


def test_a_judge_is_not_asked_of_the_same_words() -> None:
    def never(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        raise AssertionError

    assert judged(never, ports([TEA]), "alice drinks tea in the morning.").status == "skipped"


def test_a_judge_cannot_commit() -> None:
    def sneaky(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        view.commit(None)  # type: ignore[attr-defined]
        return Add()

    with pytest.raises(StageDenied, match="'commit'"):
        judged(sneaky, ports(), "The moon is up")


def test_a_judge_cannot_decide_on_a_record_of_another_user() -> None:
    hers = record("Bob drinks tea in the morning", user_id="bob")

    def stray(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        (other,) = view.list(Filter(user_id="bob"), limit=1)
        return Replace(other)

    world = ports([hers])
    with pytest.raises(StageDenied, match="of another user"):
        judged(stray, world, "Bob drinks coffee in the morning")
    assert world.services.backend.list(Filter(user_id="bob"), limit=9) == (hers,)


def test_the_rivals_are_searched_when_they_are_read() -> None:
    world = ports([TEA, record("Bob drinks tea in the morning", user_id="bob")])
    seen: list[Rival] = []

    def look(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
        seen.extend(rivals)
        return Add()

    judged(look, world, "Alice drinks coffee in the morning")
    (rival,) = seen
    assert (rival.record, rival.cosine) == (TEA, None)
    assert rival.score > 0


def test_a_judge_is_tested_with_the_rivals_it_is_given() -> None:
    said = Candidate("From now on, GMV excludes returns.", "domain-facts")
    known = record("GMV includes returns.")
    view = ports().read_store()
    assert by_evidence(said, Rivals([Rival(known)]), view) == Replace(known, "contradicts:value")
    assert by_evidence(said, Rivals(), view) == Add()


def test_a_judge_that_adds_beside_the_record_of_a_subject_leaves_that_its_subject() -> None:
    lists = record("Answer in lists.", kind="user-profile", subject="answers", attribute="format")
    world = ports([lists])
    wish = Candidate(
        "Answer in tables.", "user-profile", subject="answers", attribute="format", value="table"
    )
    recipe = replace(DEFAULT, pre_insert=(), insert=(deciding(judge=lambda *given: Add()),))
    (done,) = remember(Remembering(ALICE, candidates=(wish,)), world, recipe).results
    assert done.status == "added"
    left = world.services.backend.list(Filter(user_id="alice"), limit=9)
    assert {each.content: each.subject for each in left} == {
        "Answer in lists.": "answers",
        "Answer in tables.": None,
    }
