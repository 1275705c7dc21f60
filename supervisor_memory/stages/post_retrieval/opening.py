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
from supervisor_memory.language.terms import language, terms
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
from supervisor_memory.understand.digest import Line, Said, Section, digest, is_open
from supervisor_memory.understand.questions import Resuming, resumes, topic_of
from supervisor_memory.understand.statements import read_statements, sentences

DIGEST: Final = "digest"
"""The part of a hit that tells the digest of a session."""
_SESSIONS, _MESSAGES, _OF_A_SESSION = 50, 100, 200
_MOST_TOKENS, _A_LINE = 230, 70
"""Tokens of all digests of a note, and of the one line that a greeting brings."""
_LEAST_COVERED = 0.5
_LEAST_ALIKE = 0.55
_CANDIDATES = 20
_LABELS: Final[Mapping[Section, Mapping[str, str]]] = {
    "asked": {"en": "Asked:", "zh": "要求："},
    "preferences": {"en": "Wished:", "zh": "偏好："},
    "learned": {"en": "Found:", "zh": "发现："},
    "done": {"en": "Done:", "zh": "完成："},
    "decided": {"en": "Decided:", "zh": "决定："},
    "next": {"en": "Open:", "zh": "未完："},
}
_FIRST: Final[Mapping[Resuming, Sequence[Section]]] = {
    "greeting": ("next",),
    "go-on": ("next", "decided", "done", "learned", "asked", "preferences"),
    "decided": ("decided", "next", "learned", "done", "asked", "preferences"),
}


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
        return cls(id_, kept, at, record, frozenset(terms(" ".join((name, *(line.text for line in kept))))))


def with_digest(plan: Recalling, view: ReadStore) -> Recalling | None:
    """The note's hits with the digest of the session that is gone on with; None: nothing is gone on with."""
    turn = plan.turn
    wanted = resumes(turn.text)
    if wanted is None or not _is_first(plan, view):
        return None
    sessions = sorted(_sessions(plan, view), key=lambda each: -each.at)
    topic = () if wanted == "greeting" else topic_of(turn.text, wanted)
    if topic:
        chosen = _about(topic, sessions, plan, view)
    elif _asks_more(turn.text, wanted):
        return None
    else:
        chosen = _latest(sessions, wanted)
    hits = [*_told(chosen, wanted, frozenset(topic), plan, view)]
    if not hits:
        return None
    rest = [hit for hit in plan.hits if "standing" in hit.parts or wanted == "decided" or topic]
    return replace(plan, hits=replace(plan.hits, items=(*hits, *rest)))


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
    for id_, at in latest.items():
        before = known.get(id_)
        if before is None or before.metadata["until"] < at:
            known.pop(id_, None)
            yield from _digested_now(replace(of_user, session_id=id_), before, view)
    for id_, state in known.items():
        if id_ != scope.session_id:
            yield _Session.of(id_, lines_of(state), state.metadata["until"], state)


def lines_of(state: Record) -> Iterator[Line]:
    """The lines of a session's state, in the order in which they were said."""
    for each in state.metadata.get("lines") or ():
        yield Line(*each)


def _digested_now(of_session: Filter, before: Record | None, view: ReadStore) -> Iterator[_Session]:
    until = before.metadata["until"] if before else None
    newest = [each for each in view.list(of_session, limit=_OF_A_SESSION) if until is None or each.created_at > until]
    newest.sort(key=lambda each: (each.created_at, each.id))
    lines = digest(said_of(newest), tuple(lines_of(before)) if before else ())
    if lines and newest:
        yield _Session.of(of_session.session_id or "", lines, newest[-1].created_at, before or newest[-1])


def said_of(messages: Iterable[Record]) -> list[Said]:
    """Session messages as a digest reads them, without those that may be another's words, or orders."""
    own = (each for each in messages if not each.metadata.get(UNSURE))
    return [Said(each.id, each.content, is_users(each)) for each in own]


def _asks_more(text: str, wanted: Resuming) -> bool:
    """Whether a text that names no earlier topic asks something else besides."""
    return wanted == "go-on" and any(
        resumes(each) is None and len(set(terms(each))) > 1
        for each in sentences(text)
        if any(one.does == "asks" or one.reason == "task" for one in read_statements(each).all)
    )


def _latest(sessions: Sequence[_Session], wanted: Resuming) -> Sequence[_Session]:
    """The latest session that is not finished, or has decided something; else, unless greeted, the latest."""
    if wanted == "decided":
        fitting = [each for each in sessions if any(line.section == "decided" for line in each.lines)]
    else:
        fitting = [each for each in sessions if is_open(each.lines)]
    return (fitting or ([] if wanted == "greeting" else sessions))[:1]


def _about(
    topic: Sequence[str], sessions: Sequence[_Session], plan: Recalling, view: ReadStore
) -> Sequence[_Session]:
    """The session that a topic is from, if any is."""
    heard: dict[str, set[str]] = {}
    alike: dict[str, float] = {}
    if plan.query is not None:
        query = replace(plan.query, where=replace(plan.query.where, families=(SESSION_FAMILY,)), parts=())
        for hit in rank(replace(plan, query=query, hits=found_by(query, limit=_CANDIDATES, view=view)), view).hits:
            id_ = hit.record.source.session_id or ""
            heard.setdefault(id_, set()).update(terms(hit.record.content))
            alike[id_] = max(alike.get(id_, 0.0), hit.parts.get("sim", 0.0))
    words = {each.id: each.words | heard.get(each.id, set()) for each in sessions}
    count = Counter(chain.from_iterable(words.values()))
    weight = {each: math.log(1 + (1 + len(sessions)) / (0.5 + count[each])) for each in topic}
    covered = {
        id_: sum(weight[each] for each in topic if each in held) / sum(weight.values()) for id_, held in words.items()
    }
    fitting = [
        each for each in sessions if covered[each.id] >= _LEAST_COVERED or alike.get(each.id, 0.0) >= _LEAST_ALIKE
    ]
    fitting.sort(key=lambda each: -(covered[each.id] + alike.get(each.id, 0.0)))
    return fitting[:1]


def _told(
    chosen: Sequence[_Session], wanted: Resuming, topic: frozenset[str], plan: Recalling, view: ReadStore
) -> Iterator[Hit]:
    """A hit for each session that is told, with the lines of most worth as its excerpt."""
    tongue, left = language(plan.turn.text), _A_LINE if wanted == "greeting" else _MOST_TOKENS
    left = min(left, view.settings.max_context_tokens // 2)
    for session in chosen:
        may = _tellable(session.lines, plan.turn.scope.agent_id, view)
        picked: list[Line] = []
        for line in _by_worth(may, wanted, topic):
            if (cost := view.count_tokens(line.text) + 2) <= left:
                picked.append(line)
                left -= cost
        text = _phrased([line for line in may if line in picked], tongue)
        if text and (wanted == "decided" or is_open(picked) or wanted == "go-on"):
            when = replace(session.record, updated_at=session.at)
            yield Hit(when, 1.0, {DIGEST: 1.0, "relevance": 1.0, "fused": 1.0}, found=DIGEST, excerpt=text)


def _by_worth(lines: Sequence[Line], wanted: Resuming, topic: frozenset[str]) -> Sequence[Line]:
    order = _FIRST[wanted]
    place = {id(line): number for number, line in enumerate(lines)}
    first = next((line for line in lines if line.section == "asked"), None)

    def worth(line: Line) -> tuple[float, int]:
        rank_ = float(order.index(line.section)) if line.section in order else len(order)
        if wanted == "decided":
            rank_ -= 2 * len(topic & frozenset(terms(line.text))) / (len(topic) or 1)
        elif line is first:
            rank_ = 0.5  # what it was about
        return rank_, -place[id(line)]

    return sorted((each for each in lines if each.section in order or each is first), key=worth)


def _tellable(lines: Sequence[Line], agent_id: str | None, view: ReadStore) -> Sequence[Line]:
    """The lines whose message may still be told, to this reader."""
    ids = tuple(dict.fromkeys(line.message_id for line in lines))
    messages = {each.id: each for each in view.list(Filter(ids=ids), limit=len(ids))} if ids else {}
    untold = what_became([*messages.values()], view).untold
    heard = {
        id_
        for id_, each in messages.items()
        if id_ not in untold and (is_users(each) or agent_id in (None, each.source.speaker))
    }
    kept = [each for each in lines if each.message_id in heard and may_be_told(messages[each.message_id], each.text, requests=True)]
    hidden = [each for id_, each in messages.items() if id_ in untold]
    told = [Hit(messages[each.message_id], excerpt=each.text) for each in kept]
    gone = set(said_again(told, hidden, view))
    return [each for each in kept if each.message_id not in gone]


def _phrased(lines: Sequence[Line], tongue: str) -> str:
    parts = []
    for section, label in _LABELS.items():
        if told := [clean(line.text) for line in lines if line.section == section]:
            parts.append(f"{label[tongue]} {' '.join(told)}")
    return " ".join(parts)
