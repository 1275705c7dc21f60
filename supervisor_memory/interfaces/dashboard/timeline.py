"""Page 7: what was said, learned, changed and decided in each session of a user, and what its notes cost."""

from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import Scope

_PAGE: Final = 20
_ENTRIES: Final = 12  # the latest of each session, where several are told


def timeline(visit: Visit) -> Response:
    user_id, session_id = visit.user_id, visit.asked("session") or None
    since, until, after = (visit.asked(name) or None for name in ("since", "until", "after"))
    before = visit.asked("before") or None
    told = (
        visit.memory.timeline(
            user_id=Scope(user_id).user_id,
            since=since,
            until=before or until,
            session_id=session_id,
            with_said=session_id is not None,
            limit=_PAGE,
            after=after,
        )
        if user_id is not None
        else []
    )
    return visit.page(
        "timeline.html",
        most=_ENTRIES,
        chapters=told,
        older=told[-1].session.cursor if len(told) == _PAGE else None,
        asked={
            "user": user_id or "",
            "session": session_id or "",
            "since": since or "",
            "until": until or "",
        },
        users=visit.users(),
    )
