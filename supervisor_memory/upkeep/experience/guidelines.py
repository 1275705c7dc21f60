"""The guideline of a tool in the store: learned, counted, changed, withdrawn, proposed to a person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from supervisor_memory.errors import WasErased
from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Record,
    Scope,
    Source,
    WriteResult,
    content_hash,
    family_for,
    new_id,
)
from supervisor_memory.ports import Deciding, Ports, Services
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.insert.review_reasons import EVERY_CANDIDATE, REVIEW, known_to_reviewers
from supervisor_memory.stages.retrieval.shared import refuted_in, tally_of
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.lessons.known import says_also, with_lesson
from supervisor_memory.understand.lessons.learning import doubts
from supervisor_memory.understand.lessons.lesson import (
    CORRECTED,
    GUIDELINE,
    LESSONS,
    TALLY,
    Call,
    Lesson,
    lessons_of,
)
from supervisor_memory.understand.lessons.wording import worded
from supervisor_memory.upkeep.edit import again_when_late
from supervisor_memory.upkeep.experience.ratings import Recounted
from supervisor_memory.wiring.trail import Trail

MOST_GUIDELINES: Final = 1_000
_MOST_NOTES: Final = 200
_MANY: Final = 2
"""The users for whom a team's lesson has to be refuted before it is withdrawn for all."""
_DETAIL: Final = {"kind": "experience", "layer": "abstract"}


@dataclass(frozen=True, slots=True)
class _Tool:
    """Whose guideline of which tool, and the language it is worded in."""

    scope: Scope
    family: str
    tool: str
    tongue: str

    @property
    def where(self) -> Filter:
        user, tasks = self.scope.user_id, (self.scope.task,)
        return Filter(user, (self.family,), tasks, subject=self.tool, attribute=GUIDELINE)

    def record(self, content: str, lessons: Sequence[Lesson], now: float) -> Record:
        """The guideline as a new record, which is the tool's words."""
        scope = self.scope
        told = [each.to_dict() for each in lessons]
        return Record(
            new_id(),
            scope.namespace(self.family),
            content,
            "experience",
            now,
            now,
            metadata={"use_when": self.tool, "language": self.tongue, LESSONS: told},
            source=Source("tool", scope.agent_id, scope.session_id, scope.run_id),
            subject=self.tool,
            attribute=GUIDELINE,
            valid_from=now,
        )


class Guidelines:
    """Writes the guidelines of tools, each in one transaction that begins again when another came first."""

    def __init__(self, services: Services, trail: Trail) -> None:
        self._services = services
        self._trail = trail

    def listed(self, where: Filter, ports: Ports) -> list[Record]:
        """The records of a kind of experience, at most a thousand."""
        return [*ports.read_store().list(where, limit=MOST_GUIDELINES)]

    def ports(self) -> Ports:
        """Ports for a decision about experience, with their time."""
        return self._services.ports(self._services.settings.write_timeout_ms, with_model=False)

    def missed(self, scope: Scope, problem: BaseException) -> None:
        """Audit that memory failed and something was not heard or counted."""
        event = AuditEvent.by(scope, "experience", outcome="degraded", reason=type(problem).__name__)
        self._trail.report(event)

    def learn(
        self, lesson: Lesson, failed: Sequence[Call], worked: Call, scope: Scope, tongue: str
    ) -> WriteResult | None:
        why = doubts(lesson, failed, worked)
        if self._services.settings.review == "all":
            why = why or (EVERY_CANDIDATE,)

        def once() -> WriteResult | None:
            view = self.ports().deciding()
            family = family_for("experience", scope.agent_id, view.settings.namespaces)
            of = _Tool(scope, family, worked.tool, tongue)
            every = view.list(replace(of.where, statuses=None), limit=_MOST_NOTES)
            old = next((each for each in every if each.status == "active"), None)
            if old is not None:
                of = replace(of, tongue=str(old.metadata.get("language", tongue)))
            lessons = with_lesson(() if old is None else lessons_of(old.metadata), lesson)
            content = worded(of.tool, lessons, count=view.count_tokens, tongue=of.tongue).text
            left_out = "withdrawn-before" if any(_set_aside(each, lesson) for each in every) else ""
            if left_out or not content:
                return self._skipped(of, left_out or "too-long-to-tell")
            if why:
                return self._proposed(of.record(content, lessons, view.now), old, why, view)
            if old is not None:
                return self._changed(old, lessons, view, scope, reason="learned")
            new = of.record(content, lessons, view.now)
            event = AuditEvent.of(
                "add", new, version_after=1, after=content, reason="learned", detail=_DETAIL
            )
            done = view.commit(Commit(with_vectors([Change(new)], view), (event,)))
            return WriteResult(new.id, "added", done.saved, "learned", 1, done.applied)

        try:  # another thread may keep the tool's first lesson meanwhile
            return again_when_late(once, conflicts=("version", "attribute", "content_hash"))
        except WasErased:
            return None

    def recount(
        self,
        record_id: str,
        change: Callable[[Record], Recounted],
        scope: Scope,
        *,
        reason: str,
        owner: str | None = None,
    ) -> WriteResult | None:
        """Change the counts of a guideline's lessons; those that are refuted are withdrawn.

        Args:
            owner: Whose guideline it is, where it is a team's: what is refuted for two users is withdrawn.
        """

        def once() -> WriteResult | None:
            ports = self.ports()
            view = ports.deciding()
            found = view.list(Filter(owner or scope.user_id, ids=(record_id,)), limit=1)
            if not found:
                return None
            old = found[0]
            done = change(old)
            if done.lessons == lessons_of(old.metadata):
                return None
            kept = tuple(
                each
                for each in done.lessons
                if not each.is_refuted or (owner is not None and self._refuting(old, each, view) < _MANY)
            )
            why = reason if len(kept) < len(done.lessons) else "counted"
            old = replace(old, metadata={**old.metadata, **done.beside})
            return self._changed(old, kept, view, scope, reason=why)

        return again_when_late(once)

    def _refuting(self, shared: Record, lesson: Lesson, view: Deciding) -> int:
        """Count the users for whom a team's lesson is refuted."""
        where = Filter(
            kinds=("experience",), subject=shared.subject, attribute=GUIDELINE, statuses=("stale",)
        )
        tallies = (
            each for each in view.list(where, limit=MOST_GUIDELINES) if tally_of(each) == shared.user_id
        )
        return len({each.user_id for each in tallies if lesson.key in refuted_in(each)})

    def tally(
        self,
        record_id: str,
        owner: str,
        change: Callable[[Record], Recounted],
        user_id: str,
        *,
        reason: str,
    ) -> Record | None:
        """Change a user's counts on a team's guideline; returns the earlier counts.

        It is a record of the user, which is told to nobody: what is refuted there is not told to this user.
        """

        def once() -> Record | None:
            view = self.ports().deciding()
            found = view.list(Filter(owner, ids=(record_id,)), limit=1)
            if not found:
                return None
            shared = found[0]
            scope = Scope(user_id, shared.source.agent_id, task=shared.task)
            of = _Tool(scope, shared.family, shared.subject or "", str(shared.metadata.get("language", "en")))
            every = view.list(replace(of.where, statuses=("stale",)), limit=_MOST_NOTES)
            old = next((each for each in every if tally_of(each) == owner), None)
            known = {each.key: each for each in (() if old is None else lessons_of(old.metadata))}
            for each in lessons_of(shared.metadata):
                known.setdefault(
                    each.key, replace(each, runs=(), times=0, held=0, failed=0, helped=0, hurt=0, asked=())
                )
            lessons = tuple(known.values())
            base = of.record(shared.content, lessons, view.now) if old is None else old
            base = replace(base, metadata={**base.metadata, LESSONS: [each.to_dict() for each in lessons]})
            done = change(base)
            if done.lessons == lessons and all(base.metadata.get(n) == v for n, v in done.beside.items()):
                return base
            refuted = tuple(each for each in done.lessons if each.is_refuted)
            said = worded(of.tool, refuted or done.lessons, count=view.count_tokens, tongue=of.tongue).text
            content = said or shared.content
            told = [each.to_dict() for each in done.lessons]
            new = replace(
                base,
                content=content,
                content_hash=content_hash(content),
                status="stale",
                metadata={**base.metadata, **done.beside, LESSONS: told, TALLY: owner},
                updated_at=view.now,
                valid_to=view.now,
            )
            facts: dict[str, Any] = {}
            if old is not None:
                new = replace(new, version=old.version + 1)
                facts = {"version_before": old.version, "before": old.content}
            newly = {each.key for each in refuted} - (frozenset() if old is None else refuted_in(old))
            event = AuditEvent.of(
                "add" if old is None else "update",
                new,
                version_after=new.version,
                after=new.content,
                reason=reason if newly else "counted",
                detail=_DETAIL,
                **facts,
            )
            view.commit(Commit((Change(new, expects=None if old is None else old.version),), (event,)))
            return base

        return again_when_late(once)

    # --- what is learned

    def _changed(
        self, old: Record, lessons: Sequence[Lesson], view: Deciding, scope: Scope, *, reason: str
    ) -> WriteResult:
        """Give a guideline other lessons; without any it is stale, which `memory.review.restore` undoes."""
        now = self._services.clock()
        tongue = str(old.metadata.get("language", "en"))
        content = worded(old.subject or "", lessons, count=view.count_tokens, tongue=tongue).text
        if content:
            new = replace(
                old,
                content=content,
                content_hash=content_hash(content),
                metadata={**old.metadata, LESSONS: [each.to_dict() for each in lessons]},
                updated_at=now,
                valid_from=now,
                version=old.version + 1,
            )
        else:
            new = replace(old, status="stale", valid_to=now, updated_at=now, version=old.version + 1)
        event = AuditEvent.by(
            scope,
            "update" if content else "outdate",
            user_id=old.user_id,
            family=old.family,
            record_id=old.id,
            version_before=old.version,
            version_after=old.version + 1,
            before=old.content,
            after=new.content,
            reason=reason,
            source_class="tool",
            detail=_DETAIL,
        )
        changes = [Change(new, expects=old.version)]
        if content and content != old.content:
            changes = [*with_vectors([Change(replace(new, vector=None), expects=old.version)], view)]
        done = view.commit(Commit(tuple(changes), (event,)))
        return WriteResult(old.id, "updated", done.saved, reason, old.version + 1, done.applied)

    def _proposed(
        self, new: Record, old: Record | None, why: Sequence[str], view: Deciding
    ) -> WriteResult | None:
        """Keep a guideline for a person's decision; `old` is the one it would change."""
        asks: dict[str, Any] = {"why": list(why)}
        if old is not None:
            asks |= {"event": "UPDATE", "target": old.id}
        corrected = {} if old is None else {k: v for k, v in old.metadata.items() if k == CORRECTED}
        waits = replace(new, status="pending", metadata={**corrected, **new.metadata, REVIEW: asks})
        reason = ";".join(why)
        if known_to_reviewers(waits, view) is not None:
            return None
        event = AuditEvent.of(
            "propose", waits, version_after=1, after=waits.content, reason=reason, detail=_DETAIL
        )
        done = view.commit(Commit((Change(waits),), (event,)))
        return WriteResult(waits.id, "pending", done.saved, reason, 1, done.applied)

    def _skipped(self, of: _Tool, reason: str) -> WriteResult:
        told = AuditEvent.by(
            of.scope, "skip", family=of.family, outcome="skipped", reason=reason, source_class="tool"
        )
        self._trail.report(told)
        return WriteResult("", "skipped", reason=reason)


def _set_aside(record: Record, lesson: Lesson) -> bool:
    """Whether a person has withdrawn, rejected or corrected this lesson or a part of it."""
    if record.status == "stale":
        return False
    found = lessons_of(record.metadata, CORRECTED)
    if record.status in ("deleted", "quarantined"):
        # Of a rejected proposal the first is what was proposed; the others were known.
        lessons = lessons_of(record.metadata)
        found = (*found, *(lessons[:1] if REVIEW in record.metadata else lessons))
    return any(says_also(lesson, each) for each in found)
