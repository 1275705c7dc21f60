"""Estimate the tokens of a text, without asking a model."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

TokenCounter: TypeAlias = Callable[[str], int]

_TOKENS = re.compile(r"[A-Z]?[a-z]{1,6}|[A-Z]{1,3}|[0-9]{1,3}|(?<=[^\S\n])[^\S\n]{1,4}|\n|[^\sA-Za-z0-9]")
_EMOJI = re.compile("[\U00010000-\U0010ffff]")


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text with present tokenizers, rather high: the counter named "approximate".

    One token for six letters of a Latin word (at least one a word), one for three capitals or digits, one
    for each CJK character, mark or line, two for an emoji; single spaces are free. docs/ranking.md has what
    tokenizers say: of English and code it tells more, of ids and other random letters fewer.
    """
    if len(text) <= _USUAL_LINE:
        return _known(text)
    # No token goes across a line's end or an ellipsis, each of which is one, and notes are made of few texts.
    parts = text.replace("…", "\n").split("\n")
    return sum(
        [_known(part) if len(part) <= _LONGEST_KNOWN else _count(part) for part in parts], len(parts) - 1
    )


def _count(text: str) -> int:
    emoji = 0 if text.isascii() else len(_EMOJI.findall(text))  # each is two
    return len(_TOKENS.findall(text)) + emoji


_USUAL_LINE = 400
_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=1_024)(_count)  # the same lines come back in many notes

COUNTERS: Mapping[str, TokenCounter] = MappingProxyType({"approximate": count_tokens})
"""The counters that settings can name. Pass any other as a function."""
