"""The words of a text, as the lexical index and the ranking count them. English and CJK.

A query finds a record if they share terms, so both go through `terms`. After a change here searches find
other records, and lexical indexes have to be built again.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from Stemmer import Stemmer  # type: ignore[import-not-found]  # compiled, without types

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
CJK = HAN + "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u1100-\u11ff\uac00-\ud7a3"
"""Han, kana and hangul as the inside of a character class: written without spaces, so cut into bigrams."""

_STOP_WORDS = """
a an and am are as at be been being but by can could did do does doing for from had has have having
he her hers him his how i if in into is it its itself just me my myself of on or our ours please shall
she should so than that the their theirs them then there these they this those to too was we were what
when where which while who whom why will with would you your yours
d ll m re s t ve don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn
"""  # the last line is what is left of don't, it's, we'll …
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that do not tell texts apart. "not", "no" and "never" do, so they are no stop-words."""

_WORDS = re.compile(rf"(?P<cjk>(?:[{CJK}](?<=\w))+)|[^\W{CJK}]+")
_ASCII_WORDS = re.compile(r"\w+", re.ASCII)
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_OTHER_WORD = re.compile(rf"[^\W\d_{CJK}]+")
# 目的 (purpose), 的确, 了解, 为了 are words; elsewhere these only hold a sentence together.
_PARTICLES = re.compile(r"(?<!目)的(?!确)|(?<!为)了(?!解)|[吗呢吧啊呀嘛哦噢哟啦]")
_LONGEST_STEMMED = 40
_CHARACTERS_A_CHINESE_WORD = 1.7


def terms(text: str) -> tuple[str, ...]:
    """The terms of a text, in order, repeated as often as they occur.

    English words are stemmed and stop-words left out; a run of CJK characters becomes its bigrams
    (a run of one stays itself); an identifier gives itself and its parts: `arr_delay` → "arr_delay",
    "arr", "delay". Each term is made of word characters only, so terms can be joined by spaces.
    """
    return _known(text) if len(text) <= _LONGEST_KNOWN else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    found: list[str] = []
    if text.isascii():  # it has one form and no CJK
        for word in _ASCII_WORDS.findall(text.lower()):
            found += _of_word(word)
        return tuple(found)
    for match in _WORDS.finditer(_folded(text)):
        found += _bigrams(match[0]) if match["cjk"] else _of_word(match[0])
    return tuple(found)


_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=2_048)(_terms)  # one record is compared with many questions


def has_cjk(text: str) -> bool:
    """Whether a text has a Han, kana or hangul character."""
    return _CJK_CHARACTER.search(text) is not None


def language(text: str) -> Literal["zh", "en"]:
    """The language to answer in: "zh" when at least half of the words are CJK, else "en"."""
    characters = len(_CJK_CHARACTER.findall(text))
    if not characters:
        return "en"
    others = sum(1 for _ in _OTHER_WORD.finditer(text))
    return "zh" if characters >= others * _CHARACTERS_A_CHINESE_WORD else "en"


def _folded(text: str) -> str:
    # Casefolding can undo the normal form ("ΐ"), so it is restored afterwards.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _bigrams(run: str) -> Iterator[str]:
    for part in _PARTICLES.split(run):
        if len(part) == 1:
            yield part
        else:
            yield from (first + second for first, second in pairwise(part))


def _of_word(word: str) -> Sequence[str]:
    if "_" not in word:
        return () if word in STOP_WORDS else (stem(word),)
    parts = [part for part in word.split("_") if part]
    return [*([word] if parts else ()), *(stem(part) for part in parts if part not in STOP_WORDS)]


class _ThreadLocalStemmer(threading.local):
    """A stemmer keeps the word it works on, so threads must not share one."""

    def __init__(self) -> None:
        self.english = Stemmer("english", 0)  # it would keep words that are to be erased


_stemmer = _ThreadLocalStemmer()


def stem(word: str) -> str:
    """The stem of an English word by Porter's second stemmer; other words, and very long ones, are their own.

    Source: https://snowballstem.org/algorithms/english/stemmer.html.
    """
    if len(word) > _LONGEST_STEMMED or not (word.isascii() and word.isalpha()):
        return word
    return str(_stemmer.english.stemWord(word))
