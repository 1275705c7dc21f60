"""Ratings of runs, counted for the lessons taught or told in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from supervisor_memory.model.records import Record
from supervisor_memory.understand.lessons.lesson import RATED_RUNS, Lesson, lessons_of

_MOST_RATED: Final = 200


@dataclass(frozen=True, slots=True)
class Recounted:
    """The recounted lessons of a guideline and its changed metadata."""

    lessons: tuple[Lesson, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)


def each_lesson(record: Record, change: Callable[[Lesson], Lesson]) -> Recounted:
    return Recounted(tuple(map(change, lessons_of(record.metadata))))


def rated(record: Record, *, run_id: str, is_good: bool, is_told: bool) -> Recounted:
    """Count a rating of a run in the place of the user's former one.

    Args:
        is_told: Whether the run was told all lessons; else it counts for those that it taught.
    """
    again = partial(with_rating, is_good=is_good, before=rating_of(record, run_id))
    done = each_lesson(record, lambda each: again(each) if is_told or run_id in each.runs else each)
    others = [each for each in _ratings(record) if each[0] != run_id]
    rated = [*others, (run_id, is_good)][-_MOST_RATED:]
    return replace(done, beside={RATED_RUNS: [list(each) for each in rated]})


def _ratings(record: Record) -> list[tuple[str, bool]]:
    told = record.metadata.get(RATED_RUNS)
    return [(str(run), bool(is_good)) for run, is_good in told] if isinstance(told, (list, tuple)) else []


def rating_of(record: Record, run_id: str) -> bool | None:
    return dict(_ratings(record)).get(run_id)


def with_rating(lesson: Lesson, *, is_good: bool, before: bool | None) -> Lesson:
    if before is is_good:
        return lesson
    helped, hurt = lesson.helped + is_good, lesson.hurt + (not is_good)
    if before is not None:
        helped, hurt = max(0, helped - before), max(0, hurt - (not before))
    return replace(lesson, helped=helped, hurt=hurt)
