from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from agents.team import build_team
from common.llm import RuleBasedChatModel
from common.memory_state import CustomState

__all__ = ["Ask", "ask"]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(flights: Path, tmp_path: Path) -> Ask:
    """Ask the team one question, with a note above it if one is given."""
    graph = build_team(RuleBasedChatModel(), database=flights, output_dir=tmp_path).compile()

    def ask(question: str, *, note: str = "") -> dict[str, Any]:
        messages: list[AnyMessage] = [HumanMessage(question, id="question")]
        if note:
            messages.insert(0, SystemMessage(note, id="note"))
        state: CustomState = {"messages": messages, "user_id": "u1"}
        return graph.invoke(state)

    return ask
