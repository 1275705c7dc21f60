"""Forget by rule: expired records, long merged ones, too many of a kind, too many for the capacity.

Each rule first plans its records of a user, then sets them aside, at most 500 per commit. Each record is read
again before its commit; if it was changed since the plan, it is left for the next run. So a run may be cut
off anywhere, repeated, or done by two processes at once. Nothing is lost: each record keeps its versions, and
can be restored from them.
"""

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from supervisor_memory.errors import BackendUnavailable, Conflict, RecordNotFound, WasErased
from supervisor_memory.model.records import (
    SESSION_FAMILY,
    AuditEvent,
    Filter,
    Kind,
    Namespace,
    Record,
    Source,
    SourceClass,
    Status,
    new_id,
)
from supervisor_memory.ports import Deciding, Ports, Services
from supervisor_memory.stages.insert.again import FORGET
from supervisor_memory.stages.post_retrieval.quotable import hides, with_said_kept
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY, importance
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.compact import COMPRESSED_FROM, COMPRESSED_INTO, Summary, sources_of, summaries
from supervisor_memory.upkeep.rules import (
    BY_HAND,
    KEPT_NEWEST,
    MERGED_TOGETHER,
    Extent,
    Planned,
    Rule,
    can_be_merged,
    is_kept,
    is_worn_out,
    worth,
)

RUN: Final = "memory.forget"
"""The operation of the audit row that ends a run, with the number of records for each rule."""

T = TypeVar("T")
_PAGE: Final = 5_000
_TOGETHER: Final = 500
_MOST_TAGS: Final = 20
_SECONDS: Final = 300.0
_BY_TRUST: Final[tuple[SourceClass, ...]] = ("tool", "system", "agent", "user")
_Group: TypeAlias = Sequence[Planned]
"""Records of one namespace and kind, oldest first, that become a summary together."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a run or, in a dry run, its plan.

    Attributes:
        taken: The records taken, each with its rule and the reason.
        summaries: The ids of new summaries; empty in a dry run.
        left: The ids of records that were changed meanwhile, or did not fit into a summary.
        free: The free places of each namespace that was checked against MEMORY_CAPACITY.
    """

    taken: tuple[Planned, ...] = ()
    summaries: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    free: Mapping[Namespace, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Rule → the number of records it takes."""
        return dict(Counter(each.rule for each in self.taken))

    def __str__(self) -> str:
        lines = [f"{each.rule}: {each.record_id} ({each.kind}), {each.why}" for each in self.taken]
        return "\n".join(lines) or "nothing to forget"


def forget(
    services: Services,
    user_id: str | None,
    *,
    dry_run: bool = False,
    extent: Extent = BY_HAND,
    actor: str = "operator",
    seconds: float = _SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Forgotten:
    """Apply the rules to a user's records, or to everybody's, one user after the other.

    Args:
        dry_run: Only return the plan. No model is asked; with a model, a real run may merge more.
        extent: The rules to apply, and their limits.
        seconds: The deadline of each step.
        progress: Told after each page how many records were read, and how many there are; each rule reads
            those that it looks at, so that more may be read than there are.

    Raises:
        BackendUnavailable: the store is out of reach, and this machine's copy may be old.
        BackendError, DeadlineExceeded: the store failed; finished commits stay.
    """
    run = _Run(services, extent, actor, seconds, dry_run=dry_run)
    run.tell(progress, user_id)
    for each in [user_id] if user_id is not None else run.users():
        run.of_user(each)
    if not dry_run:
        run.end(user_id)
    return Forgotten(tuple(run.taken), tuple(run.summaries), tuple(run.left), run.free)


class _Run:
    def __init__(
        self, services: Services, extent: Extent, actor: str, seconds: float, *, dry_run: bool
    ) -> None:
        self._services, self._extent, self._actor, self._seconds = services, extent, actor, seconds
        self._settings, self._dry_run = services.settings, dry_run
        self._now = services.clock()
        self._most_tokens = 3 * self._settings.max_context_tokens // 4  # so that a note holds it and more
        self.taken: list[Planned] = []
        self.summaries: list[str] = []
        self.left: list[str] = []
        self.free: dict[Namespace, int] = {}
        self._gone: set[str] = set()
        self._progress: Callable[[int, int], None] | None = None
        self._read = self._whole = 0

    def tell(self, progress: Callable[[int, int], None] | None, user_id: str | None) -> None:
        """Tell from now on how far it is."""
        if progress is not None:
            wheres = _with_messages(Filter(user_id, statuses=None))
            self._progress, self._whole = progress, sum(self._count(where) for where in wheres)

    def users(self) -> Sequence[str]:
        """All users with a record, in order."""
        wheres = Filter(statuses=None).everywhere()
        return sorted({record.user_id for where in wheres for record in self._all_matching(where)})

    def of_user(self, user_id: str) -> None:
        """Apply the rules to a user's records, one after the other."""
        rules = self._extent.rules
        if "expired" in rules:
            self._set_aside(self._expired(user_id))
        if "compressed-for-long" in rules:
            self._set_aside(self._compressed_for_long(user_id))
        if "compacted" in rules:
            for group in self._too_many(user_id):
                self._merge(group)
        if "decayed" in rules and self._settings.forget_decayed:
            self._set_aside(self._worn_out(user_id))
        if "over-capacity" in rules:
            self._set_aside(self._over_capacity(user_id))

    def end(self, user_id: str | None) -> None:
        """Write the audit row of the run; a background run without results writes none."""
        if self._extent is BY_HAND or self.taken:
            detail = {"records": len(self.taken), "left": len(self.left), **_counted(self.taken)}
            event = AuditEvent(RUN, user_id=user_id, actor=self._actor, detail=detail)
            self._ports().deciding().commit(Commit(audit=(event,)))

    # The records each rule takes

    def _expired(self, user_id: str) -> Iterator[Planned]:
        for where in _with_messages(Filter(user_id, statuses=("active", "stale"), expired_by=self._now)):
            for record in self._oldest(where):
                yield _planned(record, "expired", f"expired {_day(record.expires_at or 0.0)}")

    def _compressed_for_long(self, user_id: str) -> Iterator[Planned]:
        days = self._settings.compressed_days
        for record in self._oldest(Filter(user_id, statuses=("compressed",))):
            if self._now - record.updated_at >= days * SECONDS_A_DAY:
                why = f"merged {_day(record.updated_at)}, over {days:g} days ago"
                yield _planned(record, "compressed-for-long", why)

    def _too_many(self, user_id: str) -> Iterator[_Group]:
        """The oldest records of kinds with too many in a namespace, in groups of thirty."""
        limits = {kind: most for kind, most in self._settings.compact_over.items() if most}
        where = Filter(user_id, kinds=tuple(limits), layers=("abstract",))
        if not limits or self._count(where) <= min(limits.values()):
            return
        alike: defaultdict[tuple[Namespace, Kind], list[tuple[float, Planned | None]]] = defaultdict(list)
        for record in self._visible(where):
            mine = alike[record.namespace, record.kind]
            mine.append((record.updated_at, self._for_a_summary(record)))
        for (_, kind), each in alike.items():
            yield from self._groups(each, kind, limits[kind])

    def _for_a_summary(self, record: Record) -> Planned | None:
        """Plan to merge a record into a summary; None if it may not be merged."""
        settled = self._now - record.updated_at >= self._extent.settled_days * SECONDS_A_DAY
        can_be = settled and can_be_merged(record, most_tokens=self._most_tokens)
        return _planned(record, "compacted", "") if can_be else None

    def _groups(self, each: list[tuple[float, Planned | None]], kind: Kind, limit: int) -> Iterator[_Group]:
        total = len(each)
        each.sort(key=lambda pair: pair[0])
        old = [planned for _, planned in each[: max(0, total - KEPT_NEWEST)] if planned is not None]
        why = f"one of the oldest of {total:,} {kind} in {{}}, over {limit:,}"
        wanted = -(-max(0, total - limit) // MERGED_TOGETHER)
        if self._extent.groups is not None:
            wanted = min(wanted, self._extent.groups)
        for group in list(_batches(old, MERGED_TOGETHER))[:wanted]:
            yield [replace(one, why=why.format(one.namespace[0])) for one in group]

    def _worn_out(self, user_id: str) -> Iterator[Planned]:
        for where in _with_messages(Filter(user_id)):
            for page in _batches(self._visible(where), _PAGE):
                times = self._times_read(page)
                for record in page:
                    read = times.get(record.id, 0)
                    if is_worn_out(record, now=self._now, settings=self._settings, times_read=read):
                        days = int((self._now - record.updated_at) / SECONDS_A_DAY)
                        why = f"not changed for {days:,} days, never read, importance {importance(record):g}"
                        yield _planned(record, "decayed", why)

    def _over_capacity(self, user_id: str) -> Iterator[Planned]:
        for namespace in self._held_to_capacity(user_id):
            size, too_many = self._count(_of_namespace(namespace)), 0
            if size > self._settings.capacity:  # of those counted, some may have expired
                size = sum(1 for _ in self._visible(_of_namespace(namespace)))
            if size > self._settings.capacity:
                too_many = size - self._settings.capacity
                too_many += self._extent.spare * (self._settings.capacity // 100)
                yield from self._least_worth(namespace, size, too_many)
            self.free[namespace] = self._settings.capacity - size + too_many

    def _held_to_capacity(self, user_id: str) -> Collection[Namespace]:
        if self._extent.namespaces is not None:
            return self._extent.namespaces
        over = (
            each for each in _with_messages(Filter(user_id)) if self._count(each) > self._settings.capacity
        )
        return {record.namespace for where in over for record in self._visible(where)}

    def _least_worth(self, namespace: Namespace, size: int, too_many: int) -> Iterator[Planned]:
        """The `too_many` records of a namespace with the least worth; at equal worth the oldest."""
        ranked = heapq.nsmallest(too_many, self._valued(namespace), key=lambda v: v[:3])
        for value, _, _, planned in ranked:
            why = f"{size:,} active in {namespace[0]}, over {self._settings.capacity:,}; worth {value:.3f}"
            yield replace(planned, why=why)

    def _valued(self, namespace: Namespace) -> Iterator[tuple[float, float, str, Planned]]:
        for page in _batches(self._visible(_of_namespace(namespace)), _PAGE):
            times = self._times_read(page)
            for record in page:
                if not is_kept(record):
                    read = times.get(record.id, 0)
                    value = worth(record, now=self._now, settings=self._settings, times_read=read)
                    planned = _planned(record, "over-capacity", "")
                    yield value, record.updated_at, record.id, planned

    # Doing it

    def _set_aside(self, planned: Iterable[Planned]) -> None:
        """Mark records as deleted."""
        for chunk in _batches(list(planned), _TOGETHER):  # the whole plan first: commits shift later pages
            if self._dry_run:
                self._take(chunk)
            else:
                self._delete(chunk)

    def _take(self, planned: Iterable[Planned]) -> None:
        for each in planned:
            self.taken.append(each)
            self._gone.add(each.record_id)  # so that no other rule of a dry run plans it too

    def _delete(self, planned: Sequence[Planned]) -> None:
        """Delete in one commit; after a conflict in halves, so that only the conflicting record is left."""
        view = self._ports().deciding()
        records = self._as_planned(planned)
        if not records:
            return
        # To forget a record takes no words back; what was taken back before stays so.
        kept = (each if hides(each) else with_said_kept(each) for each in records.values())
        changes = tuple(
            Change(replace(r, status="deleted", updated_at=self._now, valid_to=self._now), expects=r.version)
            for r in kept
        )
        there = [each for each in planned if each.record_id in records]
        events = tuple(self._event(each, records[each.record_id], "deleted") for each in there)
        try:
            view.commit(Commit(changes, events))
        except (Conflict, RecordNotFound, WasErased):
            if len(there) == 1:
                self.left.append(there[0].record_id)
                return
            half = len(there) // 2
            self._delete(there[:half])
            self._delete(there[half:])
        else:
            self._take(there)

    def _merge(self, group: _Group) -> None:
        """Replace a group of records by summaries, in one commit."""
        view = self._ports().deciding()
        records = self._as_planned(group)
        found = summaries(
            sorted(records.values(), key=lambda r: (r.created_at, r.id)),
            most_tokens=self._most_tokens,
            count_tokens=self._services.count_tokens,
            complete=None if self._dry_run else view.complete,
        )
        merged = {record.id for each in found for record in each.of}
        there = [each for each in group if each.record_id in merged]
        if found and not self._dry_run:
            try:
                made = view.commit(self._commit(found, there, view)).records
            except (Conflict, RecordNotFound, WasErased):
                self.left += merged
                return
            self.summaries += [record.id for record in made if record.layer == "summary"]
        self._take(there)
        self.left += [id_ for id_ in records if id_ not in merged]

    def _commit(self, found: Sequence[Summary], planned: Sequence[Planned], view: Deciding) -> Commit:
        vectors = view.embed([each.text for each in found])
        name = view.embedder.fingerprint if view.embedder is not None else None
        changes: list[Change] = []
        events: list[AuditEvent] = []
        reasons = {each.record_id: each for each in planned}
        for each, vector in zip(found, vectors, strict=True):
            whole = self._summary(each)
            whole = replace(whole, vector=vector, embedder=None if vector is None else name)
            changes.append(Change(whole))
            events.append(self._added(whole))
            for record in each.of:
                metadata = {**record.metadata, COMPRESSED_INTO: whole.id}
                aside = replace(
                    record,
                    status="compressed",
                    metadata=metadata,
                    updated_at=self._now,
                    valid_to=self._now,
                )
                changes.append(Change(aside, expects=record.version))
                events.append(self._event(reasons[record.id], record, "compressed"))
        return Commit(tuple(changes), tuple(events))

    def _summary(self, summary: Summary) -> Record:
        """The record of a summary: as recent and important as its best source, as trusted as its worst."""
        sources = summary.of
        agents = {record.source.agent_id for record in sources}
        least = min((record.source.source_class for record in sources), key=_BY_TRUST.index)
        tags = dict.fromkeys(tag for record in sources for tag in record.tags)
        return Record(
            id=new_id(),
            namespace=sources[0].namespace,
            content=summary.text,
            kind=sources[0].kind,
            layer="summary",
            created_at=max(record.created_at for record in sources),
            updated_at=self._now,
            metadata={COMPRESSED_FROM: [record.id for record in sources]},
            tags=tuple(tags)[:_MOST_TAGS],
            importance=max(record.importance for record in sources),
            source=Source(least, agents.pop() if len(agents) == 1 else None),
        ).also_said_in(*(message for record in sources for message in record.present_ref_ids))

    def _as_planned(self, planned: Sequence[Planned]) -> dict[str, Record]:
        """The records with the planned version; the others are left."""
        versions = {each.record_id: each.version for each in planned}
        # By their ids alone: asked for in order of time, SQLite would walk all of the user's to find them.
        found = self._ports().store(self._services.backend.get, list(versions))
        same = {record.id: record for record in found if record.version == versions[record.id]}
        self.left += [id_ for id_ in versions if id_ not in same]
        return same

    def _event(self, planned: Planned, old: Record, status: Status) -> AuditEvent:
        return AuditEvent.of(
            FORGET,
            old,
            run_id=None,
            actor=self._actor,
            version_before=old.version,
            version_after=old.version + 1,
            before=old.content,
            reason=planned.rule,
            detail={"kind": old.kind, "status": status},
        )

    def _added(self, new: Record) -> AuditEvent:
        return AuditEvent.of(
            "add",
            new,
            source=Source(new.source.source_class, new.source.agent_id),
            actor=self._actor,
            version_after=1,
            after=new.content,
            reason="compacted",
            detail={"kind": new.kind, "records": len(sources_of(new))},
        )

    # Reading

    def _all_matching(self, where: Filter) -> Iterator[Record]:
        """All matching records, a page at a time; each once, even while others write."""
        while page := self._page(where, 0, _PAGE):
            yield from page
            if len(page) < _PAGE:
                return
            where = where.after(page[-1])

    def _visible(self, where: Filter) -> Iterator[Record]:
        """The matching records that a search may find and no rule has taken yet."""
        return (r for r in self._all_matching(where) if r.is_visible(self._now) and r.id not in self._gone)

    def _oldest(self, where: Filter) -> Iterable[Record]:
        """All matching records or, if a rule's number is limited, that many of the least recently updated."""
        most = self._extent.most
        if most is None:
            return self._all_matching(where)
        count = self._count(where)
        return self._page(where, max(0, count - most), most) if count else ()

    def _page(self, where: Filter, offset: int, limit: int) -> Sequence[Record]:
        ports = self._ports()
        page = ports.read_store().list(where, limit=limit, offset=offset)
        if ports.degraded:
            raise BackendUnavailable(
                "the store is out of reach, and what this machine knows of it may be old, so nothing is "
                "forgotten; try again later",
                reasons=ports.reasons,
            )
        self._read += len(page)
        if self._progress is not None:
            self._progress(self._read, self._whole)
        return page

    def _count(self, where: Filter) -> int:
        return self._ports().store(self._services.backend.count, where)

    def _times_read(self, records: Sequence[Record]) -> Mapping[str, int]:
        reads = self._ports().read_store().reads([record.id for record in records])
        return {record_id: each.times for record_id, each in reads.items()}

    def _ports(self) -> Ports:
        return Ports(self._services, seconds=self._seconds, now=self._now)


def _planned(record: Record, rule: Rule, why: str) -> Planned:
    return Planned(record.id, record.user_id, record.namespace, record.kind, record.version, rule, why)


def _with_messages(where: Filter) -> tuple[Filter, Filter]:
    """The filter, and the same for session messages, which a filter without families leaves out."""
    return where, replace(where, families=(SESSION_FAMILY,))


def _of_namespace(namespace: Namespace) -> Filter:
    family, user_id, *task = namespace
    return Filter(user_id, families=(family,), tasks=(task[0] if task else None,))


def _counted(taken: Iterable[Planned]) -> dict[str, int]:
    return dict(Counter(each.rule for each in taken))


def _batches(items: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(max(at, 0.0)))
