"""Gate: which of the ranked hits are handed out. Pure functions of values."""

import re
from dataclasses import replace

from supervisor_memory.flow import Recalling
from supervisor_memory.ports import ReadStore
from supervisor_memory.recall.search import least_relevance
from supervisor_memory.records import Record

__all__ = ["drop_already_said", "gate"]


def gate(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop what is not relevant enough and what is over the limit. Standing preferences come first."""
    turn, settings = plan.turn, view.settings
    least = least_relevance(turn, settings)
    most = (
        turn.limit
        if turn.limit is not None
        else settings.top_k
        if turn.purpose == "hits"
        else settings.max_notes
    )
    standing = [hit for hit in plan.hits if "standing" in hit.parts]
    kept = standing + [h for h in plan.hits if "standing" not in h.parts and h.parts["relevance"] >= least]
    return replace(plan, hits=replace(plan.hits, items=tuple(kept[:most])))


def drop_already_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Leave out what the reader has in front of it anyway: the text, or the file or SQL it stands for."""
    if not plan.turn.messages:
        return plan
    said = _squeezed("\n".join(message.content for message in plan.turn.messages))
    kept = tuple(hit for hit in plan.hits if not any(_says(said, text) for text in _tellings(hit.record)))
    return plan.keeping(kept, others="already-said")


def _tellings(record: Record) -> list[str]:
    """The ways in which a message may already say what a record says."""
    named = (record.metadata.get(name) for name in ("path", "sql"))
    return [_squeezed(text) for text in (record.content, *named) if isinstance(text, str) and text]


def _says(said: str, text: str) -> bool:
    """Whether a text stands there, and not as a part of another word or path."""
    return text in said and re.search(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", said) is not None


def _squeezed(text: str) -> str:
    return " ".join(text.split())
