"""Page 1: proposals for a person, each beside the known record and the result of approving it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fastapi.responses import Response

from supervisor_memory.errors import AlreadyReviewed, Conflict, RecordNotFound
from supervisor_memory.interfaces.dashboard.visit import Decision, Visit
from supervisor_memory.model.records import Filter, Record, WriteResult
from supervisor_memory.review.proposal import Proposal

_PAGE: Final = 10
_MOST_PAGES: Final = 10_000
_AROUND: Final = 1
_WITHIN_SECONDS: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A proposal, and what was said when it was made."""

    proposal: Proposal
    said: list[Record]

    @property
    def words(self) -> str:
        """The words it was read from."""
        return self.proposal.evidence or self.proposal.record.content


def inbox(visit: Visit) -> Response:
    user_id = visit.user_id
    where = Filter(user_id=user_id, statuses=("pending",))
    number = visit.number("page", least=1, most=_MOST_PAGES, otherwise=1)
    upkeep = visit.memory.upkeep
    count = upkeep.count(where)
    found = upkeep.listed(where, limit=_PAGE, offset=(number - 1) * _PAGE)
    decided = visit.shelf.decided(visit.asker)
    return visit.page(
        "inbox.html",
        waiting=[each for record in found if (each := _beside(visit, record)) is not None],
        count=count,
        number=number,
        has_older=number * _PAGE < count,
        user_id=user_id,
        users=visit.users(),
        last=decided[-1] if decided else None,
    )


def _beside(visit: Visit, record: Record) -> Waiting | None:
    """None where it waits no more: another reviewer was faster than this page, or it has expired."""
    if record.has_expired(visit.memory.upkeep.now()):
        return None
    try:
        said = visit.memory.messages(record.id, around=_AROUND, within=_WITHIN_SECONDS)
        return Waiting(visit.memory.review.show(record.id), said)
    except (AlreadyReviewed, RecordNotFound):
        return None


def approve(visit: Visit) -> Response:
    desk, by = visit.memory.review, visit.asker.name
    return _decided(visit, "approve", lambda id_: desk.approve(id_, reviewer=by))


def edit(visit: Visit) -> Response:
    desk, by, content = visit.memory.review, visit.asker.name, visit.form.get("content", "")
    return _decided(visit, "edit", lambda id_: desk.edit(id_, content, reviewer=by))


def reject(visit: Visit) -> Response:
    desk, by, reason = visit.memory.review, visit.asker.name, visit.form.get("reason", "").strip()
    return _decided(visit, "reject", lambda id_: desk.reject(id_, reviewer=by, reason=reason))


def _decided(visit: Visit, what: str, verb: Callable[[str], WriteResult]) -> Response:
    id_ = visit.own(visit.part)
    text = "".join(record.content for record in visit.memory.upkeep.records([id_]))
    visit.shelf.decided(visit.asker).append(Decision(what, id_, text, verb(id_)))
    return _back(visit, what)


def undo(visit: Visit) -> Response:
    """Take back the caller's latest decision; once more, the one before it."""
    decided = visit.shelf.decided(visit.asker)
    if not decided:
        return _back(visit, "nothing-to-undo")
    by = visit.asker.name
    try:
        visit.memory.review.undo(decided.pop().id, reviewer=by, by=by)
    except (Conflict, RecordNotFound):
        return _back(visit, "changed-since")
    return _back(visit, "undo")


def _back(visit: Visit, said: str) -> Response:
    whose = visit.form.get("user", "")
    return visit.go("/inbox", said=said, **({"user": whose} if whose else {}))
