"""Running totals by agent and day, which are added to as the log is written.

They only rise, from the day the table was made. They hold names of agents and numbers, nothing of a user:
what a person may have asked or missed is counted under no name.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from supervisor_memory.disk.database import select

if TYPE_CHECKING:
    import apsw

    from supervisor_memory.model.records import AuditEvent

Tally: TypeAlias = tuple[str, str]
"""An agent, "" for the supervisor and for people, and what is counted."""

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS tallies_by_day(
        day INTEGER NOT NULL, agent TEXT NOT NULL, name TEXT NOT NULL, amount REAL NOT NULL,
        PRIMARY KEY(day, agent, name)) WITHOUT ROWID""",
)
_ADD: Final = """INSERT INTO tallies_by_day VALUES (?, ?, ?, ?)
    ON CONFLICT(day, agent, name) DO UPDATE SET amount = amount + excluded.amount"""
A_DAY: Final = 86_400
KEPT: Final = "kept:"
"""The beginning of the names that count new records by kind; these have no total over all days."""
_IN_ALL: Final = f"""SELECT agent, name, sum(amount) FROM tallies_by_day
    WHERE substr(name, 1, {len(KEPT)}) <> '{KEPT}' GROUP BY agent, name"""
_DECISIONS: Final = frozenset({"add", "merge", "update", "append", "propose", "skip"})
_APPROVALS: Final = frozenset({"approve", "edit"})
COUNTED: Final = _DECISIONS | _APPROVALS | {"reject"}
"""The operations whose rows can add something, besides those that went on without a part of memory."""
NOTE: Final = "inject"
"""The operation of a note that was put before a model."""


def add(connection: "apsw.Connection", tallies: Mapping[Tally, float], *, at: float) -> None:
    """Add to the totals of a day (UTC), inside a transaction; `at` is any moment of that day."""
    day = int(at // A_DAY)
    connection.executemany(_ADD, [(day, *tally, amount) for tally, amount in sorted(tallies.items())])


def by_day(connection: "apsw.Connection", *, since: float) -> dict[tuple[int, str, str], float]:
    """The totals of each day (UTC, days since 1970) from the day of `since` on, by agent and name."""
    sql = "SELECT day, agent, name, amount FROM tallies_by_day WHERE day >= ?"
    rows = select(connection, "tallies_by_day", sql, int(since // A_DAY))
    return {(int(day), str(agent), str(name)): float(amount) for day, agent, name, amount in rows}


def all_of(connection: "apsw.Connection") -> dict[Tally, float]:
    """All totals, over all days."""
    rows = select(connection, "tallies_by_day", _IN_ALL)
    return {(str(agent), str(name)): float(amount) for agent, name, amount in rows}


def add_up(tallied: dict[Tally, float], agent: str | None, amounts: Mapping[str, float]) -> None:
    """Add an agent's amounts to the given totals; amounts of 0 are left out."""
    for name, amount in amounts.items():
        if amount:
            tally = agent or "", name
            tallied[tally] = tallied.get(tally, 0) + amount


def of_events(events: "Iterable[AuditEvent]") -> dict[Tally, float]:
    """The amounts that events add to the totals."""
    found: dict[Tally, float] = {}
    for event in events:
        counted = of_event(
            event.op,
            outcome=event.outcome,
            actor=event.actor,
            reason=event.reason,
            is_of_a_record=event.record_id is not None,
            has_layer="layer" in event.detail,
        )
        if event.op == "add" and event.outcome == "ok" and "layer" in event.detail:
            counted = {**counted, f"{KEPT}{event.detail.get('kind', '')}": 1}
        add_up(found, None if event.outcome == "degraded" else event.agent_id, counted)
    return found


def of_event(
    op: str, *, outcome: str, actor: str, reason: str, is_of_a_record: bool, has_layer: bool
) -> dict[str, int]:
    """The amounts that a row of the audit log adds to the totals.

    A write is a decision on something that was compared with what there is: a row with a layer, by nobody
    but the supervisor (a reviewer's decision is counted as such), of a record (what was not worth keeping is
    of none), and not of a text that is kept verbatim.
    """
    if outcome == "degraded":
        return {"failures": 1}
    if op in _APPROVALS:
        return {"approved": 1}
    if op == "reject":
        return {"rejected": 1}
    if op not in _DECISIONS or not is_of_a_record or not has_layer:
        return {}
    if actor != "supervisor" or reason == "verbatim":
        return {}
    return {"writes": 1, "duplicates": int(op in ("skip", "merge")), "proposed": int(op == "propose")}


def of_note(op: str, *, shown: int, tokens: int | None, degraded: bool) -> dict[str, int]:
    """The amounts that a note or a search adds to the totals."""
    what, hits = ("notes", "hits") if op == NOTE else ("searches", "search_hits")
    return {
        what: 1,
        hits: int(shown > 0),
        "tokens": tokens or 0,
        "shown": shown,
        "degraded": int(degraded),
    }
