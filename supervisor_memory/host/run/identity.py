"""Find out who acts in a run: from sources the host trusts, never from a model's words."""

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_RUNTIME
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from supervisor_memory.bridge import holding
from supervisor_memory.errors import IdentityConflict, IdentityError, MissingUser
from supervisor_memory.host.prompts import Telling, tells
from supervisor_memory.host.run.state import value_of
from supervisor_memory.host.store.addresses import user_for
from supervisor_memory.model.records import Scope, check_name

Resolver: TypeAlias = Callable[[Any, RunnableConfig], str | None]
"""(the node's state, the run's config) → the user id; the first authority when given."""

_ANONYMOUS = "anon:"
_USER_KEYS = ("user_id", "langgraph_user_id")
_NOBODY = (None, "", "langgraph-studio-user")
"""What names nobody. Under custom authentication Studio comes with that identity; it is a tool."""


def scope_of(
    state: Any,
    config: RunnableConfig,
    *,
    agent_id: str | None,
    resolver: Resolver | None,
    key: bytes,
    context: Any = None,
) -> Scope:
    """Who acts in a run.

    In this order: the resolver, `runtime.context`, `configurable` (`user_id`, `langgraph_user_id`),
    the server's authenticated user, the state's `user_id`. Whoever is named must be the same. With
    nobody named, a thread has an anonymous user of its own, the same at every node of it.

    Args:
        key: The store's secret, with which the anonymous id is hashed.
        context: The runtime context of a run that has not started yet; None: read it from the current run.

    Raises:
        IdentityConflict: two of them name different users.
        MissingUser: nobody is named and there is no thread either.
        InvalidName: a user id that could be mistaken for another.
    """
    configurable = config.get("configurable") or {}
    claimed = _claims(state, config, configurable, resolver, context)
    named = {where: _as_id(user) for where, user in claimed if user not in _NOBODY}
    users = {check_name(user, what="user id") for user in named.values()}
    if len(users) > 1:
        where = ", ".join(named)
        raise IdentityConflict(
            f"two users in one run: {where} do not name the same; memory is off for it", claims=named
        )
    thread = configurable.get("thread_id")
    user = users.pop() if users else anonymous(thread, key)
    metadata = config.get("metadata") or {}
    run = config.get("run_id") or metadata.get("run_id") or configurable.get("run_id")
    run = run or getattr(_of_runtime("execution_info"), "run_id", None)  # which nodes do not find elsewhere
    return Scope(
        user_id=user,
        agent_id=_checked_or_none(agent_id),
        session_id=_checked_or_none(thread),
        run_id=_checked_or_none(run),
        task=_checked_or_none(configurable.get("memory_task")),
    )


def _claims(
    state: Any,
    config: RunnableConfig,
    configurable: Mapping[str, Any],
    resolver: Resolver | None,
    context: Any,
) -> list[tuple[str, Any]]:
    claims: list[tuple[str, Any]] = []
    if resolver is not None:
        claims.append(("the resolver", resolver(state, config)))
    context = _of_runtime("context") if context is None else context
    claims += [(f"runtime.context.{name}", _claim(name, value_of(context, name))) for name in _USER_KEYS]
    claims += [(f"configurable.{name}", _claim(name, configurable.get(name))) for name in _USER_KEYS]
    server_user = configurable.get("langgraph_auth_user")
    claims.append(("the server", None if server_user is None else value_of(server_user, "identity")))
    claims.append(("state.user_id", value_of(state, "user_id")))
    return claims


def users_of(config: RunnableConfig, context: Any = None) -> frozenset[str]:
    """The user ids in a config and a runtime context, which no node can change."""
    configurable = config.get("configurable") or {}
    runtime = configurable.get(CONFIG_KEY_RUNTIME)
    context = getattr(runtime, "context", None) if context is None else context
    claims = _claims({}, config, configurable, None, context)
    return frozenset(str(_as_id(user)) for _, user in claims if user not in _NOBODY)


def placed_by_host(config: RunnableConfig) -> tuple[Any, ...]:
    """A key for the thread and the users of a run, the same in all its steps, also after an interrupt."""
    configurable = config.get("configurable") or {}
    control = getattr(configurable.get(CONFIG_KEY_RUNTIME), "control", None)
    return configurable.get("thread_id") or control, users_of(config)


def _as_id(user: Any) -> Any:
    """A user id as text: a positive integer or a UUID, such as a database key, becomes its string."""
    is_number = isinstance(user, int) and not isinstance(user, bool) and user > 0  # 0 stands for nobody
    return str(user) if is_number or isinstance(user, UUID) else user


def _claim(name: str, value: Any) -> Any:
    """Read `langgraph_user_id`, which may be a user's label: langmem's templates put it into a namespace."""
    if name != "langgraph_user_id" or not isinstance(value, str):
        return value
    try:
        return user_for(value)
    except IdentityError:  # no label, but an id as it is
        return value


def _of_runtime(name: str) -> Any:
    """A part of LangGraph's runtime, such as the context; None in a chain outside of a graph."""
    try:
        return getattr(get_runtime(), name, None)
    except (RuntimeError, LookupError):  # outside of a run, as when a tool is called by hand
        return None


def anonymous(thread: Any, key: bytes) -> str:
    """The user id of a thread without a named user, a keyed hash; MissingUser without a thread."""
    if thread in (None, ""):
        raise MissingUser(
            "no user id and no thread id in this run, so memory is off for it; pass "
            'config={"configurable": {"user_id": …, "thread_id": …}} or put user_id into the state'
        )
    return _ANONYMOUS + hmac.new(key, str(thread).encode(), hashlib.sha256).hexdigest()[:24]


def named(user: Any, thread: Any) -> Scope:
    """The scope of a user in a thread; raises InvalidName for an id that could be mistaken for another."""
    return Scope(check_name(_as_id(user), what="user id"), session_id=_checked_or_none(thread))


def _checked_or_none(value: Any) -> str | None:
    return None if value in (None, "") else checked(value)


def checked(value: Any) -> str:
    """A session, run or agent name; a text that is no valid name becomes a hash."""
    try:
        return check_name(str(value), what="session id")
    except IdentityError:
        return "sha256:" + hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, with which note, and how deep in subgraphs that still holds.

    `told` is None if no note was recalled for the actor.
    `path` is the LangGraph task in which acting began; `reach` is how many levels of subgraphs below it still
    act as the same actor. Anything deeper, or on another thread, is an agent that a tool runs.
    """

    scope: Scope | IdentityError
    told: Telling | None = None
    path: Sequence[str] = ()
    reach: int = 0

    def is_here(self) -> bool:
        """Whether the current task still belongs to this actor."""
        return _is_within(self.path, reach=self.reach)


@dataclass(slots=True)
class _Grant:
    """The right to use a guarded store, for one task, until its tool call ends, even in a copied context."""

    scope: Scope
    path: Sequence[str]
    is_over: bool = False


_ACTING: ContextVar[Acting | None] = ContextVar("supervisor_memory_acting", default=None)
_GRANT: ContextVar[_Grant | None] = ContextVar("supervisor_memory_grant", default=None)


def acting() -> Acting | None:
    """Who acts; None outside of wrapped nodes and tool calls."""
    found = _ACTING.get()
    return None if found is None or (found.told is not None and found.told.is_over) else found


def acting_scope() -> Scope | IdentityError | None:
    """The scope of the running node or tool call; the error if memory is off; None outside of one."""
    found = acting()
    return None if found is None else found.scope


@contextmanager
def acting_as(scope: Scope | IdentityError, told: Telling | None = None, *, reach: int = 0) -> Iterator[None]:
    """Make this scope the actor for tools, and give this note to models, inside the block."""
    with holding(_ACTING, Acting(scope, told, _path(_config()), reach)), tells(told):
        yield


@contextmanager
def granting(scope: Scope) -> Iterator[None]:
    """Open the guarded store for one call of a memory tool."""
    grant = _Grant(scope, _path(_config()))
    try:
        with holding(_GRANT, grant):
            yield
    finally:
        grant.is_over = True


def granted_scope() -> Scope | None:
    """The scope that a memory tool is being called for right now; None: the store stays closed."""
    grant = _GRANT.get()
    is_open = grant is not None and not grant.is_over and _is_within(grant.path)
    return grant.scope if grant is not None and is_open else None


def caller_name() -> str | None:
    """The name of the running agent or node, for the audit log; None if LangGraph names none."""
    found = acting_scope()
    if isinstance(found, Scope) and found.agent_id is not None:
        return found.agent_id
    config = _config()
    name = (config.get("metadata") or {}).get("lc_agent_name")
    path = _path(config)
    return str(name) if name else (path[0].partition(":")[0] or None if path else None)


def _config() -> Any:
    try:
        return get_config()
    except RuntimeError:  # outside of a run
        return {}


def _path(config: Any) -> list[str]:
    """The path of the current task: one segment per graph, from the outermost to the innermost."""
    found = (config.get("configurable") or {}).get("checkpoint_ns")
    return str(found).split("|") if found else []


def _is_within(path: Sequence[str], *, reach: int = 0) -> bool:
    """Whether the current task is `path`, or lies at most `reach` levels of subgraphs below it."""
    here = _path(_config())
    # Called by hand with a config of its own, a tool knows no task.
    return not here or (here[: len(path)] == path and len(here) - len(path) <= reach)
