"""Records that are made from others: a digest, a segment, a reflection. They go where one of these does."""

from collections.abc import Sequence
from typing import Any

from supervisor_memory.model.records import FAMILIES, MADE_FROM, Layer, Record, Scope, Source, new_id


def made_from(
    sources: Sequence[Record],
    content: str,
    *,
    tag: str,
    now: float,
    layer: Layer = "summary",
    created_at: float | None = None,
    session_id: str | None = None,
    **metadata: Any,
) -> Record:
    """A record beside those it was made from, of their user and task, as important as the most important.

    It counts as an agent's words, so that the user's own stay as they are.

    Args:
        tag: What it is, such as "digest".
        created_at: Of what it tells; None: of the last of its sources.
        metadata: What else is kept with it.
    """
    first = sources[0]
    said = max(record.created_at for record in sources) if created_at is None else created_at
    return Record(
        id=new_id(),
        namespace=Scope(first.user_id, task=first.task).namespace(FAMILIES["experience"]),
        content=content,
        kind="experience",
        layer=layer,
        created_at=said,
        updated_at=now,
        valid_from=now,
        tags=(tag,),
        metadata={MADE_FROM: [record.id for record in sources], **metadata},
        importance=max(record.importance for record in sources),
        source=Source("agent", session_id=session_id),
    )
