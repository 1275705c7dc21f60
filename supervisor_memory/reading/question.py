"""The question that a note was given for: it is looked for in the session, since the log holds no text."""

from typing import TYPE_CHECKING, Final

from supervisor_memory.audit.turns import Injection
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record
from supervisor_memory.ports import Ports
from supervisor_memory.stores.sessions import list_sessions

if TYPE_CHECKING:
    from supervisor_memory.stores.protocol import SessionRow

_SESSIONS: Final = 200
_BEFORE_SECONDS: Final = 3_600.0
_AFTER_SECONDS: Final = 1.0  # what is said and the note about it are of one moment, by two clocks
_MESSAGES: Final = 50


def session_of(note: Injection, user_id: str, ports: Ports) -> "SessionRow | None":
    """The session in which a note was given, among the user's latest; None: nothing was kept of it."""
    if note.session is None:
        return None
    backend = ports.services.backend
    rows = ports.store(list_sessions, backend, Filter(user_id), limit=_SESSIONS)
    names = {backend.audit.session_name(user_id, row.session_id): row for row in rows}
    return names.get(note.session)


def question_of(note: Injection, user_id: str, ports: Ports) -> Record | None:
    """The last message of the user before a note, within an hour; None: none was kept, or it was erased."""
    session = session_of(note, user_id, ports)
    if session is None:
        return None
    where = Filter(
        user_id,
        families=(SESSION_FAMILY,),
        session_id=session.session_id,
        since=note.at - _BEFORE_SECONDS,
        until=note.at + _AFTER_SECONDS,
    )
    said = ports.read_store().list(where, limit=_MESSAGES)
    own = [each for each in said if each.source.source_class == "user"]
    return max(own, key=lambda each: (each.created_at, each.id), default=None)
