"""Adds excerpts of earlier conversations to the records of a note."""

import math
import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    Considered,
    Filter,
    Hit,
    Hits,
    Query,
    Record,
    content_hash,
)
from supervisor_memory.model.records.found import left_out
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import is_told_by
from supervisor_memory.stages.post_retrieval.quotable import (
    UNSURE,
    Became,
    is_users,
    may_be_told,
    repeats,
    replaced,
    said_again,
    what_became,
)
from supervisor_memory.stages.post_retrieval.rank import ANSWERS, evidence, is_shown_in, rank
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.understand.names import named_people, without_people
from supervisor_memory.understand.questions import asks_for_a_reply, named_terms, opening
from supervisor_memory.understand.statements import judge, read_statements, sentences

_CANDIDATES = 40  # more than a note of usual size holds
_ASKED_AGAIN = 20
_OF_THE_THRESHOLD = 0.5  # for what stands between others that are shown as well
_BY_OTHERS = 0.5  # of a note: once the best excerpts fill it, only the user's are added
_WHOLE = 150
"""Tokens up to which a message is quoted whole."""
_EXCERPT, _SENTENCES = 90, 12
"""Tokens of the sentences of a longer message, and how many of them are looked at, best first."""
_Told: TypeAlias = Sequence[frozenset[str]]
_LETTERS_A_TOKEN = 8  # or fewer
_FIGURE, _END = re.compile(r"\d+"), " .?!。？！"


def add_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Add excerpts, best first, behind the records of a note; none where no message answers.

    MEMORY_RECALL_SAID, or the turn, may ask for none. Where the second search fails, the records stay.
    """
    turn, query = plan.turn, plan.query
    if turn.purpose == "hits" or not turn.said or view.settings.recall_said == "never":
        return plan
    if _may_open(turn) and (opened := view.attempt("digests", lambda: _opened(plan, view))):
        return opened
    if query is None:
        return plan
    return view.attempt("excerpts", lambda: _with_said(plan, query, view)) or plan


def _may_open(turn: Turn) -> bool:
    """Whether a turn may be the first of its thread and resume an earlier session."""
    if turn.scope.session_id is None or turn.messages[:-1][:1] != ():
        return False
    return opening(turn.text) is not None


def _opened(plan: Recalling, view: ReadStore) -> Recalling | None:
    from supervisor_memory.stages.post_retrieval.resumed_session import with_digest  # few turns need it

    return with_digest(plan, view)


def _with_said(plan: Recalling, asked: Query, view: ReadStore) -> Recalling:
    found, is_known = view.shared(("said", _wanted(asked)), lambda: _search_messages(asked, plan, view))
    own, said, dropped = found.own, *_for_reader(found, plan.turn)
    may_answer = _may_answer(_without_speakers(said, found.query, plan, view))
    asks_for_it = asks_for_a_reply(asked.text)

    def answers_alone(hit: Hit) -> bool:
        """Whether a message may answer by itself: the user's always, an assistant's if it is asked for or
        close to the question."""
        return hit.record.id in own or asks_for_it or evidence(hit) >= ANSWERS

    answering = [hit for hit in said if answers_alone(hit)] if may_answer else []
    # Of all that was found: the other readers of the run ask the store the same.
    became = what_became([hit.record for hit in found.hits.items] if answering else (), view)
    holding = [hit for hit in answering if hit.record.id not in became.untold]
    excerpts = _excerpts(holding, found, asked, plan.hits.items, became, view)
    told = [*excerpts.values()]
    gone = {*became.untold, *replaced(plan.hits.items, told, became, view.settings.duplicate_threshold)}
    hidden = [hit.record for hit in answering if hit.record.id in became.untold]
    gone.update(said_again(told, hidden, view))
    if is_known:
        gone.update(_lost(told, view))
    if not _is_answered(may_answer, {hit.record.id for hit in holding} - gone, excerpts, found):
        told, answering = [], [hit for hit in answering if hit.record.id in gone]
    ids = {hit.record.id for hit in answering}
    for hit in said:
        id_ = hit.record.id
        if id_ not in ids:
            dropped.append(left_out(hit, "no-answer"))
        elif id_ in gone or id_ not in excerpts:
            dropped.append(left_out(hit, "untold" if id_ in gone else "left-out"))
    items = (*plan.hits.items, *[hit for hit in told if hit.record.id not in gone])
    return replace(plan, hits=replace(plan.hits, items=items), dropped=(*plan.dropped, *dropped))


def _may_answer(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits that may answer a question; all of them where nothing was compared by meaning."""
    if any("sim" in hit.parts for hit in hits):
        return [hit for hit in hits if evidence(hit) >= ANSWERS]
    return hits


def _is_answered(
    may_answer: Sequence[Hit], left: Set[str], excerpts: Collection[str], found: "_Found"
) -> bool:
    """Whether a message that may be quoted answers; a hidden answer is no reason to quote something else.

    Args:
        left: The ids of messages of which nothing has been found that forbids to tell them.
    """
    return any(
        id_ in excerpts or (not found.asks_again(hit.record) and may_be_told(hit.record))
        for hit in may_answer
        if (id_ := hit.record.id) in left
    )


class _Excerpt(NamedTuple):
    """The excerpt of a message as a hit, with the hash of its wording and its size in tokens."""

    hit: Hit
    wording: str
    tokens: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The messages that a query found, best first, for all readers of a run.

    Args:
        asked: The wordings of the question; see `_question_wordings`.
        near: The ids of those that are near enough to it.
        own: The ids of those that are the user's own.
        now: The ids of those of these that the user said in the running turn.
        heard: The ids of those that any reader may be told.
        alone: Message id → what is quoted of it where no record was read from it and nothing else tells it,
            None: nothing; each is made when the first reader wants it.
        again: Message id → whether it asks the same once more, found out when the first reader wants it.
    """

    query: Query
    asked: frozenset[str]
    hits: Hits
    near: frozenset[str]
    own: frozenset[str]
    now: frozenset[str] = frozenset()
    heard: frozenset[str] = frozenset()
    alone: dict[str, _Excerpt | None] = field(default_factory=dict)
    again: dict[str, bool] = field(default_factory=dict)

    def asks_again(self, message: Record) -> bool:
        """Whether a message asks the same question as the query, apart from figures."""
        if (known := self.again.get(message.id)) is None:
            known = self.again[message.id] = _asks_again(message, self.asked)
        return known


def _search_messages(asked: Query, plan: Recalling, view: ReadStore) -> _Found:
    where = replace(asked.where, families=(SESSION_FAMILY,))
    query = replace(asked, where=where, parts=tuple(replace(part, where=where) for part in asked.parts))
    # Words by which the question names something: a message shares one, or follows one that does. Where
    # meaning is compared, it tells more than words: "plan" and "please" are in requests of any kind.
    if names := () if query.vector is not None else named_terms(query.text):
        parts = tuple(replace(part, names=names) for part in query.parts)
        query = replace(query, names=names, parts=parts)
    hits = found_by(query, limit=_CANDIDATES, view=view)
    ranked = rank(replace(plan, query=query, hits=hits), view).hits
    least = view.settings.min_score * _OF_THE_THRESHOLD
    near = [hit for hit in ranked.items if _is_alike(hit, least) and not (names and "names" not in hit.parts)]
    own = [hit.record for hit in ranked.items if is_users(hit.record)]
    run = plan.turn.scope.run_id
    now = [each.id for each in own if each.source.run_id == run] if run is not None else ()
    near_ids = frozenset([hit.record.id for hit in near])
    own_ids = frozenset([each.id for each in own])
    heard = frozenset([hit.record.id for hit in ranked.items if _is_for_all(hit.record)])
    return _Found(query, _question_wordings(asked.text), ranked, near_ids, own_ids, frozenset(now), heard)


def _for_reader(found: _Found, turn: Turn) -> tuple[list[Hit], list[Considered]]:
    """Divide the messages near the question into those for the reader and the others, with the reason."""
    says, agent_id = is_shown_in(turn.messages), turn.scope.agent_id
    heard, near, now = found.heard, found.near, found.now
    said: list[Hit] = []
    others: list[Considered] = []
    for hit in found.hits.items:
        record = hit.record
        id_ = record.id
        if id_ not in heard and not is_heard(record, agent_id):
            others.append(left_out(hit, "not-for-you"))
        elif says(record) or (id_ in now and not _states(record.content)):
            others.append(left_out(hit, "already-said"))
        elif id_ in near:
            said.append(hit)
        else:
            others.append(left_out(hit, "below-threshold"))
    return said, others


_as_asked = attrgetter(*[n for n in Query.__slots__ if n not in {"now", "vector", "where", "parts"}])
_as_searched = attrgetter(*[name for name in Filter.__slots__ if name != "families"])


def _wanted(query: Query) -> tuple[object, ...]:
    """The part of the query that all readers of a run share: they follow within seconds, each with its own
    families."""
    return (*_as_asked(query), _as_searched(query.where), tuple([_wanted(part) for part in query.parts]))


def _lost(told: Sequence[Hit], view: ReadStore) -> set[str]:
    """The ids of messages that were deleted or erased since another reader of the run found them."""
    ids = tuple(hit.record.id for hit in told)
    if not ids:
        return set()
    where = Filter(told[0].record.user_id, families=(SESSION_FAMILY,), ids=ids)
    if view.count(where) == len(ids):
        return set()
    return {*ids} - {each.id for each in view.list(where, limit=len(ids))}


def _excerpts(  # noqa: PLR0917
    said: Sequence[Hit],
    found: _Found,
    question: Query,
    records: Sequence[Hit],
    became: Became,
    view: ReadStore,
) -> dict[str, Hit]:
    """Message id → its excerpt, until there are enough for a note.

    A message that says more than a record of it that is only a sentence is quoted with that sentence. What
    was asked in the same words before, whatever its figures, tells nothing, nor does what the running turn
    asks, and what was said in the same words twice is told once.

    Args:
        records: What the note tells anyway.
    """
    users, alone = found.own, found.alone
    told: list[frozenset[str]] | None = None  # where no reply is looked at, nobody asks
    excerpts: dict[str, Hit] = {}
    wordings, asked = {content_hash(question.text)}, frozenset(question.terms)
    left = most = view.settings.max_context_tokens
    for hit in said:
        id_ = hit.record.id
        is_own = id_ in users
        if left <= (0 if is_own else _BY_OTHERS * most) or (is_own and found.asks_again(hit.record)):
            continue
        if told is None and not is_own:
            known = [] if asks_for_a_reply(question.text) else [hit for hit in said if hit.record.id in users]
            told = [words for each in (*records, *known) for words in _told_in(each.record.content)]
        others = () if is_own or told is None else told
        ids = became.read_as.get(id_)
        read = [each for each in records if each.record.id in ids] if ids else ()
        asking = _questions(hit.record.content) if id_ in found.now else ""
        if read or others:
            made = _quotable_excerpt(hit, read, others, asked, view, known=asking)
        elif id_ in alone:
            made = alone[id_]
        else:
            made = alone[id_] = _quotable_excerpt(hit, (), (), asked, view, known=asking)
        if made is not None and made.wording not in wordings:
            wordings.add(made.wording)
            if told is not None and not is_own:
                told += _told_in(made.hit.excerpt or "")
            excerpts[id_] = made.hit
            left -= made.tokens
    return excerpts


def _question_wordings(text: str) -> frozenset[str]:
    """The wordings of the note's questions: the user's and, for a sub-agent, its task."""
    return frozenset(map(_asks, (text, *text.split("\n")))) - {""}


def _asks(text: str) -> str:
    """The wording of a question; "" where the text is not a single question. It needs no question mark."""
    if len(text) > _LETTERS_A_TOKEN * _WHOLE or len([*islice(sentences(text), 2)]) != 1:
        return ""
    return _wording(text) if text.endswith(("?", "？")) or judge(text).does == "asks" else ""


def _asks_again(message: Record, questions: frozenset[str]) -> bool:
    same = bool(questions) and _wording(message.content) in questions
    return same and bool(_asks(message.content))  # last, since reading a sentence takes longest


def _states(text: str) -> bool:
    """Whether a text has a sentence that is a statement, not a question or a request."""
    return any(each.does != "asks" and each.reason != "task" for each in read_statements(text).all)


def _questions(text: str) -> str:
    """The sentences of a text that ask."""
    return " ".join([each.text for each in read_statements(text).all if each.does == "asks"])


@lru_cache(maxsize=1_024)
def _wording(text: str) -> str:
    """A text without its figures and the marks at its end."""
    return _FIGURE.sub("#", text.casefold()).rstrip(_END) if len(text) <= _LETTERS_A_TOKEN * _WHOLE else ""


def _quotable_excerpt(
    hit: Hit, read: Sequence[Hit], told: _Told, asked: frozenset[str], view: ReadStore, *, known: str
) -> _Excerpt | None:
    """The excerpt of a message without what the note tells anyway; None: nothing may be quoted.

    Args:
        read: The records that were read from it and are told.
        known: Sentences of it that every reader knows.
    """
    text = _excerpt(hit.record, known + _texts(read), told, asked, view)
    firm = [each for each in read if not is_told_by(each, hit.record.content)]
    if text and len(firm) < len(read):
        text = _excerpt(hit.record, known + _texts(firm), told, asked, view)
    if not text or not may_be_told(hit.record, text):
        return None
    quoted = Hit(hit.record, hit.score, hit.parts, hit.found, text)
    return _Excerpt(quoted, content_hash(text), view.count_tokens(text))


def _texts(hits: Sequence[Hit]) -> str:
    return " ".join([hit.record.content for hit in hits])


def is_heard(message: Record, agent_id: str | None) -> bool:
    """Whether a reader may be told a message: an agent is told the user's words and its own."""
    is_theirs = agent_id in (None, message.source.speaker) or message.source.source_class == "user"
    return is_theirs and not message.metadata.get(UNSURE)


def _is_for_all(message: Record) -> bool:
    return message.source.source_class == "user" and not message.metadata.get(UNSURE)


def _is_alike(hit: Hit, least: float) -> bool:
    """Whether a message is near enough to the question.

    Where nothing was compared by meaning, a word in common is enough, in it or in what was said before.
    """
    return hit.parts.get("relevance", 0.0) >= least if "sim" in hit.parts else "context" in hit.parts


def _without_speakers(said: Sequence[Hit], query: Query, plan: Recalling, view: ReadStore) -> Sequence[Hit]:
    """Search once more without the speakers that the question names.

    A speaker's name is in the vector of each of their messages, so that any question about them resembles
    any message of theirs.
    """
    if query.vector is None:
        return said
    speakers = frozenset(name for hit in said if (name := hit.record.spoken_by))
    if not speakers or not (named := named_people(query.text, speakers)):
        return said
    vector = view.embed_query(without_people(query.text, named))
    alone = replace(query, vector=vector, parts=(), now=view.now)
    return rank(replace(plan, query=alone, hits=view.search(alone, limit=_ASKED_AGAIN)), view).hits.items


def _told_in(text: str) -> tuple[frozenset[str], ...]:
    """The terms of each sentence of a text, questions left out."""
    return _known_told(text[: _WHOLE * _LETTERS_A_TOKEN])


@lru_cache(maxsize=1_024)  # the readers of a run are told much the same
def _known_told(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(terms(each)) for each in sentences(text) if not each.endswith(("?", "？")))


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
    every = [s for s in dict.fromkeys(sentences(content)) if s not in known and not repeats(s, told)]
    left = _WHOLE if is_short else _EXCERPT
    chosen: list[int] = []
    by_worth = sorted(range(len(every)), key=lambda place: -_shared(every[place], asked))
    for place in by_worth if is_short else by_worth[:_SENTENCES]:
        if (cost := view.count_tokens(every[place])) <= left:
            chosen.append(place)
            left -= cost
    return "".join(_joined(every, sorted(chosen)))


def _shared(sentence: str, asked: frozenset[str]) -> float:
    """How much a sentence shares with a question, relative to its length."""
    held = frozenset(terms(sentence))
    return len(held & asked) / math.sqrt(len(held) or 1)


def _joined(every: list[str], places: list[int]) -> Iterator[str]:
    """The sentences at some places, with an ellipsis where others lay between."""
    yield from (every[place] for place in places[:1])
    for before, place in pairwise(places):
        yield f"{' ' if place == before + 1 else ' … '}{every[place]}"
