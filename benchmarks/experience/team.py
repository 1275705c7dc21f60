"""The demo team with seeded faults: its agents and supervisor, further tools, and a model of fixed policy.

The policy knows what to call for each question. It repeats the fault unless the note of the agent that calls
holds the correction; where a call fails it goes on to the next it knows. Or a chat model works in the place
of the agent that the question is for, and nobody tells it what to call.
"""

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, StateGraph
from pydantic import Field, create_model

from agents.analysis import AnalysisAgent
from agents.member import AGENTS, Member
from agents.statistics import StatisticsAgent
from agents.supervisor import SupervisorAgent
from agents.text2sql import Text2SQLAgent
from common.database import SCHEMA
from common.memory_state import CustomState
from common.messages import HANDOFF_PREFIX, since_request

OWN = Path(__file__).parent
MOST_CALLS = 8
"""Calls of tools after which a model is not asked again for a question."""
Fault = dict[str, Any]
_GUIDELINE = re.compile(r"^- \[\d{4}-\d\d-\d\d · (?:experience|经验) · [^\]]+\] (.*)$", re.MULTILINE)


def faults() -> list[Fault]:
    """The seeded faults, in the order of the file."""
    return [json.loads(line) for line in (OWN / "faults.jsonl").read_text("utf-8").splitlines()]


def guidelines_in(messages: Sequence[BaseMessage]) -> list[str]:
    """The guidelines of tools in the notes that a model call held."""
    notes = (message.text for message in messages if "<memory id=" in message.text)
    return [told for note in notes for told in _GUIDELINE.findall(note)]


@dataclass
class Policy:
    """What the team works on now, and what its models were shown.

    Args:
        ask: What the user asks.
        first, then: The call that an agent begins with, and those after failures.
        heeded: The call it begins with where its guidelines match `holds`.
    """

    agent: str = ""
    tool: str = ""
    ask: str = ""
    first: dict[str, Any] = field(default_factory=dict)
    heeded: dict[str, Any] | None = None
    then: list[dict[str, Any]] = field(default_factory=list)
    holds: str = ""
    checks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    shown: dict[str, list[str]] = field(default_factory=dict)
    """Who was called → the guidelines in its first prompt of the turn."""
    failed: int = 0
    calls: int = 0
    worker: BaseChatModel | None = None
    """What decides for the agent that the question is for; None: the calls above do."""


class PolicyModel(BaseChatModel):
    """The model of all four; it knows its part by the tools that are bound to it."""

    policy: Any = Field(repr=False)

    @property
    def _llm_type(self) -> str:
        return "policy"

    def bind_tools(self, tools: Any, *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        tools = {each["function"]["name"] for each in kwargs.get("tools", ())}
        policy: Policy = self.policy
        policy.calls += 1
        who = next((name for name, own in _PARTS.items() if own in tools), "")
        policy.shown.setdefault(who, guidelines_in(messages))
        if who == policy.agent and policy.worker is not None:
            said = self._asked(policy.worker, messages, kwargs["tools"])
        else:
            said = self._lead(messages) if who == "supervisor" else self._work(messages, who)
        said = said.model_copy(update={"id": f"policy-{policy.calls}"})
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _lead(self, messages: Sequence[BaseMessage]) -> AIMessage:
        heard = {m.name for m in since_request(messages) if isinstance(m, ToolMessage)}
        for agent in AGENTS:
            if HANDOFF_PREFIX + agent not in heard:
                return self._call(HANDOFF_PREFIX + agent, {"task": self.policy.ask})
        return AIMessage("Done.")

    def _work(self, messages: Sequence[BaseMessage], who: str) -> AIMessage:
        policy: Policy = self.policy
        if who != policy.agent:
            return AIMessage("Nothing for me to do.")
        tried = [m for m in since_request(messages) if isinstance(m, ToolMessage) and m.name == policy.tool]
        if not tried:
            own = "\n".join(guidelines_in(messages))
            is_told = policy.heeded is not None and re.search(policy.holds, own)
            return self._call(policy.tool, policy.heeded if is_told and policy.heeded else policy.first)
        if tried[-1].status != "error":
            return AIMessage("Found.")
        policy.failed += 1
        left = policy.then[len(tried) - 1 :]
        return self._call(policy.tool, left[0]) if left else AIMessage("I cannot do it.")

    def _asked(
        self, worker: BaseChatModel, messages: list[BaseMessage], tools: list[dict[str, Any]]
    ) -> AIMessage:
        heard = [m for m in since_request(messages) if isinstance(m, ToolMessage)]
        if heard and heard[-1].name == self.policy.tool and heard[-1].status == "error":
            self.policy.failed += 1
        if len(heard) >= MOST_CALLS:
            return AIMessage("I cannot do it.")
        said = worker.bind_tools(tools).invoke(messages)
        assert isinstance(said, AIMessage)
        return said

    def _call(self, name: str, arguments: dict[str, Any]) -> AIMessage:
        call = tool_call(name=name, args=arguments, id=f"call-{self.policy.calls}")
        return AIMessage("", tool_calls=[call])


_PARTS = {
    "supervisor": HANDOFF_PREFIX + "text2sql",
    "text2sql": "run_sql",
    "statistics": "draw_chart",
    "analysis": "read_result",
}


def seeded(agent: str, policy: Policy) -> list[BaseTool]:
    """An agent's tools with faults: a call fails whose argument is not as the tool's check wants it."""
    made: dict[str, BaseTool] = {}
    for fault in faults():
        name = fault["tool"]
        if fault["agent"] == agent and fault["checks"] and name not in made:
            calls = [*fault["first"]["calls"], fault["second"]["bad"], fault["second"]["good"]]
            made[name] = _tool(name, {key for call in calls for key in call}, policy)
    return list(made.values())


def _tool(name: str, arguments: set[str], policy: Policy) -> BaseTool:
    def work(**given: Any) -> str:
        for check in policy.checks.get(name, ()):
            value = given.get(check["argument"])
            if value is None or not re.search(check["must"], str(value)):
                raise ToolException(check["error"].replace("{value}", repr(value)))
        return "3 rows"

    fields: dict[str, Any] = dict.fromkeys(sorted(arguments), (Any, None))
    made = StructuredTool.from_function(
        work,
        name=name,
        description=f"The tool {name}.",
        args_schema=create_model(name, **fields),
        handle_tool_error=True,
    )
    return made


def build(policy: Policy, folder: Path) -> StateGraph[CustomState]:
    """The team as `agents/team.py` builds it, with a small database and the seeded tools beside its own."""
    database = folder / "flights.sqlite"
    if not database.exists():
        _make(database)
    model = PolicyModel(policy=policy)

    class Text2SQL(Text2SQLAgent):
        def _init_tools(self) -> list[BaseTool]:
            return [*super()._init_tools(), *seeded("text2sql", policy)]

    class Statistics(StatisticsAgent):
        def _init_tools(self) -> list[BaseTool]:
            return [*super()._init_tools(), *seeded("statistics", policy)]

    class Analysis(AnalysisAgent):
        name: ClassVar[str] = "analysis"

        def _init_tools(self) -> list[BaseTool]:
            return [*super()._init_tools(), *seeded("analysis", policy)]

    supervisor = SupervisorAgent(model)
    members: list[Member] = [
        Text2SQL(model, database=database, output_dir=folder),
        Statistics(model, output_dir=folder),
        Analysis(model, output_dir=folder),
    ]
    graph = StateGraph(CustomState)
    graph.add_node("supervisor", supervisor.as_node())
    graph.add_edge(START, "supervisor")
    for member in members:
        graph.add_node(member.name, member.as_node())
        graph.add_edge(member.name, "supervisor")
    graph.add_conditional_edges("supervisor", supervisor.next_node, ["supervisor", *AGENTS, END])
    return graph


def _make(path: Path) -> None:
    """The team's tables without rows: what fails is a column's name."""
    tables = re.findall(r"(\w+)\(([^)]*)\)", SCHEMA)
    with closing(sqlite3.connect(path)) as connection:
        for name, columns in tables:
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns.split(','))})")
        connection.commit()
