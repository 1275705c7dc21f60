"""What was said: excerpts of earlier conversations, beside the records of a note."""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import TypeAlias

from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    Filter,
    Hit,
    Hits,
    Query,
    Record,
    content_hash,
)
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import is_told_by
from supervisor_memory.stages.post_retrieval.rank import ANSWERS, answers, evidence, is_shown_in, rank
from supervisor_memory.stages.post_retrieval.unsaid import (
    UNSURE,
    Became,
    is_users,
    may_be_told,
    repeats,
    replaced,
    said_again,
    what_became,
)
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.understand.names import named_people, without_people
from supervisor_memory.understand.questions import asks_for_a_reply, named_terms, opening
from supervisor_memory.understand.statements import sentences

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


def add_said(plan: Recalling, view: ReadStore) -> Recalling:
    """Excerpts of what was said, best first, behind the records of a note; none where nothing answers.

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
    """Whether a turn may be the first of its thread, and its words may go on with an earlier one."""
    if turn.scope.session_id is None or turn.messages[:-1][:1] != ():
        return False
    return opening(turn.text) is not None


def _opened(plan: Recalling, view: ReadStore) -> Recalling | None:
    from supervisor_memory.stages.post_retrieval.opening import with_digest  # few turns need it

    return with_digest(plan, view)


def _with_said(plan: Recalling, asked: Query, view: ReadStore) -> Recalling:
    where = replace(asked.where, families=(SESSION_FAMILY,))
    query = replace(asked, where=where, parts=tuple(replace(part, where=where) for part in asked.parts))
    found, is_known = view.shared(("said", _timeless(query)), lambda: _found(query, plan, view))
    named, own = found.named, found.own
    says, agent_id = is_shown_in(plan.turn.messages), plan.turn.scope.agent_id
    least = view.settings.min_score * _OF_THE_THRESHOLD

    def beside(hit: Hit) -> str:
        """Why a message is none of the reader's business; "": it is near the question."""
        if not is_heard(hit.record, agent_id):
            return "not-for-you"
        if says(hit.record):
            return "already-said"
        is_near = _is_alike(hit, least) and (named is None or hit.record.id in named)
        return "" if is_near else "below-threshold"

    said = replace(plan, query=query, hits=found.hits).without(beside)
    is_enough, asks_for_it = answers(_without_speakers(said, view)), asks_for_a_reply(query.text)

    def answers_alone(hit: Hit) -> bool:
        """Whether it needs no other beside it: a user's; an assistant's that answers or is asked for."""
        return hit.record.id in own or asks_for_it or evidence(hit) >= ANSWERS

    answering = [hit for hit in said.hits if is_enough and answers_alone(hit)]
    # Of all that was found: the other readers of the run ask the store the same.
    became = what_became([hit.record for hit in found.hits] if answering else (), view)
    holding = [hit for hit in answering if hit.record.id not in became.untold]
    excerpts = _excerpts(holding, own, query, plan.hits, became, view)
    told = [*excerpts.values()]
    gone = {*became.untold, *replaced(plan.hits.items, told, became, view.settings.duplicate_threshold)}
    hidden = [hit.record for hit in answering if hit.record.id in became.untold]
    gone.update(said_again(told, hidden, view))
    if is_known:
        gone.update(_lost(told, view))
    ids = {hit.record.id for hit in answering}

    def unquoted(hit: Hit) -> str:
        """Why nothing of a message is told; "": its excerpt is."""
        if hit.record.id not in ids:
            return "no-answer"
        if hit.record.id in gone:
            return "untold"
        return "" if hit.record.id in excerpts else "left-out"

    items = (*plan.hits, *(hit for hit in told if hit.record.id not in gone))
    return replace(said.without(unquoted), query=asked, hits=replace(plan.hits, items=items))


@dataclass(frozen=True, slots=True)
class _Found:
    """The messages found for a question, best first, and the ids of those that are the user's `own`.

    `named` are the ids of those that share a word by which it names something, and of what follows such a
    message. None: nothing is named, or meaning is compared, which tells more than words: "plan" and "please"
    are in requests of any kind.
    """

    hits: Hits
    named: frozenset[str] | None
    own: frozenset[str]


def _found(query: Query, plan: Recalling, view: ReadStore) -> _Found:
    if names := () if query.vector is not None else named_terms(query.text):
        parts = tuple(replace(part, names=names) for part in query.parts)
        query = replace(query, names=names, parts=parts)
    hits = found_by(query, limit=_CANDIDATES, view=view)
    named = frozenset(hit.record.id for hit in hits if "names" in hit.parts) if names else None
    ranked = rank(replace(plan, query=query, hits=hits), view).hits
    return _Found(ranked, named, frozenset([hit.record.id for hit in ranked if is_users(hit.record)]))


def _timeless(query: Query) -> Query:
    """The same without the moment it is asked: the readers of a run follow each other by seconds."""
    return replace(query, now=0.0, parts=tuple(_timeless(part) for part in query.parts))


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
    users: Set[str],
    question: Query,
    records: Sequence[Hit],
    became: Became,
    view: ReadStore,
) -> dict[str, Hit]:
    """The messages that give an excerpt, with it, by their ids, until there are enough for a note.

    A message that says more than a record of it that is only a sentence is quoted with that sentence. What
    was asked in the same words before tells nothing, and what was said in the same words twice is told once.

    Args:
        users: The ids of the user's own messages.
        records: What the note tells anyway.
    """
    own = [hit.record.content for hit in said if hit.record.id in users]
    known = [] if asks_for_a_reply(question.text) else own
    told: list[frozenset[str]] | None = None  # where no reply is looked at, nobody asks
    excerpts: dict[str, Hit] = {}
    wordings, asked = {content_hash(question.text)}, frozenset(question.terms)
    left = most = view.settings.max_context_tokens
    for hit in said:
        is_own = hit.record.id in users
        if left <= (0 if is_own else _BY_OTHERS * most):
            continue
        if told is None and not is_own:
            texts = [*(hit.record.content for hit in records), *known]
            told = [words for text in texts for words in _told_in(text)]
        others = () if is_own or told is None else told
        ids = became.read_as.get(hit.record.id)
        read = [each for each in records if each.record.id in ids] if ids else ()
        excerpt = partial(_excerpt, hit.record, told=others, asked=asked, view=view)
        text = excerpt(known=_texts(read))
        firm = [each for each in read if not is_told_by(each, hit.record.content)]
        if text and len(firm) < len(read):
            text = excerpt(known=_texts(firm))
        if text and (wording := content_hash(text)) not in wordings and may_be_told(hit.record, text):
            wordings.add(wording)
            if told is not None and not is_own:
                told += _told_in(text)
            excerpts[hit.record.id] = Hit(hit.record, hit.score, hit.parts, hit.found, text)
            left -= view.count_tokens(text)
    return excerpts


def _texts(hits: Sequence[Hit]) -> str:
    return " ".join(hit.record.content for hit in hits)


def is_heard(message: Record, agent_id: str | None) -> bool:
    """Whether a reader may be told a message: an agent is told the user's words and its own."""
    is_theirs = agent_id in (None, message.source.speaker) or message.source.source_class == "user"
    return is_theirs and not message.metadata.get(UNSURE)


def _is_alike(hit: Hit, least: float) -> bool:
    """Whether a message is near enough to the question.

    Where nothing was compared by meaning, a word in common is enough, in it or in what was said before.
    """
    return hit.parts.get("relevance", 0.0) >= least if "sim" in hit.parts else "context" in hit.parts


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


def _told_in(text: str) -> tuple[frozenset[str], ...]:
    """The terms of each sentence of a text. A question tells nothing."""
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
    """How much a sentence has in common with a question for its length."""
    held = frozenset(terms(sentence))
    return len(held & asked) / math.sqrt(len(held) or 1)


def _joined(every: list[str], places: list[int]) -> Iterator[str]:
    """The sentences at some places, with an ellipsis where others lay between."""
    yield from (every[place] for place in places[:1])
    for before, place in pairwise(places):
        yield f"{' ' if place == before + 1 else ' … '}{every[place]}"
