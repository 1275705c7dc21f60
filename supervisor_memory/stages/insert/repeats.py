"""Find candidates, and lines of them, that repeat a note, a known record or a message of the session."""

import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

from supervisor_memory.flow import Remembering
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.language.wording import tells
from supervisor_memory.model.records import SESSION_FAMILY, Candidate, Filter, Note, Query, Record
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY
from supervisor_memory.understand.statements import sentences

_Words: TypeAlias = tuple[str, ...]

_ALIKE = 10  # records
_LATELY_SAID = 10  # messages
_MOST_READ = 8_000  # characters of one known text

_LEXICON = lexicon("answers")
_LEADS_IN = _LEXICON.words("leads")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+")
_BEFORE = ",;:、。\"'`“”‘’([{【《*|•·"  # what stands before a number may be its sign or its point
_AFTER = ".,;:!?、。\"'`“”‘’()[]{}【】《》*|•·"
_MARKER = re.compile(r"^[ \t>]*(?:(?:[-*+•·–—>]|#{1,6}|\d{1,3}[.)、]|[(（]\d{1,3}[)）])[ \t]+)", re.MULTILINE)
_TAG = re.compile(r"</?memory\b[^>\n]*>")
_CLAUSE_END = re.compile(r"[:：;；()（）]")
_SPACED_SIGN = re.compile(r"(?<=\d)\s+(?=[%‰€$])")
_HAS_MEANING = re.compile(r"[^\W_]|[%‰€$£¥+<>=≤≥≠]")


@dataclass(frozen=True, slots=True)
class _Known:
    """Known records, and their sentences as words, by the first word.

    `frame` holds the words that a note puts before a record.
    """

    records: tuple[Record, ...]
    sentences: Mapping[str, Sequence[_Words]]
    frame: frozenset[str]


def repeated_from_note(candidate: Candidate, note: Note) -> Record | None:
    """The record of a note that a candidate repeats; None when it says more."""
    records = [hit.record for hit in note.hits]
    return _repeated(candidate, _read_known(records, _preamble(note))) if records else None


def repeated_from_store(candidate: Candidate, said: Remembering, view: ReadStore) -> Record | None:
    """The record, or the message of this session, that a candidate repeats; None when it says more."""
    scope = said.scope
    known = [hit.record for hit in said.note.hits] if said.note else []
    if candidate.kind == "tool-effects":  # a file or a statement is known by its name alone
        subject, attribute = candidate.subject, candidate.attribute
        named = Filter(scope.user_id, tasks=scope.tasks, subject=subject, attribute=attribute)
        return _repeated(candidate, _read_known([*known, *view.list(named, limit=_ALIKE)]))
    about = terms(candidate.content)
    where = Filter(user_id=scope.user_id, tasks=scope.tasks)
    query = Query(candidate.content, where, about, now=view.now)
    known += [hit.record for hit in view.search(query, limit=_ALIKE)]
    if found := _repeated(candidate, _read_known(known)):
        return found
    if scope.session_id is None:
        return None
    session = Filter(user_id=scope.user_id, families=(SESSION_FAMILY,), session_id=scope.session_id)
    return _repeated(candidate, _read_known([*known, *view.list(session, limit=_LATELY_SAID)]))


def without_repeated_lines(candidate: Candidate, note: Note) -> Candidate:
    """The candidate without the lines that repeat its note, where other lines say more."""
    lines = candidate.content.splitlines()
    if len(lines) == 1 or not note.hits:
        return candidate
    known = _read_known([hit.record for hit in note.hits], _preamble(note))
    content = "\n".join(_new_lines(lines, known)).strip()
    if content == candidate.content or not _says_more(content, known):
        return candidate
    return replace(candidate, content=content, evidence=content)


def _new_lines(lines: Sequence[str], known: _Known) -> Iterator[str]:
    """The lines that repeat nothing. The announcement of a list goes with its list."""
    kept: list[str] = []
    for line in lines:
        if _repeats(line, known):
            while kept and (not kept[-1].strip() or _announces(kept[-1])):
                kept.pop()
        else:
            kept.append(line)
    yield from kept


def _repeated(candidate: Candidate, known: _Known) -> Record | None:
    """The record with most of a candidate's words; None when the candidate says more than the known texts."""
    if candidate.kind == "tool-effects":
        about = (candidate.subject, candidate.attribute)
        same = (record for record in known.records if (record.subject, record.attribute) == about)
        return next((record for record in same if tells(record.content, candidate.content)), None)
    if not known.records or _says_more(candidate.content, known):
        return None
    said = set(_words(candidate.content))
    covered = any(_covered(_words(sentence), known) for sentence in _split(candidate.content))
    return max(known.records, key=lambda r: len(said & set(_words(r.content)))) if covered else None


def _read_known(records: Iterable[Record], *texts: str) -> _Known:
    records = tuple(records)
    said: dict[str, list[_Words]] = {}
    for text in (*(record.content for record in records), *texts):
        for sentence in _sentences_of(text[:_MOST_READ]):
            said.setdefault(sentence[0], []).append(sentence)
    frame_keys = {_frame_key(record) for record in records}
    return _Known(records, said, frozenset[str]().union(*map(_frame_words, frame_keys)))


def _preamble(note: Note) -> str:
    """A note's text before its first record, one clause per line: an agent may quote a part."""
    return _CLAUSE_END.sub("\n", note.text.partition("\n- [")[0])


def _frame_key(record: Record) -> tuple[float, str]:
    """The day and the words that a note puts before a record; few records of a note differ in these."""
    source, day = record.source, max(record.updated_at, 0.0) // SECONDS_A_DAY
    return day, f"{record.kind} {source.agent_id or ''} {source.speaker or ''} {source.source_class}"


def _frame_words(key: tuple[float, str]) -> Iterator[str]:
    day, words = key
    yield time.strftime("%Y-%m-%d", time.gmtime(day * SECONDS_A_DAY))
    yield from _words(words)


def _says_more(text: str, known: _Known) -> bool:
    return any(_is_new(sentence, known) for sentence in _split(text))


def _repeats(text: str, known: _Known) -> bool:
    """Whether a text repeats known sentences and adds nothing."""
    said = _split(text)
    return any(_covered(_words(each), known) for each in said) and not any(
        _is_new(each, known) for each in said
    )


def _is_new(sentence: str, known: _Known) -> bool:
    """Whether a sentence states something new. Questions and headings state nothing."""
    if sentence.endswith(("?", "？")) or _announces(sentence):
        return False
    said = _words(sentence)
    covered = _covered(said, known)
    runs = groupby(enumerate(said), lambda place: place[0] in covered)
    left = ([word for _, word in run] for is_repeated, run in runs if not is_repeated)
    return not all(_leads_in(run, known.frame) for run in left)


def _covered(said: _Words, known: _Known) -> set[int]:
    """The places of the words in which a whole known sentence is repeated."""
    places: set[int] = set()
    for start, first in enumerate(said):
        for sentence in known.sentences.get(first, ()):
            if said[start : start + len(sentence)] == sentence:
                places.update(range(start, start + len(sentence)))
    return places


@lru_cache(maxsize=2_048)
def _sentences_of(text: str) -> frozenset[_Words]:
    """The sentences of a text as words, without questions: a question states nothing."""
    stated = (each for each in _split(text) if not each.endswith(("?", "？")))
    return frozenset(words for each in stated if (words := _words(each)))


def _split(text: str) -> Sequence[str]:
    return list(sentences(_MARKER.sub("", _TAG.sub(" ", text))))


def _words(text: str) -> _Words:
    """The words as they are compared: case, emphasis, brackets and list marks do not count; signs do."""
    return _cached_words(text) if len(text) <= _LONGEST_CACHED else _read_words(text)


def _read_words(text: str) -> _Words:
    plain = _SPACED_SIGN.sub("", unicodedata.normalize("NFKC", _TAG.sub(" ", text)).casefold())
    found = (match[0].lstrip(_BEFORE).rstrip(_AFTER) for match in _WORD.finditer(plain))
    return tuple(word for word in found if _HAS_MEANING.search(word))


_LONGEST_CACHED = 2_000
_cached_words = lru_cache(maxsize=1_024)(_read_words)  # the records of a note are compared with each answer


def _announces(text: str) -> bool:
    return text.rstrip("* \t").endswith((":", "："))


def _leads_in(words: Sequence[str], frame: frozenset[str]) -> bool:
    """Whether words around a repeated sentence only lead to it."""
    others = [word for word in words if word not in _LEADS_IN and word not in frame]
    return not others or _LEXICON["leads_in_zh"].fullmatch("".join(others)) is not None
