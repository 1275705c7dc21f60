"""Estimate the tokens of a text, without asking a model."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

TokenCounter: TypeAlias = Callable[[str], int]

_RUNS = re.compile(
    r"(?P<letters>[A-Za-z]+)"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<spaces>[^\S\n]+)"
    r"|(?P<emoji>[\U00010000-\U0010ffff]+)"
    r"|(?P<others>(?:\n|[^\sA-Za-z0-9\U00010000-\U0010ffff])+)"
)
_CHARACTERS_A_TOKEN = {"letters": 4, "digits": 3, "emoji": 0.5, "others": 1}
_SPACES_A_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text with present tokenizers, rather high: the counter named "approximate".

    One token for four letters of a Latin word (at least one a word), one for three digits, one for
    each CJK character, mark or line, two for an emoji; single spaces are free. Right within a tenth
    or two for prose; ids and other random letters cost more than it says.
    """
    return _known(text) if len(text) <= _LONGEST_KNOWN else _count(text)


def _count(text: str) -> int:
    return sum(_cost(run.lastgroup or "others", len(run[0])) for run in _RUNS.finditer(text))


_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=1_024)(_count)  # the same lines come back in many notes

COUNTERS: Mapping[str, TokenCounter] = MappingProxyType({"approximate": count_tokens})
"""The counters that settings can name. Pass any other as a function."""


def _cost(kind: str, length: int) -> int:
    if kind == "spaces":
        return -(-(length - 1) // _SPACES_A_TOKEN)
    return int(-(-length // _CHARACTERS_A_TOKEN[kind]))
