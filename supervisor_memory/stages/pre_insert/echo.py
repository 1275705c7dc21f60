"""What an agent merely repeats: of its note, of what is remembered, of what was said, of our own messages.

A sentence says something of its own when words are left once the sentences that others said are taken out
of it, word for word, and with them what only leads in ("as you know"). So a bullet list of recalled facts
says nothing, and "GMV (excluding refunds) fell by 12 %" does. What only resembles a record is compared in
`decide`; a new statement is never dropped here for mentioning an old one.
"""

import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

from supervisor_memory import errors
from supervisor_memory.flow import Remembering
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.model.records import SESSION_FAMILY, Candidate, Filter, Note, Query, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.text.terms import terms
from supervisor_memory.text.wording import tells
from supervisor_memory.understand.statements import sentences

__all__ = ["is_bookkeeping", "own_words", "repeated_from_note", "repeated_from_store", "without_told_lines"]

_Words: TypeAlias = tuple[str, ...]

_ALIKE = 10
_LATELY_SAID = 10
_MOST_READ = 8_000
"""Characters of one text of others."""


# --- our own messages, and those of handoffs -------------------------------------------------------------

_LEXICON = lexicon("answers")
_BOOKKEEPING = _LEXICON.pattern("bookkeeping")
_CLASSES = "|".join(name for name in errors.__all__ if re.search(r"[a-z][A-Z]", name))
_FROM_US = re.compile(
    rf"\b(?:{_CLASSES})\b[\"'`]?:|\bMemoryAccessDenied\b|\bmemory tools belong to the supervisor\b"
)


def is_bookkeeping(text: str) -> bool:
    """Whether it is what graphs say of a handoff: "Transferring back to supervisor"."""
    return _BOOKKEEPING.fullmatch(text.strip()) is not None


def own_words(text: str) -> str:
    """An agent's text without the bookkeeping of handoffs and without our own errors and denials."""
    if "transferr" not in text.casefold() and not _FROM_US.search(text):
        return text
    return "\n".join(kept for line in text.splitlines() if (kept := _own_line(line)) is not None).strip()


def _own_line(line: str) -> str | None:
    if is_bookkeeping(line):
        return None
    if not _FROM_US.search(line):
        return line
    return " ".join(each for each in sentences(line) if not _FROM_US.search(each)) or None


# --- what others said ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """What others said: records, and their sentences as words, by the first of these.

    `frame` are the words that a note puts before a record.
    """

    records: tuple[Record, ...]
    sentences: Mapping[str, Sequence[_Words]]
    frame: frozenset[str]


def repeated_from_note(candidate: Candidate, note: Note) -> Record | None:
    """The record of a note that a candidate repeats; None when it says more."""
    records = [hit.record for hit in note.hits]
    return _repeated(candidate, _told(records, _preamble(note))) if records else None


def repeated_from_store(candidate: Candidate, said: Remembering, view: ReadStore) -> Record | None:
    """The record, or the message of this session, that a candidate repeats; None when it says more."""
    scope = said.scope
    known = [hit.record for hit in said.note.hits] if said.note else []
    if candidate.kind == "tool-effects":  # a file or a statement is known by its name alone
        subject, attribute = candidate.subject, candidate.attribute
        named = Filter(scope.user_id, tasks=scope.tasks, subject=subject, attribute=attribute)
        return _repeated(candidate, _told([*known, *view.list(named, limit=_ALIKE)]))
    about = terms(candidate.content)
    where = Filter(user_id=scope.user_id, tasks=scope.tasks)
    query = Query(candidate.content, where, about, now=view.now)
    known += [hit.record for hit in view.search(query, limit=_ALIKE)]
    if found := _repeated(candidate, _told(known)):
        return found
    if scope.session_id is None:
        return None
    session = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), session_id=scope.session_id)
    return _repeated(candidate, _told([*known, *view.list(session, limit=_LATELY_SAID)]))


def without_told_lines(candidate: Candidate, note: Note) -> Candidate:
    """The candidate without those lines in which its note is repeated, where there are others."""
    lines = candidate.content.splitlines()
    if len(lines) == 1 or not note.hits:
        return candidate
    told = _told([hit.record for hit in note.hits], _preamble(note))
    content = "\n".join(_own_lines(lines, told)).strip()
    if content == candidate.content or not _says_more(content, told):
        return candidate
    return replace(candidate, content=content, evidence=content)


def _own_lines(lines: Sequence[str], told: _Told) -> Iterator[str]:
    """The lines that repeat nothing. One that announces a list goes when the list is gone."""
    kept: list[str] = []
    for line in lines:
        if _repeats(line, told):
            while kept and (not kept[-1].strip() or _announces(kept[-1])):
                kept.pop()
        else:
            kept.append(line)
    yield from kept


def _repeated(candidate: Candidate, told: _Told) -> Record | None:
    """The record that stands most for what a candidate repeats."""
    if candidate.kind == "tool-effects":
        about = (candidate.subject, candidate.attribute)
        same = (record for record in told.records if (record.subject, record.attribute) == about)
        return next((record for record in same if tells(record.content, candidate.content)), None)
    if not told.records or _says_more(candidate.content, told):
        return None
    said = _words(candidate.content)
    overlaps = [(len(set(said) & set(_words(record.content))), record) for record in told.records]
    shared, record = max(overlaps, key=lambda pair: pair[0])
    return record if shared else None


def _told(records: Iterable[Record], *texts: str) -> _Told:
    records = tuple(records)
    said: dict[str, list[_Words]] = {}
    for text in (*(record.content for record in records), *texts):
        for sentence in _sentences_of(text[:_MOST_READ]):
            said.setdefault(sentence[0], []).append(sentence)
    frame = {word for record in records for word in _framing(record)}
    return _Told(records, said, frozenset(frame))


def _preamble(note: Note) -> str:
    """What a note says before its first record, a clause a line: an agent may quote a part of it."""
    return _CLAUSE_END.sub("\n", note.text.partition("\n- [")[0])


def _framing(record: Record) -> Iterator[str]:
    source = record.source
    yield time.strftime("%Y-%m-%d", time.gmtime(max(record.updated_at, 0.0)))
    yield from _words(f"{record.kind} {source.agent_id or ''} {source.speaker or ''} {source.source_class}")


def _says_more(text: str, told: _Told) -> bool:
    return any(_adds(sentence, told) for sentence in _split(text))


def _repeats(text: str, told: _Told) -> bool:
    """Whether it says something, and nothing but what was told."""
    said = _split(text)
    return any(_covered(_words(each), told) for each in said) and not any(_adds(each, told) for each in said)


def _adds(sentence: str, told: _Told) -> bool:
    """Whether it states something that was not told. A question states nothing, nor does a heading."""
    if sentence.endswith(("?", "？")) or _announces(sentence):
        return False
    said = _words(sentence)
    covered = _covered(said, told)
    runs = groupby(enumerate(said), lambda place: place[0] in covered)
    left = ([word for _, word in run] for is_told, run in runs if not is_told)
    return not all(_leads_in(run, told.frame) for run in left)


def _covered(said: _Words, told: _Told) -> set[int]:
    """The places of the words that belong to a whole sentence of others."""
    places: set[int] = set()
    for start, first in enumerate(said):
        for sentence in told.sentences.get(first, ()):
            if said[start : start + len(sentence)] == sentence:
                places.update(range(start, start + len(sentence)))
    return places


# --- words -------------------------------------------------------------------------------------------------

_LEADS_IN = _LEXICON.words("leads")
_LEADS_IN_ZH = _LEXICON.pattern("leads_in_zh")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")
_BEFORE = ",;:、。\"'`“”‘’([{【《*|•·"  # what stands before a number may be its sign or its point
_AFTER = ".,;:!?、。\"'`“”‘’()[]{}【】《》*|•·"
_MARKER = re.compile(r"^[ \t>]*(?:(?:[-*+•·–—>]|#{1,6}|\d{1,3}[.)、]|[(（]\d{1,3}[)）])[ \t]+)", re.MULTILINE)
_TAG = re.compile(r"</?memory\b[^>\n]*>")
_CLAUSE_END = re.compile(r"[:：;；()（）]")
_SPACED_SIGN = re.compile(r"(?<=\d)\s+(?=[%‰€$])")
_HAS_MEANING = re.compile(r"[^\W_]|[%‰€$£¥+<>=≤≥≠]")


@lru_cache(maxsize=2_048)
def _sentences_of(text: str) -> frozenset[_Words]:
    """The sentences of a text as words, questions left out: a question tells nothing."""
    told = (each for each in _split(text) if not each.endswith(("?", "？")))
    return frozenset(words for each in told if (words := _words(each)))


def _split(text: str) -> Sequence[str]:
    plain = _MARKER.sub("", _TAG.sub(" ", text))
    return list(sentences(plain))


def _words(text: str) -> _Words:
    """The words as they are compared: case, emphasis, brackets and list marks do not count; signs do."""
    plain = _SPACED_SIGN.sub("", unicodedata.normalize("NFKC", _TAG.sub(" ", text)).casefold())
    found = (match[0].lstrip(_BEFORE).rstrip(_AFTER) for match in _WORD.finditer(plain))
    return tuple(word for word in found if _HAS_MEANING.search(word))


def _announces(text: str) -> bool:
    return text.rstrip("* \t").endswith((":", "："))


def _leads_in(words: Sequence[str], frame: frozenset[str]) -> bool:
    """Whether words around a repeated sentence only lead to it."""
    others = [word for word in words if word not in _LEADS_IN and word not in frame]
    return not others or _LEADS_IN_ZH.fullmatch("".join(others)) is not None
