"""Answer a question about relations from a user's records."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.model.records import Filter, Kind, Query, Record, is_id
from supervisor_memory.reading.relations.answer import Relations
from supervisor_memory.reading.relations.graph import Graph, Naming

if TYPE_CHECKING:
    from supervisor_memory.upkeep.edit import Curator

MOST_RECORDS: Final = 20_000
"""The newest records of a user that are read."""
_NAMED_APART: Final[tuple[Kind, ...]] = ("tool-effects", "task-traces")
"""Kinds of records with names beside their words: the tables of a query, the file of a result."""


def told_of(
    curator: "Curator", user_id: str, about: str, *, to: str | None, limit: int, offset: int
) -> Relations:
    """The relations of a thing, or of all things in a record, among a user's records.

    Args:
        about, to: Names, or ids of records.

    Raises:
        RecordNotFound: there is no record of such an id, or it is another user's.
        InvalidContent: a name is empty or too long.
        BackendError, DeadlineExceeded: the store failed.
    """
    where, ports = Filter(user_id=user_id), curator.reading()
    origin, goal = (
        curator.find(each, user_id, op="relations") if each and is_id(each) else None for each in (about, to)
    )
    find: Any = getattr(ports.services.backend, "naming", None)  # as `Names` has it

    def naming(names: Sequence[Sequence[str]], limit: int) -> Sequence[tuple[int, Sequence[Record]]]:
        ports = curator.reading()
        found: Sequence[tuple[int, Sequence[Record]]] = ports.store(
            find, names, Query("", where, now=ports.now), limit=limit
        )
        return found

    here = [each for each in (origin, goal) if each and where.matches(each) and each.is_visible(ports.now)]
    apart = where if find is None else replace(where, kinds=_NAMED_APART, layers=("abstract",))
    return around(
        chain(here, curator.every(apart)),
        about,
        to=to,
        limit=limit,
        offset=offset,
        naming=None if find is None else naming,
        origin=origin,
        goal=goal,
    )


def around(
    records: Iterable[Record],
    about: str,
    *,
    to: str | None,
    limit: int,
    offset: int,
    naming: Naming | None = None,
    origin: Record | None = None,
    goal: Record | None = None,
) -> Relations:
    """The relations of a thing, or of all things in a record.

    Args:
        records: Those of one user whose names are not all in their words, newest first; all records, where
            nothing finds them by name.
        about, to: Names, as "fct_orders" or, where several things have one, "table:orders"; or the ids
            of `origin` and `goal`.
        naming: Finds all other records.

    Raises:
        InvalidContent: a name is empty or too long.
    """
    read = list(islice(records, MOST_RECORDS + 1))
    graph = Graph(read[:MOST_RECORDS], naming)
    nodes = graph.nodes_of(about, origin)
    beside = graph.neighbours(nodes, within=origin)
    page = beside[offset : offset + limit]
    links = graph.links_of(nodes, within=origin)[:limit]
    upstream, downstream = graph.made_of(nodes, behind=True), graph.made_of(nodes, behind=False)
    path = graph.path(nodes, graph.nodes_of(to, goal)) if to is not None else []
    told = [origin.id] if origin else []
    told += [each.record_id for each in links] + [each.record_id for each in path]
    told += [id_ for each in page for id_ in each.record_ids]
    notes = [f"only the newest {MOST_RECORDS:,} records were read"] if len(read) > MOST_RECORDS else []
    notes += ["what is around it is named in more records than are read; the newest were"] * graph.is_cut
    return Relations(
        about=about,
        names=tuple(map(graph.thing, sorted(nodes))),
        links=tuple(links),
        neighbours=tuple(page),
        path=tuple(path),
        upstream=tuple(map(graph.thing, upstream)),
        downstream=tuple(map(graph.thing, downstream)),
        records={id_: graph.records[id_] for id_ in dict.fromkeys(told) if id_ in graph.records},
        next=offset + limit if offset + limit < len(beside) else None,
        notes=tuple(notes),
    )
