"""Write the query: what to look for, where, in words and as a vector."""

from dataclasses import replace

from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Hits, Query
from supervisor_memory.ports import NoStore
from supervisor_memory.stages.pre_retrieval.route import route
from supervisor_memory.text.terms import terms

__all__ = ["route_turn", "write_query"]

_QUERY_CHARACTERS = 8_000
"""A longer question is read to here; embedders stop far earlier, at 256 tokens."""


def route_turn(plan: Recalling, view: NoStore) -> Recalling:
    """Decide whether a note is wanted, and from which families. A search has been decided already."""
    turn = plan.turn
    if turn.purpose == "hits":
        return plan
    return replace(
        plan, route=route(turn.text, agent_id=turn.scope.agent_id, prefixes=view.settings.namespaces)
    )


def write_query(plan: Recalling, view: NoStore) -> Recalling:
    """The question in words and, where an embedder works, as a vector."""
    if not plan.route.should_read:
        return plan
    turn, text = plan.turn, _encodable(plan.turn.text[:_QUERY_CHARACTERS]).strip()
    vector = view.embed_query(text) if text else None
    embedder = view.embedder if vector is not None else None
    query = Query(
        text=text,
        terms=terms(text),
        vector=vector,
        embedder=embedder.fingerprint if embedder else None,
        unrelated=embedder.calibration.unrelated if embedder else 0.0,
        now=view.now,
        weights=view.settings.match_weights,
        where=replace(
            turn.where,
            user_id=turn.scope.user_id,
            families=turn.families or plan.route.families or None,
            tasks=turn.scope.tasks,
        ),
    )
    return replace(plan, query=query, hits=Hits(notes=_notes(len(turn.text))))


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no embedder takes."""
    return text.encode("utf-8", "replace").decode()


def _notes(characters: int) -> tuple[str, ...]:
    if characters <= _QUERY_CHARACTERS:
        return ()
    return (f"the question has {characters:,} characters; the first {_QUERY_CHARACTERS:,} were read",)
