"""Replay threads through a graph, bare and with memory; what went wrong is told, never averaged."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from supervisor_memory.errors import SettingsError
from supervisor_memory.evaluation.graph import Factory, made
from supervisor_memory.evaluation.judges import Judge, by_rules, exact, together
from supervisor_memory.evaluation.meter import MEMORY, Meter
from supervisor_memory.evaluation.threads import Asked, Thread
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.explain import REASONS, why
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

Fate: TypeAlias = Literal["answered", "raised", "interrupted", "not reached"]
BARE: Final = "bare"
_FIRST: Final = 1_767_225_600.0
"""When a thread of unknown time is said: 2026-01-01. Sessions follow each other by a day."""
_DAY: Final = 86_400.0
_MINUTE: Final = 60.0
_NOTES: Final = 20
_STEPS: Final = 100
_PATIENCE_MS: Final = 60_000
"""Generous deadlines: a busy machine may change the time of a turn, but no answer."""
_STORES: Final = ("in_memory", "json", "sqlite")


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the graph with memory. None: as the settings say."""

    recipe: str | None = None
    backend: str | None = None
    embedder: str | None = None

    @property
    def name(self) -> str:
        """What was chosen, or "memory"."""
        return " ".join(each for each in (self.recipe, self.backend, self.embedder) if each) or "memory"


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens in and out."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def of(self, cost: Mapping[str, int]) -> float:
        """What one agent's calls cost, in dollars."""
        told = self.tokens_in * cost.get("tokens_in", 0) + self.tokens_out * cost.get("tokens_out", 0)
        return told / 1_000_000


@dataclass(frozen=True, slots=True)
class Told:
    """A note that a reader was given: its records in words, each with why it was there."""

    reader: str
    tokens: int
    records: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of a turn in an arm.

    `error`: what the graph raised, by its name. `is_right`: None where nothing judges it; `judge_error`: why
    the judge could not say. `costs` are amounts and `seconds` of model calls by agent; `took` is the whole
    turn, in seconds.
    """

    fate: Fate
    text: str = ""
    error: str = ""
    is_right: bool | None = None
    judge_error: str = ""
    costs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    took: float = 0.0
    notes: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Replayed:
    """One turn in all arms. `lacks`: tools of the recording that the graph was never seen to have."""

    thread: str
    number: int
    asked: Asked
    answers: Mapping[str, Answered]
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replays:
    """All turns, in order, and the names of the arms: "bare" first."""

    arms: tuple[str, ...]
    turns: tuple[Replayed, ...]


def evaluate(
    threads: Sequence[Thread],
    factory: Factory,
    *,
    arms: Sequence[Arm] = (Arm(),),
    settings: Settings | None = None,
    judge: Judge | None = None,
    sql: Judge | None = None,
    supervisor: str | None = "supervisor",
    agents: Sequence[str] | None = None,
    messages_key: str = "messages",
    asynchronous: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Replays:
    """Run every thread through the graph bare, and with a memory of its own in each arm.

    The graph's models and tools really run. Memory is made anew in a directory that goes with the call; no
    store of yours is opened. LangSmith's tracing is off meanwhile. The clock of memory is the thread's.

    Args:
        factory: Makes the graph; see `Factory`.
        settings: What memory is in all arms, but for what an arm names. None: the defaults.
        judge: Judges the turns with `expected`. None: the answer has to be one of those, word for word.
        sql: Judges the turns with `sql`, as a `SqlJudge`.
        supervisor, agents, messages_key: As in `attach`.
        asynchronous: Whether the graph is called by `ainvoke`.
        progress: Called with how many turns are done, and of how many.

    Raises:
        SettingsError: an arm cannot be made, or a turn has `sql` and nothing judges it.
        GraphError: the factory makes no graph, or memory cannot be attached to it.
    """
    from langsmith.run_helpers import tracing_context

    if sql is None and any(turn.sql for thread in threads for turn in thread.turns):
        raise SettingsError("some turns are judged by a query; name the database it asks")
    judges = [judge or exact, by_rules, *([sql] if sql is not None else [])]
    total, done = sum(len(thread.turns) for thread in threads), 0
    found: list[Replayed] = []
    with ExitStack() as stack:
        stack.enter_context(tracing_context(enabled=False))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        how = {"supervisor": supervisor, "agents": agents, "messages_key": messages_key}
        runners = {BARE: _Runner(factory, None, how, asynchronous=asynchronous)}
        for number, arm in enumerate(arms):
            if arm.name in runners:
                raise SettingsError(f"the arm {arm.name!r} is named twice")
            clock = _Clock()
            memory, asking = _memory_of(arm, settings or Settings(), folder / str(number), clock)
            stack.enter_context(memory)
            runner = _Runner(factory, (memory, clock, asking), how, asynchronous=asynchronous)
            runners[arm.name] = runner
        for thread in threads:
            for number, answers in enumerate(_turn_by_turn(thread, runners, together(*judges))):
                found.append(Replayed(thread.id, number, thread.turns[number], answers))
                done += 1
                progress(done, total)
    had = set().union(*(runner.meter.tools for runner in runners.values()))
    return Replays(
        tuple(runners),
        tuple(
            Replayed(
                each.thread, each.number, each.asked, each.answers, tuple(sorted(each.asked.tools - had))
            )
            for each in found
        ),
    )


def _turn_by_turn(
    thread: Thread, runners: Mapping[str, "_Runner"], judge: Judge
) -> Iterator[Mapping[str, Answered]]:
    for runner in runners.values():
        runner.begin(thread)
    for number, asked in enumerate(thread.turns):
        yield {name: runner.turn(thread, number, asked, judge) for name, runner in runners.items()}


class _Clock:
    """The memory's clock, which tells the time in the replayed thread."""

    def __init__(self) -> None:
        self.now = _FIRST

    def __call__(self) -> float:
        return self.now


def _memory_of(
    arm: Arm, settings: Settings, path: Path, clock: "_Clock"
) -> tuple[SupervisorMemory, Meter | None]:
    """A new memory for this arm, and the meter of its model, if it has a model."""
    chosen = {"recipe": arm.recipe, "backend": arm.backend, "embedding_model": arm.embedder}
    changed = {name: value for name, value in chosen.items() if value is not None}
    patient = {"search_timeout_ms": _PATIENCE_MS, "write_timeout_ms": _PATIENCE_MS}
    made = settings.model_copy(update={"path": path, "tracing": False, "enabled": True, **patient, **changed})
    if made.backend not in _STORES:
        raise SettingsError(
            f"backend {made.backend!r} would keep what is replayed after the end; choose one of "
            f"{', '.join(_STORES)}"
        )
    if not made.llm:
        return SupervisorMemory(made, clock=clock), None
    from langchain.chat_models import init_chat_model

    meter = Meter(agent=MEMORY)
    return SupervisorMemory(made, clock=clock, llm=init_chat_model(made.llm, callbacks=[meter])), meter


class _Runner:
    """The graph of one arm, and where it is in the thread."""

    def __init__(
        self,
        factory: Factory,
        memory: "tuple[SupervisorMemory, _Clock, Meter | None] | None",
        how: Mapping[str, Any],
        *,
        asynchronous: bool,
    ) -> None:
        self._memory: SupervisorMemory | None = None
        self._clock = _Clock()
        self._asking: Meter | None = None
        if memory is not None:
            self._memory, self._clock, self._asking = memory
        self._graph = made(factory, self._memory, **how)
        self._key = how["messages_key"]
        self._asynchronous = asynchronous
        self.meter = Meter()
        self._session = ""
        self._has_failed = False

    def begin(self, thread: Thread) -> None:
        """A thread begins, a day after the one before or when it was said."""
        self._clock.now = max(thread.at or 0.0, self._clock.now + _DAY)
        self._session, self._has_failed = thread.id, False

    def turn(self, thread: Thread, number: int, asked: Asked, judge: Judge) -> Answered:
        """Say a turn and record the result. An error ends the session."""
        if asked.is_new and number:
            self._clock.now += _DAY
            self._session, self._has_failed = f"{thread.id}-{number}", False
        if self._has_failed:
            return Answered("not reached")
        if self._memory is not None:
            self._memory.flush()
        self._clock.now += _MINUTE
        began = perf_counter()
        try:
            state = self._run(thread, number, asked)
        except Exception as error:  # noqa: BLE001  # the user's graph failed; the report names the error
            self._has_failed = True
            self.meter.taken()
            return Answered("raised", error=f"{type(error).__name__}: {error}", took=perf_counter() - began)
        took = perf_counter() - began
        costs, seconds = self.meter.taken()
        if self._asking is not None and self._memory is not None:
            self._memory.flush()
            asked_costs, asked_seconds = self._asking.taken()
            costs, seconds = {**costs, **asked_costs}, {**seconds, **asked_seconds}
        notes = tuple(self._notes(thread.user_id))
        if state.get("__interrupt__"):
            self._has_failed = True
            return Answered("interrupted", costs=costs, seconds=seconds, took=took, notes=notes)
        text = _last_answer(state.get(self._key) or ())
        is_right, failed = _judged(judge, asked, text)
        return Answered(
            "answered", text, "", is_right, failed, costs=costs, seconds=seconds, took=took, notes=notes
        )

    def _run(self, thread: Thread, number: int, asked: Asked) -> Mapping[str, Any]:
        from langchain_core.messages import HumanMessage

        name = f"{thread.id}/{number}"
        config: RunnableConfig = {
            "configurable": {"thread_id": self._session, "user_id": thread.user_id},
            "callbacks": [self.meter],
            "run_id": uuid5(NAMESPACE_URL, name),
            "recursion_limit": _STEPS,
        }
        said = {self._key: [HumanMessage(asked.text, id=name)]}
        if not self._asynchronous:
            return self._graph.invoke(said, config)  # type: ignore[no-any-return]
        import asyncio

        return asyncio.run(self._graph.ainvoke(said, config))

    def _notes(self, user_id: str) -> Iterator[Told]:
        """What the readers of the latest turn were told."""
        if self._memory is None:
            return
        given = self._memory.audit.notes(_NOTES, user_id=user_id, op="inject", since=self._clock.now)
        ids = [id_ for note in given for each in note.shown for id_ in each.source_ids]
        texts = {each.id: each.content for each in self._memory.upkeep.records(ids)} if ids else {}
        for note in reversed(given):
            if note.shown:
                yield Told(
                    note.agent_id or "supervisor",
                    note.tokens or 0,
                    tuple(
                        (texts.get(id_, "(gone)"), _reason(each.reason, each.parts))
                        for each in note.shown
                        for id_ in each.source_ids
                    ),
                )


def _reason(reason: str, parts: Mapping[str, float]) -> str:
    return why(parts) if reason == "kept" else REASONS.get(reason, reason)


def _judged(judge: Judge, asked: Asked, text: str) -> tuple[bool | None, str]:
    try:
        return judge(asked, text), ""
    except Exception as error:  # noqa: BLE001  # the user's judge failed; the report names the error
        return None, f"{type(error).__name__}: {error}"


def _last_answer(messages: Sequence[Any]) -> str:
    """The text of the last message that a model made."""
    from langchain_core.messages import AIMessage

    said = (str(each.text) for each in reversed(messages) if isinstance(each, AIMessage))
    return next((text for text in said if text.strip()), "")
