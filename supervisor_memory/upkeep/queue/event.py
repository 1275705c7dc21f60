"""An event: something observed that is not yet memory."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from supervisor_memory.model.records import Scope, SourceClass, content_hash, new_id

__all__ = ["MAX_TEXT_BYTES", "Event", "cut", "event_id"]

MAX_TEXT_BYTES: Final = 4_096
_EVENTS: Final = uuid.UUID("4b1d0f0a-6a52-5f7e-9d3c-2f9c6a7be0c1")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Event:
    """A tool's result, what an agent brought, or what was said, on its way to be read.

    Args:
        scope: Who acted: `agent_id` is the sub-agent, None the supervisor, or for what was said the user.
        text: What was observed, at most 4 KB of UTF-8.
        source_class: Who it is from: "tool", "agent" or "user".
        tool: The tool's name; None: no tool's.
        effects: The files and SQL that a tool's call names, as an agent's `side_effects` are told.
        created_at: When it was observed, in seconds since 1970.
        turn_id: The user's message that it answers.
        message_id: The message it is, where that has an id.
        ref_id: The session message that keeps it word for word, where one does.
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
        """Plain values, as JSON has them."""
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
    """The id of an event that is the same whenever the same is observed again in the same place."""
    where = (scope.user_id, scope.task, scope.session_id, scope.agent_id)
    return str(uuid.uuid5(_EVENTS, json.dumps([*where, *what])))


def cut(text: str, most: int = MAX_TEXT_BYTES) -> str:
    """At most so many bytes of UTF-8, ending with a whole character; what text cannot hold is left out."""
    head = text[:most].encode(errors="replace")[:most].decode(errors="ignore")
    return _CONTROL.sub("", head)
