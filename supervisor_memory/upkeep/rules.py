"""What is forgotten and what never: the rules by name, and what a record is worth. Pure functions of values.

docs/forgetting.md tells the same to users.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from supervisor_memory.model.records import Kind, Namespace, Record
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY, decay, importance, reads, recency

__all__ = [
    "BY_HAND",
    "BY_ITSELF",
    "KEPT_NEWEST",
    "MERGED_TOGETHER",
    "WITHIN_CAPACITY",
    "Extent",
    "Planned",
    "Rule",
    "can_be_merged",
    "is_kept",
    "is_worn_out",
    "worth",
]

Rule: TypeAlias = Literal["expired", "compressed-for-long", "compacted", "decayed", "over-capacity"]
"""In the order in which they are applied; the first that takes a record is the reason in the audit log.

`expired`: its time to live has passed. `compressed-for-long`: it was merged into a summary more than
MEMORY_COMPRESSED_DAYS ago. `compacted`: it is one of the oldest of too many of its kind. `decayed`: it is as
old as its kind ever gets, was never read and is of no importance. `over-capacity`: its namespace holds more
than MEMORY_CAPACITY, and others are worth more.
"""

KEPT_NEWEST: Final = 50
"""So many of a kind in a namespace are never merged into a summary."""
MERGED_TOGETHER: Final = 30
"""So many of the oldest are merged at once, into two summaries at most."""

_USUAL_IMPORTANCE: Final = 0.5
_CHARACTERS_A_TOKEN: Final = 2  # between Chinese and English
_OF_A_PROGRAM: Final = "store"  # metadata of what was put into memory.store() under a key


@dataclass(frozen=True, slots=True)
class Planned:
    """A record that a rule takes, as it was when that was decided. `why` has no content of it."""

    record_id: str
    user_id: str
    namespace: Namespace
    kind: Kind
    version: int
    rule: Rule
    why: str


@dataclass(frozen=True, slots=True)
class Extent:
    """How far one run goes.

    Args:
        rules: Those that are applied.
        most: Records that a rule takes at most of one user; None: all.
        settled_days: What was changed since is not merged into a summary.
        groups: How often the oldest of a kind are merged at most; None: until there are few enough.
        namespaces: Those that are held against MEMORY_CAPACITY; None: all.
        spare: How many places of each hundred a namespace that was over MEMORY_CAPACITY has free afterwards,
            so that the next record is not over it again.
    """

    rules: frozenset[Rule] = frozenset(
        {"expired", "compressed-for-long", "compacted", "decayed", "over-capacity"}
    )
    most: int | None = None
    settled_days: float = 0.0
    groups: int | None = None
    namespaces: frozenset[Namespace] | None = None
    spare: int = 0


BY_HAND: Final = Extent()
WITHIN_CAPACITY: Final = Extent(frozenset({"over-capacity"}), spare=10)
"""What else runs in the background, over each namespace to which more was added than had a place."""
BY_ITSELF: Final[Mapping[str, Extent]] = MappingProxyType(
    {
        "expired": Extent(frozenset({"expired", "compressed-for-long"}), most=500),
        "auto": Extent(
            frozenset({"expired", "compressed-for-long", "compacted"}), most=500, settled_days=30.0, groups=1
        ),
    }
)
"""What MEMORY_FORGET lets run in the background. Less than by hand: what nobody finds any more, and with
"auto" summaries of what has settled. A clock that jumps ahead costs 500 records at most, to be restored."""


def is_kept(record: Record) -> bool:
    """Whether only its own time to live ends it.

    So it is with who the user is and wants, what a word means, what is pinned, and what a program has put
    into `memory.store()` under a key, where it expects to find it.
    """
    return (
        record.kind in ("user-profile", "identity")
        or record.metadata.get("pinned") is True
        or (record.kind == "domain-facts" and record.subject is not None)
        or _OF_A_PROGRAM in record.metadata
    )


def can_be_merged(record: Record, *, most_tokens: int) -> bool:
    """Whether it may become a part of a summary.

    It is not kept, not verbatim, no summary itself, not too long to share one, and has no end of its own,
    which the summary would outlive.
    """
    return (
        record.layer == "abstract"
        and record.expires_at is None
        and len(record.content) <= _CHARACTERS_A_TOKEN * most_tokens
        and not is_kept(record)
    )


def is_worn_out(record: Record, *, now: float, settings: Settings, times_read: int) -> bool:
    """Whether its recency has fallen to MEMORY_DECAY_FLOOR, nobody read it, and it is of no importance.

    A kind whose λ is 0 never gets there.
    """
    age_days = (now - record.updated_at) / SECONDS_A_DAY
    is_old = decay(age_days, rate=settings.decay_of(record.kind)) <= settings.decay_floor
    return is_old and not times_read and importance(record) <= _USUAL_IMPORTANCE and not is_kept(record)


def worth(record: Record, *, now: float, settings: Settings, times_read: int) -> float:
    """What a record is worth keeping for, in [0, 1]: `0.4·importance + 0.3·reads + 0.3·recency`.

    `importance` is 0.5 unless somebody said otherwise, `reads` is 0.5 for one that was handed out five times,
    `recency` falls with age at the λ of its kind. Relevance, which orders hits, has no part: nobody asks.

    Source: importance and recency as in Generative Agents (Park et al. 2023, arXiv 2304.03442), with how
    often it was read instead of relevance; the weights are those of SAGE's hybrid forgetting.
    """
    recent = recency(record, now, settings)
    return 0.4 * importance(record) + 0.3 * reads(times_read) + 0.3 * recent
