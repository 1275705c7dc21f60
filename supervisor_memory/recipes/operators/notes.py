"""Add metadata to each text before it is kept, such as the text to embed with it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from supervisor_memory.flow import Gathering, Remembering
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import Candidate, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.understand.entities import entities

Noting: TypeAlias = Callable[[str, float, ReadStore], Mapping[str, Any]]
"""From a text, and when it was said, to the metadata that is kept with it."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_KEYWORDS: Final = 20


def beside(noting: Noting) -> Gathering:
    """An operator that adds metadata to each candidate, and to each text that is given as it is.

    What was said word for word in a session gets none: it is told beside what was read from it.
    """

    def noted(said: Remembering, view: ReadStore) -> Remembering:
        when = view.now if said.created_at is None else said.created_at

        def candidate(each: Candidate) -> Candidate:
            return replace(each, metadata={**each.metadata, **noting(each.content, when, view)})

        def record(each: Record) -> Record:
            told = noting(each.content, each.created_at, view)
            return replace(each, metadata={**each.metadata, **told})

        verbatim = tuple(map(record, said.verbatim)) if said.is_given else said.verbatim
        return replace(said, candidates=tuple(map(candidate, said.candidates)), verbatim=verbatim)

    return noted


def keywords_of(text: str) -> list[str]:
    """The first twenty words of a text that are no stop-words, and before them its names in Chinese."""
    named = [each.name for each in entities(text) if has_cjk(each.name)]
    words = {word.casefold(): word for word in _WORD.findall(text) if terms(word) and not has_cjk(word)}
    return [*named, *words.values()][:_KEYWORDS]
