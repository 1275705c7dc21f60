"""Make a text shorter by leaving out sentences; nothing is reworded."""

from collections.abc import Collection
from typing import Final

from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.language.tokens import TokenCounter
from supervisor_memory.understand.statements import sentences

_NONE: Final[frozenset[str]] = frozenset()


def extract(text: str, *, asked: Collection[str] = _NONE) -> str:
    """A text's first sentence, and its sentences with a wanted term, in order."""
    found = [*sentences(text)]
    kept = (each for n, each in enumerate(found) if not n or not set(terms(each)).isdisjoint(asked))
    return ("" if has_cjk(text) else " ").join(kept)


def leading(text: str, *, most_tokens: int, count_tokens: TokenCounter) -> str:
    """As many leading sentences as fit the tokens, at least the first."""
    first, *rest = [*sentences(text)] or [text]
    kept, left = [first], most_tokens - count_tokens(first)
    for each in rest:
        if (left := left - count_tokens(each)) < 0:
            break
        kept.append(each)
    return ("" if has_cjk(text) else " ").join(kept)
