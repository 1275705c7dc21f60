"""Decide which tool results become events, and make the events. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from supervisor_memory.model.records import Scope, new_id
from supervisor_memory.redact.redactor import redacted_scope
from supervisor_memory.settings import Settings
from supervisor_memory.upkeep.queue.event import MAX_TEXT_BYTES, Event, cut, event_id

_WINDOW: Final = 4 * MAX_TEXT_BYTES
"""Characters of a text that are read at most."""
_ARGUMENT_BYTES: Final = 1_024
_MOST_EFFECTS: Final = 20
_NAME_BYTES: Final = 128
_EFFECT_KEYS: Final = ("type", "path", "sql", "rows", "row_count", "error", "ok")
_SQL_NAMES: Final = ("sql", "query", "statement")
_PATH_NAMES: Final = ("path", "file", "filename", "file_path", "filepath", "output", "output_path")
_COMMENTS: Final = re.compile(r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.{0,4000}?\*/)+", re.DOTALL)
_SQL: Final = re.compile(
    r"(?:select|with|insert|update|delete|create|alter|drop|merge|replace|copy)\s", re.IGNORECASE
)
_FAILED: Final = re.compile(
    r"\s*(?:\w*(?:error|exception)(?:\s*[:(\[]|\s+(?:in|while|when|executing|running|occurred))|traceback\b|"
    r"(?:fatal|failed|failure)\s*:|failed to\b|(?:错误|失败|出错)[:：]|"
    r"\{\s*\"error\"\s*:\s*(?:\"[^\"]|\{\s*\"))",
    re.IGNORECASE,
)
Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Capture:
    """Makes events of tool results, as the settings say.

    Args:
        redact: Masks personal data; it is called on every text before the text is kept anywhere.
    """

    settings: Settings
    redact: Redact

    def takes(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether results of a call become events, by the tool's name and its commands."""
        name = tool.casefold()
        if not _is_one_of(name, self.settings.capture_tools) or _is_one_of(name, self.settings.skip_tools):
            return False
        commands = (_plain(value) for value in arguments.values() if isinstance(value, str))
        return not any(_is_one_of(command, self.settings.skip_commands) for command in commands)

    def event(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        text: str,
        *,
        artifact: object,
        scope: Scope,
        call_id: str | None,
        turn_id: str | None,
        at: float,
    ) -> Event | None:
        """Make the event of a result; None if the result is empty or reports a failure.

        Args:
            artifact: The tool's return value beside its text, such as a list of side effects.
            call_id: The id of the call; the same result of the same call makes the same event.
        """
        if not text.strip() or reports_failure(text):
            return None
        scope = redacted_scope(scope, self.redact)
        kept = masked(f"{_called(tool, arguments)}\n{text}", self.redact)
        effects = tuple(_bounded(_effects(arguments, text, artifact), self.redact))
        return Event(
            scope,
            kept,
            tool=cut(tool, _NAME_BYTES),
            effects=effects,
            created_at=at,
            turn_id=turn_id,
            id=new_id() if call_id is None else event_id(scope, call_id, tool, kept),
        )


def reports_failure(text: str) -> bool:
    """Whether a tool's result reports a failure, by how it begins."""
    return _FAILED.match(text) is not None


def masked(text: str, redact: Redact) -> str:
    """Mask personal data in a text, then cut it to an event's size; in this order no datum is halved."""
    window = text[:_WINDOW]
    if len(text) > _WINDOW:  # so that none is halved at the end of the window either
        window = window[: max(window.rfind(" "), window.rfind("\n"), _WINDOW // 2)]
    return cut(redact(window))


def _is_one_of(text: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(text, glob.casefold()) for glob in globs)


def _plain(command: str) -> str:
    """A command for matching globs: without leading comments, in lower case, with single spaces."""
    return " ".join(_COMMENTS.sub("", command[:_WINDOW]).casefold().split())


def _called(tool: str, arguments: Mapping[str, Any]) -> str:
    """The call as a line: `run_sql(sql=SELECT …)`."""
    told = ", ".join(
        f"{name}={_argument_text(value)}" for name, value in list(arguments.items())[:_MOST_EFFECTS]
    )
    return cut(f"{tool}({told})", _ARGUMENT_BYTES)


def _argument_text(value: object) -> str:
    return value[:_WINDOW] if isinstance(value, str) else cut(_as_json(value), _ARGUMENT_BYTES)


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def _effects(arguments: Mapping[str, Any], text: str, artifact: object) -> Iterator[Mapping[str, Any]]:
    """The files and SQL named by the result and by the call's arguments."""
    returned = [*_mappings(artifact), *_mappings(_parsed(text))]
    yield from returned
    for name, value in arguments.items():
        if not isinstance(value, str):
            continue
        statement = _COMMENTS.sub("", value[:_WINDOW]).strip()
        if name.casefold() in _SQL_NAMES and _SQL.match(statement):
            yield {"type": "sql", "sql": statement}
        elif name.casefold() in _PATH_NAMES:
            yield {"path": value}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items[:_MOST_EFFECTS]:
        if isinstance(item, Mapping) and ("path" in item or "sql" in item):
            yield {name: item[name] for name in _EFFECT_KEYS if name in item}


def _parsed(text: str) -> object:
    """The value of a text if it is a JSON object or list, not too long; else None."""
    if len(text) > _WINDOW or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _bounded(effects: Iterator[Mapping[str, Any]], redact: Redact) -> Iterator[Mapping[str, Any]]:
    """The effects with plain values, masked, 4 KB together at most; an effect too large is left out."""
    left = MAX_TEXT_BYTES
    for effect in effects:
        kept = {
            name: redact(value) if isinstance(value, str) else value
            for name, value in effect.items()
            if isinstance(value, (str, int, bool))
        }
        size = len(_as_json(kept).encode(errors="replace"))
        if size <= left:
            left -= size
            yield {n: cut(v) if isinstance(v, str) else v for n, v in kept.items()}
