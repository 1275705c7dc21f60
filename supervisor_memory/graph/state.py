"""Reading and changing the messages of a graph's state, whatever shape state and node results have."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langgraph.types import Command, Send
from pydantic import BaseModel

from supervisor_memory.records import Note

__all__ = ["MARK", "TOOL_NAMES", "is_ours", "messages_of", "new_messages", "strip", "value_of", "with_note"]

MARK = "supervisor_memory"
TOOL_NAMES = frozenset(
    {"memory_search", "memory_write", "memory_update", "memory_delete", "memory_route", "memory_summarize"}
)


def is_ours(message: object) -> bool:
    """Whether it is a note that we injected."""
    return isinstance(message, BaseMessage) and message.additional_kwargs.get(MARK) is True


def value_of(state: Any, key: str) -> Any:
    """A value of a state that is a dictionary, a dataclass or a pydantic model; None when absent."""
    return state.get(key) if isinstance(state, dict) else getattr(state, key, None)


def messages_of(state: Any, key: str) -> list[BaseMessage]:
    """The messages of a state; empty when it has none."""
    found = value_of(state, key)
    return [m for m in found if isinstance(m, BaseMessage)] if isinstance(found, (list, tuple)) else []


def with_note(state: Any, note: Note, key: str, *, redact: bool) -> Any:
    """The state as its reader shall see it: our note first, no older note, no memory call of others.

    Args:
        redact: Whether to hide the supervisor's own memory calls and their results.
    """
    found = value_of(state, key)
    if not isinstance(found, (list, tuple)):
        return state
    kept = [message for message in found if not is_ours(message)]
    if redact:
        kept = without_memory_calls(kept)
    return _replaced(state, key, [note_message(note), *kept] if note else kept)


def note_message(note: Note) -> SystemMessage:
    """A note as a system message that we know again."""
    mark = hashlib.sha256(note.text.encode()).hexdigest()[:12]
    return SystemMessage(note.text, id=f"memory-note-{mark}", additional_kwargs={MARK: True})


def without_memory_calls(messages: Sequence[Any]) -> list[Any]:
    """The messages without calls of memory tools and their answers."""
    calls = {
        call["id"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] in TOOL_NAMES
    }
    if not calls:
        return list(messages)
    kept: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in calls:
            continue
        if isinstance(message, AIMessage) and any(call["id"] in calls for call in message.tool_calls):
            others = [call for call in message.tool_calls if call["id"] not in calls]
            if not others and not message.text:
                continue
            message = message.model_copy(update={"tool_calls": others})  # noqa: PLW2901
        kept.append(message)
    return kept


def strip(result: Any, key: str) -> Any:
    """A node's result without our notes: a state, a Command, a Send, or a list of these."""
    if isinstance(result, Command):
        return dataclasses.replace(
            result, update=strip(result.update, key), goto=_strip_goto(result.goto, key)
        )
    if isinstance(result, Send):
        return Send(result.node, strip(result.arg, key))
    if isinstance(result, (list, tuple)) and any(isinstance(item, (Command, Send)) for item in result):
        return type(result)(strip(item, key) for item in result)
    if _is_pairs(result):
        return [
            (name, [m for m in value if not is_ours(m)]) if name == key else (name, value)
            for name, value in result
        ]
    found = value_of(result, key) if _is_state(result) else None
    if isinstance(found, (list, tuple)) and any(is_ours(message) for message in found):
        return _replaced(result, key, [message for message in found if not is_ours(message)])
    return result


def new_messages(state: Any, result: Any, key: str) -> list[BaseMessage]:
    """What a node added to the messages."""
    before = {message.id for message in messages_of(state, key) if message.id}
    held = {id(message) for message in messages_of(state, key)}
    added: list[BaseMessage] = []
    for update in updates_of(result):
        found = value_of(update, key)
        listed: Iterable[Any] = found if isinstance(found, (list, tuple)) else [found]
        added += [
            m for m in listed if isinstance(m, BaseMessage) and m.id not in before and id(m) not in held
        ]
    return added


def updates_of(result: Any) -> list[Any]:
    """The state updates inside a node's result."""
    if isinstance(result, Command):
        return updates_of(result.update)
    if _is_pairs(result):
        return [dict(result)]
    if isinstance(result, (list, tuple)):
        return [update for item in result for update in updates_of(item)]
    return [result] if _is_state(result) else []


def _strip_goto(goto: Any, key: str) -> Any:
    if isinstance(goto, Send):
        return strip(goto, key)
    if isinstance(goto, (list, tuple)):
        return [strip(each, key) if isinstance(each, Send) else each for each in goto]
    return goto


def _is_pairs(result: Any) -> bool:
    pair: Callable[[Any], bool] = lambda item: isinstance(item, tuple) and len(item) == 2  # noqa: E731, PLR2004
    return isinstance(result, (list, tuple)) and bool(result) and all(pair(item) for item in result)


def _is_state(result: Any) -> bool:
    is_instance = dataclasses.is_dataclass(result) and not isinstance(result, type)
    return isinstance(result, (dict, BaseModel)) or is_instance


def _replaced(state: Any, key: str, messages: list[Any]) -> Any:
    if isinstance(state, dict):
        return {**state, key: messages}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: messages})
    if dataclasses.is_dataclass(state):
        return cast("Any", dataclasses.replace)(state, **{key: messages})
    return state
