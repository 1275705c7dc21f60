"""Page 3: one record through time, its readers, and the actions on it."""

import hmac
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from fastapi.responses import Response

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.dashboard.visit import Visit, is_rejected
from supervisor_memory.interfaces.present import to_be_erased
from supervisor_memory.model.records import TEAM, Record, WriteStatus
from supervisor_memory.model.versions import read_from_message
from supervisor_memory.reading.audit import AuditRow
from supervisor_memory.review.promotion import KINDS_TO_SHARE
from supervisor_memory.review.proposal import reasons

_ROWS: Final = 50
_VERSIONS: Final = 50
_AROUND: Final = 2
_WORDED: Final = frozenset({"review", "strategy", "said_kept"})
"""Metadata that the page tells in words elsewhere, or that say nothing to a reviewer."""
READERS: Final = frozenset({"inject", "search", "used"})
"""Operations of agents; all others belong to people who look after memory."""
_SAID: Final[dict[WriteStatus, str]] = {"skipped": "skipped", "pending": "waits-again"}
"""The messages for results other than the one asked for."""


def show(visit: Visit) -> Response:
    memory, id_ = visit.memory, visit.own(visit.part)
    found = memory.get(id_)
    log, versions = memory.audit, memory.history(id_)
    read = log.accesses(_ROWS, record_id=id_)[::-1]
    rows = log.tail(_ROWS, record_id=id_)
    people = visit.people
    return visit.page(
        "record.html",
        record=found,
        back=_back(visit),
        versions=versions[-_VERSIONS:],
        before=versions[:-_VERSIONS],
        read_from=read_from_message(versions),
        said=memory.messages(id_, around=_AROUND),
        readings=[row for row in read if row.op in READERS and row.agent_id not in people],
        lookers=[row for row in read if row.op not in READERS or row.agent_id in people],
        rows=rows[::-1],
        joined=_changed_together(visit, found, rows),
        is_rejected=is_rejected(found),
        why=reasons(found),
        verdict=_verdict(found),
        metadata={name: each for name, each in found.to_dict()["metadata"].items() if name not in _WORDED},
        clock=memory.upkeep.now(),
        is_shareable=_is_shareable(visit, found),
        is_shared=found.user_id.startswith(TEAM),
    )


def _back(visit: Visit) -> str:
    """The address of the list of proposals that led to this page; "" where the reader came from elsewhere."""
    came = urlsplit(visit.request.headers.get("referer", ""))
    inbox = f"{visit.root}/inbox"
    if came.path not in (inbox, f"{inbox}/together"):
        return ""
    return f"{came.path}?{came.query}" if came.query else came.path


def _verdict(record: Record) -> dict[str, str]:
    """The reviewer who rejected the proposal, and the reason."""
    told = record.metadata.get("review")
    told = told if isinstance(told, Mapping) else {}
    return {name: str(told.get(name, "")) for name in ("by", "reason")}


def _changed_together(visit: Visit, record: Record, rows: Sequence[AuditRow]) -> list[Record]:
    """What an approved proposal joined, replaced or gave way to: the other records of the same decision."""
    last = next((row for row in reversed(rows) if row.op in ("approve", "edit")), None)
    if record.status != "stale" or last is None:
        return []
    before = visit.memory.audit.tail(_ROWS, before=last.seq)
    same = [r for r in before if (r.ts_us, r.event["actor"]) == (last.ts_us, last.event["actor"])]
    ids = dict.fromkeys(r.record_id for r in same if r.record_id not in (None, record.id))
    return [each for each in visit.memory.upkeep.records([i for i in ids if i]) if visit.may_see(each)]


def _is_shareable(visit: Visit, record: Record) -> bool:
    """Whether the visitor may share the record with a team; the next page tells further objections."""
    is_theirs = visit.asker.user_ids is None and visit.asker.may_write
    is_one = record.kind in KINDS_TO_SHARE and record.status == "active"
    is_new = bool(visit.memory.settings.team) and not record.user_id.startswith(TEAM)
    return is_theirs and is_one and is_new


def revert(visit: Visit) -> Response:
    id_, told = visit.own(visit.part), visit.form.get("version", "")
    if not (told.isascii() and told.isdigit() and len(told) < 9):  # noqa: PLR2004
        raise InvalidContent("version is no whole number, as the page has them")
    done = visit.memory.review.revert(id_, version=int(told), reviewer=visit.asker.name)
    return visit.go(f"/records/{id_}", said=_SAID.get(done.status, "revert"))


def ask_delete(visit: Visit) -> Response:
    return visit.page("delete.html", record=visit.memory.get(visit.own(visit.part)))


def delete(visit: Visit) -> Response:
    id_ = visit.own(visit.part)
    keep_said = visit.form.get("keep-said") == "yes"
    done = visit.memory.review.delete(id_, reviewer=visit.asker.name, keep_said=keep_said)
    return visit.go(f"/records/{id_}", said="delete" if done else "skipped")


def restore(visit: Visit) -> Response:
    id_ = visit.own(visit.part)
    done = visit.memory.review.restore(id_, reviewer=visit.asker.name)
    return visit.go(f"/records/{id_}", said=_SAID.get(done.status, "restore"))


def ask_forget(visit: Visit) -> Response:
    return _forgetting(visit, visit.asker.one_user(visit.asked("user") or None), mismatch=False)


def _forgetting(visit: Visit, user_id: str, *, mismatch: bool) -> Response:
    held = to_be_erased(visit.memory, user_id)["counts"]
    return visit.page(
        "forget.html", status=422 if mismatch else 200, whom=user_id, held=held, mismatch=mismatch
    )


def forget(visit: Visit) -> Response:
    """Erase a user, where their id was typed; the receipt is kept for as long as the process lives."""
    user_id = visit.asker.one_user(visit.form.get("user") or None)
    typed = visit.form.get("typed", "").strip()
    if not hmac.compare_digest(typed.encode(), user_id.encode()):
        return _forgetting(visit, user_id, mismatch=True)
    done = visit.memory.erase(user_id=user_id, confirm=True, reviewer=visit.asker.name)
    return visit.go(f"/receipts/{visit.shelf.keep(done)}")


def receipt(visit: Visit) -> Response:
    kept = visit.shelf.receipts.get(visit.part)
    if kept is not None:
        visit.asker.user(kept.user_id)
    return visit.page("receipt.html", status=200 if kept else 404, receipt=kept)
