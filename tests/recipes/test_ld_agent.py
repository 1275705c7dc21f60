"""LD-Agent: topic overlap and its decay, computed by hand."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.model.records import Filter, Hit, Hits, Query, Scope
from supervisor_memory.recipes.ld_agent import Constants, by_topic, topic_score
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record


def test_the_score_of_the_reference() -> None:
    # c = 1 of |Q| = 2 and |R| = 3: ½(1/2 + 1/3) = .4167; 30 days = 2,592,000 s: e^-.2592 = .7717: .3215
    asked, held = {"cat", "vet"}, {"cat", "dog", "park"}
    assert topic_score(asked, held, 0.0, decay=1e-7) == pytest.approx(0.4167, abs=5e-5)
    assert topic_score(asked, held, 30 * 86_400, decay=1e-7) == pytest.approx(0.3215, abs=5e-5)
    assert topic_score(asked, held, -5.0, decay=1e-7) == pytest.approx(0.4167, abs=5e-5)
    assert topic_score(asked, set(), 0.0, decay=1e-7) == 0.0


def test_of_the_ten_nearest_the_topic_decides_and_one_is_told() -> None:
    asked = Query("cat vet", Filter(user_id="alice"), terms=("cat", "vet"))
    like = [Hit(record(f"dog number {n}"), parts={"cosine": 0.9 - n / 100}) for n in range(9)]
    old = Hit(record("cat dog park", now=MONDAY - 30 * 86_400), parts={"cosine": 0.5})  # .3215, the tenth
    far = Hit(record("cat vet"), parts={"cosine": 0.1})  # 1.0, but the eleventh
    turn = Turn("cat vet", Scope("alice"), purpose="hits")
    plan = Recalling(turn, query=asked, hits=Hits((*like, far, old)))
    found = by_topic(Constants())(plan, ports().read_store())
    assert found.hits[0].record == old.record
    assert found.hits[0].score == pytest.approx(0.3215, abs=5e-5)
    assert [hit.record for hit in found.hits] == [old.record]  # what shares no word is not told
    assert far.record in [each.hit.record for each in found.dropped]
    with SupervisorMemory(Settings(embedding_model="none", queue_worker=False), recipe="ld_agent") as memory:
        memory.add_many(["The cat is at the vet.", "The cat sleeps."], user_id="ada", infer=False)
        (hit,) = memory.search("cat vet", user_id="ada", limit=9)
        assert hit.record.content == "The cat is at the vet."
