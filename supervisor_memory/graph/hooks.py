"""What memory does before and after something runs for a supervisor or a sub-agent.

A node of a graph, a tool that runs an agent, an agent by itself, a model call of a middleware: all of them
enter and leave through here. Nothing in here raises into the graph.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from supervisor_memory.errors import IdentityError
from supervisor_memory.flow import Outcome
from supervisor_memory.graph.acting import NO_NOTE, acting_scope
from supervisor_memory.graph.identity import Resolver, checked, is_anonymous, scope_of
from supervisor_memory.graph.state import (
    is_agents,
    is_memory_name,
    is_note,
    messages_of,
    new_messages,
    strip,
    updates_of,
    value_of,
    values_of,
    without_memory_calls,
)
from supervisor_memory.messages import as_messages
from supervisor_memory.ports import guarded
from supervisor_memory.records import AuditEvent, Note, Scope
from supervisor_memory.redact.records import redacted_scope

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["Hooks", "named_user", "outcome_of"]

Outcomes: TypeAlias = Literal["denied", "degraded"]
_MOST_CALLS = 1024
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True)
class Hooks:
    """What happens before and after.

    Args:
        key: The state key that holds the messages.
        names: The graph's nodes: a human message that bears such a name was said by an agent.
    """

    memory: "SupervisorMemory"
    key: str = "messages"
    identity: Resolver | None = None
    names: frozenset[str] = frozenset()
    agents_calls: dict[str, str] = field(default_factory=dict)
    """The latest tool calls that sub-agents' nodes left to a tool node: id → agent."""

    def scope(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Scope | IdentityError:
        """Who acts; the error (and an audit row) when that cannot be told, and memory is off for the call."""

        def tell() -> Scope | IdentityError:
            log_id = self.memory.backend.audit.log_id.encode()
            try:
                told = scope_of(state, config, agent_id=agent_id, resolver=self.identity, key=log_id)
                return redacted_scope(told, self.memory.services.redactor.text)
            except IdentityError as error:
                return error

        told = guarded(
            tell, otherwise=lambda error: IdentityError(f"who acts cannot be told: {type(error).__name__}")
        )
        if isinstance(told, IdentityError):
            _log.warning("memory is off for this run: %s", told)
            self.memory.report(
                AuditEvent("identity", outcome="denied", reason=type(told).__name__, agent_id=agent_id)
            )
        return told

    def enter(
        self, state: Any, config: RunnableConfig, agent_id: str | None
    ) -> tuple[Scope | IdentityError, Note]:
        """Who acts, and the note for its model."""
        scope = self.scope(state, config, agent_id)
        return (scope, NO_NOTE) if isinstance(scope, IdentityError) else (scope, self.recall(state, scope))

    def recall(self, state: Any, scope: Scope, *, task: str | None = None) -> Note:
        """The note for a reader of this state.

        Args:
            task: Given: all that a sub-agent will see; it does not read the state.
        """

        def look() -> Note:
            messages = messages_of(state, self.key)
            seen = _read_by(scope, messages) if task is None else [HumanMessage(task)]
            if not seen:
                return NO_NOTE
            query = self._question(messages, scope, task)
            return self.memory.recall(seen, self._in_its_run(scope, messages), query=query)

        return guarded(look, otherwise=lambda error: self.missed("recall", scope, error))

    def leave(
        self, state: Any, result: Any, scope: Scope | IdentityError, note: Note = NO_NOTE, *, leads: bool
    ) -> None:
        """Remember what was heard and brought.

        Args:
            leads: Whether the user speaks to it: a supervisor, or an agent of a team that has none.
        """
        if isinstance(scope, IdentityError):
            return

        def keep() -> None:
            self._report_impostor(result, scope)
            stripped = strip(result)
            before = messages_of(state, self.key)
            said = new_messages(state, stripped, self.key)
            heard = self.heard(before) if leads else []
            answers = _said(said) if leads else []
            if scope.agent_id is None:
                self._exchange(before, heard, answers, scope, note)
                return
            self._note_calls(said, scope.agent_id)
            # An agent that is spoken to repeats the user when it says what the user said, but not itself.
            self._exchange(before, heard, [], scope, note)
            self._observe_messages(said, scope, self._turn(before))
            outcome = outcome_of(state, stripped, said)
            self.brought(state, outcome, scope, note)
            self._exchange(before, [], answers, scope, note)

        guarded(keep, otherwise=lambda error: self.missed("remember", scope, error))

    def takes(self, call: Mapping[str, Any]) -> bool:
        """Whether the result of a tool call is an event."""
        is_memorys = is_memory_name(str(call["name"]))
        return not is_memorys and guarded(
            lambda: self.memory.queue.takes(str(call["name"]), call["args"]), otherwise=lambda error: False
        )

    def observe(self, call: Mapping[str, Any], result: Any, scope: Scope, state: Any) -> None:
        """Take up what a tool answered as an event."""

        def take() -> None:
            told = [result] if isinstance(result, ToolMessage) else new_messages({}, result, self.key)
            self._observe_answers([(call, m) for m in told], scope, self._turn(messages_of(state, self.key)))

        guarded(take, otherwise=lambda error: self.missed("queue", scope, error))

    def _observe_messages(self, said: Sequence[BaseMessage], scope: Scope, turn: str | None) -> None:
        """Take up the answers of tools that a sub-agent called by itself, where they are in what it said."""
        calls = {c["id"]: c for m in said if isinstance(m, AIMessage) for c in m.tool_calls}
        answers = [m for m in said if isinstance(m, ToolMessage) and m.tool_call_id in calls]
        told = [(calls[m.tool_call_id], m) for m in answers]
        self._observe_answers([(call, m) for call, m in told if self.takes(call)], scope, turn)

    def _observe_answers(
        self, told: Sequence[tuple[Mapping[str, Any], BaseMessage]], scope: Scope, turn: str | None
    ) -> None:
        for call, message in told:
            if isinstance(message, ToolMessage) and message.status != "error":
                self.memory.queue.observe(
                    str(call["name"]),
                    call["args"],
                    message.text,
                    scope,
                    artifact=message.artifact,
                    call_id=str(call["id"]),
                    turn_id=turn,
                )

    def _note_calls(self, said: Sequence[BaseMessage], agent: str) -> None:
        """Whose the calls are that a tool node will find in the messages."""
        for message in said:
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                self.agents_calls[str(call["id"])] = agent
        for oldest in list(self.agents_calls)[:-_MOST_CALLS]:
            self.agents_calls.pop(oldest, None)

    def hear(self, state: Any, scope: Scope | IdentityError) -> None:
        """Remember what the user has just said, before anything is done about it."""
        if isinstance(scope, IdentityError):
            return
        before = messages_of(state, self.key)
        guarded(
            lambda: self._exchange(before, self.heard(before), [], scope, NO_NOTE),
            otherwise=lambda error: self.missed("remember", scope, error),
        )

    def answered(self, state: Any, scope: Scope | IdentityError, note: Note = NO_NOTE) -> None:
        """Remember what was finally answered to what the user said last."""
        if isinstance(scope, IdentityError):
            return

        def keep() -> None:
            held = messages_of(state, self.key)
            since = list(takewhile(lambda m: not self._is_from_user(m), reversed(held)))[::-1]
            if scope.agent_id is None:
                self._exchange(held, [], _said(since), scope, note)
            else:
                self.brought(state, outcome_of({}, {self.key: since}, since), scope, note)

        guarded(keep, otherwise=lambda error: self.missed("remember", scope, error))

    def brought(self, state: Any, outcome: Outcome, scope: Scope, note: Note) -> None:
        """Remember what a sub-agent brought."""
        if outcome == Outcome():
            return
        turn = self._turn(messages_of(state, self.key))
        self.memory.remember((), scope, outcome=outcome, turn_id=turn, note=note)

    def heard(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What the user said last, when nobody has spoken since."""
        return list(takewhile(self._is_from_user, reversed(messages)))[::-1]

    def report_denied(self) -> None:
        """Audit that a sub-agent called a memory tool."""
        told = acting_scope()
        scope = told if isinstance(told, Scope) else None
        self._report("tool", "denied", "memory-tool-called-by-a-sub-agent", scope)

    def _exchange(
        self,
        before: Sequence[BaseMessage],
        heard: Sequence[BaseMessage],
        answered: Sequence[BaseMessage],
        scope: Scope,
        note: Note,
    ) -> None:
        """What the user said, and what was finally answered."""
        if heard or answered:
            said = as_messages([*heard, *answered])
            whose = replace(scope, agent_id=None)
            self.memory.remember(said, whose, turn_id=self._turn(before), note=note)

    def _in_its_run(self, scope: Scope, messages: Sequence[BaseMessage]) -> Scope:
        """The scope, where a graph was run without an id with the message of the user that it answers."""
        turn = self._turn(messages) if scope.run_id is None else None
        return scope if turn is None else replace(scope, run_id=checked(turn))

    def _turn(self, messages: Sequence[BaseMessage]) -> str | None:
        """The message of the user that is being answered, by its id."""
        return next((m.id for m in reversed(messages) if self._is_from_user(m)), None)

    def _question(self, messages: Sequence[BaseMessage], scope: Scope, task: str | None) -> str:
        """What the reader is about: what the user asked and, for a sub-agent, the task it is handed."""
        asked = next((m.text for m in reversed(messages) if self._is_from_user(m)), "")
        if scope.agent_id is None:
            return asked
        if task is not None:
            return "\n".join([asked, task])
        handed = next((m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls), None)
        calls = handed.tool_calls if handed else []
        tasks = [v for call in calls for v in call["args"].values() if isinstance(v, str)]
        return "\n".join([asked, *tasks])

    def _is_from_user(self, message: BaseMessage) -> bool:
        """Some hosts let agents answer as human messages, with the agent's name or without."""
        return isinstance(message, HumanMessage) and message.name not in self.names and not is_agents(message)

    def _report_impostor(self, result: Any, scope: Scope) -> None:
        """Audit that a node named another user than the one who is acting; the state keeps that one."""
        user = named_user(scope)
        said = [value_of(update, "user_id") for update in updates_of(result)]
        if user and any(each and each != user for each in said):
            self._report("identity", "denied", "user-id-ignored", scope)

    def missed(self, step: str, scope: Scope, error: BaseException) -> Note:
        self._report(step, "degraded", type(error).__name__, scope)
        return Note(degraded=True)

    def _report(self, op: str, outcome: Outcomes, reason: str, scope: Scope | None) -> None:
        self.memory.report(
            AuditEvent(
                op,
                user_id=scope.user_id if scope else None,
                outcome=outcome,
                reason=reason,
                agent_id=scope.agent_id if scope else None,
                session_id=scope.session_id if scope else None,
                run_id=scope.run_id if scope else None,
            )
        )


def _read_by(scope: Scope, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What is left of messages for who will read them: no older note, no memory call of another.

    A note leaves out what its reader sees already, so what is taken from the reader must not count as seen.
    """
    left = [message for message in messages if not is_note(message)]
    return left if scope.agent_id is None else without_memory_calls(left)


def named_user(scope: Scope | IdentityError) -> str | None:
    """The user that stays who is acting, whatever a node says; None while nobody has been named."""
    if isinstance(scope, IdentityError) or is_anonymous(scope.user_id):
        return None
    return scope.user_id


def _said(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The answers among messages."""
    return [m for m in messages if isinstance(m, AIMessage) and m.text and _is_answer(m)]


def _is_handoff(message: BaseMessage) -> bool:
    """The bookkeeping of create_supervisor: "Transferring back to supervisor"."""
    return bool(message.response_metadata.get("__is_handoff_back"))


def outcome_of(state: Any, result: Any, said: Sequence[BaseMessage]) -> Outcome:
    """What a sub-agent brought, read from its update: `final_answer`, `side_effects`, a conclusion.

    What stood in the state before it ran is another agent's.
    """
    before = values_of(state)
    answer: str | None = None
    conclusion: object | None = None
    effects: list[Any] = []
    for update in updates_of(result):
        changed = {n: v for n, v in values_of(update).items() if v is not before.get(n)}
        given = changed.get("final_answer")
        if isinstance(given, str) and given and given != before.get("final_answer"):
            answer = given
        found = changed.get("side_effects")
        earlier = before.get("side_effects") or ()
        effects += [e for e in found if e not in earlier] if isinstance(found, (list, tuple)) else []
        for name, value in changed.items():
            if isinstance(getattr(value, "conclusion", None), str) and value != before.get(name):
                conclusion = value
    if answer is None and conclusion is None and not effects:
        spoken = [m for m in said if isinstance(m, (AIMessage, HumanMessage)) and m.text]
        answer = next((m.text for m in reversed(spoken) if _is_answer(m)), None)
    return Outcome(final_answer=answer, conclusion=conclusion, side_effects=tuple(effects))


def _is_answer(message: BaseMessage) -> bool:
    return not getattr(message, "tool_calls", None) and not _is_handoff(message)
