"""Counts whether the lessons in agents' notes held, failed or were refuted, run by run."""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from supervisor_memory.model.records import Hit, Scope
from supervisor_memory.ports import Services, guarded
from supervisor_memory.stages.retrieval.guidelines import TOLD
from supervisor_memory.understand.lessons.following import is_followed, is_refuted_by, repeats
from supervisor_memory.understand.lessons.lesson import Call, Lesson, lessons_of
from supervisor_memory.understand.lessons.values import passes_by
from supervisor_memory.upkeep.experience.guidelines import Guidelines
from supervisor_memory.upkeep.experience.places import (
    MOST_HEARD,
    MOST_PLACES,
    Place,
    bound,
    drop_user,
    place_of,
)
from supervisor_memory.upkeep.experience.ratings import each_lesson

FAILED: Final = "what-it-says-failed"
"""The reason of an audit row for a lesson that is withdrawn because it failed."""
_WAIT_SECONDS: Final = 60.0
"""How long counts of what held wait to be written, so that a busy tool makes few versions."""
_FAILED: Final = 1
_REFUTED: Final = 2
_HELD: Final = 3
"""Verdicts of a run about a lesson. The highest verdict of a run counts."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A guideline an agent was told in a run: its owner and its lessons."""

    record_id: str
    owner: str
    lessons: tuple[Lesson, ...]


@dataclass
class _Waiting:
    """Verdicts about the lessons of a guideline that are not written yet, by run and lesson."""

    scope: Scope
    owner: str
    of: dict[tuple[Any, Any], int] = field(default_factory=dict)


class Counts:
    """Verdicts about lessons that were told, held in memory until they are written.

    docs/experience.md says when.
    """

    def __init__(self, services: Services, guidelines: Guidelines) -> None:
        self._services = services
        self._guidelines = guidelines
        self._lock = threading.Lock()
        self._told: OrderedDict[Place, dict[str, tuple[_Told, ...]]] = OrderedDict()
        self._counts: dict[tuple[str, str], _Waiting] = {}
        self._proved: OrderedDict[tuple[str, Any, Any], int] = OrderedDict()
        self._written_at: dict[tuple[str, str], float] = {}

    def knows(self, place: Place, tool: str) -> bool:
        """Whether the agent was told the tool's guideline in this run."""
        return tool in self._told.get(place, {})

    def told(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """Remember which guidelines an agent was told in a run, so that they count as they hold or fail."""
        given = [hit.record for hit in hits if hit.found == TOLD]
        if not given:
            return
        found: dict[str, tuple[_Told, ...]] = {}
        for each in given:
            told = _Told(each.id, each.user_id, lessons_of(each.metadata))
            found[each.subject or ""] = (*found.get(each.subject or "", ()), told)
        with self._lock:
            self._told[place_of(scope)] = {**self._told.get(place_of(scope), {}), **found}
            bound(self._told, MOST_PLACES)

    def judge(self, place: Place, call: Call, scope: Scope) -> None:
        """Count for each told lesson of the tool whether this call confirms it.

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
        run = object() if scope.run_id is None else place_of(scope)
        key, news = (told.record_id, scope.user_id), set()
        with self._lock:
            waiting = self._counts.setdefault(key, _Waiting(scope, told.owner))
            for name, proof in proved.items():
                known = self._proved.get((told.record_id, run, name), 0)
                if proof > max(known, waiting.of.get((run, name), 0)):
                    waiting.of[run, name] = proof
                    news.add(proof)
            if not waiting.of:
                self._counts.pop(key)
            now = self._services.clock()
            is_due = _HELD in news and now - self._written_at.get(key, -math.inf) >= _WAIT_SECONDS
            if is_due:
                self._written_at[key] = now
        if _REFUTED in news or (_FAILED in news and scope.run_id is None):
            self._write_counts(key, running=scope.run_id)
        elif is_due:
            self._services.bridge.background(lambda: self._write_counts(key, running=scope.run_id))

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
            bound(self._proved, MOST_HEARD)
        if not counts:
            return
        (record_id, _), owner, scope = key, waiting.owner, waiting.scope

        def counted(lesson: Lesson, *, by_user: bool = True) -> Lesson:
            held, failed, refuted = counts.get(lesson.key, (0, 0, 0))
            at = self._services.clock() if held else lesson.at
            # Its words were in the error: one such call outweighs those that held before. For a team it is
            # one call of one user.
            if refuted and by_user:
                failed += lesson.held + held
            return replace(lesson, held=lesson.held + held, failed=max(0, lesson.failed + failed), at=at)

        def write() -> None:
            keep = self._guidelines
            if owner == scope.user_id:
                keep.recount(record_id, lambda old: each_lesson(old, counted), scope, reason=FAILED)
                return
            keep.tally(record_id, owner, lambda old: each_lesson(old, counted), scope.user_id, reason=FAILED)
            # Of a team's record nothing says whose call it was.
            of_all, nobody = partial(counted, by_user=False), Scope(scope.user_id, scope.agent_id)
            keep.recount(record_id, lambda old: each_lesson(old, of_all), nobody, reason=FAILED, owner=owner)

        guarded(write, otherwise=lambda problem: self._guidelines.missed(scope, problem))

    def flush(self) -> None:
        """Write the counts that wait."""
        for key in list(self._counts):
            self._write_counts(key)

    def forget(self, user_id: str) -> None:
        """Drop what is held in memory of a user."""
        with self._lock:
            drop_user(self._told, user_id)
            for waiting in [each for each in self._counts if each[1] == user_id]:
                self._counts.pop(waiting)
            for proved in [
                each for each in self._proved if isinstance(each[1], tuple) and each[1][0] == user_id
            ]:
                self._proved.pop(proved)


def _is_open(run: Any, proof: int, running: str | None) -> bool:
    """Whether a failure may still be followed by a success, because its run goes on."""
    return proof == _FAILED and isinstance(run, tuple) and running is not None and run[3] == running


def _fails_otherwise(lessons: Sequence[Lesson], call: Call) -> bool:
    """Whether a failed call also repeats another lesson's mistake, so this lesson is not to blame."""
    return any(repeats(each, call) for each in lessons)
