"""`memory.experience`: learns from agents' tool calls and from ratings of runs."""

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from supervisor_memory.bridge import twin
from supervisor_memory.errors import RecordNotFound
from supervisor_memory.language.terms import language
from supervisor_memory.model.arguments import check_login, check_scope, check_score
from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Hit,
    Kind,
    Reads,
    Record,
    Scope,
    Source,
    WriteResult,
    check_content,
    check_name,
    content_hash,
    family_for,
    new_id,
)
from supervisor_memory.ports import Ports, Services, guarded
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.retrieval.shared import owner_of, refuted_in, tally_of
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.lessons.learning import learned
from supervisor_memory.understand.lessons.lesson import GUIDELINE, Call, Lesson, lessons_of
from supervisor_memory.understand.lessons.values import is_name
from supervisor_memory.understand.lessons.wording import MOST_OF_IDENTITY, check_size
from supervisor_memory.upkeep.edit import Curator, again_when_late
from supervisor_memory.upkeep.experience.calls import Calls
from supervisor_memory.upkeep.experience.counts import Counts
from supervisor_memory.upkeep.experience.guidelines import Guidelines
from supervisor_memory.upkeep.experience.places import place_of
from supervisor_memory.upkeep.experience.ratings import each_lesson, rated, rating_of, with_rating
from supervisor_memory.wiring.trail import Trail

_RATED: Final = "rated-badly"
"""The reason of an audit row for a lesson that is withdrawn because its runs were rated badly."""
_LONGEST_TASK: Final = 2_000
_MOST_NOTES: Final = 200
SELF: Final = "self"
"""The subject of the record that says who an agent is."""
_GOOD: Final = 0.5
"""The score from which a run counts as a good one."""


@dataclass(frozen=True, slots=True)
class Rated:
    """The guidelines that count a rating, and those withdrawn by it."""

    run_id: str
    score: float
    counted: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guideline:
    """The guideline of a tool, for people.

    Args:
        told: How often a note held it, by this machine's access log.
        lessons: What it is made of, each with its runs and counts.
    """

    record: Record
    lessons: tuple[Lesson, ...]
    told: int = 0

    @property
    def tool(self) -> str:
        return self.record.subject or ""

    def to_dict(self) -> dict[str, Any]:
        """The guideline as a plain dictionary for JSON."""
        return {
            "id": self.record.id,
            "tool": self.tool,
            "agent_id": self.record.source.agent_id,
            "user_id": self.record.user_id,
            "status": self.record.status,
            "content": self.record.content,
            "told": self.told,
            "lessons": [each.to_dict() for each in self.lessons],
        }


class Experience:
    """Hears calls of tools and ratings of runs, and keeps what they teach, as `memory.experience`.

    docs/experience.md is its page.
    """

    def __init__(self, services: Services, trail: Trail) -> None:
        self.services = services
        self._trail = trail
        self._curator: Curator | None = None
        self._is_on = services.settings.experience and services.settings.enabled
        self._guidelines = Guidelines(services, trail)
        self._calls = Calls(services)
        self._counts = Counts(services, self._guidelines)

    def of_reader(self, trail: Trail, curator: Curator) -> "Experience":
        """A copy that shares everything heard so far, with another trail and another desk for changes."""
        theirs = copy(self)
        theirs._trail, theirs._curator = trail, curator
        return theirs

    # --- what is heard

    def wants(self, tool: str, scope: Scope, *, failed: bool) -> bool:
        """Whether `heard` has to be called: the call failed, an earlier call of the tool did, or its
        guideline was told.

        For most calls that work the answer is no, and nothing more is done for them.
        """
        if not self._is_on or not tool.strip():
            return False
        if failed:
            return True
        place = place_of(scope)
        return self._calls.has_failed(place, tool) or self._counts.knows(place, tool)

    def heard(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        scope: Scope,
        *,
        error: str | None = None,
        call_id: str | None = None,
        asked: str = "",
    ) -> WriteResult | None:
        """Hear one call of a tool. Never raises for memory's sake.

        Args:
            scope: Who called; lessons join calls of one agent in one run.
            error: What it failed with; None: it worked.
            call_id: The call's id: the same call is heard once.
            asked: What the user had asked: a guideline is worded in its language, and its terms tell later
                for which tasks the lesson helps.

        Returns:
            What became of the guideline, if the call taught something.
        """
        check_scope(scope)
        if not isinstance(arguments, Mapping) or not self.wants(tool, scope, failed=error is not None):
            return None
        if not is_name(tool):  # a text that a note would tell
            self._trail.report(AuditEvent.by(scope, "skip", outcome="skipped", reason="no-name-of-a-tool"))
            return None

        def hear() -> WriteResult | None:
            place, name = place_of(scope), tool
            call = self._calls.clean(Call.of(name, arguments, error))
            if self._calls.is_heard(place, call, call_id):
                return None
            self._counts.judge(place, call, scope)
            if call.error is not None:
                self._calls.keep_failed(place, call)
                return None
            failed = self._calls.failed_before(place, name)
            if not failed:
                return None
            task, now = self._calls.clean_text(asked[:_LONGEST_TASK]), self.services.clock()
            found = learned(failed, call, run=scope.run_id, at=now, asked=task)
            return (
                None if found is None else self._guidelines.learn(found, failed, call, scope, language(asked))
            )

        return guarded(hear, otherwise=lambda problem: self._guidelines.missed(scope, problem))

    def told(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """Remember which guidelines an agent was told in a run, so that they count as they hold or fail."""
        if self._is_on:
            self._counts.told(scope, hits)

    def run_failed(self, scope: Scope, error: BaseException) -> None:
        """Audit that an agent's step in a run ended in an exception; its text is kept nowhere."""
        if self._is_on:
            self._trail.report(
                AuditEvent.by(scope, "outcome", outcome="failed", reason=type(error).__name__[:64])
            )

    def settle(self, scope: Scope) -> None:
        """Write the failures of the user's finished runs. Called when another run begins."""
        self._counts.settle(scope)

    def flush(self) -> None:
        """Write the counts that wait."""
        self._counts.flush()

    def forget(self, user_id: str) -> None:
        """Drop what is held in memory of a user."""
        self._calls.forget(user_id)
        self._counts.forget(user_id)

    # --- for people and programs

    def rate(
        self,
        run_id: str,
        score: float,
        *,
        user_id: str,
        error: str | None = None,
        reviewer: str | None = None,
    ) -> Rated:
        """Rate a run: what was learned or told in it counts as having helped, or not.

        A run counts once: another rating takes the place of the former. What went with bad runs more often
        than it helped and held is withdrawn; what a team shares is so for this user, and for all once it is
        for two.

        Args:
            run_id: LangGraph's id of the run, as in `Scope.run_id`.
            score: From 0, it failed, to 1, it was right; from 0.5 on it was a good run.
            error: What was wrong; redacted, of which the audit log keeps that there was one.
            reviewer: Who rates: a login. None: the program.

        Raises:
            InvalidContent: the score is no number from 0 to 1.
            InvalidName, MissingUser: the run or the user has no possible name.
            BackendError: the store failed.
        """
        scope = Scope(user_id, run_id=check_name(run_id, what="run id"))
        value = check_score(score)
        by = "supervisor" if reviewer is None else check_login(reviewer)
        self.flush()
        ports = self._guidelines.ports()
        told = self._told_in(scope)
        found = self._guidelines.listed(
            Filter(user_id=scope.user_id, kinds=("experience",), attribute=GUIDELINE), ports
        )
        counted, withdrawn = [], []
        is_good = value >= _GOOD

        rate_own = partial(rated, run_id=run_id, is_good=is_good)
        for record in found:
            is_told = record.id in told
            if not is_told and not any(run_id in each.runs for each in lessons_of(record.metadata)):
                continue
            done = self._guidelines.recount(
                record.id, partial(rate_own, is_told=is_told), scope, reason=_RATED
            )
            counted.append(record.id)
            withdrawn += [record.id] if done is not None and done.reason == _RATED else []
        for record_id, owner in self._shared_of(told, ports):
            rate_tally = partial(rate_own, is_told=True)
            was = self._guidelines.tally(record_id, owner, rate_tally, scope.user_id, reason=_RATED)
            if was is None:
                continue
            again = partial(with_rating, is_good=is_good, before=rating_of(was, run_id))
            # Of a team's record nothing says whose run it was.
            nobody, rate_shared = Scope(scope.user_id), partial(each_lesson, change=again)
            done = self._guidelines.recount(record_id, rate_shared, nobody, reason=_RATED, owner=owner)
            counted.append(record_id)
            withdrawn += [record_id] if done is not None and done.reason == _RATED else []
        detail = {"score_milli": round(1_000 * value), "is_good": is_good, "has_error": bool(error)}
        self._trail.report(AuditEvent.by(scope, "rate", actor=by, reason="run", detail=detail))
        return Rated(run_id, value, tuple(counted), tuple(withdrawn))

    def guidelines(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        tool: str | None = None,
        withdrawn: bool = False,
        limit: int = 100,
    ) -> list[Guideline]:
        """The guidelines of a user's agents, the last changed first, with evidence and how often each was
        told.

        Args:
            user_id: None: everybody's; the operator looks.
            agent_id: Only those that this agent learned.
            tool: Only that of the tool of exactly this name.
            withdrawn: Those that are stale, deleted or quarantined, in place of those in use; with them, as
                a user's, what a team shares and this user is not told any more.
        """
        where = Filter(
            user_id=None if user_id is None else Scope(user_id).user_id,
            kinds=("experience",),
            attribute=GUIDELINE,
            subject=tool,
            agent_id=agent_id,
            statuses=("stale", "deleted", "quarantined") if withdrawn else ("active",),
        )
        ports = self._guidelines.ports()
        found = (
            each
            for each in self._guidelines.listed(where, ports)
            if tally_of(each) is None or refuted_in(each)
        )
        records = [*islice(found, max(0, limit))]
        told: Mapping[str, Reads] = {}
        if records:
            log = ports.services.backend.audit
            ports.store(log.flush)
            told = ports.store(log.reads, [each.id for each in records], op="inject")
        self._trail.seen("list", records, by_operator=user_id is None)
        return [
            Guideline(each, lessons_of(each.metadata), told[each.id].times if each.id in told else 0)
            for each in records
        ]

    def withdraw(self, id: str, *, reviewer: str, user_id: str | None = None) -> WriteResult:
        """Withdraw a guideline: it is told no more, and its lessons are not learned again by themselves.

        `memory.review.restore` undoes it.

        Raises:
            RecordNotFound: there is no such guideline, or it is another user's.
            InvalidName: `reviewer` is no login.
        """
        by = check_login(reviewer)
        assert self._curator is not None  # `of_reader` gives one before anybody is given the desk
        record = self._curator.own(id, user_id, self._guidelines.ports())
        if record.attribute != GUIDELINE or record.status != "active":
            raise RecordNotFound(
                f"record {id!r} is no guideline in use; `memory.experience.guidelines()` lists them", id=id
            )
        self._curator.delete(id, user_id, actor=by)
        return WriteResult(id, "updated", reason="withdrawn", version=record.version + 1)

    def identity(self, *, user_id: str, agent_id: str | None = None) -> Record | None:
        """The identity of an agent for a user: the record that is in each of its notes; None: there is none.

        Args:
            agent_id: None: the supervisor.
        """
        scope = Scope(user_id, agent_id)
        found = self._guidelines.listed(self._identity_of(scope), self._guidelines.ports())
        return found[0] if found else None

    def set_identity(
        self, text: str, *, user_id: str, agent_id: str | None = None, reviewer: str
    ) -> WriteResult:
        """Set the identity of an agent for a user: its name, role and tone. It is in each of its notes.

        People say so, or approve what a specialist proposes; no agent and no tool changes it. Its versions
        stay in `history`; `memory.delete` takes it away.

        Args:
            reviewer: Who says so: a login.

        Raises:
            InvalidContent: the text is empty or over 150 tokens.
            InvalidName: `reviewer` is no login.
        """
        by, scope = check_login(reviewer), Scope(user_id, agent_id)
        clean = self.services.redactor.text(check_content(text))
        check_size(clean, MOST_OF_IDENTITY, self.services.count_tokens, what="record of who an agent is")

        def once() -> WriteResult:
            view = self._guidelines.ports().deciding()
            found = view.list(self._identity_of(scope), limit=1)
            if found:
                old = found[0]
                if old.content == clean:
                    return WriteResult(old.id, "skipped", reason="nothing-to-change", version=old.version)
                new = replace(
                    old, content=clean, content_hash=content_hash(clean), updated_at=view.now, vector=None
                )
                change = Change(new, expects=old.version)
                facts: dict[str, Any] = {"version_before": old.version, "before": old.content}
                op, status, version = "update", "updated", old.version + 1
            else:
                new = Record(
                    new_id(),
                    scope.namespace(family_for("identity", agent_id, view.settings.namespaces)),
                    clean,
                    "identity",
                    view.now,
                    view.now,
                    source=Source("system", agent_id),
                    subject=SELF,
                    attribute=GUIDELINE,
                    valid_from=view.now,
                )
                change, facts, op, status, version = Change(new), {}, "add", "added", 1
            event = AuditEvent.of(op, new, actor=by, version_after=version, after=clean, **facts)
            done = view.commit(Commit(with_vectors([change], view), (event,)))
            return WriteResult(new.id, status, done.saved, "", version, done.applied)  # type: ignore[arg-type]

        return again_when_late(once)

    def _identity_of(self, scope: Scope) -> Filter:
        family = family_for("identity", scope.agent_id, self.services.settings.namespaces)
        kinds: tuple[Kind, ...] = ("identity",)
        return Filter(scope.user_id, (family,), (None,), kinds=kinds, subject=SELF, attribute=GUIDELINE)

    @property
    def _owner(self) -> str | None:
        return owner_of(self.services.settings)

    def _shared_of(self, told: Collection[str], ports: Ports) -> list[tuple[str, str]]:
        """The guidelines among some records that MEMORY_TEAM shares, each with its owner."""
        if self._owner is None or not told:
            return []
        where = Filter(self._owner, ids=tuple(told), kinds=("experience",), attribute=GUIDELINE)
        return [(each.id, each.user_id) for each in self._guidelines.listed(where, ports)]

    def _told_in(self, scope: Scope) -> frozenset[str]:
        """The ids of the records that notes held in a run, by this machine's access log."""
        notes = self.services.backend.audit.notes(
            _MOST_NOTES, user_id=scope.user_id, run_id=scope.run_id, op="inject"
        )
        return frozenset(each.record_id for note in notes for each in note.shown)

    arate = twin(rate)
    aguidelines = twin(guidelines)
    awithdraw = twin(withdraw)
    aidentity = twin(identity)
    aset_identity = twin(set_identity)
