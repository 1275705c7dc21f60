"""Page 1: proposals for a person, each beside the known record and the result of approving it; and many of
them that are alike at once."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from fastapi.responses import Response

from supervisor_memory.errors import (
    AlreadyReviewed,
    Conflict,
    IdentityError,
    InvalidContent,
    RecordNotFound,
)
from supervisor_memory.interfaces.dashboard.visit import Decision, Visit
from supervisor_memory.model.records import KINDS, Filter, Kind, Record, WriteResult
from supervisor_memory.review.proposal import Proposal, reasons

_PAGE: Final = 10
_TOGETHER: Final = 100
_LOOKED_AT: Final = 2_000
_AROUND: Final = 1
_WITHIN_SECONDS: Final = 3_600.0
_ALIKE_FROM: Final = 2
_MOST_GROUPS: Final = 12
_PICKED: Final = "p-"
_IN_ADDRESS: Final = ("user", "why", "kind", "agent", "run")
Verb: TypeAlias = Callable[[str], WriteResult]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A proposal, and what was said when it was made."""

    proposal: Proposal
    said: list[Record]

    @property
    def words(self) -> str:
        """The words it was read from."""
        return self.proposal.evidence or self.proposal.record.content


@dataclass(frozen=True, slots=True)
class Asked:
    """Which proposals are meant; "" restricts nothing. `agent` and `run` are as the source has them."""

    user: str
    reason: str
    kind: str
    agent: str
    run: str

    @classmethod
    def of(cls, visit: Visit) -> "Asked":
        """What an address says. Raises InvalidContent: there is no such kind."""
        kind = visit.asked("kind")
        if kind not in (*KINDS, ""):
            raise InvalidContent("there is no such kind")
        return cls(visit.user_id or "", visit.asked("why"), kind, visit.asked("agent"), visit.asked("run"))

    @property
    def where(self) -> Filter:
        """The filter of records, as far as it can tell."""
        kinds = (cast("Kind", self.kind),) if self.kind else None
        return Filter(self.user or None, kinds=kinds, statuses=("pending",), agent_id=self.agent or None)

    def means(self, record: Record) -> bool:
        """Whether a record of the filter is meant."""
        return (not self.reason or self.reason in reasons(record)) and self.run in ("", record.source.run_id)

    @property
    def is_narrow(self) -> bool:
        return bool(self.reason or self.kind or self.agent or self.run)

    def like(self, record: Record) -> "Asked":
        """Those that wait for the same reason, of the same kind and agent."""
        why = reasons(record)
        agent = record.source.agent_id or ""
        return replace(self, reason=why[0] if why else "", kind=record.kind, agent=agent, run="")

    @property
    def query(self) -> dict[str, str]:
        """For an address."""
        values = (self.user, self.reason, self.kind, self.agent, self.run)
        return dict(zip(_IN_ADDRESS, values, strict=True))


def inbox(visit: Visit) -> Response:
    asked, after = Asked.of(visit), visit.asked("after") or None
    waiting = _waiting(visit, asked)
    rest = _behind(waiting, after)
    page = rest[:_PAGE]
    decided = visit.shelf.decided(visit.asker)
    return visit.page(
        "inbox.html",
        waiting=[each for record in page if (each := _beside(visit, record)) is not None],
        groups=_groups(asked, waiting),
        like=asked.like,
        after=after,
        older=page[-1].cursor if len(rest) > _PAGE else None,
        **_choices(visit, asked, waiting),
        last=decided[-1] if decided else None,
    )


def together(visit: Visit) -> Response:
    """All that are alike: what approving each would do, to be picked and decided at once."""
    asked = Asked.of(visit)
    waiting = _waiting(visit, asked)
    page = waiting[:_TOGETHER]
    shown = [each for record in page if (each := _shown(visit, record)) is not None]
    return visit.page("together.html", shown=shown, **_choices(visit, asked, waiting))


def _choices(visit: Visit, asked: Asked, waiting: list[Record]) -> dict[str, Any]:
    count = len(waiting) if asked.reason or asked.run else visit.memory.upkeep.count(asked.where)
    return {
        "asked": asked,
        "count": count,
        "kinds": KINDS,
        "reasons": sorted({code for record in waiting for code in reasons(record)} | {asked.reason} - {""}),
        "user_id": asked.user,
        "users": visit.users(),
    }


def _waiting(visit: Visit, asked: Asked) -> list[Record]:
    """The newest that wait and are meant, some thousands at most."""
    now = visit.memory.upkeep.now()
    found = visit.memory.upkeep.listed(asked.where, limit=_LOOKED_AT)
    return [record for record in found if asked.means(record) and not record.has_expired(now)]


def _behind(waiting: list[Record], after: str | None) -> list[Record]:
    """Those behind a cursor."""
    at = next((at for at, record in enumerate(waiting, start=1) if record.cursor == after), 0)
    return waiting[at:]


def _groups(asked: Asked, waiting: Iterable[Record]) -> list[tuple[Asked, int]]:
    """Which are alike, and how many, the most first."""
    counts = Counter(asked.like(record) for record in waiting)
    return [(like, n) for like, n in counts.most_common(_MOST_GROUPS) if n >= _ALIKE_FROM]


def _beside(visit: Visit, record: Record) -> Waiting | None:
    """None where it waits no more: another reviewer was faster than this page."""
    shown = _shown(visit, record)
    if shown is None:
        return None
    return Waiting(shown, visit.memory.messages(record.id, around=_AROUND, within=_WITHIN_SECONDS))


def _shown(visit: Visit, record: Record) -> Proposal | None:
    try:
        return visit.memory.review.show(record.id)
    except (AlreadyReviewed, RecordNotFound):
        return None


def approve(visit: Visit) -> Response:
    return _decided(visit, "approve", _approval(visit))


def edit(visit: Visit) -> Response:
    desk, by, content = visit.memory.review, visit.asker.name, visit.form.get("content", "")
    return _decided(visit, "edit", lambda id_: desk.edit(id_, content, reviewer=by))


def reject(visit: Visit) -> Response:
    return _decided(visit, "reject", _rejection(visit))


def approve_all(visit: Visit) -> Response:
    return _all_decided(visit, "approve", _approval(visit))


def reject_all(visit: Visit) -> Response:
    return _all_decided(visit, "reject", _rejection(visit))


def _approval(visit: Visit) -> Verb:
    desk, by = visit.memory.review, visit.asker.name
    return lambda id_: desk.approve(id_, reviewer=by)


def _rejection(visit: Visit) -> Verb:
    desk, by, reason = visit.memory.review, visit.asker.name, visit.form.get("reason", "").strip()
    return lambda id_: desk.reject(id_, reviewer=by, reason=reason)


def _decided(visit: Visit, what: str, verb: Verb) -> Response:
    id_ = visit.own(visit.part)
    text = _text(visit, id_)
    done = verb(id_)
    visit.shelf.decided(visit.asker).append(Decision(what, (id_,), text, done.status))
    return _back(visit, what)


def _all_decided(visit: Visit, what: str, verb: Verb) -> Response:
    """Decide each that was picked; what another reviewer has decided, or cannot be approved, is left."""
    picked = [name.removeprefix(_PICKED) for name in visit.form if name.startswith(_PICKED)]
    done: list[str] = []
    text = _text(visit, picked[0]) if picked and visit.own(picked[0]) else ""
    for id_ in picked[:_TOGETHER]:
        try:
            verb(visit.own(id_))
        except (AlreadyReviewed, Conflict, RecordNotFound, IdentityError, InvalidContent):
            continue  # it is counted as left, and waits on
        done.append(id_)
    if done:
        visit.shelf.decided(visit.asker).append(Decision(what, tuple(done), text, ""))
    return _back(visit, f"{what}-all", n=len(done), left=len(picked) - len(done))


def _text(visit: Visit, id_: str) -> str:
    return "".join(record.content for record in visit.memory.upkeep.records([id_]))


def undo(visit: Visit) -> Response:
    """Take back the caller's latest decision, which may be one on many; once more, the one before it."""
    decided = visit.shelf.decided(visit.asker)
    if not decided:
        return _back(visit, "nothing-to-undo")
    by, last, left = visit.asker.name, decided.pop(), 0
    for id_ in reversed(last.ids):
        try:
            visit.memory.review.undo(id_, reviewer=by, by=by)
        except (Conflict, RecordNotFound):
            left += 1
    if left == len(last.ids):
        return _back(visit, "changed-since")
    if len(last.ids) == 1:
        return _back(visit, "undo")
    return _back(visit, "undo-all", n=len(last.ids) - left, left=left)


def _back(visit: Visit, said: str, **numbers: int) -> Response:
    """To the inbox as it was asked for."""
    kept = {name: value for name in _IN_ADDRESS if (value := visit.form.get(name, ""))}
    return visit.go("/inbox", said=said, **kept, **{name: str(n) for name, n in numbers.items()})
