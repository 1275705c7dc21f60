"""Hold candidates for review: why a person should look first, and the proposal that waits meanwhile.

A statement about the user that an agent or a tool brought never counts by itself, whatever MEMORY_REVIEW
says: it is kept as `pending`, found by no search, merged with nothing. What somebody has rejected, and what
was quarantined, does not come back when others than the user say it again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from supervisor_memory.flow import Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import (
    FAMILIES,
    Candidate,
    Filter,
    Query,
    Record,
    SourceClass,
    Status,
    WriteStatus,
)
from supervisor_memory.ports import ReadStore
from supervisor_memory.redact.addresses import addresses
from supervisor_memory.settings import Settings
from supervisor_memory.understand.rejection import gives_orders
from supervisor_memory.understand.statements import sentences
from supervisor_memory.understand.subject import is_about_the_user

REVIEW: Final = "review"
"""The key in a proposal's metadata for its doubts and the change it asks for."""
ASKED_FOR: Final = "asked-for"
"""The doubt about a candidate with the strategy "review"."""
EVERY_CANDIDATE: Final = "every-candidate"
"""The doubt about what is held because MEMORY_REVIEW is "all"."""
TRUST: Final[Mapping[SourceClass, int]] = {"user": 2, "system": 2, "agent": 1, "tool": 0}
"""How far each source is trusted. A source never changes the words of a more trusted source."""
_LEAST_CONFIDENCE: Final = 0.5
_LONGEST_READ: Final = 8_000
_MOST_SENTENCES: Final = 200
_ABOUT_THE_USER: Final = frozenset({FAMILIES["user-profile"], FAMILIES["identity"]})
_SET_ASIDE: Final[tuple[Status, ...]] = ("pending", "quarantined", "deleted")
_EQUALS: Final = 50
_NAMED_IN: Final = 16  # records that are looked at for an address
_MOST_ADDRESSES: Final = 16  # that are looked up


def doubts(
    candidate: Candidate,
    new: Record,
    status: WriteStatus,
    changed: Collection[Record],
    settings: Settings,
    *,
    is_denied: Callable[[], bool],
    are_known: Callable[[Collection[str]], bool],
) -> tuple[str, ...]:
    """Why a person should decide on a candidate, as codes; empty: it may be remembered.

    Args:
        new: The candidate as a record.
        status: What was decided.
        changed: The records that would be changed by it.
        is_denied: Whether a record of the user says otherwise, of whatever kind; asked only where it counts.
        are_known: Whether the user has named all of some addresses; asked only of what waits anyway.
    """
    if status == "skipped":
        return ()
    by = candidate.source.source_class
    is_strange = by in ("agent", "tool")
    found = [ASKED_FOR] if candidate.strategy == REVIEW else []
    if is_strange and (candidate.kind in ("user-profile", "identity") or new.family in _ABOUT_THE_USER):
        found.append(f"about-the-user-by-{by}")
    if settings.review != "off":
        found += _risks(candidate, new, status, changed, is_denied=is_denied, is_held=bool(found))
    named = addresses(candidate.content) if is_strange and found else frozenset()
    if named and not are_known(named):
        found.append("unknown-address")
    if settings.review == "all" and not found:
        found.append(EVERY_CANDIDATE)
    return tuple(found)


def _risks(
    candidate: Candidate,
    new: Record,
    status: WriteStatus,
    changed: Collection[Record],
    *,
    is_denied: Callable[[], bool],
    is_held: bool,
) -> list[str]:
    """The reasons against a candidate besides whom it is about. Arguments as in `doubts`."""
    by = candidate.source.source_class
    is_strange = by in ("agent", "tool")
    found = []
    told = list(islice(sentences(candidate.content[:_LONGEST_READ]), _MOST_SENTENCES))
    if is_strange and not is_held and any(is_about_the_user(each, new.user_id) for each in told):
        found.append(f"about-the-user-by-{by}")
    is_changed = status == "updated" and any(record.source.source_class == "user" for record in changed)
    if is_changed or (is_strange and is_denied()):
        found.append("contradicts-the-user")
    if gives_orders(told, by_others=is_strange):
        found.append("instruction-like")
    if candidate.confidence < _LEAST_CONFIDENCE:
        found.append("low-confidence")
    return found


def are_known(named: Collection[str], said: Remembering, view: ReadStore) -> bool:
    """Whether the user has named all of these addresses; False, too, where there are too many to look up."""
    now = (addresses(each.content) for each in said.messages if each.role == "user")
    left = set(named).difference(*now)
    user = said.scope.user_id
    return len(left) <= _MOST_ADDRESSES and all(_is_in_records(each, user, view) for each in left)


def _is_in_records(address: str, user_id: str, view: ReadStore) -> bool:
    query = Query(address, Filter(user_id), terms(address), now=view.now)
    found = (hit.record for hit in view.search(query, limit=_NAMED_IN))
    return any(each.source.source_class == "user" and address in addresses(each.content) for each in found)


def proposed(record: Record, candidate: Candidate, why: Sequence[str]) -> Record:
    """The record as it waits for a reviewer: `pending`, and without a vector, so that nothing finds it."""
    asks: dict[str, Any] = {"why": list(why)}
    if candidate.evidence and candidate.evidence != candidate.content:
        asks["evidence"] = candidate.evidence[:_LONGEST_READ]
    for name in ("strategy", "event", "target"):
        told = getattr(candidate, name)
        if told is not None and told != REVIEW:
            asks[name] = told
    return replace(
        record,
        status="pending",
        subject=candidate.subject,
        attribute=candidate.attribute,
        metadata={**record.metadata, REVIEW: asks},
        vector=None,
        embedder=None,
    )


def without_review(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a proposal without the keys that belong to the review."""
    return {
        name: value
        for name, value in metadata.items()
        if name != REVIEW and (name, value) != ("strategy", REVIEW)
    }


def known_to_reviewers(new: Record, view: ReadStore) -> tuple[Record, str] | None:
    """The record with the same words that waits for or has had a person's decision, and the decision's code.

    The code of a rejection ends with the reviewer's login. None: there is no such record, or the user says
    now for the first time something that an agent or a tool had said.
    """
    where = replace(Filter.beside(new), statuses=_SET_ASIDE, content_hash=new.content_hash)
    for record in view.list(where, limit=_EQUALS):
        by_user = (new.source.source_class == "user", record.source.source_class == "user")
        if (code := _why_not(record)) and by_user != (True, False):
            return record, code
    return None


def _why_not(record: Record) -> str | None:
    if record.status == "pending":
        return "waits-for-review"
    if record.status == "quarantined":
        return "quarantined"
    told = record.metadata.get(REVIEW)
    if not isinstance(told, dict) or told.get("verdict") != "rejected":
        return None
    return f"rejected-before:{told['by']}" if isinstance(told.get("by"), str) else "rejected-before"
