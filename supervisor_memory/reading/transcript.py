"""What was said, word for word: the messages of a session in order, and those around one of them."""

from collections.abc import Iterable, Sequence

from supervisor_memory.model.records import Record

__all__ = ["in_order", "said_around"]


def in_order(records: Iterable[Record]) -> list[Record]:
    """The verbatim ones among records of a session, as they were said."""
    return sorted((r for r in records if r.layer == "history"), key=lambda r: (r.created_at, r.id))


def said_around(record: Record, said: Sequence[Record], *, around: int) -> Sequence[Record]:
    """The message that a record was read from, with so many before and after; empty where it was not kept.

    Args:
        said: The messages of its session, in order. A message is its own.
    """
    known = [message.id for message in said]
    wanted = (record.id, record.ref_id, *_answered(record, said))
    places = (known.index(each) for each in wanted if each in known)
    place = next(places, None)
    return () if place is None else said[max(0, place - around) : place + around + 1]


def _answered(record: Record, said: Sequence[Record]) -> Iterable[str]:
    """What the record's source tells of its message, where it does not point to it."""
    message_id = record.source.message_id
    return (each.id for each in said if message_id is not None and each.source.message_id == message_id)
