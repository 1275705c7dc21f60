"""What one collection is asked in a search, and what the answers of all of them come to. Without I/O."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from qdrant_client import models

from supervisor_memory.backends.candidates import as_hits
from supervisor_memory.backends.changes import Vector, copied
from supervisor_memory.backends.postings import idf, score
from supervisor_memory.backends.qdrant_server.points import DENSE, READ, WORDS, searched_words, seen
from supervisor_memory.records import Filter, Hits, Query, Record
from supervisor_memory.terms import terms

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
        self._meant: set[str] = set()
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
            if way == _MEANING:
                self._meant.add(key)
            if way != _BY_WORDS:
                self._cosines[key] = float(np.clip(point.score, -1.0, 1.0))

    def hits(self, asked: Sequence[str], limit: int) -> Hits:
        scores = self._scores(asked)
        meant = sorted(self._meant, key=lambda key: (-self._cosines[key], key))[:limit]
        worded = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
        handed_out = {key: copied(self._records[key]) for key in {*meant, *worded}}
        return as_hits(
            [handed_out[key] for key in meant],
            [handed_out[key] for key in worded],
            cosines={self._records[key].id: c for key, c in self._cosines.items() if key in self._records},
            scores={self._records[key].id: value for key, value in scores.items()},
        )

    def _scores(self, asked: Sequence[str]) -> dict[str, float]:
        """BM25 of the candidates that share a term, with statistics of the candidates alone."""
        held = {key: terms(record.searched_text) for key, record in self._records.items()}
        counts = Counter(term for words in held.values() for term in set(words))
        worth = {term: idf(len(held), counts[term]) for term in asked if counts[term]}
        if not worth:
            return {}
        average = sum(map(len, held.values())) / len(held)
        scores = {key: score(words, worth, average_length=average) for key, words in held.items()}
        return {key: value for key, value in scores.items() if value > 0}
