"""What one collection is asked in a search, and what the answers of all of them come to. Without I/O."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from qdrant_client import models

from supervisor_memory.model.records import Filter, Hits, Query, Record
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.qdrant.points import DENSE, READ, WORDS, searched_words, seen
from supervisor_memory.stores.rank_locally import best_of

__all__ = ["Candidates", "requests_for"]

_MEANING: Final = "meaning"
_BY_WORDS: Final = "words"
_CROSSED: Final = "what was found by words, by meaning"
_LEAST_CANDIDATES: Final = 64
_SPARE: Final = 4
"""More by words than are wanted: the server weighs words by all users' records, we by the user's own."""


def requests_for(
    vector: Vector | None, words: Sequence[str], condition: models.Filter, limit: int
) -> dict[str, models.QueryRequest]:
    """The queries of one collection: by meaning, by words, and how those by words are meant."""
    requests: dict[str, models.QueryRequest] = {}
    many = max(_LEAST_CANDIDATES, _SPARE * limit)
    if vector is not None:
        requests[_MEANING] = _request(
            query=vector, using=DENSE, filter=condition, limit=limit, with_payload=READ
        )
    if words:
        asked = searched_words(words)
        requests[_BY_WORDS] = _request(
            query=asked, using=WORDS, filter=condition, limit=many, with_payload=READ
        )
        if vector is not None:
            requests[_CROSSED] = _request(
                prefetch=models.Prefetch(query=asked, using=WORDS, filter=condition, limit=many),
                query=vector,
                using=DENSE,
                limit=many,
                with_payload=False,
            )
    return requests


def _request(**values: Any) -> models.QueryRequest:
    # The client copies a request and makes lists of arrays: what is an array until then is copied at once,
    # a list number by number.
    return models.QueryRequest.model_construct(**values)


def _but_for_what_it_holds(where: Filter) -> Filter:
    return replace(where, tags=None, metadata=None)


class Candidates:
    """What the collections answered, each hit looked at again.

    Attributes:
        foreign: Ids of what should not have been answered.
        without: How many hits were of records without the tags or the metadata that is asked for, of which
            the server could not tell.
    """

    def __init__(self) -> None:
        self.foreign: list[str] = []
        self.without = 0
        self._records: dict[str, Record] = {}
        self._cosines: dict[str, float] = {}

    def add(self, way: str, points: Sequence[models.ScoredPoint], collection: str, query: Query) -> None:
        for point in points:
            key = str(point.id)
            if way != _CROSSED:
                record = seen(point, collection)
                if record is None or not query.where.matches(record):
                    if record is not None and _but_for_what_it_holds(query.where).matches(record):
                        self.without += 1
                    else:
                        self.foreign.append(key if record is None else record.id)
                    continue
                if not record.is_visible(query.now):
                    continue
                self._records[key] = record
            if way != _BY_WORDS:
                self._cosines[key] = float(np.clip(point.score, -1.0, 1.0))

    def hits(self, query: Query, limit: int) -> Hits:
        """The best of them."""
        cosines = {
            record.id: self._cosines[key] for key, record in self._records.items() if key in self._cosines
        }
        return best_of(self._records.values(), query, cosines=cosines, limit=limit)
