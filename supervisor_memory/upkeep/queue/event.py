"""An event: an observation that is not memory yet."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from supervisor_memory.model.records import Scope, SourceClass, content_hash, new_id

MAX_TEXT_BYTES: Final = 4_096
_EVENTS: Final = uuid.UUID("4b1d0f0a-6a52-5f7e-9d3c-2f9c6a7be0c1")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Event:
    """A tool's result, an agent's answer or a message, waiting to be read.

    Args:
        scope: Who acted: `agent_id` is the sub-agent; None: the supervisor or, for a message, the user.
        text: The observed text, at most 4 KB of UTF-8.
        source_class: Where it comes from: "tool", "agent" or "user".
        tool: The tool's name; None for other events.
        effects: The files and SQL named by a tool's call, in the form of an agent's `side_effects`.
        created_at: When it was observed, in seconds since 1970.
        turn_id: The id of the user's message that it answers.
        message_id: The id of the message, if it is a message with an id.
        ref_id: The id of the session message with the same words, if one was kept.
    """

    scope: Scope
    text: str
    source_class: SourceClass = "tool"
    tool: str | None = None
    effects: tuple[Mapping[str, Any], ...] = ()
    created_at: float = 0.0
    turn_id: str | None = None
    message_id: str | None = None
    ref_id: str | None = None
    id: str = field(default_factory=new_id)
    content_hash: str = ""

    def __post_init__(self) -> None:
        if not self.content_hash:
            object.__setattr__(self, "content_hash", content_hash(self.text))

    def to_dict(self) -> dict[str, Any]:
        """The event as a plain dictionary for JSON."""
        values = {name: getattr(self, name) for name in Event.__slots__}
        scope = {name: getattr(self.scope, name) for name in Scope.__slots__}
        return {**values, "scope": scope, "effects": [dict(each) for each in self.effects]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Event":
        """The reverse of `to_json`."""
        values = json.loads(text)
        return cls(
            **{**values, "scope": Scope(**values["scope"]), "effects": tuple(values.get("effects", ()))}
        )


def event_id(scope: Scope, *what: str | None) -> str:
    """The id of an event: equal for equal observations in the same scope."""
    where = (scope.user_id, scope.task, scope.session_id, scope.agent_id)
    return str(uuid.uuid5(_EVENTS, json.dumps([*where, *what])))


def cut(text: str, most: int = MAX_TEXT_BYTES) -> str:
    """Cut a text to at most `most` bytes of UTF-8, at a whole character, without control characters."""
    head = text[:most].encode(errors="replace")[:most].decode(errors="ignore")
    return _CONTROL.sub("", head)
