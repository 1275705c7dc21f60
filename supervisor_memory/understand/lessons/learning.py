"""Read a lesson from the difference between a failed call and a working one, and check it for doubts."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from supervisor_memory.language.terms import CJK, has_cjk, terms
from supervisor_memory.language.unseen import visible
from supervisor_memory.understand.lessons.lesson import LONGEST_PART, MOST_ASKED, Call, Edit, Lesson, is_named
from supervisor_memory.understand.lessons.safety import is_credential, is_safe
from supervisor_memory.understand.lessons.values import QUOTED, as_text, is_name, is_same, passes_by, squeezed
from supervisor_memory.understand.lessons.wording import essence
from supervisor_memory.understand.rejection import gives_orders
from supervisor_memory.understand.sql import query_of, without_comments
from supervisor_memory.understand.statements import sentences

_WHOLE: Final = 40
"""Longest value told whole, in characters; of longer ones and of SQL only the difference is told."""
_MOST_CHANGES: Final = 3
_MOST_TOKENS_COMPARED: Final = 1_500
_LEAST_ALIKE: Final = 0.4
"""The share of common words from which two values are a change."""
_GAP: Final = 2
"""Words between two differences that are told as one."""
_PROSE: Final = 4
"""Words in a row, without a sign of code, that make a text prose."""
_TOKEN: Final = re.compile(
    rf"""'(?:[^'\n]|'')*'|"[^"\n]*"|`[^`\n]*`|\d(?:[\d./:\-T]*\d)?(?![^\W{CJK}])|[{CJK}]+|"""
    rf"""[^\W{CJK}]++(?:\.[^\W{CJK}]++)*+|[^\w\s]"""
)
"""Quotations, numbers and dates as they are written, words, names with dots, signs."""
_MIXED: Final = re.compile(r"(?=\w*[A-Za-z])(?=\w*[\u0370-\u052f])[^\W\d_]{4,}")
"""A word of two scripts that look alike."""
_CODE: Final = re.compile(r"""[_=(){}\[\]<>*/\\|"'`$#@]|\d""")


def learned(
    failed: Sequence[Call], worked: Call, *, run: str | None = None, at: float = 0.0, asked: str = ""
) -> Lesson | None:
    """The lesson of failed calls and a working call; None: they teach nothing.

    The first failed call is compared that the working one is a change of. Differences that no error bears out
    are left out; failures that pass by themselves teach nothing, nor does an error that gives orders.
    """
    lasting = [each for each in failed if each.error and not passes_by(each.error)]
    if any(_orders(each.error or "") for each in failed):
        return None
    said = "\n".join(each.error or "" for each in lasting)
    for call in lasting:
        edits = differences(call, worked, said=said)
        if edits:
            words = tuple(dict.fromkeys(terms(asked)))[:MOST_ASKED]
            runs = () if run is None else (run,)
            return Lesson(edits, essence(call.error or "", edits), runs, at=at, asked=words)
    return None


def _orders(error: str) -> bool:
    """Whether an error gives orders beyond this call, which genuine errors do not."""
    plain = unicodedata.normalize("NFKC", visible(error))
    orders = gives_orders([*islice(sentences(plain), 50), plain], by_others=True)
    return orders or _MIXED.search(plain) is not None


def differences(before: Call, after: Call, *, said: str = "") -> tuple[Edit, ...]:
    """The edits that turn the first call into the second, three at most; empty: none, or a different call.

    Args:
        said: What the errors said.
    """
    found: list[Edit] = []
    for name in dict.fromkeys((*before.arguments, *after.arguments)):
        one, other = before.arguments.get(name), after.arguments.get(name)
        if one == other and type(one) is type(other):
            continue
        edits = _edits(name, *_both_shown(one, other))
        if edits is None:
            return ()
        found += edits
    borne_out = [each for each in found if is_named(each, said) or is_safe(each, before, after, said)]
    kept = list(dict.fromkeys(each for each in borne_out if _teaches(each)))
    others = sum(not _teaches(each) for each in borne_out)
    if others > len(kept) or len(kept) > _MOST_CHANGES or not all(is_name(each.argument) for each in kept):
        return ()
    return tuple(kept)


def _both_shown(one: object, other: object) -> tuple[str | None, str | None]:
    """Two values as texts; a text and a number of the same digits by their types."""
    shown = as_text(one), as_text(other)
    if shown[0] == shown[1] and shown[0] is not None:
        return json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
    return shown


def _edits(name: str, one: str | None, other: str | None) -> list[Edit] | None:
    """The edits from a value of an argument to another; None: they are two unlike values."""
    if one is None or other is None:
        edit = Edit(name, one, other)
        return [edit] if _fits(edit) else None
    if _is_prose(one) and _is_prose(other):
        return [Edit(name, one[:LONGEST_PART], other[:LONGEST_PART])]  # which teaches nothing
    is_sql = query_of(one) is not None and query_of(other) is not None
    if is_sql:
        one, other = without_comments(one), without_comments(other)
    mine, yours = tokens_of(one), tokens_of(other)
    if max(len(mine), len(yours)) > _MOST_TOKENS_COMPARED:
        return None
    old, new = ([token.casefold() for token, *_ in tokens] for tokens in (mine, yours))
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    is_short = not is_sql and max(len(one), len(other)) <= _WHOLE
    if is_short or matcher.ratio() < _LEAST_ALIKE:
        edit = Edit(name, one, other)
        return [edit] if _fits(edit) and not (_is_prose(one) or _is_prose(other)) else None
    edits = [
        Edit(name, _cut(one, mine[a:b]), _cut(other, yours[c:d]))
        for a, b, c, d in _spans(matcher, len(mine), len(yours))
    ]
    return edits if all(map(_fits, edits)) and len(edits) <= 2 * _MOST_CHANGES else None


def _spans(matcher: Any, mine: int, yours: int) -> Iterator[tuple[int, int, int, int]]:
    """Differing stretches, those with little between them as one; an insertion takes along a neighbour."""
    joined: list[list[int]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        if joined and a - joined[-1][1] <= _GAP and c - joined[-1][3] <= _GAP:
            joined[-1][1], joined[-1][3] = b, d
        else:
            joined.append([a, b, c, d])
    for a, b, c, d in joined:
        is_inside = (a == b or c == d) and a > 0 and b < mine and d < yours
        yield (a - 1, b, c - 1, d) if is_inside and c > 0 else (a, b, c, d)


def _cut(text: str, tokens: Sequence[tuple[str, int, int]]) -> str | None:
    """The stretch of a text with these tokens; None for none."""
    return squeezed(text[tokens[0][1] : tokens[-1][2]]) if tokens else None


def tokens_of(text: str) -> list[tuple[str, int, int]]:
    return [(found[0], *found.span()) for found in _TOKEN.finditer(text)]


def _fits(edit: Edit) -> bool:
    return all(each is None or len(each) <= LONGEST_PART for each in (edit.before, edit.after))


def _teaches(edit: Edit) -> bool:
    """Whether an edit may apply to other calls: not if it is prose, or changes words in quotes."""
    parts = [each for each in (edit.before, edit.after) if each is not None]
    if any(map(_is_prose, parts)):
        return False
    is_quoted = all(QUOTED.match(each) for each in parts)
    return not (len(parts) > 1 and is_quoted and not is_same(parts[0], parts[1], ""))


def _is_prose(text: str) -> bool:
    """Whether a text is written for people: words in a row without a sign of code, and no SQL."""
    if query_of(text) is not None:
        return False
    plain = text.strip("'\"` ")
    if has_cjk(plain):
        return len(plain) > 3 * _PROSE and not _CODE.search(plain)
    words = re.findall(r"[^\W\d_]{2,}", plain)
    return len(words) >= _PROSE and not _CODE.search(plain)


def doubts(lesson: Lesson, failed: Sequence[Call], worked: Call) -> tuple[str, ...]:
    """The reasons for a person to decide on a lesson, as codes; empty: it may be used."""
    lasting = [each for each in failed if each.error and not passes_by(each.error)]
    said = "\n".join(each.error or "" for each in lasting)
    of = next((each for each in lasting if differences(each, worked, said=said) == lesson.edits), None)
    names = [worked.tool, *(each.argument for each in lesson.edits)]
    is_plain = all(name.isascii() and not is_credential(name) for name in names)
    if of is not None and is_plain and all(is_safe(each, of, worked, said) for each in lesson.edits):
        return ()
    return ("not-taken-by-itself",)
