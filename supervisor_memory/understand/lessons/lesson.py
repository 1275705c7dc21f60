"""A call, an edit of an argument, a lesson; keys under which a guideline keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from supervisor_memory.language.terms import STOP_WORDS
from supervisor_memory.understand.lessons.values import (
    MOST_ARGUMENTS,
    STRUCTURE,
    WORD,
    flattened,
    folded,
    form_of,
    is_literal,
    last_name,
    stands_in,
)

GUIDELINE: Final = "guideline"
"""Attribute of the record holding a tool's lessons; its subject is the tool's name."""
LESSONS: Final = "lessons"
"""The metadata key of a guideline with its lessons."""
CORRECTED: Final = "corrected"
"""The metadata key of a guideline with the lessons that a person's words took the place of: not told, and not
learned again."""
RATED_RUNS: Final = "rated"
"""The metadata key of a guideline with its user's last ratings: pairs of a run and whether it was good."""
TALLY: Final = "tally"
"""The metadata key of a user's record of how a team's guideline did for this user; its value is the owner."""
OWN_KEYS: Final = frozenset({LESSONS, CORRECTED, RATED_RUNS, TALLY})
"""What nobody writes into a guideline's metadata by hand."""
MOST_LESSONS: Final = 12
"""Lessons that are kept of a tool."""
_LONGEST_ERROR: Final = 4_000
LONGEST_PART: Final = 120
"""Most characters of either side of a change; a guideline has no room for more."""
MOST_ASKED: Final = 24
"""Terms of tasks that are kept with a lesson."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as it was heard: its arguments flat, by names with dots.

    `error` is what it failed with; None: it worked.
    """

    tool: str
    arguments: Mapping[str, Any]
    error: str | None = None

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any], error: str | None = None) -> "Call":
        """A bounded copy of a tool's call: long values and errors are cut."""
        flat = dict(islice(flattened(arguments), 2 * MOST_ARGUMENTS))
        return cls(tool, flat, None if error is None else error[:_LONGEST_ERROR])


@dataclass(frozen=True, slots=True)
class Edit:
    """A difference of two calls. `before` None: added; `after` None: left out."""

    argument: str
    before: str | None
    after: str | None

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        """A key that is equal for edits with the same lesson: without case; for changed forms of values, the
        forms."""
        both = (self.before, self.after)
        forms = [form_of(each) for each in both if each is not None and is_literal(each)]
        if len(set(forms)) == len(both):
            return self.argument, forms[0], forms[1]
        return self.argument, folded(self.before), folded(self.after)


@dataclass(frozen=True, slots=True)
class Lesson:
    """The lesson of a tool's failed call and the working one after.

    Args:
        error: The essence of what the tool said; "": nothing of it is told.
        runs: The runs in which it was learned, the latest last: the evidence.
        times: How often it was learned.
        held, failed: How often a call that did as it says worked, and failed.
        helped, hurt: How often a run in which it was learned or told was rated well, and badly.
        at: When it was learned or held last, in seconds since 1970.
        asked: Terms of the tasks in which it was learned, by which it is chosen for another; told to nobody.
        said: What a person says in place of edits, word for word; "": nobody has.
    """

    edits: tuple[Edit, ...]
    error: str = ""
    runs: tuple[str, ...] = ()
    times: int = 1
    held: int = 0
    failed: int = 0
    helped: int = 0
    hurt: int = 0
    at: float = 0.0
    asked: tuple[str, ...] = ()
    said: str = ""

    @property
    def key(self) -> tuple[tuple[str, str | None, str | None], ...]:
        if self.said:
            return (("", None, self.said),)
        return tuple(sorted((each.key for each in self.edits), key=repr))

    @property
    def is_refuted(self) -> bool:
        """Whether the lesson failed, or went with bad results, more often than it held."""
        return self.failed > self.held or self.hurt > self.helped + self.held

    def to_dict(self) -> dict[str, Any]:
        """The lesson as it is kept in a record's metadata."""
        edits = [[each.argument, each.before, each.after] for each in self.edits]
        values = {name: getattr(self, name) for name in Lesson.__slots__}
        return {**values, "edits": edits, "runs": list(self.runs), "asked": list(self.asked)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Lesson | None":
        """The reverse of `to_dict`; None where it is none, as in a record that somebody made by hand."""
        try:
            edits = tuple(Edit(str(a), _text(b), _text(c)) for a, b, c in told["edits"])
            counts = {n: int(told.get(n, 0)) for n in ("times", "held", "failed", "helped", "hurt")}
            runs, asked = (tuple(map(str, told.get(name, ()))) for name in ("runs", "asked"))
            at = float(told.get("at", 0.0))
            said = str(told.get("said", ""))
            return cls(edits, str(told.get("error", "")), runs, at=at, asked=asked, said=said, **counts)
        except (KeyError, TypeError, ValueError):
            return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def is_named(edit: Edit, said: str) -> bool:
    """Whether the errors name what was changed."""
    text = said.casefold()
    argument = last_name(edit.argument)
    own = {word.casefold() for part in (edit.before, edit.after) for word in WORD.findall(part or "")}
    words = {word for word in {*own - STRUCTURE, argument.casefold()} if len(word) > 1}
    return any(stands_in(text, word) for word in words - STOP_WORDS)


def lessons_of(metadata: Mapping[str, Any], key: str = LESSONS) -> tuple[Lesson, ...]:
    """The lessons in a guideline's metadata; invalid entries are left out."""
    told = metadata.get(key)
    given = told if isinstance(told, (list, tuple)) else ()
    return tuple(found for each in given if isinstance(each, Mapping) and (found := Lesson.from_dict(each)))
