"""What a search is asked, checked. The same for every backend."""

from supervisor_memory.errors import MissingUser
from supervisor_memory.model.records import Query
from supervisor_memory.stores.changes import Vector, unit

__all__ = ["searched_terms", "searched_user", "searched_vector"]

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
    if not query.terms:
        return ()
    return tuple(dict.fromkeys(term for term in query.terms if term))[:MOST_TERMS]


def searched_vector(query: Query) -> tuple[str, Vector] | None:
    """The embedder and the vector at unit length; None when the search is by words alone."""
    if query.vector is None or query.embedder is None:
        return None
    return query.embedder, unit(query.vector, what="the query vector")
