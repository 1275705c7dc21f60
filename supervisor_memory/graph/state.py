"""Reading and changing the messages of a graph's state, whatever shape state and node results have."""

import copy
import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Command, Overwrite, Send
from pydantic import BaseModel

from supervisor_memory.recall.format import FENCE, strip_notes
from supervisor_memory.records import Note

__all__ = [
    "FENCE_START",
    "TOOL_NAMES",
    "as_agents",
    "is_agents",
    "is_memory_name",
    "is_note",
    "is_ours",
    "is_state",
    "messages_of",
    "new_messages",
    "rewrite",
    "scrubbed",
    "strip",
    "updates_of",
    "value_of",
    "values_of",
    "with_note",
    "without_memory_calls",
]

MARK = "supervisor_memory"
TOOL_NAMES = frozenset(
    {"memory_search", "memory_write", "memory_update", "memory_delete", "memory_route", "memory_summarize"}
)


Ours: TypeAlias = Callable[[object], bool]
_LANGMEM_TOOLS = frozenset({"manage_memory", "search_memory"})
_NOTE_ID = "memory-note-"
_MOST_PARTS = 20_000
FENCE_START = f"<{FENCE} id="  # as strip_notes looks for it


def is_memory_name(name: str) -> bool:
    """Whether a tool of that name reads or writes long-term memory."""
    return name in TOOL_NAMES or name in _LANGMEM_TOOLS or name.startswith(("memory_", "memory."))


def is_note(message: object) -> bool:
    """Whether it is a note that we injected, or the removal of one."""
    if not isinstance(message, BaseMessage):
        return False
    if message.additional_kwargs.get(MARK) == "note" or (message.id or "").startswith(_NOTE_ID):
        return True
    return isinstance(message, SystemMessage) and bool(message.text) and not strip_notes(message.text)


def is_ours(message: object) -> bool:
    """Whether it is a note, or a message that we cut."""
    is_cut = isinstance(message, AIMessage) and message.additional_kwargs.get(MARK) == "cut"
    return is_cut or is_note(message)


def value_of(state: Any, key: str) -> Any:
    """A value of a state that is a dictionary, a dataclass or a pydantic model; None when absent."""
    return state.get(key) if isinstance(state, dict) else getattr(state, key, None)


def messages_of(state: Any, key: str) -> list[BaseMessage]:
    """The messages of a state, in whatever short form they are written; empty when it has none."""
    return [message for _, message in _listed(value_of(state, key))]


def _listed(value: Any) -> list[tuple[Any, BaseMessage]]:
    """Each item of what LangGraph takes for messages, as it stands there, and as a message."""
    if isinstance(value, Overwrite):
        return _listed(value.value)
    is_one = isinstance(value, (str, dict, BaseMessage)) or _is_short(value)
    items: Sequence[Any] = [value] if is_one else value if isinstance(value, (list, tuple)) else []
    return [(item, message) for item in items if (message := _as_message(item)) is not None]


def _is_short(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)  # noqa: PLR2004


def _as_message(item: Any) -> BaseMessage | None:
    """A message that somebody wrote in short: "text", ("user", "text") or {"role": "user", …}."""
    if isinstance(item, BaseMessage):
        return item
    if not (item and isinstance(item, (str, dict))) and not _is_short(item):
        return None
    try:
        return convert_to_messages([item])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):  # it is none, and the host's to handle
        return None


def with_note(state: Any, note: Note, key: str, *, redact: bool) -> Any:
    """The state as its reader shall see it: our note first, no older note, no memory call of others.

    Args:
        redact: Whether to hide the supervisor's own memory calls and their results.
    """
    found = value_of(state, key)
    if not isinstance(found, (list, tuple)):
        return state
    kept = [message for message in found if not is_note(message)]
    if redact:
        kept = without_memory_calls(kept)
    return _replaced(state, {key: [note_message(note), *kept] if note else kept})


def note_message(note: Note) -> SystemMessage:
    """A note as a system message that we know again."""
    mark = hashlib.sha256(note.text.encode()).hexdigest()[:12]
    return SystemMessage(note.text, id=f"{_NOTE_ID}{mark}", additional_kwargs={MARK: "note"})


def without_memory_calls(messages: Sequence[Any]) -> list[Any]:
    """The messages without calls of memory tools and their answers."""
    calls = {
        call["id"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if is_memory_name(call["name"])
    }
    if not calls:
        return list(messages)
    kept: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in calls:
            continue
        if isinstance(message, AIMessage) and any(call["id"] in calls for call in message.tool_calls):
            message = _cut(message, calls)  # noqa: PLW2901
            if not message.tool_calls and not message.text:
                continue
        kept.append(message)
    return kept


def _cut(message: AIMessage, calls: Collection[str | None]) -> AIMessage:
    """A message without some of its calls, marked as ours: going back to the state, it would replace the
    whole one there."""
    extra = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    content = message.content
    if isinstance(content, list):  # where a provider repeats the calls
        content = [
            block
            for block in content
            if isinstance(block, str) or not {block.get("id"), block.get("call_id")} & set(calls)
        ]
    return message.model_copy(
        update={
            "tool_calls": [call for call in message.tool_calls if call["id"] not in calls],
            "content": content,
            "additional_kwargs": {**extra, MARK: "cut"},
        }
    )


def strip(result: Any, ours: Ours = is_ours, *, user: str | None = None) -> Any:
    """What enters or leaves a node without what is ours: a state, a Command, a Send, or a list of these.

    Args:
        user: Given: put in the place of any other `user_id`.
    """

    def kept(name: str, value: Any) -> Any:
        return user if name == "user_id" and user and value else _stripped(value, ours)

    return rewrite(result, kept)


def rewrite(result: Any, change: Callable[[str, Any], Any]) -> Any:
    """A node's result with its named values changed, in whatever shape they come.

    Args:
        change: (name, value) → the value to put there; the same object leaves it as it is.
    """

    def again(part: Any) -> Any:
        return rewrite(part, change)

    if isinstance(result, Command):
        return dataclasses.replace(
            result, update=again(result.update), goto=_rewrite_goto(result.goto, again)
        )
    if isinstance(result, Send):
        return _sent(result, again)
    if isinstance(result, (list, tuple)) and any(isinstance(item, (Command, Send)) for item in result):
        return type(result)(again(item) for item in result)
    if _is_pairs(result):
        return [(name, change(name, value)) for name, value in result]
    changed = {n: new for n, value in values_of(result).items() if (new := change(n, value)) is not value}
    return _replaced(result, changed) if changed else result


def _stripped(value: Any, ours: Ours) -> Any:
    """One value of a state."""
    if isinstance(value, Overwrite):
        new = _stripped(value.value, ours)
        return value if new is value.value else dataclasses.replace(value, value=new)
    if ours(value):
        return []
    if isinstance(value, (list, tuple)) and any(ours(item) for item in value):
        return [item for item in value if not ours(item)]
    return value


def scrubbed(value: Any) -> Any:
    """Any value without our notes, however deep: as messages, in copies of messages, in texts.

    The same object when there are none. It looks at 20,000 parts at most.
    """
    return _scrubbed(value, iter(range(_MOST_PARTS)))


def _scrubbed(value: Any, left: Iterator[int]) -> Any:
    if next(left, None) is None:
        return value
    match value:
        case str():
            return strip_notes(value) if FENCE_START in value else value
        case AIMessage():
            return value  # what a model says of it are the model's words
        case BaseMessage():
            held = value.content
            clean = _scrubbed(held, left)
            return value if clean is held else value.model_copy(update={"content": clean})
        case list() | tuple() if type(value) in (list, tuple):
            kept = [item for item in value if not is_ours(item)]
            new = [_scrubbed(item, left) for item in kept]
            same = len(new) == len(value) and all(a is b for a, b in zip(new, value, strict=True))
            return value if same else type(value)(new)
        case dict():
            changed = {k: new for k, v in value.items() if (new := _scrubbed(v, left)) is not v}
            return {**value, **changed} if changed else value
    return value


def as_agents(result: Any, state: Any, key: str) -> Any:
    """The result of an agent whose human messages bear a mark, so that nobody takes them for the user's."""
    held = {id(item) for item, _ in _listed(value_of(state, key))}

    def marked(item: Any) -> Any:
        message = None if id(item) in held else _as_message(item)
        if not isinstance(message, HumanMessage) or message.name:
            return item
        return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: "agent"}})

    def change(name: str, value: Any) -> Any:
        if name != key:
            return value
        if not isinstance(value, list):
            return marked(value)
        new = [marked(item) for item in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new

    return rewrite(result, change)


def is_agents(message: BaseMessage) -> bool:
    """Whether an agent said it as a human message."""
    return message.additional_kwargs.get(MARK) == "agent"


def new_messages(state: Any, result: Any, key: str) -> list[BaseMessage]:
    """What a node added to the messages."""
    earlier = _listed(value_of(state, key))
    before = {message.id for _, message in earlier if message.id}
    held = {id(item) for item, _ in earlier}
    listed = [each for update in updates_of(result) for each in _listed(value_of(update, key))]
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


def is_state(result: Any) -> bool:
    """Whether it can be a state or an update of one."""
    is_instance = dataclasses.is_dataclass(result) and not isinstance(result, type)
    return isinstance(result, (dict, BaseModel)) or is_instance


def _rewrite_goto(goto: Any, again: Callable[[Any], Any]) -> Any:
    if isinstance(goto, Send):
        return _sent(goto, again)
    if isinstance(goto, (list, tuple)):
        return [_sent(each, again) if isinstance(each, Send) else each for each in goto]
    return goto


def _sent(send: Send, again: Callable[[Any], Any]) -> Send:
    stripped = again(send.arg)
    if stripped is send.arg:
        return send
    clone = copy.copy(send)
    clone.arg = stripped
    return clone


def _is_pairs(result: Any) -> bool:
    pair: Callable[[Any], bool] = lambda item: isinstance(item, tuple) and len(item) == 2  # noqa: E731, PLR2004
    return isinstance(result, (list, tuple)) and bool(result) and all(pair(item) for item in result)


def _replaced(state: Any, values: dict[str, Any]) -> Any:
    if isinstance(state, dict):
        return {**state, **values}
    if isinstance(state, BaseModel):
        return state.model_copy(update=values)
    clone = copy.copy(state)
    for name, value in values.items():
        object.__setattr__(clone, name, value)  # frozen or not
    return clone
