"""Generative Agents: the paper's figures, computed by hand."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.rows import Access
from supervisor_memory.flow import Recalling, Turn, recall
from supervisor_memory.model.records import Hit, Hits, Scope
from supervisor_memory.recipes.generative_agents import (
    GENERATIVE_AGENTS,
    Constants,
    by_memory_stream,
    generative_agents,
    retrieval_scores,
)
from supervisor_memory.recipes.operators.order import weigh
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.testing.ports import ports, record
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

EQUAL = Constants(recency=1.0, importance=1.0, relevance=1.0)
HOURS, IMPORTANCE, COSINES = (1.0, 24.0, 240.0), (2.0, 8.0, 5.0), (0.9, 0.5, 0.1)


def test_recency_falls_by_half_a_percent_an_hour() -> None:
    assert [round(Constants().hourly_decay ** hours, 4) for hours in HOURS] == [0.995, 0.8867, 0.3003]


@every_case(("constants", "scores"), [(EQUAL, (2.0, 2.344, 0.5)), (Constants(), (3.5, 3.922, 1.0))])
def test_the_score_is_the_sum_of_three_that_are_normalised(
    constants: Constants, scores: tuple[float, ...]
) -> None:
    assert retrieval_scores(HOURS, IMPORTANCE, COSINES, constants) == pytest.approx(scores, abs=5e-4)


def test_what_is_equal_for_all_counts_half() -> None:
    assert retrieval_scores((1.0, 1.0), (5.0, 5.0), (0.2, 0.2), EQUAL) == [1.5, 1.5]


def test_hits_have_the_score_and_stand_in_its_order() -> None:
    given = zip(HOURS, IMPORTANCE, COSINES, strict=True)
    hits = tuple(
        Hit(record(f"fact {n}", now=MONDAY - hours * 3_600, importance=tenths / 10), 0.0, {"cosine": cosine})
        for n, (hours, tenths, cosine) in enumerate(given)
    )
    plan = Recalling(Turn("?", Scope("alice")), hits=Hits(hits))
    weighed = weigh("generative_agents", by_memory_stream(EQUAL), most=3.0)
    found = weighed(plan, ports([hit.record for hit in hits]).read_store()).hits
    assert [hit.record.content for hit in found] == ["fact 1", "fact 0", "fact 2"]
    assert [hit.parts["generative_agents"] for hit in found] == pytest.approx([2.344, 2.0, 0.5], abs=5e-4)


def test_what_was_read_lately_is_recent_however_old_it_is() -> None:
    old, new = (
        record(f"GMV excludes refunds {n}", now=MONDAY - hours * 3_600) for n, hours in ((1, 99), (2, 9))
    )
    asked = Turn("GMV refunds", Scope("alice"), purpose="hits")
    assert recall(asked, ports([old, new]), GENERATIVE_AGENTS).hits[0].record == new
    world = ports([old, new])
    world.services.backend.audit.record_access([Access("search", MONDAY, "alice", record_id=old.id)])
    world.services.backend.audit.flush()
    assert recall(asked, world, GENERATIVE_AGENTS).hits[0].record == old


def test_a_model_rates_what_is_kept_and_without_one_the_words_do() -> None:
    settings = Settings(embedding_model="none", queue_worker=False)
    model = ScriptedModel(script=["8", "I would say 3."])
    with SupervisorMemory(settings, recipe="generative_agents", llm=model) as memory:
        one = memory.write("The warehouse burnt down.", user_id="ada").id
        (two,) = memory.add_many(["the moon is up"], user_id="ada")
        assert (memory.get(one).importance, memory.get(two.id).importance) == (0.8, 0.3)
        said = memory.write("GMV is net.", user_id="ada", metadata={"importance": 0.1}).id
        assert memory.get(said).importance == 0.1
    with SupervisorMemory(settings, recipe="generative_agents") as memory:
        short, long = (
            memory.write(text, user_id="ada").id
            for text in (
                "GMV is net.",
                "The depot in Kiel closes at noon on Fridays because of the harbour tour.",
            )
        )
        assert 0.1 < memory.get(short).importance < memory.get(long).importance <= 1.0


def test_a_reflection_is_kept_when_the_importance_passes_the_sum_and_not_again() -> None:
    clock = FixedClock()
    recipe = generative_agents(reflects_at=20.0)
    with SupervisorMemory(Settings(embedding_model="none"), recipe=recipe, clock=clock) as memory:
        for text, importance in (("The warehouse burnt down.", 1.0), ("Kim was made head of data.", 0.9)):
            memory.write(text, user_id="ada", metadata={"importance": importance})
        assert not memory.optimize(user_id="ada").steps
        assert len(memory.get_all(user_id="ada")) == 2
        clock.now += 60
        last = memory.write("Tea is at five.", user_id="ada", metadata={"importance": 0.2}).id
        assert memory.status(user_id="ada")["pending_action"] == "reflect"
        (step,) = memory.optimize(user_id="ada").steps
        assert step.why == "importance 21, over 20"
        (made,) = [each for each in memory.get_all(user_id="ada") if "reflection" in each.tags]
        assert made.content.splitlines() == [
            "The warehouse burnt down.",
            "Kim was made head of data.",
            "Tea is at five.",
        ]
        assert last in made.metadata["made_from"]
        assert [
            row.event["reason"] for row in memory.backend.audit.tail(9) if row.event["op"] == "add"
        ].count("reflect") == 1
        clock.now += 60
        memory.write("The sky was grey.", user_id="ada", metadata={"importance": 1.0})
        assert not memory.optimize(user_id="ada").steps
        assert len(memory.get_all(user_id="ada")) == 5
