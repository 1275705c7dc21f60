"""Parts of a store as data: a field of each record names its part, and moving changes that field.

How much a part holds, what leaves it first and where that goes are values of `Tier`; one chore moves for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from supervisor_memory.flow import Chore, Due, Gathering
from supervisor_memory.model.records import TIER, Reads, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.retention import everything
from supervisor_memory.stores.protocol import Change


@dataclass(frozen=True, slots=True)
class Tier:
    """A part of a store.

    Args:
        most: How many records it holds.
        leaves: Which leave when it holds more; of those read alike the oldest.
        into: The part they go to; None: they are forgotten.
        tag: Of the part only records with this tag are counted and moved; None: those made from no others.
        with_parts: Whether what they were made from is forgotten with them.
    """

    name: str
    most: int
    leaves: Literal["oldest", "least-read"] = "oldest"
    into: str | None = None
    tag: str | None = None
    with_parts: bool = False

    def holds(self, record: Record) -> bool:
        """Whether a record is in this part and counts."""
        is_counted = not record.made_from if self.tag is None else self.tag in record.tags
        return is_counted and record.metadata.get(TIER) == self.name


def keep_in(name: str) -> Gathering:
    """An operator that puts what is written into a part."""
    return beside(lambda text, when, view: {TIER: name})


def moved(record: Record, into: str) -> Record:
    """The record in another part, otherwise unchanged; it does not count as updated."""
    return replace(record, metadata={**record.metadata, TIER: into})


def visits(record: Record, reads: dict[str, Reads]) -> Reads:
    """How often and when last a record was read; a derived record counts the most read of its sources."""
    found = [reads[id] for id in record.made_from or (record.id,) if id in reads]
    last = max((each.last_at for each in found if each.last_at is not None), default=None)
    return Reads(max((each.times for each in found), default=0), last)


def tiered(*tiers: Tier) -> Chore:
    """A chore that moves records out of overfull tiers, one tier after the other."""

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        there = {record.id: record for record in everything(user_id, view)}
        due: dict[str, Due] = {}
        for tier in tiers:
            held = sorted(filter(tier.holds, there.values()), key=lambda r: (r.created_at, r.id))
            over = len(held) - tier.most
            if over <= 0:
                continue
            if tier.leaves == "least-read":
                asked = dict.fromkeys(id for each in held for id in each.made_from or (each.id,))
                reads = dict(view.reads([*asked]))
                held.sort(key=lambda record: visits(record, reads).times)
            why = f"{tier.name} holds {len(held)}, at most {tier.most}"
            for record in held[:over]:
                parts = (there[id] for id in record.made_from if id in there)
                for each in (record, *parts) if tier.with_parts else (record,):
                    there[each.id] = after = _moved_on(each, tier.into, view.now)
                    due[each.id] = Due(Change(after, expects=each.version), why)
        return [*due.values()]

    return Chore("migrate", plan, parts=tuple(dict.fromkeys(tier.name for tier in tiers)))


def _moved_on(record: Record, into: str | None, now: float) -> Record:
    if into is None:
        return replace(record, status="deleted", updated_at=now, valid_to=now)
    return moved(record, into)
