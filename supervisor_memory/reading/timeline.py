"""The timeline of a user: what was said, learned, changed and decided between two entries, by session.

It is read off messages, the versions of records and digests; nothing is kept for it. docs/timeline.md has its
page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from supervisor_memory.model.records import Filter, Record, Status
from supervisor_memory.ports import Ports, ReadStore
from supervisor_memory.stages.post_retrieval.resumed_session import (
    is_heard,
    lines_of,
    messages_of,
    still_true,
)
from supervisor_memory.stores.protocol import SessionRow
from supervisor_memory.stores.sessions import count_said, list_sessions, said_last, states_of
from supervisor_memory.upkeep.sessions import every

What: TypeAlias = Literal["said", "learned", "changed", "decided"]
_TOLD: Final[tuple[Status, ...]] = ("active", "stale", "compressed")
_PAGE: Final = 1_000
_TOGETHER: Final = 500
_MOST_NOTES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that happened in a session.

    Args:
        at: When it was said, in seconds since 1970.
        what: "said": a message; "learned": a record; "changed": a record that said something else before;
            "decided": a sentence that the session's digest has as a decision.
        id: Of the record; of what was said, and of a decision that no record tells in the same words, of the
            message.
        text: What was said, or what the record said from then on.
        before: What a changed record said until then.
        status: Of a record, what it is now: "stale" and "compressed" are told no more.
    """

    at: float
    what: What
    id: str
    text: str
    agent_id: str | None = None
    before: str | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The tokens of notes, and of the messages that they stand for.

    Args:
        notes: How many were given.
        tokens: Of the notes.
        sources: Of the messages, whole, that the records in a note were read from, each once a note.
    """

    notes: int = 0
    tokens: int = 0
    sources: int = 0

    @property
    def spared(self) -> int:
        """How many tokens fewer the notes have than the messages behind them; negative: more."""
        return self.sources - self.tokens

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.notes + other.notes, self.tokens + other.tokens, self.sources + other.sources)

    def to_dict(self) -> dict[str, int]:
        """As JSON has it."""
        return {**asdict(self), "spared": self.spared}


@dataclass(frozen=True, slots=True)
class Chapter:
    """A session in a timeline.

    Args:
        session: Its row: who spoke, when, under which name.
        said: How many of its messages are of the period.
        entries: In order.
        earlier: When more was said in the period than is told here: what to pass as `until`, with this
            session's id, to be told what comes before. None: it is told from the period's beginning.
        costs: Reader → what its notes cost in this session in the time that is told; None is the supervisor.
    """

    session: SessionRow
    said: int
    entries: tuple[Entry, ...] = ()
    earlier: float | None = None
    costs: Mapping[str | None, Cost] = field(default_factory=dict)

    @property
    def day(self) -> str:
        """The day of its newest message, in UTC."""
        return datetime.fromtimestamp(self.session.last_at, UTC).date().isoformat()

    @property
    def cost(self) -> Cost:
        """What the notes of all its readers cost."""
        return sum(self.costs.values(), Cost())

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        row = self.session
        return {
            **{name: getattr(row, name) for name in ("session_id", "user_id", "name", "status")},
            **{"agents": list(row.agents), "first_at": row.first_at, "last_at": row.last_at},
            "day": self.day,
            "said": self.said,
            "entries": [asdict(each) for each in self.entries],
            "earlier": self.earlier,
            "cost": self.cost.to_dict(),
            "costs": [{"agent_id": who, **each.to_dict()} for who, each in self.costs.items()],
            "cursor": row.cursor,
        }


def timeline(
    where: Filter,
    ports: Ports,
    *,
    limit: int,
    messages: int,
    after: tuple[float, str, str] | None = None,
    with_said: bool = False,
) -> list[Chapter]:
    """The sessions that match, the one with the newest message first, with what happened in each.

    Args:
        where: The user; a session, where it is named; an agent, for the sessions that it spoke in, with the
            user's words and its own; and the period.
        messages: The most of a session that is told of, the newest.
        with_said: Whether messages are entries, too.

    Raises:
        BackendError, DeadlineExceeded: the store failed, or is out of reach.
    """
    rows = ports.store(list_sessions, ports.services.backend, where, limit=limit, after=after)
    return [_chapter(row, where, ports, most=messages, with_said=with_said) for row in rows]


def _chapter(row: SessionRow, where: Filter, ports: Ports, *, most: int, with_said: bool) -> Chapter:
    period = Filter(row.user_id, session_id=row.session_id, since=where.since, until=where.until)
    messages, earlier = _newest(period, ports, most=most)
    told_of = replace(period, since=period.since if earlier is None else earlier)
    heard = {id_: each for id_, each in messages.items() if is_heard(each, where.agent_id)}
    own = (None, where.agent_id)
    found = _of_records(told_of, messages, ports)
    entries = [each for each in found if where.agent_id is None or each.agent_id in own]
    decided = {each.text: each for each in _decided(row, heard, ports.read_store())}
    told = {each.text for each in entries}
    entries = [
        replace(each, what="decided") if each.what == "learned" and each.text in decided else each
        for each in entries
    ]
    entries += [each for text, each in decided.items() if text not in told]
    if with_said:
        entries += [_said_entry(each) for each in heard.values()]
    order: tuple[What, ...] = ("said", "learned", "changed", "decided")
    entries.sort(key=lambda each: (each.at, order.index(each.what), each.id))
    said = len(messages) if earlier is None else _count(row, period, ports)
    return Chapter(row, said, tuple(entries), earlier, _costs(told_of, ports))


def _newest(period: Filter, ports: Ports, *, most: int) -> tuple[Mapping[str, Record], float | None]:
    """The newest messages of a period, by id, and when the first of them was said if there are earlier ones.

    Messages that were said at one moment are not parted, however many they are.
    """
    newest = ports.store(said_last, ports.services.backend, period, limit=most + 1)
    earlier = None
    if len(newest) > most:
        cut = newest[-1].created_at
        earlier = min((each.created_at for each in newest if each.created_at > cut), default=cut)
        if earlier == cut:
            of_a_moment = replace(period, since=cut, layers=("history",))
            newest = list(every(of_a_moment, ports))
        if not ports.store(said_last, ports.services.backend, replace(period, until=earlier), limit=1):
            earlier = None
    kept = (each for each in newest if earlier is None or each.created_at >= earlier)
    return {each.id: each for each in kept}, earlier


def _count(row: SessionRow, period: Filter, ports: Ports) -> int:
    """Count a session's messages within a period; the store counts only whole sessions."""
    begins, ends = period.since, period.until
    if (begins is None or begins <= row.first_at) and (ends is None or row.last_at < ends):
        return row.messages
    return ports.store(count_said, ports.services.backend, period)


def _said_entry(message: Record) -> Entry:
    return Entry(message.created_at, "said", message.id, message.content, message.source.agent_id)


def _of_records(period: Filter, messages: Mapping[str, Record], ports: Ports) -> Iterable[Entry]:
    """Entries of a session's records, whether read from its messages or not."""
    ids = list(messages)
    found = {each.id: each for each in every(replace(period, layers=("abstract",), statuses=_TOLD), ports)}
    for start in range(0, len(ids), _TOGETHER):
        some = tuple(ids[start : start + _TOGETHER])
        told = Filter(period.user_id, ref_ids=some, layers=("abstract",), statuses=_TOLD)
        found |= {each.id: each for each in every(told, ports)}
    for record in found.values():
        if record.version == 1:
            versions: Sequence[Record] = [record]
        else:
            versions = ports.store(ports.services.backend.versions, record.id)
        yield from _of_versions(record, versions, period, messages)


def _of_versions(
    now: Record, versions: Sequence[Record], period: Filter, messages: Mapping[str, Record]
) -> Iterable[Entry]:
    before: Record | None = None
    for each in versions:
        is_new = before is None or each.content != before.content
        source = messages.get(each.ref_id or "")
        if is_new and (source is not None or _is_unsaid(each, before, period)):
            at = source.created_at if source else each.created_at
            what: What = "learned" if before is None else "changed"
            told = before.content if before else None
            yield Entry(at, what, now.id, each.content, each.source.agent_id, told, now.status)
        before = each


def _is_unsaid(first: Record, before: Record | None, period: Filter) -> bool:
    """Whether a first version comes from the session, but from no message that was kept."""
    of_session = before is None and first.ref_id is None and first.source.session_id == period.session_id
    return of_session and (
        (period.since is None or period.since <= first.created_at)
        and (period.until is None or first.created_at < period.until)
    )


def _decided(row: SessionRow, messages: Mapping[str, Record], view: ReadStore) -> Iterable[Entry]:
    for state in view.list(states_of(row.user_id, row.session_id), limit=_PAGE) if row.is_digested else ():
        lines = [
            each for each in lines_of(state) if each.section == "decided" and each.message_id in messages
        ]
        for each in still_true(lines, messages_of(lines, view), view):
            said = messages[each.message_id]
            yield Entry(said.created_at, "decided", said.id, each.text, said.source.agent_id)


def _costs(told_of: Filter, ports: Ports) -> Mapping[str | None, Cost]:
    """Reader → what its notes cost in a session and time."""
    log, user_id, session = ports.services.backend.audit, told_of.user_id or "", told_of.session_id or ""
    if log.session_name(user_id, session) is None:
        return {}
    given = partial(log.notes, user_id=user_id, session_ids=[session], op="inject")
    notes = ports.store(given, _MOST_NOTES, since=told_of.since, until=told_of.until)
    sources = _sources({id_ for note in notes for each in note.shown for id_ in each.source_ids}, ports)
    costs: dict[str | None, Cost] = {}
    for note in notes:
        behind: dict[str, int] = {}
        for id_ in (id_ for each in note.shown for id_ in each.source_ids):
            behind |= sources.get(id_, {})
        one = Cost(1, note.tokens or 0, sum(behind.values()))
        costs[note.agent_id] = costs.get(note.agent_id, Cost()) + one
    return costs


def _sources(ids: Iterable[str], ports: Ports) -> Mapping[str, Mapping[str, int]]:
    """Record → the messages it was read from, with their tokens; a message stands for itself."""
    records = _records_by_id(ids, ports)
    links = {each.id: _read_from(each) for each in records.values() if each.layer != "history"}
    messages = _records_by_id({ref for refs in links.values() for ref in refs}, ports)
    messages |= {id_: each for id_, each in records.items() if each.layer == "history"}
    tokens = {id_: ports.services.count_tokens(each.content) for id_, each in messages.items()}
    return {id_: {ref: tokens[ref] for ref in links.get(id_, (id_,)) if ref in tokens} for id_ in records}


def _read_from(record: Record) -> Sequence[str]:
    """Ids of the messages a record was read from; for a digest, of all its lines."""
    lines = dict.fromkeys(line.message_id for line in lines_of(record))
    return tuple(lines) or record.present_ref_ids


def _records_by_id(ids: Iterable[str], ports: Ports) -> dict[str, Record]:
    wanted = list(ids)
    found: dict[str, Record] = {}
    for start in range(0, len(wanted), _PAGE):
        page = ports.store(ports.services.backend.get, wanted[start : start + _PAGE])
        found |= {each.id: each for each in page}
    return found
