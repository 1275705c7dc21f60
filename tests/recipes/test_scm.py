"""SCM: raw while it fits, then in summary, then not at all."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.model.records import Filter, Hit, Hits, Message, Query, Scope
from supervisor_memory.recipes.scm import SUMMARY, three_ways
from supervisor_memory.testing.ports import ports, record
from supervisor_memory.testing.scripted import ScriptedModel

ASKED = Query("depot kiel", Filter(user_id="alice"), terms=("depot", "kiel"))
LONG = "It rained. The depot is in Kiel. Nobody came. The tea was cold."


def hit(text: str, cosine: float, relevance: float = 0.9) -> Hit:
    return Hit(record(text), cosine, {"cosine": cosine, "relevance": relevance})


def told(hits: list[Hit], most: int, *answers: str) -> Hits:
    """Words are counted for tokens."""
    script = list(answers)
    world = ports(
        count_tokens=lambda text: len(text.split()), complete=(lambda p: script.pop(0)) if answers else None
    )
    plan = Recalling(Turn("depot kiel", Scope("alice"), purpose="hits"), query=ASKED, hits=Hits(tuple(hits)))
    return three_ways(most)(plan, world.read_store()).hits


def test_what_fits_stays_raw() -> None:
    assert [h.excerpt for h in told([hit(LONG, 0.9), hit(LONG + " So.", 0.8)], 27)] == [None, None]  # 13 + 14


def test_without_a_model_what_is_far_is_dropped_and_the_others_are_told_in_summary() -> None:
    hits = [hit(LONG, 0.9), hit(LONG + " So.", 0.8), hit(LONG + " Well.", 0.7, relevance=0.1)]
    found = told(hits, 25)  # 13 + 14 + 14 = 41 raw; the second in summary has 7: 20
    assert [h.excerpt for h in found] == [None, "It rained. The depot is in Kiel."]
    assert [h.excerpt for h in told(hits, 15)] == ["It rained. The depot is in Kiel."] * 2  # 7 + 7
    assert len(told(hits, 8)) == 1


def test_a_model_says_of_each_but_the_best_whether_it_answers_raw_and_in_summary() -> None:
    hits = [hit(LONG, 0.9), hit(LONG + " A.", 0.8), hit(LONG + " B.", 0.7), hit(LONG + " C.", 0.6)]
    found = told(hits, 40, "no", "yes", "yes", "yes", "no")  # 2nd dropped, 3rd summary, 4th raw: 13 + 7 + 14
    assert [(h.record.content[-2:], h.excerpt is None) for h in found] == [
        ("d.", True),
        ("B.", False),
        ("C.", True),
    ]


@pytest.mark.parametrize("with_model", [False, True])
def test_a_text_of_over_three_hundred_tokens_keeps_its_summary_beside_it(*, with_model: bool) -> None:
    model = ScriptedModel(script=["Stock is counted on Mondays."]) if with_model else None
    text = "Stock is counted in Kiel. " + " ".join(f"Shelf {n} holds {n} boxes." for n in range(90))
    with SupervisorMemory(
        Settings(embedding_model="none", queue_worker=False), recipe="scm", llm=model
    ) as memory:
        (one,) = memory.add_many([text], user_id="ada", infer=False)
        kept = memory.get(one.id)
        assert kept.content == text
        summary = kept.metadata[SUMMARY]
        if with_model:
            assert summary == "Stock is counted on Mondays."
        else:
            assert summary.startswith("Stock is counted in Kiel. Shelf 0 holds 0 boxes.")
            assert memory.services.count_tokens(summary) <= 300
        (two,) = memory.add_many(["Tea is at five."], user_id="ada", infer=False)
        assert SUMMARY not in memory.get(two.id).metadata


def test_a_model_that_says_no_keeps_memory_out_of_a_turn() -> None:
    settings = Settings(embedding_model="none", queue_worker=False)
    asked = [Message("user", "What is GMV before refunds?")]
    for answer, is_told in (("no", False), ("yes", True)):
        with SupervisorMemory(settings, recipe="scm", llm=ScriptedModel(script=[answer])) as memory:
            memory.add_many(["GMV is gross merchandise value before refunds."], user_id="ada", infer=False)
            assert bool(memory.recall(asked, Scope("ada")).text) is is_told


def test_a_note_tells_in_order_of_time() -> None:
    settings = Settings(embedding_model="none", queue_worker=False, knee=0.0)
    with SupervisorMemory(settings, recipe="scm") as memory:
        texts = [("The depot in Kiel opened.", 300.0), ("The depot in Kiel burnt.", 100.0)]
        memory.add_many(
            [{"content": text, "created_at": when} for text, when in texts], user_id="ada", infer=False
        )
        told = memory.recall([Message("user", "depot in Kiel opened?")], Scope("ada")).text
        assert told.index("burnt") < told.index("opened")
