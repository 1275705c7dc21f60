"""The six memory tools, for the supervisor's model. Who is acting comes from the run, never from the model.

A tool never raises: an exception in a tool ends the graph. It answers `{"error": …}` instead.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Optional, TypeVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import get_runtime
from pydantic import BaseModel, BeforeValidator, Field, create_model

from supervisor_memory.core import Memory
from supervisor_memory.errors import (
    BackendError,
    DeadlineExceeded,
    IdentityError,
    InvalidName,
    RecordNotFound,
    SettingsError,
    SupervisorMemoryError,
)
from supervisor_memory.host.run.identity import Acting, Resolver, acting, caller_name, scope_of
from supervisor_memory.host.run.state import values_of
from supervisor_memory.host.ways_in.workers import DENIAL
from supervisor_memory.language.unseen import visible
from supervisor_memory.model.records import (
    FAMILIES,
    KINDS,
    Filter,
    Kind,
    Layer,
    Record,
    Scope,
    Source,
    check_family,
    is_id,
)
from supervisor_memory.ports import guarded
from supervisor_memory.stages.insert.revise import for_people, is_for_people
from supervisor_memory.understand.lessons.lesson import OWN_KEYS
from supervisor_memory.wiring.trail import event_of

T = TypeVar("T")
_STRANGER = (
    "MemoryAccessDenied: nobody knows who calls. The host gives memory to this graph by "
    "memory.attach(graph), or to this agent by memory.middleware()"
)
_MOST_DELETED = 500
_FORGERIES = frozenset({"user_id", "langgraph_user_id", "user", "scope", "runtime"})

Namespace = Annotated[
    str | None,
    Field(
        description="A family of memories: user_profile, domain_facts, task_traces, tool_effects, or "
        "<agent>_memories. Leave it out to mean all (search) or the fitting one (write)."
    ),
]
Metadata = Annotated[dict[str, Any] | None, Field(description="Plain values to keep beside the text.")]
Layers = Annotated[
    list[Layer] | None,
    Field(description="'history': what was said, word for word. Leave it out to mean what is remembered."),
]
Where = Annotated[
    dict[str, Any] | None,
    Field(
        description="Only records that are so: {'kind': one or a list, 'tags': [all of them], 'session': and "
        "'agent': one, 'since': and 'until': ISO date or time of when it was said, 'metadata': {key: value "
        "or list of values}}."
    ),
]


def _not_forged(given: object) -> ToolRuntime | None:
    return given if isinstance(given, ToolRuntime) else None


# None where a host calls a tool by hand. Not `X | None`: ToolNode would not find it and inject nothing.
Runtime = Annotated[Optional[ToolRuntime], InjectedToolArg(), BeforeValidator(_not_forged)]  # noqa: UP045


def build_tools(
    memory: Memory, *, only: Sequence[str] | None = None, identity: Resolver | None = None
) -> list[BaseTool]:
    """The tools, named in the log by `metadata["op"]`; SettingsError: `only` names another."""
    calls = _Calls(memory, identity)
    tools: dict[str, BaseTool] = {
        f"memory_{function.__name__}": StructuredTool.from_function(
            func=function,
            coroutine=_twin(memory, function),
            name=f"memory_{function.__name__}",
            description=inspect.cleandoc(function.__doc__ or ""),
            args_schema=_schema(function.__name__, memory.settings.top_k, memory.settings.min_score),
            metadata={"op": f"memory.{function.__name__}"},
        )
        for function in (calls.search, calls.write, calls.update, calls.delete, calls.route, calls.summarize)
    }
    if unknown := [name for name in only or () if name not in tools]:
        raise SettingsError(f"there is no memory tool {unknown[0]!r}; choose among {', '.join(tools)}")
    return [tool for name, tool in tools.items() if only is None or name in only]


class _Calls:
    """The tools' functions. Their docstrings are what the model reads."""

    def __init__(self, memory: Memory, identity: Resolver | None) -> None:
        self._memory = memory
        self._identity = identity

    def search(
        self,
        query: str,
        namespace: Namespace = None,
        top_k: int | None = None,
        min_score: float | None = None,
        where: Where = None,
        *,
        layers: Layers = None,
        runtime: Runtime = None,
    ) -> list[dict[str, Any]] | dict[str, Any] | str:
        """Search long-term memory for what is known about this user, agreed definitions, earlier conclusions
        and files. Returns [{id, content, metadata, score}], best first. With an id or a metadata.ref_id as
        query: what was said there, word for word, in order."""

        def call(scope: Scope) -> list[dict[str, Any]]:
            if said := self._messages_around(query, scope):
                return [_as_shown(message, 1.0) for message in said]
            hits = self._memory.search(
                query,
                user_id=scope.user_id,
                families=[self._family(namespace)] if namespace else None,
                layers=layers,
                where=where,
                limit=None if top_k is None else max(1, min(top_k, 50)),
                threshold=None if min_score is None else min(max(min_score, 0.0), 1.0),
                session_id=scope.session_id,
                task=scope.task,
            )
            return [_as_shown(hit.record, hit.score) for hit in hits]

        # An empty list would become a message without content, which some providers refuse.
        return self._run(runtime, call) or "[]"

    def write(
        self, content: str, namespace: Namespace = None, metadata: Metadata = None, *, runtime: Runtime = None
    ) -> dict[str, Any]:
        """Remember one statement for later sessions: a preference, a definition, a conclusion, a file.
        Near-duplicates are merged. Returns {id, status}."""

        def call(scope: Scope) -> dict[str, Any]:
            family = self._family(namespace) if namespace else None
            extra = dict(metadata or {})
            result = self._memory.write(
                content,
                user_id=scope.user_id,
                kind=_kind_of(extra.pop("type", None), family),
                family=family,
                metadata=extra,
                session_id=scope.session_id,
                run_id=scope.run_id,
                task=scope.task,
                source_class="system",
            )
            return {"id": result.id, "status": result.status}

        return self._run(runtime, call)

    def update(
        self,
        id: str,
        content: str | None = None,
        metadata: Metadata = None,
        merge: bool = True,  # noqa: FBT001, FBT002  # the signature models are given
        *,
        runtime: Runtime = None,
    ) -> dict[str, Any]:
        """Change a memory by id. metadata.strategy is overwrite, append or summarise; merge=false replaces.
        Returns {id, status}."""

        def call(scope: Scope) -> dict[str, Any]:
            self._in_task(id, scope)
            # As with `write`, the words are the supervisor's, over the user's too.
            source = Source("system", "supervisor", scope.session_id, scope.run_id)
            done = self._memory.update(
                id, content=content, metadata=metadata, merge=merge, user_id=scope.user_id, source=source
            )
            return {"id": done.id, "status": done.status}

        return self._run(runtime, call)

    def delete(
        self,
        id: str | None = None,
        filters: Annotated[
            dict[str, str] | None,
            Field(description="Instead of id: {'namespace': family} and/or {'kind': kind}."),
        ] = None,
        *,
        keep_said: bool = False,
        runtime: Runtime = None,
    ) -> dict[str, Any]:
        """Delete a memory by id, or all of one namespace or kind by filters. Returns {deleted}.

        Their messages are recalled no more either, unless keep_said is true.
        """

        def call(scope: Scope) -> dict[str, int | str]:
            delete = functools.partial(self._memory.delete, user_id=scope.user_id, keep_said=keep_said)
            if id is not None:
                if is_for_people(record := self._in_task(id, scope)):
                    raise for_people(record)
                return {"deleted": delete(id)}
            seconds = self._memory.settings.search_timeout_ms / 1000
            where = self._filter(filters, scope)
            listed = self._memory.backend.list
            found = self._memory.bridge.within(seconds, listed, where, limit=_MOST_DELETED)
            left = [record for record in found if is_for_people(record)]
            deleted = sum(delete(record.id) for record in found if record not in left)
            return {"deleted": deleted} | ({"left": str(for_people(left[0]))} if left else {})

        return self._run(runtime, call)

    def route(self, message: str, policy: str = "default", *, runtime: Runtime = None) -> dict[str, Any]:
        """Whether a message needs memory: returns {should_read, should_write, namespaces}."""

        def call(scope: Scope) -> dict[str, Any]:
            if policy != "default":
                raise SettingsError(f"there is no routing policy {policy!r}; use 'default'", policy=policy)
            told = self._memory.route(message, scope)
            return {
                "should_read": told.should_read,
                "should_write": told.should_write,
                "namespaces": list(told.families or dict.fromkeys(FAMILIES[kind] for kind in told.kinds)),
            }

        return self._run(runtime, call)

    def summarize(self, items: list[str], goal: str = "", *, runtime: Runtime = None) -> dict[str, Any]:
        """One text of several memories (by id) or texts, for a goal. Returns {summary}. With no items: what
        is remembered at all, a line for each kind and whom or what it is about."""

        def call(scope: Scope) -> dict[str, Any]:
            if not items:
                topics = self._memory.topics(user_id=scope.user_id, task=scope.task)
                return {"summary": "\n".join(map(str, topics))}
            for id in filter(is_id, items):
                self._in_task(id, scope)
            return {"summary": self._memory.summarize(items, goal=goal, user_id=scope.user_id)}

        return self._run(runtime, call)

    def _run(self, runtime: ToolRuntime | None, call: Callable[[Scope], T]) -> T | dict[str, Any]:
        """Run the call as the run's user; if that is refused or fails, return `{"error": …}`."""
        told = acting()
        who = told.scope if told is not None and isinstance(told.scope, Scope) else None
        if reason := self._refusal(told, who):
            self._report(who, "denied", reason)
            return {"error": _STRANGER if told is None else DENIAL}

        def as_user() -> T | dict[str, Any]:
            try:
                scope = self._scope(told.scope if told else None, runtime)
                self._report_forged(runtime, scope)
                return call(scope)
            except (BackendError, DeadlineExceeded) as error:
                self._report(who, "degraded", type(error).__name__)
                return {"error": f"{type(error).__name__}: {error}"}
            except SupervisorMemoryError as error:
                if isinstance(error, IdentityError) and not isinstance(error, InvalidName):
                    self._report(who, "denied", type(error).__name__)
                return {"error": f"{type(error).__name__}: {error}"}

        def broken(error: BaseException) -> dict[str, Any]:
            self._report(who, "degraded", type(error).__name__)
            return {"error": f"{type(error).__name__}: memory does not work now; go on without it"}

        return guarded(as_user, otherwise=broken)

    def _refusal(self, told: Acting | None, who: Scope | None) -> str | None:
        """The code of why the caller is refused; None if it is the supervisor."""
        if told is None:
            return "caller-unknown" if self._memory.is_fenced else None
        if who is not None and who.agent_id is not None:
            return "memory-tool-called-by-a-sub-agent"
        return None if told.is_here() else "memory-tool-called-inside-another-agent"

    def _scope(self, acting: Scope | IdentityError | None, runtime: ToolRuntime | None) -> Scope:
        if isinstance(acting, IdentityError):
            raise acting
        if acting is not None:
            return acting
        state, config = ({}, _config()) if runtime is None else (runtime.state, runtime.config)
        key = self._memory.backend.audit.log_id.encode()
        told = scope_of(state, config, agent_id=None, resolver=self._identity, key=key)
        return self._memory.services.scope(told)

    def _report_forged(self, runtime: ToolRuntime | None, scope: Scope) -> None:
        """Audit a model's attempt to name a user in the arguments, which is ignored."""
        if runtime is None:
            return
        held = runtime.state if isinstance(runtime.state, list) else values_of(runtime.state).values()
        lists = [held, *(value for value in held if isinstance(value, list))]
        said = [m for messages in lists for m in messages if isinstance(m, AIMessage)]
        calls = [call for message in said for call in message.tool_calls]
        mine = next((call for call in reversed(calls) if call["id"] == runtime.tool_call_id), None)
        if mine and (forged := sorted(_FORGERIES & set(mine["args"]))):
            self._report(scope, "denied", f"argument-ignored:{forged[0]}")

    def _report(self, scope: Scope | None, outcome: Literal["denied", "degraded"], reason: str) -> None:
        caller = caller_name() if outcome == "denied" else None
        self._memory.report(event_of("tool", scope, outcome=outcome, reason=reason, caller=caller))

    def _family(self, namespace: str) -> str:
        """The family a model asked for; raises InvalidName where this memory has none such."""
        families = {*FAMILIES.values(), *self._memory.settings.namespaces.values()}
        if check_family(namespace) in families or namespace.endswith("_memories"):
            return namespace
        raise InvalidName(
            f"there is no namespace {namespace!r}; use {', '.join(sorted(families))} or <agent>_memories",
            namespace=namespace,
        )

    def _in_task(self, id: str, scope: Scope) -> Record:
        """The user's record, if it belongs to this task or to none; else RecordNotFound or InvalidName."""
        record = self._memory.get(id, user_id=scope.user_id)
        if record.task not in scope.tasks:
            raise InvalidName(f"record {id!r} belongs to another task", id=id)
        return record

    def _messages_around(self, query: str, scope: Scope) -> list[Record]:
        """The messages around a record's origin, if the query is the id of one of the user's records."""
        if not is_id(query):
            return []
        try:
            self._in_task(query, scope)
        except RecordNotFound:  # a text about an id of something else
            return []
        return self._memory.messages(query, user_id=scope.user_id)

    def _filter(self, filters: dict[str, str] | None, scope: Scope) -> Filter:
        allowed = {"namespace", "kind"}
        if not filters or set(filters) - allowed:
            wrong = next(iter(set(filters or ()) - allowed), None)
            raise InvalidName(
                f"filters {'hold ' + repr(wrong) if wrong else 'are empty'}; give an id, or filters of "
                f"{' and '.join(sorted(allowed))}",
                filters=filters,
            )
        kind = filters.get("kind")
        if kind is not None and kind not in KINDS:
            raise InvalidName(f"kind is {kind!r}; use one of {', '.join(KINDS)}", kind=kind)
        family = filters.get("namespace")
        return Filter(
            user_id=scope.user_id,
            families=(self._family(family),) if family is not None else None,
            tasks=scope.tasks,
            kinds=(kind,) if kind else None,
        )


def _as_shown(record: Record, score: float) -> dict[str, Any]:
    """A record as a tool shows it to a model."""
    plain = {name: value for name, value in record.metadata.items() if name not in OWN_KEYS}
    metadata = {**plain, "kind": record.kind, "namespace": record.family}
    if record.ref_id is not None:
        metadata["ref_id"] = record.ref_id
    if record.layer == "history":
        metadata["said_by"] = record.source.agent_id or record.source.speaker or record.source.source_class
    content = visible(record.content)
    return {"id": record.id, "content": content, "metadata": metadata, "score": round(score, 4)}


def _config() -> RunnableConfig:
    """The config of the node that calls a tool by hand; raises IdentityError where nothing runs."""
    try:
        runtime: object | None = get_runtime()
    except (RuntimeError, KeyError):
        runtime = None
    if runtime is None:
        raise IdentityError(
            "the tool runs outside of a graph, so nobody is acting; call memory.search(…) instead"
        )
    return get_config()


def _kind_of(asked: object, family: str | None) -> Kind | None:
    if asked in KINDS:
        return asked
    return next((kind for kind, name in FAMILIES.items() if name == family), None)


@functools.cache
def _schema(verb: str, top_k: int, min_score: float) -> type[BaseModel]:
    """The schema of a tool's arguments; cached, since making it takes longer than a search."""
    function = getattr(_Calls(cast("Memory", None), None), verb)
    tool = StructuredTool.from_function(function, name=f"memory_{verb}")
    schema = cast("type[BaseModel]", tool.args_schema)
    if verb != "search":
        return schema
    return create_model(
        schema.__name__, __base__=schema, top_k=(int, top_k), min_score=(float, min_score)
    )  # the schema shows the model the defaults of this memory


def _twin(memory: Memory, function: Callable[..., Any]) -> Callable[..., Any]:
    """The async form of a tool: it runs off the event loop, in the caller's context."""

    async def twin(**arguments: Any) -> Any:
        return await memory.bridge.run(function, **arguments)

    return twin
