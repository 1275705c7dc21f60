"""The threads to replay: from JSON lines, an export of LangSmith, or a checkpointer."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.errors import InvalidContent

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

_CHECKS: Final = ("expected", "must", "must_not", "sql", "unrelated")
_USER: Final = frozenset({"human", "user"})
_MODEL: Final = frozenset({"ai", "assistant"})
_SESSION_KEYS: Final = ("thread_id", "session_id", "conversation_id")
_USER_KEYS: Final = ("user_id", "langgraph_user_id")
_SQLITE: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Asked:
    """One turn: what the user said, and how the answer is judged. Where all checks are empty it is not
    judged.

    `expected`: any of these is the whole answer, or what a model judge compares with. `must`, `must_not`:
    regular expressions that have to be found, and may not be. `sql`: a query whose values have to stand in
    the answer. `unrelated`: nothing remembered bears on it, so that memory can only do harm. `tools`: those
    that were called when it was recorded. `is_new`: it opens a session of its own.
    """

    text: str
    expected: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    sql: str = ""
    unrelated: bool = False
    tools: frozenset[str] = frozenset()
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """A user's turns in a conversation. Threads of a user share a memory, in their order.

    `at` is when it began, in seconds since 1970; None: nobody knows.
    """

    id: str
    user_id: str
    turns: tuple[Asked, ...]
    at: float | None = None


def read_threads(path: Path, *, messages_key: str = "messages") -> list[Thread]:
    """The threads of a file: JSON lines, an export of LangSmith's runs, or a checkpointer's SQLite file.

    Raises:
        InvalidContent: a line is none of these; it is named.
    """
    with path.open("rb") as file:
        is_sqlite = file.read(len(_SQLITE)) == _SQLITE
    if is_sqlite:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(str(path)) as saver:
            return threads_of(saver, messages_key=messages_key)
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = [(number, _entry(line, number)) for number, line in enumerate(lines, start=1) if line.strip()]
    runs = [entry for _, entry in entries if "inputs" in entry]
    own = [_thread(entry, number) for number, entry in entries if "inputs" not in entry]
    return [*own, *_of_runs(runs, messages_key)]


def threads_of(saver: "BaseCheckpointSaver[Any]", *, messages_key: str = "messages") -> list[Thread]:
    """The threads of a checkpointer, each as its latest checkpoint has it, in the order of their beginning.

    The user is the one that each run named in `configurable`, and the thread's id where none was named.
    """
    latest: dict[str, Any] = {}
    began: dict[str, float] = {}
    for each in saver.list(None):
        configurable = each.config["configurable"]
        if configurable.get("checkpoint_ns"):
            continue
        latest.setdefault(configurable["thread_id"], each)
        began[configurable["thread_id"]] = datetime.fromisoformat(each.checkpoint["ts"]).timestamp()
    found = [
        Thread(
            name,
            _first(each.metadata, _USER_KEYS) or name,
            _turns(each.checkpoint["channel_values"].get(messages_key) or ()),
            began[name],
        )
        for name, each in latest.items()
    ]
    return sorted((each for each in found if each.turns), key=lambda each: (each.at, each.id))


def apart(threads: Iterable[Thread]) -> list[Thread]:
    """The same threads, with each turn in a session of its own."""
    return [replace(each, turns=tuple(replace(turn, is_new=True) for turn in each.turns)) for each in threads]


def _entry(line: str, number: int) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InvalidContent(f"line {number} is no JSON: {error}", line=number) from error
    if not isinstance(entry, dict):
        raise InvalidContent(f"line {number} is no JSON object", line=number)
    return entry


def _thread(entry: Mapping[str, Any], number: int) -> Thread:
    """A thread of our form: `turns`, or `messages` with roles; checks beside them are of the last turn."""
    name = str(_first(entry, (*_SESSION_KEYS, "id")) or f"line-{number}")
    if "turns" in entry:
        turns = tuple(_turn(each, number) for each in _listed(entry["turns"], number))
    else:
        turns = _turns(_listed(entry.get("messages"), number))
    if not turns:
        raise InvalidContent(f"line {number} has nothing that a user said", line=number)
    if any(name in entry for name in _CHECKS):
        given = {name: entry[name] for name in _CHECKS if name in entry}
        turns = (*turns[:-1], _turn({"text": turns[-1].text, **given}, number, like=turns[-1]))
    return Thread(name, str(_first(entry, _USER_KEYS) or name), turns, _moment(entry.get("at"), number))


def _turn(given: Any, number: int, *, like: Asked | None = None) -> Asked:
    told = {"text": given} if isinstance(given, str) else given
    if not isinstance(told, Mapping) or not isinstance(told.get("text"), str) or not told["text"].strip():
        raise InvalidContent(f"line {number} has a turn without a text", line=number)
    known = {"text", "new_session", "tools", *_CHECKS}
    if unknown := set(told) - known:
        raise InvalidContent(
            f"line {number} has a turn with {sorted(unknown)[0]!r}; known are {', '.join(sorted(known))}",
            line=number,
        )
    tools = like.tools if like is not None else frozenset(_texts(told.get("tools"), number))
    return Asked(
        text=told["text"],
        expected=_texts(told.get("expected"), number),
        must=_texts(told.get("must"), number),
        must_not=_texts(told.get("must_not"), number),
        sql=str(told.get("sql") or ""),
        unrelated=bool(told.get("unrelated")),
        tools=tools,
        is_new=like.is_new if like is not None else bool(told.get("new_session")),
    )


def _texts(given: Any, number: int) -> tuple[str, ...]:
    listed = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise InvalidContent(
            f"line {number}: {given!r:.60} is neither a text nor a list of texts", line=number
        )
    return tuple(listed)


def _listed(given: Any, number: int) -> Sequence[Any]:
    if not isinstance(given, list):
        raise InvalidContent(f"line {number} has neither a list `turns` nor a list `messages`", line=number)
    return given


def _moment(given: Any, number: int) -> float | None:
    if given is None or isinstance(given, int | float):
        return given
    try:
        return datetime.fromisoformat(str(given)).timestamp()
    except ValueError as error:
        raise InvalidContent(f"line {number}: {given!r:.40} is no ISO time", line=number) from error


def _of_runs(runs: Sequence[Mapping[str, Any]], messages_key: str) -> list[Thread]:
    """Threads from runs of LangSmith, as `list_runs` or an export gives them: root runs, by time."""
    roots = [run for run in runs if not run.get("parent_run_id")]
    roots.sort(key=lambda run: str(run.get("start_time") or ""))
    made: dict[str, Thread] = {}
    for run in roots:
        extra = run.get("extra") or {}
        facts = {**(extra.get("metadata") or {}), **(run.get("metadata") or {})}
        name = str(_first(facts, _SESSION_KEYS) or run.get("trace_id") or run.get("id") or len(made))
        said = _flat((run.get("inputs") or {}).get(messages_key))
        answered = _flat((run.get("outputs") or {}).get(messages_key))
        turns = _turns([*_after_the_last_reply(said), *_replies(answered, after=len(said))])
        if not turns:
            continue
        if name in made:
            made[name] = replace(made[name], turns=(*made[name].turns, *turns))
        else:
            began = str(run.get("start_time") or "")
            at = datetime.fromisoformat(began).timestamp() if began else None
            made[name] = Thread(name, str(_first(facts, _USER_KEYS) or name), turns, at)
    return list(made.values())


def _flat(messages: Any) -> list[Any]:
    """The messages of a run; a chat model's run has a list of lists."""
    listed = messages if isinstance(messages, list) else []
    return listed[0] if len(listed) == 1 and isinstance(listed[0], list) else listed


def _after_the_last_reply(messages: Sequence[Any]) -> Sequence[Any]:
    """The new messages in a run's input, since a client may send the whole history with them."""
    spoke = [at for at, message in enumerate(messages) if _read(message)[0] in _MODEL]
    return messages[spoke[-1] + 1 :] if spoke else messages


def _replies(messages: Sequence[Any], *, after: int) -> Iterator[Any]:
    """The messages after the input of a run, without the user's, which a state repeats."""
    yield from (message for message in messages[after:] if _read(message)[0] not in _USER)


def _turns(messages: Iterable[Any]) -> tuple[Asked, ...]:
    """The user's messages, each with the tools that were called in answer to it."""
    found: list[tuple[str, set[str]]] = []
    for message in messages:
        who, text, tools = _read(message)
        if who in _USER and text.strip():
            found.append((text, set()))
        elif found:
            found[-1][1].update(tools)
    return tuple(Asked(text, tools=frozenset(tools)) for text, tools in found)


def _read(message: Any) -> tuple[str, str, frozenset[str]]:
    """Read a message of any form: its speaker, its text, and the names of the called tools.

    A human message that an agent made, as memory has marked it, is nobody's.
    """
    if isinstance(message, list | tuple) and len(message) == 2:  # noqa: PLR2004
        return str(message[0]), str(message[1]), frozenset()
    if isinstance(message, Mapping):
        inner = message.get("kwargs") if message.get("type") == "constructor" else message
        data = inner if isinstance(inner, Mapping) else {}
        kind = str(data.get("role") or data.get("type") or "")
        if message.get("type") == "constructor":
            kind = str((message.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        content, calls = data.get("content"), data.get("tool_calls")
        marks = data.get("additional_kwargs")
    else:
        kind, content = str(getattr(message, "type", "")), getattr(message, "content", "")
        calls, marks = getattr(message, "tool_calls", None), getattr(message, "additional_kwargs", None)
    if isinstance(marks, Mapping) and marks.get("supervisor_memory"):
        kind = "agent"
    names = (call.get("name") or (call.get("function") or {}).get("name") for call in calls or ())
    return kind, _text_of(content), frozenset(str(name) for name in names if name)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    told = (part if isinstance(part, str) else part.get("text") for part in parts)
    return "\n".join(str(each) for each in told if each)


def _first(data: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((data[name] for name in names if data.get(name)), None)
