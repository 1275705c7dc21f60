"""What the latest searches of a store found: still right while nobody has committed to what they read."""

import contextlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from supervisor_memory.model.records import Hits
from supervisor_memory.stores.sqlite.namespaces import Space

__all__ = ["Answers", "Question"]

MOST: Final = 64


@dataclass(frozen=True, slots=True)
class _Answer:
    """Hits as they were found `since` a moment, in namespaces as they were; `until` the first expires."""

    hits: Hits
    spaces: Sequence[Space]
    since: float
    until: float

    def holds(self, spaces: Sequence[Space], now: float) -> bool:
        return self.since <= now < self.until and self.spaces == spaces


class Question:
    """All that an answer depends on, other than the records and the time. Its hash is worked out once."""

    __slots__ = ("_asked", "_hash")

    def __init__(self, *asked: Hashable) -> None:
        self._asked, self._hash = asked, hash(asked)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._asked == other._asked


class Answers:
    """The latest answers, for one question is asked for the supervisor again and again within a turn."""

    def __init__(self) -> None:
        self._answers: dict[Question, _Answer] = {}

    def of(
        self, question: Question, spaces: Sequence[Space], *, now: float, search: Callable[[], Hits]
    ) -> Hits:
        """The answer to a question, searched for unless it is known.

        Args:
            spaces: The namespaces to search as they are now; every commit to one changes its revision.
            now: What expires until then is not found.
        """
        answer = self._answers.pop(question, None)
        if answer is None or not answer.holds(spaces, now):
            hits = search()
            ends = [hit.record.expires_at for hit in hits if hit.record.expires_at is not None]
            answer = _Answer(hits, spaces, now, min(ends, default=inf))
        self._answers[question] = answer
        if len(self._answers) > MOST:
            with contextlib.suppress(StopIteration, RuntimeError):  # another thread makes room meanwhile
                self._answers.pop(next(iter(self._answers)), None)
        return answer.hits
