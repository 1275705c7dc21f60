"""The queue of events that are not memory yet: taken up during a turn, read in the background.

Nothing in here raises into a graph. An event that is read twice, after a crash or by two processes, is
remembered once: decisions on it have ids derived from its own, see `stages/insert/event_ids.py`.
"""

import contextlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from supervisor_memory.bridge import twin
from supervisor_memory.errors import BackendError, DeadlineExceeded, InvalidContent, WasErased
from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import AuditEvent, Message, Scope, SourceClass, new_id, parts_of_message
from supervisor_memory.ports import Ports, Services, guarded
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.pre_insert.reply import NO_LIST, listed
from supervisor_memory.stages.pre_insert.specialists import functions_of
from supervisor_memory.understand.statements import is_small_talk
from supervisor_memory.upkeep.queue import extract as reading
from supervisor_memory.upkeep.queue.capture import Capture, masked
from supervisor_memory.upkeep.queue.event import Event, event_id
from supervisor_memory.upkeep.queue.tables import QUEUE_FILE_NAME, Batch, Gate, QueueFile, Waiting
from supervisor_memory.wiring.trail import Trail

if TYPE_CHECKING:
    from supervisor_memory.stages.pre_insert.operations import Answered

LEFT_OVER_SECONDS: Final = 600.0
"""The longest an event waits for a gate; then the user's next message has it read."""


class Queue:
    """The events that wait to be read, as `memory.queue`; docs/queue.md says when they are read.

    Args:
        directory: The directory of `queue.db`, which is made at the first event; None: in memory.
        insert: Decides on statements and commits them.
        redact: Masks personal data in a text, before it is kept.
    """

    def __init__(
        self,
        services: Services,
        trail: Trail,
        *,
        directory: Path | None,
        insert: Callable[[Remembering], object],
        redact: Callable[[str], str] = str,
    ) -> None:
        settings = services.settings
        patient = settings.model_copy(update={"llm_timeout_ms": settings.queue_llm_timeout_ms})
        self.services = replace(services, settings=patient)
        self._settings, self._bridge, self._clock = settings, services.bridge, services.clock
        self._trail, self._insert = trail, insert
        self._capture = Capture(settings, redact)
        self._directory = directory
        self._file: QueueFile | None = None
        self._has_added = False
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._running: dict[str, bool] = {}
        """The users with a worker in this process → whether more events came meanwhile."""

    # --- for people

    def waiting(self, *, user_id: str | None = None, limit: int = 100) -> list[Waiting]:
        """The events that wait or are being read now, oldest first.

        Args:
            user_id: Only this user's. None: everybody's.
        """
        file = self._existing()
        return [] if file is None else list(file.listed("waiting", user_id=user_id, limit=limit))

    def dead(self, *, user_id: str | None = None, limit: int = 100) -> list[Waiting]:
        """The events that failed three times, each with a reason code, oldest first."""
        file = self._existing()
        return [] if file is None else list(file.listed("dead", user_id=user_id, limit=limit))

    def retry(self, ids: Sequence[str] | None = None) -> int:
        """Let dead events wait again; returns how many.

        Args:
            ids: The ids of the events. None: all dead events.
        """
        file = self._existing()
        return 0 if file is None else file.retry(ids)

    def counts(self) -> Mapping[str, int]:
        """The numbers of events: "waiting" and "dead"."""
        file = self._existing()
        return {"waiting": 0, "dead": 0} if file is None else file.counts()

    def flush(self, *, seconds: float = 60.0) -> bool:
        """Read all waiting events now, each once, whatever the gates say. False: the time ran out.

        Failed events stay in the queue; after three times they are dead.
        """
        until = time.monotonic() + seconds
        if not self._bridge.drain(seconds=seconds):
            return False

        def read_all() -> bool:
            file = self._existing()
            if file is not None:
                self._bridge.within(until - time.monotonic(), self._read_all, file, file.users(), until=until)
            return time.monotonic() < until

        return guarded(read_all, otherwise=lambda error: False)

    awaiting = twin(waiting)
    adead = twin(dead)
    aretry = twin(retry)
    acounts = twin(counts)
    aflush = twin(flush)

    # --- what comes

    def takes(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether results of a call become events, by MEMORY_CAPTURE_TOOLS and similar settings."""
        return self._capture.takes(tool, arguments)

    def observe(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        text: str,
        scope: Scope,
        *,
        artifact: object = None,
        call_id: str | None = None,
        turn_id: str | None = None,
    ) -> bool:
        """Put a tool's result into the queue; returns whether it was added. Never raises.

        Args:
            artifact: The tool's return value beside its text, such as a list of side effects.
            call_id: The id of the call, so that its result is added once.
            turn_id: The id of the user's message that it answers.
        """

        def take() -> bool:
            if not self.takes(tool, arguments):
                return False
            event = self._capture.event(
                tool,
                arguments,
                strip_notes(text),
                artifact=artifact,
                scope=scope,
                call_id=call_id,
                turn_id=turn_id,
                at=self._clock(),
            )
            return event is not None and self._add([event])

        return guarded(take, otherwise=lambda error: self._missed(scope, error))

    def heard(self, said: Remembering, done: Remembering, *, at: float) -> None:
        """Queue the messages and the outcome of a turn for the model and for functions among the specialists;
        without either, do nothing.

        Args:
            said, done: The turn as it came, and as the rules remembered it.
        """
        if self.services.complete is None and not functions_of(self._settings.specialists):
            return
        events = self._events_of(said, done, at)
        guarded(lambda: self._add(events), otherwise=lambda error: self._missed(said.scope, error))

    def next_message(self, user_id: str) -> None:
        """Read a user's waiting events at their next message; with background workers, old ones only."""

        def look() -> None:
            file = self._existing()
            oldest = None if file is None else file.oldest(user_id)
            if file is None or oldest is None:
                return
            if not self._settings.queue_worker:
                seconds = self._settings.write_timeout_ms / 1000
                until = time.monotonic() + seconds
                self._bridge.within(seconds, self._read_all, file, [user_id], until=until)
            elif oldest < self._clock() - LEFT_OVER_SECONDS:
                self._bridge.background(lambda: self._read_left_over(file, user_id))

        guarded(look, otherwise=lambda error: None)

    def _events_of(self, said: Remembering, done: Remembering, at: float) -> list[Event]:
        kept = {(record.source.source_class, record.content): record.id for record in done.verbatim}
        seen: Counter[str] = Counter()
        told = [message for message in said.messages if message.role in ("user", "assistant")]
        users = [message.content for message in told if message.role == "user"]
        if users and all(map(is_small_talk, users)):
            told = []  # nor what answers it
        if said.outcome.final_answer:
            told.append(Message("assistant", said.outcome.final_answer))
        events = []
        for message in told:
            source_class: SourceClass = "user" if message.role == "user" else "agent"
            text = masked(strip_notes(message.content), self._capture.redact).strip()
            if not text:
                continue
            place = (source_class == "user" and message.id) or said.turn_id
            seen[text] += 1
            same = (place, source_class, text, str(seen[text]))
            events.append(
                Event(
                    said.scope,
                    text,
                    source_class,
                    created_at=at,
                    turn_id=said.turn_id,
                    message_id=message.id,
                    ref_id=kept.get((source_class, _first_part(strip_notes(message.content)))),
                    id=event_id(said.scope, *same) if said.turn_id else new_id(),
                )
            )
        return events

    def _add(self, events: Sequence[Event]) -> bool:
        if not events:
            return False
        self._has_added = True
        added = self._opened().add(events)
        if added:
            self._wake(events[0].scope.user_id)
        return bool(added)

    def _missed(self, scope: Scope, error: BaseException) -> bool:
        self._report(scope, "queue", "degraded", type(error).__name__)
        return False

    # --- who reads it

    def _wake(self, user_id: str) -> None:
        """Start a worker for a user, if workers are on and the gate may let it pass."""
        file, gate = self._opened(), self._gate
        if not self._settings.queue_worker:
            return
        if gate is not None and not file.may_pass(user_id, gate, now=self._clock()):
            return
        with self._lock:
            if user_id in self._running:
                self._running[user_id] = True
                return
            self._running[user_id] = False
        self._bridge.background(lambda: self._work(file, user_id))

    def _work(self, file: QueueFile, user_id: str) -> None:
        """Read a user's events until no more have come."""
        while True:
            guarded(
                lambda: self._read_user(file, user_id, until=self._run_until(), is_forced=False),
                otherwise=lambda error: None,
            )
            with self._lock:
                if not self._running[user_id]:
                    del self._running[user_id]
                    return
                self._running[user_id] = False

    def _read_left_over(self, file: QueueFile, user_id: str) -> None:
        before = self._clock() - LEFT_OVER_SECONDS
        until = self._run_until()
        guarded(
            lambda: self._read_user(file, user_id, until=until, is_forced=True, before=before),
            otherwise=lambda error: None,
        )

    def _read_all(self, file: QueueFile, users: Collection[str], *, until: float) -> None:
        for user_id in users:
            self._read_user(file, user_id, until=until, is_forced=True)

    def _read_user(
        self, file: QueueFile, user_id: str, *, until: float, is_forced: bool, before: float | None = None
    ) -> None:
        """Read a user's batches, each event once, while there are any and time is left."""
        tried: set[int] = set()
        while time.monotonic() < until:
            batch = file.lease(
                user_id, now=self._clock(), gate=self._gate, is_forced=is_forced, before=before, tried=tried
            )
            if batch is None:
                return
            tried.update(each.seq for each in batch.waiting)
            self._read(file, batch, seconds=max(until - time.monotonic(), 0.0))

    def _read(self, file: QueueFile, batch: Batch, *, seconds: float) -> None:
        """Read a batch; after a failure its events wait again, or are dead."""

        def read() -> BaseException | None:
            try:
                self._read_now(file, batch, seconds=seconds)
            except _UnreadError as error:
                return error
            return None

        error = guarded(read, otherwise=lambda error: error)
        if error is not None:
            guarded(lambda: self._unread(file, batch, error), otherwise=lambda error: None)

    def _read_now(self, file: QueueFile, batch: Batch, *, seconds: float) -> None:
        """Read a batch by rules, then by the model; the model's answer is saved before it is used."""
        for event in batch.events:
            if (said := reading.by_rules(event)) is not None and not self._keep(file, batch, said):
                return
        if functions_of(self._settings.specialists):
            for said in self._by_functions(batch, seconds):
                if not self._keep(file, batch, said):
                    return
        if self.services.complete is not None and (told := self._answered(file, batch, seconds)) is not None:
            for said in reading.by_model(batch.events, told):
                if not self._keep(file, batch, said):
                    return
        file.finish(batch, now=self._clock())

    def _by_functions(self, batch: Batch, seconds: float) -> Iterator[Remembering]:
        """Run the specialists that are functions; the failure of one is audited."""
        from supervisor_memory.stages.pre_insert.operations import by_functions

        ports = Ports(self.services, seconds=seconds, now=self._clock())
        scope = batch.events[0].scope
        heard = reading.heard(batch.events)
        told, _ = by_functions(heard, replace(scope, agent_id=None), ports.read_store())
        if ports.degraded:
            self._report(scope, "sharpen", "degraded", ports.reasons)
        return reading.by_model(batch.events, told, by="function")

    def _unread(self, file: QueueFile, batch: Batch, error: BaseException) -> None:
        is_others = isinstance(error, (BackendError, DeadlineExceeded, _CutShortError))
        code = str(error) if isinstance(error, _UnreadError) else type(error).__name__
        self._report(batch.events[0].scope, "sharpen", "degraded", code)
        for each in file.give_back(batch, code, is_its_own=not is_others):
            detail: dict[str, str | int] = {"event": each.event.id, "attempts": each.attempts, "why": code}
            self._report(each.event.scope, "queue", "failed", "dead-letter", detail)

    def _answered(self, file: QueueFile, batch: Batch, seconds: float) -> "Answered | None":
        """A model's answer about a batch, or the saved answer of a worker that died; None: there is nothing
        to ask, or another worker has the batch.

        Raises:
            _CutShortError: this worker had less time left than a model may take.
            _UnreadError: the model failed, or its answer is no JSON list.
        """
        # without a model nobody needs it
        from supervisor_memory.stages.pre_insert.operations import answered, asking

        ports = Ports(self.services, seconds=seconds, now=self._clock())
        scope, view = batch.events[0].scope, ports.read_store()
        asked = asking(reading.heard(batch.events), replace(scope, agent_id=None), view)
        if asked is None:
            return None
        if batch.reply is not None:
            shown, reply = _unpacked(batch.reply)
            asked = replace(asked, shown=shown)
            return answered(listed(reply) or [], asked, scope, view)
        began = time.monotonic()
        reply_now = view.complete(asked.prompt, shape=asked.shape)
        if reply_now is None:
            had_its_time = time.monotonic() - began >= self.services.settings.llm_timeout_ms / 1000
            is_late = ports.reasons == "model:DeadlineExceeded"
            raise (_CutShortError if is_late and not had_its_time else _UnreadError)(ports.reasons)
        if (data := listed(reply_now)) is None:
            raise _UnreadError(NO_LIST)
        if not file.keep_reply(batch, json.dumps({"shown": dict(asked.shown), "reply": reply_now})):
            return None
        return answered(data, asked, scope, view)

    def _keep(self, file: QueueFile, batch: Batch, said: Remembering) -> bool:
        """Insert an event's statements. False: another worker has the batch, or its user was erased."""
        if not file.is_held(batch):
            return False
        with contextlib.suppress(WasErased):  # said before that: it does not come back
            self._insert(said)
        return True

    @property
    def _gate(self) -> Gate | None:
        """The limit on calls of the model; None without a model."""
        if self.services.complete is None:
            return None
        return Gate(self._settings.queue_min_events, self._settings.queue_cooldown_s)

    def _run_until(self) -> float:
        return time.monotonic() + self._settings.queue_run_timeout_ms / 1000

    # --- erasing a user, closing

    def count_of(self, user_id: str) -> int:
        """The number of a user's events."""
        file = self._existing()
        return 0 if file is None else file.count_of(user_id)

    def forget(self, user_id: str, *, at: float, session_id: str | None = None) -> tuple[int, str]:
        """Remove the events of a user, or of a session, and all bytes of removed events from the file.

        Returns:
            How many events there were, and why the bytes could not be removed; "": they were.
        """
        file = self._existing()
        return (0, "") if file is None else (file.forget(user_id, at=at, session_id=session_id), file.scrub())

    def close(self, *, seconds: float = 60.0) -> None:
        """Read all events if this process has added any, and close the file; the rest waits there."""
        if self._has_added:
            self.flush(seconds=seconds)
            self._has_added = False
        else:
            self._bridge.drain(seconds=seconds)
        if self._file is not None:
            self._file.close()

    # --- inside

    def _opened(self) -> QueueFile:
        """The queue's file, made if it does not exist."""
        if self._pid != os.getpid():  # threads do not survive a fork, and a lock may have been held
            self._reset()
        with self._lock:
            if self._file is None:
                file = QueueFile(self._directory)
                if not file.database.read_only and not file.is_clean():
                    file.scrub()  # after an erasure that was cut off
                self._file = file
            return self._file

    def _existing(self) -> QueueFile | None:
        """The queue's file if it exists; looking must not make it."""
        is_there = self._file or (self._directory and (self._directory / QUEUE_FILE_NAME).exists())
        return self._opened() if is_there else None

    def _report(
        self,
        scope: Scope,
        op: str,
        outcome: Literal["degraded", "failed"],
        reason: str,
        detail: Mapping[str, str | int] | None = None,
    ) -> None:
        event = AuditEvent.by(scope, op, outcome=outcome, reason=reason, detail=dict(detail or {}))
        self._trail.report(event)


def _unpacked(kept: str) -> tuple[Mapping[str, str], str]:
    """The ids of the records that a model was shown, and its answer."""
    try:
        told = json.loads(kept)
        return dict(told["shown"]), str(told["reply"])
    except (ValueError, TypeError, KeyError):
        return {}, kept  # as versions before kept it


def _first_part(text: str) -> str:
    """The text of the first session message that a message became."""
    with contextlib.suppress(InvalidContent):
        return parts_of_message(text)[0]
    return text.strip()


class _UnreadError(Exception):
    """A model could not read a batch; the error's text is a code."""


class _CutShortError(_UnreadError):
    """The worker had no time left, which does not count as a failure of the events."""
