"""How well a record is retained by the forgetting curve, and the chore that forgets by it."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from supervisor_memory.flow import Chore, Due
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Reads, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stores.protocol import Change

DAY: Final = 86_400.0
_PAGE: Final = 500
_PROTECTED: Final = ("user-profile", "identity")
Retained: TypeAlias = Callable[[Record, Reads, float], float]
"""From a record, its reads and now to how well it is retained."""


def ebbinghaus(days: float, strength: float, *, scale: float) -> float:
    """R = e^(−t / (scale·S)), in (0, 1].

    Args:
        days: t, since it was last recalled or written; negative counts as 0.
        strength: S: 1 for what was never recalled, 1 more for each time.
        scale: Days in which what was never recalled falls to 1/e.

    Source: Ebbinghaus 1885, as in MemoryBank.
    """
    return math.exp(-max(days, 0.0) / (scale * strength))


def by_curve(scale: float) -> Retained:
    """The forgetting curve of a record, by the access log and in whole days, as MemoryBank counts them."""

    def retained(record: Record, reads: Reads, now: float) -> float:
        since = max(reads.last_at or 0.0, record.updated_at)
        return ebbinghaus((now - since) // DAY, 1.0 + reads.times, scale=scale)

    return retained


def everything(user_id: str, view: ReadStore, **where: object) -> Iterator[Record]:
    """All active records of a user, session messages included, the last updated first, a page at a time."""
    own = Filter(user_id)
    for each in (own, replace(own, families=(SESSION_FAMILY,))):
        asked = replace(each, **where)  # type: ignore[arg-type]  # fields of Filter, by the callers here
        while page := view.list(asked, limit=_PAGE):
            yield from (record for record in page if record.is_visible(view.now))
            asked = asked.after(page[-1])


def fade(retained: Retained, *, below: float, name: str = "fade") -> Chore:
    """A chore that forgets what is retained less than a floor. It can be restored.

    Profiles, identities and what is pinned stay.
    """

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        records = [record for record in everything(user_id, view) if not _is_protected(record)]
        reads = view.reads([record.id for record in records]) if records else {}
        due = []
        for record in records:
            left = retained(record, reads.get(record.id, Reads()), view.now)
            if left < below:
                gone = replace(record, status="deleted", updated_at=view.now, valid_to=view.now)
                due.append(Due(Change(gone, expects=record.version), f"retained {left:.3f}, under {below:g}"))
        return due

    return Chore(name, plan)


def _is_protected(record: Record) -> bool:
    return record.kind in _PROTECTED or record.metadata.get("pinned") is True
