"""Compare recipes on questions with known answers: read the questions, count what is found, test for chance.

Pure but for `copied`, which reads a store. `interfaces/comparing.py` asks the questions.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from supervisor_memory.errors import BackendError, InvalidContent
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend, Moves

Figures: TypeAlias = Mapping[str, Sequence[float]]
"""The name of a figure → its value for each question."""
_Z: Final = 1.96  # of a normal distribution, for 19 of 20
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its category and the ids of its answers; none: unlabelled."""

    text: str
    category: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """The contents of one memory by id, for `add_many`; its questions; and when they are asked, None: now."""

    items: Mapping[str, Mapping[str, Any]]
    questions: tuple[Question, ...]
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a recipe found for a question: ids, best first, with the tokens of each and the time it took."""

    ids: tuple[str, ...]
    tokens: tuple[int, ...]
    ms: float

    def within(self, most: int) -> tuple[str, ...]:
        """The first ids whose records fit so many tokens together."""
        held, left = [], most
        for id, size in zip(self.ids, self.tokens, strict=True):
            if (left := left - size) < 0:
                break
            held.append(id)
        return tuple(held)


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of paired differences, and half of its 95 % interval."""

    mean: float
    half: float

    @property
    def is_none(self) -> bool:
        """Whether 0 lies inside the interval, so that it may be chance."""
        return abs(self.mean) <= self.half

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.half:.3f}{' (no difference)' if self.is_none else ''}"


@dataclass(slots=True)
class Measured:
    """Measurements of a recipe. `notes` name its fallbacks, such as without a model."""

    recipe: str
    asked: list[Asked] = field(default_factory=list)
    insert_ms: float = 0.0
    records: int = 0
    notes: dict[str, None] = field(default_factory=dict)

    def figures(
        self, questions: Sequence[Question], *, cuts: Sequence[int], tokens: Sequence[int]
    ) -> Figures:
        """R@k and R@t of each question that has evidence, by the name of the figure."""
        rows = [(q, a) for q, a in zip(questions, self.asked, strict=True) if q.evidence]
        found = {f"R@{k}": [share(a.ids[:k], q.evidence) for q, a in rows] for k in cuts}
        return found | {f"R@{t}t": [share(a.within(t), q.evidence) for q, a in rows] for t in tokens}


def share(found: Iterable[str], evidence: Sequence[str]) -> float:
    """The share of the evidence that was found, in [0, 1]."""
    return len(set(evidence) & set(found)) / len(set(evidence))


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of none."""
    return math.fsum(values) / len(values) if values else math.nan


def difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    """The paired difference of `other` and `one`, question by question.

    Raises:
        ValueError: they are not of the same questions.
    """
    apart = [b - a for a, b in zip(one, other, strict=True)]
    if len(apart) < 2:  # noqa: PLR2004 - one pair has no spread
        return Difference(mean(apart), math.inf)
    middle = mean(apart)
    variance = math.fsum((each - middle) ** 2 for each in apart) / (len(apart) - 1)
    return Difference(middle, _Z * math.sqrt(variance / len(apart)))


def quantile(values: Sequence[float], part: float) -> float:
    """The quantile of some values at a share in [0, 1]; NaN without values."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else math.nan


def read_questions(path: Path) -> Sequence[Held]:
    """The conversations with their questions of a JSON file, or the questions of a JSON-lines or text file.

    A JSON file has the shape of `benchmarks/quality`: `{"conversations": [{"turns", "questions", "asked"}]}`.
    A line of a `.jsonl` file is `{"q", "evidence", "cat"}`, with the ids of records; evidence and sort may be
    missing. A `.txt` file has a question a line. The last two ask a store that is there.

    Raises:
        InvalidContent: it is none of these; the message names the line or the entry.
    """
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".json":
            return [_conversation(each) for each in json.loads(text)["conversations"]]
        lines = [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
        if path.suffix == ".txt":
            return [Held({}, tuple(Question(line.strip()) for _, line in lines))]
        return [Held({}, tuple(_question(json.loads(line)) for _, line in lines))]
    except (OSError, UnicodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidContent(
            f"{path} cannot be read as questions: {type(error).__name__}: {error}; docs/recipes.md, "
            "Compare, has the shape of each kind of file",
            file=str(path),
        ) from error


def _conversation(told: Mapping[str, Any]) -> Held:
    items = {}
    for turn in told["turns"]:
        entry = {"content": turn["text"], "speaker": turn.get("speaker"), "created_at": turn.get("t")}
        if turn["id"] in items:
            raise ValueError(f"the id {turn['id']!r} is there twice")
        items[turn["id"]] = {name: value for name, value in entry.items() if value is not None}
    questions = tuple(map(_question, told["questions"]))
    if stray := next((q for q in questions if not set(q.evidence) <= items.keys()), None):
        raise ValueError(f"the evidence of {stray.text!r} is no turn")
    return Held(items, questions, told.get("asked"))


def _question(told: Mapping[str, Any]) -> Question:
    evidence = told.get("evidence", ())
    if isinstance(evidence, str) or not all(isinstance(each, str) for each in evidence):
        raise ValueError(f"the evidence of {told['q']!r} is no list of ids")
    return Question(str(told["q"]), str(told.get("cat", "")), tuple(evidence))


def copied(store: MemoryBackend, user_id: str) -> InMemoryBackend:
    """Copy a user's records, with vectors, into a store in memory. Reading them is logged nowhere.

    Raises:
        BackendError: the store cannot give its records.
    """
    if not isinstance(store, Moves):
        raise BackendError(f"the backend {store.name!r} cannot give its records to be compared")
    copy = InMemoryBackend()
    for page in _pages(store, user_id):
        copy.take(page)
    return copy


def _pages(store: Moves, user_id: str) -> Iterator[Sequence[Any]]:
    after: str | None = None
    while page := store.stored(after=after, limit=_PAGE, user_id=user_id):
        yield page
        after = page[-1].record.id
