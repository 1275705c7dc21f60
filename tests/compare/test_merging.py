"""What becomes of a text that is written, as its user sees it."""

import functools
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

import benchmarks.merging
from benchmarks.merging.lines import Decision, Line, read_lines, slots_of
from benchmarks.merging.replay import contradictions, replay
from benchmarks.merging.scores import score
from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.compare.apart import apart
from supervisor_memory.compare.evidence import evidence, rarity
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, Event, Record, Scope
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.merge import Strategy
from supervisor_memory.stages.insert.place import deciding, normalised
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case


def fresh(**options: object) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock(), **options)  # type: ignore[arg-type]


def texts(memory: SupervisorMemory) -> list[str]:
    return sorted(record.content for record in memory.get_all(user_id="ada"))


ATTITUDES = {
    "english": ("I love durian.", "I hate durian now.", "I don't care about durian any more."),
    "chinese": ("我很喜欢榴莲。", "我现在讨厌榴莲了。", "我对榴莲已经无所谓了。"),
    "mixed": ("I love durian 榴莲.", "我现在讨厌 durian 榴莲了。", "durian 榴莲 I no longer care about."),
}


@pytest.mark.parametrize("said", ATTITUDES.values(), ids=ATTITUDES)
def test_love_hate_and_indifference_leave_one_fact_with_its_past(said: tuple[str, ...]) -> None:
    memory = fresh()
    results = [
        memory.write(text, user_id="ada", kind="user-profile", created_at=float(day * 86_400))
        for day, text in enumerate(said, start=1)
    ]
    assert len({result.id for result in results}) == 1
    assert texts(memory) == [said[-1]]
    assert [version.content for version in memory.history(results[0].id)] == list(said)
    for day, text in enumerate(said, start=1):
        then = memory.get_all(user_id="ada", as_of=day * 86_400 + 3_600)
        assert [record.content for record in then] == [text]


@every_case(
    ("known", "said"),
    [
        ("Dashboards refresh at 06:00 UTC every day", "Dashboards refresh at 07:30 UTC every day"),
        ("The rent of my flat is 980 euros", "The rent of my flat went up to 1,040 euros"),
        ("仓库每周一盘点", "仓库改为每周五盘点"),
    ],
)
def test_a_new_value_takes_the_place_of_the_old_one(known: str, said: str) -> None:
    memory = fresh()
    first = memory.write(known, user_id="ada", kind="domain-facts")
    second = memory.write(said, user_id="ada", kind="domain-facts")
    assert (second.id, second.status) == (first.id, "updated")
    assert texts(memory) == [said]


@every_case(
    ("known", "said"),
    [
        ("Line 2 runs at 340 bottles a minute", "Line 4 runs at 340 bottles a minute"),
        ("The plan costs 1,200 USD per month", "The plan costs 13,500 USD per year"),
        ("Orders above 500 kg go by rail", "Orders below 500 kg go by road"),
        ("The target for 2014 is 82%", "The target for 2015 is 84%"),
        ("Sales of 2013 came to 40 million", "Sales of 2014 came to 44 million"),
        ("Tom wants all amounts in EUR", "Ines wants all amounts in EUR"),
        ("I like listening to jazz", "I like listening to rock"),
        ("二号线每分钟灌装 340 瓶", "四号线每分钟灌装 510 瓶"),
        ("销售额含税", "退款额不含税"),
    ],
)
def test_look_alikes_stay_apart(known: str, said: str) -> None:
    memory = fresh()
    memory.write(known, user_id="ada")
    assert memory.write(said, user_id="ada").status == "added"
    assert len(texts(memory)) == 2


def test_steps_are_appended_to_the_task_they_name() -> None:
    memory = fresh()
    first = memory.write("Task MED-31 opened: waiting times", user_id="ada", kind="task-traces")
    other = memory.write("Task MED-34 opened: waiting times", user_id="ada", kind="task-traces")
    step = memory.write("MED-31: the median is 41 minutes", user_id="ada", kind="task-traces")
    assert (step.id, step.status) == (first.id, "appended")
    assert other.status == "added"


def test_what_is_to_be_forgotten_steps_back_and_stays_in_history() -> None:
    memory = fresh()
    kept = memory.write("I want my reports as tables", user_id="ada", kind="user-profile")
    (done,) = memory.add("Forget that I want my reports as tables.", user_id="ada")
    assert (done.id, done.status, done.reason) == (kept.id, "updated", "retracted")
    assert texts(memory) == []
    assert memory.history(kept.id)[0].content == "I want my reports as tables"


def test_both_are_kept_where_that_is_asked_for() -> None:
    memory = fresh()
    memory.write("Shift B starts at 14:00 every day", user_id="ada")
    other = "Shift B starts at 13:30 every day"
    done = memory.write(other, user_id="ada", metadata={"strategy": "keep-both"})
    assert (done.status, done.reason) == ("added", "kept-beside")
    assert len(texts(memory)) == 2


def test_a_strategy_of_ones_own_is_a_function() -> None:
    def longest(old: Record, new: str, when: float, complete: object) -> str:
        return max(old.content, new, key=len)

    own: Strategy = longest
    memory = fresh(recipe=replace(DEFAULT, insert=(deciding(by_kind={"domain-facts": own}),)))
    memory.write("The pass mark in chemistry is 50 points in total", user_id="ada", kind="domain-facts")
    memory.write("In chemistry the pass mark is 50 points", user_id="ada", kind="domain-facts")
    assert texts(memory) == ["The pass mark in chemistry is 50 points in total"]


def test_two_who_merge_into_one_record_lose_nothing(tmp_path: Path) -> None:
    settings = Settings(embedding_model="none", backend="sqlite", path=tmp_path)
    with SupervisorMemory(settings) as memory:
        memory.write("Task A-1 opened", user_id="ada", kind="task-traces")

        def work(name: str) -> None:
            for step in range(5):
                memory.write(f"A-1: {name} did part {step}", user_id="ada", kind="task-traces")

        workers = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob", "cy")]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        (record,) = memory.get_all(user_id="ada")
        assert len(record.content.splitlines()) == 16


def test_saying_it_again_changes_nothing() -> None:
    memory = fresh()
    said = ["Line 2 runs at 340 bottles a minute", "I love durian.", "Task A-1 opened", "A-1: done"]
    for text in said:
        memory.write(text, user_id="ada")
    before = [(record.id, record.version) for record in memory.get_all(user_id="ada")]
    assert {memory.write(text, user_id="ada").status for text in said} == {"skipped"}
    assert [(record.id, record.version) for record in memory.get_all(user_id="ada")] == before


def test_who_names_records_changes_those_that_are_there_and_leaves_a_row_for_the_others() -> None:
    asked: list[Candidate] = []

    def ask(said: Remembering, view: ReadStore) -> Remembering:
        return said if said.is_given else replace(said, candidates=tuple(asked))

    recipe = replace(DEFAULT, pre_insert=(ask,))
    memory = SupervisorMemory(Settings(embedding_model="none"), recipe=recipe)
    tea = memory.write("Tea is at five.", user_id="ada", kind="domain-facts").id
    other = memory.write("Tea is at five.", user_id="bob", kind="domain-facts").id
    asked += [
        Candidate("Tea is at six.", "domain-facts", event="UPDATE", target=target)
        for target in (tea, other, "unknown")
    ]
    (done,) = memory.remember("Tea is at six.", scope=Scope("ada"))
    assert (done.id, done.status, texts(memory)) == (tea, "updated", ["Tea is at six."])
    assert memory.get(other).content == "Tea is at five."
    assert "no-such-record-or-twice:2" in [row.event["reason"] for row in memory.backend.audit.tail(9)]


def test_of_what_a_model_asks_the_strongest_of_each_id_stands() -> None:
    def ask(event: Event | None, target: str | None = None, content: str = "x") -> Candidate:
        return Candidate(content, "domain-facts", event=event, target=target)

    asked = [
        ask("NONE", "1"), ask("UPDATE", "1"), ask("DELETE", "1"), ask("UPDATE", "1"), ask("UPDATE", "2"),
        ask("DELETE", "unknown"), ask("DELETE", content="tea"), ask("ADD", content="new"),
        ask("ADD", content="New."), ask(None, content="said"),
    ]  # fmt: skip
    left = normalised(asked, known=("1", "2"))
    assert [(c.event, c.target, c.content) for c in left] == [
        ("DELETE", "1", "x"),
        ("UPDATE", "2", "x"),
        ("DELETE", None, "tea"),
        ("ADD", None, "new"),
        (None, None, "said"),
    ]


@every_case("text", ["", "。", "1", "a" * 100_000, "不" * 20_000, "1 " * 20_000])
def test_any_two_texts_can_be_compared(text: str) -> None:
    one, other = read(text), read("GMV 不含退款 15 minutes")
    for pair in (beside(one, other), beside(other, one), beside(one, one)):
        assert isinstance(apart(pair), str)
        assert takes_place(pair) in (True, False)
        assert all(map(float, evidence(pair, near=0.5, lead=0.0, weights=rarity([one, other])).values()))


def statements(messages: list[BaseMessage]) -> tuple[str, str]:
    """The two texts that a model was asked to merge."""
    one, other = re.findall(
        r"^Statement [12]: (.*?)(?=\nStatement 2:|\Z)", messages[0].text, re.DOTALL | re.MULTILINE
    )
    return one, other


def joins(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage("; ".join(statements(messages)))


def forgets_the_old(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage(statements(messages)[1])


def makes_figures_up(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage(f"{statements(messages)[0]} 4711")


def refuses(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage("I cannot say.")


def fails(messages: list[BaseMessage]) -> AIMessage:
    raise ConnectionError("the model is down")


Answer = Callable[[list[BaseMessage]], AIMessage]
READERS = {"en": "all-MiniLM-L6-v2", "zh": "multilingual-e5-small"}


def freight(language: str) -> list[Line]:
    folder = Path(benchmarks.merging.__file__).parent
    return [line for line in read_lines(folder / f"{language}.jsonl") if "freight" in line.stream]


@functools.cache
def decided(language: str, answer: Answer | None) -> tuple[list[Decision], int]:
    """What becomes of our own set, and how often a model was asked."""
    lines = freight(language)
    llm = None if answer is None else ScriptedModel(script=[answer] * len(lines))
    settings = Settings(embedding_model=READERS[language])
    with SupervisorMemory(settings, clock=FixedClock(), llm=llm) as memory:
        decisions = replay(lines, memory)
    return decisions, len(llm.calls) if llm else 0


@every_case("language", READERS)
def test_duplicates_are_merged_rivals_kept_apart_and_no_contradiction_is_left(language: str) -> None:
    lines, (decisions, _) = freight(language), decided(language, None)
    rates = score(lines, decisions)[language].rates
    assert rates["merged"].value > 0.8
    assert rates["false merges"].value < 0.05
    assert rates["conflicts resolved"].value >= 0.8
    assert rates["appended"].value == 1
    assert contradictions(lines, decisions, slots_of(lines)) == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", [makes_figures_up, joins, forgets_the_old, refuses, fails])
@pytest.mark.parametrize("language", READERS)
def test_with_a_model_in_the_loop_no_figure_falls(language: str, answer: Answer) -> None:
    lines, (decisions, asked) = freight(language), decided(language, answer)
    with_model = score(lines, decisions)[language].rates
    without = score(lines, decided(language, None)[0])[language].rates
    assert asked or language == "en"  # where one of the wordings is enough, no model is asked
    for name in ("merged", "conflicts resolved", "appended"):
        assert with_model[name].value >= without[name].value
    for name in ("false merges", "misdirected"):
        assert with_model[name].value <= without[name].value
    assert contradictions(lines, decisions, slots_of(lines)) == []


def test_a_figure_that_a_model_made_up_is_not_kept() -> None:
    known = "The cold store in Kiel holds pallets of frozen fish for the northern ferries"
    said = "Northern ferries are loaded from the cold store in Kiel, frozen fish first"
    memory = fresh(llm=ScriptedModel(script=[makes_figures_up] * 2))
    record = memory.write(known, user_id="ada")
    memory.update(record.id, content=said, user_id="ada", metadata={"strategy": "summarise"})
    assert texts(memory) == [f"{known}. {said}"]
