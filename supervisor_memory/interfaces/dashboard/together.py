"""Decide on many proposals on one page: grave ones first and apart, shared text shown once, and each user's
claims side by side."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.alike import Alike, Part, alike, parts_of, said_once
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.interfaces.dashboard.waiting import (
    TOGETHER,
    USUAL,
    Asked,
    against,
    choices,
    gravest,
    waiting,
)
from supervisor_memory.model.records import Record
from supervisor_memory.review.proposal import Proposal

_TOLD: Final = {"about-the-user-by-agent", "about-the-user-by-tool"}
"""Reasons that the heading tells by the kind and the source."""
_DIGITS: Final = re.compile(r"([0-9]{1,18})")
_HERE: Final = "-here"
"""The end of an effect on another proposal of the page."""
_EFFECTS: Final = ("added", "appended", "merged", "updated", "pending", "skipped", "refused")


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
    def effect(self) -> tuple[str, str]:
        """What approval would do to this proposal, and the reason if it would keep nothing."""
        shown, here = self.proposal, _HERE if self.other else ""
        if not _keeps_nothing(shown):
            return shown.decision + here, ""
        return shown.decision, shown.reason.rpartition(":")[2] + here if here else shown.reason

    @property
    def known(self) -> str:
        """The text that it joins, replaces or gives way to; "" where there is none."""
        existing = self.other or self.proposal.existing
        return existing.content if existing else ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A text's words in one gap, and the known text's words there if they differ."""

    before: list[Part]
    own: list[Part]


@dataclass(frozen=True, slots=True)
class Claim:
    """Equal proposals behind one checkbox, from one user or run or from several.

    Args:
        gaps: What it says beside what all of its section say; () where `change` tells it.
        is_change: Whether it takes the place of what is known.
        change: The known text, and the text that would be left; None where `gaps` tell it.
        beside: The known text that it gives way to, where that is not on the same line.
        is_only: Whether it alone of many alike has such words, where the others share theirs.
    """

    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    is_change: bool
    change: tuple[str, str] | None
    beside: str
    is_only: bool = False

    @property
    def record(self) -> Record:
        return self.rows[0].proposal.record

    @property
    def ids(self) -> str:
        """The ids that the box decides on."""
        return " ".join(row.proposal.id for row in self.rows)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a section: one user's claims, in a column for each effect, or a claim of several users."""

    users: tuple[str, ...]
    cells: tuple[tuple[Claim, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Proposals that belong together: the same grave reason, or one kind, one agent and similar words.

    Args:
        fixed: What the texts have in common, around what differs; empty where they are shown whole.
        columns: What approving would do.
    """

    rows: tuple[Row, ...]
    fixed: tuple[list[Part], ...]
    columns: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]

    @property
    def against(self) -> tuple[str, ...]:
        return self.rows[0].against

    @property
    def differs(self) -> tuple[str, ...]:
        return self.rows[0].differs

    @property
    def record(self) -> Record:
        """One of its records; all have the same kind and source."""
        return self.rows[0].proposal.record


def together(visit: Visit) -> Response:
    """The page that previews the approval of the picked proposals, one after the other.

    Picked is what nothing speaks against and what would change something. `picked` and `unpicked` in the
    address have the ids that a reviewer decided otherwise about; `waits` what a change of these made worth
    picking.
    """
    asked = Asked.of(visit)
    found = waiting(visit, asked)
    page = sorted(found, key=gravest)[:TOGETHER]
    told = {name: visit.asked(name).split() for name in ("picked", "unpicked", "waits")}
    out = {*told["unpicked"], *told["waits"]}
    rows = _rows(visit, asked, page, picked=told["picked"], unpicked=out)
    return visit.page(
        "together.html",
        sections=sections(rows),
        in_order=[row.proposal.id for row in rows],
        n_picked=sum(row.is_picked for row in rows),
        nothing=[row.proposal.id for row in rows if row.proposal.decision == "skipped" and not row.against],
        told=told,
        **choices(visit, asked, found),
    )


def _rows(
    visit: Visit, asked: Asked, page: list[Record], *, picked: list[str], unpicked: set[str]
) -> list[Row]:
    """Each proposal as it would be approved after the picked proposals before it."""
    out = [each.id for each in page if each.id in unpicked or (against(each) and each.id not in picked)]
    shown = visit.memory.review.show_together([record.id for record in page], without=out)
    by_id = {each.id: each.record for each in shown}
    of_all = set.intersection(*(set(each.why) for each in shown)) if shown else set()
    return [
        Row(
            each,
            each.id not in out and (each.id in picked or not _keeps_nothing(each)),
            against(each.record),
            tuple(code for code in each.why if code in USUAL and code not in of_all | _TOLD | {asked.reason}),
            by_id.get(each.existing.id) if each.existing and each.existing.id != each.id else None,
        )
        for each in shown
    ]


def _keeps_nothing(shown: Proposal) -> bool:
    """Whether approving it would leave everything as it is."""
    return shown.decision in ("skipped", "refused")


def sections(rows: Iterable[Row]) -> list[Section]:
    """The sections of the page: grave reasons first, then proposals unlike any other, then the largest
    groups."""
    buckets: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        by = row.proposal.record.source
        where = (row.against, row.proposal.record.kind, by.agent_id, by.source_class, row.differs)
        buckets.setdefault(where, []).append(row)
    grave, single, like = list[Section](), list[Section](), list[Section]()
    for bucket in buckets.values():
        texts = [row.proposal.record.content for row in bucket]
        groups = [Alike((at,), ("", ""), ((text,),)) for at, text in enumerate(texts)]
        groups = groups if bucket[0].against else alike(texts)
        alone = [group for group in groups if len(group.at) == 1]
        if alone:
            rows_of = [bucket[group.at[0]] for group in alone]
            claims = [_claim(row, group, 0) for row, group in zip(rows_of, alone, strict=True)]
            (grave if bucket[0].against else single).append(_section(rows_of, claims, ()))
        for group in groups:
            if len(group.at) > 1:
                members = [bucket[at] for at in group.at]
                only = said_once(group.own)
                claims = [replace(_claim(row, group, n), is_only=n in only) for n, row in enumerate(members)]
                said = [
                    piece for pair in zip(group.fixed, (*group.own[0], ""), strict=True) for piece in pair
                ]
                like.append(_section(members, claims, parts_of(*said)[::2]))
    return [*grave, *single, *sorted(like, key=lambda each: -len(each.rows))]


def _claim(row: Row, group: Alike, n: int) -> Claim:
    """The claim of the n-th of texts that are alike."""
    shown, mine = row.proposal, _parts_in_order(group.fixed, group.own[n])[1::2]
    is_change, is_joined = shown.decision == "updated", shown.decision in ("merged", "appended")
    known = group.own_of(row.known) if (is_change or is_joined) and len(group.at) > 1 else None
    if (is_change or is_joined) and known is None and shown.record.content in shown.text:
        return Claim(
            (row,), (), is_change, (shown.existing.content if shown.existing else "", shown.text), ""
        )
    theirs = _parts_in_order(group.fixed, known)[1::2] if known else [list[Part]() for _ in mine]
    gaps = [Gap([] if before == own else before, own) for before, own in zip(theirs, mine, strict=True)]
    return Claim((row,), tuple(gaps), is_change, None, "" if known else row.known)


def _parts_in_order(fixed: Sequence[str], own: Sequence[str]) -> list[list[Part]]:
    """The shared text and one text's gaps, in order. Addresses, accounts and secrets are own parts."""
    return parts_of(*(piece for pair in zip(fixed, (*own, ""), strict=True) for piece in pair))[:-1]


def _section(rows: Sequence[Row], claims: Sequence[Claim], fixed: Sequence[list[Part]]) -> Section:
    columns = sorted({row.effect for row in rows}, key=_in_order)
    return Section(
        tuple(rows), tuple(fixed), tuple(columns), tuple(sorted(_lines(claims, columns), key=_by_name))
    )


def _in_order(effect: tuple[str, str]) -> tuple[int, str, str]:
    return _EFFECTS.index(effect[0].removesuffix(_HERE)), *effect


def _by_name(line: Line) -> tuple[bool, int, list[tuple[int, str]]]:
    """The sort key of a line: unique claims first, then those of most users, then user-9 before user-10."""
    is_only = any(claim.is_only for cell in line.cells for claim in cell)
    pieces = [piece for piece in _DIGITS.split(line.users[0]) if piece]
    return not is_only, -len(line.users), [(int(each) if each.isdecimal() else -1, each) for each in pieces]


def _lines(claims: Sequence[Claim], columns: Sequence[tuple[str, str]]) -> Iterable[Line]:
    """Arrange the claims of a section in lines: shared and grave claims get a line each, the others a line a
    user."""
    same: dict[tuple[object, ...], Claim] = {}
    for claim in claims:
        [row] = claim.rows
        alone = row.proposal.id if row.against else ""
        key = (claim.record.content, row.effect, row.is_picked, row.known, alone)
        same[key] = replace(claim, rows=(*same[key].rows, row)) if key in same else claim
    lines: dict[tuple[str, ...], list[Claim]] = {}
    for claim in same.values():
        users = tuple(dict.fromkeys(row.proposal.record.user_id for row in claim.rows))
        is_alone = len(users) > 1 or bool(claim.rows[0].against)
        lines.setdefault((*users, claim.ids if is_alone else ""), []).append(claim)
    for (*names, _), on_line in lines.items():
        ids = {row.proposal.id for claim in on_line for row in claim.rows}
        told = [
            replace(claim, beside="") if (other := claim.rows[0].other) and other.id in ids else claim
            for claim in on_line
        ]
        cells = [tuple(claim for claim in told if claim.rows[0].effect == column) for column in columns]
        yield Line(tuple(names), tuple(cells))
