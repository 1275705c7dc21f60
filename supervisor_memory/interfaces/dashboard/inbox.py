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
_GRAVE: Final = (
    "instruction-like",
    "unknown-address",
    "contradicts-the-user",
    "unsure-who-said-it",
    "low-confidence",
)
"""Reasons that speak against a proposal, the gravest first."""
_USUAL: Final = ("asked-for", "every-candidate", "about-the-user-by-agent", "about-the-user-by-tool")
"""Reasons that only say why a person is asked."""
_IN_ADDRESS: Final = ("user", "why", "kind", "agent", "run")
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
class Row:
    """A proposal among others that are decided together.

    Args:
        is_picked: Whether the reviewer, or before that the page, has picked it.
        against: What speaks against it, the gravest first.
        differs: Why else it waits, where not all of the others do.
        other: Which of the others it joins, replaces or gives way to, as that was proposed.
    """

    proposal: Proposal
    is_picked: bool
    against: tuple[str, ...]
    differs: tuple[str, ...]
    other: Record | None

    @property
    def keeps_nothing(self) -> bool:
        return _keeps_nothing(self.proposal)


@dataclass(frozen=True, slots=True)
class Group:
    """Proposals that are alike: how many, and how many of them wait for a graver reason too."""

    like: "Asked"
    n: int
    beyond: tuple[tuple[str, int], ...]


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

    def beyond(self, record: Record) -> tuple[str, ...]:
        """What speaks against a record beside the reason asked for, the gravest first."""
        return tuple(code for code in _against(record) if code != self.reason)

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
    if not waiting and visit.asked("said") and any(map(visit.asked, _IN_ADDRESS)):
        return _wider(visit, asked)
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
        most=_TOGETHER,
        **_choices(visit, asked, waiting),
        last=decided[-1] if decided else None,
    )


def _wider(visit: Visit, asked: Asked) -> Response:
    """To what waits next, where the last decision has left nothing of what was asked for."""
    kept = {**visit.request.query_params} | dict.fromkeys(_IN_ADDRESS, "") | {"after": ""}
    user = asked.user if asked.is_narrow else ""
    return visit.go("/inbox", **{name: each for name, each in (kept | {"user": user}).items() if each})


def together(visit: Visit) -> Response:
    """All that are alike: what approving the picked ones one after the other would do.

    Picked is what nothing speaks against and what would change something. `picked` and `unpicked` in the
    address have the ids that a reviewer decided otherwise about.
    """
    asked = Asked.of(visit)
    waiting = _waiting(visit, asked)
    page = sorted(waiting, key=_gravest)[:_TOGETHER]
    told = {name: visit.asked(name).split() for name in ("picked", "unpicked")}
    rows = _rows(visit, asked, page, **told)
    shown = {row.proposal.id for row in rows}
    in_order = [record.id for record in page if record.id in shown]
    return visit.page(
        "together.html", rows=rows, in_order=in_order, told=told, **_choices(visit, asked, waiting)
    )


def _rows(
    visit: Visit, asked: Asked, page: list[Record], *, picked: list[str], unpicked: list[str]
) -> list[Row]:
    """Each as it would be approved after the picked ones before it; the grave first, then the needless."""
    out = [each.id for each in page if each.id in unpicked or (_against(each) and each.id not in picked)]
    shown = visit.memory.review.show_together([record.id for record in page], without=out)
    by_id = {each.id: each.record for each in shown}
    of_all = set.intersection(*(set(each.why) for each in shown)) if shown else set()
    rows = [
        Row(
            each,
            each.id not in out and (each.id in picked or not _keeps_nothing(each)),
            _against(each.record),
            tuple(code for code in each.why if code in _USUAL and code not in of_all | {asked.reason}),
            by_id.get(each.existing.id) if each.existing and each.existing.id != each.id else None,
        )
        for each in shown
    ]
    return sorted(rows, key=lambda row: (not row.against, not row.keeps_nothing))


def _keeps_nothing(shown: Proposal) -> bool:
    """Whether approving it would leave everything as it is."""
    return shown.decision in ("skipped", "refused")


def _against(record: Record) -> tuple[str, ...]:
    """Reasons that speak against a record, the gravest first."""
    return tuple(sorted((code for code in reasons(record) if code not in _USUAL), key=_gravity))


def _gravest(record: Record) -> int:
    """The place of a record's gravest reason."""
    return min(map(_gravity, _against(record)), default=_LEAST_GRAVE)


_LEAST_GRAVE: Final = len(_GRAVE) + 1


def _gravity(code: str) -> int:
    """The place of a reason among all, 0 the gravest."""
    if code in _GRAVE:
        return _GRAVE.index(code)
    return _LEAST_GRAVE if code in _USUAL else len(_GRAVE)


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


def _groups(asked: Asked, waiting: Iterable[Record]) -> list[Group]:
    """Which are alike, the ones with the gravest reasons first, then the most."""
    alike: dict[Asked, list[Record]] = {}
    for record in waiting:
        alike.setdefault(asked.like(record), []).append(record)
    groups = []
    for like, records in alike.items():
        counts = Counter(code for record in records for code in like.beyond(record))
        beyond = tuple(sorted(counts.items(), key=lambda each: _gravity(each[0])))
        groups.append(Group(like, len(records), beyond))

    def order(group: Group) -> tuple[int, int]:
        return min(map(_gravity, (group.like.reason, *(code for code, _ in group.beyond)))), -group.n

    return sorted((each for each in groups if each.n >= _ALIKE_FROM), key=order)[:_MOST_GROUPS]


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
    return _all_decided(visit, "approve", [(id_, _approval(visit)) for id_ in _picked(visit)])


def reject_all(visit: Visit) -> Response:
    return _all_decided(visit, "reject", [(id_, _rejection(visit)) for id_ in _picked(visit)])


def split(visit: Visit) -> Response:
    """Approve those that were picked, and reject the others that the page showed."""
    picked = set(_picked(visit))
    verbs = {True: _approval(visit), False: _rejection(visit)}
    shown = visit.form.get("shown", "").split()
    return _all_decided(visit, "split", [(id_, verbs[id_ in picked]) for id_ in shown])


def _picked(visit: Visit) -> list[str]:
    """What was picked, in the order in which the page foresaw it."""
    at = {id_: n for n, id_ in enumerate(visit.form.get("shown", "").split())}
    picked = [name.removeprefix(_PICKED) for name in visit.form if name.startswith(_PICKED)]
    return sorted(picked, key=lambda id_: at.get(id_, len(at)))


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


def _all_decided(visit: Visit, what: str, verbs: list[tuple[str, Verb]]) -> Response:
    """Decide each; what another reviewer has decided, or cannot be approved, is left, and counted."""
    done: list[str] = []
    came, others = Counter[str](), set[str]()
    if verbs:
        visit.own(verbs[0][0])
    for id_, verb in verbs[:_TOGETHER]:
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
            came[_came(result)] += 1
    came["left"] += len(verbs[_TOGETHER:])
    came["n"] = len(done) - came["rejected"] if what == "split" else len(done)
    if what == "reject":
        del came["rejected"]
    visit.shelf.others[visit.asker.name] = ", ".join(sorted(others))
    if done:
        of_them = {name: n for name, n in came.items() if name not in ("decided", "left")}
        visit.shelf.decided(visit.asker).append(Decision(what, tuple(done), "", "", of_them))
    return _back(visit, f"{what}-all", **came)


def _came(result: WriteResult) -> str:
    """The name, in NUMBERS, of the outcome of a decision."""
    if result.reason == "rejected":
        return "rejected"
    if result.status != "skipped":
        return result.status
    return _SKIPPED.get(result.reason.rpartition(":")[2], "skipped")


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
    return visit.go("/inbox", said=said, **kept, **{name: str(n) for name, n in numbers.items() if n})
