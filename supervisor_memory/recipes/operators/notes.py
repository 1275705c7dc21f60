"""Write something beside each text before it is kept: what is embedded with it, and the like."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from supervisor_memory.flow import Gathering, Remembering
from supervisor_memory.model.records import Candidate, Record
from supervisor_memory.ports import ReadStore

Noting: TypeAlias = Callable[[str, float, ReadStore], Mapping[str, Any]]
"""From a text, and when it was said, to the metadata that is kept with it."""


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
