"""MemoryBank: the forgetting curve, computed by hand, and the chores that go by it."""

from math import exp

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.rows import Access
from supervisor_memory.recipes.operators.retention import ebbinghaus
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel

SETTINGS = Settings(embedding_model="none", queue_worker=False)


def test_what_is_recalled_more_is_kept_longer_while_the_code_forgets_it_sooner() -> None:
    # R = e^(-t/(5·S)); t = 5 days: S = 1: e^-1 = .3679, S = 3: e^(-1/3) = .7165; the code: e^(-5·3/5) = .0498
    assert ebbinghaus(5.0, 1.0, scale=5.0) == pytest.approx(0.3679, abs=5e-5)
    assert ebbinghaus(5.0, 3.0, scale=5.0) == pytest.approx(0.7165, abs=5e-5)
    assert exp(-5.0 * 3.0 / 5.0) == pytest.approx(0.0498, abs=5e-5)


def test_what_was_not_recalled_fades_and_a_plan_tells_it_before() -> None:
    clock = FixedClock()
    with SupervisorMemory(SETTINGS, recipe="memorybank", clock=clock) as memory:
        faded = memory.write("The depot is in Kiel.", user_id="ada").id
        recalled = memory.write("Invoices are paid in euros.", user_id="ada").id
        wished = memory.write("I like tables.", user_id="ada", kind="user-profile").id
        # R falls under .1 at t = 5·ln 10 = 11.51 days for S = 1, at 23.03 for S = 2; days are whole.
        clock.forward(days=11.9)
        assert not memory.optimize(user_id="ada", chores=["fade"], dry_run=True).steps
        memory.backend.audit.record_access([Access("search", clock.now, "ada", record_id=recalled)])
        memory.backend.audit.flush()
        clock.forward(days=0.2)
        plan = memory.optimize(user_id="ada", chores=["fade"], dry_run=True)
        assert [(s.record_id, s.doing, s.why) for s in plan.steps] == [
            (faded, "forget", "retained 0.091, under 0.1")  # e^(-12/5) = .0907
        ]
        assert memory.get(faded).status == "active"
        assert memory.status(user_id="ada")["due"]["fade"] == 1
        memory.optimize(user_id="ada", chores=["fade"])
        assert memory.get(faded).status == "deleted"
        assert (memory.get(recalled).status, memory.get(wished).status) == ("active", "active")


def test_a_day_that_is_over_gets_one_digest_which_goes_with_what_it_was_made_from() -> None:
    clock = FixedClock()
    with SupervisorMemory(SETTINGS, recipe="memorybank", clock=clock) as memory:
        ids = [
            memory.write(text, user_id="ada").id
            for text in ("The depot is in Kiel. It has two floors.", "Lund closes at noon.")
        ]
        assert not memory.optimize(user_id="ada", chores=["daily_digest"]).steps
        clock.forward(days=1)
        (made,) = memory.optimize(user_id="ada", chores=["daily_digest"]).steps
        digest = memory.get(made.record_id)
        assert digest.content == "2026-01-05: The depot is in Kiel. Lund closes at noon."
        assert set(digest.made_from) == set(ids)
        assert not memory.optimize(user_id="ada", chores=["daily_digest"]).steps
        assert any(h.record.id == digest.id for h in memory.search("depot Kiel", user_id="ada", limit=10))
        memory.delete(ids[0], user_id="ada")
        assert memory.get(digest.id).status == "deleted"


def test_a_model_words_the_digest() -> None:
    clock = FixedClock()
    model = ScriptedModel(script=["Kiel has a depot; Lund closes early."])
    with SupervisorMemory(SETTINGS, recipe="memorybank", clock=clock, llm=model) as memory:
        memory.add_many(["The depot is in Kiel.", "Lund closes at noon."], user_id="ada", infer=False)
        clock.forward(days=1)
        (made,) = memory.optimize(user_id="ada", chores=["daily_digest"]).steps
        assert memory.get(made.record_id).content == "2026-01-05: Kiel has a depot; Lund closes early."
        assert "The depot is in Kiel." in model.prompts[0]


def test_of_a_search_without_limit_six_are_found() -> None:
    settings = Settings(embedding_model="none", queue_worker=False, top_k=20)
    with SupervisorMemory(settings, recipe="memorybank") as memory:
        memory.add_many([f"The depot number {n} is in Kiel." for n in range(9)], user_id="ada", infer=False)
        assert len(memory.search("depot in Kiel", user_id="ada")) == 6
