"""What was said: excerpts of earlier conversations, beside the records of a note."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, TypeAlias

from supervisor_memory.compare.verdict import Compared, verdicts
from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Hit, Query, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.post_retrieval.rank import (
    ANSWERS,
    answers,
    drop_already_said,
    evidence,
    rank,
)
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.understand.names import named_people, without_people
from supervisor_memory.understand.questions import asks_for_a_reply
from supervisor_memory.understand.rejection import gives_orders, is_echo
from supervisor_memory.understand.statements import asks_once, read_statements, sentences, without_pasted

_CANDIDATES = 60  # more than a note of usual size holds
_ASKED_AGAIN = 20
_ANY = 1e-9
_OF_THE_THRESHOLD = 0.5  # for what stands between others that are shown as well
_TIMES_THE_NOTE = 2  # as many tokens of excerpts, of which those of most worth are told
_WHOLE = 150
"""Tokens up to which a message is quoted whole."""
_EXCERPT, _SENTENCES = 90, 12
"""Tokens of the sentences of a longer message, and how many of them are looked at, best first."""
_LEAST_SHARED = 2
_MISSING = 0.2  # of the terms
_Told: TypeAlias = Sequence[frozenset[str]]
_COMPARED = 8
_SHORT = 300
_LETTERS_A_TOKEN = 8  # or fewer


def add_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Excerpts of what was said, best first, behind the records of a note; none where nothing answers.

    MEMORY_RECALL_SAID, or the turn, may ask for none. Where the second search fails, the records stay.
    """
    turn, query = plan.turn, plan.query
    if query is None or turn.purpose == "hits" or not turn.said or view.settings.recall_said == "never":
        return plan
    return view.attempt("excerpts", lambda: _with_said(plan, query, view)) or plan


def _with_said(plan: Recalling, asked: Query, view: ReadStore) -> Recalling:
    where = replace(asked.where, families=(SESSION_FAMILY,))
    query = replace(asked, where=where, parts=tuple(replace(part, where=where) for part in asked.parts))
    said = rank(replace(plan, query=query, hits=found_by(query, limit=_CANDIDATES, view=view)), view)
    heard = (hit for hit in said.hits if _is_heard(hit.record, plan.turn.scope.agent_id))
    said = drop_already_said(said.keeping(heard, others="left-out"), view)
    least = view.settings.min_score * _OF_THE_THRESHOLD
    is_enough = answers(_without_speakers(said, view))
    passed = (hit for hit in said.hits if is_enough and _passes(hit, query.text, least))
    said = said.keeping(passed, others="below-threshold")
    messages = [hit.record for hit in said.hits]
    became = what_became(messages, view)
    said = said.keeping((hit for hit in said.hits if hit.record.id not in became.untold), others="untold")
    known = {hit.record.id: hit.record.content for hit in plan.hits}
    excerpts: dict[str, Hit] = {}
    left = most = _TIMES_THE_NOTE * view.settings.max_context_tokens
    own = [hit.record.content for hit in said.hits if _is_users(hit.record)]
    texts = [*known.values(), *([] if asks_for_a_reply(query.text) else own)]
    told = [words for text in texts for words in _told_in(text)] if len(own) < len(said.hits) else []
    for hit in said.hits:
        same = " ".join(known.get(id_, "") for id_ in became.read_as.get(hit.record.id, ()))
        others, spare = ((), 0) if _is_users(hit.record) else (told, most / _TIMES_THE_NOTE)
        text = _excerpt(hit.record, same, others, frozenset(query.terms), view) if left > spare else ""
        if text and may_be_told(hit.record, text):
            told += _told_in(text) if others is told else ()
            excerpts[hit.record.id] = Hit(hit.record, hit.score, hit.parts, hit.found, text)
            left -= view.count_tokens(text)
    said = said.keeping((hit for hit in said.hits if hit.record.id in excerpts), others="left-out")
    gone = _replaced(plan.hits.items, [*excerpts.values()], view.settings.duplicate_threshold)
    gone.update(_said_again([*excerpts.values()], [m for m in messages if m.id in became.untold], view))
    said = said.keeping((hit for hit in said.hits if hit.record.id not in gone), others="untold")
    items = (*plan.hits, *(hit for id_, hit in excerpts.items() if id_ not in gone))
    return replace(said, query=asked, hits=replace(plan.hits, items=items))


def _replaced(records: Sequence[Hit], excerpts: Sequence[Hit], least: float) -> set[str]:
    """The ids of excerpts whose statement the user plainly replaced by one that a record holds."""
    first = [hit for hit in excerpts[:_COMPARED] if _is_users(hit.record)]
    newer = [hit.record for hit in records[:_COMPARED] if hit.record.source.source_class == "user"]
    gone: set[str] = set()
    for new in newer:
        older = [old for old in first if _may_be_replaced(old, new)]
        known = [Compared.of(old.excerpt or "", new.content, None) for old in older]
        judged = zip(verdicts(new.content, known, None) if known else (), older, strict=True)
        gone |= {old.record.id for verdict, old in judged if verdict.about >= least and verdict.instead == 1}
    return gone


def _may_be_replaced(old: Hit, new: Record) -> bool:
    text, later = old.excerpt or "", new.content
    if old.record.created_at >= new.updated_at or max(len(text), len(later)) > _SHORT:
        return False
    return len(frozenset(terms(text)) & frozenset(terms(later))) >= _LEAST_SHARED


def _is_heard(message: Record, agent_id: str | None) -> bool:
    """Whether a reader may be told a message: an agent is told the user's words and its own."""
    is_theirs = agent_id in (None, message.source.speaker) or message.source.source_class == "user"
    return is_theirs and not message.metadata.get(UNSURE)


def _is_users(message: Record) -> bool:
    return message.source.source_class == "user" and not message.is_reply


def _passes(hit: Hit, question: str, least: float) -> bool:
    """Whether a message may be quoted. An assistant's answers by itself, unless its words are asked for.

    Where nothing was compared by meaning, a word in common is enough, in it or in what was said before.
    """
    is_enough = _is_users(hit.record) or evidence(hit) >= ANSWERS or asks_for_a_reply(question)
    by = ("relevance", least) if "sim" in hit.parts else ("context", _ANY)
    return is_enough and hit.parts.get(by[0], 0.0) >= by[1]


def _without_speakers(said: Recalling, view: ReadStore) -> tuple[Hit, ...]:
    """The hits of a question, found once more without the speakers that it names.

    A speaker's name is in the vector of each of their messages, so that any question about them resembles
    any message of theirs.
    """
    query = said.query
    speakers = frozenset(name for hit in said.hits if (name := hit.record.spoken_by))
    if query is None or query.vector is None or not speakers:
        return said.hits.items
    if not (named := named_people(query.text, speakers)):
        return said.hits.items
    vector = view.embed_query(without_people(query.text, named))
    alone = replace(query, vector=vector, parts=())
    return rank(replace(said, query=alone, hits=view.search(alone, limit=_ASKED_AGAIN)), view).hits.items


def _told_in(text: str) -> list[frozenset[str]]:
    """The terms of each sentence of a text. A question tells nothing."""
    every = sentences(text[: _WHOLE * _LETTERS_A_TOKEN])
    return [frozenset(terms(each)) for each in every if not each.endswith(("?", "？"))]


def _repeats(sentence: str, told: _Told) -> bool:
    """Whether nearly all terms of a sentence are together in what is told, its numbers among them."""
    words = frozenset(terms(sentence))
    missing = (words - each for each in told)
    return any(len(m) <= _MISSING * len(words) and not any(map(str.isdigit, m)) for m in missing)


def _excerpt(message: Record, known: str, told: _Told, asked: frozenset[str], view: ReadStore) -> str:
    """The sentences of a message that share most with a question, as they stand; "" where none is left.

    Args:
        known: The text of a record that was read from it and is told anyway.
        told: The terms of sentences that are told anyway, so that what repeats one is left out.
        asked: The terms of the question.
    """
    content = message.content
    is_short = len(content) <= _WHOLE * _LETTERS_A_TOKEN and view.count_tokens(content) <= _WHOLE
    if is_short and not known and not told:
        return content
    every = [s for s in dict.fromkeys(sentences(content)) if s not in known and not _repeats(s, told)]
    left = _WHOLE if is_short else _EXCERPT
    chosen: list[int] = []
    by_worth = sorted(range(len(every)), key=lambda place: -_shared(every[place], asked))
    for place in by_worth if is_short else by_worth[:_SENTENCES]:
        if (cost := view.count_tokens(every[place])) <= left:
            chosen.append(place)
            left -= cost
    return "".join(_joined(every, sorted(chosen)))


def _shared(sentence: str, asked: frozenset[str]) -> float:
    """How much a sentence has in common with a question for its length."""
    held = frozenset(terms(sentence))
    return len(held & asked) / math.sqrt(len(held) or 1)


def _joined(every: list[str], places: list[int]) -> Iterator[str]:
    """The sentences at some places, with an ellipsis where others lay between."""
    yield from (every[place] for place in places[:1])
    for before, place in pairwise(places):
        yield f"{' ' if place == before + 1 else ' … '}{every[place]}"


UNSURE: Final = "is_unsure"  # the metadata key of messages that may be another's words
SAID_KEPT: Final = "said_kept"
"""The metadata key for the version of a record that was set aside, while its messages may be told."""
_ALL: Final = 100_000
_SOON: Final = 1_800.0


@dataclass(frozen=True, slots=True)
class Became:
    """The ids of messages to leave out, and message id → the ids of visible records that say the same."""

    untold: frozenset[str] = frozenset()
    read_as: Mapping[str, frozenset[str]] = field(default_factory=dict)


def what_became(messages: Sequence[Record], view: ReadStore) -> Became:
    """What became of a user's session messages, by the records that tell something about them.

    A message is left out as a whole, also where only one of its statements was replaced, retracted, deleted,
    rejected or quarantined. A statement that waits for review is not known yet, so its message is left out
    until somebody approves. Records that are expired, forgotten or merged into a summary hide nothing.
    """
    if not messages:
        return Became()
    asked = frozenset(message.id for message in messages)
    where = Filter(messages[0].user_id, statuses=None, ref_ids=tuple(sorted(asked)))
    untold: set[str] = set()
    read_as: defaultdict[str, set[str]] = defaultdict(set)
    for record in view.list(where, limit=_ALL):
        untold.update(record.ref_ids if hides(record) else record.former_ref_ids)
        for message in record.present_ref_ids if record.is_visible(view.now) else ():
            read_as[message].add(record.id)
    told = {message: frozenset(ids) for message, ids in read_as.items() if message in asked}
    return Became(asked & untold, told)


def _said_again(told: Sequence[Hit], hidden: Sequence[Record], view: ReadStore) -> Iterator[str]:
    """The ids of replies that hold a statement of a hidden message, or that answer a hidden one."""
    replies = {hit.record.id: hit for hit in told if not _is_users(hit.record)}
    asked = {id_: _answered(hit.record, view) for id_, hit in replies.items()}
    untold = what_became([*chain(*asked.values())], view).untold
    every = [*hidden, *(message for message in chain(*asked.values()) if message.id in untold)]
    stated = [s.text for m in every for s in read_statements(m.content).worth_keeping if terms(s.text)]
    for id_, hit in replies.items():
        held = [frozenset(terms(hit.excerpt or ""))]
        if any(m.id in untold for m in asked[id_]) or any(_repeats(text, held) for text in stated):
            yield id_


def _answered(reply: Record, view: ReadStore) -> Sequence[Record]:
    """The user's message that a reply came soon after, in its session, if there is one."""
    at = reply.created_at
    where = replace(Filter.beside(reply), session_id=reply.source.session_id, since=at - _SOON, until=at)
    return [*filter(_is_users, view.list(where, limit=_COMPARED))][:1]


def hides(record: Record) -> bool:
    """Whether the messages that say a record are left out of notes, by its status."""
    if record.status in ("stale", "deleted"):
        return record.metadata.get(SAID_KEPT) != record.version
    return record.status in ("pending", "quarantined")


def with_said_kept(record: Record) -> Record:
    """The record about to be set aside, so that it hides no message in its next version."""
    return replace(record, metadata={**record.metadata, SAID_KEPT: record.version + 1})


def may_be_told(message: Record, excerpt: str | None = None) -> bool:
    """Whether a session message may stand in a note, by the checks of records: no orders, no echo of notes.

    Args:
        excerpt: The part to be told; None: all of it.
    """
    is_users = _is_users(message)
    is_own = is_users and without_pasted(message.content) == message.content
    return _may_be_told(message.content if excerpt is None else excerpt, is_users, is_own)


@lru_cache(maxsize=4_096)
def _may_be_told(text: str, is_users: bool, is_own: bool) -> bool:  # noqa: FBT001
    if strip_notes(text) != text or gives_orders([*sentences(text)], by_others=not is_own):
        return False
    return not (len(text) <= _SHORT and asks_once(text)) if is_users else not is_echo(text)
