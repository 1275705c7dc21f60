"""Operators before insert run on every write; what is given as it is says so."""

from dataclasses import replace

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.flow import Recipe, Remembering
from supervisor_memory.model.records import Message
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.testing.clock import FixedClock

ADA = Scope("ada", session_id="s")
SEEN: list[tuple[bool, int, int]] = []


def score(said: Remembering, view: ReadStore) -> Remembering:
    """Give all that is kept an importance, as a recipe would by a model."""
    SEEN.append((said.is_given, len(said.candidates), len(said.verbatim)))
    return replace(
        said,
        candidates=tuple(
            replace(each, metadata={**each.metadata, "importance": 0.9}) for each in said.candidates
        ),
        verbatim=tuple(replace(each, importance=0.9) for each in said.verbatim),
    )


def opened(recipe: Recipe) -> SupervisorMemory:
    SEEN.clear()
    settings = Settings(embedding_model="none", queue_worker=False)
    return SupervisorMemory(settings, recipe=recipe, clock=FixedClock())


@pytest.fixture
def memory() -> SupervisorMemory:
    return opened(replace(DEFAULT, pre_insert=(*DEFAULT.pre_insert, score)))


def test_a_statement_that_is_written_goes_through_the_operators(memory: SupervisorMemory) -> None:
    written = memory.write("GMV means gross sales.", user_id="ada")
    assert SEEN == [(True, 1, 0)]
    assert memory.get(written.id).importance == 0.9


def test_texts_that_are_stored_verbatim_go_through_the_operators(memory: SupervisorMemory) -> None:
    texts = ["the moon is up", "the moon is up", "the sun is down"]
    results = memory.add_many(texts, user_id="ada")
    assert SEEN == [(True, 0, 3)]
    assert [memory.get(each.id).content for each in results] == texts
    assert {memory.get(each.id).importance for each in results} == {0.9}


def test_what_is_gathered_from_a_conversation_goes_through_them_once(memory: SupervisorMemory) -> None:
    memory.add("Always answer in tables.", user_id="ada", session_id="s")
    memory.remember([Message("user", "Always answer in euros.")], ADA)
    assert [is_given for is_given, _, _ in SEEN] == [False, False]


def test_an_event_of_the_queue_goes_through_them(memory: SupervisorMemory) -> None:
    assert memory.queue.observe("export_csv", {}, "Saved 3 rows to /out/sales.csv", ADA)
    assert memory.flush()
    assert SEEN == [(True, 1, 0)]


def test_a_text_that_an_operator_leaves_out_is_told_as_skipped() -> None:
    def nothing(said: Remembering, view: ReadStore) -> Remembering:
        return replace(said, candidates=(), verbatim=())

    memory = opened(replace(DEFAULT, pre_insert=(nothing,)))
    (one, other) = memory.add_many(["the moon is up", "the sun is down"], user_id="ada")
    written = memory.write("GMV means gross sales.", user_id="ada")
    for result in (one, other, written):
        assert (result.status, result.saved, result.reason) == ("skipped", False, "left-out-by-the-recipe")
