"""List, show, name, close and erase sessions: `SupervisorMemory.sessions` is the desk for that.

The state of a session is kept in one record: its name, when it was closed, and its digest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from supervisor_memory.bridge import twin
from supervisor_memory.errors import (
    BackendError,
    ConfirmationRequired,
    Conflict,
    RecordNotFound,
    WasErased,
)
from supervisor_memory.language.terms import language
from supervisor_memory.model.arguments import Moment, as_moment, check_amount, check_login
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    AuditEvent,
    Filter,
    Record,
    Scope,
    Source,
    check_content,
    check_name,
    content_hash,
    new_id,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import Ports, ReadStore, Services
from supervisor_memory.stores.changes import is_no_new_version
from supervisor_memory.stores.protocol import Change, Commit, ErasesRecords, Party, PartyRow, SessionRow
from supervisor_memory.stores.sessions import (
    CLOSED_AT,
    CLOSED_MESSAGES,
    NAME,
    SUBJECT,
    UNTIL,
    list_parties,
    list_sessions,
    place_of,
    place_of_one,
    states_of,
    with_state,
)
from supervisor_memory.upkeep.edit import Curator, in_order, need_all
from supervisor_memory.upkeep.erase import OUT_OF_REACH, Receipt, erase_shared
from supervisor_memory.upkeep.queue.queue import Queue
from supervisor_memory.upkeep.unmerge import derived_from, taken_out
from supervisor_memory.wiring.trail import Trail

_SECONDS: Final = 300.0
_PAGE: Final = 1_000
_MOST_NAME_BYTES: Final = 1_024
Role: TypeAlias = Literal["user", "assistant", "tool", "system"]


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message of a session as a row.

    Args:
        type: "text": other parts of a message are not kept.
        sequence: Its number in the session, from 1.
        parent_id: The message before it; None: it is the first.
        agent_id: The agent that said it; None: the user, or the supervisor.
    """

    id: str
    session_id: str
    user_id: str
    sequence: int
    parent_id: str | None
    role: Role
    type: Literal["text"]
    content: str
    created_at: float
    agent_id: str | None
    speaker: str | None


@dataclass(frozen=True, slots=True)
class Sessions:
    """Lists, shows, names, closes and erases sessions; each verb has an async twin, as `alist`.

    A session is there as long as a message of it is kept. docs/sessions.md describes it.
    """

    services: Services
    queue: Queue
    curator: Curator
    trail: Trail
    closed: Callable[[str, str], None]
    """Told the user and the session that was closed."""

    def list(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Sequence[SessionRow]:
        """Sessions, the one with the newest message first.

        Args:
            user_id: Only this user's. None: everybody's.
            agent_id: Only those in which this agent spoke.
            since, until: Only those that began before `until`, with a message at or after `since`.
            after: The `cursor` of the last row of the page before.

        Raises:
            BackendError, DeadlineExceeded: the store failed, or is out of reach.
        """
        where = Filter(
            user_id=None if user_id is None else Scope(user_id).user_id,
            agent_id=agent_id,
            since=as_moment(since, what="since", end=False),
            until=as_moment(until, what="until", end=True),
        )
        return self._rows(where, limit=check_amount(limit, what="limit"), after=place_of(after))

    def get(self, session_id: str, *, user_id: str) -> SessionRow:
        """A session.

        Raises:
            RecordNotFound: nothing is kept of such a session, or it is another user's.
            InvalidName: it is no name, such as None.
        """
        scope = _scope(user_id, session_id)
        rows = self._rows(Filter(scope.user_id, session_id=scope.session_id), limit=1)
        if not rows:
            raise _not_found(scope)
        return rows[0]

    def messages(self, session_id: str, *, user_id: str) -> Sequence[MessageRow]:
        """The messages of a session as rows, in order; raises as `get`."""
        scope = _scope(user_id, session_id)
        of_session = Filter(scope.user_id, session_id=session_id, layers=("history",))
        said = in_order(self.curator.every(of_session))
        if not said:
            raise _not_found(scope)
        self.trail.accessed("session", said, scope)
        before = (None, *(each.id for each in said))
        return [_message(each, n, before[n - 1]) for n, each in enumerate(said, start=1)]

    def digest(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> str:
        """The digest of a session: what was asked, decided, done, found and left open; "": there is none.

        Of a session, or of all in a period, such as a day. It is made when it is asked for, so it has what
        may still be told; of the latest 1,000 sessions of the period. docs/digests.md describes it.

        Args:
            since, until: Of what was said; a day given as text counts whole. None: no bound.

        Raises:
            BackendError, DeadlineExceeded: the store failed, or is out of reach.
        """
        from supervisor_memory.stages.post_retrieval.resumed_session import lines_of, messages_of, still_true
        from supervisor_memory.understand.digest import phrased, together

        scope = Scope(user_id, session_id=session_id)
        period = Filter(
            scope.user_id,
            session_id=scope.session_id,
            layers=("history",),
            since=as_moment(since, what="since", end=False),
            until=as_moment(until, what="until", end=True),
        )
        rows = [row for row in reversed(self._rows(period, limit=_PAGE)) if row.is_digested]
        view = self.curator.reading().read_store()
        states = [view.list(states_of(row.user_id, row.session_id), limit=_PAGE) for row in rows]
        told = [[*lines_of(state)] for some in states for state in some]
        lines = [line for each in told for line in each if line.section != "topics"]
        messages = messages_of(lines, view)
        said = {id_ for id_, each in messages.items() if period.matches(each)}
        true = {each for each in still_true(lines, messages, view) if each.message_id in said}
        merged = together([line for line in each if line in true] for each in told)
        used = {line.message_id: messages[line.message_id] for line in merged}
        self.trail.accessed("session", [*used.values()], scope)
        return phrased(merged, language(" ".join(line.text for line in merged)), between="\n")

    def users(self, *, limit: int = 100, after: str | None = None) -> Sequence[PartyRow]:
        """The users with a session, the one who spoke last first; options as in `list`."""
        return self._parties("user", None, limit=limit, after=after)

    def agents(
        self, *, user_id: str | None = None, limit: int = 100, after: str | None = None
    ) -> Sequence[PartyRow]:
        """Agents that spoke in a session, the latest first; of everybody, or of a user."""
        of_user = None if user_id is None else Scope(user_id).user_id
        return self._parties("agent", of_user, limit=limit, after=after)

    def rename(self, session_id: str, name: str, *, user_id: str) -> SessionRow:
        """Give a session a name; raises as `get`, and InvalidContent: it is empty or over 1,024 bytes."""
        told = self.services.redactor.text(" ".join(check_content(name, most=_MOST_NAME_BYTES).split()))

        def change(state: Record) -> Record | None:
            if state.metadata.get(NAME) == told:
                return None
            content = state.content if UNTIL in state.metadata else told
            return replace(state, content=content, metadata={**state.metadata, NAME: told})

        return self._changed(_scope(user_id, session_id), change, "session-named")

    def close(self, session_id: str, *, user_id: str) -> SessionRow:
        """End a session, which a later message opens again; a closed one stays as it is. Raises as `get`.

        Its digest is made in the background.
        """
        before = self.get(session_id, user_id=user_id)
        # Messages may bear a later time, by another clock.
        facts = {CLOSED_AT: max(self.services.clock(), before.last_at), CLOSED_MESSAGES: before.messages}

        def change(state: Record) -> Record | None:
            if with_state(before, state).status == "closed":
                return None
            return replace(state, metadata={**state.metadata, **facts})

        row = self._changed(_scope(user_id, session_id), change, "session-closed")
        self.closed(row.user_id, session_id)
        return row

    def erase(
        self, session_id: str, *, user_id: str, confirm: bool = False, reviewer: str = "operator"
    ) -> Receipt:
        """Remove a session for good: messages, name, digest, and the records whose words only it said.

        Records that another session says too stay, without their earlier versions and without their links to
        this one. docs/sessions.md says what that covers.

        Args:
            reviewer: Who erases: a login, which the audit log keeps for ever.

        Raises:
            ConfirmationRequired: without `confirm=True`; its `held` tells how much it would be.
            RecordNotFound: nothing is kept of such a session, or it is another user's.
            BackendError: the store cannot erase single records, or failed; call it again.
        """
        scope, by = _scope(user_id, session_id), check_login(reviewer)
        backend, first = self.services.backend, self._ports()
        if not isinstance(backend, ErasesRecords):
            raise BackendError(
                f"the backend {backend.name!r} cannot erase single records, and nothing was removed; "
                "`delete` marks them as deleted",
                backend=backend.name,
            )
        doomed, kept = _doomed_and_citing(scope, first)
        if not doomed:
            raise _not_found(scope)
        if confirm is not True:
            raise ConfirmationRequired(
                f"erase would remove {len(doomed)} records of session {session_id!r} with all their "
                "versions, for good; pass confirm=True",
                held={"records": len(doomed), "kept": len(kept)},
            )
        removed: defaultdict[str, int] = defaultdict(int)
        pending: tuple[str, ...] = ()
        out_of_reach: tuple[str, ...] = OUT_OF_REACH
        for _ in range(_TRIES):  # what was written meanwhile goes, too
            removed["events"] += first.store(self._forget_events, scope, at=first.now)
            ports = self._ports()
            doomed, kept = _doomed_and_citing(scope, ports)
            if not doomed and not kept:
                break
            try:
                summaries = _unlink(scope, doomed, kept, ports, actor=by)
            except Conflict:
                continue
            ids, trimmed = [r.id for r in doomed], [*(r.id for r in kept), *summaries]
            at = ports.now
            shared = erase_shared(scope.user_id, ports, actor=by, records=ids)  # while its record tells of it
            done = ports.store(
                backend.erase_records, ids, user_id=scope.user_id, at=at, actor=by, history_of=trimmed
            )
            for what, count in (*done.removed.items(), *shared.removed.items()):
                removed[what] += count
            pending, out_of_reach = (*shared.pending, *done.pending), (*OUT_OF_REACH, *done.out_of_reach)
        self.services.vectors.clear()
        return Receipt(scope.user_id, first.now, removed, pending, out_of_reach, session_id)

    def _forget_events(self, scope: Scope, *, at: float) -> int:
        return self.queue.forget(scope.user_id, at=at, session_id=scope.session_id)[0]

    def _rows(
        self, where: Filter, *, limit: int, after: tuple[float, str, str] | None = None
    ) -> Sequence[SessionRow]:
        ports = self.curator.reading()
        return ports.store(list_sessions, self.services.backend, where, limit=limit, after=after)

    def _parties(
        self, party: Party, user_id: str | None, *, limit: int, after: str | None
    ) -> Sequence[PartyRow]:
        ports, place = self.curator.reading(), place_of_one(after)
        most = check_amount(limit, what="limit")
        backend = self.services.backend
        return ports.store(list_parties, backend, party, user_id=user_id, limit=most, after=place)

    def _changed(self, scope: Scope, change: Callable[[Record], Record | None], reason: str) -> SessionRow:
        user_id, session_id = scope.user_id, scope.session_id or ""
        ports = self.curator.reading()
        said = Filter(user_id, session_id=session_id, layers=("history",))
        newest = ports.read_store().list(said, limit=1)
        if not newest:
            need_all(ports)
            raise _not_found(scope)
        of_task = replace(scope, task=newest[0].task)
        actor = self.trail.reader or "operator"

        def tied(state: Record) -> Record | None:
            new = change(state)  # if the message is erased meanwhile, the store refuses the state
            return None if new is None else replace(new, ref_id=new.ref_id or newest[0].id)

        try:
            keep_state(of_task, self.curator.writing, tied, reason=reason, actor=actor)
        except WasErased as error:
            raise _not_found(scope) from error
        return self.get(session_id, user_id=user_id)

    def _ports(self) -> Ports:
        return Ports(self.services, seconds=_SECONDS, now=self.services.clock())

    alist = twin(list)
    adigest = twin(digest)
    aget = twin(get)
    amessages = twin(messages)
    ausers = twin(users)
    aagents = twin(agents)
    arename = twin(rename)
    aclose = twin(close)
    aerase = twin(erase)


def _scope(user_id: str, session_id: str) -> Scope:
    """The scope of one session; an empty name would mean all sessions of the user."""
    return Scope(user_id, session_id=check_name(session_id, what="session id"))


def _not_found(scope: Scope) -> RecordNotFound:
    session = scope.session_id or ""
    return RecordNotFound(f"nothing is kept of session {session!r} of user {scope.user_id!r}", id=session)


def _message(record: Record, sequence: int, parent_id: str | None) -> MessageRow:
    source = record.source
    is_reply = record.is_reply or source.source_class == "agent"
    role: Role = "assistant" if is_reply else cast("Role", source.source_class)
    where = record.id, source.session_id or "", record.user_id
    who = source.agent_id, record.spoken_by
    at = record.created_at
    return MessageRow(*where, sequence, parent_id, role, "text", record.content, at, *who)


def _doomed_and_citing(scope: Scope, ports: Ports) -> tuple[Sequence[Record], Sequence[Record]]:
    """Records erased with a session, and records that stay but cite its messages."""
    user_id, session_id = scope.user_id, scope.session_id
    there = list(every(Filter(user_id, session_id=session_id, statuses=None), ports))
    said = {record.id for record in there if record.layer == "history"}
    told = Filter(user_id, ref_ids=tuple(said), statuses=None).everywhere() if said else ()
    states = replace(states_of(user_id, session_id), statuses=None)
    found = {r.id: r for r in there} | {r.id: r for where in (*told, states) for r in every(where, ports)}
    doomed = {record.id: record for record in found.values() if _is_only_from_session(record, scope, said)}
    doomed |= {record.id: record for record in derived_from(doomed, user_id, ports.read_store())}
    return [*doomed.values()], [record for record in found.values() if record.id not in doomed]


def every(where: Filter, ports: Ports) -> Iterator[Record]:
    """All records that match, page by page; BackendUnavailable: the store is out of reach."""
    view = ports.read_store()
    while True:
        page = view.list(where, limit=_PAGE)
        need_all(ports)
        yield from page
        if len(page) < _PAGE:
            return
        where = where.after(page[-1])


def _is_only_from_session(record: Record, scope: Scope, said: set[str]) -> bool:
    """Whether a record has no source but the session."""
    if record.layer == "history" or record.family == DIGEST_FAMILY:
        return scope.session_id in (record.source.session_id, record.attribute)
    present = set(record.present_ref_ids)
    return present <= said if present else record.source.session_id == scope.session_id


def _unlink(
    scope: Scope, doomed: Sequence[Record], kept: Sequence[Record], ports: Ports, *, actor: str
) -> Sequence[str]:
    """Cut the links of other records to a session; returns the ids of the summaries that are made anew."""
    ids = {record.id for record in doomed}
    apart = taken_out(doomed, ports, actor=actor)
    summaries = [each.record.id for each in apart.changes if each.record.id not in ids]
    changes = [
        Change(_without_links(record, ids, scope), record.version, changes_source=True) for record in kept
    ]
    changes = [each for each in changes if each.record.id not in summaries]
    old = {record.id: record for record in kept}
    events = [
        AuditEvent.of(
            "update",
            each.record,
            actor=actor,
            version_before=each.expects,
            version_after=(each.expects or 0) + 1,
            before=each.record.content,
            after=each.record.content,
            reason="session-erased",
            detail={"kind": each.record.kind},
        )
        for each in changes
        if not is_no_new_version(each, old[each.record.id])
    ]
    changes += [each for each in apart.changes if each.record.id in summaries]
    events += [each for each in apart.audit if each.record_id in summaries]
    if changes:
        ports.deciding().commit(Commit(tuple(changes), tuple(events)))
    return summaries


def _without_links(record: Record, gone: set[str], scope: Scope) -> Record:
    """The record without its links to messages that go."""
    present = [each for each in record.present_ref_ids if each not in gone]
    source = record.source
    if source.session_id == scope.session_id:
        source = replace(source, session_id=None, run_id=None, message_id=None)
    former = tuple(each for each in record.former_ref_ids if each not in gone)
    ref_id, joined = (present[-1], tuple(present[:-1])) if present else (None, ())
    return replace(record, ref_id=ref_id, joined_ref_ids=joined, former_ref_ids=former, source=source)


_TRIES: Final = 20


def state_of(scope: Scope, view: ReadStore) -> Record | None:
    """The state of a scope's session; None: it was neither named nor closed nor digested."""
    where = replace(states_of(scope.user_id, scope.session_id or ""), tasks=(scope.task,))
    return next(iter(view.list(where, limit=1)), None)


def keep_state(
    scope: Scope,
    ports: Callable[[], Ports],
    change: Callable[[Record], Record | None],
    *,
    reason: str,
    actor: str,
    known: Sequence[Record] | None = None,
) -> Record | None:
    """Change the state of a scope's session, or make it; None: there was nothing to change.

    If others change it meanwhile, it is read and changed again, so that no change is lost. The state has no
    vector: a digest is about so many things that its vector is like none of them. A new state whose
    `created_at` is before its user's erasure is refused, so the ports of a digest are made before its
    messages are read.

    Args:
        scope: With the session and, if its messages are those of a task, the task.
        ports: Makes the ports of one try.
        change: Returns the state with another content or metadata; None: it is as it should be. It is given
            the present state; if there is none, an empty one whose content is the session's id.
        reason: The code for the audit log, such as "session-closed".
        known: The state as it was read before, empty where there was none; None: it was not read. If it has
            changed since, it is read again.

    Raises:
        Conflict: others changed it again and again.
        WasErased: the user was erased meanwhile.
        BackendError, DeadlineExceeded: the store failed.
    """
    is_apart = False
    for left in reversed(range(_TRIES)):
        now_ports = ports()
        view = now_ports.deciding()
        old = state_of(scope, view) if known is None else next(iter(known), None)
        known = None
        made = _state(scope, old, change, now_ports.now, reason=reason, actor=actor, is_apart=is_apart)
        if made is None:
            return None
        try:
            return view.commit(Commit((made[0],), (made[1],))).records[0]
        except (Conflict, RecordNotFound) as error:
            if not left:
                raise
            # Another session has the same words: a family has each wording once.
            is_apart = is_apart or error.facts.get("what") == "content_hash"
    raise AssertionError("the last try returns or raises")


def keep_states(
    asked: Iterable[tuple[Scope, Record | None, Callable[[Record], Record | None]]],
    ports: Ports,
    *,
    reason: str,
    actor: str,
) -> Sequence[Record]:
    """Change several states in one commit, or none of them; see `keep_state`.

    Args:
        asked: The scope of each, the state as it was read before or None, and the change.

    Raises:
        Conflict, RecordNotFound, WasErased: one of them has changed meanwhile; each is to be kept by itself.
        BackendError, DeadlineExceeded: the store failed.
    """
    every = (_state(*each, ports.now, reason=reason, actor=actor) for each in asked)
    made = [each for each in every if each is not None]
    commit = Commit(tuple(change for change, _ in made), tuple(event for _, event in made))
    return ports.deciding().commit(commit).records if made else ()


def _state(
    scope: Scope,
    old: Record | None,
    change: Callable[[Record], Record | None],
    now: float,
    *,
    reason: str,
    actor: str,
    is_apart: bool = False,
) -> tuple[Change, AuditEvent] | None:
    """The state as it is to be kept, and its event; None: there is nothing to change.

    Args:
        is_apart: Whether another session has the same words.
    """
    new = change(old or _empty(scope, now))
    if new is None:
        return None
    text = new.content
    if is_apart and not text.endswith(f"[{scope.session_id}]"):
        text = f"{text}\n[{scope.session_id}]"
    new = replace(new, content=text, content_hash=content_hash(text), updated_at=now)
    if old is None or text != old.content or UNTIL not in old.metadata:
        new = replace(new, embedder=None)
    event = AuditEvent.of(
        "add" if old is None else "update",
        new,
        actor=actor,
        version_before=old.version if old else None,
        version_after=old.version + 1 if old else 1,
        before=old.content if old else None,
        after=text,
        reason=reason,
        detail={"kind": new.kind},
    )
    return Change(new, expects=old.version if old else None), event


def _empty(scope: Scope, now: float) -> Record:
    session = scope.session_id or ""
    return Record(
        id=new_id(),
        namespace=scope.namespace(DIGEST_FAMILY),
        content=session,
        kind="task-traces",
        layer="summary",
        created_at=now,
        updated_at=now,
        source=Source("system", session_id=session),
        subject=SUBJECT,
        attribute=session,
    )
