"""Digests the sessions that have ended: requests, deeds, decisions, lessons, and open points.

A session has ended when it was closed, was quiet for MEMORY_SESSION_QUIET seconds, or was followed by another
of its user. The store tells that, so nothing is lost with a process, and doing it twice changes nothing. If a
session goes on, its new messages are digested into what there is.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import inf
from typing import Any, Final, TypeVar

from supervisor_memory.errors import BackendUnavailable, Conflict, RecordNotFound, WasErased
from supervisor_memory.language.terms import language
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record, Scope, frozen
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Ports, ReadStore, Services
from supervisor_memory.stages.post_retrieval.quotable import Became, what_became
from supervisor_memory.stages.post_retrieval.resumed_session import lines_of, messages_of, said_of, still_true
from supervisor_memory.stages.pre_insert.reply import listed
from supervisor_memory.stores.protocol import ListsSessions, SessionRow
from supervisor_memory.stores.sessions import HEARD, LINES, NAME, UNTIL, heard_by, list_sessions, states_of
from supervisor_memory.understand.digest import SECTIONS, Line, Said, also, digest, phrased
from supervisor_memory.upkeep.compact import marks
from supervisor_memory.upkeep.sessions import keep_state, keep_states, state_of

T = TypeVar("T")
_PAGE: Final = 5_000
_TOGETHER: Final = 500  # messages that are judged, or whose records are looked for, at once
_STATES_TOGETHER: Final = 50
_KEPT_TOGETHER: Final = 16  # digests in a commit, so that other writers need not wait long
_REASON: Final = "session-digested"
_ACTOR: Final = "supervisor"
_SECONDS: Final = 600.0  # no less than its step, so that calls of the store need no threads of their own
_TICK: Final = 1e-6
_OLD: Final = 3_600.0
"""Seconds after which a digest without messages is an orphan, not one whose messages are on their way."""
_MOST_ASKED: Final = 24_000
"""Characters of a session that a model is shown, of its end."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of a session as a run needs it: how far its digest goes, and whether all of its lines still
    hold."""

    record: Record
    is_true: bool

    @property
    def until(self) -> float | None:
        until: float | None = self.record.metadata.get(UNTIL)
        return until


def digesting(
    services: Services,
    user_id: str | None,
    *,
    since: float | None = None,
    small_talk: dict[tuple[str, str], float],
) -> Generator[None, None, float | None]:
    """Digest all sessions that have ended and have no digest of all that was said, with a pause after some.

    Lines whose message may not be told any more are left out of digests, and digests of sessions without
    messages are deleted.

    Args:
        user_id: None: everybody's.
        since: Only sessions of the user with a message at or after this time, by themselves. None: all.
        small_talk: (User, session) → its newest message when nothing in it was worth a digest. Added to, so
            that the next look does not read it again.

    Returns:
        The time of the newest message, for `since` in the next look; None: there is none.

    Raises:
        BackendUnavailable: the store is out of reach.
        BackendError, DeadlineExceeded: the store failed.
    """
    if not services.settings.session_quiet:
        return None
    run = _Digesting(services, small_talk)
    if since is not None and since > run.now:
        since = None  # by a clock that was put back since: what was said by it is before that time
    newest = since
    states = run.states(states_of(user_id)) if since is None else {}
    for row in run.rows(user_id, since):
        place = row.user_id, row.session_id
        known = states.pop(place, [])
        is_last = row.user_id not in run.met
        run.met.add(row.user_id)
        newest = max(newest or row.last_at, row.last_at)
        quiet = run.now - row.last_at
        # What was said far in time to come was said by another clock.
        is_live = abs(quiet) < services.settings.session_quiet
        if is_last and row.status == "open" and is_live:
            continue
        if since is not None and run.may_have_state(row):  # else all were read at once
            known = run.states(states_of(*place)).get(place, [])
        done = max((each.until for each in known if each.until is not None), default=-inf)
        heard = [count for each in known if (count := heard_by(each.record)) is not None]
        is_late = bool(heard) and sum(heard) < row.messages
        if max(done, small_talk.get(place, -inf)) < row.last_at or is_late:
            run.read(row, {each.record.task: each.record for each in known})
            if run.has_many:
                run.keep()
                yield
        for each in known:
            if not each.is_true:
                run.keep()  # of the same session, if it has gone on
                run.shorten(each.record)
                run.keep()
                yield
    run.keep()
    for each in chain.from_iterable(states.values()):
        if each.until is not None and run.is_orphan(each):
            run.ports().store(services.backend.delete, [each.record.id])
            yield
    return None if newest is None else min(newest, run.now)


def _page(where: Filter, view: ReadStore) -> Sequence[Record]:
    return view.list(where, limit=_PAGE)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A digest to be kept: its session, the state as it was read, the change, and the newest message."""

    scope: Scope
    known: Record | None
    change: Callable[[Record], Record | None]
    newest: Record | None


@dataclass(frozen=True, slots=True)
class _Ended:
    """A session that ended, as far as it had one task: its messages, and its state.

    Args:
        fresh: The messages to digest.
        old: The lines of its digest that stay, as far as they are still true.
        heard: How many messages it has with those that were digested before.
        is_new: Whether there is no digest yet of the session, whatever the task.
        last_at: When its newest message was said, whatever the task.
    """

    scope: Scope
    state: Record | None
    fresh: Sequence[Record]
    old: Sequence[Line]
    heard: int
    is_new: bool
    last_at: float


class _Digesting:
    def __init__(self, services: Services, small_talk: dict[tuple[str, str], float]) -> None:
        self._services, self._small_talk = services, small_talk
        self.now = services.clock() - _TICK
        """A moment before anything was read: whoever was erased since gets no digest."""
        self.met: set[str] = set()
        """The users whose latest session was met."""
        self._ended: list[_Ended] = []
        self._drafts: list[_Draft] = []
        self._messages = 0

    @property
    def has_many(self) -> bool:
        """Whether to `keep` now: there are enough sessions or messages, or a model reads them."""
        is_slow = self._services.complete is not None
        return is_slow or len(self._ended) >= _KEPT_TOGETHER or self._messages >= _TOGETHER

    def may_have_state(self, row: SessionRow) -> bool:
        """Whether a session may have a state, by the store's own row of it."""
        is_told = isinstance(self._services.backend, ListsSessions)
        return not is_told or row.is_digested or row.name is not None or row.closed_at is not None

    def ports(self) -> Ports:
        """New ports with more time than a turn has."""
        return Ports(self._services, seconds=_SECONDS, now=self.now)

    def rows(self, user_id: str | None, since: float | None) -> Iterator[SessionRow]:
        """The sessions with messages, those with the newest first."""
        after, backend, where = None, self._services.backend, Filter(user_id, since=since)
        if since is not None and not isinstance(backend, ListsSessions):
            yield from self._rows_of(replace(where, families=(SESSION_FAMILY,)))
            return
        while True:
            page = self.ports().store(list_sessions, backend, where, limit=_PAGE, after=after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].place

    def _rows_of(self, where: Filter) -> Iterator[SessionRow]:
        """The sessions of a user's latest messages, where the store would read all to list them."""
        latest: dict[str, float] = {}
        for message in self._all_matching(where):
            if (session := message.source.session_id) is not None:
                latest[session] = max(latest.get(session, -inf), message.created_at)
        for session, at in sorted(latest.items(), key=lambda each: -each[1]):
            yield SessionRow(session, where.user_id or "", (), at, at, 1)

    def states(self, where: Filter) -> dict[tuple[str, str], list[_Known]]:
        """(User, session) → what is known of its states, one a task."""
        known: defaultdict[tuple[str, str], list[_Known]] = defaultdict(list)
        every = self._all_matching(where)
        while some := [*islice(every, _STATES_TOGETHER)]:
            true = frozenset(self._still_true([line for state in some for line in lines_of(state)]))
            for each in some:
                is_true = true.issuperset(lines_of(each))
                known[each.user_id, each.attribute or ""].append(_Known(each, is_true))
        return known

    def is_orphan(self, state: _Known) -> bool:
        """Whether the messages of a digest were deleted, or have been missing for too long."""
        where = Filter(
            state.record.user_id,
            families=(SESSION_FAMILY,),
            statuses=("deleted",),
            session_id=state.record.attribute,
        )
        is_old = state.record.updated_at < self.now - _OLD
        return is_old or bool(self._whole(lambda view: view.list(where, limit=1)))

    def read(self, row: SessionRow, states: Mapping[str | None, Record]) -> None:
        """Read what was said in a session, task by task, for the next `keep` to digest it.

        Args:
            states: Task → the state that there is.
        """
        where = Filter(row.user_id, families=(SESSION_FAMILY,), session_id=row.session_id)
        messages = sorted(self._all_matching(where), key=lambda each: (each.created_at, each.id))
        self._messages += len(messages)
        is_new = all(each.metadata.get(UNTIL) is None for each in states.values())
        for task in dict.fromkeys(each.task for each in messages):
            mine = [each for each in messages if each.task == task]
            state = states.get(task)
            until = state.metadata.get(UNTIL) if state else None
            fresh = [each for each in mine if each.created_at > (until or -inf)]
            old = [*lines_of(state)] if state else []
            if state and until is not None and len(mine) - len(fresh) > (heard_by(state) or 0):
                fresh, old = mine, []  # some were said before what is digested, and came later
            scope = Scope(row.user_id, session_id=row.session_id, task=task)
            self._ended.append(_Ended(scope, state, fresh, old, len(mine), is_new, row.last_at))

    def _digest(self) -> None:
        """Draft digests of what was read, and note where there was nothing but small talk."""
        ended, self._ended, self._messages = self._ended, [], 0
        became = self._what_became([message for each in ended for message in each.fresh])
        worth_it: set[tuple[str, str]] = set()
        for each in ended:
            lines = self._lines(each.fresh, self._still_true(each.old), became)
            is_digested = each.state is not None and each.state.metadata.get(UNTIL)
            if each.fresh and (lines or is_digested):
                worth_it.add((each.scope.user_id, each.scope.session_id or ""))
                self._draft(each.scope, lines, each.state, newest=each.fresh[-1], heard=each.heard)
        for each in ended:
            place = each.scope.user_id, each.scope.session_id or ""
            if each.is_new and place not in worth_it:
                self._small_talk[place] = each.last_at

    def _what_became(self, messages: Iterable[Record]) -> Became:
        """Whether messages may still be told, asked of the store once for many messages of a user."""
        of_user: defaultdict[str, list[Record]] = defaultdict(list)
        for message in messages:
            of_user[message.user_id].append(message)
        untold: set[str] = set()
        outdated: dict[str, frozenset[str]] = {}
        for some in of_user.values():
            for start in range(0, len(some), _TOGETHER):
                became = self._whole(partial(what_became, some[start : start + _TOGETHER]))
                untold |= became.untold
                outdated |= became.outdated
        return Became(frozenset(untold), outdated=outdated)

    def shorten(self, known: Record) -> None:
        """Leave out of a digest the lines that may not be told any more."""
        scope = Scope(known.user_id, session_id=known.attribute, task=known.task)
        state = self._whole(lambda view: state_of(scope, view))
        if state is not None and UNTIL in state.metadata:
            self._draft(scope, self._still_true([*lines_of(state)]), state, newest=None)

    def _draft(
        self,
        scope: Scope,
        lines: Sequence[Line],
        known: Record | None,
        *,
        newest: Record | None,
        heard: int | None = None,
    ) -> None:
        """Make a digest that `keep` keeps, unless another process is first.

        Args:
            known: The state as it was read before; None: there was none.
        """
        until = None if known is None else known.metadata.get(UNTIL)
        tongue, at = language(" ".join(line.text for line in lines)), newest.created_at if newest else until

        def change(state: Record) -> Record | None:
            if state.metadata.get(UNTIL) != until:
                return None  # another process was first; what is left is for the next look
            told = [[line.section, line.message_id, line.text] for line in lines]
            name = state.metadata.get(NAME)
            unsaid = name if isinstance(name, str) else scope.session_id or ""
            text = phrased(lines, tongue, between="\n") or unsaid
            if told == state.metadata.get(LINES) and at == until and heard in (None, heard_by(state)):
                return None
            ref_id = newest.id if newest else state.ref_id  # if it was erased, the store refuses the digest
            counted = {} if heard is None else {HEARD: heard}
            metadata = frozen({**state.metadata, UNTIL: at, LINES: told, **counted})
            return replace(state, content=text, metadata=metadata, ref_id=ref_id)

        self._drafts.append(_Draft(scope, known, change, newest))

    def keep(self) -> None:
        """Digest what was read, and keep that unless the user or the session was erased meanwhile."""
        self._digest()
        drafts, self._drafts = self._drafts, []
        kept = self._keep_together(drafts) if len(drafts) > 1 else None
        if kept is None:  # one of them cannot be kept, or not so
            kept = [record for each in drafts if (record := self._keep_alone(each)) is not None]
        read = {each.newest.id for each in drafts if each.newest is not None}
        told = {each.id: {line.message_id for line in lines_of(each)} for each in kept}
        ids = tuple(read.union(*told.values()))
        there = self._whole(lambda view: view.list(Filter(ids=ids), limit=len(ids))) if ids else ()
        gone = {*ids} - {message.id for message in there}
        for each in kept:
            if each.ref_id in read & gone:
                self.ports().store(self._services.backend.delete, [each.id])
            elif told[each.id] & gone:
                self.shorten(each)
        if self._drafts:
            self.keep()

    def _keep_together(self, drafts: Sequence[_Draft]) -> Sequence[Record] | None:
        asked = ((each.scope, each.known, each.change) for each in drafts)
        try:
            return keep_states(asked, self.ports(), reason=_REASON, actor=_ACTOR)
        except (Conflict, RecordNotFound, WasErased):
            return None

    def _keep_alone(self, draft: _Draft) -> Record | None:
        before = () if draft.known is None else (draft.known,)
        try:
            return keep_state(
                draft.scope, self.ports, draft.change, reason=_REASON, actor=_ACTOR, known=before
            )
        except WasErased:
            return None

    def _still_true(self, lines: Sequence[Line]) -> list[Line]:
        if not lines:
            return []
        return self._whole(lambda view: still_true(lines, messages_of(lines, view), view))

    def _lines(self, messages: Sequence[Record], before: Sequence[Line], became: Became) -> Sequence[Line]:
        said: list[Said] = []
        topics = [line for line in before if line.section == "topics"]
        before = [line for line in before if line.section != "topics"]
        lines: Sequence[Line] = before
        gone = became.untold - became.outdated.keys()
        for start in range(0, len(messages), _TOGETHER):
            some = messages[start : start + _TOGETHER]
            heard = said_of(each for each in some if each.id not in gone)
            said += heard
            lines = [each for each in digest(heard, lines) if became.may_hold(each.message_id, each.text)]
        if not lines:
            return lines
        lines = _by_model(said, before, lines, self.ports().read_store()) or lines
        return [*lines, *also(said, lines, topics)]

    def _all_matching(self, where: Filter) -> Iterator[Record]:
        while True:
            page = self._whole(partial(_page, where))
            yield from page
            if len(page) < _PAGE:
                return
            where = where.after(page[-1])

    def _whole(self, look: Callable[[ReadStore], T]) -> T:
        """Read the store; a partial answer is an error.

        Raises:
            BackendUnavailable: a part of it did not.
        """
        ports = self.ports()
        found = look(ports.read_store())
        if ports.degraded:
            raise BackendUnavailable("the store is out of reach, so its sessions are digested later")
        return found


def _by_model(
    said: Sequence[Said], before: Sequence[Line], by_rules: Sequence[Line], view: ReadStore
) -> Sequence[Line] | None:
    """The lines of a session as a model words them; None without a model, or where it answered no list.

    A statement is dropped if its message and the one before it lack a number or a name that it has. What is
    decided or open by the rules is told as it was said if the model lost a number or a name of it.
    """
    if not view.has_model:
        return None
    shown: list[str] = []
    first, left = len(said), _MOST_ASKED
    while first and (left := left - len(said[first - 1].text)) > 0:
        first -= 1
        shown.append(f"[{first}] {'user' if said[first].is_users else 'assistant'}: {said[first].text}")
    known = "".join(f"Before: {line.section}: {line.text}\n" for line in before)
    said_last = "\n".join(reversed(shown))
    reply = view.complete(view.prompt("digest", known=known, said=said_last)) if shown else None
    data = listed(reply) if reply is not None else None
    if data is None:
        return None
    found = [line for each in data if (line := _checked(each, said)) is not None]
    told = frozenset[str]().union(*(marks(line.text) for line in found))
    lost = [line for line in by_rules if line.section in SECTIONS[:2] and not marks(line.text) <= told]
    kept = [line for line in by_rules if line in before or line in lost]
    place = {each.id: number for number, each in enumerate(said)}
    return sorted([*kept, *found], key=lambda line: place.get(line.message_id, -1)) if found else None


def _checked(each: Any, said: Sequence[Said]) -> Line | None:
    """A model's statement as a line; None if it is none, or has what its message does not say."""
    if not isinstance(each, Mapping):
        return None
    section, number, text = (each.get(key) for key in ("section", "message", "content"))
    if section not in SECTIONS or type(number) is not int or not 0 <= number < len(said):
        return None
    if not isinstance(text, str) or not text.strip():
        return None
    source = "\n".join(message.text for message in said[max(number - 1, 0) : number + 1])
    return Line(section, said[number].id, text.strip()) if marks(text) <= marks(source) else None
