"""Resources of the user's memory, and prompts: a client opens or inserts them without a tool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from supervisor_memory.errors import InvalidContent, RecordNotFound
from supervisor_memory.interfaces.mcp.tools import Acting
from supervisor_memory.interfaces.printable import as_json, moment, one_line, who_said
from supervisor_memory.model.records import Record, Scope

_LONGEST: Final = 2_000
"""Characters of what a prompt is asked about."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A place of memory by its URI; with `{id}` in it, a template of such places."""

    uri: str
    name: str
    told: str
    read: Callable[[Acting, str], str]
    mime: str = "text/plain"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message that a person inserts; `asks` names its one argument."""

    name: str
    told: str
    asks: str
    write: Callable[[Acting, str], str]


def _topics(acting: Acting, _id: str) -> str:
    return "\n".join(map(str, acting.memory.topics(user_id=acting.user_id)))


def _record(acting: Acting, id_: str) -> str:
    return as_json(acting.memory.get(id_, user_id=acting.user_id).to_dict())


def _session(acting: Acting, id_: str) -> str:
    return "\n".join(map(_line, acting.memory.session(id_, user_id=acting.user_id)))


def _line(said: Record) -> str:
    return f"[{moment(said.created_at)} · {who_said(said)}] {one_line(said.content)}"


def _recall(acting: Acting, question: str) -> str:
    note = acting.memory.recall(question, Scope(acting.user_id))
    return "\n\n".join(part for part in (note.text, question) if part)


RESOURCES: Final = (
    Resource("memory://topics", "topics", "The table of contents of this user's memory.", _topics),
    Resource(
        "memory://record/{id}", "record", "One record, in any status.", _record, mime="application/json"
    ),
    Resource("memory://session/{id}", "session", "What was said in a session, in order.", _session),
)
PROMPTS: Final = (
    Prompt("recall", "A question, with what memory knows that bears on it.", "question", _recall),
)


def read(acting: Acting, uri: str) -> tuple[Resource, str]:
    """The resource of a URI, and its text.

    Raises:
        RecordNotFound: there is no such place, or it is another user's.
    """
    for each in RESOURCES:
        stem, template, _ = each.uri.partition("{id}")
        id_ = unquote(uri.removeprefix(stem))
        if uri == each.uri or (template and uri.startswith(stem) and id_):
            return each, each.read(acting, id_)
    raise RecordNotFound(f"there is no resource {uri[:100]!r}; list them, or their templates", id=uri[:100])


def written(acting: Acting, name: str, given: Mapping[str, str]) -> str:
    """The text of a prompt.

    Raises:
        InvalidContent: there is no such prompt, or it lacks its argument.
    """
    prompt = next((each for each in PROMPTS if each.name == name), None)
    if prompt is None:
        raise InvalidContent(f"there is no prompt {name[:100]!r}")
    asked = given.get(prompt.asks, "").strip()
    if not asked or len(asked) > _LONGEST:
        raise InvalidContent(f"the prompt {name} needs {prompt.asks!r}, of at most {_LONGEST} characters")
    return prompt.write(acting, asked)
