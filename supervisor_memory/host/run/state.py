"""Read the messages of a graph's state, whatever shape the state and the nodes' results have."""

import copy
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

from supervisor_memory.model.records import Note

TOOL_NAMES = frozenset(
    {"memory_search", "memory_write", "memory_update", "memory_delete", "memory_route", "memory_summarize"}
)
WITHOUT_MESSAGES = (
    "%s has no %s, so nothing can be recalled or kept; its keys are %s. "
    "Pass messages_key= with the one that holds the messages"
)
_USUAL = frozenset((HumanMessage, AIMessage, SystemMessage, ToolMessage))
"""The classes of nearly all messages: pydantic takes a while to tell a message from what is none."""
_LANGMEM_TOOLS = frozenset({"manage_memory", "search_memory"})
_NOTE_ID = "supervisor-memory-note"


def is_memory_name(name: str) -> bool:
    """Whether a tool of that name reads or writes long-term memory."""
    return name in TOOL_NAMES or name in _LANGMEM_TOOLS or name.startswith(("memory_", "memory."))


def as_keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    """State keys as a tuple; a single key may be given as a string."""
    return (keys,) if isinstance(keys, str) else tuple(keys)


def keys_of(builder: Any) -> str:
    """The keys of a graph's state, as a list for a log message or an error."""
    known = [repr(name) for name in builder.channels if not name.startswith(("__", "branch:"))]
    return ", ".join(known) or "(none)"


def value_of(state: Any, key: str) -> Any:
    """A value of a state that is a dictionary, a dataclass or a pydantic model; None when absent."""
    return state.get(key) if isinstance(state, dict) else getattr(state, key, None)


def messages_of(state: Any, keys: Sequence[str]) -> list[BaseMessage]:
    """The messages under some keys of a state, in their order, also those in a short form."""
    return [message for key in keys for _, message in _listed(value_of(state, key))]


def _listed(value: Any) -> list[tuple[Any, BaseMessage]]:
    """Each item that LangGraph would take for a message: the item itself, and the message."""
    if isinstance(value, Overwrite):
        return _listed(value.value)
    is_many = isinstance(value, list) or (isinstance(value, tuple) and not _is_short(value))
    is_one = not is_many and (isinstance(value, (str, dict, BaseMessage)) or _is_short(value))
    items: Sequence[Any] = value if is_many else [value] if is_one else []
    return [(item, message) for item in items if (message := _as_message(item)) is not None]


def _is_short(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)  # noqa: PLR2004


def _as_message(item: Any) -> BaseMessage | None:
    """Read a message, also a short form: "text", ("user", "text"), {"role": "user", …}; None for others."""
    if type(item) in _USUAL:
        usual: BaseMessage = item
        return usual
    if isinstance(item, ChatMessage) and item.role in ("user", "human"):
        return HumanMessage(item.content, id=item.id)
    if isinstance(item, BaseMessage):
        return item
    if not (item and isinstance(item, (str, dict))) and not _is_short(item):
        return None
    try:
        return convert_to_messages([item])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):  # no message: the host will handle it
        return None


def with_first(state: Any, note: Note, key: str) -> Any:
    """A copy of a state whose first message is the note, under an id of its own."""
    found = value_of(state, key)
    if not note or not isinstance(found, (list, tuple)):
        return state
    return _replaced(state, {key: [SystemMessage(note.text, id=_NOTE_ID), *found]})


def without_first(result: Any, key: str) -> Any:
    """A node's result without the message that `with_first` put into its state."""
    if isinstance(result, Command):
        return dataclasses.replace(result, update=without_first(result.update, key))
    if isinstance(result, list) and any(isinstance(item, Command) for item in result):
        return [without_first(item, key) for item in result]
    if _is_pairs(result):
        return [(name, _without_note(held) if name == key else held) for name, held in result]
    held = value_of(result, key) if is_state(result) else None
    left = _without_note(held)
    return result if left is held else _replaced(result, {key: left})


def _without_note(held: Any) -> Any:
    if isinstance(held, Overwrite):
        left = _without_note(held.value)
        return held if left is held.value else Overwrite(left)
    is_one = getattr(held, "id", None) == _NOTE_ID
    items = [held] if is_one else held if isinstance(held, (list, tuple)) else []
    left = [item for item in items if getattr(item, "id", None) != _NOTE_ID]
    return left if len(left) < len(items) else held


def sent_state(state: Any) -> Any:
    """The state of a tool node's input, which for a single call by `Send` stands beside the call."""
    is_sent = isinstance(state, dict) and state.get("__type") == "tool_call_with_context"
    return state["state"] if is_sent else state


def memory_calls(messages: Sequence[BaseMessage]) -> frozenset[str]:
    """The ids of the calls of memory tools among messages."""
    return frozenset(
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if is_memory_name(call["name"])
    )


def without_calls(messages: Sequence[BaseMessage], calls: Collection[str]) -> list[BaseMessage]:
    """The messages without some tool calls and their answers."""
    kept: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in calls:
            continue
        if isinstance(message, AIMessage) and any(call["id"] in calls for call in message.tool_calls):
            message = _cut(message, calls)  # noqa: PLW2901
            if not message.tool_calls and not message.text:
                continue
        kept.append(message)
    return kept


def _cut(message: AIMessage, calls: Collection[str]) -> AIMessage:
    extra = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    content = message.content
    if isinstance(content, list):  # where a provider repeats the calls
        content = [
            block
            for block in content
            if isinstance(block, str) or not {block.get("id"), block.get("call_id")} & set(calls)
        ]
    left = [call for call in message.tool_calls if call["id"] not in calls]
    return message.model_copy(update={"tool_calls": left, "content": content, "additional_kwargs": extra})


def new_messages(state: Any, result: Any, keys: Sequence[str]) -> list[BaseMessage]:
    """The messages that a node added."""
    earlier = [pair for key in keys for pair in _listed(value_of(state, key))]
    before = {message.id for _, message in earlier if message.id}
    held = {id(item) for item, _ in earlier}
    listed = [
        each for update in updates_of(result) for key in keys for each in _listed(value_of(update, key))
    ]
    return [message for item, message in listed if message.id not in before and id(item) not in held]


def updates_of(result: Any) -> list[Any]:
    """The state updates inside a node's result."""
    if isinstance(result, Command):
        return updates_of(result.update)
    if _is_pairs(result):
        return [dict(result)]
    if isinstance(result, (list, tuple)):
        return [update for item in result for update in updates_of(item)]
    return [result] if is_state(result) else []


def values_of(state: Any) -> dict[str, Any]:
    """The values of a state that is a dictionary, a dataclass or a pydantic model, by name."""
    if isinstance(state, dict):
        return state
    if isinstance(state, BaseModel):
        return vars(state)
    if not is_state(state):
        return {}
    return {each.name: getattr(state, each.name, None) for each in dataclasses.fields(state)}


def with_input(held: Any, given: Any) -> dict[str, Any]:
    """The values of a state with an input applied: lists are joined, other values are replaced."""
    old, new = values_of(held), values_of(given)
    both = {
        name: [*old[name], *value]
        for name, value in new.items()
        if isinstance(value, list) and isinstance(old.get(name), list)
    }
    return {**old, **new, **both}


def is_state(result: Any) -> bool:
    """Whether a value can be a state or an update: a dictionary, a dataclass or a pydantic model."""
    is_instance = dataclasses.is_dataclass(result) and not isinstance(result, type)
    return isinstance(result, (dict, BaseModel)) or is_instance


def _is_pairs(result: Any) -> bool:
    return (
        isinstance(result, (list, tuple))
        and bool(result)
        and all(isinstance(item, tuple) and len(item) == 2 for item in result)  # noqa: PLR2004
    )


def _replaced(state: Any, values: dict[str, Any]) -> Any:
    if isinstance(state, dict):
        return {**state, **values}
    if isinstance(state, BaseModel):
        return state.model_copy(update=values)
    clone = copy.copy(state)
    for name, value in values.items():
        object.__setattr__(clone, name, value)  # frozen or not
    return clone
