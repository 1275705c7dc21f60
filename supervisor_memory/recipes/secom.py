"""SeCom: a conversation is kept in segments, and a segment is found and told whole.

Paper: Pan et al., "On Memory Construction and Retrieval for Personalized Conversational Agents" (SeCom),
ICLR 2025.
Code: microsoft/SeCom@1738e56, secom/secom.py.
Follows: the code where its model fails to segment: runs of three exchanges; three segments are told.
Differs: a segment begins as soon as its session has enough messages, and a session's last few wait. Nothing
is compressed: LLMLingua-2 is a model of its own, and does without there is none. Facts are found beside the
segments. What a segment tells is not told again by itself.
Without a model: the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.flow import Reading, Recalling, Recipe, Remembering, Upkeep
from supervisor_memory.model.records import (
    AuditEvent,
    Filter,
    Namespace,
    Record,
    Wanted,
)
from supervisor_memory.ports import Maintaining, ReadStore
from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.published import Published, constant
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.post_retrieval.rerank import reranked
from supervisor_memory.stores.protocol import Change, Commit

SEGMENT: Final = "segment"
"""The tag of a segment, and of a segment alone."""
_MESSAGES: Final = 2  # of an exchange
_LONGEST: Final = 4_000  # characters of a message that a segment tells


@dataclass(frozen=True, slots=True)
class Constants:
    """The published constants."""

    exchanges: int = constant(3, "secom.py: segment, runs where the model fails", least=1, most=50)
    top_k: int = constant(3, "secom.py: retrieve_topk", least=1, most=1000)


def keep_segments(exchanges: int) -> Upkeep:
    """An operator: join each completed run of exchanges into a segment."""
    size = _MESSAGES * exchanges

    def kept(said: Remembering, view: Maintaining) -> Remembering:
        said_in = ((r.namespace, r.source.session_id) for r in said.verbatim if _is_said(r))
        made = [
            segment
            for namespace, session_id in dict.fromkeys(said_in)
            for run in _runs(_waiting(namespace, session_id, said, view, size=size), size)
            if (segment := _segment(run, view.now))
        ]
        if made:
            changes = with_vectors([Change(each) for each in made], view)
            rows = [AuditEvent.of("add", r, version_after=1, after=r.content, reason=SEGMENT) for r in made]
            view.commit(Commit(changes, tuple(rows)))
        return said

    return kept


def _waiting(
    namespace: Namespace, session_id: str | None, said: Remembering, view: ReadStore, *, size: int
) -> Sequence[Record]:
    """The messages of a conversation that are in no segment, in order of time.

    At most a run's length waits from before, and the newest segment says since when.
    """
    own = Filter(namespace[1], tasks=(namespace[2] if len(namespace) > 2 else None,))  # noqa: PLR2004
    told = replace(own, tags=(SEGMENT,), metadata=(Wanted.of("session", session_id),))
    last = next(iter(view.list(told, limit=1)), None)
    since = last.metadata.get("until") if last is not None else None
    where = replace(own, families=(namespace[0],), layers=("history",), session_id=session_id, since=since)
    found = view.list(where, limit=len(said.verbatim) + 2 * size)
    known = set(last.made_from) if last is not None else set[str]()
    waiting = (r for r in found if r.id not in known and _is_said(r))
    return sorted(waiting, key=lambda r: (r.created_at, r.id))


def _is_said(record: Record) -> bool:
    """Whether a record is a message of a conversation, and no text by itself."""
    is_of_one = record.source.session_id is not None or record.source.speaker is not None
    return record.layer == "history" and is_of_one


def _runs(messages: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    return (messages[at : at + size] for at in range(0, len(messages) - size + 1, size))


def _segment(run: Sequence[Record], now: float) -> Record:
    """A run as a record; of a long message its beginning."""
    lines = (f"{each.source.speaker or each.source.source_class}: {each.content[:_LONGEST]}" for each in run)
    session_id = run[-1].source.session_id
    return made_from(
        run,
        "\n".join(lines),
        tag=SEGMENT,
        now=now,
        session_id=session_id,
        session=session_id,
        until=run[-1].created_at,
    )


def without_parts(plan: Recalling, view: ReadStore) -> Recalling:
    """Drop hits that a segment among the hits tells."""
    told = {id for hit in plan.hits if SEGMENT in hit.record.tags for id in hit.record.made_from}
    return plan.keeping((hit for hit in plan.hits if hit.record.id not in told), others="already-said")


def secom(c: Constants) -> Recipe:
    """The recipe of these constants."""
    steps: tuple[Reading, ...] = (weigh("secom", by_meaning), without_parts, first(c.top_k))
    return replace(
        reranked(PLAIN, *steps),
        pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
        post_insert=(keep_segments(c.exchanges),),
    )


PUBLISHED: Final = Published(
    "secom", "conversations in segments of three exchanges, told whole", __doc__ or "", secom, Constants
)
