"""Chores are looked at before they run, done, and undone."""

from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory import InvalidContent, RecordNotFound, Settings, SupervisorMemory
from supervisor_memory.flow import Chore, Due
from supervisor_memory.model.records import Filter, Record, Scope, new_id
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stores.protocol import Change
from supervisor_memory.testing.clock import FixedClock


def shout(user_id: str, view: ReadStore) -> list[Due]:
    """Writes every record in capitals, and says how many there are."""
    records = [r for r in view.list(Filter(user_id), limit=99) if not r.content.isupper()]
    due = [Due(Change(replace(r, content=r.content.upper()), expects=r.version), "low") for r in records]
    return [*due, *([Due(Change(count_of(records, user_id, view.now)), "counted")] if records else [])]


def count_of(records: list[Record], user_id: str, now: float) -> Record:
    space = Scope(user_id).namespace("experience")
    return Record(new_id(), space, f"{len(records)} SHOUTED", "experience", now, now)


def hush(user_id: str, view: ReadStore) -> list[Due]:
    quiet = [r for r in view.list(Filter(user_id), limit=99) if "TEA" in r.content]
    return [Due(Change(replace(r, status="deleted"), expects=r.version), "loud") for r in quiet]


def stranger(user_id: str, view: ReadStore) -> list[Due]:
    return [Due(Change(count_of([], "bob", view.now)), "wrong")]


LOUD = replace(DEFAULT, name="loud", upkeep=(Chore("shout", shout), Chore("hush", hush)))


def memory_of(tmp_path: Path, backend: str = "in_memory", recipe: object = LOUD) -> SupervisorMemory:
    settings = Settings(backend=backend, path=tmp_path, embedding_model="hashing", queue_worker=False)
    return SupervisorMemory(settings, recipe=recipe, clock=FixedClock())  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["in_memory", "sqlite", "json"])
def test_a_plan_changes_nothing_a_run_does_it_and_undo_sets_all_of_it_back(
    backend: str, tmp_path: Path
) -> None:
    with memory_of(tmp_path, backend) as memory:
        memory.write("Tea is at five.", user_id="ada")
        memory.write("Lund closes at noon.", user_id="ada")
        memory.write("Bob likes tea.", user_id="bob")
        before = {r.id: r.content for r in memory.get_all(user_id="ada")}
        assert memory.status(user_id="ada") == {
            "recipe": "loud",
            "records": 2,
            "tiers": {},
            "due": {"shout": 3, "hush": 0},
            "pending_action": "shout",
        }
        plan = memory.optimize(user_id="ada", dry_run=True)
        assert (plan.run, plan.dry_run, len(plan.steps)) == ("", True, 3)
        assert {r.id: r.content for r in memory.get_all(user_id="ada")} == before
        done = memory.optimize(user_id="ada")
        assert [step.doing for step in done.steps] == ["update", "update", "add", "forget"]
        assert {r.content for r in memory.get_all(user_id="ada")} == {"LUND CLOSES AT NOON.", "2 SHOUTED"}
        assert not memory.audit.verify().problems
        assert memory.search("lund", user_id="ada")[0].parts["cosine"] > 0.3
        undone = memory.upkeep.undo(done.run, user_id="ada")
        assert (len(undone.steps), undone.left) == (3, ())
        assert {r.id: r.content for r in memory.get_all(user_id="ada")} == before
        assert [r.content for r in memory.get_all(user_id="bob")] == ["Bob likes tea."]
        assert not memory.audit.verify().problems


def test_what_was_changed_since_is_left_and_named(tmp_path: Path) -> None:
    with memory_of(tmp_path) as memory:
        id = memory.write("Lund closes at noon.", user_id="ada").id
        done = memory.optimize(user_id="ada", chores=["shout"])
        memory.update(id, content="Lund closes at one.", user_id="ada")
        assert memory.upkeep.undo(done.run, user_id="ada").left == (id,)
        assert memory.get(id).content == "Lund closes at one."
        with pytest.raises(RecordNotFound):
            memory.upkeep.undo(done.run, user_id="bob")


def test_a_chore_that_is_not_there_or_reaches_for_another_user_is_refused(tmp_path: Path) -> None:
    with memory_of(tmp_path) as memory, pytest.raises(InvalidContent, match="no chore 'sing'; it has shout"):
        memory.optimize(user_id="ada", chores=["sing"])
    wrong = replace(LOUD, upkeep=(Chore("stranger", stranger),))
    with memory_of(tmp_path, recipe=wrong) as memory:
        with pytest.raises(InvalidContent, match="another user"):
            memory.optimize(user_id="ada")
        assert not memory.get_all(user_id="bob")


def test_switching_a_recipe_is_told_before_it_happens(tmp_path: Path) -> None:
    with memory_of(tmp_path) as memory:
        memory.write("Tea is at five.", user_id="ada")
        told = memory.upkeep.switching("memorybank", user_id="ada")
        assert told[0].startswith("1 records stay as they are")
        assert "the chore fade would change 0 records when `memory.optimize` runs" in told
        assert [r.content for r in memory.get_all(user_id="ada")] == ["Tea is at five."]
