"""Page 1: proposals for a person, each beside the known record and the result of approving it; and what is
decided on one of them, or on many."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from fastapi.responses import Response

from supervisor_memory.errors import (
    AlreadyReviewed,
    Conflict,
    IdentityError,
    InvalidContent,
    RecordNotFound,
)
from supervisor_memory.interfaces.dashboard.visit import Decision, Visit
from supervisor_memory.interfaces.dashboard.waiting import (
    IN_ADDRESS,
    TOGETHER,
    Asked,
    choices,
    gravity,
    waiting,
)
from supervisor_memory.model.records import Record, WriteResult
from supervisor_memory.review.proposal import Proposal

_PAGE: Final = 10
_AROUND: Final = 1
_WITHIN_SECONDS: Final = 3_600.0
_ALIKE_FROM: Final = 2
_MOST_GROUPS: Final = 12
_PICKED: Final = "p-"
_SETTLED: Final = "settled"
_SKIPPED: Final = {"duplicate": "known", "adds-nothing": "known", "older-than-what-is-known": "outdated"}
"""The end of the reason why an approval changed nothing, as the message afterwards tells it."""
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
class Group:
    """Proposals that are alike: their number, and the number that also wait for a graver reason."""

    like: Asked
    n: int
    beyond: tuple[tuple[str, int], ...]


def inbox(visit: Visit) -> Response:
    asked, after = Asked.of(visit), visit.asked("after") or None
    found = waiting(visit, asked)
    if not found and visit.asked("said") and any(map(visit.asked, IN_ADDRESS)):
        return _to_whole_inbox(visit, asked)
    rest = _after_cursor(found, after)
    page = rest[:_PAGE]
    decided = visit.shelf.decided(visit.asker)
    return visit.page(
        "inbox.html",
        waiting=[each for record in page if (each := _with_context(visit, record)) is not None],
        groups=_groups(asked, found),
        like=asked.like,
        after=after,
        older=page[-1].cursor if len(rest) > _PAGE else None,
        most=TOGETHER,
        **choices(visit, asked, found),
        last=decided[-1] if decided else None,
    )


def _to_whole_inbox(visit: Visit, asked: Asked) -> Response:
    """Redirect to the next proposals where the last decision has emptied the filter."""
    kept = {**visit.request.query_params} | dict.fromkeys(IN_ADDRESS, "") | {"after": ""}
    user = asked.user if asked.is_narrow else ""
    return visit.go("/inbox", **{name: each for name, each in (kept | {"user": user}).items() if each})


def _after_cursor(found: list[Record], after: str | None) -> list[Record]:
    """The proposals behind a cursor."""
    at = next((at for at, record in enumerate(found, start=1) if record.cursor == after), 0)
    return found[at:]


def _groups(asked: Asked, found: Iterable[Record]) -> list[Group]:
    """Groups of proposals that are alike: the gravest reasons first, then the largest groups."""
    alike: dict[Asked, list[Record]] = {}
    for record in found:
        alike.setdefault(asked.like(record), []).append(record)
    groups = []
    for like, records in alike.items():
        counts = Counter(code for record in records for code in like.beyond(record))
        beyond = tuple(sorted(counts.items(), key=lambda each: gravity(each[0])))
        groups.append(Group(like, len(records), beyond))

    def order(group: Group) -> tuple[int, int]:
        return min(map(gravity, (group.like.reason, *(code for code, _ in group.beyond)))), -group.n

    return sorted((each for each in groups if each.n >= _ALIKE_FROM), key=order)[:_MOST_GROUPS]


def _with_context(visit: Visit, record: Record) -> Waiting | None:
    """A proposal beside the known record; None: another reviewer has decided on it meanwhile."""
    shown = _proposal_or_none(visit, record)
    if shown is None:
        return None
    return Waiting(shown, visit.memory.messages(record.id, around=_AROUND, within=_WITHIN_SECONDS))


def _proposal_or_none(visit: Visit, record: Record) -> Proposal | None:
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
    return _all_decided(visit, "approve", [(id_, _approval(visit)) for id_ in _picked(visit)])


def reject_all(visit: Visit) -> Response:
    return _all_decided(visit, "reject", [(id_, _rejection(visit)) for id_ in _picked(visit)])


def split(visit: Visit) -> Response:
    """Approve the picked proposals and reject the others on the page.

    A proposal that would change nothing ends without a verdict. One that became worth picking only because
    the picks changed goes on waiting.
    """
    picked = dict.fromkeys(_picked(visit), _approval(visit))
    nothing = dict.fromkeys(visit.form.get("nothing", "").split(), _end_without_change(visit))
    waits = set(visit.form.get("waits", "").split()).difference(picked)
    verb_of, rejection = nothing | picked, _rejection(visit)
    shown = [id_ for id_ in visit.form.get("shown", "").split() if id_ not in waits]
    return _all_decided(visit, "split", [(id_, verb_of.get(id_, rejection)) for id_ in shown])


def _picked(visit: Visit) -> list[str]:
    """The picked proposals, in the order of the page's preview."""
    at = {id_: n for n, id_ in enumerate(visit.form.get("shown", "").split())}
    picked = [
        id_ for name in visit.form if name.startswith(_PICKED) for id_ in name.removeprefix(_PICKED).split()
    ]
    return sorted(picked, key=lambda id_: at.get(id_, len(at)))


def _approval(visit: Visit) -> Verb:
    desk, by = visit.memory.review, visit.asker.name
    return lambda id_: desk.approve(id_, reviewer=by)


def _end_without_change(visit: Visit) -> Verb:
    """Approve what would change nothing; Conflict: by now it would change something."""
    desk, approval = visit.memory.review, _approval(visit)

    def end(id_: str) -> WriteResult:
        if desk.show(id_).decision != "skipped":
            raise Conflict("approving it would change something by now", what="version", record_id=id_)
        return replace(approval(id_), reason=_SETTLED)

    return end


def _rejection(visit: Visit) -> Verb:
    desk, by, reason = visit.memory.review, visit.asker.name, visit.form.get("reason", "").strip()
    return lambda id_: desk.reject(id_, reviewer=by, reason=reason)


def _decided(visit: Visit, what: str, verb: Verb) -> Response:
    id_ = visit.own(visit.part)
    text = _text(visit, id_)
    done = verb(id_)
    visit.shelf.decided(visit.asker).append(Decision(what, (id_,), text, done.status))
    return _to_inbox(visit, what)


def _all_decided(visit: Visit, what: str, verbs: list[tuple[str, Verb]]) -> Response:
    """Decide on each; proposals that another reviewer has decided, or that cannot be approved, are left and
    counted."""
    done: list[str] = []
    came, others = Counter[str](), set[str]()
    if verbs:
        visit.own(verbs[0][0])
    for id_, verb in verbs[:TOGETHER]:
        try:
            result = verb(visit.own(id_))
        except AlreadyReviewed as error:
            if by := error.facts.get("by"):
                others.add(str(by))
            came["decided" if by else "left"] += 1
        except (Conflict, RecordNotFound, IdentityError, InvalidContent):
            came["left"] += 1
        else:
            done.append(id_)
            came[_outcome_of(result)] += 1
    came["left"] += len(verbs[TOGETHER:])
    came["n"] = len(done) - (came["rejected"] + came[_SETTLED] if what == "split" else 0)
    if what == "reject":
        del came["rejected"]
    visit.shelf.others[visit.asker.name] = ", ".join(sorted(others))
    if done:
        of_them = {name: n for name, n in came.items() if name not in ("decided", "left")}
        visit.shelf.decided(visit.asker).append(Decision(what, tuple(done), "", "", of_them))
    return _to_inbox(visit, f"{what}-all", **came)


def _outcome_of(result: WriteResult) -> str:
    """The name, in NUMBERS, of the outcome of a decision."""
    if result.reason in ("rejected", _SETTLED):
        return result.reason
    if result.status != "skipped":
        return result.status
    return _SKIPPED.get(result.reason.rpartition(":")[2], "skipped")


def _text(visit: Visit, id_: str) -> str:
    return "".join(record.content for record in visit.memory.upkeep.records([id_]))


def undo(visit: Visit) -> Response:
    """Undo the caller's latest decision, on one proposal or many. Called again, undo the one before."""
    decided = visit.shelf.decided(visit.asker)
    if not decided:
        return _to_inbox(visit, "nothing-to-undo")
    by, last, left = visit.asker.name, decided.pop(), 0
    for id_ in reversed(last.ids):
        try:
            visit.memory.review.undo(id_, reviewer=by, by=by)
        except (Conflict, RecordNotFound):
            left += 1
    if left == len(last.ids):
        return _to_inbox(visit, "changed-since")
    if len(last.ids) == 1:
        return _to_inbox(visit, "undo")
    return _to_inbox(visit, "undo-all", n=len(last.ids) - left, left=left)


def _to_inbox(visit: Visit, said: str, **numbers: int) -> Response:
    """Redirect to the inbox with the filter it had."""
    kept = {name: value for name in IN_ADDRESS if (value := visit.form.get(name, ""))}
    return visit.go("/inbox", said=said, **kept, **{name: str(n) for name, n in numbers.items() if n})
