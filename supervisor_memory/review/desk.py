"""The review desk: what waits for a person, and what a person decides. `SupervisorMemory.review` is one."""

import functools
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, Unpack

from supervisor_memory.errors import (
    AlreadyReviewed,
    Conflict,
    IdentityError,
    InvalidContent,
    InvalidName,
    RecordNotFound,
)
from supervisor_memory.model.arguments import as_metadata, check_amount
from supervisor_memory.model.records import (
    Filter,
    Record,
    Scope,
    Source,
    WriteResult,
    check_content,
)
from supervisor_memory.ports import Ports, Services
from supervisor_memory.review import sweep, undo
from supervisor_memory.review.proposal import Approval, Insert, Proposal, event, foreseen, unfit
from supervisor_memory.review.sweep import Selected, Sweep, Swept, Which
from supervisor_memory.stages.insert.doubt import REVIEW
from supervisor_memory.stages.insert.merge import strategy_for
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.telemetry import of_one, of_write, spanned
from supervisor_memory.upkeep.edit import Curator, need_all
from supervisor_memory.wiring.trail import Trail

__all__ = ["Desk", "check_login"]

P = ParamSpec("P")
T = TypeVar("T")
_SECONDS: Final = 60.0
_SWEEP_SECONDS: Final = 300.0
_LONGEST_REASON: Final = 1_000
_LOGIN: Final = re.compile(r"[A-Za-z0-9_.:/@+\-]{1,128}\Z")
_SET_ASIDE: Final = ("stale", "deleted", "compressed")
_DECISIONS: Final = ("approve", "edit", "reject", "quarantine", "roll-back", "delete", "restore")


def _twin(
    verb: "Callable[Concatenate[Desk, P], T]",
) -> "Callable[Concatenate[Desk, P], Coroutine[Any, Any, T]]":
    """The async twin of a verb: the same call, off the event loop."""

    async def twin(self: "Desk", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.services.bridge.run(functools.partial(verb, self), *args, **kwargs)

    functools.update_wrapper(twin, verb)
    return twin


@dataclass(frozen=True, slots=True)
class Desk:
    """What waits for a person, and what a person takes back. docs/reviewing.md is its page.

    In each verb `user_id` says whose record it must be; None: the operator decides, on anybody's. `reviewer`
    is a login such as `ada@example.com`, kept in the audit log for ever.

    Args:
        insert: The operators that decide on a candidate.
    """

    services: Services
    insert: Insert
    curator: Curator
    trail: Trail

    def pending(self, *, user_id: str | None = None, limit: int = 100) -> list[Proposal]:
        """What waits, the newest first, each beside the record it would change and the text it would leave.

        The decision of what cannot be approved, such as a foreign line with a name that none can be, is
        "refused"; it can be rejected.

        Raises:
            BackendError, DeadlineExceeded: the store failed.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        most = check_amount(limit, what="limit")
        ports = self._ports()
        found = ports.read_store().list(Filter(user_id=whose, statuses=("pending",)), limit=most)
        need_all(ports)
        return [self._shown(each, user_id) for each in found if not each.has_expired(ports.now)]

    def show(self, id: str, *, user_id: str | None = None) -> Proposal:
        """One of these.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
            AlreadyReviewed: it does not wait.
        """
        return self._shown(self._waiting(id, user_id, self._ports()), user_id)

    def approve(self, id: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Remember it. What becomes of it is decided now, against what is known by now: see the result.

        Where it is a record of its own, that has the id it waited under.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
            AlreadyReviewed: it does not wait, or another reviewer was faster.
            InvalidName: `reviewer` is no login.
        """
        return self._decide(id, None, reviewer, user_id)

    def edit(self, id: str, content: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Remember it in the reviewer's words. Where it came from stays as it is.

        Raises:
            InvalidContent: the text cannot be remembered.
            RecordNotFound, AlreadyReviewed, InvalidName: as in `approve`.
        """
        clean = self.services.redactor.text(check_content(content))
        return self._decide(id, clean, reviewer, user_id)

    def reject(self, id: str, *, reviewer: str, reason: str = "", user_id: str | None = None) -> WriteResult:
        """Do not remember it, and do not propose these words again.

        Args:
            reason: For who looks at the record later; 1,000 characters at most.

        Raises:
            RecordNotFound, AlreadyReviewed, InvalidName: as in `approve`.
        """
        by, why = check_login(reviewer), self._reason(reason)
        ports = self._ports()
        record = self._waiting(id, user_id, ports)
        asks = record.metadata.get(REVIEW)
        verdict = {**(asks if isinstance(asks, dict) else {}), "verdict": "rejected", "by": by, "reason": why}
        gone = replace(
            record,
            status="deleted",
            valid_to=ports.now,
            updated_at=ports.now,
            metadata={**record.metadata, REVIEW: verdict},
        )
        told = event("reject", record, actor=by)
        approval = Approval(record, by)
        done = approval.commit(ports, Commit((Change(gone, expects=record.version),), (told,)))
        return WriteResult(record.id, "skipped", done.saved, "rejected", record.version + 1, done.applied)

    def _reason(self, told: str) -> str:
        return self.services.redactor.text(check_content(told)[:_LONGEST_REASON]) if told else ""

    @spanned("update_memory", of_write)
    def change(
        self,
        id: str,
        *,
        reviewer: str,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        merge: bool = True,
        user_id: str | None = None,
        source: Source | None = None,
    ) -> WriteResult:
        """As `SupervisorMemory.update`, in the name of a reviewer. `revert` takes it back."""
        by, redactor = check_login(reviewer), self.services.redactor
        extra = redactor.value(as_metadata(metadata))
        strategy_for("domain-facts", extra.get("strategy"))
        clean = redactor.text(content) if isinstance(content, str) else content
        return self.curator.update(id, user_id, clean, extra, merge=merge, actor=by, source=source)

    @spanned("delete_memory", of_one)
    def delete(self, id: str, *, reviewer: str, user_id: str | None = None) -> int:
        """As `SupervisorMemory.delete`, in the name of a reviewer. `restore` brings it back."""
        return self.curator.delete(id, user_id, actor=check_login(reviewer))

    def restore(self, id: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Bring back what was deleted, rejected, replaced by another record or forgotten, as it was before.

        What was rejected waits again: the result is "pending".

        Raises:
            RecordNotFound: there is no such record, it is another user's or quarantined, or it was erased.
            Conflict: another active record has its place; the error's `record_id` says which.
        """
        by = check_login(reviewer)
        return undo.restore(id, user_id, actor=by, curator=self.curator, writing=self._ports)

    def revert(self, id: str, *, version: int, reviewer: str, user_id: str | None = None) -> WriteResult:
        """As `SupervisorMemory.revert`, in the name of a reviewer."""
        by = check_login(reviewer)
        return undo.revert(id, version, user_id, actor=by, curator=self.curator, writing=self._ports)

    def undo(self, id: str, *, reviewer: str, by: str | None = None, user_id: str | None = None) -> None:
        """Take back the latest decision on a proposal: it waits again, and what that changed is as before.

        Any process can do it, at any time: what a decision changed is told by this machine's audit log.

        Args:
            by: Only where this reviewer decided. None: whoever did.

        Raises:
            RecordNotFound: there is no such record, it is another user's, or the log has no decision on it.
            Conflict: something that was changed by it was changed again since, or has no place any more.
        """
        login, ports = check_login(reviewer), self._ports()
        own = self.curator.own(id, user_id, ports)
        backend = ports.services.backend
        decided = ports.store(undo.decision_on, own.id, backend.audit)
        if decided is None or by not in (None, decided.actor):
            whose = "" if by is None else f" of {by}"
            raise RecordNotFound(f"no decision{whose} on record {id!r} is in the audit log", id=id)
        now = {record.id: record for record in ports.store(backend.get, list(decided.changed))}
        if any(id_ not in now or now[id_].version != after for id_, (_, after) in decided.changed.items()):
            raise Conflict(
                f"what {decided.actor} decided on record {id!r} was changed since; look at its history, and "
                "take a version back with `revert` or `restore`",
                what="version",
                record_id=own.id,
            )
        # What is active goes first, so that the place of what comes back is free.
        for id_ in sorted(decided.changed, key=lambda id_: now[id_].status in _SET_ASIDE):
            before, _ = decided.changed[id_]
            if now[id_].status in _SET_ASIDE:
                self.restore(id_, reviewer=login)
            elif before is None:
                self.delete(id_, reviewer=login)
            else:
                self.revert(id_, version=before, reviewer=login)

    def quarantine(
        self,
        *,
        user_id: str,
        reviewer: str,
        dry_run: bool = False,
        **which: Unpack[Which],
    ) -> Swept:
        """Set aside all that came from there, or was changed by it: found no more, kept, not said again.

        Args:
            dry_run: Tell what it would do, and do nothing.
            which: What is meant, one of these at least; all that are given must hold: `source` (a class:
                user, agent, tool, system), `run_id`, `session_id`, `agent_id`, `since` and `until` (when it
                was said or recorded, as seconds since 1970 or a datetime).

        Raises:
            InvalidContent: nothing says what is meant.
            BackendError, DeadlineExceeded: the store failed; what was done stays so. Call it again.
        """
        selected = Selected.of(user_id, which)
        return self._sweep("quarantine", selected, reviewer).run(sweep.quarantine, dry_run=dry_run)

    def release(
        self,
        *,
        user_id: str,
        reviewer: str,
        dry_run: bool = False,
        **which: Unpack[Which],
    ) -> Swept:
        """End a quarantine: what was set aside of this is as it was before. Arguments as in `quarantine`."""
        selected = Selected.of(user_id, which)
        return self._sweep("release", selected, reviewer).run(sweep.release, dry_run=dry_run)

    def roll_back(
        self,
        *,
        user_id: str,
        reviewer: str,
        dry_run: bool = False,
        **which: Unpack[Which],
    ) -> Swept:
        """Take back what came from there: what it added is withdrawn, what it changed is as it was before.

        What others have changed since is left, and named in the result. Arguments as in `quarantine`.
        """
        selected = Selected.of(user_id, which)
        return self._sweep("roll-back", selected, reviewer).run(sweep.roll_back, dry_run=dry_run)

    apending = _twin(pending)
    ashow = _twin(show)
    aapprove = _twin(approve)
    aedit = _twin(edit)
    areject = _twin(reject)
    achange = _twin(change)
    adelete = _twin(delete)
    arestore = _twin(restore)
    arevert = _twin(revert)
    aundo = _twin(undo)
    aquarantine = _twin(quarantine)
    arelease = _twin(release)
    aroll_back = _twin(roll_back)

    def _decide(self, id: str, content: str | None, reviewer: str, user_id: str | None) -> WriteResult:
        by, ports = check_login(reviewer), self._ports()
        record = self._waiting(id, user_id, ports)
        done = Approval(record, by, content).decide(ports, self.insert)
        if ports.degraded:
            self.trail.degraded("review", Scope(record.user_id), ports.reasons, ports=ports)
        return done

    def _waiting(self, id: str, user_id: str | None, ports: Ports) -> Record:
        record = self.curator.own(id, user_id, ports)
        if record.status == "pending":
            return record
        rows = ports.attempt(
            "audit", ports.left(), lambda: ports.services.backend.audit.tail(_ROWS, record_id=record.id)
        )
        last = next((row.event for row in reversed(rows or ()) if row.op in _DECISIONS), None)
        told = f"; last: {last['op']} by {last['actor']}" if last else ""
        raise AlreadyReviewed(
            f"record {id!r} does not wait for review: it is {record.status}{told}",
            id=id,
            status=record.status,
            decided=last["op"] if last else None,
        )

    def _shown(self, record: Record, user_id: str | None) -> Proposal:
        self.trail.seen("review", (record,), by_operator=user_id is None)
        try:
            return foreseen(record, self._ports(), self.insert)
        except (IdentityError, InvalidContent) as error:  # an imported one may say what nothing else would
            return unfit(record, type(error).__name__)

    def _sweep(self, op: str, selected: Selected, reviewer: str) -> Sweep:
        return Sweep(op, selected, functools.partial(self._ports, _SWEEP_SECONDS), check_login(reviewer))

    def _ports(self, seconds: float = _SECONDS) -> Ports:
        """With more time than a turn has: a person waits, no graph. No model is asked."""
        services = replace(self.services, complete=None)
        return Ports(services, seconds=seconds, now=services.clock())


_ROWS: Final = 20


def check_login(reviewer: str) -> str:
    """The login of who decides, fit for the audit log.

    Raises:
        InvalidName: it is none.
    """
    if isinstance(reviewer, str) and _LOGIN.match(reviewer):
        return reviewer
    raise InvalidName(
        f"reviewer is {str(reviewer)[:40]!r}; pass a login such as 'ada@example.com': the audit log keeps "
        "letters, digits and _.:/@+- alone",
        value=str(reviewer)[:40],
    )
