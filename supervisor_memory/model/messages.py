"""Read messages of any shape: text, dictionaries, LangChain's classes."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Message

__all__ = ["LONGEST_READ", "MessagesLike", "as_messages", "last_user_text", "readable"]

LONGEST_READ = 65_536
"""Characters of a message that are read at most; the rest is ignored."""

Role = Literal["user", "assistant", "system", "tool"]
MessagesLike: TypeAlias = "str | Message | Mapping[str, Any] | Sequence[Any]"
"""A text (the user's), a message, or a list of these."""

_LONGEST_NAME = 128
_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


def as_messages(value: MessagesLike) -> tuple[Message, ...]:
    """Read messages of any shape.

    Raises:
        InvalidContent: an item is no message; the error names its place.
    """
    if isinstance(value, (list, tuple)) and not _is_pair(value):
        return tuple(_one(item, f"messages[{index}]") for index, item in enumerate(value))
    return (_one(value, "messages"),)


def readable(value: MessagesLike) -> tuple[Message, ...]:
    """Read the messages among values of a graph's state; other values are left out."""
    several = value if isinstance(value, (list, tuple)) and not _is_pair(value) else (value,)
    found: list[Message] = []
    for item in several:
        with contextlib.suppress(InvalidContent):
            found.append(_one(item, "messages"))
    return tuple(found)


def last_user_text(messages: Sequence[Message]) -> str:
    """The user's latest text; "" if there is none."""
    return next((m.content for m in reversed(messages) if m.role == "user"), "")


def _is_pair(value: Sequence[Any]) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES  # noqa: PLR2004


def _one(value: Any, where: str) -> Message:
    if isinstance(value, Message) and isinstance(value.content, str):
        return value
    if isinstance(value, str):
        return Message("user", value)
    if _is_pair(value):
        return Message(_ROLES[value[0]], _text(value[1], where))
    if isinstance(value, Mapping):
        role, content, name, id_ = (value.get(k) for k in ("role", "content", "name", "id"))
        role = role or value.get("type")
    else:
        role = getattr(value, "type", None)
        role = role if isinstance(role, str) and _plain(role) in _ROLES else getattr(value, "role", role)
        content, name, id_ = (getattr(value, k, None) for k in ("content", "name", "id"))
    if not isinstance(role, str) or _plain(role) not in _ROLES:
        raise InvalidContent(
            f"{where} is {type(value).__name__} with role {role!r}; pass text, "
            "{'role': 'user' | 'assistant' | 'system' | 'tool', 'content': …} or a LangChain message",
            where=where,
        )
    return Message(_ROLES[_plain(role)], _text(content, where), _name(name), _name(id_))


def _plain(role: str) -> str:
    return role.lower().removesuffix("messagechunk")


def _name(value: object) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) and value else None


def _text(content: Any, where: str) -> str:
    """The text of a content, a string or a list of blocks; images and tool calls have none."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, (list, tuple)):
        parts = (block.get("text") if isinstance(block, Mapping) else block for block in content)
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    raise InvalidContent(f"{where} has content of type {type(content).__name__}; pass text", where=where)
