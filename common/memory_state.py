"""What one run of the team carries, and the form in which Analysis hands over a conclusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import add_messages

__all__ = ["AnalysisMemory", "CustomState", "checkpoint_serializer"]


@dataclass(frozen=True)
class AnalysisMemory:
    """One conclusion with the evidence it rests on.

    Args:
        question: The user's words.
        conclusion: What Analysis concluded, in the language of the answer.
        sql: The statement the figures come from; empty when none ran.
        csv_path: File with the full query result; empty when none was written.
        chart_path: PNG drawn for the question; empty when none was asked for.
        figures: The first rows of the result as "label: value", unrounded, in result order.
        agent: Who concluded.
    """

    question: str
    conclusion: str
    sql: str = ""
    csv_path: str = ""
    chart_path: str = ""
    figures: tuple[str, ...] = ()
    agent: str = "analysis"

    def __post_init__(self) -> None:
        # A checkpoint returns sequences as lists; a value read back must equal the one written.
        object.__setattr__(self, "figures", tuple(self.figures))


class CustomState(TypedDict, total=False):
    """The team's state.

    `messages` is the only key that accumulates. `final_answer`, `side_effects` and `analysis` belong to
    one turn: the supervisor empties them when it first sees a new question, and each agent returns
    the whole list of side effects, its own at the end. They need no reducer, because agents
    work one after another.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    user_id: str
    user_name: str
    final_answer: str
    side_effects: list[dict[str, Any]]
    analysis: AnalysisMemory | None


def checkpoint_serializer() -> JsonPlusSerializer:
    """Serializer for a checkpointer of this state: `InMemorySaver(serde=checkpoint_serializer())`.

    LangGraph restores classes it was not told about with a warning, and means to refuse them later.
    """
    return JsonPlusSerializer(allowed_msgpack_modules=[AnalysisMemory])
