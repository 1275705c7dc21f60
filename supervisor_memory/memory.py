"""SupervisorMemory: the object a user holds: a `Memory` that can be given to a LangGraph graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from supervisor_memory.bridge import twin
from supervisor_memory.core import Memory
from supervisor_memory.model.records import Scope

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.store.base import BaseStore, IndexConfig, TTLConfig

    from supervisor_memory.host.explain_prompt import Prompt
    from supervisor_memory.host.run.identity import Resolver
    from supervisor_memory.host.thread import LongThread
    from supervisor_memory.host.ways_in.long_threads import LongThreads
    from supervisor_memory.host.ways_in.middleware import MemoryMiddleware
    from supervisor_memory.host.ways_in.turn import HostTurn
    from supervisor_memory.host.ways_in.wrapped import ScopeOf

G = TypeVar("G")
F = TypeVar("F", bound=Callable[..., Any])


class SupervisorMemory(Memory):
    """Long-term memory for a supervisor and the agents it leads; its arguments are those of `Memory`.

    What `Memory` does needs no graph. The verbs here give memory to graphs of LangGraph, which is imported
    when the first of them is called.
    """

    def attach(
        self,
        graph: G,
        *,
        supervisor: str | None = "supervisor",
        agents: Sequence[str] | None = None,
        messages_key: str | Sequence[str] = "messages",
        conclusion_key: str | Sequence[str] | None = None,
        placement: Literal["system", "last_user", "state"] = "system",
        nested: Literal["agent", "user"] = "agent",
        worker_memory_tools: Literal["refuse", "deny"] = "refuse",
        store_tools: Sequence[str] = (),
        identity: "Resolver | None" = None,
    ) -> G:
        """The same graph with memory: a new object of the same type; the original is untouched.

        Nodes see the state as without memory; the note goes into the prompts of the chat models they call.

        Args:
            graph: A `StateGraph`, a builder from `create_supervisor`, or either compiled.
            supervisor: Its node. A note is injected before it speaks; what the user states is kept.
                None: nobody leads, as in a swarm; every agent is spoken to, and none has memory tools.
            agents: The nodes it leads; None: every other node that is no tool node.
            messages_key: The state key that holds the messages, or several.
            conclusion_key: The state key, or keys, whose value is what an agent concluded, beside
                `final_answer` and `side_effects`.
            placement: Where the note goes: "system": the end of the prompt's system message; "last_user": the
                first block of the user's newest message, which keeps a provider's cache of all before it;
                "state": the first of the messages that a node sees, for nodes that call no chat model of
                LangChain's. See docs/hosts/placement.md.
            nested: Whose words the human messages of its input are where it runs inside another graph that
                has no memory around it.
            worker_memory_tools: What to do when a sub-agent carries a memory tool: refuse to wrap, or
                let the tool stay and answer MemoryAccessDenied.
            store_tools: Names of the supervisor's own tools that may use a guarded store, see `guard`.
            identity: (a node's state, the run's config) → the user id; asked before all other ways.

        Raises:
            UnknownNode: no such node; the error lists the nodes.
            WorkerHasMemoryTools: with "refuse".
        """
        from supervisor_memory.host.ways_in.attach import attach

        return attach(
            self,
            graph,
            supervisor=supervisor,
            agents=agents,
            messages_key=messages_key,
            conclusion_key=conclusion_key,
            placement=placement,
            nested=nested,
            worker_memory_tools=worker_memory_tools,
            store_tools=store_tools,
            identity=identity,
        )

    def middleware(
        self,
        *,
        agent_id: str | None = None,
        agents: Sequence[str] = (),
        placement: Literal["system", "last_user"] = "system",
        messages_key: str | Sequence[str] = "messages",
        nested: Literal["agent", "user"] = "agent",
        tools: Sequence[str] | None = None,
        store_tools: Sequence[str] = (),
        identity: "Resolver | None" = None,
    ) -> "MemoryMiddleware":
        """Memory for `create_agent` and deepagents: `create_agent(model, tools, middleware=[this])`.

        The note is added to each model call and to nothing else; the memory tools come with it; a tool
        that runs an agent is a handoff: that agent reads a note of its own, and what it brings is kept.

        Args:
            agent_id: None: for the supervisor. A name: for the sub-agent of that name; it gets no tools.
            agents: Names of tools that run an agent where nobody can see it, such as one behind HTTP.
            placement: Where the note goes, as in `attach`; there is no state to put it into.
            nested: As in `attach`.
            tools: The memory tools to bring, such as `["memory_search"]`; None: all six.
            store_tools: Names of the supervisor's own tools that may use a guarded store, see `guard`.

        Raises:
            GraphError: langchain is not installed.
        """
        from supervisor_memory.host.ways_in.middleware import middleware

        return middleware(
            self,
            agent_id=agent_id,
            agents=agents,
            placement=placement,
            messages_key=messages_key,
            nested=nested,
            tools=tools,
            store_tools=store_tools,
            identity=identity,
        )

    def long_threads(self, *, last: int = 4, tokens: int = 1_000) -> "LongThreads":
        """Short prompts of long threads: a middleware for `create_agent`, beside `middleware()` or alone.

        A model reads the last turns as they were, and before them a text with the state of the conversation
        and the earlier messages that the user's latest words are about. The thread itself stays whole.

        Args:
            last: How many turns stay as they were, the present one included.
            tokens: The most tokens of the text that stands for the turns before.

        Raises:
            GraphError: langchain is not installed.
        """
        from supervisor_memory.host.thread import Shortener
        from supervisor_memory.host.ways_in.long_threads import LongThreads

        return LongThreads(self, Shortener(self.services, last=last, tokens=tokens))

    def thread(
        self, snapshot: Mapping[str, Any] | None = None, *, last: int = 4, tokens: int = 1_000
    ) -> "LongThread":
        """A conversation outside of LangChain's agents, and its short prompts; see `long_threads`.

        Args:
            snapshot: What `snapshot()` of an earlier one returned; None: it begins.

        Raises:
            InvalidContent: that is no snapshot.
        """
        from supervisor_memory.host.thread import LongThread, Shortener

        made = LongThread(Shortener(self.services, last=last, tokens=tokens))
        if snapshot is not None:
            made.restore(snapshot)
        return made

    def bind_agent(
        self,
        agent: G,
        name: str | None = None,
        *,
        messages_key: str | Sequence[str] = "messages",
        conclusion_key: str | Sequence[str] | None = None,
        placement: Literal["system", "last_user"] = "system",
        worker_memory_tools: Literal["refuse", "deny"] = "refuse",
        identity: "Resolver | None" = None,
    ) -> G:
        """A sub-agent that brings its memory along: in tools, in deepagents, in `create_supervisor([…])`.

        It reads a note of its own whenever it is run, and what it answers is kept.

        Args:
            agent: A compiled graph; the original is untouched.
            name: Whose notes it reads; None: the graph's own name.
            messages_key, conclusion_key, placement: As in `attach`.

        Raises:
            GraphError: it is no compiled graph, or nobody named it.
            WorkerHasMemoryTools: with "refuse".
        """
        from supervisor_memory.host.ways_in.bound import bind_agent

        return bind_agent(
            self,
            agent,
            name,
            messages_key=messages_key,
            conclusion_key=conclusion_key,
            placement=placement,
            worker_memory_tools=worker_memory_tools,
            identity=identity,
        )

    def explain_prompt(
        self, graph: Any, input: Any, config: "RunnableConfig | None" = None
    ) -> "list[Prompt]":
        """What the models of a graph would read for an input, without calling any. Nothing is kept.

        Each node is run by itself on the input, up to its first model call: what it does before that is done.

        Args:
            graph: What `attach` returned, or an agent with the middleware; compiled or not.
        """
        from supervisor_memory.host.explain_prompt import explained

        return explained(graph, input, config)

    def silent(self) -> "AbstractContextManager[None]":
        """Tell no note to the chat models called inside; the tag "memory:off" does it for one call."""
        from supervisor_memory.host.prompts import silent

        return silent()

    def turn(self, scope: Scope, text: str) -> "HostTurn":
        """One turn of a conversation that the host drives itself.

        The chat models that are called inside read the supervisor's note; what the user said is heard, and
        what `answered` is given is kept with it.
        """
        from supervisor_memory.host.ways_in.turn import HostTurn

        return HostTurn(self, scope, text)

    def wrap(self, agent: str | None = None, *, scope: "ScopeOf | None" = None) -> "Callable[[F], F]":
        """A decorator for any function, sync or async, that takes messages first and answers with some.

        The function is given the messages with a note; what it answers is kept. Messages are a text, or a
        list of texts, mappings, pairs or messages of LangChain; an answer is a text, a message, a list of
        these, or a mapping with such a list under "messages". What the user said is heard however it ends.

        Args:
            agent: None: a supervisor, and the newest message of the user is heard. A name: a sub-agent, whose
                messages are a task and nobody's words.
            scope: Who acts, or a function of the call's arguments that says so. None: who acts in the turn
                or node that calls it.

        Raises:
            GraphError: the function yields its answer in parts.
            IdentityError: at a call: nobody says who acts.
        """
        from supervisor_memory.host.ways_in.wrapped import wrap

        return wrap(self, agent, scope)

    def store(
        self, *, guarded: bool = True, index: "IndexConfig | None" = None, ttl: "TTLConfig | None" = None
    ) -> "BaseStore":
        """This memory as a LangGraph store.

        Args:
            guarded: True: for `compile(store=…)`; only memory tools of the supervisor can use it, in
                namespaces whose second segment is the run's user. False: for the host itself, such as a
                store manager of langmem; never pass that one to `compile`.
            index: An embedder and fields of its own; None: the memory's embedder, on the text.
            ttl: As LangGraph's other stores take it.
        """
        from supervisor_memory.host.store.store import MemoryStore

        held = MemoryStore(self, index=index, ttl=ttl)
        if not guarded:
            return held
        from supervisor_memory.host.store.guard import GuardedStore

        self.fence()
        self.has_guarded = True
        return GuardedStore(held, self, namespaces=[()], per_user=True)

    def guard(
        self, store: "BaseStore", *, namespaces: "Iterable[Sequence[str]] | None" = None
    ) -> "BaseStore":
        """The host's own store for `compile(store=…)`; only the supervisor's memory tools use memory in it.

        Args:
            namespaces: Prefixes to guard; None: `memories`, the families of records, `*_memories` and the
                items of a `BaseStoreBackend`; `[()]`: all of it. What is not guarded passes.
        """
        from supervisor_memory.host.store.guard import GuardedStore

        self.fence()
        self.has_guarded = True
        return GuardedStore(store, self, namespaces=namespaces)

    def tools(self, only: Sequence[str] | None = None) -> "list[BaseTool]":
        """The six memory tools, for the supervisor alone: pass them where it is built.

        Args:
            only: Names to keep, such as `["memory_search"]`; None: all six.
        """
        from supervisor_memory.host.tools import build_tools

        return build_tools(self, only=only)

    aexplain_prompt = twin(explain_prompt)
