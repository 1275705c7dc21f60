"""What memory does before and after something runs for a supervisor or a sub-agent.

Every way in calls these hooks: runs and nodes of a graph, tools that run an agent, agents that run by
themselves, and a middleware's model calls. No hook raises an exception into the graph.
"""

import itertools
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph._internal._constants import CONFIG_KEY_RUNTIME, CONFIG_KEY_SCRATCHPAD
from langgraph.errors import GraphBubbleUp
from langgraph.pregel._read import ChannelRead
from langgraph.store.base import BaseStore

from supervisor_memory.core import Memory, Recalled
from supervisor_memory.errors import IdentityConflict, IdentityError
from supervisor_memory.flow import Outcome
from supervisor_memory.host.prompts import NO_NOTE, Hearing, Placement, Telling, is_explaining
from supervisor_memory.host.run.beginning import Beginning, Beginnings, beginning_of, plain, texts_in
from supervisor_memory.host.run.checkpoints import Checkpoints
from supervisor_memory.host.run.identity import acting_scope, checked, placed_by_host, users_of
from supervisor_memory.host.run.state import (
    is_memory_name,
    memory_calls,
    messages_of,
    new_messages,
    sent_state,
    updates_of,
    values_of,
    without_calls,
)
from supervisor_memory.host.store.guard import GuardedStore
from supervisor_memory.model.arguments import as_messages
from supervisor_memory.model.records import AuditEvent, Filter, Note, Scope
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import guarded
from supervisor_memory.stages.post_retrieval.quotable import what_became
from supervisor_memory.upkeep.queue.capture import reports_failure
from supervisor_memory.wiring.trail import event_of

_MOST_CALLS = 1024
_LONGEST_FAILURE = 4_000
_log = logging.getLogger("supervisor_memory")


@dataclass(frozen=True, slots=True)
class Visit:
    """One stay of a supervisor or sub-agent, from `Hooks.enter` to `Hooks.leave`.

    Args:
        scope: Who acts; the error if memory is off for the run.
        told: The note for the actor's models.
        seen: The human messages in the thread and in the node's state on entering, each with its text then.
    """

    scope: Scope | IdentityError
    told: Telling = field(default_factory=Telling)
    begun: Beginning | None = None
    seen: tuple[tuple[BaseMessage, str], ...] = ()
    tell: Callable[[], None] | None = None
    """Records in the log that a model call held the note."""

    @property
    def note(self) -> Note:
        return self.told.note


@dataclass(frozen=True)
class Hooks(Beginnings):
    """The hooks of one attached graph, middleware, bound agent or turn, whose runs it begins.

    Args:
        placement: Where in a prompt a note goes.
        conclusions: The state keys that hold an agent's conclusion.
    """

    placement: Placement = "system"
    conclusions: tuple[str, ...] = ()
    began: dict[tuple[Any, ...], Beginning] = field(default_factory=dict)
    """The beginnings of the latest middleware agents' runs, by thread, users and first message: two clients
    may use the same message ids."""
    agents_calls: dict[tuple[Any, ...], str | None] = field(default_factory=dict)
    """The latest tool calls that nodes left to a tool node: (thread, users, call id) → agent."""
    warned: set[str] = field(default_factory=set)
    assigns_ids: frozenset[str] = frozenset()
    """The state keys with a reducer that gives ids to messages, as `add_messages` does."""

    # --- a run

    def around(self, config: RunnableConfig, context: Any = None) -> Beginning | None:
        """The beginning of the enclosing run, if any; memory is off if this run names another user."""
        found = beginning_of(config)
        if found is None or isinstance(found.scope, IdentityError):
            return found
        if users_of(config, context) <= {found.scope.user_id}:
            return found
        error = IdentityConflict("a run names another user than the run it is in; memory is off for it")
        self.report_off(error, None)
        return Beginning(error)

    def begin_agent(self, state: Any, there: Checkpoints) -> None:
        """Settle the beginning of a middleware agent's run, at its first step, and hear the user's words."""

        def look() -> Beginning:
            before = there.state(there.config)
            left = messages_of(before.values if before is not None else {}, self.keys)
            kept = {(m.id, m.text) for m in left}
            new = [m for m in messages_of(state, self.keys) if (m.id, m.text) not in kept]
            given: dict[str, Any] = {self.keys[0]: new}
            user = values_of(state).get("user_id")
            if user and user != (before.values.get("user_id") if before is not None else None):
                given["user_id"] = user
            return self.begin(given, there.config, thread=there, is_nested=there.is_nested)

        begun = guarded(look, otherwise=lambda error: None)
        if begun is None:
            return
        begun.settle(state, self.keys)
        anchors = [m.id for m in messages_of(state, self.keys) if isinstance(m, HumanMessage) and m.id]
        for each in anchors[-1:]:
            self.began[*placed_by_host(there.config), each] = begun
        for oldest in list(self.began)[:-_MOST_CALLS]:
            self.began.pop(oldest, None)
        self.hear(begun)

    def begun(self, state: Any, config: RunnableConfig) -> Beginning | None:
        """The beginning of the run that a state belongs to."""
        found = beginning_of(config)
        if found is not None or not self.began:
            return found
        place = placed_by_host(config)
        ids = (m.id for m in reversed(messages_of(state, self.keys)) if isinstance(m, HumanMessage))
        return next((found for each in ids if (found := self.began.get((*place, each))) is not None), None)

    def answered(self, state: Any, config: RunnableConfig, agent_id: str | None) -> None:
        """Remember the answer of an agent with the middleware."""
        scope = self.scope(state, config, agent_id)
        if isinstance(scope, IdentityError):
            return

        def keep() -> None:
            begun = self.begun(state, config)
            held = messages_of(state, self.keys)
            turn = begun.turn_id if begun is not None else None
            since = list(takewhile(lambda m: not _begins(m, turn), reversed(held)))[::-1]
            made = [m for m in since if isinstance(m, HumanMessage)] if turn is not None else []
            if begun is not None and made:
                said = begun.answers.union(plain(word.text) for word in begun.words)
                others = [m for m in made if plain(m.text) not in said]
                self.ledger.add(others, replace(scope, agent_id=None), by=agent_id or "agent")
            if agent_id is not None:
                self.brought(outcome_of({}, {self.keys[0]: since}, since), scope, NO_NOTE, begun)
            elif begun is not None:
                self.hear(begun, _answers_in(since))

        guarded(keep, otherwise=lambda error: self.missed("remember", scope, error))

    def hear(self, begun: Beginning, answers: Sequence[BaseMessage] = (), note: Note = NO_NOTE) -> None:
        """Remember the user's words, once, and the final answers."""
        scope = begun.scope
        if isinstance(scope, IdentityError) or is_explaining():
            return
        words = begun.take()
        if not words and not answers:
            return

        def keep() -> None:
            if words and begun.forgets:
                guarded(
                    lambda: self.ledger.add(words, scope, by=None),
                    otherwise=lambda error: self.missed("remember", scope, error),
                )
            self.memory.remember(
                as_messages([*words, *answers]),
                scope,
                turn_id=begun.turn_id,
                note=note,
                keep_messages=begun.keeps_messages,
                is_unsure=begun.is_unsure,
                waiting=begun.waiting,
            )

        guarded(keep, otherwise=lambda error: self.missed("remember", scope, error))

    def end(self, begun: Beginning) -> None:
        """End a run: hear what the user said, if nobody did, and keep what waits for a commit."""
        self.hear(begun)
        waiting, scope = begun.waiting, begun.scope
        if waiting and isinstance(scope, Scope):
            guarded(
                lambda: self.memory.settle(waiting),
                otherwise=lambda error: self.missed("remember", scope, error),
            )

    # --- a node, an agent or a model call

    def scope(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Scope | IdentityError:
        """Who acts; the error if nobody is known: memory is then off for the call, which is audited."""
        begun = self.begun(state, config)
        if begun is not None:
            told = begun.scope
            agent = None if agent_id is None else checked(agent_id)
            if isinstance(told, IdentityError) or told.agent_id == agent:
                return told
            return replace(told, agent_id=agent)
        scope = guarded(
            lambda: self.identified(state, config, agent_id),
            otherwise=lambda error: IdentityError(f"who acts cannot be told: {type(error).__name__}"),
        )
        if isinstance(scope, IdentityError):
            self.report_off(scope, agent_id)
        return scope

    def enter(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Visit:
        """Begin a visit: settle who acts, and recall a note for the actor's models. Never raises."""
        return guarded(lambda: self._enter(state, config, agent_id), otherwise=lambda error: _broken())

    def _enter(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Visit:
        runtime = (config.get("configurable") or {}).get(CONFIG_KEY_RUNTIME)
        graph = str((config.get("metadata") or {}).get("graph_id") or "")  # named on a LangGraph server alone
        notice_unguarded(self.memory, getattr(runtime, "store", None), graph=graph)
        begun = self.begun(state, config)
        if begun is not None:
            begun.settle(state, self.keys)
        scope = self.scope(state, config, agent_id)
        seen = self.seen(state, config)
        if isinstance(scope, IdentityError):
            return Visit(scope, begun=begun, seen=seen)
        return self.visit(state, scope, begun, seen=seen)

    def look(self, state: Any, config: RunnableConfig, agent_id: str | None) -> Visit:
        """Begin a visit without a note: settle who acts and which messages are there. Never raises."""

        def look() -> Visit:
            begun = self.begun(state, config)
            return Visit(self.scope(state, config, agent_id), begun=begun, seen=self.seen(state, config))

        return guarded(look, otherwise=lambda error: _broken())

    def visit(
        self,
        state: Any,
        scope: Scope,
        begun: Beginning | None,
        *,
        seen: tuple[tuple[BaseMessage, str], ...] = (),
        task: str | None = None,
    ) -> Visit:
        """Begin a visit of a known actor, with a note; `task`: the actor does not see the state, but this."""
        messages = messages_of(state, self.keys)
        asked = begun.asked if begun is not None else _last_human(messages)
        hidden = memory_calls(messages) if scope.agent_id is not None else frozenset()
        read = without_calls(messages, hidden) if task is None else [HumanMessage(task)]
        query = _question(messages, asked, scope, task)
        found: list[Recalled] = []

        def look() -> Note:
            if not read:
                return NO_NOTE
            reader = self.memory, scope.agent_id, query
            told_before = begun.notes.get(reader) if begun is not None else None
            if told_before is not None and not self._holds_still(told_before.note, scope):
                told_before = None
            said = begun.recalls_said if begun is not None else None
            shared = begun.shared if begun is not None else None
            recalled = told_before or self.memory.recalled(read, scope, query=query, said=said, shared=shared)
            if begun is not None and not recalled.note.degraded:
                begun.notes[reader] = recalled
            found.append(recalled)
            return recalled.note

        note = guarded(look, otherwise=lambda error: self.missed("recall", scope, error))
        anchors = (asked, task or ("" if scope.agent_id is None else _last_human(messages)))
        told = Telling(
            note,
            scope.agent_id,
            self.placement,
            tuple(a for a in anchors if a),
            hidden,
            self._hearing(scope, begun),
        )
        tell = (lambda: found[0].tell(scope)) if found and note else None
        return Visit(scope, told, begun, seen, tell)

    def _holds_still(self, note: Note, scope: Scope) -> bool:
        """Whether nothing in a note was deleted, erased or taken back meanwhile, excerpts included.

        False where the store does not tell: the recall that follows says what is wrong with it.
        """
        ports = self.memory.services.ports(self.memory.settings.search_timeout_ms)
        digested = tuple(dict.fromkeys(id_ for hit in note.hits for id_, _ in hit.made_of))
        ids = (*note.ids, *digested)
        quoted = [hit.record for hit in note.hits if hit.excerpt is not None and not hit.made_of]

        def look() -> bool:
            view = ports.read_store()
            owners = {scope.user_id, *(hit.record.user_id for hit in note.hits)}
            if sum(view.count(Filter(user_id=owner, ids=ids)) for owner in owners) < len({*ids}):
                return False
            said = Filter(scope.user_id, ids=digested)
            told = [*quoted, *(view.list(said, limit=len(digested)) if digested else ())]
            return not what_became(told, view).untold

        return guarded(lambda: self.memory.bridge.within(ports.left(), look), otherwise=lambda error: False)

    def leave(
        self, visit: Visit, state: Any, result: Any, config: RunnableConfig, *, node: str, leads: bool
    ) -> None:
        """End a visit: remember what was said and brought; `leads`: the user talks to this node."""
        scope = visit.scope
        if is_explaining():
            return
        self.deliver(visit, node)
        self.watch(visit, result, config, node=node)
        if isinstance(scope, IdentityError):
            return

        def keep() -> None:
            said = new_messages(state, result, self.keys)
            answers = _answers_in(said) if leads else []
            begun = visit.begun
            self._note_calls(said, scope.agent_id, config)
            if scope.agent_id is None:
                if begun is not None:
                    self.hear(begun, answers, visit.note)
                return
            # First the user's words, so that an agent that repeats them adds nothing; then its outcome.
            if begun is not None:
                self.hear(begun, (), visit.note)
            turn = begun.turn_id if begun is not None else None
            self._observe_messages(said, scope, turn)
            outcome = outcome_of(state, result, said, self.conclusions)
            self.brought(outcome, scope, visit.note, begun)
            if begun is not None:
                self.hear(begun, answers, visit.note)

        guarded(keep, otherwise=lambda error: self.missed("remember", scope, error))

    def deliver(self, visit: Visit, node: str, *, warns: bool = True) -> None:
        """Record whether a model call held the note; warn once for each graph if none did."""
        told = visit.told
        if visit.tell is None or is_explaining():
            return
        if told.is_delivered or told.placement == "state":
            guarded(visit.tell, otherwise=lambda error: None)
        elif warns and not self.warned:
            self.warned.add(node)
            _log.warning(
                "node %r was given a note and called no chat model, so nobody read it. Where it calls "
                "another kind of model, attach with placement='state'; where it calls none, leave it out: "
                "memory.attach(graph, agents=[…]) with the nodes that do",
                node,
            )

    def seen(self, state: Any, config: RunnableConfig) -> tuple[tuple[BaseMessage, str], ...]:
        """The human messages already in the graph's state and in the node's own state, with their texts."""
        held = [*messages_of(self._in_graph(config), self.keys), *messages_of(state, self.keys)]
        human = {id(m): m for m in held if isinstance(m, HumanMessage)}
        return tuple((m, m.text) for m in human.values())

    def watch(self, visit: Visit, result: Any, config: RunnableConfig, *, node: str) -> None:
        """Record a result's human messages as an agent's, except the user's own answers, which are heard."""
        begun, scope = visit.begun, visit.scope
        if begun is None or isinstance(scope, IdentityError) or is_explaining():
            return

        def look() -> None:
            texts = {text for _, text in visit.seen}
            made: list[BaseMessage] = []
            for update, key in itertools.product(updates_of(result), self.keys):
                new = [m for m in messages_of(update, (key,)) if isinstance(m, HumanMessage)]
                new = [m for m in new if m.text not in texts]
                for message in new if key in self.assigns_ids else ():
                    message.id = message.id or str(uuid.uuid4())
                made += new
            made += [m for m, text in visit.seen if m.text != text]
            if not made:
                return
            heard = {plain(word.text) for word in begun.words}
            made = [m for m in made if plain(m.text) not in heard]
            answers = begun.answers | _resumed(config)
            if own := [m for m in made if plain(m.text) in answers]:
                begun.add(own)
            if others := [m for m in made if plain(m.text) not in answers]:
                self.ledger.add(others, replace(scope, agent_id=None), by=scope.agent_id or checked(node))

        guarded(look, otherwise=lambda error: self.missed("remember", scope, error))

    def _in_graph(self, config: RunnableConfig) -> dict[str, Any]:
        """The messages of the graph's state; a node that was reached by `Send` does not get them."""
        found: dict[str, Any] = {}
        for key in self.keys:
            try:
                found[key] = ChannelRead.do_read(config, select=key)
            except (RuntimeError, KeyError):  # outside of a run; no such value
                continue
        return found

    def takes(self, call: Mapping[str, Any]) -> bool:
        """Whether the result of a tool call is an event."""
        is_memorys = is_memory_name(str(call["name"]))
        return not is_memorys and guarded(
            lambda: self.memory.queue.takes(str(call["name"]), call["args"]), otherwise=lambda error: False
        )

    def may_teach(self, call: Mapping[str, Any], result: Any, scope: Scope) -> bool:
        """Whether `tried` must hear a tool call, as most successful calls need not. Reads no store."""
        failed = self.failure_of(result, call) is not None
        return self.memory.experience.wants(str(call["name"]), scope, failed=failed)

    def tried(
        self,
        call: Mapping[str, Any],
        result: Any,
        scope: Scope | IdentityError,
        begun: Beginning | None,
    ) -> None:
        """Hear the result of a tool call: its answer, or the exception it raised. Never raises."""
        name = str(call["name"])
        if isinstance(scope, IdentityError) or isinstance(result, GraphBubbleUp) or is_explaining():
            return

        def hear() -> None:
            error = self.failure_of(result, call)
            heard = self.memory.experience
            if is_memory_name(name) or not heard.wants(name, scope, failed=error is not None):
                return
            asked = "" if begun is None else begun.asked
            call_id = None if call.get("id") is None else str(call["id"])
            heard.heard(name, call["args"], scope, error=error, call_id=call_id, asked=asked)

        guarded(hear, otherwise=lambda error: self.missed("experience", scope, error))

    def _hearing(self, scope: Scope, begun: Beginning | None) -> Hearing | None:
        """The listener for an actor's tool calls, in nodes, in functions and inside other objects."""

        def heard(tool: BaseTool, given: Any, answer: Any, call_id: str | None) -> Callable[[], None] | None:
            call: dict[str, Any] = {"name": tool.name, "args": {}, "id": call_id}
            if not self.may_teach(call, answer, scope):
                return None

            def hear() -> None:
                own = tool.args  # without what LangGraph injects
                args = (
                    {name: value for name, value in given.items() if name in own}
                    if isinstance(given, Mapping)
                    else {"input": given}
                )
                self.tried({**call, "args": args}, answer, scope, begun)

            return lambda: guarded(hear, otherwise=lambda error: None)

        return Hearing(heard, self.memory.bridge.run) if self.memory.settings.experience else None

    def failure_of(self, result: Any, call: Mapping[str, Any]) -> str | None:
        """The failure that a tool's result reports, or an exception, as a text; None: the call worked."""
        if isinstance(result, BaseException):
            return f"{type(result).__name__}: {str(result)[:_LONGEST_FAILURE]}"
        if isinstance(result, str):
            return result[:_LONGEST_FAILURE] if reports_failure(result) else None
        told = [result] if isinstance(result, ToolMessage) else new_messages({}, result, self.keys)
        for message in told:
            if isinstance(message, ToolMessage) and message.tool_call_id == call.get("id"):
                text = message.text[:_LONGEST_FAILURE]
                if message.status == "error" or reports_failure(text):
                    return text or message.status
        return None

    def broke_off(self, visit: Visit, error: BaseException, *, node: str) -> None:
        """End a visit that ended in an exception, which is heard unless LangGraph leads a run by it."""
        self.deliver(visit, node, warns=False)
        scope = visit.scope
        if isinstance(scope, Scope) and isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            guarded(lambda: self.memory.experience.run_failed(scope, error), otherwise=lambda error: None)

    def observe(self, call: Mapping[str, Any], result: Any, scope: Scope, begun: Beginning | None) -> None:
        """Put a tool's answer into the queue, as an event."""

        def take() -> None:
            told = [result] if isinstance(result, ToolMessage) else new_messages({}, result, self.keys)
            turn = begun.turn_id if begun is not None else None
            self._observe_answers([(call, m) for m in told], scope, turn)

        guarded(take, otherwise=lambda error: self.missed("queue", scope, error))

    def _observe_messages(self, said: Sequence[BaseMessage], scope: Scope, turn: str | None) -> None:
        """Queue the tool answers among a sub-agent's messages, if the calls are there too."""
        calls = {c["id"]: c for m in said if isinstance(m, AIMessage) for c in m.tool_calls}
        answers = [m for m in said if isinstance(m, ToolMessage) and m.tool_call_id in calls]
        told = [(calls[m.tool_call_id], m) for m in answers]
        for call, message in told:
            self.tried(call, message, scope, None)
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

    def _note_calls(self, said: Sequence[BaseMessage], agent: str | None, config: RunnableConfig) -> None:
        """Note which agent made each tool call, by thread too: some models number their calls from 1."""
        calls = [call for message in said if isinstance(message, AIMessage) for call in message.tool_calls]
        if not calls:
            return
        place = placed_by_host(config)
        for call in calls:
            self.agents_calls.pop((*place, call["id"]), None)
            self.agents_calls[*place, call["id"]] = agent
        for oldest in list(self.agents_calls)[:-_MOST_CALLS]:
            self.agents_calls.pop(oldest, None)

    def caller(self, call: Mapping[str, Any], config: RunnableConfig) -> str | None:
        """The sub-agent that made a tool call which a tool node now runs; None if no sub-agent did."""
        return self.agents_calls.get((*placed_by_host(config), call["id"]))

    def caller_among(
        self, agents: Collection[str], state: Any, config: RunnableConfig, node: str
    ) -> str | None:
        """Who made the calls that a tool node of several callers now runs; None: the supervisor.

        What is known of nobody, as after a restart without names, is done under the node's own name.
        """
        sent = state.get("tool_call") if isinstance(state, Mapping) else None
        said = next(
            (m for m in reversed(messages_of(sent_state(state), self.keys)) if isinstance(m, AIMessage)), None
        )
        call = sent or (said.tool_calls[0] if said is not None and said.tool_calls else None)
        key = (*placed_by_host(config), None if call is None else call["id"])
        if call is not None and key in self.agents_calls:
            return self.agents_calls[key]
        return said.name if said is not None and said.name in agents else node

    def brought(self, outcome: Outcome, scope: Scope, note: Note, begun: Beginning | None) -> None:
        """Remember the outcome of a sub-agent."""
        if outcome == Outcome() or is_explaining():
            return
        turn, waiting = (None, None) if begun is None else (begun.turn_id, begun.waiting)
        said = replace(outcome, asked="" if begun is None else begun.asked)
        self.memory.remember((), scope, outcome=said, turn_id=turn, note=note, waiting=waiting)

    def report_denied(self) -> None:
        """Audit that a sub-agent called a memory tool."""
        told = acting_scope()
        scope = told if isinstance(told, Scope) else None
        reason = "memory-tool-called-by-a-sub-agent"
        self.memory.report(event_of("tool", scope, outcome="denied", reason=reason))

    def missed(self, step: str, scope: Scope, error: BaseException) -> Note:
        self.memory.report(event_of(step, scope, outcome="degraded", reason=type(error).__name__))
        return Note(degraded=True)


def _broken() -> Visit:
    return Visit(IdentityError("memory is off for this step: it could not be entered"))


def _begins(message: BaseMessage, turn: str | None) -> bool:
    """Whether a message began the turn; with an unknown turn, any human message may have."""
    return isinstance(message, HumanMessage) and (turn is None or message.id == turn)


def _resumed(config: RunnableConfig) -> frozenset[str]:
    """The user's answers to this node's interrupts, in this run and before, as plain texts."""
    held = (config.get("configurable") or {}).get(CONFIG_KEY_SCRATCHPAD)
    return frozenset() if held is None else frozenset(texts_in(list(held.resume)))


def _last_human(messages: Sequence[BaseMessage]) -> str:
    return next((m.text for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def _question(messages: Sequence[BaseMessage], asked: str, scope: Scope, task: str | None) -> str:
    """The text to recall for: the user's question and, for a sub-agent, the task handed to it."""
    if scope.agent_id is None:
        return asked
    if task is not None:
        return "\n".join([asked, task])
    handed = next((m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls), None)
    calls = handed.tool_calls if handed else []
    tasks = [v for call in calls for v in call["args"].values() if isinstance(v, str)]
    if not any(asked in m.text for m in messages):  # it was sent a state of its own
        tasks.append(_last_human(messages))
    return "\n".join([asked, *tasks])


def _answers_in(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The answers among messages."""
    return [m for m in messages if isinstance(m, AIMessage) and m.text and _is_answer(m)]


def outcome_of(
    state: Any, result: Any, said: Sequence[BaseMessage], conclusions: Sequence[str] = ()
) -> Outcome:
    """Read a sub-agent's outcome from its update: `final_answer`, `side_effects`, a conclusion.

    Values that the state already had before the agent ran are another agent's, and are left out.
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
            is_one = name in conclusions or isinstance(getattr(value, "conclusion", None), str)
            if is_one and value and value != before.get(name):
                conclusion = value
    if answer is None and conclusion is None and not effects:
        spoken = [m for m in said if isinstance(m, (AIMessage, HumanMessage)) and m.text]
        answer = next((m.text for m in reversed(spoken) if _is_answer(m)), None)
    return Outcome(final_answer=answer, conclusion=conclusion, side_effects=tuple(effects))


def _is_answer(message: BaseMessage) -> bool:
    """Whether a message is no call, and not create_supervisor's "Transferring back to supervisor"."""
    is_handoff = message.response_metadata.get("__is_handoff_back")
    return not getattr(message, "tool_calls", None) and not is_handoff


def notice_unguarded(memory: Memory, store: BaseStore | None, *, graph: str = "") -> bool:
    """Warn once, in the log and the audit log, if a run's store reaches memory without a guard.

    A server may run a graph with a store of its own in place of the one that it was compiled with.

    Args:
        store: The store that LangGraph hands to the nodes and tools of the run, `runtime.store`.
        graph: The name of the graph; the warning comes once per name.

    Returns:
        Whether the store reaches memory unguarded. Writes an audit row: call it off the event loop.
    """
    holds_records = store is not None and store is getattr(memory.backend, "host_store", None)
    if store is None or isinstance(store, GuardedStore) or not (memory.has_guarded or holds_records):
        return False
    said = memory.hints.once(
        "the store of graph %r, %s, is not the one that memory guards: every node and tool can read and "
        "write it, those of sub-agents too. A LangGraph server replaces the store a graph was compiled "
        "with; docs/hosts/guarded_store.md says how it keeps the guard",
        graph,
        type(store).__name__,
    )
    if said:
        memory.report(AuditEvent("store", outcome="denied", reason="not-guarded"))
    return True
