"""Keep a conversation in segments: each is a record made from a run of exchanges."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Remembering, Upkeep
from supervisor_memory.model.records import AuditEvent, Filter, Namespace, Record, Wanted
from supervisor_memory.ports import Maintaining, ReadStore
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.signals.index import GAP_SECONDS
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stores.protocol import Change, Commit

SEGMENT: Final = "segment"
"""The tag of a segment, and of a segment alone."""
_MESSAGES: Final = 2  # of an exchange
_LONGEST: Final = 4_000  # characters of a message that a segment tells


def keep_segments(exchanges: int) -> Upkeep:
    """An operator: join each completed run of exchanges into a segment."""
    size = _MESSAGES * exchanges

    def kept(said: Remembering, view: Maintaining) -> Remembering:
        said_in = ((r.namespace, r.source.session_id) for r in said.verbatim if _is_said(r))
        made = [
            segment
            for namespace, session_id in dict.fromkeys(said_in)
            for run in _runs(_waiting(namespace, session_id, said, view, size=size), session_id, size)
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


def _runs(messages: Sequence[Record], session_id: str | None, size: int) -> Iterator[Sequence[Record]]:
    """Runs of so many messages; half an hour of silence ends a session without a name by a shorter one."""
    begun = 0
    for at, message in enumerate(messages):
        before = messages[at - 1].created_at if at else message.created_at
        if session_id is None and message.created_at - before > GAP_SECONDS and begun < at:
            yield messages[begun:at]
            begun = at
        if at + 1 - begun == size:
            yield messages[begun : at + 1]
            begun = at + 1


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
