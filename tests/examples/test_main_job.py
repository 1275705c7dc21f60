"""The demo is genuine: what is recalled changes the answer just as the user's own words would."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agents.team import build_team
from common.llm import RuleBasedChatModel
from common.quotations import Quotation, answering
from supervisor_memory import Settings, SupervisorMemory
from tests import programs

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUESTION = "Which three airlines had the highest share of delayed flights from LaGuardia in June?"
ZH_QUESTION = "六月从拉瓜迪亚出发的航班中，哪三家航空公司的延误率最高？"

FACTS = [
    ("Use tables by default.", QUESTION),
    ("以后默认用表格。", ZH_QUESTION),
    ("From now on, answer with a bullet list.", QUESTION),
    ("Delayed means arrival more than 15 minutes late.", QUESTION),
    ("A flight counts as delayed when departure is over 30 minutes late.", QUESTION),
    ("延误指到达晚点超过 15 分钟。", ZH_QUESTION),
    ("Always answer in Chinese.", QUESTION),
    ("以后请用英文回答。", ZH_QUESTION),
    ("Always round percentages to one decimal place.", QUESTION),
    ("I prefer delays in hours.", "What was the average arrival delay of flights from JFK in July?"),
]
UNRELATED = [
    "My favourite colour is green.",
    "GMV excludes refunds.",
    "以后默认把报告发给财务部。",
    "Churn means no login for 90 days.",
]


def answer(graph: Any, text: str, *, user: str, thread: str) -> dict[str, Any]:
    state: dict[str, Any] = graph.invoke(
        {"messages": [HumanMessage(text, id="ask")], "user_id": user}, {"configurable": {"thread_id": thread}}
    )
    return state


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def memory() -> SupervisorMemory:
    return SupervisorMemory(Settings())


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("fact", "question"), FACTS, ids=[fact for fact, _ in FACTS])
def test_a_recalled_fact_and_a_pasted_one_give_the_same_answer(
    fact: str, question: str, memory: SupervisorMemory, output: Path
) -> None:
    team = build_team(RuleBasedChatModel(), output_dir=output)
    bare, remembering = team.compile(), memory.attach(team).compile()
    answer(remembering, fact, user="ada", thread="before")
    recalled = answer(remembering, question, user="ada", thread="after")
    pasted = answer(bare, f"{fact} {question}", user="ada", thread="pasted")
    plain = answer(bare, question, user="ada", thread="plain")
    assert recalled["final_answer"] == pasted["final_answer"]
    assert recalled["final_answer"] != plain["final_answer"]


IN_PASSING = [
    (
        f"FYI, the LaGuardia report slipped by a week because Lena's team was ill. {QUESTION}",
        "Why did the LaGuardia report slip?",
        "because Lena's team was ill.",
    ),
    (
        "拉瓜迪亚的报告推迟了一周，因为李娜的团队生病了。",
        "拉瓜迪亚的报告为什么推迟了？",
        "因为李娜的团队生病了。",
    ),
]


@pytest.mark.parametrize(("said", "asked", "fact"), IN_PASSING, ids=["en", "zh"])
def test_what_was_said_in_passing_is_answered_from_the_note_that_quotes_it(
    said: str, asked: str, fact: str, output: Path
) -> None:
    team = build_team(RuleBasedChatModel(), output_dir=output)
    for quotes in ("auto", "never"):
        with SupervisorMemory(Settings(recall_said=quotes)) as memory:
            graph = memory.attach(team).compile()
            answer(graph, said, user="ada", thread="before")
            assert not [each for each in memory.get_all(user_id="ada") if fact in each.content]
            told = answer(graph, asked, user="ada", thread="after")["final_answer"]
            assert (fact in told) == (quotes == "auto")
            assert fact not in answer(graph, asked, user="bo", thread="theirs")["final_answer"]


def test_a_quoted_question_answers_nothing() -> None:
    note = "- [2026-11-22 · said · user] Why did the LaGuardia report slip? … It slipped by a week."
    said = answering("Why did the LaGuardia report slip?", [f"Be brief.\n{note}"])
    assert said is None
    assert answering("By how much did it slip?", [note]) == Quotation(
        "2026-11-22", "user", "It slipped by a week."
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fact", UNRELATED)
def test_an_unrelated_note_changes_nothing(fact: str, memory: SupervisorMemory, output: Path) -> None:
    team = build_team(RuleBasedChatModel(), output_dir=output)
    assert memory.write(fact, user_id="ada").status == "added"
    recalled = answer(memory.attach(team).compile(), QUESTION, user="ada", thread="after")
    plain = answer(team.compile(), QUESTION, user="ada", thread="plain")
    assert recalled["final_answer"] == plain["final_answer"]
    assert recalled["side_effects"] == plain["side_effects"]


def test_another_user_gets_the_plain_answer(memory: SupervisorMemory, output: Path) -> None:
    team = build_team(RuleBasedChatModel(), output_dir=output)
    graph = memory.attach(team).compile()
    answer(
        graph,
        "Use tables by default. Delayed means arrival more than 15 minutes late.",
        user="ada",
        thread="1",
    )
    theirs = answer(graph, QUESTION, user="bo", thread="2")
    assert theirs["final_answer"] == answer(team.compile(), QUESTION, user="bo", thread="3")["final_answer"]


def run_example(name: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = programs.environment(COLUMNS="110", **environment)
    return programs.run(EXAMPLES / name, env=given, cwd=directory, timeout=300, check=True)


def assert_it_is_the_demo(told: str) -> None:
    first, second, third, fourth = re.split(r"Session [1234] ·", told)[1:]
    processes = set(re.findall(r"process (\d+)", told))
    assert len(processes) == 4, "four interpreters"
    assert "text2sql" in first, "a handoff"
    assert "analysis" in first, "another"
    assert ".csv" in first
    for told_in in (first, second):
        assert "recalled for supervisor" in told_in, "the notes that models read"
        assert "recalled for text2sql" in told_in
    assert "| Airline |" in second, "the table that session 1 asked for"
    assert "more than 15 minutes late" in second, "the definition of session 1"
    assert "an excerpt of what was said" in second
    assert "you said: “FYI, the LaGuardia report slipped by a week because Lena's team was ill.”" in second
    assert "Open: FYI, Newark is for next time." in " ".join(third.split()), "the end of session 2"
    assert "| Airline |" not in fourth
    assert not re.search("Lena|Newark|15 minutes", fourth), "nothing of ada's"
    assert "Try next" in fourth


@pytest.mark.slow
def test_the_demo_is_the_same_on_another_backend_by_environment_alone(beside_flights: Path) -> None:
    path = str(beside_flights / "memory")
    told = run_example("02_two_sessions.py", beside_flights, MEMORY_BACKEND="json", MEMORY_PATH=path).stdout
    assert_it_is_the_demo(told)
    assert (beside_flights / "memory" / "memory.json").exists()


@pytest.mark.slow
def test_the_demo_quotes_nothing_where_notes_may_not(beside_flights: Path) -> None:
    told = run_example("02_two_sessions.py", beside_flights, MEMORY_RECALL_SAID="never").stdout
    second = re.split(r"Session [1234] ·", told)[2]
    assert "Lena" not in second
    assert "I can't answer that with this data" in second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "kept_in"),
    [
        ("MEMORY_BACKEND=sqlite", ".demo/two_sessions/memory.db"),
        pytest.param("MEMORY_BACKEND=qdrant\nQDRANT_URL=./points", "points", marks=pytest.mark.slow),
    ],
    ids=["sqlite", "qdrant"],
)
def test_the_demo_is_the_same_on_another_backend_by_the_env_file_alone(
    lines: str, kept_in: str, beside_flights: Path
) -> None:
    (beside_flights / ".env").write_text(f"{lines}\nEMBEDDING_MODEL=all-MiniLM-L6-v2\n")
    for _ in range(2 if "qdrant" in lines else 1):  # it begins with nothing remembered
        assert_it_is_the_demo(run_example("02_two_sessions.py", beside_flights).stdout)
    assert (beside_flights / kept_in).exists()


def test_an_example_over_qdrant_in_memory_says_that_it_is_volatile(beside_flights: Path) -> None:
    (beside_flights / ".env").write_text("MEMORY_BACKEND=qdrant\nQDRANT_URL=:memory:\n")
    done = run_example("01_attach.py", beside_flights)
    assert [line for line in done.stderr.splitlines() if "volatile" in line]
    assert "ada: Which three airlines" in done.stdout


def test_wrapping_the_team_takes_five_lines_or_fewer() -> None:
    source = (EXAMPLES / "01_attach.py").read_text(encoding="utf-8")
    between = source.split("# --- memory, from here\n")[1].split("# --- to here")[0]
    assert 0 < len(between.strip().splitlines()) <= 5
