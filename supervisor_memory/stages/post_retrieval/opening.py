"""The first words of a new thread: what the earlier session that they go on with left open and decided.

It is told by the sentences of its digest, each of which may still be told. A session that has no digest yet,
or has gone on since, is digested here and now, so that a thread begun at once misses nothing.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from supervisor_memory.flow import Recalling
from supervisor_memory.language.terms import has_cjk, language, terms
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Hit, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import clean
from supervisor_memory.stages.post_retrieval.rank import rank
from supervisor_memory.stages.post_retrieval.unsaid import (
    UNSURE,
    is_users,
    may_be_told,
    said_again,
    what_became,
)
from supervisor_memory.stages.retrieval.search import found_by
from supervisor_memory.understand.digest import Line, Said, Section, digest, is_open, phrased
from supervisor_memory.understand.questions import Opening, Wish, opening

DIGEST: Final = "digest"
"""The part of a hit that tells the digest of a session."""
_SESSIONS, _MESSAGES, _OF_A_SESSION = 50, 100, 200
_DIGESTED_NOW = 3  # the latest; others wait for the background
_MOST_TOKENS, _A_LINE = 230, 130
"""Tokens of all digests of a note, and of the one line that a greeting brings."""
_MOST_OF_A_NOTE, _FRAME, _FRAME_OF_A_LINE = 300, 60, 18
"""Tokens of a whole note that tells a digest, of the words around its lines, and of what leads in a line."""
_LEAST_COVERED, _LEAST_ALIKE = 0.5, 0.7
"""The share of a topic that a session has, or how alike it is in meaning, for the session to be meant."""
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

    @classmethod
    def of(cls, id_: str, lines: Iterable[Line], at: float, record: Record) -> "_Session":
        kept = tuple(lines)
        name = str(record.metadata.get("name") or "")
        text = " ".join((name, *(line.text for line in kept)))
        return cls(id_, kept, at, record, frozenset((*terms(text), *filter(has_cjk, text))))


def with_digest(plan: Recalling, view: ReadStore) -> Recalling | None:
    """The note's hits with the digest of the session that is gone on with; None: nothing is gone on with."""
    found = opening(plan.turn.text)
    if found is None or not _is_first(plan, view):
        return None
    sessions = sorted(_sessions(plan, view), key=lambda each: -each.at)
    hits = [*_told(_chosen(found, sessions, plan, view), found, plan, view)]
    if not hits:
        return None
    rest = plan.hits if found.topic else [hit for hit in plan.hits if "standing" in hit.parts]
    return replace(plan, hits=replace(plan.hits, items=(*hits, *_fitting_beside(hits, rest, view))))


def _fitting_beside(hits: Sequence[Hit], rest: Iterable[Hit], view: ReadStore) -> Iterator[Hit]:
    """The other hits for which a first note has room beside the digest."""
    left = _MOST_OF_A_NOTE - _FRAME - sum(_size(hit, view) for hit in hits)
    for hit in rest:
        if (cost := _size(hit, view)) <= left:
            left -= cost
            yield hit


def _size(hit: Hit, view: ReadStore) -> int:
    return view.count_tokens(hit.excerpt or hit.record.content) + _FRAME_OF_A_LINE


def _chosen(
    found: Opening, sessions: Sequence[_Session], plan: Recalling, view: ReadStore
) -> Sequence[_Session]:
    """The session that is told: the one that the words are about, else the latest that is not finished."""
    if (found.topic or found.unsure) and (about := _about(found, sessions, plan, view)):
        return about
    if found.topic and not (found.is_bare or _says_how(found, sessions, plan)):
        return ()
    latest = _latest(sessions, found.wants)
    return [each for each in latest if _covers(each.words, found.asks, sessions) >= _LEAST_COVERED]


def _says_how(found: Opening, sessions: Sequence[_Session], plan: Recalling) -> bool:
    """Whether the topic is one word that no session has, in words that go on and ask nothing: "briefly"."""
    is_new = not any(frozenset(found.topic) & each.words for each in sessions)
    return found.wants == "go-on" and len(found.topic) == 1 and is_new and not _is_asked(plan)


def _is_asked(plan: Recalling) -> bool:
    return plan.turn.text.rstrip().endswith(("?", "？"))


def _is_first(plan: Recalling, view: ReadStore) -> bool:
    """Whether nothing else was said in this thread before."""
    scope = plan.turn.scope
    said = view.list(Filter(scope.user_id, families=(SESSION_FAMILY,), session_id=scope.session_id), limit=2)
    return all(is_users(each) and each.content in plan.turn.text for each in said)


def _sessions(plan: Recalling, view: ReadStore) -> Iterator[_Session]:
    """The earlier sessions of the user: those digested, and the latest that were not, or have gone on."""
    scope = plan.turn.scope
    of_user = Filter(scope.user_id, families=(SESSION_FAMILY,), tasks=scope.tasks)
    states = view.list(replace(of_user, families=(DIGEST_FAMILY,)), limit=_SESSIONS)
    known = {each.attribute: each for each in states if each.attribute and "until" in each.metadata}
    latest: dict[str, float] = {}
    for message in view.list(of_user, limit=_MESSAGES):
        if (id_ := message.source.session_id) and id_ != scope.session_id:
            latest[id_] = max(latest.get(id_, 0.0), message.created_at)
    behind = [id_ for id_, at in latest.items() if id_ not in known or known[id_].metadata["until"] < at]
    for id_ in sorted(behind, key=lambda each: -latest[each])[:_DIGESTED_NOW]:
        before = known.pop(id_, None)
        yield from _digested_now(replace(of_user, session_id=id_), before, view)
    for id_, state in known.items():
        if id_ != scope.session_id:
            yield _Session.of(id_, _told_lines(state), state.metadata["until"], state)


def lines_of(state: Record) -> Iterator[Line]:
    """The lines of a session's state, in the order in which they were said."""
    for each in state.metadata.get("lines") or ():
        yield Line(*each)


def _told_lines(state: Record) -> Iterator[Line]:
    """The lines of a session's state that a note may tell."""
    return (line for line in lines_of(state) if line.section != "topics")


def _digested_now(of_session: Filter, before: Record | None, view: ReadStore) -> Iterator[_Session]:
    until = before.metadata["until"] if before else None
    newest = [
        each
        for each in view.list(of_session, limit=_OF_A_SESSION)
        if until is None or each.created_at > until
    ]
    newest.sort(key=lambda each: (each.created_at, each.id))
    lines = digest(said_of(newest), tuple(_told_lines(before)) if before else ())
    if lines and newest:
        yield _Session.of(of_session.session_id or "", lines, newest[-1].created_at, before or newest[-1])


def said_of(messages: Iterable[Record]) -> list[Said]:
    """Session messages as a digest reads them, without those that may be another's words, or orders."""
    own = (each for each in messages if not each.metadata.get(UNSURE))
    return [Said(each.id, each.content, is_users(each)) for each in own]


def _latest(sessions: Sequence[_Session], wanted: Wish) -> Sequence[_Session]:
    """The latest session that is not finished, or has decided something; else, unless greeted, the latest."""
    if wanted == "decided":
        fitting = [each for each in sessions if any(line.section == "decided" for line in each.lines)]
    else:
        fitting = [each for each in sessions if is_open(each.lines)]
    return (fitting or ([] if wanted == "greeting" else sessions))[:1]


def _about(
    found: Opening, sessions: Sequence[_Session], plan: Recalling, view: ReadStore
) -> Sequence[_Session]:
    """The session that a topic is from, if any is."""
    alike, is_asked = _alike(plan, view), _is_asked(plan)
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
    return sorted(fitting, key=lambda each: -sum(evidence[each.id]))[:1]


def _alike(plan: Recalling, view: ReadStore) -> Mapping[str, float]:
    """Session id → how alike its messages are to the turn's words, in [0, 1]."""
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
    """The share of terms that a session has, by how rare they are among sessions; 1 where none is asked.

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
    """Whether a pair of Chinese characters begins or ends in the middle of a word that sessions have."""
    return has_cjk(pair) and any(each[-1:] == pair[0] or each[0] == pair[-1] for each in known)


def _told(chosen: Sequence[_Session], found: Opening, plan: Recalling, view: ReadStore) -> Iterator[Hit]:
    """A hit for each session that is told, with the lines of most worth as its excerpt."""
    wanted, topic = found.wants, frozenset(found.topic)
    tongue, left = language(plan.turn.text), _A_LINE if wanted == "greeting" else _MOST_TOKENS
    left = min(left, view.settings.max_context_tokens // 2)
    for session in chosen:
        may = _tellable(session.lines, plan.turn.scope.agent_id, view)
        picked: list[Line] = []
        for line in _by_worth(may, wanted, topic):
            if (cost := view.count_tokens(line.text) + 2) <= left:
                picked.append(line)
                left -= cost
        told = [replace(line, text=clean(line.text)) for line in may if line in picked]
        text = phrased(told, tongue)
        if text and (wanted != "greeting" or is_open(picked)):
            when = replace(session.record, updated_at=session.at)
            yield Hit(when, 1.0, {DIGEST: 1.0, "relevance": 1.0, "fused": 1.0}, found=DIGEST, excerpt=text)


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
        each for each in still_true(lines, messages, view) if _is_heard(messages[each.message_id], agent_id)
    ]
    told = [Hit(messages[each.message_id], excerpt=each.text) for each in kept]
    hidden = [each for id_, each in messages.items() if id_ not in {line.message_id for line in kept}]
    gone = set(said_again(told, hidden, view, answers_deleted=bool(hidden)))
    return [each for each in kept if each.message_id not in gone]


def _is_heard(message: Record, agent_id: str | None) -> bool:
    return is_users(message) or agent_id in (None, message.source.speaker)


def messages_of(lines: Sequence[Line], view: ReadStore) -> Mapping[str, Record]:
    """Id → message, of those messages of the lines that are still there."""
    ids = tuple(dict.fromkeys(line.message_id for line in lines))
    return {each.id: each for each in view.list(Filter(ids=ids), limit=len(ids))} if ids else {}


def still_true(lines: Sequence[Line], messages: Mapping[str, Record], view: ReadStore) -> list[Line]:
    """The lines whose message is there and was not replaced, retracted, refused or set aside since."""
    untold = what_became([*messages.values()], view).untold
    held = [each for each in lines if each.message_id in messages and each.message_id not in untold]
    return [each for each in held if may_be_told(messages[each.message_id], each.text, requests=True)]
