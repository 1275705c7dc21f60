"""Ranks records that a remote store found, by all signals of a question over these records alone."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import numpy as np

from supervisor_memory.model.records import Hit, Hits, Namespace, Query, Record
from supervisor_memory.signals.index import Index, entry_of
from supervisor_memory.signals.measure import Asked, Cosines, measure
from supervisor_memory.stores.namespace import MOST_TERMS, chosen, searched_terms


def best_of(records: Iterable[Record], query: Query, *, cosines: Mapping[str, float], limit: int) -> Hits:
    """The best records by all signals together, with the very best by meaning alone and by words alone.

    How rare a word is, and what was said before and after, is taken from these records alone.

    Args:
        records: Each once, and all visible to the searcher.
        cosines: Record id → its cosine with the query, for records with a vector to compare.
    """
    # Equally good ones come the newest first, whatever the order in which the store answered.
    ordered = sorted(records, key=attrgetter("id"))
    asked = searched_terms(query)
    if limit <= 0 or not ordered:
        return Hits()
    if not asked and not (query.text and any(record.layer == "history" for record in ordered)):
        return _nearest(ordered, cosines, limit)
    by_namespace: dict[Namespace, list[int]] = {}
    for place, record in enumerate(ordered):
        by_namespace.setdefault(record.namespace, []).append(place)
    indexes = [_index(ordered, places) for places in by_namespace.values()]
    placed = [_placed(ordered, places, cosines) for places in by_namespace.values()]
    is_cut = len(asked) == MOST_TERMS
    asking = Asked(query.text, asked, query.now, query.unrelated, is_cut=is_cut, names=query.names)
    measured = measure(indexes, asking, placed, query.weights)
    return chosen(indexes, measured, limit, lambda keys: {key: ordered[key] for key in keys})


def _nearest(records: Sequence[Record], cosines: Mapping[str, float], limit: int) -> Hits:
    """The nearest records, for a question by meaning alone without verbatim records."""
    near = [(cosines[record.id], record) for record in reversed(records) if record.id in cosines]
    near.sort(key=lambda each: -each[0])
    parts = [({"cosine": cosine, "match": max(0.0, cosine)}, record) for cosine, record in near[:limit]]
    return Hits(tuple(Hit(record, parts=each) for each, record in parts))


def _index(records: Sequence[Record], places: Sequence[int]) -> Index:
    """An index of the records at these places, with the places as keys."""
    index = Index()
    index.load((place, entry_of(records[place])) for place in places)
    return index


def _placed(records: Sequence[Record], places: Sequence[int], cosines: Mapping[str, float]) -> Cosines | None:
    """The rows with a cosine in an index over these places, and their cosines; None: there are none."""
    ids = [records[place].id for place in places]
    rows = [row for row, record_id in enumerate(ids) if record_id in cosines]
    if not rows:
        return None
    return np.array(rows, dtype=np.intp), np.array([cosines[ids[row]] for row in rows], dtype=np.float32)
