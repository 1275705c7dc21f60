"""START HERE: recall and remember, six stages in order, on one page.

A stage is a tuple of operators: plain functions from a value to the next, handed only the powers of
their stage. A recipe names the operators; `recipes/default.py` is the one that runs.

    recall     pre-retrieval    route, write the query          NoStore
               retrieval        search, standing preferences    ReadStore
               post-retrieval   rank, gate, budget, format      ReadStore
    remember   pre-insert       route, extract                  ReadStore
               insert           compare, merge, commit          Deciding
               post-insert      (upkeep)                        Maintaining
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, TypeVar

from supervisor_memory.model.arguments import check_score
from supervisor_memory.model.decisions import Decision, Rivals
from supervisor_memory.model.records import (
    MAX_MESSAGE_BYTES,
    Candidate,
    Considered,
    Filter,
    Hit,
    Hits,
    Message,
    Namespace,
    Note,
    Query,
    Record,
    Route,
    Scope,
    WriteResult,
)
from supervisor_memory.model.records.found import left_out
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Deciding, Maintaining, NoStore, Ports, ReadStore
from supervisor_memory.redact.redactor import (
    Redactor,
    redacted_candidate,
    redacted_message,
    redacted_record,
    redacted_text,
)
from supervisor_memory.stores.protocol import Change

_TOGETHER = 16
F = TypeVar("F")
V = TypeVar("V")
W = TypeVar("W")


@dataclass(frozen=True, kw_only=True)
class _CarriesFacts:
    """A value that carries facts from one operator of a recipe to the next, each keyed by its type."""

    facts: tuple[object, ...] = ()

    def fact(self, kind: type[F]) -> F | None:
        """The fact of a type, as an earlier operator left it; None: none did."""
        return next((each for each in reversed(self.facts) if type(each) is kind), None)

    def with_fact(self, fact: object) -> Self:
        """A copy with a fact, which replaces an earlier fact of its type.

        Raises:
            TypeError: it can be changed; a fact is a frozen dataclass, a named tuple or a frozenset.
        """
        parameters = getattr(fact, "__dataclass_params__", None)
        if not isinstance(fact, (tuple, frozenset)) and not getattr(parameters, "frozen", False):
            raise TypeError(f"a fact is immutable; make {type(fact).__name__} a frozen dataclass")
        others = (each for each in self.facts if type(each) is not type(fact))
        return replace(self, facts=(*others, fact))


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its user. `messages` are in the reader's prompt anyway.

    `purpose` "note" wants a text to inject, so routing, standing preferences and the token budget
    apply; "hits" wants the search alone. None leaves `limit` and `threshold` to the settings. `where` filters
    records beyond their user, family and task. `said`: whether a note may quote messages, if the settings
    allow it. `explain` also asks for the fate of each candidate.
    """

    text: str
    scope: Scope
    purpose: Literal["note", "hits"] = "note"
    messages: tuple[Message, ...] = ()
    families: tuple[str, ...] | None = None
    where: Filter = field(default_factory=Filter)
    limit: int | None = None
    threshold: float | None = None
    said: bool = True
    explain: bool = False


@dataclass(frozen=True)
class Recalling(_CarriesFacts):
    """The value that travels through recall. `dropped` holds found but withheld records, with reasons."""

    turn: Turn
    route: Route = field(default_factory=lambda: Route(should_read=True, should_write=False))
    query: Query | None = None
    hits: Hits = field(default_factory=Hits)
    note: Note = field(default_factory=Note)
    dropped: tuple[Considered, ...] = ()

    def with_items(self, items: Iterable[Hit], *, dropped: Sequence[Considered] = ()) -> "Recalling":
        """A copy with other hits, and with further dropped ones."""
        found = self.hits  # not by `replace`, which takes several times as long
        hits = Hits(tuple(items), found.degraded, found.notes, found.namespaces, found.considered)
        every = (*self.dropped, *dropped)
        return Recalling(self.turn, self.route, self.query, hits, self.note, every, facts=self.facts)

    def keeping(self, hits: Iterable[Hit], *, others: str) -> "Recalling":
        """Go on with some of the hits. `others` is the code of `explain.py` for the dropped ones."""
        kept, every = tuple(hits), self.hits.items
        if len(kept) == len(every):
            is_same = all(map(is_, kept, every))
            return self if is_same else self.with_items(kept)
        ids = {hit.record.id for hit in kept}
        dropped = [left_out(hit, others) for hit in every if hit.record.id not in ids]
        return self.with_items(kept, dropped=dropped)

    def without(self, why: Callable[[Hit], str]) -> "Recalling":
        """Drop the hits that `why` rejects: it returns a code of `explain.py`, or "" for a hit to keep."""
        judged = [(hit, why(hit)) for hit in self.hits]
        dropped = [Considered(hit, code) for hit, code in judged if code]
        if not dropped:
            return self
        return self.with_items([hit for hit, code in judged if not code], dropped=dropped)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a sub-agent: its answer, a conclusion object, and files, SQL and the like.

    `asked` is the user's message that it answers; an issue key in it names the task. `score` rates it from 0
    to 1; None: nobody has rated it. `error` is the failure that it ended with; then it is kept as no
    conclusion.

    Raises:
        InvalidContent: the score is no number from 0 to 1.
    """

    final_answer: str | None = None
    conclusion: object | None = None
    side_effects: tuple[Any, ...] = ()
    asked: str = ""
    score: float | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.score is not None:
            check_score(self.score)


@dataclass(frozen=True)
class Remembering(_CarriesFacts):
    """The value that travels through remember.

    Args:
        candidates: Statements to compare and merge with the known records.
        perhaps: Sentences that may be no statements; they count if they are about a known record.
        verbatim: Records to store as they are.
        added: The namespace of each new record.
        skipped: Codes for the audit of what could not be kept.
        unkept: Codes of why each other sentence was left out; together they make one row of the audit log.
        turn_id: The message that all this answers: the same statement is written once for it.
        is_repeated: Whether some of it was written by an earlier run of the turn.
        note: The note that an agent was given and may repeat; None: nobody was given one.
        is_reviewed: Whether a person has approved it, so that nothing of it waits for review.
        is_unsure: Whether the speaker could not be checked, so that all of it waits for review.
        keeps_messages: Whether `messages` are kept, word for word; None: the setting decides.
        is_given: Whether candidates and verbatim records came through `write`, `add_many` or the queue, so
            that nothing is gathered from the messages.
    """

    scope: Scope
    messages: tuple[Message, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    candidates: tuple[Candidate, ...] = ()
    perhaps: tuple[Candidate, ...] = ()
    verbatim: tuple[Record, ...] = ()
    results: tuple[WriteResult, ...] = ()
    added: tuple[Namespace, ...] = ()
    family: str | None = None
    created_at: float | None = None
    skipped: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    turn_id: str | None = None
    is_repeated: bool = False
    note: Note | None = None
    is_reviewed: bool = False
    is_unsure: bool = False
    keeps_messages: bool | None = None
    is_given: bool = False


Before: TypeAlias = Callable[[Recalling, NoStore], Recalling]
Reading: TypeAlias = Callable[[Recalling, ReadStore], Recalling]
Gathering: TypeAlias = Callable[[Remembering, ReadStore], Remembering]
Inserting: TypeAlias = Callable[[Remembering, Deciding], Remembering]
Upkeep: TypeAlias = Callable[[Remembering, Maintaining], Remembering]
Judge: TypeAlias = Callable[[Candidate, Rivals, ReadStore], Decision]
"""A judge: decides how a candidate relates to its rivals; `stages/insert/place.py` follows it."""


@dataclass(frozen=True, slots=True)
class Due:
    """A change that a chore proposes. `why` is for people, and has nothing of the record's content."""

    change: Change
    why: str


@dataclass(frozen=True, slots=True)
class Chore:
    """A maintenance task over a whole store: forgetting, reflecting, moving between tiers.

    `plan` takes a user's id and returns the changes that are due; it changes nothing. `memory.optimize` shows
    them, or commits them, see `upkeep/optimize.py`. `parts` are the names of the tiers that it moves records
    between, which `memory.status` counts.
    """

    name: str
    plan: Callable[[str, ReadStore], Sequence[Due]]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named choice of operators for the six stages. A new strategy is a function you pass.

    Args:
        sharpen: Operators behind `pre_insert` where somebody waits for a model anyway, in `memory.add`. None:
            the default recipe's.
        browse: The recipe of a search that asks nothing, of which the stages of recall run. None: the default
            recipe's, which shows what is pinned and what is newest.
        needs: Protocols that the store must implement, such as `Erases`; checked when a memory is opened.
        upkeep: Its chores, which `memory.optimize` runs.
        settings: Values of settings that neither an argument nor the environment gives, such as `top_k`.
    """

    name: str
    pre_retrieval: tuple[Before, ...]
    retrieval: tuple[Reading, ...]
    post_retrieval: tuple[Reading, ...]
    pre_insert: tuple[Gathering, ...]
    insert: tuple[Inserting, ...]
    post_insert: tuple[Upkeep, ...] = ()
    sharpen: tuple[Gathering, ...] | None = None
    browse: "Recipe | None" = None
    needs: tuple[type, ...] = ()
    upkeep: tuple[Chore, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def recall(turn: Turn, ports: Ports, recipe: Recipe) -> Recalling:
    """Find what this turn should know and, for a note, phrase it for its reader."""
    turn = _redacted_turn(turn, ports.services.redactor)
    plan = run(recipe.pre_retrieval, Recalling(turn), ports.no_store())
    found = run(recipe.retrieval, plan, ports.read_store())
    told = run(recipe.post_retrieval, found, ports.read_store())
    hits = told.hits
    if ports.faults or turn.explain or hits.considered:
        hits = replace(
            hits,
            degraded=ports.degraded or hits.degraded,
            notes=(*hits.notes, *(f"without the {fault.step}: {fault.error}" for fault in ports.faults)),
            considered=_considered(found.hits, told) if turn.explain else (),
        )
    if turn.purpose == "hits":
        return told if hits is told.hits else replace(told, hits=hits)
    return replace(told, hits=hits, note=replace(told.note, hits=hits, degraded=hits.degraded))


def remember(said: Remembering, ports: Ports, recipe: Recipe) -> Remembering:
    """Remember the statements and results of a turn that are worth keeping."""
    redactor = ports.services.redactor
    gathered = run(recipe.pre_insert, redacted(said, redactor), ports.read_store())
    some = [run(recipe.insert, part, ports.deciding()) for part in in_parts(redacted(gathered, redactor))]
    inserted = replace(
        some[-1],
        candidates=tuple(each for part in some for each in part.candidates),
        results=tuple(each for part in some for each in part.results),
        unkept=tuple(each for part in some for each in part.unkept),
        facts=tuple(each for part in some for each in part.facts),
        is_repeated=any(part.is_repeated for part in some),
    )
    for operator in recipe.post_insert:
        inserted = _kept_up(operator, inserted, ports)
    return inserted


def in_parts(said: Remembering) -> Sequence[Remembering]:
    """Split candidates into commits of 16, since a commit compares each candidate with all others.

    What was said, word for word, and what is to be told of the rest go with the last.
    """
    if len(said.candidates) <= _TOGETHER:
        return [said]
    starts = range(0, len(said.candidates), _TOGETHER)
    *firsts, last = (said.candidates[start : start + _TOGETHER] for start in starts)
    bare = replace(said, perhaps=(), verbatim=(), skipped=(), unkept=())
    begun = [replace(bare, candidates=some) for some in firsts]
    return [*begun, replace(said, candidates=last)]


def _kept_up(operator: Upkeep, said: Remembering, ports: Ports) -> Remembering:
    """Run an operator after insert; when it fails, what is written stays written."""
    step = f"post-insert-{getattr(operator, '__name__', 'operator')}"
    done = ports.no_store().attempt(step, lambda: operator(said, ports.maintaining()))
    return done if isinstance(done, Remembering) else said


def run(operators: Sequence[Callable[[V, W], V]], value: V, view: W) -> V:
    """Pass a value through operators in order."""
    for operator in operators:
        value = operator(value, view)
    return value


def redacted(said: Remembering, redactor: Redactor) -> Remembering:
    """A redacted copy, so that no personal data are extracted, compared or counted."""
    if redactor.is_off:
        return said
    brought = said.outcome
    answer, concluded = brought.final_answer, brought.conclusion
    return replace(
        said,
        messages=tuple(redacted_message(each, redactor, most=MAX_MESSAGE_BYTES) for each in said.messages),
        outcome=replace(
            brought,
            final_answer=redacted_text(answer, redactor) if isinstance(answer, str) else answer,
            conclusion=redacted_text(concluded, redactor) if isinstance(concluded, str) else concluded,
            side_effects=tuple(redactor.value(each) for each in brought.side_effects),
            asked=redacted_text(brought.asked, redactor),
            error=None if brought.error is None else redacted_text(brought.error, redactor),
        ),
        candidates=tuple(redacted_candidate(each, redactor) for each in said.candidates),
        perhaps=tuple(redacted_candidate(each, redactor) for each in said.perhaps),
        verbatim=tuple(redacted_record(each, redactor) for each in said.verbatim),
    )


def _redacted_turn(turn: Turn, redactor: Redactor) -> Turn:
    """The turn with its text and messages redacted: redacted data are not searched for either."""
    if redactor.is_off:
        return turn
    seen = tuple(redacted_message(each, redactor) for each in turn.messages)
    return replace(turn, text=redacted_text(turn.text, redactor), messages=seen)


def _considered(candidates: Hits, told: Recalling) -> tuple[Considered, ...]:
    """The fate of each candidate: the hits handed out, then the dropped ones, best first."""
    kept = [Considered(hit, hit.reason) for hit in told.hits]
    known = {each.hit.record.id for each in (*kept, *told.dropped)}
    unsaid = (Considered(hit, "left-out") for hit in candidates if hit.record.id not in known)
    dropped = sorted((*told.dropped, *unsaid), key=lambda each: -each.hit.score)
    return (*kept, *dropped)
