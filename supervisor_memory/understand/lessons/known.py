"""Known lessons of a tool, and how a new lesson changes them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.understand.lessons.following import holds_part
from supervisor_memory.understand.lessons.lesson import MOST_ASKED, MOST_LESSONS, Lesson

_MOST_RUNS: Final = 10


def with_lesson(known: Sequence[Lesson], new: Lesson) -> tuple[Lesson, ...]:
    """Add a lesson to a tool's lessons: a known lesson counts again, a contradicted lesson goes.

    Twelve are kept at most; of more, those go that were learned and held least.
    """
    again = next((each for each in known if each.key == new.key), None)
    if again is not None:
        runs = tuple(dict.fromkeys((*again.runs, *new.runs)))[-_MOST_RUNS:]
        fresh = replace(again, edits=new.edits, runs=runs, times=again.times + 1, at=new.at)
        words = tuple(dict.fromkeys((*new.asked, *again.asked)))[:MOST_ASKED]
        fresh = replace(fresh, error=new.error or again.error, asked=words)
    else:
        fresh = new
    others = [each for each in known if each.key != new.key and not _is_contradicted(each, new)]
    kept = sorted(others, key=lambda each: (bool(each.said), each.held + each.times, each.at), reverse=True)
    return (fresh, *kept[: MOST_LESSONS - 1])


def beside(own: Sequence[Lesson], others: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Others' lessons for the same tool, except those one's own repeat or contradict."""
    keys = {each.key for each in own}
    return tuple(
        each
        for each in others
        if each.key not in keys and not any(_is_contradicted(each, mine) for mine in own)
    )


def _is_contradicted(old: Lesson, new: Lesson) -> bool:
    """Whether a new lesson reverses an old one, or teaches another value for the same part.

    Values whose forms were corrected are compared by their forms, as in `Edit.key`.
    """
    for (argument, before, after), mine in zip((each.key for each in old.edits), old.edits, strict=True):
        for (other, from_, _), yours in zip((each.key for each in new.edits), new.edits, strict=True):
            if argument != other:
                continue
            if before is not None and before == from_:
                return True
            if after is not None and after == from_:
                return True
            if mine.after is not None and yours.before is not None and holds_part(yours.before, mine.after):
                return True
    return False


def says_also(lesson: Lesson, other: Lesson) -> bool:
    """Whether a lesson contains every edit of another lesson."""
    return lesson.key == other.key or (
        bool(other.edits)
        and all(
            any(
                mine.argument == each.argument
                and (mine.before is None) == (each.before is None)
                and (mine.after is None) == (each.after is None)
                and holds_part(mine.before or "", each.before or "") == (each.before is not None)
                and holds_part(mine.after or "", each.after or "") == (each.after is not None)
                for mine in lesson.edits
            )
            for each in other.edits
        )
    )
