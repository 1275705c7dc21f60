"""Mem0 with a graph: BM25 by hand, and the relations that a question names."""

import json

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.recipes.operators.order import bm25
from supervisor_memory.testing.scripted import ScriptedModel

SETTINGS = Settings(embedding_model="hashing", queue_worker=False)


def test_triples_are_ordered_by_bm25() -> None:
    # b: ln((3 - 1 + .5) / 1.5) = .5108, all are of the usual length: 1 · 2.5 / (1 + 1.5) = 1
    documents = [["a", "b"], ["a", "c"], ["d", "e"]]
    assert bm25(["b"], documents) == pytest.approx([0.5108, 0.0, 0.0], abs=5e-5)
    # a: ln(1.5 / 2.5) < 0 counts a quarter of the mean of all: (4 · .5108 - .5108) / 5 / 4 = .0766
    assert bm25(["a"], documents) == pytest.approx([0.0766, 0.0766, 0.0], abs=5e-5)
    # twice in four words, where three are usual: 2 · 2.5 / (2 + 1.5 · (.25 + .75 · 4/3)) = 1.2903
    assert bm25(["b"], [["b", "b", "c", "d"], ["x", "y"], ["x", "z", "y"]])[0] == pytest.approx(
        1.2903 * 0.5108, abs=5e-5
    )
    assert bm25(["b"], []) == []


def test_a_record_that_tells_of_what_is_named_is_told_beside_the_nearest() -> None:
    of = {
        "Falcon takes its figures out of the mart.": [["Falcon", "reads from", "mart"]],
        "The mart is the work of Nightjar.": [["Nightjar", "fills", "mart"]],
        "Tea is at five.": [],
    }
    script = [json.dumps({"triples": told}) for told in of.values()]
    with SupervisorMemory(SETTINGS, recipe="mem0g", llm=ScriptedModel(script=script * 2)) as memory:
        for user_id in ("ada", "bob"):
            for text in of:
                memory.add_many([text], user_id=user_id, infer=False)
        for asked, told in (
            ("Who is behind Nightjar?", [1]),
            ("What has the Mart?", [0, 1]),
            ("Why tea?", []),
        ):
            found = memory.search(asked, user_id="ada", threshold=0.99)
            related = {hit.record.content for hit in found if hit.found == "relation"}
            assert related == {[*of][n] for n in told}
            assert {hit.record.user_id for hit in found} <= {"ada"}


def test_without_a_model_it_is_mem0_and_says_so() -> None:
    told = []
    for name in ("mem0", "mem0g"):
        with SupervisorMemory(SETTINGS, recipe=name) as memory:
            memory.add_many(["Falcon reads from the mart.", "Tea is at five."], user_id="ada", infer=False)
            found = memory.search("What does Falcon read?", user_id="ada", threshold=0.0)
            told.append([(hit.record.content, hit.score) for hit in found])
    assert told[0] == told[1]
    assert found.notes[-1] == "mem0g without a model: there are no triples, and it is `mem0`."
