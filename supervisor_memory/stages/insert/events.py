"""One decision a memory: what a model, or several statements at once, ask for is put in order.

A model that decides on memories by itself may ask for a change and a deletion of the same one, name one that
is not there, or add a fact twice. The strongest request of each id stands: DELETE, UPDATE, ADD, NONE; equal
texts are added once; what changes or deletes a memory without a valid id is dropped.
"""

from collections.abc import Collection, Iterable

from supervisor_memory.model.records import Candidate, content_hash

__all__ = ["normalised"]

_STRENGTH = {"DELETE": 3, "UPDATE": 2, "ADD": 1, "NONE": 0}


def normalised(asked: Iterable[Candidate], *, known: Collection[str]) -> tuple[Candidate, ...]:
    """What is left of the requests, in order. One that names no id passes, unless its text is added twice.

    Args:
        known: The ids that there are; no other can be changed or deleted.

    Source: TinyMem0's `normalize_events`.
    """
    kept: dict[tuple[str, str], Candidate] = {}
    for nth, candidate in enumerate(asked):
        key = _key(candidate, nth, known)
        if key is not None and (key not in kept or _strength(candidate) > _strength(kept[key])):
            kept[key] = candidate
    return tuple(kept.values())


def _key(candidate: Candidate, nth: int, known: Collection[str]) -> tuple[str, str] | None:
    if candidate.event == "ADD":
        return "text", content_hash(candidate.content)
    if candidate.target is None:
        return "any", str(nth)
    return ("id", candidate.target) if candidate.target in known else None


def _strength(candidate: Candidate) -> int:
    return _STRENGTH[candidate.event or "NONE"]
