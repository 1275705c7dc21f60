"""Keep the state of a session: its name, when it was closed, and its digest, in one record."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from supervisor_memory.errors import Conflict, RecordNotFound
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    AuditEvent,
    Record,
    Scope,
    Source,
    content_hash,
    new_id,
)
from supervisor_memory.ports import Ports, ReadStore
from supervisor_memory.stages.insert.draft import embedded
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.sessions import SUBJECT, UNTIL, states_of

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
) -> Record | None:
    """Change the state of a scope's session, or make it; None: there was nothing to change.

    If others change it meanwhile, it is read and changed again, so that no change is lost. The content is
    embedded once it is a digest. A new state whose `created_at` is before its user's erasure is refused, so
    the ports of a digest are made before its messages are read.

    Args:
        scope: With the session and, if its messages are those of a task, the task.
        ports: Makes the ports of one try.
        change: Returns the state with another content or metadata; None: it is as it should be. It is given
            the present state; if there is none, an empty one whose content is the session's id.
        reason: The code for the audit log, such as "session-closed".

    Raises:
        Conflict: others changed it again and again.
        WasErased: the user was erased meanwhile.
        BackendError, DeadlineExceeded: the store failed.
    """
    is_apart = False
    for left in reversed(range(_TRIES)):
        now_ports = ports()
        view = now_ports.deciding()
        old = state_of(scope, view)
        new = change(old or _empty(scope, now_ports.now))
        if new is None:
            return None
        text = new.content
        if is_apart and not text.endswith(f"[{scope.session_id}]"):
            text = f"{text}\n[{scope.session_id}]"
        new = replace(new, content=text, content_hash=content_hash(text), updated_at=now_ports.now)
        if old is None or text != old.content or UNTIL not in old.metadata:
            new = embedded(new, view) if UNTIL in new.metadata else replace(new, embedder=None)
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
        commit = Commit((Change(new, expects=old.version if old else None),), (event,))
        try:
            return view.commit(commit).records[0]
        except (Conflict, RecordNotFound) as error:
            if not left:
                raise
            # Another session has the same words: a family has each wording once.
            is_apart = is_apart or error.facts.get("what") == "content_hash"
    raise AssertionError("the last try returns or raises")


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
