"""Analysis: the agent that concludes, and shows what the conclusion rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool

from agents.member import Member, ResultFolder, Run
from common.memory_state import AnalysisMemory, CustomState
from common.messages import last_request
from common.reports import to_csv

__all__ = ["AnalysisAgent"]

PROMPT = """\
You are analysis. You conclude from the result that text2sql left in a CSV file.

- Call read_result with the file named in text2sql's report.
- First paragraph: what the figures say about the user's question, with the figures.
- Then an empty line, and the evidence: the SQL in a code fence, "File: <path>", and "Chart: <path>" if
  statistics drew one.
- Respect what the user and the notes above the conversation wish for. Invent no figures.
"""
CITED_ROWS = 10


class AnalysisAgent(Member):
    """Writes a conclusion that cites SQL, file and figures.

    Args:
        model: Any chat model that can call tools.
        output_dir: Where results lie.
    """

    name = "analysis"

    def __init__(self, model: BaseChatModel, *, output_dir: Path) -> None:
        self.model = model
        self.results = ResultFolder(output_dir)
        self.tools = self._init_tools()
        self.agent = self._init_agent()

    def _init_tools(self) -> list[BaseTool]:
        @tool(response_format="content_and_artifact")
        def read_result(csv_path: str) -> tuple[str, tuple[str, ...]]:
            """Read a query result.

            Args:
                csv_path: The CSV file named in text2sql's report.
            """
            figures = self.results.read(csv_path)
            cited = tuple(": ".join((row[0], row[-1])[-len(row) :]) for row in figures.rows[:CITED_ROWS])
            return f"```csv\n{to_csv(figures.columns, figures.rows)}```", cited

        read_result.handle_tool_error = True
        return [read_result]

    def _init_agent(self) -> Runnable[Any, Any]:
        return create_agent(self.model, self.tools, system_prompt=PROMPT, name=self.name, checkpointer=False)

    def update(self, state: CustomState, run: Run) -> dict[str, Any]:
        """The conclusion as words for the supervisor and as a value for whoever keeps it."""
        left = state.get("side_effects", [])
        figures = next((artifact for artifact in reversed(run.artifacts)), ())
        memory = AnalysisMemory(
            question=last_request(state["messages"]),
            conclusion=run.text.split("\n\n", 1)[0],
            sql=_latest(left, "sql", "sql"),
            csv_path=_latest(left, "csv", "path"),
            chart_path=_latest(left, "chart", "path"),
            figures=figures,
        )
        return {"messages": [run.as_message(state)], "analysis": memory}


def _latest(side_effects: list[dict[str, Any]], kind: str, key: str) -> str:
    return next((str(effect[key]) for effect in reversed(side_effects) if effect["type"] == kind), "")
