"""The differences between two texts, word by word; in Chinese character by character. Pure."""

import difflib
import re
from typing import Final, Literal, NamedTuple

_HAN: Final = r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_TOKEN: Final = re.compile(rf"[{_HAN}]|\s+|[^\W{_HAN}]+|[^\w\s]")
_MOST: Final = 3_000
"""The most words of both texts that are compared; longer texts are shown one after the other."""


class Piece(NamedTuple):
    """A piece of text: in both ("same"), new ("ins") or gone ("del")."""

    what: Literal["same", "ins", "del"]
    text: str


def differences(before: str, after: str) -> list[Piece]:
    """The pieces that turn one text into another. All pieces but "ins" make up the first text, all but "del"
    the second."""
    if before == after:
        return [Piece("same", after)] if after else []
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if len(old) + len(new) > _MOST:
        return _whole(before, after)
    pieces: list[Piece] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            pieces.append(Piece("same", "".join(new[k:m])))
        else:
            pieces += _whole("".join(old[i:j]), "".join(new[k:m]))
    return pieces


def _whole(before: str, after: str) -> list[Piece]:
    gone, come = Piece("del", before), Piece("ins", after)
    return [piece for piece in (gone, come) if piece.text]


def marked(text: str, words: str) -> tuple[str, str, str]:
    """Split a text into the part before the quoted words, these words, and the rest; (text, "", "") where
    they are not in it.

    Spaces and capitals may differ.
    """
    parts = [re.escape(part) for part in words.split()]
    found = re.search(r"\s+".join(parts), text, re.IGNORECASE) if parts else None
    if found is None:
        return text, "", ""
    return text[: found.start()], found[0], text[found.end() :]
