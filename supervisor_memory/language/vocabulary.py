"""The English words of a large vocabulary. A word that it lacks is likely a name or a technical term.

The vocabulary is that of BERT, by which the embedder cuts texts into pieces of words, too.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

from supervisor_memory.language.terms import HAN, stem

SHORTEST = 4
"""Letters that a term has at least: shorter ones are abbreviations, or what a stemmer left of a word."""


def word_pieces() -> AbstractContextManager[Path]:
    """A context manager for the vocabulary's file: a word or piece a line; pieces inside a word begin with
    `##`."""
    return as_file(files("supervisor_memory.language") / "word_pieces.txt")


@cache
def _words() -> list[str]:
    """The whole words, sorted."""
    with word_pieces() as path:
        lines = path.read_text("utf-8").splitlines()
    return sorted(line for line in lines if line.isascii() and line.isalpha())


def unusual(some: Iterable[str]) -> Sequence[str]:
    """Find the terms that are no form of any word of the vocabulary.

    None where most do not, for then the text is in another language. Only terms of Latin letters count.
    """
    words = [term for term in some if len(term) >= SHORTEST and term.isascii() and term.isalpha()]
    rare = [term for term in words if not _is_known(term)]
    return rare if 2 * len(rare) <= len(words) else ()


def unusual_zh(some: Iterable[str]) -> Sequence[str]:
    """Find the pairs of Chinese characters that are in no word of the vocabulary.

    Such a pair is of a name, of a word of a trade, or of two words that meet.
    """
    known = _pairs_zh()
    return [term for term in some if _PAIR.fullmatch(term) and term not in known]


_PAIR = re.compile(f"[{HAN}]{{2}}")


@cache
def _pairs_zh() -> frozenset[str]:
    """All pairs of neighbouring characters in the Chinese words."""
    text = (files("supervisor_memory.language") / "words_zh.txt").read_text("utf-8")
    return frozenset(first + second for first, second in pairwise(text) if "\n" not in (first, second))


@lru_cache(maxsize=1 << 14)
def _is_known(term: str) -> bool:
    """Whether a term is a word of the vocabulary, or the stem of one."""
    words = _words()
    begins = (
        term[:-1] if term.endswith(("i", "e")) else term
    )  # of a word that ends with y or, as -ing, without
    at = bisect_left(words, begins)
    while at < len(words) and words[at].startswith(begins):
        if words[at] == term or stem(words[at]) == term:
            return True
        at += 1
    return False


def is_word(word: str) -> bool:
    """Whether a lower-case word is in the vocabulary, or is a form of a word in it."""
    return is_spelled_so(word) or _is_known(stem(word))


def is_spelled_so(word: str) -> bool:
    """Whether exactly this word is in the vocabulary."""
    words = _words()
    at = bisect_left(words, word)
    return at < len(words) and words[at] == word


def words_beginning(letter: str) -> Sequence[str]:
    """The words of the vocabulary with a first letter."""
    words = _words()
    return words[bisect_left(words, letter) : bisect_left(words, chr(ord(letter) + 1))]
