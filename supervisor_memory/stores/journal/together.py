"""Joins entries of a journal into one commit, so that a backlog needs fewer calls to the store.

The id of the joint commit is kept with the entries: after an interruption they are applied as the same
commit again, and the store completes it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from supervisor_memory.model.records import new_id
from supervisor_memory.stores.journal.entries import Entries, Entry
from supervisor_memory.stores.protocol import Commit, Committed

MOST_TOGETHER: Final = 64
_MOST_CHANGES: Final = 256


def next_together(entries: Entries) -> tuple[str, Sequence[Entry]]:
    """The id of the next commit and its entries, in order; "" for an entry applied alone, or for none."""
    first = entries.first("waiting", limit=MOST_TOGETHER)
    if not first:
        return "", ()
    if known := first[0].together:
        return known, [entry for entry in first if entry.together == known]
    chosen = list(_fitting(first))
    if len(chosen) == 1:
        return "", chosen
    commit_id = new_id()
    entries.join([entry.seq for entry in chosen], commit_id)
    return commit_id, chosen


def _fitting(waiting: Sequence[Entry]) -> Iterator[Entry]:
    """The first entries that can be joined: none changes a record that an earlier entry changes."""
    seen: set[str] = set()
    for position, entry in enumerate(waiting):
        ids = {change.record.id for change in entry.commit.changes}
        is_apart = entry.is_legible and not entry.attempts and not entry.together and ids.isdisjoint(seen)
        seen |= ids
        if position and not (is_apart and len(seen) <= _MOST_CHANGES):
            return
        yield entry
        if not is_apart:
            return


def as_one(commit_id: str, entries: Sequence[Entry]) -> Commit:
    """A commit with the changes of all entries, in order. Their events are audited one by one afterwards."""
    return Commit(tuple(change for entry in entries for change in entry.commit.changes), (), commit_id)


def divided(done: Committed, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Committed]]:
    """Divide the result of a joint commit among its entries."""
    start = 0
    for entry in entries:
        end = start + len(entry.commit.changes)
        yield entry, Committed(entry.commit.id, done.records[start:end])
        start = end
