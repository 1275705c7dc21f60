"""Small pure questions about a list of messages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

__all__ = ["HANDOFF_PREFIX", "fold_reports", "is_new_turn", "last_request", "since_request", "stable_id"]

HANDOFF_PREFIX = "transfer_to_"


def stable_id(kind: str, *parts: str) -> str:
    """An id that is the same whenever `parts` are the same."""
    digest = hashlib.sha256("\x1f".join((kind, *parts)).encode()).hexdigest()
    return f"{kind}_{digest[:24]}"


def last_request(messages: Sequence[BaseMessage]) -> str:
    """The user's latest words; empty when the user has said nothing."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return message.text
    return ""


def since_request(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What was said after the user's latest words."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            return list(messages[index + 1 :])
    return list(messages)


def is_new_turn(messages: Sequence[BaseMessage]) -> bool:
    """Whether nobody on the team has answered the latest request yet."""
    return not any(isinstance(message, AIMessage) for message in since_request(messages))


def fold_reports(messages: Sequence[AnyMessage], agents: Sequence[str]) -> list[AnyMessage]:
    """Show each agent's report as the answer to the handoff that asked for it.

    The state keeps a report as a message of its own. Several providers refuse a history that ends
    with, or repeats, the assistant's turn, so models read it as the handoff tool's answer.
    """
    folded: list[AnyMessage] = []
    for message in messages:
        receipt = folded[-1] if folded else None
        if (
            isinstance(message, AIMessage)
            and message.name in agents
            and isinstance(receipt, ToolMessage)
            and receipt.name == f"{HANDOFF_PREFIX}{message.name}"
        ):
            folded[-1] = receipt.model_copy(update={"content": message.text})
        else:
            folded.append(message)
    return folded
