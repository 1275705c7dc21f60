"""Gather what a turn offers to remember: the user's statements, an agent's results, the words themselves."""

import json
import re
import time
import unicodedata
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from supervisor_memory import errors
from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.flow import Remembering
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.language.wording import tells
from supervisor_memory.model.arguments import LONGEST_READ, as_tags
from supervisor_memory.model.records import (
    FAMILIES,
    MAX_MESSAGE_BYTES,
    SESSION_FAMILY,
    Candidate,
    Filter,
    Message,
    Note,
    Query,
    Record,
    Source,
    check_content,
    content_hash,
    parts_of_message,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.stages.insert.merge import strategy_for
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY
from supervisor_memory.stages.post_retrieval.unsaid import UNSURE
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.specialists import functions_of
from supervisor_memory.understand.rejection import tally
from supervisor_memory.understand.sense import ASKED_FROM, sense_of
from supervisor_memory.understand.statements import Statement, decided, normal, sentences

if TYPE_CHECKING:
    from supervisor_memory.stages.pre_insert.operations import Answered, Heard

_Words: TypeAlias = tuple[str, ...]

_ALIKE = 10
_LATELY_SAID = 10
_DEFINITIONS = 500
_RESULTS = ("task-traces", "tool-effects")
_MOST_READ = 8_000
"""Characters of one text of others."""


# --- our own messages, and those of handoffs -------------------------------------------------------------

_LEXICON = lexicon("answers")
_CLASSES = "|".join(name for name in errors.__all__ if re.search(r"[a-z][A-Z]", name))
_FROM_US = re.compile(
    rf"(?=[A-Zm])\b(?:(?:{_CLASSES})\b[\"'`]?:|MemoryAccessDenied\b|memory tools belong to the supervisor\b)"
)


def is_bookkeeping(text: str) -> bool:
    """Whether a text is a graph's remark on a handoff, like "Transferring back to supervisor"."""
    return _LEXICON["bookkeeping"].fullmatch(text.strip()) is not None


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
class _ToldText:
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


def _own_lines(lines: Sequence[str], told: _ToldText) -> Iterator[str]:
    """The lines that repeat nothing. The announcement of a list goes with its list."""
    kept: list[str] = []
    for line in lines:
        if _repeats(line, told):
            while kept and (not kept[-1].strip() or _announces(kept[-1])):
                kept.pop()
        else:
            kept.append(line)
    yield from kept


def _repeated(candidate: Candidate, told: _ToldText) -> Record | None:
    """The record that stands most for what a candidate repeats."""
    if candidate.kind == "tool-effects":
        about = (candidate.subject, candidate.attribute)
        same = (record for record in told.records if (record.subject, record.attribute) == about)
        return next((record for record in same if tells(record.content, candidate.content)), None)
    if not told.records or _says_more(candidate.content, told):
        return None
    said = set(_words(candidate.content))
    covered = any(_covered(_words(sentence), told) for sentence in _split(candidate.content))
    return max(told.records, key=lambda r: len(said & set(_words(r.content)))) if covered else None


def _told(records: Iterable[Record], *texts: str) -> _ToldText:
    records = tuple(records)
    said: dict[str, list[_Words]] = {}
    for text in (*(record.content for record in records), *texts):
        for sentence in _sentences_of(text[:_MOST_READ]):
            said.setdefault(sentence[0], []).append(sentence)
    frames = {_framing_of(record) for record in records}
    return _ToldText(records, said, frozenset[str]().union(*map(_framing, frames)))


def _preamble(note: Note) -> str:
    """A note's text before its first record, one clause per line: an agent may quote a part."""
    return _CLAUSE_END.sub("\n", note.text.partition("\n- [")[0])


def _framing_of(record: Record) -> tuple[float, str]:
    """The day and the words that a note puts before a record; few records of a note differ in these."""
    source, day = record.source, max(record.updated_at, 0.0) // SECONDS_A_DAY
    return day, f"{record.kind} {source.agent_id or ''} {source.speaker or ''} {source.source_class}"


def _framing(frame: tuple[float, str]) -> Iterator[str]:
    day, words = frame
    yield time.strftime("%Y-%m-%d", time.gmtime(day * SECONDS_A_DAY))
    yield from _words(words)


def _says_more(text: str, told: _ToldText) -> bool:
    return any(_adds(sentence, told) for sentence in _split(text))


def _repeats(text: str, told: _ToldText) -> bool:
    """Whether a text repeats known sentences and adds nothing."""
    said = _split(text)
    return any(_covered(_words(each), told) for each in said) and not any(_adds(each, told) for each in said)


def _adds(sentence: str, told: _ToldText) -> bool:
    """Whether a sentence states something new. Questions and headings state nothing."""
    if sentence.endswith(("?", "？")) or _announces(sentence):
        return False
    said = _words(sentence)
    covered = _covered(said, told)
    runs = groupby(enumerate(said), lambda place: place[0] in covered)
    left = ([word for _, word in run] for is_told, run in runs if not is_told)
    return not all(_leads_in(run, told.frame) for run in left)


def _covered(said: _Words, told: _ToldText) -> set[int]:
    """The places of the words that belong to a whole sentence of others."""
    places: set[int] = set()
    for start, first in enumerate(said):
        for sentence in told.sentences.get(first, ()):
            if said[start : start + len(sentence)] == sentence:
                places.update(range(start, start + len(sentence)))
    return places


# --- words -------------------------------------------------------------------------------------------------

_LEADS_IN = _LEXICON.words("leads")
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
    return list(sentences(_MARKER.sub("", _TAG.sub(" ", text))))


def _words(text: str) -> _Words:
    """The words as they are compared: case, emphasis, brackets and list marks do not count; signs do."""
    return _known(text) if len(text) <= _LONGEST_KNOWN else _read_words(text)


def _read_words(text: str) -> _Words:
    plain = _SPACED_SIGN.sub("", unicodedata.normalize("NFKC", _TAG.sub(" ", text)).casefold())
    found = (match[0].lstrip(_BEFORE).rstrip(_AFTER) for match in _WORD.finditer(plain))
    return tuple(word for word in found if _HAS_MEANING.search(word))


_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=1_024)(_read_words)  # the records of a note are compared with each answer


def _announces(text: str) -> bool:
    return text.rstrip("* \t").endswith((":", "："))


def _leads_in(words: Sequence[str], frame: frozenset[str]) -> bool:
    """Whether words around a repeated sentence only lead to it."""
    others = [word for word in words if word not in _LEADS_IN and word not in frame]
    return not others or _LEXICON["leads_in_zh"].fullmatch("".join(others)) is not None


_EVENTS = uuid.UUID("0b6e4c1e-5c39-5a57-8d1a-6f0c5b1f9d42")
_RECORDS = uuid.UUID("6f1d5a52-6d0e-5d43-9a34-0f2b1c1f7a10")
_Told: TypeAlias = tuple[str, str | None, str]
"""(speaker, id of the message if it has one, text)."""


def event_ids(said: Remembering) -> list[str | None]:
    """The ids of the events for each candidate, for each skipped thing, and for what was left out, if any.

    None: any, it is no turn's.
    """
    told = [*map(_of_candidate, said.candidates), *(("skipped", None, code) for code in said.skipped)]
    told += [("left-out", None, tally(said.unkept))] if said.unkept else []
    if said.turn_id is None:
        return [None] * len(told)
    return [str(uuid.uuid5(_EVENTS, key)) for key in _numbered(_key(said, *what) for what in told)]


def session_message_id(said: Remembering, message: Message, text: str, nth: int) -> str:
    """The id of what was said, as a record: the same whenever it is said again in the same place.

    Args:
        nth: How often these words were said in this call so far, this time included.
    """
    scope = said.scope
    words = f"{message.role}|{message.name}|{text}|{nth}"
    if said.turn_id is None:
        place = message.id or words
    else:  # a model that is asked again gives its answer another id
        place = f"{(message.role == 'user' and message.id) or said.turn_id}|{words}"
    key = f"{scope.user_id}\0{scope.session_id}\0{place}".encode(errors="backslashreplace")
    return str(uuid.uuid5(_RECORDS, key.decode()))


def _key(said: Remembering, who: str, place: str | None, what: str) -> str:
    """What the user says is the same whoever hears it; what others bring is theirs."""
    scope = said.scope
    agent = None if who == "user" else scope.agent_id
    where = (scope.user_id, scope.task, scope.session_id, agent, place or said.turn_id)
    return json.dumps([*where, who, what])


def _of_candidate(candidate: Candidate) -> _Told:
    source = candidate.source
    place = source.message_id if source.source_class == "user" else None
    target = f" {candidate.target}" if candidate.target else ""
    return source.source_class, place, f"{candidate.kind} {content_hash(candidate.content)}{target}"


def _numbered(keys: Iterable[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for key in keys:
        seen[key] += 1
        yield f"{key}{seen[key]}"


_MOST_BY_SENSE = 20
"""Sentences of a message whose sense is asked for, in one call: more would use up the turn's time."""
_APART = 1e-6  # seconds between two messages of one turn; times since 1970 have no finer place


def _by_sense(read: Sequence[Statement], *, view: NoStore) -> Sequence[Statement]:
    """Sentences as the second reader judges them by their sense, too, where an embedder answers."""
    asked = [
        each
        for each in read
        if each.learned is not None and (each.kind is not None or each.learned.chance >= ASKED_FROM)
    ]
    asked = asked[:_MOST_BY_SENSE]
    embedder = view.embedder if asked else None
    sense = sense_of(embedder.fingerprint) if embedder is not None else None
    if sense is None:
        return read
    vectors = view.embed([extract.content_of(each) for each in asked])
    again = {
        each: decided(each, sense.again(each.learned, vector))
        for each, vector in zip(asked, vectors, strict=True)
        if each.learned is not None and vector is not None
    }
    return [again.get(each, each) for each in read]


def _is_talk_of_people(said: Remembering, kept: Iterable[Sequence[Record]], view: ReadStore) -> bool:
    """Whether people with names talk with each other: several, and nobody else, in this session.

    A turn of a graph is said to an assistant, whether or not it has spoken. Where only one person has spoken
    in the session, the user's last messages tell.
    """
    if said.turn_id is not None or any(message.role in ("assistant", "tool") for message in said.messages):
        return False
    heard = [records[0] for records in kept if records]
    users = Filter(said.scope.user_id, families=(SESSION_FAMILY,))
    places = (replace(users, session_id=said.scope.session_id), users)
    for where in places if heard and all(map(_is_of_a_person, heard)) else ():
        before = view.list(where, limit=_LATELY_SAID)
        if not all(map(_is_of_a_person, before)):
            return False
        if len({normal(message.spoken_by or "").casefold() for message in (*heard, *before)}) > 1:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _TalkOfPeople:
    """The fact that an exchange is people's among themselves."""


def _is_of_a_person(message: Record) -> bool:
    return message.source.source_class == "user" and message.spoken_by is not None


def _of_people(read: Sequence[Statement]) -> Sequence[Statement]:
    """What people tell each other states nothing of the user, and nothing that only the second reader hears.

    It may still take something back. Their words are kept as messages, and told as such, with who said them.
    """
    return list(map(_among_people, read))


def _among_people(found: Statement) -> Statement:
    if found.kind is None:
        return replace(found, learned=None)
    if found.retracts is None and (found.kind == "user-profile" or found.is_learned):
        return Statement(found.text, "nothing", "among-people", start=found.start)
    return found


def gather(said: Remembering, view: ReadStore) -> Remembering:
    """Candidates by rules: what the user stated, what an agent brought. Each points to its message."""
    if said.is_given:
        return said
    scope = said.scope
    source = Source("user", None, scope.session_id, scope.run_id)
    kept = _session_messages(said, view)
    said = said.with_fact(_Kept(_what_is_kept(said), kept))
    found: list[Candidate] = []
    perhaps: list[Candidate] = []
    unkept: list[str] = []
    again: Callable[[Sequence[Statement]], Sequence[Statement]] = partial(_by_sense, view=view)
    if _is_talk_of_people(said, kept, view):
        said, again = said.with_fact(_TalkOfPeople()), _of_people
    for message, records in zip(said.messages, kept, strict=True):
        own = replace(message, content=_read(message.content))
        read = extract.read_user(own, source=source, again=again)
        found += [replace(each, ref_id=_part_with(each, records)) for each in read.candidates]
        perhaps += [replace(each, ref_id=_part_with(each, records)) for each in read.perhaps]
        unkept += read.unkept
    if scope.agent_id is not None:
        answer, conclusion = said.outcome.final_answer, said.outcome.conclusion
        if said.outcome.error is not None:
            answer = conclusion = None
        brought = extract.read_agent(
            agent_id=scope.agent_id,
            final_answer=_own(answer) if isinstance(answer, str) else None,
            conclusion=_own(conclusion) if isinstance(conclusion, str) else conclusion,
            side_effects=said.outcome.side_effects,
            source=replace(source, source_class="agent", agent_id=scope.agent_id, message_id=said.turn_id),
        )
        answers = (some for some in reversed(kept) if some and some[0].source.source_class == "agent")
        spoken = next(answers, ())
        found += [replace(each, ref_id=_part_with(each, spoken)) for each in brought.candidates]
        unkept += brought.unkept
    return replace(
        said,
        candidates=(*said.candidates, *storable(found)),
        perhaps=(*said.perhaps, *storable(perhaps)),
        unkept=(*said.unkept, *unkept),
    )


def _part_with(candidate: Candidate, parts: Sequence[Record]) -> str | None:
    """The id of the message part with a candidate's words, else the first part's; None without parts."""
    with_words = (part.id for part in parts if candidate.evidence in part.content)
    return next(with_words, parts[0].id if parts else None)


def with_metadata(candidate: Candidate, metadata: Mapping[str, Any]) -> Candidate:
    """The candidate with a caller's metadata, of which `strategy` and `tags` have a meaning.

    Raises:
        InvalidContent: there is no strategy of that name.
    """
    strategy = metadata.get("strategy")
    if strategy is not None:
        strategy, _ = strategy_for(candidate.kind, strategy)
    return replace(
        candidate,
        metadata={**candidate.metadata, **metadata},
        tags=tuple(dict.fromkeys((*candidate.tags, *as_tags(metadata)))),
        strategy=strategy or candidate.strategy,
    )


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """The fact that a model has read the exchange; no merge of what it said asks again."""


def sharpen(said: Remembering, view: ReadStore) -> Remembering:
    """What functions among the specialists find in an exchange, and then what the model makes of it, in one
    call. Nonsense of either is dropped, never an error."""
    if said.is_given:
        return said
    if functions_of(view.settings.specialists):
        from supervisor_memory.stages.pre_insert.operations import by_functions

        found, _ = by_functions(heard_of(said, view), said.scope, view)
        said = with_answer(said, found, by="function")
    if not view.has_model:
        return said
    from supervisor_memory.stages.pre_insert.operations import answered, asking
    from supervisor_memory.stages.pre_insert.reply import NO_LIST, listed

    scope = said.scope
    asked = asking(heard_of(said, view), scope, view)
    reply = None if asked is None else view.complete(asked.prompt, shape=asked.shape)
    if asked is None or reply is None:
        return said
    if (data := listed(reply)) is None:
        return replace(said, skipped=(*said.skipped, NO_LIST))
    return with_answer(said, answered(data, asked, scope, view))


def heard_of(
    said: Remembering, view: NoStore, *, roles: Collection[str] = ("user", "assistant")
) -> "list[Heard]":
    """The messages of an exchange as a model is shown them, of these roles."""
    from supervisor_memory.stages.pre_insert.operations import Heard

    scope, when = said.scope, view.now if said.created_at is None else said.created_at
    heard: list[Heard] = []
    left = LONGEST_READ
    for message, kept in zip(said.messages, _session_messages(said, view), strict=True):
        text = _read(message.content)[:left]
        if message.role not in roles or not text:
            continue
        left -= len(text)
        source = Source("user", None, scope.session_id, scope.run_id, message.id, message.name)
        if message.role == "assistant":
            source = replace(source, source_class="agent", agent_id=scope.agent_id, message_id=said.turn_id)
        who: str = message.role
        if message.role == "tool":
            source = replace(source, source_class="tool", agent_id=scope.agent_id, speaker=None)
            who = f"tool {message.name}" if message.name else "tool"
        ref_id = kept[0].id if kept else None
        heard.append(Heard(text, source, who, when, ref_id))
    return heard


def with_answer(said: Remembering, told: "Answered", *, by: str = "model") -> Remembering:
    """The exchange with what a model made of it, in the place of the rules' candidates that it words anew.

    Args:
        by: "model", or "function": then a model is still asked.
    """
    if by == "model":
        said = said.with_fact(ModelAsked())
    ruled = (
        each for each in said.candidates if (each.event, content_hash(each.content)) not in told.given_way
    )
    found = [candidate for _, candidate in told.candidates]
    refused = [*told.refused]
    if said.fact(_TalkOfPeople):
        proposed = len(found)
        found = [each for each in found if each.kind != "user-profile" or each.event == "DELETE"]
        refused += ["among-people"] * (proposed - len(found))
    return replace(
        said,
        candidates=(*ruled, *storable(found)),
        unkept=(*said.unkept, *(f"{by}:{code}" for code in refused)),
    )


def keep_messages(said: Remembering, view: ReadStore) -> Remembering:
    """What was said, word for word, as session messages. What cannot be kept is reported as skipped."""
    if said.is_given:
        return said
    spoken = [m for m in said.messages if m.role in ("user", "assistant")]
    skipped = tuple(code for message in spoken if (code := _obstacle(message)))
    known = said.fact(_Kept)
    kept = known.records if known and known.of == _what_is_kept(said) else _session_messages(said, view)
    return replace(
        said,
        skipped=(*said.skipped, *skipped),
        verbatim=(*said.verbatim, *chain.from_iterable(kept)),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """The fact of the session messages that an exchange becomes, and what they were made of."""

    of: tuple[object, ...]
    records: Sequence[Sequence[Record]]


_what_is_kept = attrgetter("messages", "scope", "turn_id", "created_at", "keeps_messages", "is_unsure")


def _session_messages(said: Remembering, view: NoStore) -> Sequence[Sequence[Record]]:
    """The session messages that each message becomes: several for a long message, none for an unkept one.

    Their ids come from what was said where, so that a turn that runs again adds nothing. Their times are
    a microsecond apart, so that what was said at once stays in order.
    """
    keeps = view.settings.keep_messages if said.keeps_messages is None else said.keeps_messages
    if not keeps or said.scope.session_id is None:
        return [()] * len(said.messages)
    when = view.now if said.created_at is None else said.created_at
    seen: Counter[tuple[str, str]] = Counter()
    kept: list[Sequence[Record]] = []
    place = 0
    for message in said.messages:
        is_kept = message.role in ("user", "assistant") and _obstacle(message) is None
        parts = parts_of_message(strip_notes(message.content)) if is_kept else ()
        records = []
        for nth, text in enumerate(parts):
            seen[message.role, text] += 1
            of_part = replace(message, id=f"{message.id}|{nth}") if nth and message.id else message
            id_ = session_message_id(said, of_part, text, seen[message.role, text])
            records.append(_session_message(said, message, text, id_, when + (place + nth) * _APART))
        kept.append(records)
        place += max(1, len(parts))
    return kept


def _session_message(said: Remembering, message: Message, text: str, id_: str, when: float) -> Record:
    scope = said.scope
    where = (scope.session_id, scope.run_id, message.id, message.name)
    is_user = message.role == "user"
    return Record(
        id=id_,
        namespace=scope.namespace(SESSION_FAMILY),
        content=text,
        kind="task-traces",
        layer="history",
        metadata={UNSURE: True} if said.is_unsure else {},
        created_at=when,
        updated_at=when,
        source=Source("user", None, *where) if is_user else Source("agent", message.name, *where),
    )


def _obstacle(message: Message) -> str | None:
    """Why a message cannot be kept, as a code; "" when there is nothing in it, None when it can."""
    text = strip_notes(message.content)
    if message.role == "assistant" and not _own(text):
        return ""
    try:
        check_content(text, most=MAX_MESSAGE_BYTES)
    except ContentTooLarge:
        return "content-too-large"
    except InvalidContent:
        return "content-unreadable" if text.strip() else ""
    return None


def _read(text: str) -> str:
    return strip_notes(text[:LONGEST_READ])


def _own(text: str) -> str:
    """An agent's own words: without our notes, our messages and the bookkeeping of handoffs."""
    return own_words(strip_notes(text))


def storable(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The storable candidates, each text once; the user's texts once for each message with them."""
    seen: set[tuple[str, str, str | None]] = set()
    for candidate in found:
        try:
            is_users = candidate.source.source_class == "user"
            content = check_content((strip_notes if is_users else _own)(candidate.content))
        except InvalidContent:
            continue
        said = (candidate.kind, content, candidate.ref_id if is_users else None)
        if said not in seen:
            seen |= {said, (candidate.kind, content, None)}
            yield replace(candidate, content=content)


# --- the task that a conclusion is a step of: the host names it, or the user by an issue key. What an agent
# writes names none: "Summary:" and "UTF-8" stand in any answer.

_LONGEST_WORDS = 2_000
_LATEST = 20  # messages of a session, among which is the one that is answered
_TASKS = lexicon("tasks")


def of_their_tasks(said: Remembering, view: ReadStore) -> Remembering:
    """The same with each conclusion as a step of its task, where somebody has named one."""
    if not any(candidate.kind == "task-traces" for candidate in said.candidates):
        return said
    task = said.scope.task or issue_key(_users_words(said, view))
    return replace(said, candidates=tuple(_of_its_task(each, task) for each in said.candidates))


def on_their_metrics(said: Remembering, view: ReadStore) -> Remembering:
    """The same with each result of an agent resting on the metrics of the user that it is told of."""
    if not any(each.kind in _RESULTS and each.source.source_class != "user" for each in said.candidates):
        return said
    of_user = Filter(said.scope.user_id, families=(FAMILIES["domain-facts"],), attribute="definition")
    known = view.list(of_user, limit=_DEFINITIONS)
    if not known:
        return said
    resting = extract.resting_on_metrics(said.candidates, said.outcome.asked, known)
    return replace(said, candidates=tuple(resting))


def _of_its_task(candidate: Candidate, task: str | None) -> Candidate:
    if candidate.kind != "task-traces":
        return candidate
    if task is None and candidate.source.source_class == "user":
        task = issue_key([candidate.content])
    if task is None:
        return candidate
    return replace(candidate, subject=task, attribute=extract.STEPS, value=None)


def issue_key(words: Iterable[str]) -> str | None:
    """The issue key (`AIR-12`, `#12`) that the user's words are about; None: there is none, or several."""
    texts = [unicodedata.normalize("NFKC", text[:_LONGEST_WORDS]) for text in words]
    named = (match for text in texts for match in _TASKS["named"].finditer(text))
    found = {key.casefold() for match in named for key in match.groups() if key is not None}
    if len(found) != 1 or any(map(_TASKS["several"].search, texts)):
        return None
    return found.pop()


def _users_words(said: Remembering, view: ReadStore) -> Iterator[str]:
    """The user's words of this turn: from the turn itself, or from the kept session."""
    yield from (message.content for message in said.messages if message.role == "user")
    if said.outcome.asked:
        yield said.outcome.asked
    elif said.turn_id is not None and said.scope.session_id is not None:
        of_session = Filter(said.scope.user_id, families=(SESSION_FAMILY,), session_id=said.scope.session_id)
        answered = (
            record.content
            for record in view.list(of_session, limit=_LATEST)
            if record.source.source_class == "user" and record.source.message_id == said.turn_id
        )
        yield from islice(answered, 1)
