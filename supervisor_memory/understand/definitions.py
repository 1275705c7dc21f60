"""Find definitions of terms: meanings, other names, what a count includes or excludes. English and Chinese.

`find_definition` meets text prepared by `statements`; see wishes.toml for what that means. The rules
are in definitions.toml.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from supervisor_memory.language.lexicon import lexicon

__all__ = ["Definition", "find_definition", "normal_term"]

Relation: TypeAlias = Literal["definition", "alias", "includes", "excludes"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of `term`, which is normalised: casefolded, without articles and quotes."""

    term: str
    relation: Relation
    value: str


_DEFINITIONS = lexicon("definitions")
_RULES: list[tuple[Relation, re.Pattern[str]]] = [
    (block["relation"], pattern) for block, pattern in _DEFINITIONS.blocks("rules")
]
_ADVERB = _DEFINITIONS.pattern("adverb")
_NOT_TERMS = _DEFINITIONS.words("pronouns")
_NOT_TERMS_ZH = _DEFINITIONS.pattern("not_terms_zh")
_NEGATED = _DEFINITIONS.pattern("negated")
_OUTPUTS = _DEFINITIONS.pattern("outputs")
_QUANTIFIED = _DEFINITIONS.pattern("quantified")
_CODE = _DEFINITIONS.pattern("code")
_EDGES = _DEFINITIONS.pattern("edges")
_LONGEST_TERM = 60


def find_definition(text: str, hidden: str) -> Definition | None:
    """The definition a sentence gives, or None.

    Args:
        text: The sentence without greeting and announcement.
        hidden: The same with quotations masked, character by character.
    """
    for relation, rule in _RULES:
        match = rule.search(hidden)
        if match is None or _is_average(match):
            continue
        term = normal_term(text[slice(*match.span("term"))])
        value = text[slice(*match.span("value"))].strip(" .。!")
        if _is_sound(term, value, relation, hidden):
            return _sorted_out(Definition(term, relation, value), match)
    return None


_OF_MANY = _DEFINITIONS.pattern("of_many")
_HAS_A_VERB = _DEFINITIONS.pattern("has_a_verb")


def _is_average(match: re.Match[str]) -> bool:
    """Whether "mean" is the average here, not a verb: "the mean fare is"."""
    words = match.string[match.end("term") : match.start("value")].casefold().split()
    if not words or words[-1] != "mean" or not all(map(_ADVERB.fullmatch, words[:-1])):
        return False
    return not _OF_MANY.search(match["term"]) or _HAS_A_VERB.match(match["value"]) is not None


def normal_term(term: str) -> str:
    """The form in which terms are compared: casefolded, without articles, quotes and a trailing 的."""
    return " ".join(_EDGES.sub("", term.casefold()).removesuffix("的").split())


def _is_sound(term: str, value: str, relation: Relation, hidden: str) -> bool:
    if _NEGATED.search(term) or _NEGATED.search(value):
        return False
    if not value or not 0 < len(term) <= _LONGEST_TERM or not any(c.isalpha() for c in term):
        return False
    if _NOT_TERMS & set(term.split()) or _NOT_TERMS_ZH.search(term) or _CODE.search(hidden):
        return False
    return relation not in ("includes", "excludes") or not _OUTPUTS.search(term)


def _sorted_out(found: Definition, match: re.Match[str]) -> Definition:
    """Turn "a cancelled flight counts as delayed" into a part that the term includes, not its meaning."""
    names_the_term_last = match.start("value") < match.start("term")
    conditional = match.end("term") < match.end() - 3
    is_member = found.relation == "definition" and names_the_term_last and not conditional
    if is_member and not _QUANTIFIED.search(found.value) and not found.value.startswith(("we ", "我们")):
        return Definition(found.term, "includes", found.value)
    return found
