"""The answer to a question about relations: things, their links and neighbours, a path, a lineage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from supervisor_memory.model.records import Record


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing that records name.

    Args:
        kind: By its form or its place, such as "person", "table", "metric"; "name" where neither tells.
        record_id: Of a conclusion, the record that is the thing.
    """

    name: str
    kind: str = "name"
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A relation, and the record that says so; it holds as long as that record.

    Args:
        since: When the record became valid, in seconds since 1970.
    """

    source: Thing
    relationship: str
    destination: Thing
    record_id: str
    since: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A thing beside another.

    Args:
        relationships: Between the two, in either direction; none where records only name both.
        record_ids: The records that name both, or say how they are related, newest first.
    """

    thing: Thing
    relationships: tuple[str, ...]
    record_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a path: a record joins two things.

    Args:
        relationship: Between the two, if the record tells one; "": it names both.
    """

    source: Thing
    relationship: str
    destination: Thing
    record_id: str


@dataclass(frozen=True, slots=True)
class Relations:
    """The neighbours and the lineage of a thing or a record, and the path to another.

    Args:
        about: As it was asked for.
        names: All names of the thing, its aliases too; empty where no record names it.
        links: The relations it stands in, those of the newest records first.
        neighbours: A page of the things beside it: related ones first, then those that few records name.
        path: The shortest way to the other one; empty where there is none, or none was asked for.
        upstream, downstream: What it is made from, and what is made from it, over any number of steps.
        records: Those that say all this, by id.
        next: Where the next page of neighbours begins; None: there is none.
        notes: What was left out.
    """

    about: str
    names: tuple[Thing, ...] = ()
    links: tuple[Link, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    path: tuple[Step, ...] = ()
    upstream: tuple[Thing, ...] = ()
    downstream: tuple[Thing, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    next: int | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; of records the text, and when it was said."""
        told = {
            name: [asdict(each) for each in getattr(self, name)]
            for name in ("names", "links", "neighbours", "path", "upstream", "downstream")
        }
        records = [
            {"id": each.id, "content": each.content, "kind": each.kind, "created_at": each.created_at}
            for each in self.records.values()
        ]
        return {"about": self.about, **told, "records": records, "next": self.next, "notes": list(self.notes)}
