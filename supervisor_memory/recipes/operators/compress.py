"""Make a text shorter by leaving out sentences; nothing is reworded."""

from collections.abc import Collection
from typing import Final

from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.language.tokens import TokenCounter
from supervisor_memory.understand.statements import sentences

_NONE: Final[frozenset[str]] = frozenset()


def extract(text: str, *, asked: Collection[str] = _NONE) -> str:
    """The first sentence of a text, and those that hold a term that is asked for, in their order."""
    found = [*sentences(text)]
    kept = (each for n, each in enumerate(found) if not n or not set(terms(each)).isdisjoint(asked))
    return ("" if has_cjk(text) else " ").join(kept)


def leading(text: str, *, most_tokens: int, count_tokens: TokenCounter) -> str:
    """The leading sentences of a text that a number of tokens holds; the first one whatever it takes."""
    first, *rest = [*sentences(text)] or [text]
    kept, left = [first], most_tokens - count_tokens(first)
    for each in rest:
        if (left := left - count_tokens(each)) < 0:
            break
        kept.append(each)
    return ("" if has_cjk(text) else " ").join(kept)
