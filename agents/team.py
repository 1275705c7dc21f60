"""The team as one graph: a supervisor and three agents that report to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph

from agents.analysis import AnalysisAgent
from agents.member import AGENTS, Member
from agents.statistics import StatisticsAgent
from agents.supervisor import SupervisorAgent
from agents.text2sql import Text2SQLAgent
from common.database import ensure_database
from common.llm import chat_model
from common.memory_state import CustomState

__all__ = ["DEFAULT_OUTPUT", "build_team"]

DEFAULT_OUTPUT = Path(".demo/results")


def build_team(
    model: BaseChatModel | None = None,
    *,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    database: str | os.PathLike[str] | None = None,
    output_dir: str | os.PathLike[str] | None = None,
) -> StateGraph[CustomState]:
    """Build the graph, not yet compiled.

    Args:
        model: The chat model of all four; None takes `chat_model()`.
        tools: More tools for the supervisor. They run in a node `tools`, which exists only with them.
        database: The SQLite file, built when missing; None means `DEFAULT_DATABASE`.
        output_dir: Where CSV and PNG files go; None means `DEFAULT_OUTPUT`.
    """
    model = model or chat_model()
    output = Path(output_dir) if output_dir is not None else DEFAULT_OUTPUT
    supervisor = SupervisorAgent(model, tools=tools)
    members: list[Member] = [
        Text2SQLAgent(model, database=ensure_database(database), output_dir=output),
        StatisticsAgent(model, output_dir=output),
        AnalysisAgent(model, output_dir=output),
    ]
    graph = StateGraph(CustomState)
    graph.add_node("supervisor", supervisor.as_node())
    graph.add_edge(START, "supervisor")
    for member in members:
        graph.add_node(member.name, member.as_node())
        graph.add_edge(member.name, "supervisor")
    tool_node = supervisor.tool_node()
    after_supervisor = ["supervisor", *AGENTS, END]
    if tool_node is not None:
        graph.add_node("tools", tool_node)
        graph.add_edge("tools", "supervisor")
        after_supervisor.append("tools")
    graph.add_conditional_edges("supervisor", supervisor.next_node, after_supervisor)
    return graph
