"""Whether two spellings may mean one word: a typo, an accent, an ending, a space or a hyphen apart."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from supervisor_memory.language.terms import STOP_WORDS
from supervisor_memory.language.vocabulary import is_spelled_so, is_word, words_beginning

SHORTEST = 3
"""The fewest letters of a word to compare beginnings with, and of the parts of a word."""
_LETTERS_A_SLIP = 4
_WORD = re.compile(r"\w+")
_DIGITS = re.compile(r"\d")


def is_slip_of(word: str, other: str) -> bool:
    """Whether one word may be a typo of another: letters left out, doubled, changed or swapped, one in four
    at most.

    A digit is never a slip: `depot_9` is not `depot_7`.

    Source: optimal string alignment, https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance.
    """
    most = max(len(word), len(other)) // _LETTERS_A_SLIP
    if abs(len(word) - len(other)) > most or len(set(word) ^ set(other)) > 2 * most:
        return word == other
    if _DIGITS.findall(word) != _DIGITS.findall(other):
        return False
    before, row = list[int](), [*range(len(other) + 1)]
    for at, letter in enumerate(word, start=1):
        last, before, row = before, row, [at]
        for place, another in enumerate(other, start=1):
            best = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != another))
            if at > 1 and place > 1 and letter == other[place - 2] and word[at - 2] == another:
                best = min(best, last[place - 2] + 1)
            row.append(best)
        if min(row) > most:
            return False
    return bool(row[-1] <= most)


@lru_cache(maxsize=1 << 10)
def is_like_a_word(word: str) -> bool:
    """Whether a lower-case word may be a typo of a word of the vocabulary; the first letter has to be right,
    since typos there are rare."""
    return any(is_slip_of(word, other) for other in words_beginning(word[0]))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some texts without case and accents. `names` are those capitalised or in an identifier
    somewhere: a word of the vocabulary may be a typo of a name."""

    every: frozenset[str]
    names: frozenset[str]
    text: str

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        whole = unicodedata.normalize("NFKC", "\n".join(texts))
        found = {*_WORD.findall(whole)}
        joined = {word for word in found if "_" in word}
        parts = {part for word in joined for part in word.split("_") if part}
        names = {word for word in found if not word.islower()} | joined | parts
        return cls(frozenset(map(_plain, found | parts)), frozenset(map(_plain, names)), _plain(whole))

    def may_name(self, name: str) -> bool:
        """Whether a name, or each of its words, may be one of these words."""
        words = [word for word in _WORD.findall(_plain(name)) if word not in STOP_WORDS]
        return self._begins("".join(words)) or all(map(self._may_be, words))

    def _may_be(self, word: str) -> bool:
        return self._begins(word) or any(
            _goes_on(word, other) or self._is_slip(word, other) for other in self.every
        )

    def _begins(self, word: str) -> bool:
        """Whether a word of the texts begins with this word; spaces and hyphens inside words do not count."""
        letters = word.replace("_", "")
        apart = r"(?<![^\W_])" + r"[\W_]?".join(letters)
        return word in self.every or (len(letters) >= SHORTEST and re.search(apart, self.text) is not None)

    def _is_slip(self, word: str, other: str) -> bool:
        """Whether a word may be a typo of another. A vocabulary word may be a typo only of a name or an
        unknown word."""
        if not is_slip_of(word, other):
            return False
        return other in self.names or not is_spelled_so(word) or not is_word(other)


def _goes_on(word: str, other: str) -> bool:
    """Whether a word begins or ends with another word of at least half its length, as compounds and plurals
    do."""
    is_part = word.isalpha() and SHORTEST < len(other) < len(word) <= 2 * len(other)
    return is_part and (word.startswith(other) or word.endswith(other))


def _plain(text: str) -> str:
    """A text in small letters without accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parts if not unicodedata.combining(each)))
