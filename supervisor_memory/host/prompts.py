"""Put a note into the prompts of the chat models that run inside a wrapped node or tool call.

LangChain's chat models are wrapped once, at the methods that every call goes through: above its cache, so
that two users share no answer, and above its callbacks, so that a trace shows the prompt as it was sent.
Outside of wrapped nodes and tool calls, the wrapped methods only call the originals.
"""

import functools
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool

from supervisor_memory.bridge import holding
from supervisor_memory.errors import SettingsError
from supervisor_memory.host.run.state import without_calls
from supervisor_memory.host.ways_in.inside import runs_an_agent
from supervisor_memory.model.records import Note

Placement: TypeAlias = Literal["system", "last_user", "state"]
_PLACEMENTS: Final = ("system", "last_user", "state")
NO_NOTE: Final = Note()
_OFF: Final = "memory:off"
_BETWEEN: Final = "\n\n"
_ORIGINAL: Final = "__supervisor_memory_original__"
_MODEL_METHODS: Final = (
    "generate",
    "agenerate",
    "stream",
    "astream",
    "_chat_model_stream_v3",
    "_achat_model_stream_v3",
)
_TOOL_METHODS: Final = ("run", "arun")


@dataclass(frozen=True, slots=True)
class Hearing:
    """The listener for an actor's tool calls.

    Args:
        heard: (tool, input, its answer or exception, id of the call) → what is left to do; None: nothing.
        off_loop: Does that on a thread, for an event loop.
    """

    heard: Callable[[BaseTool, Any, Any, str | None], Callable[[], None] | None]
    off_loop: Callable[[Callable[[], None]], Awaitable[None]]


@dataclass(eq=False)
class Telling:
    """The note for an actor's chat models, and its place in their prompts.

    Args:
        reader: The sub-agent; None: the supervisor.
        anchors: The user's question, then the task as it was handed over. With "last_user" the note goes
            into the newest human message that contains the first anchor; if none does, the second.
        hidden: Ids of tool calls that are cut out of the reader's prompts, with their answers.
        hears: Told how each call of a tool went; None: nobody listens.
    """

    note: Note = NO_NOTE
    reader: str | None = None
    placement: Placement = "system"
    anchors: tuple[str, ...] = ()
    hidden: Collection[str] = ()
    hears: "Hearing | None" = field(default=None, compare=False)
    is_delivered: bool = field(default=False, compare=False)
    """Whether a model call held the note."""
    is_over: bool = field(default=False, compare=False)
    """Whether the visit has ended; a copied context may outlive it."""


class Explained(BaseException):
    """Raised at the first model call while prompts are captured: it ends the node there."""


_TELLING: ContextVar[Telling | None] = ContextVar("supervisor_memory_telling", default=None)
_SILENT: ContextVar[bool] = ContextVar("supervisor_memory_silent", default=False)
_CAPTURED: "ContextVar[list[Captured] | None]" = ContextVar("supervisor_memory_captured", default=None)


@dataclass(frozen=True, slots=True)
class Captured:
    """A prompt that was not sent, and the agent that would have read it."""

    messages: list[BaseMessage]
    agent: str | None


def check_placement(placement: Placement, *, allowed: Sequence[str] = _PLACEMENTS) -> Placement:
    """The placement; raises SettingsError where it is none of the allowed ones."""
    if placement in allowed:
        return placement
    why = "; a middleware has no state to put a note into" if placement == "state" else ""
    raise SettingsError(
        f"placement is {placement!r}; use {' or '.join(map(repr, allowed))}{why}", placement=placement
    )


def telling() -> Telling | None:
    """The note that models called here are given; None outside of a wrapped node, or after it."""
    told = _TELLING.get()
    return None if told is None or told.is_over else told


def tells(told: Telling | None) -> AbstractContextManager[None]:
    """Give this note to the models called inside; None: give them none."""
    return holding(_TELLING, told)


def silent() -> AbstractContextManager[None]:
    """See `SupervisorMemory.silent`."""
    return holding(_SILENT, True)  # noqa: FBT003


@contextmanager
def capturing() -> Iterator[list[Captured]]:
    """Collect the prompts of the models called inside, and call none: each call raises `Explained`."""
    prompts: list[Captured] = []
    with holding(_CAPTURED, prompts):
        yield prompts


def is_explaining() -> bool:
    """Whether prompts are only being captured, so that nothing may be remembered."""
    return _CAPTURED.get() is not None


def placed(
    messages: Sequence[BaseMessage],
    note: Note,
    *,
    placement: Placement = "system",
    anchors: Sequence[str] = (),
) -> list[BaseMessage]:
    """Put a note into a copy of a prompt, unless the prompt holds it already. No message is changed.

    Args:
        placement: "system": at the end of the first system message, or as a new one if there is none;
            "last_user": the first block of the newest human message with an anchor, else as "system".
    """
    told = list(messages)
    if not note or any(note.text in m.text for m in told if not isinstance(m, AIMessage)):
        return told
    if placement == "last_user":
        newest = [at for at in range(len(told) - 1, -1, -1) if isinstance(told[at], HumanMessage)]
        for at in (at for anchor in anchors if anchor for at in newest if anchor in told[at].text):
            held = told[at].content
            rest = [_block(held)] if isinstance(held, str) else held
            content = [_block(note.text + _BETWEEN), *rest]
            told[at] = told[at].model_copy(update={"content": content})
            return told
    for at, message in enumerate(told):
        if isinstance(message, SystemMessage):
            told[at] = _with_note(message, note)
            return told
    return [SystemMessage(note.text), *told]


def install() -> None:
    """Wrap the methods of all chat model and tool classes of LangChain, each method once."""
    for kind in _kinds_of(BaseChatModel):
        for name in _MODEL_METHODS:
            _wrap(kind, name, _prompting)
    for kind in _kinds_of(BaseTool):
        for name in _TOOL_METHODS:
            _wrap(kind, name, _hushing)


def uninstall() -> None:
    """Remove the wrapping. Graphs with memory then run as if they had no notes."""
    for base, names in ((BaseChatModel, _MODEL_METHODS), (BaseTool, _TOOL_METHODS)):
        for kind in _kinds_of(base):
            for name in names:
                original = getattr(vars(kind).get(name), _ORIGINAL, None)
                if original is not None:
                    setattr(kind, name, original)


def _kinds_of(base: type) -> Iterator[type]:
    yield base
    kind: type
    for kind in base.__subclasses__():
        yield from _kinds_of(kind)


def _wrap(kind: type, name: str, around: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    own = vars(kind).get(name)
    if callable(own) and not hasattr(own, _ORIGINAL):
        wrapped = around(name, own)
        setattr(wrapped, _ORIGINAL, own)
        setattr(kind, name, wrapped)


def _prompting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a chat model: the note goes into its prompt."""
    takes_lists = name in ("generate", "agenerate")
    called = "messages" if takes_lists else "input"

    @functools.wraps(method)
    def with_note(self: BaseChatModel, *args: Any, **options: Any) -> Any:
        told = telling()
        is_of_no_concern = told is None and _CAPTURED.get() is None
        if is_of_no_concern or not (args or called in options):
            return method(self, *args, **options)
        prompt, args = (args[0], args[1:]) if args else (options.pop(called), args)
        if takes_lists:
            call = options
            prompt = [_prompt_as_read(self, list(each), told, call) for each in prompt]
        else:
            config = ensure_config(args[0] if args else options.get("config"))
            call = {**options, "tags": config.get("tags"), "metadata": config.get("metadata")}
            prompt = _prompt_as_read(self, self._convert_input(prompt).to_messages(), told, call)
        return method(self, prompt, *args, **options)

    return with_note


def _hushing(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that runs a tool: models inside get no note, unless the tool runs an agent. How a call
    went is heard."""

    def hushed(tool: BaseTool) -> AbstractContextManager[None]:
        return nullcontext() if telling() is None or runs_an_agent(tool) else tells(None)

    def left_to_do(
        told: Telling | None, tool: BaseTool, args: Sequence[Any], options: Mapping[str, Any], answer: Any
    ) -> Callable[[], None] | None:
        if told is None or told.hears is None or runs_an_agent(tool):
            return None
        given = args[0] if args else options.get("tool_input")
        return told.hears.heard(tool, given, answer, options.get("tool_call_id"))

    @functools.wraps(method)
    def run(self: BaseTool, *args: Any, **options: Any) -> Any:
        told = telling()
        try:
            with hushed(self):
                answer = method(self, *args, **options)
        except Exception as error:
            if todo := left_to_do(told, self, args, options, error):
                todo()
            raise
        if todo := left_to_do(told, self, args, options, answer):
            todo()
        return answer

    @functools.wraps(method)
    async def arun(self: BaseTool, *args: Any, **options: Any) -> Any:
        told = telling()
        try:
            with hushed(self):
                answer = await method(self, *args, **options)
        except Exception as error:
            if told and told.hears and (todo := left_to_do(told, self, args, options, error)):
                await told.hears.off_loop(todo)
            raise
        if told and told.hears and (todo := left_to_do(told, self, args, options, answer)):
            await told.hears.off_loop(todo)
        return answer

    return arun if name == "arun" else run


def _prompt_as_read(
    model: BaseChatModel, messages: list[BaseMessage], told: Telling | None, call: Mapping[str, Any]
) -> list[BaseMessage]:
    """The prompt of one call as its model reads it."""
    if told is not None and not is_left_alone(model, call):
        if told.hidden:
            messages = without_calls(messages, told.hidden)
        if told.note and told.placement != "state":
            placement = "last_user" if _drops_system(model, messages, call) else told.placement
            messages = placed(messages, told.note, placement=placement, anchors=told.anchors)
            told.is_delivered = True
    if (prompts := _CAPTURED.get()) is not None:
        prompts.append(Captured(messages, told.reader if told is not None else None))
        raise Explained
    return messages


def is_left_alone(model: Any, call: Mapping[str, Any]) -> bool:
    """Whether a call gets no note: the host forbids it (by its tags), or LangChain itself calls."""
    tags = (*(call.get("tags") or ()), *(getattr(model, "tags", None) or ()))
    return _SILENT.get() or _OFF in tags or "lc_source" in (call.get("metadata") or {})


def _drops_system(model: BaseChatModel, messages: Sequence[BaseMessage], call: Mapping[str, Any]) -> bool:
    """Whether the model would not see a system message: some models have no such role, and where the provider
    continues a conversation, only the newest messages are sent."""
    if call.get("previous_response_id") or getattr(model, "convert_system_message_to_human", False):
        return True
    if not getattr(model, "use_previous_response_id", False):
        return False
    answers = (m for m in reversed(messages) if isinstance(m, AIMessage))
    return any(str(m.response_metadata.get("id") or "").startswith("resp_") for m in answers)


def _with_note(system: SystemMessage, note: Note) -> SystemMessage:
    held = system.content
    if isinstance(held, str):
        return system.model_copy(update={"content": f"{held}{_BETWEEN}{note.text}" if held else note.text})
    return system.model_copy(update={"content": [*held, _block(_BETWEEN + note.text)]})


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
