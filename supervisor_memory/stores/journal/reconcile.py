"""Bring the copy on this machine and the store to the same records."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from supervisor_memory.model.records import Record
from supervisor_memory.stores.journal.local_copy import LocalCopy
from supervisor_memory.stores.protocol import Reconciled, Stored, Taken

_PAGE: Final = 200
_Take: TypeAlias = Callable[[Sequence[Stored]], Sequence[Taken]]
_Keep: TypeAlias = Callable[[Iterable[tuple[Record, Any]]], None]


def reconcile(
    copy: LocalCopy, pages: Callable[..., Sequence[Stored]], take: _Take, *, keep: _Keep
) -> Reconciled:
    """Copy the store's records into the copy, and give back those that only the copy has.

    The store is right where both have a record, for every instance writes there. A record only in the copy
    was in the store once: the store has lost it, or another instance has erased its user, and then the
    store refuses it.

    `pages` and `take` are those of the store, see `Moves`; `keep` puts its records into the copy.
    """
    done = Reconciled()
    lost = set(copy.versions())
    last = None
    while page := pages(after=last, limit=_PAGE):
        last = page[-1].record.id
        known = {record.id: (record, vector) for record, vector in copy.whole([p.record.id for p in page])}
        other = [each for each in page if _differs(each, known.get(each.record.id))]
        keep((each.record, each.vector) for each in other)
        lost -= {each.record.id for each in page}
        done.compared += len(page)
        done.brought += len(other)
    ids = sorted(lost)
    for start in range(0, len(ids), _PAGE):
        _give_back(copy, ids[start : start + _PAGE], take, done)
    return done


def _differs(stored: Stored, known: tuple[object, object] | None) -> bool:
    if known is None:
        return True
    record, vector = known
    return record != replace(stored.record, vector=None) or (vector is None) != (stored.vector is None)


def _give_back(copy: LocalCopy, ids: Sequence[str], take: _Take, done: Reconciled) -> None:
    held = [Stored(record, (), vector and vector[1]) for record, vector in copy.whole(ids)]
    erased = []
    for taken in take(held):
        if taken.reason == "erased":
            erased.append(taken.record_id)
        elif taken.what == "refused":
            done.refused[taken.record_id] = taken.reason
        else:
            done.restored += 1
    copy.remove(erased)
    done.forgotten += len(erased)
