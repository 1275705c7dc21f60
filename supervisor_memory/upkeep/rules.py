"""The rules of forgetting: their names, the records they never take, and a record's worth. Pure.

docs/forgetting.md explains them to users.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from supervisor_memory.model.records import Kind, Namespace, Record
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.rank import SECONDS_A_DAY, decay, importance, reads, recency

Rule: TypeAlias = Literal["expired", "compressed-for-long", "compacted", "decayed", "over-capacity"]
"""The rules in the order of application; the first that takes a record is the reason in the audit log.

`expired`: its time to live has passed. `compressed-for-long`: it was merged into a summary more than
MEMORY_COMPRESSED_DAYS ago. `compacted`: it is one of the oldest of too many of its kind. `decayed`: its
recency is at its minimum, it was never read and is of no importance. `over-capacity`: its namespace has more
than MEMORY_CAPACITY records, and the others are worth more.
"""

KEPT_NEWEST: Final = 50
"""The newest records of a kind in a namespace that are never merged into a summary."""
MERGED_TOGETHER: Final = 30
"""The number of oldest records merged at once, into two summaries at most."""

_USUAL_IMPORTANCE: Final = 0.5
_CHARACTERS_A_TOKEN: Final = 2  # between Chinese and English
_OF_A_PROGRAM: Final = "store"  # the metadata key of records put into memory.store()


@dataclass(frozen=True, slots=True)
class Planned:
    """A record that a rule plans to take, in its version at the time. `why` has none of its content."""

    record_id: str
    user_id: str
    namespace: Namespace
    kind: Kind
    version: int
    rule: Rule
    why: str


@dataclass(frozen=True, slots=True)
class Extent:
    """The limits of a run.

    Args:
        rules: The rules to apply.
        most: The most records of a user that a rule takes; None: all.
        settled_days: Records changed within so many days are not merged into a summary.
        groups: The most groups of a kind to merge; None: until there are few enough records.
        namespaces: The namespaces to check against MEMORY_CAPACITY; None: all.
        spare: The percentage of MEMORY_CAPACITY to free in a namespace that was over it, so that the next
            record is not over it again.
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
"""The background run for namespaces that may be over their capacity."""
BY_ITSELF: Final[Mapping[str, Extent]] = MappingProxyType(
    {
        "expired": Extent(frozenset({"expired", "compressed-for-long"}), most=500),
        "auto": Extent(
            frozenset({"expired", "compressed-for-long", "compacted"}), most=500, settled_days=30.0, groups=1
        ),
    }
)
"""Value of MEMORY_FORGET → the hourly background run. It does less than a run by hand: it takes records
that no search finds any more and, with "auto", merges settled ones. A clock that jumps ahead costs at most
500 records, which can be restored."""


def is_kept(record: Record) -> bool:
    """Whether a record is never forgotten, except by its own time to live.

    True for profiles and identities of users, definitions, pinned records, and items that a program put into
    `memory.store()` under a key, where it expects to find them.
    """
    return (
        record.kind in ("user-profile", "identity")
        or record.metadata.get("pinned") is True
        or (record.kind == "domain-facts" and record.subject is not None)
        or _OF_A_PROGRAM in record.metadata
    )


def can_be_merged(record: Record, *, most_tokens: int) -> bool:
    """Whether a record may be merged into a summary.

    It may unless it `is_kept`, is verbatim or a summary itself, is too long to share a summary, or has a time
    to live, which the summary would outlast.
    """
    return (
        record.layer == "abstract"
        and record.expires_at is None
        and len(record.content) <= _CHARACTERS_A_TOKEN * most_tokens
        and not is_kept(record)
    )


def is_worn_out(record: Record, *, now: float, settings: Settings, times_read: int) -> bool:
    """Whether a record's recency is down to MEMORY_DECAY_FLOOR, it was never read, and it is unimportant.

    Records of a kind with λ = 0 never wear out.
    """
    age_days = (now - record.updated_at) / SECONDS_A_DAY
    is_old = decay(age_days, rate=settings.decay_of(record.kind)) <= settings.decay_floor
    return is_old and not times_read and importance(record) <= _USUAL_IMPORTANCE and not is_kept(record)


def worth(record: Record, *, now: float, settings: Settings, times_read: int) -> float:
    """The worth of keeping a record, in [0, 1]: `0.4·importance + 0.3·reads + 0.3·recency`.

    `importance` is 0.5 by default, `reads` is 0.5 for a record that was handed out five times, `recency`
    falls with age at the λ of its kind. Relevance has no part, since there is no question.

    Source: importance and recency as in Generative Agents (Park et al. 2023, arXiv 2304.03442), with the
    number of reads instead of relevance; the weights are from SAGE's hybrid forgetting.
    """
    recent = recency(record, now, settings)
    return 0.4 * importance(record) + 0.3 * reads(times_read) + 0.3 * recent
