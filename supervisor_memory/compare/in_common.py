"""The words, figures and names that two texts share."""

from collections.abc import Mapping
from difflib import SequenceMatcher

from supervisor_memory.compare.pair import Pair, of_each_pair
from supervisor_memory.compare.reading import is_number
from supervisor_memory.compare.slots import UNIT_TERMS
from supervisor_memory.language.lexicon import lexicon

_SLOTS = ("numbers", "dates", "identifiers", "labels")
_LEXICON = lexicon("pairs")
_EMPTY_ZH = _LEXICON.words("empty_zh")


@of_each_pair
def is_told_otherwise(pair: Pair) -> bool:
    """Whether more than common words links two differently worded texts: a shared figure or name, an
    announced change, two attitudes, a definition."""
    old, new = pair.old, pair.new
    # The later text first, of which many earlier ones are asked.
    return (
        any((yours := getattr(new.slots, each)) and yours & getattr(old.slots, each) for each in _SLOTS)
        or pair.announces
        or (new.attitude is not None and old.attitude is not None)
        or new.is_defining
        or old.is_defining
    )


def names_in_common(pair: Pair, weights: Mapping[str, float]) -> float:
    """The share of the later text's first words, identifiers and numbers that the earlier text has too.

    In [0, 1]; rare words count more.
    """
    old, new = pair.old, pair.new
    total = sum(weights.get(term, 1.0) for term in new.first)
    common = sum(weights.get(term, 1.0) for term in new.first if term in old.terms)
    for mine, yours in (
        (old.slots.identifiers, new.slots.identifiers),
        (old.slots.numbers, new.slots.numbers),
        (old.slots.rates, new.slots.rates),
    ):
        total += len(yours)
        common += len(mine & yours)
    return common / total if total else 0.0


def shares_words(pair: Pair) -> bool:
    """Whether two texts share a word that is no number, no date, and not empty: without vectors, nothing
    less shows a paraphrase."""
    common = pair.old.terms & pair.new.terms
    return any(
        not is_number(term) and not _LEXICON["calendar"].fullmatch(term) and not _EMPTY_ZH.issuperset(term)
        for term in common
    )


def shares_a_figure_alone(pair: Pair) -> bool:
    """Whether two differently worded texts share only a figure, its unit, and dates: logs are kept for 30
    days, leave is asked for 30 days ahead."""
    old, new = pair.old.slots, pair.new.slots
    if pair.is_template or len(old.numbers & new.numbers) != 1 or old.directions & new.directions:
        return False  # "over 30 days" says more
    return all(map(_is_of_figures, pair.old.terms & pair.new.terms))


def _is_of_figures(term: str) -> bool:
    return is_number(term) or term in UNIT_TERMS or _LEXICON["calendar"].fullmatch(term) is not None


def things_in_common(pair: Pair, *, most: int) -> int:
    """Count the runs of words in common, up to `most`; runs of numbers and dates alone do not count."""
    mine, yours, found = list(pair.old.tokens), list(pair.new.tokens), 0
    while found < most:
        block = SequenceMatcher(None, mine, yours, autojunk=False).find_longest_match()
        if not block.size:
            break
        run = mine[block.a : block.a + block.size]
        found += not all(is_number(word) or _LEXICON["calendar"].fullmatch(word) for word in run)
        del mine[block.a : block.a + block.size]
        del yours[block.b : block.b + block.size]
    return found
