"""The weights of the signals in a match: plain values, so that a query can carry them to any store."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

__all__ = ["DEFAULT", "Weights"]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal; 0: the signal is not computed. Measured, see docs/ranking.md.

    The first three are direct: only their proportions count, and they make a value from 0 to 1. The others
    are added to it.

    Raises:
        ValueError: a weight is outside [0, 1000], or no direct signal has one.
    """

    meaning: float = 1.5
    words: float = 0.25
    words_before: float = 0.75
    neighbour: float = 0.4
    answer: float = 0.3
    episode: float = 0.2
    speaker: float = 0.15
    date: float = 0.7
    information: float = 1.25

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0 <= getattr(self, each.name) <= _MOST:
                raise ValueError(f"{each.name} is {getattr(self, each.name)}; a weight is from 0 to {_MOST}")
        if not (self.words or self.words_before):
            raise ValueError("words and words_before are 0, and without an embedder there is nothing else")

    @classmethod
    def of(cls, changed: Mapping[str, float]) -> "Weights":
        """The default weights with some of them changed.

        Raises:
            ValueError: there is no such signal, or see above.
        """
        names = [each.name for each in fields(cls)]
        if unknown := sorted(set(changed) - set(names)):
            raise ValueError(f"{unknown[0]} is no signal; there are {', '.join(names)}")
        return cls(**changed)


_MOST = 1_000
DEFAULT = Weights()
