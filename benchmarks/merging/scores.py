"""How well write attempts were decided: rates by language, and each line that was decided wrongly."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .lines import Decision, Line, slots_of

__all__ = ["Rate", "Scores", "Wrong", "score"]

_RIGHT = {
    "duplicate": {"merged", "skipped", "updated", "appended"},
    "conflict": {"updated"},
    "append": {"appended"},
}
_NAMES = {"duplicate": "merged", "conflict": "conflicts resolved", "append": "appended"}


@dataclass
class Rate:
    hits: int = 0
    total: int = 0

    def count(self, *, hit: bool) -> None:
        self.hits += hit
        self.total += 1

    @property
    def value(self) -> float:
        return self.hits / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{self.value:.3f}  ({self.hits}/{self.total})"


@dataclass(frozen=True)
class Wrong:
    """A line that was decided wrongly: why it is what it is, and where it went."""

    line: Line
    decision: Decision


@dataclass
class Scores:
    """Rates of one language by name. "false merges" are of all new lines, a skipped one included."""

    rates: dict[str, Rate] = field(default_factory=dict)
    wrong: list[Wrong] = field(default_factory=list)

    def count(self, name: str, *, hit: bool) -> None:
        self.rates.setdefault(name, Rate()).count(hit=hit)


def score(lines: Sequence[Line], decisions: Iterable[Decision]) -> Mapping[str, Scores]:
    """Language → scores.

    A duplicate may be merged, skipped, updated or appended, a new value has to be `updated`, a further step
    `appended`, each into the record that holds what it is about; what is new has to be added.
    """
    slots = slots_of(lines)
    made = {each.id: each for each in decisions}
    found: dict[str, Scores] = {}
    for line in lines:
        scores, decision = found.setdefault(line.language, Scores()), made[line.id]
        if line.is_joined:
            is_right_place = decision.into is not None and slots[decision.into] == slots[line.id]
            right = decision.decision in _RIGHT[line.relation] and is_right_place
            scores.count(_NAMES[line.relation], hit=right)
            scores.count("misdirected", hit=decision.into is not None and not is_right_place)
            scores.count(f"  {line.relation}: {line.why}", hit=right)
        else:
            right = decision.decision == "added"
            scores.count("false merges", hit=not right)
            if line.is_look_alike:
                scores.count("false merges, look-alikes", hit=not right)
                scores.count(f"  look-alike: {line.why}", hit=not right)
        if not right:
            scores.wrong.append(Wrong(line, decision))
    return found
