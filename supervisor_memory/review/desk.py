"""The review desk, `SupervisorMemory.review`: proposals that wait for a person, and decisions on them."""

import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, Unpack

from supervisor_memory.bridge import twin
from supervisor_memory.errors import (
    AlreadyReviewed,
    Conflict,
    IdentityError,
    InvalidContent,
    RecordNotFound,
)
from supervisor_memory.model.arguments import as_metadata, check_amount, check_login
from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Record,
    Scope,
    Source,
    WriteResult,
    check_content,
)
from supervisor_memory.ports import Ports, Services
from supervisor_memory.review import promotion, sweep, undo
from supervisor_memory.review.promotion import OnErase, Promotion
from supervisor_memory.review.proposal import Approval, Insert, Proposal, event, foreseen, unfit
from supervisor_memory.review.sweep import Selected, Sweep, Swept, Which
from supervisor_memory.stages.insert.merge import strategy_for
from supervisor_memory.stages.insert.review_reasons import REVIEW
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.telemetry import of_one, of_write, spanned
from supervisor_memory.upkeep.edit import Curator, again_when_late, need_all
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from supervisor_memory.review.markdown import Exported, Plan
    from supervisor_memory.stores.ahead import Ahead

P = ParamSpec("P")
T = TypeVar("T")
_PATIENCE_MS: Final = 60_000
_SWEEP_MS: Final = 300_000
_LONGEST_REASON: Final = 1_000
_ROWS: Final = 20
_SET_ASIDE: Final = ("stale", "deleted", "compressed")
_DECISIONS: Final = ("approve", "edit", "reject", "promote", "quarantine", "roll-back", "delete", "restore")


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk where a person decides on proposals and takes changes back. docs/reviewing.md is its page.

    In each verb `user_id` is the user to whom the record must belong; None: the operator decides, on records
    of any user. `reviewer` is a login such as `ada@example.com`, kept in the audit log for ever.

    Args:
        insert: The operators of the insert stage, which decide on a candidate.
    """

    services: Services
    insert: Insert
    curator: Curator
    trail: Trail

    def pending(self, *, user_id: str | None = None, limit: int = 100) -> list[Proposal]:
        """The proposals that wait, newest first, each with the record it would change and the resulting text.

        A proposal that cannot be approved, such as an imported one with an invalid name, has the decision
        "refused"; it can be rejected.

        Raises:
            BackendError, DeadlineExceeded: the store failed.
        """
        whose = None if user_id is None else Scope(user_id).user_id
        most = check_amount(limit, what="limit")
        ports = self._ports()
        found = ports.read_store().list(Filter(user_id=whose, statuses=("pending",)), limit=most)
        need_all(ports)
        return [self._proposal_of(each, user_id) for each in found if not each.has_expired(ports.now)]

    def show(self, id: str, *, user_id: str | None = None) -> Proposal:
        """A proposal by its record's id.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
            AlreadyReviewed: it does not wait.
        """
        return self._proposal_of(self._waiting(id, user_id, self._ports()), user_id)

    def show_together(
        self, ids: Sequence[str], *, without: Collection[str] = (), user_id: str | None = None
    ) -> list[Proposal]:
        """Proposals as they would be approved one after the other, in this order.

        Each is shown against what those before it would leave, so that one can join or replace another.
        Those that do not wait, or are not there for this user, are left out.

        Args:
            without: Those of them that are not approved. They are shown as if each were, and leave nothing
                for those after them.

        Raises:
            BackendError, DeadlineExceeded: the store failed.
        """
        from supervisor_memory.stores.ahead import Ahead  # with it comes numpy

        ahead, shown = Ahead(self.services.backend), list[Proposal]()
        for id_ in ids:
            with contextlib.suppress(AlreadyReviewed, RecordNotFound):
                record = self._waiting(id_, user_id, self._ports())
                shown.append(self._proposal_of(record, user_id, ahead=ahead, leaves=id_ not in without))
        return shown

    def approve(self, id: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Approve a proposal: the insert stage decides on it now, against the present records.

        If it becomes a record of its own, it keeps its id.

        Raises:
            RecordNotFound: there is no such record, or it is another user's.
            AlreadyReviewed: it does not wait, or another reviewer was faster.
            InvalidName: `reviewer` is no login.
        """
        return self._decide(id, None, reviewer, user_id)

    def edit(self, id: str, content: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Approve a proposal in the reviewer's words. Its source does not change.

        Raises:
            InvalidContent: the text cannot be remembered.
            RecordNotFound, AlreadyReviewed, InvalidName: as in `approve`.
        """
        clean = self.services.redactor.text(check_content(content))
        return self._decide(id, clean, reviewer, user_id)

    def reject(self, id: str, *, reviewer: str, reason: str = "", user_id: str | None = None) -> WriteResult:
        """Reject a proposal, so that these words are not proposed again.

        Args:
            reason: A remark for later readers of the record; 1,000 characters at most.

        Raises:
            RecordNotFound, AlreadyReviewed, InvalidName: as in `approve`.
        """
        by = check_login(reviewer)
        why = self.services.redactor.text(check_content(reason)[:_LONGEST_REASON]) if reason else ""
        ports = self._ports()
        record = self._waiting(id, user_id, ports)
        asks = record.metadata.get(REVIEW)
        verdict = {**(asks if isinstance(asks, dict) else {}), "verdict": "rejected", "by": by, "reason": why}
        metadata = {**record.metadata, REVIEW: verdict}
        gone = replace(record, status="deleted", valid_to=ports.now, updated_at=ports.now, metadata=metadata)
        gone = replace(gone, former_ref_ids=())  # what is rejected has changed no message
        commit = Commit((Change(gone, expects=record.version),), (event("reject", record, actor=by),))
        done = Approval(record, by).commit(ports, commit)
        return WriteResult(record.id, "skipped", done.saved, "rejected", record.version + 1, done.applied)

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
        """As `SupervisorMemory.update`, in the name of a reviewer. `revert` undoes it."""
        by, redactor = check_login(reviewer), self.services.redactor
        extra = redactor.value(as_metadata(metadata))
        strategy_for("domain-facts", extra.get("strategy"))
        clean = redactor.text(content) if isinstance(content, str) else content
        return self.curator.update(id, user_id, clean, extra, merge=merge, actor=by, source=source)

    @spanned("delete_memory", of_one)
    def delete(
        self,
        id: str,
        *,
        reviewer: str,
        user_id: str | None = None,
        keep_said: bool = False,
        source: Source | None = None,
    ) -> int:
        """As `SupervisorMemory.delete`, in the name of a reviewer. `restore` undoes it.

        Args:
            source: Who asks, where a model does: it deletes no guideline of a tool and no identity.

        Raises:
            InvalidContent: a person has to do it.
        """
        by = check_login(reviewer)
        return self.curator.delete(id, user_id, actor=by, keep_said=keep_said, source=source)

    def restore(self, id: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Bring back a record that was deleted, rejected, replaced by another record, or forgotten.

        A rejected proposal waits again: the result is "pending".

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
        """Undo the latest decision on a proposal: it waits again, and records it changed are as before.

        Any process can do it, at any time: the changes of a decision are in this machine's audit log.

        Args:
            by: Undo only a decision of this reviewer. None: of any reviewer.

        Raises:
            RecordNotFound: there is no such record, it is another user's, or the log has no decision on it.
            Conflict: a record that the decision changed was changed since, or has lost its place.
        """
        login, ports = check_login(reviewer), self._ports()
        own = self.curator.own(id, user_id, ports)
        backend = ports.services.backend
        decided = ports.store(undo.decision_on, own.id, backend.audit)
        if decided is None or by not in (None, decided.actor):
            whose = "" if by is None else f" of {by}"
            raise RecordNotFound(f"no decision{whose} on record {id!r} is in the audit log", id=id)
        now = {record.id: record for record in ports.store(backend.get, list(decided.changed))}

        def is_as_left(id_: str, after: int) -> bool:
            """Whether a record has the version the decision left, or its text again: what was decided later
            was undone."""
            if id_ not in now or now[id_].version == after:
                return id_ in now
            left = next((v for v in ports.store(backend.versions, id_) if v.version == after), None)
            return left is not None and (left.content, left.status) == (now[id_].content, now[id_].status)

        if not all(is_as_left(id_, after) for id_, (_, after) in decided.changed.items()):
            raise Conflict(
                f"what {decided.actor} decided on record {id!r} was changed since; look at its history, and "
                "take a version back with `revert` or `restore`",
                what="version",
                record_id=own.id,
            )
        # Active records go first, so that the places of restored ones are free.
        for id_ in sorted(decided.changed, key=lambda id_: now[id_].status in _SET_ASIDE):
            before, _ = decided.changed[id_]
            if now[id_].status in _SET_ASIDE:
                self.restore(id_, reviewer=login)
            elif before is None:
                self.delete(id_, reviewer=login)
            else:
                self.revert(id_, version=before, reviewer=login)

    def preview_promotion(self, id: str, *, user_id: str | None = None) -> Promotion:
        """Preview `promote`: the text the team would read, its readers, and the objections.

        Raises:
            SettingsError: what finds personal data is not installed.
            InvalidContent: MEMORY_TEAM is empty, or it is about a user, or is no statement.
            RecordNotFound: there is no such record in use, or it is another user's.
        """
        ports = self._ports()
        record = self.curator.own(id, user_id, ports)
        self.trail.seen("review", (record,), by_operator=user_id is None)
        return promotion.foreseen(record, self.services, ports.read_store())

    def promote(
        self,
        id: str,
        *,
        reviewer: str,
        on_erase: OnErase,
        names_ok: Collection[str] = (),
        version: int | None = None,
        user_id: str | None = None,
    ) -> WriteResult:
        """Share a definition or a guideline with all users of MEMORY_TEAM, as a copy without its user.

        `undo` takes it back; so does `delete`, and `restore` brings it back again.

        Args:
            on_erase: What becomes of the copy when its author is erased: it is erased as well, or it is
                anonymous from now on, and stays.
            names_ok: What of the preview's `names` is no person.
            version: That of the record in the preview; None: whichever it is in by now.

        Raises:
            Conflict: the record is not in `version` any more; nothing was shared.
            InvalidContent: it holds personal data, or names that were not passed as `names_ok`, or as in
                `preview_promotion`.
            SettingsError, RecordNotFound: as in `preview_promotion`.
            InvalidName: `reviewer` is no login.
        """
        by = check_login(reviewer)

        def once() -> WriteResult:
            ports = self._ports()
            record = self.curator.own(id, user_id, ports)
            view = ports.deciding()
            return promotion.promoted(
                record,
                self.services,
                view,
                on_erase=on_erase,
                reviewer=by,
                names_ok=names_ok,
                version=version,
            )

        return again_when_late(once)

    def shared(self, *, limit: int = 100) -> list[Record]:
        """The records that MEMORY_TEAM shares, the last promoted first.

        Raises:
            InvalidContent: MEMORY_TEAM is empty.
        """
        owner, ports = promotion.team_of(self.services), self._ports()
        found = ports.read_store().list(Filter(owner), limit=check_amount(limit, what="limit"))
        need_all(ports)
        self.trail.seen("list", found, by_operator=True)
        return [*found]

    def export_markdown(self, folder: str | Path, *, user_id: str) -> "Exported":
        """Write what is remembered of a user into a folder, a Markdown file a record, to edit it in git.

        Files that somebody has edited are kept, and named; those of records that are gone are removed.

        Raises:
            SettingsError, OSError: the folder cannot be written.
        """
        from supervisor_memory.review import markdown

        whose = Scope(user_id).user_id
        records = [each for each in self.curator.every(markdown.whole(whose)) if markdown.exportable(each)]
        self.trail.seen("export", records, by_operator=False)
        self.trail.report(
            AuditEvent("memory.export", user_id=whose, actor="operator", detail={"to": "markdown"})
        )
        ports = self._ports()
        return markdown.export(
            Path(folder), records, lambda id_: ports.store(self.services.backend.versions, id_)
        )

    def import_markdown(
        self, folder: str | Path, *, user_id: str, reviewer: str, dry_run: bool = True
    ) -> "Plan":
        """Take what was edited in a folder of Markdown files: texts changed, new, or with `delete: true`.

        A file that was edited from an older version than the record is at is a conflict: it is told, and
        neither the file nor the record changes. A file that is missing changes nothing.

        Args:
            dry_run: Only tell what would be done: `print(plan)` shows it as a diff.

        Raises:
            SettingsError: there is no such folder.
            InvalidName: `reviewer` is no login.
        """
        from supervisor_memory.review.markdown import Importer

        by, whose = check_login(reviewer), Scope(user_id).user_id
        importer = Importer(whose, self.curator, self.insert, self._ports, self.services.redactor.text)
        return importer.plan(Path(folder)) if dry_run else importer.apply(Path(folder), reviewer=by)

    def quarantine(
        self, *, user_id: str, reviewer: str, dry_run: bool = False, **which: Unpack[Which]
    ) -> Swept:
        """Set aside all records that came from a source, or were changed by it.

        They are kept but no longer found, and only the user can bring their words back by repeating them.

        Args:
            dry_run: Only return what would be done.
            which: The source, by at least one of these; all that are given must hold: `source` (a class:
                user, agent, tool, system), `run_id`, `session_id`, `agent_id`, `since` and `until` (when it
                was said or recorded, as seconds since 1970 or a datetime).

        Raises:
            InvalidContent: `which` is empty.
            BackendError, DeadlineExceeded: the store failed; finished parts stay done. Call it again.
        """
        selected = Selected.of(user_id, which)
        return self._sweep("quarantine", selected, reviewer).run(sweep.quarantine, dry_run=dry_run)

    def release(self, *, user_id: str, reviewer: str, dry_run: bool = False, **which: Unpack[Which]) -> Swept:
        """End a quarantine: the selected records are as before. Arguments as in `quarantine`."""
        selected = Selected.of(user_id, which)
        return self._sweep("release", selected, reviewer).run(sweep.release, dry_run=dry_run)

    def roll_back(
        self, *, user_id: str, reviewer: str, dry_run: bool = False, **which: Unpack[Which]
    ) -> Swept:
        """Undo a source: records it added are withdrawn, records it changed get their earlier text back.

        Records that others have changed since are left, and named in the result. Arguments as in
        `quarantine`.
        """
        selected = Selected.of(user_id, which)
        return self._sweep("roll-back", selected, reviewer).run(sweep.roll_back, dry_run=dry_run)

    apending = twin(pending)
    ashow = twin(show)
    ashow_together = twin(show_together)
    aapprove = twin(approve)
    aedit = twin(edit)
    areject = twin(reject)
    achange = twin(change)
    adelete = twin(delete)
    arestore = twin(restore)
    arevert = twin(revert)
    aundo = twin(undo)
    aexport_markdown = twin(export_markdown)
    aimport_markdown = twin(import_markdown)
    apreview_promotion = twin(preview_promotion)
    apromote = twin(promote)
    ashared = twin(shared)
    aquarantine = twin(quarantine)
    arelease = twin(release)
    aroll_back = twin(roll_back)

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
            by=last["actor"] if last else None,
        )

    def _proposal_of(
        self, record: Record, user_id: str | None, *, ahead: "Ahead | None" = None, leaves: bool = True
    ) -> Proposal:
        self.trail.seen("review", (record,), by_operator=user_id is None)
        ports, then = self._ports(), None
        if ahead is not None:
            ports = replace(ports, services=replace(ports.services, backend=ahead))
            then = ahead.batch if leaves else None
        try:
            return foreseen(record, ports, self.insert, then=then)
        except (IdentityError, InvalidContent) as error:  # only an imported record can be so wrong
            return unfit(record, type(error).__name__)

    def _sweep(self, op: str, selected: Selected, reviewer: str) -> Sweep:
        return Sweep(op, selected, functools.partial(self._ports, _SWEEP_MS), check_login(reviewer))

    def _ports(self, milliseconds: int = _PATIENCE_MS) -> Ports:
        """New ports with more time than a turn has, since a person waits, and without a model."""
        return self.services.ports(milliseconds, with_model=False)
