"""What the three sub-agents share: being a node, and reading each other's results."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import ToolException

from common.memory_state import CustomState
from common.messages import fold_reports, stable_id
from common.reports import Figures

__all__ = ["AGENTS", "Member", "ResultFolder", "Run"]

AGENTS = ("text2sql", "statistics", "analysis")


@dataclass(frozen=True)
class Run:
    """What one sub-agent said and did while it was at work.

    Args:
        agent: Its name.
        text: Its last words.
        artifacts: What its tools returned beside their text, in order.
    """

    agent: str
    text: str
    artifacts: tuple[Any, ...]

    def as_message(self, state: CustomState) -> AIMessage:
        """The one message that the rest of the team sees."""
        handoff = state["messages"][-1].id or ""
        return AIMessage(self.text, name=self.agent, id=stable_id("ai", self.agent, handoff, self.text))

    def as_update(self, state: CustomState) -> dict[str, Any]:
        """The message, and the side effects of this turn with this agent's at the end."""
        added = [effect for artifact in self.artifacts for effect in artifact]
        return {
            "messages": [self.as_message(state)],
            "side_effects": [*state.get("side_effects", []), *added],
        }


class Member(ABC):
    """A sub-agent that is a node: it reads the state's messages and adds one of its own."""

    name: ClassVar[str]
    agent: Runnable[Any, Any]

    @abstractmethod
    def update(self, state: CustomState, run: Run) -> dict[str, Any]:
        """The change to the state that follows from one run."""

    def run(self, state: CustomState) -> dict[str, Any]:
        """Work on the task handed over last."""
        messages = fold_reports(state["messages"], AGENTS)
        result = self.agent.invoke({"messages": messages})
        return self.update(state, self._run_of(result["messages"], after=len(messages)))

    async def arun(self, state: CustomState) -> dict[str, Any]:
        """`run`, for an event loop."""
        messages = fold_reports(state["messages"], AGENTS)
        result = await self.agent.ainvoke({"messages": messages})
        return self.update(state, self._run_of(result["messages"], after=len(messages)))

    def as_node(self) -> Runnable[CustomState, dict[str, Any]]:
        """Both ways of running as one node."""
        return RunnableLambda(self.run, afunc=self.arun, name=self.name)

    def _run_of(self, messages: list[BaseMessage], *, after: int) -> Run:
        new = messages[after:]
        artifacts = (message.artifact for message in new if isinstance(message, ToolMessage))
        return Run(
            agent=self.name,
            text=messages[-1].text,
            artifacts=tuple(artifact for artifact in artifacts if artifact is not None),
        )


@dataclass(frozen=True)
class ResultFolder:
    """The only folder whose files agents may read: a path named in a message is not to be trusted."""

    folder: Path

    def read(self, csv_path: str) -> Figures:
        """Read a result of this team.

        Raises:
            ToolException: The path is outside the folder, or there is no such file.
        """
        path = Path(csv_path)
        if path.suffix != ".csv" or path.resolve().parent != self.folder.resolve() or not path.is_file():
            raise ToolException(f"{csv_path!r} is no query result; name the file from text2sql's report")
        with path.open(encoding="utf-8", newline="") as lines:
            header, *rows = csv.reader(lines)
        return Figures(tuple(header), tuple(tuple(row) for row in rows))
