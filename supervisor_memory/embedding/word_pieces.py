"""The WordPiece tokenizer of BERT's uncased models."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

LONGEST_WORD: Final = 100  # characters; a longer one is one unknown piece
MARKED: Final = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
IDEOGRAPHS: Final = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class WordPieces:
    """Cuts texts into token ids: the longest known piece first, from the left.

    Agrees with `tokenizers.BertWordPieceTokenizer(lowercase=True)`, but for some 500 signs of scripts that
    Unicode has known only since 2016. Safe to share between threads.

    Args:
        vocabulary: A file with one piece a line; a piece that goes on a word begins with `##`.
        tokens: How many numbers a text gets at most, with the two that stand around it.
    """

    def __init__(self, vocabulary: Path, *, tokens: int) -> None:
        lines = vocabulary.read_text(encoding="utf-8").splitlines()
        self._numbers: Mapping[str, int] = {piece: number for number, piece in enumerate(lines)}
        self._longest = max(map(len, lines))
        self._tokens = tokens

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, between those of [CLS] and [SEP]."""
        numbers = [self._numbers["[CLS]"]]
        for number in self._pieces(text):
            if len(numbers) == self._tokens - 1:
                break
            numbers.append(number)
        return [*numbers, self._numbers["[SEP]"]]

    def _pieces(self, text: str) -> Iterator[int]:
        for part in MARKED.split(text):
            if MARKED.fullmatch(part):
                yield self._numbers[part]
                continue
            for word in "".join(map(_plain, part)).split():
                yield from self._of_word(word)

    def _of_word(self, word: str) -> list[int]:
        """Cut one word. A word with an unknown part is unknown as a whole."""
        unknown = [self._numbers["[UNK]"]]
        if len(word) > LONGEST_WORD:
            return unknown
        found, start = [], 0
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._numbers.get(("##" if start else "") + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return unknown
        return found


@lru_cache(maxsize=4_096)
def _plain(character: str) -> str:
    """A character in lower case without accents; marks and Chinese characters get spaces around them."""
    if character in "\t\n\r" or (character.isspace() and unicodedata.category(character) != "Cc"):
        return " "
    if IDEOGRAPHS.match(character):
        return f" {unicodedata.normalize('NFD', character)} "
    return "".join(map(_small, unicodedata.normalize("NFD", character)))


def _small(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in {"Cc", "Cf", "Co", "Mn"} or character == "\ufffd":
        return ""
    is_mark = kind.startswith("P") or (character.isascii() and kind.startswith("S"))
    return f" {character} " if is_mark else character.lower()
