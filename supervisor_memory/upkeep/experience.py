"""Experience: lessons of calls that failed and then worked, a guideline a tool, ratings of runs.

A lesson is read by rules where the call that works is heard, and written at once; `understand/lessons.py` has
the rules. It is the agent's own: kept in its family, as the tool's words, told to it alone. What it says is
counted as it holds and fails, and what fails is withdrawn. Nothing in here raises into a graph.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from supervisor_memory.bridge import twin
from supervisor_memory.errors import RecordNotFound, WasErased
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
from supervisor_memory.ports import Deciding, Ports, Services, guarded
from supervisor_memory.redact.redactor import Redactor, open_redactor
from supervisor_memory.stages.insert.doubt import EVERY_CANDIDATE, REVIEW, known_to_reviewers
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.retrieval.guidelines import TOLD
from supervisor_memory.stages.retrieval.shared import owner_of, refuted_in, tally_of
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.lessons import (
    CORRECTED,
    GUIDELINE,
    LESSONS,
    MOST_OF_IDENTITY,
    RATED_RUNS,
    TALLY,
    Call,
    Lesson,
    check_size,
    doubts,
    is_followed,
    is_name,
    is_refuted_by,
    last_name,
    learned,
    lessons_of,
    passes_by,
    repeats,
    says_also,
    with_lesson,
    worded,
)
from supervisor_memory.upkeep.edit import Curator, again_when_late
from supervisor_memory.wiring.trail import Trail

FAILED: Final = "what-it-says-failed"
"""The reason of an audit row for a lesson that is withdrawn because it failed."""
RATED: Final = "rated-badly"
"""The reason for a lesson that is withdrawn because its runs were rated badly."""
_MOST_PLACES: Final = 1_024
_MOST_FAILED: Final = 4
"""The most failed calls kept for a tool, an agent and a run."""
_MOST_HEARD: Final = 4_096
_WAIT_SECONDS: Final = 60.0
"""How long counts of what held wait to be written, so that a busy tool makes few versions."""
_FAILED: Final = 1
_REFUTED: Final = 2
_HELD: Final = 3
"""Verdicts of a run about a lesson. The highest verdict of a run counts."""
_LONGEST_TASK: Final = 2_000
_MOST_GUIDELINES: Final = 1_000
_MOST_NOTES: Final = 200
SELF: Final = "self"
"""The subject of the record that says who an agent is."""
_MOST_RATED: Final = 200
_MANY: Final = 2
"""The users for whom a team's lesson has to be refuted before it is withdrawn for all."""
_GOOD: Final = 0.5
"""The score from which a run counts as a good one."""
_SECRETS: Final = "secrets"
_DETAIL: Final = {"kind": "experience", "layer": "abstract"}

_Place: TypeAlias = tuple[str, str | None, str | None, str | None, str | None]
"""Of an agent in a run: user, task, session, run, agent."""


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


@dataclass(frozen=True, slots=True)
class _Told:
    """A guideline of a tool that an agent was told in a run, whose it is, and the lessons in it."""

    record_id: str
    owner: str
    lessons: tuple[Lesson, ...]


@dataclass
class _Counts:
    """Verdicts about the lessons of a guideline that are not written yet, by run and lesson."""

    scope: Scope
    owner: str
    of: dict[tuple[Any, Any], int] = field(default_factory=dict)


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


class Experience:
    """Hears calls of tools and ratings of runs, and keeps what they teach, as `memory.experience`.

    docs/experience.md is its page.
    """

    def __init__(self, services: Services, trail: Trail) -> None:
        self.services = services
        self._trail = trail
        self._curator: Curator | None = None
        self._is_on = services.settings.experience and services.settings.enabled
        self._secrets: Redactor | None = None
        self._lock = threading.Lock()
        self._failed: OrderedDict[tuple[_Place, str], list[Call]] = OrderedDict()
        self._told: OrderedDict[_Place, dict[str, tuple[_Told, ...]]] = OrderedDict()
        self._heard: OrderedDict[tuple[_Place, str, str, bool], None] = OrderedDict()
        self._counts: dict[tuple[str, str], _Counts] = {}
        self._proved: OrderedDict[tuple[str, Any, Any], int] = OrderedDict()
        self._written_at: dict[tuple[str, str], float] = {}

    def of_reader(self, trail: Trail, curator: Curator) -> "Experience":
        """The same, all that it has heard shared, with another trail and the desk that changes records."""
        theirs = copy(self)
        theirs._trail, theirs._curator = trail, curator
        return theirs

    # --- what is heard

    def wants(self, tool: str, scope: Scope, *, failed: bool) -> bool:
        """Whether a call has to be heard: it failed, or one of the tool did, or its guideline was told.

        For most calls that work the answer is no, and nothing more is done for them.
        """
        if not self._is_on or not tool.strip():
            return False
        if failed:
            return True
        place = _place(scope)
        return (place, tool) in self._failed or tool in self._told.get(place, {})

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
            place, name = _place(scope), tool
            call = self._clean(Call.of(name, arguments, error))
            if self._is_heard(place, call, call_id):
                return None
            self._judge(place, call, scope)
            if call.error is not None:
                self._keep_failed(place, call)
                return None
            with self._lock:
                failed = self._failed.pop((place, name), [])
            if not failed:
                return None
            task, now = self._clean_text(asked[:_LONGEST_TASK]), self.services.clock()
            found = learned(failed, call, run=scope.run_id, at=now, asked=task)
            return None if found is None else self._learn(found, failed, call, scope, language(asked))

        return guarded(hear, otherwise=lambda problem: self._missed(scope, problem))

    def told(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """Remember which guidelines an agent was told in a run, so that they count as they hold or fail."""
        given = [hit.record for hit in hits if hit.found == TOLD]
        if not given or not self._is_on:
            return
        found: dict[str, tuple[_Told, ...]] = {}
        for each in given:
            told = _Told(each.id, each.user_id, lessons_of(each.metadata))
            found[each.subject or ""] = (*found.get(each.subject or "", ()), told)
        with self._lock:
            self._told[_place(scope)] = {**self._told.get(_place(scope), {}), **found}
            _bound(self._told, _MOST_PLACES)

    def run_failed(self, scope: Scope, error: BaseException) -> None:
        """Audit that what an agent did in a run ended in an exception; its text is kept nowhere."""
        if self._is_on:
            self._trail.report(
                AuditEvent.by(scope, "outcome", outcome="failed", reason=type(error).__name__[:64])
            )

    def _keep_failed(self, place: _Place, call: Call) -> None:
        with self._lock:
            held = self._failed.setdefault((place, call.tool), [])
            held.append(call)
            del held[:-_MOST_FAILED]
            self._failed.move_to_end((place, call.tool))
            _bound(self._failed, _MOST_PLACES)

    def _is_heard(self, place: _Place, call: Call, call_id: str | None) -> bool:
        if call_id is None:
            return False
        key = (place, call.tool, call_id, call.error is None)
        with self._lock:
            if key in self._heard:
                return True
            self._heard[key] = None
            _bound(self._heard, _MOST_HEARD)
        return False

    def _clean_text(self, text: str) -> str:
        """A text without secrets, and without what the settings have taken out."""
        return self.services.redactor.text(self._secret_finder().text(text))

    def _secret_finder(self) -> Redactor:
        if self._secrets is None:
            self._secrets = open_redactor(_SECRETS, self.services.settings.phone_regions)
        return self._secrets

    def _clean(self, call: Call) -> Call:
        """The call without secrets, and without what the settings have taken out, before anything is kept."""
        secrets = self._secret_finder()

        def clean(name: str, value: Any) -> Any:
            told = secrets.value({last_name(name): value})
            return next(iter(self.services.redactor.value(told).values()))

        given = {name: clean(name, value) for name, value in call.arguments.items()}
        return replace(
            call, arguments=given, error=None if call.error is None else self._clean_text(call.error)
        )

    # --- what held and what failed

    def _judge(self, place: _Place, call: Call, scope: Scope) -> None:
        """Count the lessons that the agent was told of this tool, as the call bears them out or not.

        A failure that passes by itself, as a time-out, says nothing about them.
        """
        if call.error is not None and passes_by(call.error):
            return
        every = self._told.get(place, {}).get(call.tool, ())
        lessons = [lesson for told in every for lesson in told.lessons]
        for told in every:
            self._judge_one(told, lessons, call, scope)

    def _judge_one(self, told: _Told, every: Sequence[Lesson], call: Call, scope: Scope) -> None:
        proved: dict[Any, int] = {}
        for lesson in told.lessons:
            if not is_followed(lesson, call):
                continue
            if call.error is None:
                proved[lesson.key] = _HELD
            elif is_refuted_by(lesson, call.error):
                proved[lesson.key] = _REFUTED
            elif not _fails_otherwise(every, call):
                proved[lesson.key] = _FAILED
        # Calls without a run are no one run's: each counts.
        run = object() if scope.run_id is None else _place(scope)
        key, news = (told.record_id, scope.user_id), set()
        with self._lock:
            waiting = self._counts.setdefault(key, _Counts(scope, told.owner))
            for name, proof in proved.items():
                known = self._proved.get((told.record_id, run, name), 0)
                if proof > max(known, waiting.of.get((run, name), 0)):
                    waiting.of[run, name] = proof
                    news.add(proof)
            if not waiting.of:
                self._counts.pop(key)
            now = self.services.clock()
            is_due = _HELD in news and now - self._written_at.get(key, -math.inf) >= _WAIT_SECONDS
            if is_due:
                self._written_at[key] = now
        if _REFUTED in news or (_FAILED in news and scope.run_id is None):
            self._write_counts(key, running=scope.run_id)
        elif is_due:
            self.services.bridge.background(lambda: self._write_counts(key, running=scope.run_id))

    def settle(self, scope: Scope) -> None:
        """Write the failures of the user's finished runs. Called when another run begins."""
        for key, waiting in list(self._counts.items()):
            if key[1] == scope.user_id and not all(
                _is_open(run, proof, scope.run_id) for (run, _), proof in list(waiting.of.items())
            ):
                self._write_counts(key, running=scope.run_id)

    def _write_counts(self, key: tuple[str, str], *, running: str | None = None) -> None:
        """Write the counts of a guideline that wait.

        Args:
            running: A run that goes on: what failed in it may still work in the end, and waits.
        """
        with self._lock:
            waiting = self._counts.pop(key, None)
            if waiting is None:
                return
            rest = {each: proof for each, proof in waiting.of.items() if _is_open(each[0], proof, running)}
            if rest:
                self._counts[key] = replace(waiting, of=rest)
            counts: dict[Any, list[int]] = {}
            for (run, name), proof in waiting.of.items():
                if (run, name) in rest:
                    continue
                before = self._proved.pop((key[0], run, name), 0)
                self._proved[key[0], run, name] = proof
                mine = counts.setdefault(name, [0, 0, 0])
                mine[0] += proof == _HELD
                mine[1] += (proof != _HELD) - (before in (_FAILED, _REFUTED))
                mine[2] += proof == _REFUTED
            _bound(self._proved, _MOST_HEARD)
        if not counts:
            return
        (record_id, _), owner, scope = key, waiting.owner, waiting.scope

        def counted(lesson: Lesson, *, by_user: bool = True) -> Lesson:
            held, failed, refuted = counts.get(lesson.key, (0, 0, 0))
            at = self.services.clock() if held else lesson.at
            # Its words were in the error: one such call outweighs those that held before. For a team it is
            # one call of one user.
            if refuted and by_user:
                failed += lesson.held + held
            return replace(lesson, held=lesson.held + held, failed=max(0, lesson.failed + failed), at=at)

        def write() -> None:
            if owner == scope.user_id:
                self._recounted(record_id, lambda old: _each(old, counted), scope, reason=FAILED)
                return
            self._tallied(record_id, owner, lambda old: _each(old, counted), scope.user_id, reason=FAILED)
            # Of a team's record nothing says whose call it was.
            of_all = partial(counted, by_user=False)
            self._recounted(
                record_id,
                lambda old: _each(old, of_all),
                Scope(scope.user_id, scope.agent_id),
                reason=FAILED,
                owner=owner,
            )

        guarded(write, otherwise=lambda problem: self._missed(scope, problem))

    def flush(self) -> None:
        """Write the counts that wait."""
        for key in list(self._counts):
            self._write_counts(key)

    def forget(self, user_id: str) -> None:
        """Drop what is held in memory of a user."""
        with self._lock:
            for held in (self._failed, self._told, self._heard):
                for key in [key for key in held if _user_of(key) == user_id]:
                    held.pop(key)  # type: ignore[arg-type]  # of three mappings, each with keys of its own
            for waiting in [each for each in self._counts if each[1] == user_id]:
                self._counts.pop(waiting)
            for proved in [
                each for each in self._proved if isinstance(each[1], tuple) and each[1][0] == user_id
            ]:
                self._proved.pop(proved)

    def _recounted(
        self,
        record_id: str,
        change: Callable[[Record], "_Recounted"],
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
            ports = self._ports()
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
            each for each in view.list(where, limit=_MOST_GUIDELINES) if tally_of(each) == shared.user_id
        )
        return len({each.user_id for each in tallies if lesson.key in refuted_in(each)})

    def _tallied(
        self,
        record_id: str,
        owner: str,
        change: Callable[[Record], "_Recounted"],
        user_id: str,
        *,
        reason: str,
    ) -> Record | None:
        """Change what a user's calls and ratings say about a team's guideline; returns what they said before.

        It is a record of the user, which is told to nobody: what is refuted there is not told to this user.
        """

        def once() -> Record | None:
            view = self._ports().deciding()
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

    def _learn(
        self, lesson: Lesson, failed: Sequence[Call], worked: Call, scope: Scope, tongue: str
    ) -> WriteResult | None:
        why = doubts(lesson, failed, worked)
        if self.services.settings.review == "all":
            why = why or (EVERY_CANDIDATE,)

        def once() -> WriteResult | None:
            view = self._ports().deciding()
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

    def _changed(
        self, old: Record, lessons: Sequence[Lesson], view: Deciding, scope: Scope, *, reason: str
    ) -> WriteResult:
        """Give a guideline other lessons; without any it is stale, which `memory.review.restore` undoes."""
        now = self.services.clock()
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

    def _skipped(self, of: "_Tool", reason: str) -> WriteResult:
        told = AuditEvent.by(
            of.scope, "skip", family=of.family, outcome="skipped", reason=reason, source_class="tool"
        )
        self._trail.report(told)
        return WriteResult("", "skipped", reason=reason)

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
        ports = self._ports()
        told = self._told_in(scope)
        found = self._listed(Filter(user_id=scope.user_id, kinds=("experience",), attribute=GUIDELINE), ports)
        counted, withdrawn = [], []
        is_good = value >= _GOOD

        rate_own = partial(_rated, run_id=run_id, is_good=is_good)
        for record in found:
            is_told = record.id in told
            if not is_told and not any(run_id in each.runs for each in lessons_of(record.metadata)):
                continue
            done = self._recounted(record.id, partial(rate_own, is_told=is_told), scope, reason=RATED)
            counted.append(record.id)
            withdrawn += [record.id] if done is not None and done.reason == RATED else []
        for record_id, owner in self._shared_of(told, ports):
            rate_tally = partial(rate_own, is_told=True)
            was = self._tallied(record_id, owner, rate_tally, scope.user_id, reason=RATED)
            if was is None:
                continue
            again = partial(_with_rating, is_good=is_good, before=_rating_of(was, run_id))
            # Of a team's record nothing says whose run it was.
            nobody, rate_shared = Scope(scope.user_id), partial(_each, change=again)
            done = self._recounted(record_id, rate_shared, nobody, reason=RATED, owner=owner)
            counted.append(record_id)
            withdrawn += [record_id] if done is not None and done.reason == RATED else []
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
        ports = self._ports()
        found = (each for each in self._listed(where, ports) if tally_of(each) is None or refuted_in(each))
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
        record = self._curator.own(id, user_id, self._ports())
        if record.attribute != GUIDELINE or record.status != "active":
            raise RecordNotFound(
                f"record {id!r} is no guideline in use; `memory.experience.guidelines()` lists them", id=id
            )
        self._curator.delete(id, user_id, actor=by)
        return WriteResult(id, "updated", reason="withdrawn", version=record.version + 1)

    def identity(self, *, user_id: str, agent_id: str | None = None) -> Record | None:
        """Who an agent is to a user: the record that stands in each of its notes; None: there is none.

        Args:
            agent_id: None: the supervisor.
        """
        scope = Scope(user_id, agent_id)
        found = self._listed(self._identity_of(scope), self._ports())
        return found[0] if found else None

    def set_identity(
        self, text: str, *, user_id: str, agent_id: str | None = None, reviewer: str
    ) -> WriteResult:
        """Say who an agent is to a user: its name, role and tone. It stands in each of its notes.

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
            view = self._ports().deciding()
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

    def _listed(self, where: Filter, ports: Ports) -> list[Record]:
        return [*ports.read_store().list(where, limit=_MOST_GUIDELINES)]

    @property
    def _owner(self) -> str | None:
        return owner_of(self.services.settings)

    def _shared_of(self, told: Collection[str], ports: Ports) -> list[tuple[str, str]]:
        """The guidelines among some records that MEMORY_TEAM shares, each with its owner."""
        if self._owner is None or not told:
            return []
        where = Filter(self._owner, ids=tuple(told), kinds=("experience",), attribute=GUIDELINE)
        return [(each.id, each.user_id) for each in self._listed(where, ports)]

    def _told_in(self, scope: Scope) -> frozenset[str]:
        """The ids of the records that notes held in a run, by this machine's access log."""
        notes = self.services.backend.audit.notes(
            _MOST_NOTES, user_id=scope.user_id, run_id=scope.run_id, op="inject"
        )
        return frozenset(each.record_id for note in notes for each in note.shown)

    def _ports(self) -> Ports:
        return self.services.ports(self.services.settings.write_timeout_ms, with_model=False)

    def _missed(self, scope: Scope, problem: BaseException) -> None:
        event = AuditEvent.by(scope, "experience", outcome="degraded", reason=type(problem).__name__)
        self._trail.report(event)

    arate = twin(rate)
    aguidelines = twin(guidelines)
    awithdraw = twin(withdraw)
    aidentity = twin(identity)
    aset_identity = twin(set_identity)


@dataclass(frozen=True, slots=True)
class _Recounted:
    """The recounted lessons of a guideline and its changed metadata."""

    lessons: tuple[Lesson, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)


def _each(record: Record, change: Callable[[Lesson], Lesson]) -> _Recounted:
    return _Recounted(tuple(map(change, lessons_of(record.metadata))))


def _rated(record: Record, *, run_id: str, is_good: bool, is_told: bool) -> _Recounted:
    """Count a rating of a run in the place of the user's former one.

    Args:
        is_told: Whether the run was told all lessons; else it counts for those that it taught.
    """
    again = partial(_with_rating, is_good=is_good, before=_rating_of(record, run_id))
    done = _each(record, lambda each: again(each) if is_told or run_id in each.runs else each)
    others = [each for each in _ratings(record) if each[0] != run_id]
    rated = [*others, (run_id, is_good)][-_MOST_RATED:]
    return replace(done, beside={RATED_RUNS: [list(each) for each in rated]})


def _ratings(record: Record) -> list[tuple[str, bool]]:
    told = record.metadata.get(RATED_RUNS)
    return [(str(run), bool(is_good)) for run, is_good in told] if isinstance(told, (list, tuple)) else []


def _rating_of(record: Record, run_id: str) -> bool | None:
    return dict(_ratings(record)).get(run_id)


def _with_rating(lesson: Lesson, *, is_good: bool, before: bool | None) -> Lesson:
    if before is is_good:
        return lesson
    helped, hurt = lesson.helped + is_good, lesson.hurt + (not is_good)
    if before is not None:
        helped, hurt = max(0, helped - before), max(0, hurt - (not before))
    return replace(lesson, helped=helped, hurt=hurt)


def _place(scope: Scope) -> _Place:
    return scope.user_id, scope.task, scope.session_id, scope.run_id, scope.agent_id


def _user_of(key: Any) -> str:
    first = key[0]
    return first if isinstance(first, str) else str(first[0])


def _bound(held: OrderedDict[Any, Any], most: int) -> None:
    while len(held) > most:
        held.popitem(last=False)


def _is_open(run: Any, proof: int, running: str | None) -> bool:
    """Whether a failure may still turn into a success, because its run goes on."""
    return proof == _FAILED and isinstance(run, tuple) and running is not None and run[3] == running


def _fails_otherwise(lessons: Sequence[Lesson], call: Call) -> bool:
    """Whether a failed call also repeats another lesson's mistake, so this lesson is not to blame."""
    return any(repeats(each, call) for each in lessons)


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
