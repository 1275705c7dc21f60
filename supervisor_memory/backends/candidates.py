"""What a search is asked, checked; and what it found, put together. The same for every backend."""

from collections.abc import Iterable, Mapping

from supervisor_memory.backends.changes import Vector, unit
from supervisor_memory.errors import MissingUser
from supervisor_memory.records import Hit, Hits, Query, Record

__all__ = ["as_hits", "searched_terms", "searched_user", "searched_vector"]

MOST_TERMS = 128


def searched_user(query: Query) -> str:
    """The user whose records are searched.

    Raises:
        MissingUser: the filter names none.
    """
    if query.where.user_id is None:
        raise MissingUser("a search names no user; set `user_id` in its filter")
    return query.where.user_id


def searched_terms(query: Query) -> tuple[str, ...]:
    """The distinct terms, the first 128 of them: a longer text finds nothing more by its tail."""
    return tuple(dict.fromkeys(term for term in query.terms if term))[:MOST_TERMS]


def searched_vector(query: Query) -> tuple[str, Vector] | None:
    """The embedder and the vector at unit length; None when the search is by words alone."""
    if query.vector is None or query.embedder is None:
        return None
    return query.embedder, unit(query.vector, what="the query vector")


def as_hits(
    by_meaning: Iterable[Record],
    by_words: Iterable[Record],
    *,
    cosines: Mapping[str, float],
    scores: Mapping[str, float],
) -> Hits:
    """Each record once, those found by meaning first, with the parts that are known of it."""
    records = {record.id: record for record in (*by_meaning, *by_words)}
    return Hits(tuple(Hit(record, parts=_parts(record.id, cosines, scores)) for record in records.values()))


def _parts(record_id: str, cosines: Mapping[str, float], scores: Mapping[str, float]) -> dict[str, float]:
    named = (("cosine", cosines), ("bm25", scores))
    return {name: values[record_id] for name, values in named if record_id in values}
