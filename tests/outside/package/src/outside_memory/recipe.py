"""A recipe whose judge lets the latest statement win, and which adds the newest record to what is found."""

from dataclasses import dataclass, replace

from outside_memory.store import Tallies
from supervisor_memory.flow import Recalling
from supervisor_memory.model.decisions import Add, Decision, Replace, Rivals
from supervisor_memory.model.records import Candidate, Filter, Hit
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.place import deciding


@dataclass(frozen=True)
class Length:
    """How many words the question has."""

    words: int


def measure(plan: Recalling, view: NoStore) -> Recalling:
    return plan.with_fact(Length(len(plan.turn.text.split())))


def add_newest(plan: Recalling, view: ReadStore) -> Recalling:
    """Add the newest record to what a longer question found."""
    length = plan.fact(Length)
    if length is None or length.words < 3 or plan.query is None:
        return plan
    found = {hit.record.id for hit in plan.hits}
    where = Filter(user_id=plan.turn.scope.user_id, tasks=plan.turn.scope.tasks)
    newest = [Hit(record, found="newest") for record in view.list(where, limit=1) if record.id not in found]
    return replace(plan, hits=replace(plan.hits, items=(*plan.hits, *newest)))


def latest_wins(candidate: Candidate, rivals: Rivals, view: ReadStore) -> Decision:
    """Replace the nearest record that begins with the same two words."""
    begin = candidate.content.split()[:2]
    same = (rival.record for rival in rivals if rival.record.content.split()[:2] == begin)
    known = next(same, None)
    return Add() if known is None else Replace(known, "latest-wins")


OUTSIDE = replace(
    DEFAULT,
    name="outside",
    pre_retrieval=(measure, *DEFAULT.pre_retrieval),
    retrieval=(*DEFAULT.retrieval, add_newest),
    insert=(deciding(judge=latest_wins),),
    needs=(Tallies,),
)
