"""A speaker's own words: without our notes and errors, and without a graph's remarks on handoffs."""

import re
from collections.abc import Iterable, Iterator

from supervisor_memory import errors
from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.model.arguments import LONGEST_READ
from supervisor_memory.model.records import Candidate, check_content
from supervisor_memory.model.replacing import replace
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.understand.statements import sentences

_LEXICON = lexicon("answers")
_CLASSES = "|".join(name for name in errors.__all__ if re.search(r"[a-z][A-Z]", name))
_FROM_US = re.compile(
    rf"(?=[A-Zm])\b(?:(?:{_CLASSES})\b[\"'`]?:|MemoryAccessDenied\b|memory tools belong to the supervisor\b)"
)


def is_bookkeeping(text: str) -> bool:
    """Whether a text is a graph's remark on a handoff, like "Transferring back to supervisor"."""
    return _LEXICON["bookkeeping"].fullmatch(text.strip()) is not None


def own_words(text: str) -> str:
    """A text without our notes, our errors and denials, and the bookkeeping of handoffs."""
    text = strip_notes(text)
    if "transferr" not in text.casefold() and not _FROM_US.search(text):
        return text
    return "\n".join(kept for line in text.splitlines() if (kept := _own_line(line)) is not None).strip()


def _own_line(line: str) -> str | None:
    if is_bookkeeping(line):
        return None
    if not _FROM_US.search(line):
        return line
    return " ".join(each for each in sentences(line) if not _FROM_US.search(each)) or None


def readable(text: str) -> str:
    """The beginning of a text, as much as is read, without our notes."""
    return strip_notes(text[:LONGEST_READ])


def storable(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates that can be stored, each text once; a text of the user once for each of its messages."""
    seen: set[tuple[str, str, str | None]] = set()
    for candidate in found:
        try:
            is_users = candidate.source.source_class == "user"
            content = check_content((strip_notes if is_users else own_words)(candidate.content))
        except InvalidContent:
            continue
        said = (candidate.kind, content, candidate.ref_id if is_users else None)
        if said not in seen:
            seen |= {said, (candidate.kind, content, None)}
            yield replace(candidate, content=content)
