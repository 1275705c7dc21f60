"""Whether a later call follows a lesson, repeats its mistake, or refutes it."""

import json

from supervisor_memory.language.terms import STOP_WORDS
from supervisor_memory.understand.lessons.learning import tokens_of
from supervisor_memory.understand.lessons.lesson import Call, Edit, Lesson
from supervisor_memory.understand.lessons.values import (
    STRUCTURE,
    WORD,
    as_text,
    form_of,
    is_literal,
    stands_in,
)


def is_followed(lesson: Lesson, call: Call) -> bool:
    """Whether a call does as a lesson says."""
    return bool(lesson.edits) and all(_follows(each, call) for each in lesson.edits)


def _follows(edit: Edit, call: Call) -> bool:
    given = call.arguments.get(edit.argument)
    value = as_text(given)
    if edit.after is not None and edit.before == json.dumps(edit.after):  # a number that was a text
        return given is not None and not isinstance(given, str)
    if edit.after is None:
        return value is None or (edit.before is not None and not holds_part(value, edit.before))
    if value is None:
        return False
    if edit.before and is_literal(edit.after) and form_of(edit.after) != form_of(edit.before):
        return form_of(edit.after) in form_of(value)
    return holds_part(value, edit.after)


def repeats(lesson: Lesson, call: Call) -> bool:
    """Whether a call repeats the mistake of a lesson."""
    return any(
        each.before is not None and holds_part(as_text(call.arguments.get(each.argument)) or "", each.before)
        for each in lesson.edits
    ) and not is_followed(lesson, call)


def holds_part(text: str, part: str) -> bool:
    """Whether a text holds a part, as whole words; case and spaces do not count."""
    mine = [token.casefold() for token, *_ in tokens_of(text)]
    yours = [token.casefold() for token, *_ in tokens_of(part)]
    return bool(yours) and any(mine[n : n + len(yours)] == yours for n in range(len(mine) - len(yours) + 1))


def is_refuted_by(lesson: Lesson, error: str) -> bool:
    """Whether a call followed a lesson, and its error is about just that."""
    text = error.casefold()
    for each in lesson.edits:
        old = {word.casefold() for word in WORD.findall(each.before or "")}
        new = {word.casefold() for word in WORD.findall(each.after or "") if len(word) > 1}
        words = new - old - STRUCTURE - STOP_WORDS
        if any(stands_in(text, word) for word in words):
            return True
    return False
