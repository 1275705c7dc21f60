"""Compare texts word for word, to keep only one of two without losing anything.

Search terms are too coarse: they drop signs, order and small words, so that "-5" and "5", "C" and "C#",
"first A, then B" and "first B, then A" would be the same.
"""

import re
import unicodedata
from collections.abc import Sequence

_WORD = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")
_EDGES = ".,;:!?、。\"'`“”‘’()[]{}【】《》"
_MOST_INSERTIONS = 3


def tells(longer: str, shorter: str) -> bool:
    """Whether `longer` has all words of `shorter`, in order, with at most three insertions."""
    told, asked = _words(longer), _words(shorter)
    position, insertions = 0, 0
    for word in asked:
        try:
            found = told.index(word, position)
        except ValueError:
            return False
        insertions += found > position
        position = found + 1
    return bool(asked) and insertions <= _MOST_INSERTIONS


def same_marks(one: str, other: str) -> bool:
    """Whether two texts have the same words with a digit, sign or symbol, each equally often."""
    return _marked(one) == _marked(other)


def _marked(text: str) -> Sequence[str]:
    return sorted(word for word in _words(text) if not word.isalpha())


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for match in _WORD.finditer(folded) if (word := match[0].strip(_EDGES))]
