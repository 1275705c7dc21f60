"""The proposals that match the inbox's filter, and the reasons against a proposal."""

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.records import KINDS, Filter, Kind, Record
from supervisor_memory.review.proposal import reasons

TOGETHER: Final = 200
"""Proposals that are decided together at most."""
_LOOKED_AT: Final = 2_000
IN_ADDRESS: Final = ("user", "why", "kind", "agent", "run")
_GRAVE: Final = (
    "instruction-like",
    "unknown-address",
    "contradicts-the-user",
    "unsure-who-said-it",
    "low-confidence",
)
"""Reasons that speak against a proposal, the gravest first."""
USUAL: Final = ("asked-for", "every-candidate", "about-the-user-by-agent", "about-the-user-by-tool")
"""Reasons that only say why a person is asked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The filter of the inbox; "" restricts nothing. `agent` and `run` are those of the source."""

    user: str
    reason: str
    kind: str
    agent: str
    run: str

    @classmethod
    def of(cls, visit: Visit) -> "Asked":
        """Read the filter from query parameters. Raises InvalidContent: there is no such kind."""
        kind = visit.asked("kind")
        if kind not in (*KINDS, ""):
            raise InvalidContent("there is no such kind")
        return cls(visit.user_id or "", visit.asked("why"), kind, visit.asked("agent"), visit.asked("run"))

    @property
    def where(self) -> Filter:
        """The filter of records, as far as it can tell."""
        kinds = (cast("Kind", self.kind),) if self.kind else None
        return Filter(self.user or None, kinds=kinds, statuses=("pending",), agent_id=self.agent or None)

    def means(self, record: Record) -> bool:
        """Whether a record matches, beyond what `where` can tell."""
        return (not self.reason or self.reason in reasons(record)) and self.run in ("", record.source.run_id)

    @property
    def is_narrow(self) -> bool:
        return bool(self.reason or self.kind or self.agent or self.run)

    def beyond(self, record: Record) -> tuple[str, ...]:
        """The reasons against a record besides the reason asked for, the gravest first."""
        return tuple(code for code in against(record) if code != self.reason)

    def like(self, record: Record) -> "Asked":
        """The filter of proposals with the same reason, kind and agent."""
        why = reasons(record)
        agent = record.source.agent_id or ""
        return replace(self, reason=why[0] if why else "", kind=record.kind, agent=agent, run="")

    @property
    def query(self) -> dict[str, str]:
        """The filter as query parameters."""
        values = (self.user, self.reason, self.kind, self.agent, self.run)
        return dict(zip(IN_ADDRESS, values, strict=True))


def against(record: Record) -> tuple[str, ...]:
    """Reasons that speak against a record, the gravest first."""
    return tuple(sorted((code for code in reasons(record) if code not in USUAL), key=gravity))


def gravest(record: Record) -> int:
    """The place of a record's gravest reason."""
    return min(map(gravity, against(record)), default=_LEAST_GRAVE)


_LEAST_GRAVE: Final = len(_GRAVE) + 1


def gravity(code: str) -> int:
    """The place of a reason among all, 0 the gravest."""
    if code in _GRAVE:
        return _GRAVE.index(code)
    return _LEAST_GRAVE if code in USUAL else len(_GRAVE)


def choices(visit: Visit, asked: Asked, found: list[Record]) -> dict[str, Any]:
    count = len(found) if asked.reason or asked.run else visit.memory.upkeep.count(asked.where)
    return {
        "asked": asked,
        "count": count,
        "kinds": KINDS,
        "reasons": sorted({code for record in found for code in reasons(record)} | {asked.reason} - {""}),
        "user_id": asked.user,
        "users": visit.users(),
    }


def waiting(visit: Visit, asked: Asked) -> list[Record]:
    """The newest proposals that match, some thousands at most."""
    now = visit.memory.upkeep.now()
    found = visit.memory.upkeep.listed(asked.where, limit=_LOOKED_AT)
    return [record for record in found if asked.means(record) and not record.has_expired(now)]
