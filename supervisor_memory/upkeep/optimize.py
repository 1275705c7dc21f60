"""Run a recipe's chores over a user's store: plan, run, undo.

A chore plans and changes nothing (`flow.Chore`). What is done has a run's name in the audit log, by which all
of it can be undone for as long as nobody has changed the same records since.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from supervisor_memory.errors import Conflict, InvalidContent, RecordNotFound
from supervisor_memory.flow import Chore, Due, Recipe
from supervisor_memory.model.records import TIER, AuditEvent, Filter, Record, Source, Wanted, new_id
from supervisor_memory.ports import Ports, Services
from supervisor_memory.stages.insert.draft import embedded, with_vectors
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.upkeep.sessions import every

Doing: TypeAlias = Literal["add", "forget", "update"]
RUN: Final = "run"
"""The key in an audit row's `detail` for the run that a change belongs to."""
OPTIMIZE: Final = "optimize"
_SECONDS: Final = 300.0
_ROWS: Final = 1_000_000
_TOGETHER: Final = 200


@dataclass(frozen=True, slots=True)
class Step:
    """A change that a chore plans, or has made. `why` has nothing of the record's content."""

    chore: str
    doing: Doing
    record_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Optimized:
    """The result of a run.

    Args:
        run: Its name, by which `memory.upkeep.undo` undoes it; "" for a plan and where nothing was due.
        left: Ids of records that others changed meanwhile, so that nothing was done with them.
    """

    run: str
    steps: tuple[Step, ...]
    left: tuple[str, ...] = ()
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        steps = [{name: getattr(s, name) for name in Step.__slots__} for s in self.steps]
        return {"run": self.run, "dry_run": self.dry_run, "steps": steps, "left": [*self.left]}


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Runs the chores of a recipe."""

    services: Services
    recipe: Recipe

    def optimize(self, user_id: str, chores: Sequence[str] | None, *, dry_run: bool) -> Optimized:
        """Plan the chores in order and, unless it is a dry run, do what they plan; see `Upkeep.optimize`."""
        run, steps, left = new_id(), list[Step](), list[str]()
        for chore in self._chosen(chores):
            due = self._due(chore, user_id)
            if not dry_run:
                due, missed = self._commit_due(chore, due, run)
                left += missed
            steps += [_step(chore, each) for each in due]
        is_done = bool(steps) and not dry_run
        return Optimized(run if is_done else "", tuple(steps), tuple(left), dry_run)

    def status(self, user_id: str) -> dict[str, Any]:
        """The number of due changes of each chore, by a dry run; see `Upkeep.status`."""
        due = {chore.name: self._due(chore, user_id) for chore in self.recipe.upkeep}
        pending = next((name for name, each in due.items() if each), None)
        own, ports = Filter(user_id), self._ports()
        names = dict.fromkeys(name for chore in self.recipe.upkeep for name in chore.parts)
        tiers = {name: replace(own, metadata=(Wanted.of(TIER, name),)) for name in names}
        count = self.services.backend.count
        return {
            "recipe": self.recipe.name,
            "records": ports.store(count, own),
            "tiers": {name: ports.store(count, where) for name, where in tiers.items()},
            "due": {name: len(each) for name, each in due.items()},
            "pending_action": pending,
        }

    def undo(self, run: str, user_id: str) -> Optimized:
        """Undo a run; see `Upkeep.undo`."""
        ports = self._ports()
        log = self.services.backend.audit
        told = ports.store(log.tail, _ROWS, user_id=user_id)
        rows = [r for r in told if r.event["detail"].get(RUN) == run and r.event["op"] != "restore"]
        if not rows:
            raise RecordNotFound(f"no run {run[:64]!r} is in the audit log", id=run)
        spans: dict[str, tuple[int | None, int]] = {}  # a run may change a record twice
        for row in rows:
            id, event = row.record_id or "", row.event
            before = spans[id][0] if id in spans else event["version_before"]
            spans[id] = before, event["version_after"]
        steps, left = [], []
        for id, (before, after) in reversed(spans.items()):
            step = self._set_back(id, before, after, run=run, user_id=user_id)
            if step is None:
                left.append(id)
            else:
                steps.append(step)
        return Optimized(run, tuple(steps), tuple(left))

    def _chosen(self, names: Sequence[str] | None) -> Sequence[Chore]:
        known = {chore.name: chore for chore in self.recipe.upkeep}
        if names is None:
            return [*known.values()]
        if unknown := sorted(set(names) - set(known)):
            raise InvalidContent(
                f"recipe {self.recipe.name!r} has no chore {unknown[0]!r}; "
                f"it has {', '.join(known) or 'none'}",
                choices=tuple(known),
            )
        return [known[name] for name in names]

    def _due(self, chore: Chore, user_id: str) -> Sequence[Due]:
        ports = self._ports()
        due = [*chore.plan(user_id, ports.read_store())]
        if stranger := next((d for d in due if d.change.record.user_id != user_id), None):
            raise InvalidContent(
                f"chore {chore.name!r} plans to change a record of another user, so nothing was done",
                id=stranger.change.record.id,
            )
        return due

    def _commit_due(self, chore: Chore, due: Sequence[Due], run: str) -> tuple[Sequence[Due], Sequence[str]]:
        """Commit the due changes in parts; after a conflict a part is committed record by record."""
        done: list[Due] = []
        left: list[str] = []
        for start in range(0, len(due), _TOGETHER):
            part = due[start : start + _TOGETHER]
            try:
                self._commit(chore, part, run)
                done += part
            except Conflict:
                for each in part:
                    try:
                        self._commit(chore, [each], run)
                        done.append(each)
                    except (Conflict, RecordNotFound):
                        left.append(each.change.record.id)
        return done, left

    def _commit(self, chore: Chore, due: Sequence[Due], run: str) -> None:
        view = self._ports().deciding()
        known = [each.change.record.id for each in due if each.change.expects is not None]
        own = Filter(due[0].change.record.user_id, ids=tuple(known), statuses=None)
        there = {r.id: r for r in view.list(own, limit=len(known))} if known else {}
        events = [_event(chore, each, there.get(each.change.record.id), run) for each in due]
        view.commit(Commit(with_vectors([each.change for each in due], view), tuple(events)))

    def _set_back(self, id: str, before: int | None, after: int, *, run: str, user_id: str) -> Step | None:
        """Undo the changes of a record; None: somebody has changed the record since, or it is gone."""
        ports = self._ports()
        view = ports.deciding()
        own = Filter(user_id, ids=(id,), statuses=None)
        now = next(iter(view.list(own, limit=1)), None)
        if now is None or now.version != after:
            return None
        back = replace(now, status="deleted", updated_at=view.now, valid_to=view.now)
        if before is not None:
            versions = ports.store(self.services.backend.versions, now.id)
            then = next(each for each in versions if each.version == before)
            back = replace(then, updated_at=view.now, valid_to=None, embedder=now.embedder)
            if then.content_hash != now.content_hash:
                back = embedded(back, view)
        told = AuditEvent.of(
            "restore",
            now,
            actor="operator",
            version_before=now.version,
            version_after=now.version + 1,
            before=now.content,
            after=None if back.status == "deleted" else back.content,
            reason="undone",
            detail={"kind": now.kind, RUN: run},
        )
        try:
            view.commit(Commit((Change(back, expects=now.version),), (told,)))
        except Conflict:
            return None
        doing: Doing = "forget" if back.status == "deleted" else "update"
        return Step(OPTIMIZE, doing, now.id, "undone")

    def _ports(self) -> Ports:
        return Ports(self.services, seconds=_SECONDS, now=self.services.clock())


def kept_and_reread(services: Services, to: Recipe, user_id: str) -> Iterator[str]:
    """Tell what another recipe would do with a full store, as sentences for people; nothing is changed."""
    ports = Ports(services, seconds=_SECONDS, now=services.clock())
    count = ports.store(services.backend.count, Filter(user_id))
    derived = [r for where in Filter(user_id).everywhere() for r in every(where, ports) if r.made_from]
    yield f"{count:,} records stay as they are: a recipe changes how they are found, not what they say"
    if derived:
        yield f"{len(derived):,} of them were made from others by a recipe, and {to.name} finds them too"
    yield f"what {to.name} adds to a record is added to what is written from now on, not to what is there"
    for chore in to.upkeep:
        due = len([*chore.plan(user_id, ports.read_store())])
        yield f"the chore {chore.name} would change {due:,} records when `memory.optimize` runs"


def _step(chore: Chore, due: Due) -> Step:
    return Step(chore.name, _kind_of_change(due.change), due.change.record.id, due.why)


def _kind_of_change(change: Change) -> Doing:
    if change.expects is None:
        return "add"
    return "update" if change.record.status == "active" else "forget"


def _event(chore: Chore, due: Due, before: Record | None, run: str) -> AuditEvent:
    new, expects = due.change.record, due.change.expects
    return AuditEvent.of(
        _kind_of_change(due.change),
        new,
        source=Source(new.source.source_class, new.source.agent_id),
        actor="operator",
        version_before=expects,
        version_after=1 if expects is None else expects + 1,
        before=None if before is None else before.content,
        after=new.content if new.status == "active" else None,
        reason=chore.name,
        detail={"kind": new.kind, RUN: run},
    )
