"""The stem of an English word: Porter's second stemmer.

Written out here since the generated one goes through a word letter by letter and takes seven times as long,
and since an index has to be read with the stems that it was built with.

Source: https://snowballstem.org/algorithms/english/stemmer.html, as Snowball 3.1 has it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

_WHOLE: Final = {
    **{word: word for word in ("andes", "atlas", "bias", "cosmos", "howe", "news", "sky")},
    **{"skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli"},
    **{"only": "onli", "singly": "singl"},
}
_SHORTEST: Final = 3
_VOWELS: Final = frozenset("aeiouy")  # a `y` that is a consonant is written `Y` while a word is worked on
_BEFORE_LI: Final = frozenset("cdeghkmnrt")
_CONSONANT_Y: Final = re.compile(r"([aeiouy])y")
_REGION: Final = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]")
_SHORT: Final = re.compile(r"(?:\A[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY]|past)\Z")
"""The end of a word, or the whole of it, that is a short syllable."""
_Y_BEHIND_ONE: Final = re.compile(r"[^aeiouy]y")
_FIRST: Final = re.compile(r"arsen|commun|emerg|gener|inter|later|organ|past|univers")
_PLURALS: Final = {"sses": "ss", "ied": "i", "ies": "i", "ss": "ss", "us": "us", "s": ""}
_PASTS: Final = ("eed", "ed", "ing", "eedly", "edly", "ingly")
_WHOLE_BEFORE_ING: Final = frozenset(("even", "cann", "inn", "earr", "herr", "out"))
_WHOLE_BEFORE_EED: Final = frozenset(("succ", "proc", "exc"))
_DOUBLED: Final = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_SECOND: Final = {
    **{"tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "li": ""},
    **{"izer": "ize", "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate"},
    **{"alism": "al", "aliti": "al", "alli": "al", "fulness": "ful", "fulli": "ful"},
    **{"ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive"},
    **{"biliti": "ble", "bli": "ble", "ogi": "og", "ogist": "og", "lessli": "less"},
}
_THIRD: Final = {
    **{"tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic"},
    **{"ful": "", "ness": "", "ative": ""},
}
_FOURTH: Final = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti"),
    *("ous", "ive", "ize", "ion"),
)


def _by_last_letter(endings: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Endings by their last letter, the longest first."""
    found: dict[str, list[str]] = {}
    for ending in sorted(endings, key=len, reverse=True):
        found.setdefault(ending[-1], []).append(ending)
    return found


_PLURAL_ENDINGS: Final = _by_last_letter(_PLURALS)
_PAST_ENDINGS: Final = _by_last_letter(_PASTS)
_SECOND_ENDINGS: Final = _by_last_letter(_SECOND)
_THIRD_ENDINGS: Final = _by_last_letter(_THIRD)
_FOURTH_ENDINGS: Final = _by_last_letter(_FOURTH)


def stem_of(word: str) -> str:
    """The stem of a word of ASCII letters."""
    if word in _WHOLE or len(word) < _SHORTEST:
        return _WHOLE.get(word, word)
    marked = word
    if "y" in word:
        marked = _CONSONANT_Y.sub(r"\1Y", "Y" + word[1:] if word[0] == "y" else word)
    first, second = _regions(marked)
    found = _without_past(_without_plural(marked), first)
    if found[-1] in "yY" and found[1:-1] and found[-2] not in _VOWELS:
        found = found[:-1] + "i"
    found = _fifth(_fourth(_third(_second(found, first), first, second), second), first, second)
    return found if marked == word else found.replace("Y", "y")


def _regions(word: str) -> tuple[int, int]:
    """Where the two regions begin in which endings are taken off: each behind the first consonant that
    follows a vowel, the second inside the first."""
    begun = _FIRST.match(word) or _REGION.match(word)
    if begun is None:
        return len(word), len(word)
    further = _REGION.match(word, begun.end())
    return begun.end(), further.end() if further else len(word)


def _ending(word: str, endings: Mapping[str, Sequence[str]]) -> str:
    """The longest ending that a word has; "": it has none."""
    for ending in endings.get(word[-1:], ()):
        if word.endswith(ending):
            return ending
    return ""


def _has_vowel(part: str) -> bool:
    return not _VOWELS.isdisjoint(part)


def _without_plural(word: str) -> str:
    ending = _ending(word, _PLURAL_ENDINGS)
    if not ending or (ending == "s" and not _has_vowel(word[:-2])):
        return word
    left = word[: -len(ending)]
    return left + ("ie" if ending in {"ied", "ies"} and not left[1:] else _PLURALS[ending])


def _without_past(word: str, first: int) -> str:
    ending = _ending(word, _PAST_ENDINGS)
    if not ending:
        return word
    left = word[: -len(ending)]
    if ending in {"eed", "eedly"}:
        return left + "ee" if len(left) >= first and left not in _WHOLE_BEFORE_EED else word
    if ending == "ing":
        if left in _WHOLE_BEFORE_ING:
            return word
        if _Y_BEHIND_ONE.fullmatch(left):
            return left[0] + "ie"
    if not _has_vowel(left):
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if left.endswith(_DOUBLED):
        return left if left[:-2] in {"a", "e", "o"} else left[:-1]
    return left + "e" if len(left) == first and _SHORT.search(left) else left


def _second(word: str, first: int) -> str:
    ending = _ending(word, _SECOND_ENDINGS)
    left = word[: len(word) - len(ending)]
    if not ending or len(left) < first:
        return word
    if (ending == "ogi" and left[-1:] != "l") or (ending == "li" and left[-1:] not in _BEFORE_LI):
        return word
    return left + _SECOND[ending]


def _third(word: str, first: int, second: int) -> str:
    ending = _ending(word, _THIRD_ENDINGS)
    left = word[: len(word) - len(ending)]
    if not ending or len(left) < (second if ending == "ative" else first):
        return word
    return left + _THIRD[ending]


def _fourth(word: str, second: int) -> str:
    ending = _ending(word, _FOURTH_ENDINGS)
    left = word[: len(word) - len(ending)]
    if not ending or len(left) < second or (ending == "ion" and left[-1:] not in {"s", "t"}):
        return word
    return left


def _fifth(word: str, first: int, second: int) -> str:
    left = word[:-1]
    if word.endswith("e"):
        return left if len(left) >= second or (len(left) >= first and not _SHORT.search(left)) else word
    return left if word.endswith("ll") and len(left) >= second else word
