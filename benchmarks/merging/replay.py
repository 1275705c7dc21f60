"""Write the lines of a set through the public API, and read off what became of each."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from supervisor_memory import SupervisorMemory

from .lines import Decision, Line

__all__ = ["contradictions", "replay"]

FIRST_DAY = 1_700_000_000.0
SECONDS_A_DAY = 86_400


def replay(lines: Iterable[Line], memory: SupervisorMemory) -> list[Decision]:
    """One decision a line, in order. A stream is a user."""
    decisions: list[Decision] = []
    for stream, of_stream in groupby(lines, key=lambda line: line.stream):
        held: dict[str, str] = {}  # record → the latest line that went into it
        for nth, line in enumerate(of_stream):
            result = memory.write(
                line.content,
                user_id=stream,
                kind=line.kind,
                created_at=FIRST_DAY + line.day * SECONDS_A_DAY + nth,
            )
            into = held.get(result.id)
            decisions.append(Decision(line.id, result.status, into, result.reason))
            held[result.id] = line.id
    return decisions


def contradictions(
    lines: Iterable[Line], decisions: Iterable[Decision], slots: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Pairs of lines about one thing, the later a new value, that two active records state in the end."""
    home: dict[str, str] = {}
    for each in decisions:
        home[each.id] = home[each.into] if each.into is not None else each.id
    current: dict[str, str] = {}
    found = []
    for line in lines:
        slot = slots[line.id]
        if line.relation == "conflict" and slot in current and home[line.id] != home[current[slot]]:
            found.append((current[slot], line.id))
        if line.relation in ("conflict", "new", "unrelated"):
            current[slot] = line.id
    return found
