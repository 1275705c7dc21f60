"""The figures that tell how well memory serves."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.flow import Outcome
from supervisor_memory.model.records import Message
from supervisor_memory.reading.metrics import Figures, Metrics, exposition, measure
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from supervisor_memory.upkeep.write import use_of


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[SupervisorMemory]:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="hashing")
    with SupervisorMemory(settings, clock=clock) as held:
        yield held


def figures(memory: SupervisorMemory, **which: float | str | None) -> Metrics:
    return measure(memory.backend, queue=memory.queue.counts(), **which)  # type: ignore[arg-type]


def test_nothing_has_no_shares(memory: SupervisorMemory) -> None:
    found = figures(memory)
    assert found.total == Figures()
    assert set(found.total.shares.values()) == {None}
    assert not found.agents
    assert not found.days


def test_the_hit_rates_are_the_shares_of_notes_and_of_searches_that_showed_a_record(
    memory: SupervisorMemory,
) -> None:
    memory.write("The hangar of Oslo is painted red.", user_id="ada")
    memory.search("hangar of Oslo", user_id="ada")
    memory.search("quarterly ledger", user_id="ada", threshold=0.9)
    memory.recall([("user", "Which colour has the hangar of Oslo?")], Scope("ada", run_id="r-1"))
    memory.recall([("user", "Which colour has the hangar of Oslo?")], Scope("ada", "sql", run_id="r-1"))
    found = figures(memory)
    assert (found.total.notes, found.total.hits) == (2, 2)
    assert (found.total.searches, found.total.search_hits) == (2, 1)
    assert (found.total.shares["hit_rate"], found.total.shares["search_hit_rate"]) == (1.0, 0.5)
    assert found.total.turns == 1, "one run; a search by itself is no turn"
    assert found.total.tokens > 0
    assert found.agents["sql"].notes == 1
    assert found.agents[None].searches == 2


def test_a_duplicate_is_a_write_that_was_skipped_or_merged(memory: SupervisorMemory) -> None:
    memory.write("Reports go out on Fridays.", user_id="ada")
    memory.write("Reports go out on Fridays.", user_id="ada")
    memory.write("The lake is two hundred metres deep.", user_id="ada")
    memory.add_many(["Said once.", "Said once."], user_id="ada")
    found = figures(memory).total
    assert (found.writes, found.duplicates) == (3, 1), "what is kept word for word is compared with nothing"
    assert found.shares["duplicate_rate"] == pytest.approx(1 / 3, abs=1e-4)


def test_what_people_decide_is_no_write_of_the_supervisor(memory: SupervisorMemory) -> None:
    first, second = (
        memory.write(text, user_id="ada", metadata={"strategy": "review"})
        for text in ("The harbour closes at nine.", "Invoices are due in May.")
    )
    assert figures(memory).pending == 2
    memory.review.approve(first.id, reviewer="rita")
    memory.review.reject(second.id, reviewer="rita", reason="untrue")
    found = figures(memory)
    assert (found.total.writes, found.total.proposed) == (2, 2)
    assert (found.total.approved, found.total.rejected, found.pending) == (1, 1, 0)


def test_reuse_is_what_was_said_in_another_session_than_the_readers(memory: SupervisorMemory) -> None:
    memory.write("The hangar of Oslo is painted red.", user_id="ada", session_id="monday")
    question = [("user", "Which colour has the hangar of Oslo?")]
    memory.recall(question, Scope("ada", session_id="monday"))
    memory.recall(question, Scope("ada", session_id="tuesday"))
    memory.recall(question, Scope("ada"))
    found = figures(memory).total
    assert (found.shown, found.traced, found.reused) == (3, 2, 1)
    assert found.shares["reuse_rate"] == 0.5


def test_the_use_of_a_note_is_the_share_of_its_terms_that_the_answer_has(
    memory: SupervisorMemory,
) -> None:
    memory.write("The hangar of Oslo is painted red.", user_id="ada")
    scope, asked = Scope("ada"), ("user", "Which colour has the hangar of Oslo?")
    note = memory.recall([asked], scope)
    memory.remember([asked, ("assistant", "The hangar is red.")], scope, note=note)
    assert figures(memory).total.shares["use_rate"] == 0.5, "hangar, red"
    worker = Scope("ada", "sql")
    memory.remember((), worker, outcome=Outcome(final_answer="I cannot tell."), note=note)
    found = figures(memory)
    assert found.agents["sql"].shares["use_rate"] == 0
    assert found.total.shares["use_rate"] == 0.25


def test_chinese_notes_are_measured_by_pairs_of_characters(memory: SupervisorMemory) -> None:
    memory.write("机库的颜色是深蓝色。", user_id="ada")
    hits = memory.search("机库是什么颜色", user_id="ada", threshold=0)
    assert use_of(hits, "深蓝色。") == pytest.approx(2 / 6, abs=0.1)
    assert use_of(hits, "不知道。") == 0


def test_the_log_of_use_holds_no_word(memory: SupervisorMemory, tmp_path: Path) -> None:
    memory.write("The hangar of Oslo is painted vermilion.", user_id="ada")
    asked = ("user", "Which colour has the hangar of Oslo?")
    note = memory.recall([asked], Scope("ada"))
    memory.remember([asked, ("assistant", "Vermilion.")], Scope("ada"), note=note)
    [row] = memory.backend.audit.accesses(10, user_id="ada", op="used")
    assert row.record_id is None
    assert row.reason == ""
    assert row.score_milli is not None


def test_what_was_read_is_told_by_day(memory: SupervisorMemory, clock: FixedClock) -> None:
    memory.search("anything", user_id="ada")
    clock.forward(days=2)
    memory.search("anything", user_id="ada")
    assert {day: each.searches for day, each in figures(memory).days.items()} == {
        "2026-01-05": 1,
        "2026-01-07": 1,
    }


def test_a_period_and_a_user_narrow_all_figures(memory: SupervisorMemory, clock: FixedClock) -> None:
    clock.now = time.time()
    for user in ("ada", "bo"):
        memory.write(f"{user} keeps bees on the roof.", user_id=user)
        memory.search("bees on the roof", user_id=user)
    since = time.time()
    clock.now = since + 0.001
    memory.write("The pier opens in June.", user_id="ada")
    memory.search("pier opens", user_id="ada")
    assert (figures(memory).total.writes, figures(memory).total.searches) == (3, 3)
    of_ada = figures(memory, user_id="ada").total
    assert (of_ada.writes, of_ada.searches) == (2, 2)
    late = figures(memory, since=since).total
    assert (late.writes, late.searches) == (1, 1)
    assert figures(memory, user_id="nobody").total == Figures()


def test_what_an_erased_user_was_shown_is_counted_no_more(memory: SupervisorMemory) -> None:
    memory.write("Bo keeps bees on the roof.", user_id="bo")
    asked = ("user", "Who keeps bees on the roof?")
    note = memory.recall([asked], Scope("bo"))
    memory.remember([asked, ("assistant", "Bo keeps bees.")], Scope("bo"), note=note)
    assert (figures(memory).total.notes, figures(memory).total.answers) == (1, 1)
    memory.erase(user_id="bo", confirm=True)
    assert (figures(memory).total.notes, figures(memory).total.answers) == (0, 0)
    assert figures(memory, user_id="bo").total == Figures()


def test_prometheus_text_has_one_type_a_name_and_a_number_a_line(memory: SupervisorMemory) -> None:
    memory.write("The pier opens in June.", user_id="ada")
    memory.recall([Message("user", "When does the pier open?")], Scope("ada", 'the "best" agent\\'))
    text = exposition(figures(memory))
    names = re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE)
    assert len(names) == len(set(names))
    sample = re.compile(r'(supervisor_memory_\w+)(\{\w+="(?:[^"\\\n]|\\["\\n])*"\})? -?[\d.e+-]+')
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples
    assert all((told := sample.fullmatch(line)) and told[1] in names for line in samples)
    assert r'{agent="the \"best\" agent\\"}' in text
    assert "ada" not in text
    assert "pier" not in text


@given(st.text(max_size=40))
def test_no_name_of_an_agent_breaks_a_line_of_prometheus(agent: str) -> None:
    text = exposition(Metrics(None, None, agents={agent: Figures(notes=1)}))
    lines = [line for line in text.split("\n") if line.startswith("supervisor_memory_period_notes{")]
    assert len(lines) == 1
    assert lines[0].endswith('"} 1')


def test_the_figures_are_json(memory: SupervisorMemory) -> None:
    memory.search("anything", user_id="ada")
    assert json.loads(json.dumps(figures(memory).to_dict()))["total"]["searches"] == 1


def test_a_graph_that_answers_from_its_notes_is_measured_by_reader(memory: SupervisorMemory) -> None:
    memory.write("The hangar of Oslo is painted red.", user_id="ada", session_id="monday")

    boss = ScriptedModel(script=["painter", AIMessage("The hangar is red.", name="supervisor")])
    hand = ScriptedModel(script=[AIMessage("Painted red.", name="painter")], label="hand")

    def supervisor(state: MessagesState) -> dict[str, Any]:
        said = boss.invoke(state["messages"])
        return {"messages": [said] if said.text != "painter" else []}

    def painter(state: MessagesState) -> dict[str, Any]:
        return {"messages": [hand.invoke(state["messages"])]}

    def after(state: MessagesState) -> str:
        return END if state["messages"][-1].name == "supervisor" else "painter"

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", supervisor)
    graph.add_node("painter", painter)
    graph.add_edge(START, "supervisor")
    graph.add_edge("painter", "supervisor")
    graph.add_conditional_edges("supervisor", after, ["painter", END])
    app = memory.attach(graph, agents=["painter"]).compile()
    asked: Any = {"messages": [HumanMessage("Which colour has the hangar of Oslo?")]}
    app.invoke(asked, {"configurable": {"user_id": "ada", "thread_id": "tuesday"}})
    found = figures(memory)
    assert (found.total.turns, found.total.answers) == (1, 2)
    assert found.agents.keys() == {None, "painter"}
    assert {each.shares["reuse_rate"] for each in found.agents.values()} == {1.0}
    assert {each.shares["use_rate"] for each in found.agents.values()} == {0.5}
