from __future__ import annotations

import ast
import csv
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import PrivateAttr

import agents
import common
from agents.team import build_team
from common.llm import RuleBasedChatModel
from common.memory_state import AnalysisMemory, CustomState, checkpoint_serializer
from tests.agents.conftest import Ask

PER_ORIGIN = {"EWR": 120835, "JFK": 111279, "LGA": 104662}


def by_hand(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def csv_rows(state: dict[str, Any]) -> list[list[str]]:
    path = next(effect["path"] for effect in state["side_effects"] if effect["type"] == "csv")
    with open(path, encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))[1:]


def start(question: str) -> CustomState:
    return {"messages": [HumanMessage(question, id="question")], "user_id": "u1"}


# --- figures


def test_a_count_is_answered_in_a_sentence(ask: Ask) -> None:
    answer = ask("How many flights left JFK?")["final_answer"]

    assert answer == "The number of flights from JFK is 111279."


QUESTIONS = [
    (
        "Which 3 airlines have the highest average departure delay?",
        "SELECT name, AVG(dep_delay) FROM flights JOIN airlines USING (carrier) GROUP BY carrier "
        "ORDER BY 2 DESC LIMIT 3",
    ),
    (
        "各月的延误率",
        "SELECT month, 100.0 * SUM(arr_delay > 0) / COUNT(arr_delay) FROM flights "
        "GROUP BY month ORDER BY month",
    ),
    (
        "延误超过 60 分钟的航班有多少，按始发机场",
        "SELECT origin, SUM(arr_delay > 60) FROM flights GROUP BY origin ORDER BY 2 DESC",
    ),
    (
        "Number of cancelled flights per hour of departure",
        "SELECT hour, SUM(dep_time IS NULL) FROM flights GROUP BY hour ORDER BY hour",
    ),
    (
        "取消率最高的 5 个目的地",
        "SELECT dest, 100.0 * SUM(dep_time IS NULL) / COUNT(*) AS r FROM flights GROUP BY dest "
        "ORDER BY r DESC, dest LIMIT 5",
    ),
    (
        "average arrival delay by destination",
        "SELECT dest, AVG(arr_delay) AS r FROM flights GROUP BY dest ORDER BY r DESC NULLS LAST, dest",
    ),
    (
        "What was the maximum arrival delay of United in July?",
        "SELECT MAX(arr_delay) FROM flights WHERE carrier = 'UA' AND month = 7",
    ),
    ("Total distance to LAX and SFO", "SELECT SUM(distance) FROM flights WHERE dest IN ('LAX', 'SFO')"),
    ("肯尼迪机场的平均空中时间", "SELECT AVG(air_time) FROM flights WHERE origin = 'JFK'"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("question", "sql"), QUESTIONS)
def test_figures_agree_with_sql_written_by_hand(ask: Ask, flights: Path, question: str, sql: str) -> None:
    found = csv_rows(ask(question))
    expected = by_hand(flights, sql)

    assert [row[:-1] for row in found] == [[str(cell) for cell in row[:-1]] for row in expected]
    assert [float(row[-1]) if row[-1] else None for row in found] == [
        None if row[-1] is None else pytest.approx(row[-1]) for row in expected
    ]


@pytest.mark.parametrize(
    ("definition", "condition"),
    [
        ("delayed means arrival more than 15 minutes late", "arr_delay > 15"),
        ("出发晚点 30 分钟以上算延误", "dep_delay > 30"),
    ],
)
def test_a_definition_changes_the_figures(ask: Ask, flights: Path, definition: str, condition: str) -> None:
    expected = by_hand(flights, f"SELECT SUM({condition}) FROM flights")[0][0]

    noted = ask("How many flights were delayed?", note=f"- (domain-facts, 2026-11-22) {definition}")
    said = ask(f"{definition}. How many flights were delayed?")

    assert csv_rows(noted) == csv_rows(said) == [[str(expected)]]


def test_a_limit_in_the_question_beats_a_definition(ask: Ask, flights: Path) -> None:
    found = ask(
        "How many flights were delayed by more than 60 minutes?",
        note="delayed means arrival more than 15 minutes late",
    )

    assert csv_rows(found) == [[str(by_hand(flights, "SELECT SUM(arr_delay > 60) FROM flights")[0][0])]]


# --- wishes


def test_a_wish_works_the_same_in_the_message_and_in_a_note(ask: Ask) -> None:
    noted = ask("How many flights per origin?", note="- (user-profile, 2026-11-22) 以后默认用表格")
    said = ask("How many flights per origin? Use a table.")
    plain = ask("How many flights per origin?")

    assert noted["final_answer"] == said["final_answer"]
    assert noted["final_answer"].splitlines() == [
        "| Origin airport | Number of flights |",
        "| --- | ---: |",
        *(f"| {origin} | {count} |" for origin, count in PER_ORIGIN.items()),
    ]
    assert "|" not in plain["final_answer"]
    assert "- " not in plain["final_answer"]


def test_a_list_has_one_line_per_row(ask: Ask) -> None:
    answer = ask("各始发机场的航班数，用列表")["final_answer"]

    assert [line for line in answer.splitlines() if line.startswith("- ")] == [
        f"- {origin}：{count}" for origin, count in PER_ORIGIN.items()
    ]


def test_an_unrelated_note_changes_nothing(ask: Ask) -> None:
    note = (
        "- (user-profile, 2026-11-22) Alice's cat is called Delta and sleeps on the table.\n"
        "- (task-traces) 上周的会议晚点 20 分钟；小时候住在纽瓦克"
    )
    with_note, without = ask("How many flights per origin?", note=note), ask("How many flights per origin?")

    assert with_note["final_answer"] == without["final_answer"]
    assert with_note["side_effects"] == without["side_effects"]


def test_language_decimals_and_unit_follow_the_wishes(ask: Ask, flights: Path) -> None:
    minutes = by_hand(flights, "SELECT AVG(arr_delay) FROM flights")[0][0]

    note = "请用中文回答\n保留三位小数\n延误用小时表示"
    answer = ask("What is the average arrival delay?", note=note)["final_answer"]

    assert answer == f"平均到达延误为 {minutes / 60:.3f} 小时。"


def test_a_message_that_only_states_a_wish_is_acknowledged_and_costs_no_handoff(ask: Ask) -> None:
    state = ask("以后默认用表格")

    assert state["final_answer"] == "好的，已了解。"
    assert [type(message) for message in state["messages"]] == [HumanMessage, AIMessage]


@pytest.mark.parametrize("question", ["What will the weather be tomorrow?", "asdf", "明天的天气怎么样？"])
def test_what_cannot_be_answered_is_refused_honestly(ask: Ask, question: str) -> None:
    state = ask(question)

    assert "can't answer that with this data" in state["final_answer"] or "无法" in state["final_answer"]
    assert state["side_effects"] == []
    assert state["analysis"] is None


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "earlier",
    [
        "What share of flights departed more than 15 minutes late? Use a table and hours and three decimals.",
        "各航空公司到达晚点超过 30 分钟的航班数，用列表，画折线图",
        "美联航的平均到达延误，用小时表示",
        "Plot the maximum departure delay by month as a line chart, in Chinese",
    ],
)
def test_what_the_team_once_said_is_no_wish_when_it_comes_back_as_a_note(ask: Ask, earlier: str) -> None:
    told = ask(earlier)
    reports = [message.text for message in told["messages"] if message.type == "ai"]
    note = "\n".join([*reports, told["analysis"].conclusion])

    for question in ("Plot the delayed flights by origin", "average arrival delay"):
        assert ask(question, note=note)["final_answer"] == ask(question)["final_answer"]


# --- the way through the graph


def test_a_question_goes_to_text2sql_and_analysis_and_with_a_chart_to_statistics(ask: Ask) -> None:
    plain, drawn = ask("Flights by month"), ask("Plot the flights by month")

    assert [message.name for message in plain["messages"] if message.type == "ai" and message.name] == [
        "text2sql",
        "analysis",
    ]
    assert [message.name for message in drawn["messages"] if message.type == "ai" and message.name] == [
        "text2sql",
        "statistics",
        "analysis",
    ]


def test_every_tool_call_has_its_answer_right_behind_it(ask: Ask) -> None:
    messages: list[BaseMessage] = ask("Plot the flights by month")["messages"]

    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            answers = messages[index + 1 : index + 1 + len(message.tool_calls)]
            assert [call["id"] for call in message.tool_calls] == [
                answer.tool_call_id for answer in answers if isinstance(answer, ToolMessage)
            ]


def test_analysis_returns_what_it_rests_on(ask: Ask) -> None:
    state = ask("Which airline has the most flights?")
    memory = state["analysis"]

    assert memory == AnalysisMemory(
        question="Which airline has the most flights?",
        conclusion="The airline with the highest number of flights is United Air Lines Inc.: 58665.",
        sql=state["side_effects"][0]["sql"],
        csv_path=state["side_effects"][1]["path"],
        figures=("United Air Lines Inc.: 58665",),
    )
    report = state["messages"][-2].text
    assert memory.sql in report
    assert memory.csv_path in report
    assert "58665" in report


@pytest.mark.parametrize(("wish", "kind"), [("", "bar"), ("always use line charts", "line")])
def test_a_chart_is_a_png_with_something_on_it(ask: Ask, wish: str, kind: str) -> None:
    from matplotlib import image

    state = ask("Draw the average arrival delay by month", note=wish)
    chart = next(effect for effect in state["side_effects"] if effect["type"] == "chart")
    pixels = image.imread(chart["path"])

    assert chart["chart"] == kind
    assert chart["path"] in state["final_answer"]
    assert Path(chart["path"]).read_bytes().startswith(b"\x89PNG\r\n")
    assert pixels.std() > 0.05


def test_the_same_input_gives_the_same_messages_and_files(ask: Ask) -> None:
    first, second = ask("Plot the flights by month"), ask("Plot the flights by month")

    assert [(m.id, m.text) for m in first["messages"]] == [(m.id, m.text) for m in second["messages"]]
    assert first["side_effects"] == second["side_effects"]


async def test_both_worlds_give_the_same(flights: Path, tmp_path: Path) -> None:
    graph = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile()

    awaited = await graph.ainvoke(start("取消率最高的 3 家航空公司，画图"))
    called = graph.invoke(start("取消率最高的 3 家航空公司，画图"))

    assert awaited == called


def test_the_answer_is_streamed(flights: Path, tmp_path: Path) -> None:
    graph = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile()

    chunks: list[Any] = list(graph.stream(start("How many flights left JFK?"), stream_mode="messages"))

    assert chunks[-1][0].text == "The number of flights from JFK is 111279."


# --- threads


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_second_turn_carries_nothing_of_the_first(
    flights: Path, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = sqlite3.connect(tmp_path / "checkpoints.sqlite", check_same_thread=False)
    savers: dict[str, BaseCheckpointSaver[Any]] = {
        "memory": InMemorySaver(serde=checkpoint_serializer()),
        "sqlite": SqliteSaver(connection, serde=checkpoint_serializer()),
    }
    builder = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path)
    graph = builder.compile(checkpointer=savers[kind])
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}

    with caplog.at_level(logging.WARNING), closing(connection):
        first = graph.invoke({"messages": [HumanMessage("Plot the flights by month")]}, thread)
        restored = graph.get_state(thread).values
        second = graph.invoke({"messages": [HumanMessage("How many flights per origin?")]}, thread)
        third = graph.invoke({"messages": [HumanMessage("What about the weather?")]}, thread)

    assert restored["analysis"] == first["analysis"]
    assert [effect["type"] for effect in second["side_effects"]] == ["sql", "csv"]
    assert second["analysis"].chart_path == ""
    assert third["side_effects"] == []
    assert third["analysis"] is None
    assert caplog.messages == []


def test_the_same_question_twice_in_a_thread_is_answered_twice(flights: Path, tmp_path: Path) -> None:
    graph = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile(
        checkpointer=InMemorySaver(serde=checkpoint_serializer())
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}

    lengths = [
        len(graph.invoke({"messages": [HumanMessage("Flights by month")]}, thread)["messages"])
        for _ in range(2)
    ]

    assert lengths[1] == 2 * lengths[0]


def test_an_earlier_message_of_the_thread_still_counts(flights: Path, tmp_path: Path) -> None:
    graph = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile(
        checkpointer=InMemorySaver(serde=checkpoint_serializer())
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage("Use tables by default.")]}, thread)

    answer = graph.invoke({"messages": [HumanMessage("Flights by origin")]}, thread)["final_answer"]

    assert answer.startswith("| Origin airport |")


# --- other models and more tools


class ScriptedModel(BaseChatModel):
    """Says what it is told to, one message per call, and keeps what it was shown."""

    _script: list[AIMessage] = PrivateAttr(default_factory=list)
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def follow(self, *script: AIMessage) -> ScriptedModel:
        self._script = list(script)
        return self

    @property
    def shown(self) -> list[list[BaseMessage]]:
        return self._shown

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._shown.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self._script.pop(0))])


def call(name: str, number: int, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call-{number}", "type": "tool_call"}


@tool
def recall_notes(query: str) -> str:
    """Look a note up."""
    return f"nothing about {query}"


def test_tools_get_a_node_only_when_there_are_any(flights: Path, tmp_path: Path) -> None:
    plain = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path)
    more = build_team(RuleBasedChatModel(), tools=[recall_notes], database=flights, output_dir=tmp_path)

    assert set(plain.nodes) == {"supervisor", "text2sql", "statistics", "analysis"}
    assert set(more.nodes) == {*plain.nodes, "tools"}


def test_a_tool_the_rule_based_model_does_not_know_confuses_nobody(flights: Path, tmp_path: Path) -> None:
    plain = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile()
    more = build_team(
        RuleBasedChatModel(), tools=[recall_notes], database=flights, output_dir=tmp_path
    ).compile()

    assert plain.invoke(start("Flights by origin")) == more.invoke(start("Flights by origin"))


def test_an_extra_tool_runs_and_a_handoff_in_the_same_breath_is_put_off(
    flights: Path, tmp_path: Path
) -> None:
    model = ScriptedModel().follow(
        AIMessage(
            "", tool_calls=[call("recall_notes", 1, query="tea"), call("transfer_to_text2sql", 2, task="x")]
        ),
        AIMessage("done"),
    )
    graph = build_team(model, tools=[recall_notes], database=flights, output_dir=tmp_path).compile()

    state = graph.invoke(start("?"))

    answers = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert answers[0] == "nothing about tea"
    assert "again, by itself" in answers[1]
    assert state["final_answer"] == "done"


def test_of_two_handoffs_at_once_the_first_is_taken_and_both_are_answered(
    flights: Path, tmp_path: Path
) -> None:
    model = ScriptedModel().follow(
        AIMessage(
            "",
            tool_calls=[call("transfer_to_text2sql", 1, task="a"), call("transfer_to_analysis", 2, task="b")],
        ),
        AIMessage("", tool_calls=[call("run_sql", 3, sql="SELECT COUNT(*) AS n FROM airlines")]),
        AIMessage("16 airlines"),
        AIMessage("There are 16."),
    )
    state = build_team(model, database=flights, output_dir=tmp_path).compile().invoke(start("?"))

    answers = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert {answer.tool_call_id for answer in answers} == {"call-1", "call-2"}
    assert state["side_effects"][0]["sql"] == "SELECT COUNT(*) AS n FROM airlines"
    # No provider accepts a history that ends with the assistant's own words.
    assert isinstance(model.shown[-1][-1], ToolMessage)
    assert model.shown[-1][-1].text == "16 airlines"


def test_a_tool_that_does_not_exist_is_refused_and_the_supervisor_goes_on(
    flights: Path, tmp_path: Path
) -> None:
    model = ScriptedModel().follow(AIMessage("", tool_calls=[call("fly", 1)]), AIMessage("sorry"))

    state = build_team(model, database=flights, output_dir=tmp_path).compile().invoke(start("?"))

    assert "no tool named 'fly'" in state["messages"][2].text
    assert state["final_answer"] == "sorry"


def test_a_note_above_the_conversation_reaches_every_agent(flights: Path, tmp_path: Path) -> None:
    model = ScriptedModel().follow(
        AIMessage("", tool_calls=[call("transfer_to_statistics", 1, task="a")]),
        AIMessage("nothing to draw"),
        AIMessage("sorry"),
    )
    graph = build_team(model, database=flights, output_dir=tmp_path).compile()

    graph.invoke({"messages": [SystemMessage("a note"), HumanMessage("?")]})

    assert all("a note" in [message.text for message in shown[:3]] for shown in model.shown)
    assert "You are statistics" in model.shown[1][0].text


def test_the_team_knows_nothing_of_memory() -> None:
    for package in (agents, common):
        for path in Path(package.__path__[0]).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                # The settings of the project are read in common.config, which is not the team's.
                assert path.name == "config.py" or not any(
                    name.startswith("supervisor_memory") for name in names
                )
