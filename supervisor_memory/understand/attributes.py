"""Attributes with one value at a time: a home, an employer, a manager, a name, a currency.

A text that states such a value and nothing else replaces an earlier one, even if it announces no change. A
sentence that says more is left to `compare`. To teach an attribute, add a row to attributes.toml.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from supervisor_memory.language.lexicon import lexicon

__all__ = ["Stated", "same_attribute", "stated"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A stated attribute: its holder in `whose` ("i", "we", "son"), its name, and its value."""

    whose: str
    attribute: str
    value: str


_LEXICON = lexicon("attributes")
_NAMES = {
    word: (name, each["looks"])
    for name, each in _LEXICON.table("attributes").items()
    for word in each["words"]
}
_BY_LENGTH = sorted(_NAMES, key=len, reverse=True)
_LEXICON.give(
    english="|".join(word for word in _BY_LENGTH if word.isascii()),
    chinese="|".join(word for word in _BY_LENGTH if not word.isascii()),
)

_LONGEST = 200
_LEAD = _LEXICON.pattern("lead")
_OWN = _LEXICON.pattern("own")
_PATTERNS = _LEXICON.blocks("patterns")
_OPEN = _LEXICON.pattern("open")
_LOOKS = dict(_LEXICON.patterns("looks"))
_PLACES = _LEXICON.pattern("places")


def stated(text: str) -> Stated | None:
    """The attribute that a text states; None if it states none, or says more than that."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:_LONGEST]).replace("’", "'").split())
    return next(_found(_LEAD.sub("", plain)), None) if len(text) < _LONGEST else None


def same_attribute(one: Stated | None, other: Stated | None) -> bool:
    """Whether two texts state different values for the same attribute and holder."""
    return (
        one is not None
        and other is not None
        and (one.whose, one.attribute) == (other.whose, other.attribute)
        and not _is_part(one.value, other.value)
    )


def _is_part(one: str, other: str) -> bool:
    """Whether one value is part of the other: Ada, and Ada Lovelace."""
    return (
        one in other or other in one
        if not one.isascii()
        else _words(one) <= _words(other) or _words(other) <= _words(one)
    )


def _words(value: str) -> frozenset[str]:
    return frozenset(value.split())


def _found(text: str) -> Iterator[Stated]:
    for block, pattern in _PATTERNS:
        if (match := pattern.match(text)) is None:
            continue
        attribute, value = block["name"], match["value"].strip()
        name, looks = _NAMES[match["of"].casefold()] if attribute == "of" else (attribute, "")
        if _OPEN.search(value) or (looks and not _LOOKS[looks].fullmatch(value)):
            continue
        if name == "workplace":
            name = "workplace, a place" if _PLACES.match(value) else "employer"
        yield Stated(_holder(match["whose"]), name, value.casefold().strip(" .'\""))


def _holder(whose: str) -> str:
    word = whose.casefold().removesuffix("'s").removesuffix("的")
    if word in ("i", "my", "我"):
        return "i"
    return "we" if word in ("we", "our", "我们") else _OWN.sub("", word)
