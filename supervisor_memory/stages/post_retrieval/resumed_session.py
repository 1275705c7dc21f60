"""Adds the digest of an earlier session to the note, if the first words of a thread resume that session.

It is told by the sentences of its digest, each of which may still be told. A session that has no digest yet,
or has gone on since, is digested here and now, so that a thread begun at once misses nothing.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import has_cjk, language, terms
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Hit, Query, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import clean
from supervisor_memory.stages.post_retrieval.quotable import (
    UNSURE,
    is_users,
    may_be_told,
    said_again,
    what_became,
)
from supervisor_memory.stages.post_retrieval.rank import rank
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.stores.sessions import SUBJECT, UNTIL, heard_by
from supervisor_memory.understand.digest import Line, Said, Section, digest, is_open, phrased
from supervisor_memory.understand.finished import closes
from supervisor_memory.understand.questions import Opening, Wish, named_terms, opening, restarts

DIGEST: Final = "digest"
"""The part of a hit that tells the digest of a session."""
_LATEST, _MESSAGES, _OF_A_SESSION = 50, 100, 200
"""Most latest sessions to look at, most messages to read at once, and most messages of a session."""
_DIGESTED_NOW = 3  # the latest; others wait for the background
_LIKEST = 5  # sessions by meaning
_ASKED_FOR = 20  # sessions among the latest whose digest is not among the latest
_MOST_TOKENS, _A_LINE = 230, 130
"""Tokens of the digests in a note, and of the single line after a greeting."""
_MOST_OF_A_NOTE, _FRAME, _FRAME_OF_A_LINE = 300, 60, 18
"""Tokens of a whole note with a digest, tokens of its frame, and tokens of a line's frame."""
_LEAST_COVERED, _LEAST_ALIKE = 0.5, 0.7
"""The least share of the topic's terms, or the least similarity, for a session to be chosen."""
_LEAST_ALIKE_WITH_A_WORD = 0.5
_SOME = 0.3
_CANDIDATES = 20
_OPEN_FIRST: Final[Sequence[Section]] = ("next", "decided", "done", "learned", "asked", "preferences")
_DECIDED_FIRST: Final[Sequence[Section]] = ("decided", "next", "learned", "done", "asked", "preferences")


@dataclass(frozen=True, slots=True)
class _Session:
    """An earlier session: its lines, when something was last said in it, and a record to tell them by."""

    id: str
    lines: tuple[Line, ...]
    at: float
    record: Record
    words: frozenset[str] = field(default=frozenset())
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Its share of the topic's terms and its similarity, where it was chosen by topic."""

    @classmethod
    def of(cls, id_: str, lines: Iterable[Line], at: float, record: Record) -> "_Session":
        kept = tuple(lines)
        name = str(record.metadata.get("name") or "")
        return cls(id_, kept, at, record, _words((name, *(line.text for line in kept))))


def with_digest(plan: Recalling, view: ReadStore) -> Recalling | None:
    """The note's hits with the digest of the resumed session; None: no session is resumed."""
    found = opening(plan.turn.text)
    if found is None or not _is_first(plan, view):
        return None
    alike = _alike(plan, view) if found.topic or found.unsure else {}
    sessions = sorted(_sessions(found, alike, plan, view), key=lambda each: -each.at)
    chosen = _chosen(found, sessions, alike, plan, view)
    hits = [] if chosen is None else [*_digest_hits(chosen, found, plan, view)]
    if not hits:
        return None
    rest = plan.hits if found.topic else [hit for hit in plan.hits if "standing" in hit.parts]
    return replace(plan, hits=replace(plan.hits, items=(*hits, *_fitting_beside(hits, rest, view))))


def _fitting_beside(hits: Sequence[Hit], rest: Iterable[Hit], view: ReadStore) -> Iterator[Hit]:
    """The other hits that fit into the note beside the digest."""
    left = _MOST_OF_A_NOTE - _FRAME - sum(_size(hit, view) for hit in hits)
    for hit in rest:
        if (cost := _size(hit, view)) <= left:
            left -= cost
            yield hit


def _size(hit: Hit, view: ReadStore) -> int:
    return view.count_tokens(hit.excerpt or hit.record.content) + _FRAME_OF_A_LINE


def _chosen(
    found: Opening,
    sessions: Sequence[_Session],
    alike: Mapping[str, float],
    plan: Recalling,
    view: ReadStore,
) -> _Session | None:
    """The resumed session; None: no session is resumed.

    It is the one that the words are about, else the latest that is not finished. One that only told what an
    earlier one said stands in for none.
    """
    left = list(sessions)
    while picked := _picked(found, left, alike, plan):
        if not _only_repeats(picked, left, view):
            return _without_what_was_done(picked, sessions)
        left = [each for each in left if each.id != picked.id]
    return None


def _picked(
    found: Opening, sessions: Sequence[_Session], alike: Mapping[str, float], plan: Recalling
) -> _Session | None:
    if found.topic or found.unsure:
        about = _session_about(found, sessions, alike, is_asked=_is_asked(plan))
        if about or not found.is_bare:
            return next(iter(about), None)
    fitting = _latest(sessions, found.wants)
    covered = (each for each in fitting if _covers(each.words, found.asks, sessions) >= _LEAST_COVERED)
    return next(covered, None)


def _only_repeats(session: _Session, sessions: Sequence[_Session], view: ReadStore) -> bool:
    """Whether a session adds nothing: its user only asked about the state, and an earlier session has all of
    the answer."""
    earlier = [each for each in sessions if each.at < session.at]
    messages = messages_of(session.lines, view)

    def is_own(line: Line) -> bool:
        message = messages[line.message_id]
        if is_users(message):
            return not restarts(message.content)
        return not any(_tells_again(line, each, sessions) for each in earlier)

    return not any(is_own(line) for line in session.lines if line.message_id in messages)


def _tells_again(line: Line, earlier: _Session, sessions: Sequence[_Session]) -> bool:
    """Whether an earlier session has most words of a line, and all of its numbers.

    What was still open there is not told again by a line that says it was done, or what came of it.
    """
    told, held = named_terms(line.text), earlier.words
    if line.section in ("done", "learned"):
        held = _words(each.text for each in earlier.lines if each.section != "next")
    is_new = any(each[:1].isdigit() and each not in earlier.words for each in told)
    return not is_new and _covers(held, told, sessions) >= _LEAST_COVERED


def _words(texts: Iterable[str]) -> frozenset[str]:
    """The terms of texts, and their single Chinese characters."""
    every = " ".join(texts)
    return frozenset((*terms(every), *filter(has_cjk, every)))


def _is_asked(plan: Recalling) -> bool:
    return plan.turn.text.rstrip().endswith(("?", "？"))


def _is_first(plan: Recalling, view: ReadStore) -> bool:
    """Whether nothing else was said in this thread before."""
    scope = plan.turn.scope
    said = view.list(Filter(scope.user_id, families=(SESSION_FAMILY,), session_id=scope.session_id), limit=2)
    return all(is_users(each) and each.content in plan.turn.text for each in said)


def _sessions(
    found: Opening, alike: Mapping[str, float], plan: Recalling, view: ReadStore
) -> Iterator[_Session]:
    """The candidates: the latest sessions, and older ones about the topic.

    Of the latest, those that were not digested, or have gone on, are digested now.
    """
    scope = plan.turn.scope
    of_user = Filter(scope.user_id, families=(SESSION_FAMILY,), tasks=scope.tasks)
    digests = replace(of_user, families=(DIGEST_FAMILY,))
    latest: defaultdict[str, list[Record]] = defaultdict(list)
    for message in view.list(of_user, limit=_MESSAGES):
        if (id_ := message.source.session_id) and id_ != scope.session_id:
            latest[id_].append(message)
    states = [*view.list(digests, limit=_LATEST), *_about_the_topic(found, alike, digests, view)]
    known = {each.attribute: each for each in states if each.attribute and UNTIL in each.metadata}
    undigested = [each for each in latest if each not in known]
    for id_ in undigested[:_ASKED_FOR]:  # or digested before others, such as imports
        if (state := _state_of(id_, digests, view)) is not None and UNTIL in state.metadata:
            known[id_] = state
    behind = [id_ for id_, said in latest.items() if id_ not in known or _has_more(known[id_], said)]
    for id_ in sorted(behind, key=lambda each: -latest[each][0].created_at)[:_DIGESTED_NOW]:
        before = known.pop(id_, None)
        yield from _digested_now(replace(of_user, session_id=id_), before, view)
    for id_, state in known.items():
        if id_ != scope.session_id:
            yield _Session.of(id_, _told_lines(state), state.metadata[UNTIL], state)


def _without_what_was_done(session: _Session, sessions: Sequence[_Session]) -> _Session:
    """The session without the open lines that a later session reports as done."""
    if not is_open(session.lines):
        return session
    later = chain.from_iterable(each.lines for each in sessions if each.at > session.at)
    done = [line.text for line in later if line.section in ("done", "next")]
    kept = (
        line
        for line in session.lines
        if line.section != "next" or not any(closes(each, line.text) for each in done)
    )
    return replace(session, lines=tuple(kept)) if done else session


def _about_the_topic(
    found: Opening, alike: Mapping[str, float], digests: Filter, view: ReadStore
) -> Iterator[Record]:
    """The digests, however old, that share words with the topic or whose messages are like it."""
    asked = (*found.topic, *found.unsure)
    if asked:
        by_words = Query(" ".join(asked), digests, asked, now=view.now)
        yield from (hit.record for hit in view.search(by_words, limit=_CANDIDATES))
    for id_ in sorted(alike, key=lambda each: -alike[each])[:_LIKEST]:
        if (state := _state_of(id_, digests, view)) is not None:
            yield state


def _state_of(session_id: str, digests: Filter, view: ReadStore) -> Record | None:
    of_session = replace(digests, subject=SUBJECT, attribute=session_id)
    return next(iter(view.list(of_session, limit=1)), None)


def lines_of(state: Record) -> Iterator[Line]:
    """The lines of a session's state, in the order in which they were said."""
    for each in state.metadata.get("lines") or ():
        yield Line(*each)


def _told_lines(state: Record) -> Iterator[Line]:
    """The lines of a session's state that a note may tell."""
    return (line for line in lines_of(state) if line.section != "topics")


def _has_more(state: Record, said: Sequence[Record]) -> bool:
    """Whether a session has messages of the digest's task that are newer than the digest, or came late."""
    heard, times = heard_by(state), [each.created_at for each in said if each.task == state.task]
    return max(times, default=-math.inf) > state.metadata[UNTIL] or len(times) > (heard or len(times))


def _digested_now(of_session: Filter, before: Record | None, view: ReadStore) -> Iterator[_Session]:
    every = sorted(view.list(of_session, limit=_OF_A_SESSION), key=lambda each: (each.created_at, each.id))
    until = before.metadata[UNTIL] if before else -math.inf
    newest, told = [each for each in every if each.created_at > until], before
    if before and len(every) - len(newest) > (heard_by(before) or len(every)):
        newest, told = every, None  # some came late
    lines = digest(said_of(newest), tuple(_told_lines(told)) if told else ())
    if lines and newest:
        yield _Session.of(of_session.session_id or "", lines, newest[-1].created_at, before or newest[-1])


def said_of(messages: Iterable[Record]) -> list[Said]:
    """Session messages as a digest reads them, without those whose speaker is unsure."""
    own = (each for each in messages if not each.metadata.get(UNSURE))
    return [Said(each.id, each.content, is_users(each)) for each in own]


def _latest(sessions: Sequence[_Session], wanted: Wish) -> Sequence[_Session]:
    """The latest unfinished session, or the latest with a decision if that is wanted; else the latest of all,
    unless the user only greets."""
    if wanted == "decided":
        fitting = (each for each in sessions if any(line.section == "decided" for line in each.lines))
    else:
        fitting = (each for each in sessions if is_open(_without_what_was_done(each, sessions).lines))
    return [*islice(fitting, 1)] or ([] if wanted == "greeting" else sessions[:1])


def _session_about(
    found: Opening, sessions: Sequence[_Session], alike: Mapping[str, float], *, is_asked: bool
) -> Sequence[_Session]:
    """The session that the topic is from, if there is one."""
    evidence = {
        each.id: (_covers(each.words, found.topic, sessions, found.unsure), alike.get(each.id, 0.0))
        for each in sessions
        if _covers(each.words, found.asks, sessions) >= _LEAST_COVERED
    }

    def fits(covered: float, like: float) -> bool:
        if found.wants == "named":
            return covered == 1.0 or (covered >= _SOME and like >= _LEAST_ALIKE)
        least = _LEAST_ALIKE_WITH_A_WORD if covered else _LEAST_ALIKE
        # A question is like others of its form, so that likeness without a word in common says nothing.
        return covered >= _LEAST_COVERED or (like >= least and bool(covered or not is_asked))

    fitting = [each for each in sessions if each.id in evidence and fits(*evidence[each.id])]
    best = sorted(fitting, key=lambda each: -sum(evidence[each.id]))[:1]
    return [replace(each, evidence=_told_of(*evidence[each.id])) for each in best]


def _told_of(covered: float, like: float) -> Mapping[str, float]:
    return {"coverage": covered, **({"sim": like} if like else {})}


def _alike(plan: Recalling, view: ReadStore) -> Mapping[str, float]:
    """Session id → the similarity of its messages to the turn's words, in [0, 1]."""
    found: dict[str, float] = {}
    if plan.query is not None:
        query = replace(plan.query, where=replace(plan.query.where, families=(SESSION_FAMILY,)), parts=())
        hits = found_by(query, limit=_CANDIDATES, view=view)
        for hit in rank(replace(plan, query=query, hits=hits), view).hits:
            id_ = hit.record.source.session_id or ""
            found[id_] = max(found.get(id_, 0.0), hit.parts.get("sim", 0.0))
    return found


def _covers(
    words: frozenset[str], asked: Sequence[str], sessions: Sequence[_Session], unsure: Sequence[str] = ()
) -> float:
    """The share of the asked terms that a session has, weighted by rarity among the sessions; 1 without
    terms.

    Args:
        unsure: Terms that count where some session has them.
    """
    if not asked and not unsure:
        return 1.0
    count = Counter(chain.from_iterable(each.words for each in sessions))
    known = [each for each in (*asked, *unsure) if count[each]]
    meant = (*known, *(each for each in asked if not count[each] and not _cuts_across(each, known)))
    weight = {each: math.log(1 + (1 + len(sessions)) / (0.5 + count[each])) for each in meant}
    return sum(weight[each] for each in meant if each in words) / sum(weight.values()) if meant else 0.0


def _cuts_across(pair: str, known: Iterable[str]) -> bool:
    """Whether a pair of Chinese characters begins or ends inside another known pair."""
    return has_cjk(pair) and any(each[-1:] == pair[0] or each[0] == pair[-1] for each in known)


def _digest_hits(session: _Session, found: Opening, plan: Recalling, view: ReadStore) -> Iterator[Hit]:
    """A hit for the resumed session, with its most useful lines as excerpt; none if no line is left."""
    wanted, topic = found.wants, frozenset(found.topic)
    left = _A_LINE if wanted == "greeting" else _MOST_TOKENS
    left = min(left, view.settings.max_context_tokens // 2)
    may = _tellable(session.lines, plan.turn.scope.agent_id, view)
    picked: list[Line] = []
    for line in _by_worth(may, wanted, topic):
        if (cost := view.count_tokens(line.text) + 2) <= left:
            picked.append(line)
            left -= cost
    told = [replace(line, text=clean(line.text)) for line in may if line in picked]
    text = phrased(told, language(plan.turn.text))
    if text and (wanted != "greeting" or is_open(picked)):
        when = replace(session.record, updated_at=session.at)
        parts = {DIGEST: 1.0, "relevance": 1.0, "fused": 1.0, **session.evidence}
        made_of = tuple(dict.fromkeys((line.message_id, line.section) for line in told))
        yield Hit(when, 1.0, parts, found=DIGEST, excerpt=text, made_of=made_of)


def _by_worth(lines: Sequence[Line], wanted: Wish, topic: frozenset[str]) -> Sequence[Line]:
    order = _DECIDED_FIRST if wanted == "decided" else _OPEN_FIRST
    place = {id(line): number for number, line in enumerate(lines)}
    first = next((line for line in lines if line.section == "asked"), None)

    def worth(line: Line) -> tuple[float, int]:
        rank_ = float(order.index(line.section))
        if wanted == "decided":
            rank_ -= 2 * len(topic & frozenset(terms(line.text))) / (len(topic) or 1)
        elif line is first:
            rank_ = 0.5  # what it was about
        return rank_, -place[id(line)]

    return sorted(lines, key=worth)


def _tellable(lines: Sequence[Line], agent_id: str | None, view: ReadStore) -> Sequence[Line]:
    """The lines whose message may still be told, to this reader."""
    messages = messages_of(lines, view)
    kept = [
        each for each in still_true(lines, messages, view) if is_heard(messages[each.message_id], agent_id)
    ]
    by_message: defaultdict[str, list[str]] = defaultdict(list)
    for line in kept:
        by_message[line.message_id].append(line.text)
    told = [Hit(messages[id_], excerpt=" ".join(texts)) for id_, texts in by_message.items()]
    lost = {line.message_id for line in lines if line not in kept}
    hidden = [each for id_, each in messages.items() if id_ in lost]
    gone = set(said_again(told, hidden, view, answers_deleted=bool(hidden)))
    return [each for each in kept if each.message_id not in gone]


def is_heard(message: Record, agent_id: str | None) -> bool:
    """Whether a reader may be told a message: an agent is told the user's words and its own."""
    return is_users(message) or agent_id in (None, message.source.speaker)


def messages_of(lines: Sequence[Line], view: ReadStore) -> Mapping[str, Record]:
    """The stored messages of some lines, by id."""
    ids = tuple(dict.fromkeys(line.message_id for line in lines))
    return {each.id: each for each in view.list(Filter(ids=ids), limit=len(ids))} if ids else {}


def still_true(lines: Sequence[Line], messages: Mapping[str, Record], view: ReadStore) -> list[Line]:
    """The lines whose message still exists and was not replaced, retracted, rejected or set aside since."""
    became = what_became([*messages.values()], view)
    held = [each for each in lines if each.message_id in messages]
    true = [each for each in held if became.may_hold(each.message_id, each.text)]
    return [each for each in true if may_be_told(messages[each.message_id], each.text, requests=True)]
