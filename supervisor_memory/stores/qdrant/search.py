"""The queries of a search to a collection, and the hits from the answers of all collections. Without I/O."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from qdrant_client import models

from supervisor_memory.model.records import Hits, Query, Record
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.qdrant.points import DENSE, READ, WORDS, searched_words, seen
from supervisor_memory.stores.rank_locally import best_of

_MEANING: Final = "meaning"
_BY_WORDS: Final = "words"
_CROSSED: Final = "what was found by words, by meaning"
_LEAST_CANDIDATES: Final = 64
_SPARE: Final = 4
"""How many times more hits by words to ask for: the server weighs words by the records of all users."""


def requests_for(
    vector: Vector | None, words: Sequence[str], condition: models.Filter, limit: int
) -> dict[str, models.QueryRequest]:
    """The queries to a collection: by meaning, by words, and for the cosines of the hits by words."""
    requests: dict[str, models.QueryRequest] = {}
    many = max(_LEAST_CANDIDATES, _SPARE * limit)
    read = {"filter": condition, "with_payload": READ}
    if vector is not None:
        requests[_MEANING] = _request(query=vector, using=DENSE, limit=limit, **read)
    if words:
        asked = searched_words(words)
        requests[_BY_WORDS] = _request(query=asked, using=WORDS, limit=many, **read)
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


class Candidates:
    """The answers of the collections, each hit checked again here.

    `foreign` are ids of hits that do not match the query; a sound server gives none. `without` counts hits
    that lack the tags or metadata asked for, which the server could not know.
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
                    if record is not None and replace(query.where, tags=None, metadata=None).matches(record):
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
        """The best candidates."""
        cosines = {
            record.id: self._cosines[key] for key, record in self._records.items() if key in self._cosines
        }
        return best_of(self._records.values(), query, cosines=cosines, limit=limit)
