"""Wrap a function that calls an agent: add the note to its messages, and remember the answer."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from supervisor_memory.core import Memory
from supervisor_memory.errors import GraphError, IdentityError, InvalidContent
from supervisor_memory.flow import Outcome
from supervisor_memory.host.run.identity import acting_scope
from supervisor_memory.model.arguments import MessagesLike, as_messages, check_scope, readable
from supervisor_memory.model.records import Message, Note, Scope, check_name

F = TypeVar("F", bound=Callable[..., Any])
ScopeOf = Scope | Callable[..., Scope]
_SYSTEM: Final = "system"


def wrap(memory: Memory, agent: str | None, scope: ScopeOf | None) -> Callable[[F], F]:
    """See `SupervisorMemory.wrap`."""
    if agent is not None:
        check_name(agent, what="agent id")

    def wrapped(function: F) -> F:
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise GraphError(
                f"cannot wrap {function.__name__}: it yields its answer in parts; use `with memory.turn(…)` "
                "in it"
            )
        call = _Call(memory, agent, scope)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def answer_async(messages: MessagesLike, *args: Any, **kwargs: Any) -> Any:
                run = memory.bridge.run
                acting = call.scope_of(messages, *args, **kwargs)
                note = await run(memory.recall, messages, acting)
                answer = None
                try:
                    answer = await function(with_note(messages, note), *args, **kwargs)
                finally:
                    await run(call.keep, messages, answer, acting, note)
                return answer

            return cast("F", answer_async)

        @functools.wraps(function)
        def answer_now(messages: MessagesLike, *args: Any, **kwargs: Any) -> Any:
            acting = call.scope_of(messages, *args, **kwargs)
            note = memory.recall(messages, acting)
            answer = None
            try:
                answer = function(with_note(messages, note), *args, **kwargs)
            finally:
                call.keep(messages, answer, acting, note)
            return answer

        return cast("F", answer_now)

    return wrapped


class _Call:
    def __init__(self, memory: Memory, agent: str | None, scope: ScopeOf | None) -> None:
        self._memory, self._agent, self._scope = memory, agent, scope

    def scope_of(self, *args: Any, **kwargs: Any) -> Scope:
        """Who acts in this call; IdentityError: nobody says so."""
        found = self._scope(*args, **kwargs) if callable(self._scope) else self._scope or acting_scope()
        if found is None:
            raise IdentityError(
                "nobody says whose memory this call is about: pass scope= to wrap, or call it inside of "
                "`with memory.turn(…)`"
            )
        if isinstance(found, IdentityError):
            raise found
        check_scope(found)
        return Scope(found.user_id, self._agent, found.session_id, found.run_id, found.task)

    def keep(self, messages: MessagesLike, answer: Any, scope: Scope, note: Note) -> None:
        """Remember the user's last message and the answer; of a sub-agent's call, only its own messages."""
        given = readable(messages)
        said = next((each for each in reversed(given) if each.role == "user"), None)
        turn_id = said.id if said is not None else None
        brought = _brought(answer, given)
        if self._agent is None:
            self._memory.remember([*([said] if said else ()), *brought], scope, turn_id=turn_id, note=note)
        elif text := "\n\n".join(each.content for each in brought if each.role == "assistant"):
            self._memory.remember([], scope, outcome=Outcome(final_answer=text), turn_id=turn_id, note=note)


def with_note(messages: MessagesLike, note: Note) -> Any:
    """Add the note to messages: to the system message, as a new system message, or in front of a text."""
    if not note:
        return messages
    if isinstance(messages, str):
        return f"{note.text}\n\n{messages}"
    several = list(messages) if isinstance(messages, Sequence) and not _is_pair(messages) else [messages]
    first = several[0] if several else None
    if first is not None and (joined := _with_text(first, note.text)) is not None:
        return [joined, *several[1:]]
    return [_system(first, note.text), *several]


def _with_text(first: Any, text: str) -> Any:
    """A system message with the note at its end; None: it is none, or holds no plain text."""
    [read] = readable([first]) or (None,)
    if read is None or read.role != _SYSTEM:
        return None
    told = f"{read.content}\n\n{text}"
    if isinstance(first, Mapping):
        return {**first, "content": told} if isinstance(first.get("content"), str) else None
    if _is_pair(first):
        return (first[0], told)
    if isinstance(getattr(first, "content", None), str) and hasattr(first, "model_copy"):
        return first.model_copy(update={"content": told})
    return None


def _system(like: Any, text: str) -> Any:
    """A system message in the shape of another message."""
    if isinstance(like, Mapping):
        return {"role": _SYSTEM, "content": text}
    if isinstance(like, Message):
        return Message(_SYSTEM, text)
    if hasattr(like, "model_copy"):
        from langchain_core.messages import SystemMessage

        return SystemMessage(text)
    return (_SYSTEM, text)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)  # noqa: PLR2004


def _brought(answer: Any, given: Sequence[Message]) -> list[Message]:
    """What an agent answered, without the messages that it was given."""
    if isinstance(answer, Mapping) and "messages" in answer:
        answer = answer["messages"]
    if isinstance(answer, str):
        return [Message("assistant", answer)]
    try:
        told = as_messages(answer) if answer is not None else ()
    except InvalidContent:
        return []
    known = {(each.role, each.content) for each in given}
    return [each for each in told if each.role == "assistant" and (each.role, each.content) not in known]
