"""Page 6: records by user, namespace, kind, status and time, a page at a time; or by words."""

from dataclasses import replace
from typing import Final, cast, get_args

from fastapi.responses import Response

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    FAMILIES,
    KINDS,
    SESSION_FAMILY,
    Filter,
    Hit,
    Kind,
    Record,
    Status,
    check_family,
)

_PAGE: Final = 50
_STATUSES: Final[tuple[Status, ...]] = get_args(Status)


def browse(visit: Visit) -> Response:
    user_id, words = visit.user_id, visit.asked("q")
    status, kind, family = visit.asked("status") or "active", visit.asked("kind"), visit.asked("family")
    where = _filter_of(visit, status, kind, family)
    by_words = bool(words) and user_id is not None
    hits = _search_words(visit, words, cast("str", user_id), where) if by_words else None
    after = visit.asked("after") or None
    listed: list[Record] = []
    if hits is None and not words:
        listed = list(visit.memory.upkeep.listed(where, limit=_PAGE + 1, after=after))
        visit.memory.audit.seen("list", listed[:_PAGE])
    return visit.page(
        "browse.html",
        records=[hit.record for hit in hits] if hits is not None else listed[:_PAGE],
        scores={hit.record.id: hit.score for hit in hits or ()},
        by_words=by_words,
        user_needed=bool(words) and user_id is None,
        after=after,
        older=listed[_PAGE - 1].cursor if len(listed) > _PAGE else None,
        asked={
            "user": user_id or "",
            "q": words,
            "status": status,
            "kind": kind,
            "family": family,
            "since": visit.asked("since"),
            "until": visit.asked("until"),
        },
        is_narrow=bool(
            words or kind or family or visit.asked("since") or visit.asked("until") or status != "active"
        ),
        statuses=_STATUSES,
        kinds=KINDS,
        families=[*FAMILIES.values(), SESSION_FAMILY, DIGEST_FAMILY],
        users=visit.users(),
    )


def _filter_of(visit: Visit, status: str, kind: str, family: str) -> Filter:
    if status not in (*_STATUSES, "any") or kind not in (*KINDS, ""):
        raise InvalidContent("there is no such status or kind")
    return replace(
        visit.times(),
        user_id=visit.user_id,
        families=(check_family(family),) if family else None,
        kinds=(cast("Kind", kind),) if kind else None,
        statuses=None if status == "any" else (cast("Status", status),),
    )


def _search_words(visit: Visit, words: str, user_id: str, where: Filter) -> list[Hit]:
    """By words: what a graph would find, active records alone."""
    asked = {"kind": list(where.kinds) if where.kinds else None, "since": where.since, "until": where.until}
    return list(
        visit.memory.search(
            words,
            user_id=user_id,
            families=list(where.families) if where.families else None,
            where={name: value for name, value in asked.items() if value is not None},
            limit=_PAGE,
        )
    )
