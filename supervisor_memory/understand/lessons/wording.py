"""The words of a guideline: its lessons in a person's language, within its tokens."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.understand.lessons.lesson import (
    CORRECTED,
    LESSONS,
    LONGEST_PART,
    Edit,
    Lesson,
    lessons_of,
)
from supervisor_memory.understand.lessons.values import IDENTIFIER, MASK, WORDS, stands_in

MOST_TOKENS: Final = 60
"""Most tokens of a guideline."""
MOST_OF_IDENTITY: Final = 150
"""Most tokens of the record that says who an agent is."""
_MOST_SAID: Final = 2
"""Phrases of an error that are told."""


def essence(error: str, edits: Sequence[Edit]) -> str:
    """The essence of an error: fixed phrases, numbers and forms of dates, and the name that was wrong.

    "": there is nothing of it that may be told.
    """
    found = [each[0].casefold() for each in islice(WORDS["said"].finditer(error), 8)]
    said = list(dict.fromkeys(found))[:_MOST_SAID]
    said += [f"{_wording(error)['form']} {each[0]}" for each in islice(MASK.finditer(error), 1)]
    wrong = next((each.before for each in edits if each.before and IDENTIFIER.fullmatch(each.before)), None)
    for place, phrase in enumerate(said):
        if wrong and stands_in(error.casefold(), wrong.casefold()) and WORDS["of_names"].search(phrase):
            said[place] = f"{phrase}: {wrong}"
            break
    return ", ".join(said)


def _wording(text: str) -> Mapping[str, str]:
    told: Mapping[str, str] = WORDS.table("wording")["zh" if has_cjk(text) else "en"]
    return told


@dataclass(frozen=True, slots=True)
class Worded:
    """The guideline of a tool as a text, "" where no lesson fits, and the lessons that are in it."""

    text: str
    lessons: tuple[Lesson, ...] = ()


def worded(
    tool: str,
    lessons: Sequence[Lesson],
    *,
    count: Callable[[str], int],
    tongue: str = "en",
    with_counts: bool = False,
    most: float = MOST_TOKENS,
) -> Worded:
    """The guideline of a tool: as many lessons, in their order, as 60 tokens hold.

    What a person says comes first; alone it is told as it is.

    Args:
        count: Counts the tokens of a text.
        with_counts: Whether to say how often they held.
        most: Tokens of all of it.
    """
    words = WORDS.table("wording")[tongue if tongue == "zh" else "en"]
    name = tool if len(tool) <= LONGEST_PART else tool[: LONGEST_PART - 1] + "…"

    def whole(told: Sequence[Lesson], errors: Collection[Lesson] = ()) -> str:
        held, tried = sum(each.held for each in told), sum(each.held + each.failed for each in told)
        counts = words["held"].format(held=held, tried=tried) if tried and with_counts else ""
        if len(told) == 1 and told[0].said:
            return told[0].said
        parts = [_without_frame(name, each.said) for each in told if each.said]
        if learned := _joined_lessons([each for each in told if not each.said], words, errors):
            parts.append(learned)
        return f"{name}: {words['between'].join(parts)}{words['stop']}{counts}"

    told: list[Lesson] = []
    for lesson in sorted(lessons, key=lambda each: not each.said):
        if count(whole([*told, lesson])) <= most:
            told.append(lesson)
    errors: list[Lesson] = []  # what was corrected comes before what the errors said
    for lesson in told:
        if lesson.error and count(whole(told, [*errors, lesson])) <= most:
            errors.append(lesson)
    return Worded(whole(told, errors), tuple(told)) if told else Worded("")


def _without_frame(name: str, said: str) -> str:
    """A person's text about a tool, without the tool's name and the lessons around it."""
    return said.removeprefix(f"{name}:").strip().rstrip(".。")


def in_persons_words(
    tool: str, text: str, metadata: Mapping[str, Any], *, at: float, count: Callable[[str], int]
) -> dict[str, Any]:
    """The metadata of a guideline whose text a person has changed: that text is told, and nothing else.

    The lessons that the person has read in the text before are not learned again while it stands.

    Args:
        at: When it was changed, in seconds since 1970.

    Raises:
        InvalidContent: the text is too long to be told.
    """
    check_size(text, MOST_TOKENS, count, what="guideline of a tool")
    old = lessons_of(metadata)
    read = worded(tool, old, count=count, tongue=str(metadata.get("language", "en"))).lessons
    corrected = {each.key: each for each in (*lessons_of(metadata, CORRECTED), *read) if not each.said}
    mine = Lesson((), at=at, said=text)
    return {
        **metadata,
        LESSONS: [mine.to_dict()],
        CORRECTED: [each.to_dict() for each in corrected.values()],
    }


def check_size(text: str, most: int, count: Callable[[str], int], *, what: str) -> None:
    """Refuse a text that is too long for the notes in which it would stand.

    Raises:
        InvalidContent: it has more tokens than `most`.
    """
    if (size := count(text)) > most:
        raise InvalidContent(
            f"a {what} with {size} tokens is too long for notes; use {most} at most", size=size
        )


def _joined_lessons(lessons: Sequence[Lesson], words: Mapping[str, str], errors: Collection[Lesson]) -> str:
    """The lessons in words; an argument is named where another was named before."""
    parts: list[str] = []
    named = ""
    for lesson in lessons:
        edits = []
        for edit in lesson.edits:
            form = "added" if edit.before is None else "gone" if edit.after is None else "instead"
            told = words[form].format(before=f"`{edit.before}`", after=f"`{edit.after}`")
            edits.append(told if edit.argument == named else f"`{edit.argument}`{words['colon']}{told}")
            named = edit.argument
        said = words["said"].format(error=lesson.error) if lesson in errors else ""
        parts.append(words["between"].join(edits) + said)
    return words["between"].join(parts)


Weighed: TypeAlias = tuple[Lesson, float]
"""A lesson, and how much of a task it is about, in [0, 1]."""


def by_task(
    asked: Sequence[str], held: Mapping[str, tuple[str, Sequence[Lesson]]]
) -> dict[str, list[Weighed]]:
    """The lessons of each guideline: those about the task first, then by how often they held.

    A lesson is about a task by its tool's name, by what it says, and by the tasks in which it was learned. A
    term that few lessons have counts more than one of many, and one that none has counts for nothing.

    Args:
        asked: The terms of the task.
        held: Of each guideline of the reader, the tool's name and the lessons.
    """
    words = {key: [_words_of(tool, each) for each in lessons] for key, (tool, lessons) in held.items()}
    every = [each for many in words.values() for each in many]
    weights = {}
    for term in set(asked):
        if having := sum(term in each for each in every):
            weights[term] = math.log(1.0 + len(every) / having)
    whole = sum(weights.values())
    found: dict[str, list[Weighed]] = {}
    for key, (_, lessons) in held.items():
        shares = (sum(weights[term] for term in weights.keys() & each) for each in words[key])
        weighed = [
            (each, share / whole if whole else 0.0) for each, share in zip(lessons, shares, strict=True)
        ]
        found[key] = sorted(
            weighed, key=lambda pair: (-pair[1], -(pair[0].held + pair[0].times), -pair[0].at)
        )
    return found


def _words_of(tool: str, lesson: Lesson) -> frozenset[str]:
    parts = (part for each in lesson.edits for part in (each.argument, each.before, each.after) if part)
    said = (term for part in (tool, *parts, lesson.error, lesson.said) for term in terms(part))
    return frozenset((*lesson.asked, *said))
