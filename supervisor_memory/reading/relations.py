"""Relations in memory: the neighbours of a thing, the way between two, the lineage of a result.

Nothing is kept for it: the relations are read off the active records when somebody asks, so that they hold as
long as the records that say so. docs/relations.md has its page.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import ARTIFACT, Filter, Kind, Query, Record, is_id
from supervisor_memory.signals.walk import MOST_HOLDERS
from supervisor_memory.understand.entities import entities, key_of
from supervisor_memory.understand.lineage import lineage_of, tables_of
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.relations import SAME, pieces, relations

if TYPE_CHECKING:
    from supervisor_memory.upkeep.edit import Curator

MADE_FROM: Final = "made_from"
COMPUTED_FROM: Final = "computed_from"
COLUMN_OF: Final = "column_of"
LINEAGE: Final = frozenset({MADE_FROM, COMPUTED_FROM, COLUMN_OF, "reads_from", "filled_by"})
"""Relationships by which a thing comes from another: table – column – metric – file – report."""
MOST_RECORDS: Final = 20_000
"""The newest records of a user that are read."""
_BY_RELATION, _BY_RECORD = 2, 5
_FARTHEST: Final = 6 * _BY_RECORD
_MOST_READ: Final = 1_000  # records, for a way, and for each side of a lineage
_MOST_OF_A_NAME: Final = 500
_MOST_REACHED: Final = 1_000
_LONGEST_NAME: Final = 200
_BETWEEN_WORDS: Final = re.compile(r"[ _-]")
_KINDS: Final = ("table", "column", "metric", "file", "report")
_PREFIXED: Final = ("metric", "report")
_REPORTS: Final = ("png", "svg", "jpg", "jpeg", "pdf", "html", "htm", "md", "docx", "pptx", "ipynb")
_SHOWN_OF_A_TEXT: Final = 80

Node = str
"""The key of a thing's name; of metrics and reports, which may be called as a table, with the kind before."""


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


Naming = Callable[[Sequence[Sequence[str]], int], Sequence[tuple[int, Sequence[Record]]]]
"""Takes names, each by its terms, and a limit; gives how many records hold each, and the newest of them."""


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


_NAMED_APART: Final[tuple[Kind, ...]] = ("tool-effects", "task-traces")
"""Kinds of records with names beside their words: the tables of a query, the file of a result."""


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
    graph = _Graph(read[:MOST_RECORDS], naming)
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


_Edge = tuple[Node, str, Node, str]
"""From where, how, where to, and the id of the record that says so."""


class _Graph:
    """The things named in records: a record is read closely when a walk comes to it."""

    def __init__(self, records: Sequence[Record], naming: Naming | None) -> None:
        self.records = {each.id: each for each in records}
        self.is_cut = False
        self._naming = naming
        self._to_read = _MOST_READ
        self._pieces: dict[str, Sequence[str]] = {}
        self._holders: defaultdict[str, list[str]] = defaultdict(list)
        for each in self.records.values():
            for piece in dict.fromkeys(self._pieces_of(each)):
                self._holders[piece].append(each.id)
        self._things: dict[Node, Thing] = {}
        self._named: dict[str, dict[Node, None]] = {}
        self._links: defaultdict[Node, dict[_Edge, None]] = defaultdict(dict)
        self._found: dict[str, Sequence[str]] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[Node, Sequence[str]] = {}
        self._same: dict[Node, frozenset[Node]] = {}

    # --- read off records

    def _pieces_of(self, record: Record) -> Sequence[str]:
        if record.id not in self._pieces:
            self._pieces[record.id] = pieces(_readable(record))
        return self._pieces[record.id]

    def _read(self, id_: str) -> Collection[Node]:
        """Read the things that a record names, and add its relations to the graph."""
        if id_ in self._named:
            return self._named[id_]
        if self._to_read <= 0:
            self.is_cut = True
            return ()
        self._to_read -= 1
        record, named = self.records[id_], self._named.setdefault(id_, {})
        things, told = _in_words(record.content)
        found = list(things)
        for one, relationship, other in (*told, *_by_a_model(record), *_sources_of(record)):
            found += [one, other]
            if one[0] != other[0]:
                edge = one[0], relationship, other[0], id_
                self._links[one[0]][edge] = self._links[other[0]][edge] = None
        for node, thing in found:
            named[node] = None
            known = self._things.get(node)
            if known is None or _sureness(thing) > _sureness(known):
                self._things[node] = thing
        return named

    def _look_up(self, nodes: Iterable[Node], most: int = _MOST_OF_A_NAME) -> None:
        """Find the records that name some things, all at once; the newest `most` of each."""
        self._find({self._name(node) for node in nodes if node not in self._known}, most)

    def _find(self, names: Collection[str], most: int) -> None:
        fresh = sorted(names - self._found.keys())
        for name, (count, records) in zip(fresh, self._named_in(fresh, most), strict=True):
            self.records |= {each.id: each for each in records if each.id not in self.records}
            wanted = pieces(name)
            here = min((self._holders.get(piece, ()) for piece in wanted), key=len, default=())
            ids = dict.fromkeys([*here, *(each.id for each in records)])
            held = [id_ for id_ in ids if _holds(self._pieces_of(self.records[id_]), wanted)]
            self._found[name] = sorted(held, key=lambda id_: self.records[id_].place, reverse=True)
            self.is_cut = self.is_cut or (len(records) == most == _MOST_OF_A_NAME and count > most)

    def _named_in(self, names: Sequence[str], most: int) -> Sequence[tuple[int, Sequence[Record]]]:
        if self._naming is None or not names:
            return [(0, ())] * len(names)
        return self._naming([_sought(name) for name in names], most)

    def _count(self, nodes: Iterable[Node]) -> None:
        """Count the records that name some things, all at once."""
        names = sorted({self.thing(node).name for node in nodes} - self._counts.keys())
        for name, (count, _) in zip(names, self._named_in(names, 0), strict=True):
            here = min((len(self._holders.get(each, ())) for each in pieces(name)), default=0)
            self._counts[name] = max(count, here)

    def _name(self, node: Node) -> str:
        """The name to look a thing up by: of a column the last part, since queries have `f.arr_delay`."""
        thing = self._things.get(node)
        name = thing.name if thing else node
        return name.rsplit(".", 1)[-1] if thing and thing.kind == "column" else name

    def _records_naming(self, node: Node) -> Sequence[str]:
        """The ids of the records that name a thing, newest first, each of them read."""
        if node in self._known:
            return self._known[node]
        kind, _, id_ = node.partition(":")
        if kind == "report" and id_ in self.records:
            found: Sequence[str] = [id_]
        else:
            name = self._name(node)
            self._find({name}, _MOST_OF_A_NAME)
            found = self._found[name]
            if not found and "." in name and node not in self._things:
                self._find({last := name.rsplit(".", 1)[-1]}, _MOST_OF_A_NAME)
                found = self._found[last]
        for id_ in found:
            self._read(id_)
        for id_ in found:
            if node in self._things and id_ in self._named:
                self._named[id_].setdefault(node)
        self._known[node] = found
        return found

    def _edges(self, node: Node) -> Collection[_Edge]:
        self._records_naming(node)
        return [edge for edge in list(self._links.get(node, ())) if edge[1] != SAME or self._is_of_one(edge)]

    def _is_of_one(self, edge: _Edge) -> bool:
        """Whether a second name belongs to one thing alone; "(CFO)" behind two persons is a label.

        An agent's or tool's statement does not weaken an alias that a person told.
        """
        _, _, name, id_ = edge
        self._records_naming(name)
        bearers = {
            _BETWEEN_WORDS.sub(" ", source)
            for source, relationship, other, by in self._links[name]
            if (relationship, other) == (SAME, name)
            and self._is_told_by_a_person(by) >= self._is_told_by_a_person(id_)
        }
        return len(bearers) == 1

    def _is_told_by_a_person(self, id_: str) -> bool:
        return self.records[id_].source.source_class not in ("agent", "tool")

    def _all_names(self, node: Node) -> frozenset[Node]:
        """All names of a thing: its aliases and, for a word that names a single column, that column.

        An alias that an agent or a tool tells stays a relation: it joins nothing.
        """
        if node in self._same:
            return self._same[node]
        found, queue = {node}, [node]
        while queue:
            each = queue.pop()
            told = [edge for edge in self._edges(each) if edge[1] == SAME]
            edges = [edge for edge in told if self._is_told_by_a_person(edge[3])]
            others = {edge[0] if edge[2] == each else edge[2] for edge in edges} | self._column(each)
            others |= self._spelled_otherwise(each)
            queue += others - found
            found |= others
        same = frozenset(found)
        self._same |= dict.fromkeys(same, same)
        return same

    def _spelled_otherwise(self, node: Node) -> set[Node]:
        """The same words written as a name and as an identifier: Basket Health and basket_health."""
        words = _BETWEEN_WORDS.split(node)
        if len(words) == 1 or not all(words):
            return set()
        others = {mark.join(words) for mark in (" ", "_", "-")} - {node}
        self._look_up(others)
        return {other for other in others if self._records_naming(other) and other in self._things}

    def _column(self, node: Node) -> set[Node]:
        """The column that a definition names by its last part."""
        thing = self._things.get(node)
        if thing is None or thing.kind != "identifier" or "." in node:
            return set()
        named = {other for id_ in self._records_naming(node) for other in self._named.get(id_, ())}
        columns = {
            other for other in named if other.endswith(f".{node}") and self.thing(other).kind == "column"
        }
        return columns if len(columns) == 1 else set()

    # --- asked

    def thing(self, node: Node) -> Thing:
        return self._things[node]

    def nodes_of(self, about: str, record: Record | None) -> set[Node]:
        """The things with a name, aliases too, or all things in a record."""
        if record is not None:
            return set(self._read(record.id)) if record.id in self.records else set()
        if not about.strip() or len(about) > _LONGEST_NAME:
            raise InvalidContent(f"a name has 1 to {_LONGEST_NAME} characters; this one has {len(about)}")
        kind, mark, name = about.partition(":")
        is_told = bool(mark) and kind in _KINDS
        key = key_of(name if is_told else about)
        holders = self._records_naming(key)
        wanted = [key, f"metric:{key}"]
        if is_told and kind in _PREFIXED:
            wanted = [f"{kind}:{key}"]
            self._records_naming(wanted[0])
        found = [node for node in wanted if node in self._things]
        if is_told:
            found = [node for node in found if self._things[node].kind == kind]
        if not found and not is_told:
            found = sorted(self._spelled_otherwise(key))
        if (
            not found and holders and not is_told
        ):  # words that records hold, though nothing has the form of a name
            self._things[key] = Thing(about.strip())
            for id_ in holders:
                self._named[id_].setdefault(key)
            found = [key]
        return {each for node in found for each in self._all_names(node)}

    def links_of(self, nodes: Collection[Node], *, within: Record | None) -> list[Link]:
        """The relations of some things, or those in a record, newest first."""
        edges = dict.fromkeys(edge for node in sorted(nodes) for edge in self._edges(node))
        found = [edge for edge in edges if within is None or edge[3] == within.id]
        found.sort(key=lambda edge: self.records[edge[3]].place, reverse=True)
        return [
            Link(self.thing(one), relationship, self.thing(other), id_, _valid_since(self.records[id_]))
            for one, relationship, other, id_ in found
        ]

    def neighbours(self, nodes: Collection[Node], *, within: Record | None) -> list[Neighbour]:
        """The things beside some things, or all things in a record."""
        related: defaultdict[Node, dict[str, None]] = defaultdict(dict)
        said_by: defaultdict[Node, dict[str, None]] = defaultdict(dict)
        if within is not None:
            for node in nodes:
                said_by[node] |= dict.fromkeys(self._records_naming(node))
        for node in sorted(nodes) if within is None else ():
            for source, relationship, destination, id_ in self._edges(node):
                other = destination if source == node else source
                if other not in nodes:
                    related[other][relationship] = None
                    said_by[other][id_] = None
            for id_ in self._records_naming(node):
                for other in self._named.get(id_, ()):
                    if other not in nodes:
                        said_by[other][id_] = None
        self._count(said_by)
        order = sorted(
            said_by, key=lambda node: (node not in related, self._counts[self.thing(node).name], node)
        )
        return [
            Neighbour(self.thing(n), tuple(related[n]), tuple(said_by[n])[:_SHOWN_RECORDS]) for n in order
        ]

    def path(self, begin: Collection[Node], end: Collection[Node]) -> list[Step]:
        """The shortest path from some things to others, by relations and by records that name both.

        A relation counts as nearer. What many records name leads nowhere, but where the way begins or ends.
        It is looked for from both ends: of what is far from one of them little is read.
        """
        self._to_read = _MOST_READ
        ends, ways = {*begin, *end}, (_Frontier(begin), _Frontier(end))
        best, met = _FARTHEST + 1, None
        while all(way.reached for way in ways) and sum(min(way.reached) for way in ways) < best:
            way, other = sorted(ways, key=lambda each: len(each.reached[min(each.reached)]))
            far = min(way.reached)
            here = [node for node in way.reached.pop(far) if way.far[node] == far]
            self._count(here)
            here = [node for node in here if node in ends or not self._is_hub(node)]
            self._look_up(here, MOST_HOLDERS)
            touched = [n for node in here for n in way.go(node, far, self._onward(node))]
            for node in dict.fromkeys(n for n in (*here, *touched) if n in other.far):
                self._count([node])
                if way.far[node] + other.far[node] < best and (node in ends or not self._is_hub(node)):
                    best, met = way.far[node] + other.far[node], node
        if met is None:
            return []
        there = [(node, by, before) for node, by, before in ways[0].back(met)][::-1]
        steps = [(before, by, node) for node, by, before in there] + ways[1].back(met)
        return [
            Step(self.thing(one), relationship, self.thing(two), id_)
            for one, (relationship, id_), two in steps
        ]

    def _is_hub(self, node: Node) -> bool:
        return self._counts[self.thing(node).name] > MOST_HOLDERS

    def _onward(self, node: Node) -> Iterator[tuple[int, Node, str, str]]:
        for source, relationship, destination, id_ in self._edges(node):
            yield _BY_RELATION, destination if source == node else source, relationship, id_
        for id_ in self._records_naming(node):
            yield from ((_BY_RECORD, other, "", id_) for other in self._named.get(id_, ()) if other != node)

    def made_of(self, nodes: Collection[Node], *, behind: bool) -> list[Node]:
        """All sources of some things, or all results of them, over any number of steps, nearest first."""
        self._to_read = _MOST_READ
        found: dict[Node, None] = {}
        here = sorted(nodes)
        while here and len(found) < _MOST_REACHED:
            self._look_up(here)
            near: dict[Node, None] = {}
            for node in here:
                for source, relationship, destination, _ in list(self._edges(node)):
                    mine, other = (source, destination) if behind else (destination, source)
                    if relationship in LINEAGE and mine == node:
                        near[other] = None
            self._look_up(near)
            here = [
                each
                for node in near
                for each in sorted(self._all_names(node))
                if each not in found and each not in nodes
            ]
            found |= dict.fromkeys(here)
        return list(found)


class _Frontier:
    """The frontier of a path search from one end.

    Attributes:
        far: How far each thing is.
        reached: The things that are not gone on from yet, by how far they are.
    """

    def __init__(self, begin: Collection[Node]) -> None:
        self.far = dict.fromkeys(sorted(begin), 0)
        self.reached: dict[int, list[Node]] = {0: list(self.far)} if begin else {}
        self._came: dict[Node, tuple[Node, tuple[str, str]]] = {}

    def go(self, node: Node, far: int, onward: Iterable[tuple[int, Node, str, str]]) -> Iterator[Node]:
        """Expand a thing; yields things that are reached for the first time or by a shorter path."""
        for cost, other, relationship, id_ in onward:
            if far + cost < self.far.get(other, _FARTHEST + 1):
                self.far[other], self._came[other] = far + cost, (node, (relationship, id_))
                self.reached.setdefault(far + cost, []).append(other)
                yield other

    def back(self, node: Node) -> list[tuple[Node, tuple[str, str], Node]]:
        """The steps back to the start: from where, by which record, where to."""
        steps = []
        while node in self._came:
            before, by = self._came[node]
            steps.append((node, by, before))
            node = before
        return steps


def _readable(record: Record) -> str:
    """The text by which a record is looked up: its content, and the names in its metadata."""
    metadata = record.metadata
    texts = [metadata.get(name) for name in ("path", "sql", "csv_path", "chart_path", "query")]
    told = [record.searched_text, record.subject or "", *(each for each in texts if isinstance(each, str))]
    told += [name for _, name in record.rests_on]
    return "\n".join(told)


def _holds(text: Sequence[str], name: Sequence[str]) -> bool:
    """Whether a name stands in a text, word for word."""
    first, size = name[0], len(name)
    return any(piece == first and text[at : at + size] == name for at, piece in enumerate(text))


_SHOWN_RECORDS: Final = 10


def _sureness(thing: Thing) -> int:
    """How certain a kind of thing is; a kind read off the form of a name is the least certain."""
    return _KINDS.index(thing.kind) + 1 if thing.kind in _KINDS else 0


def _valid_since(record: Record) -> float:
    return record.created_at if record.valid_from is None else record.valid_from


_Told = tuple["_Node", str, "_Node"]


@lru_cache(maxsize=8_192)
def _in_words(content: str) -> tuple[Sequence["_Node"], Sequence[_Told]]:
    """The things that a text names, and the relations that it tells."""
    things = [(each.key, Thing(each.name, each.kind)) for each in entities(content)]
    known = dict(things)

    def place(name: str) -> _Node:
        key = key_of(name)
        return (key, Thing(name, known[key].kind)) if key in known else _place(name)

    told = [(place(each.source), each.relationship, place(each.destination)) for each in relations(content)]
    return things, told


def _by_a_model(record: Record) -> Iterator[_Told]:
    """The relations that a model has read in a record."""
    return ((_place(one), relationship, _place(two)) for one, relationship, two in record.relations)


def _place(name: str) -> tuple[Node, Thing]:
    named = [each for each in entities(name) if each.key == key_of(name)]
    return key_of(name), Thing(name, named[0].kind if named else "name")


def _sought(name: str) -> Sequence[str]:
    """The terms to look a name up by. The parts of `fct_orders` are left out, since more records have them,
    and so is a Chinese character at the edge, which a sentence joins with the next one."""
    every = terms(name)
    parts = {part for term in every if "_" in term for part in term.split("_")}
    return [term for term in every if term not in parts and (len(term) > 1 or not has_cjk(term))]


_Node = tuple[Node, Thing]


def _sources_of(record: Record) -> Iterator[tuple[_Node, str, _Node]]:
    """The sources of a file, a query, a conclusion or a definition."""
    metadata = record.metadata
    path, sql = metadata.get("path"), metadata.get("sql")
    if record.attribute == "definition" and record.subject:
        metric = _node_of("metric", record.subject)
        yield from ((metric, COMPUTED_FROM, _node_of("identifier", each)) for each in _codes(record))
    elif record.attribute == ARTIFACT and isinstance(path, str):
        made = _file(path)
        yield from ((made, MADE_FROM, _node_of(*each)) for each in record.rests_on)
        yield from _by_query(made, metadata.get("query"))
    elif record.attribute == ARTIFACT and isinstance(sql, str):
        yield from _by_query(None, sql)
        tables = tables_of(sql)
        for table in sorted(tables.written):
            made = _node_of("table", table)
            yield from ((made, MADE_FROM, _node_of("table", each)) for each in sorted(tables.read - {table}))
            for output in lineage_of(sql).outputs:
                column = _node_of("column", f"{table}.{output.name}")
                yield column, COLUMN_OF, made
                yield from (
                    (column, COMPUTED_FROM, _node_of("column", each)) for each in sorted(output.columns)
                )
    elif record.kind == "task-traces" and (record.rests_on or isinstance(sql, str)):
        report = f"report:{record.id}", Thing(record.content[:_SHOWN_OF_A_TEXT], "report", record.id)
        yield from ((report, MADE_FROM, _node_of(*each)) for each in record.rests_on)
        csv = metadata.get("csv_path")
        yield from _by_query(_file(csv) if isinstance(csv, str) and csv else report, sql)
        chart = metadata.get("chart_path")
        if isinstance(csv, str) and csv and isinstance(chart, str) and chart:
            yield _file(chart), MADE_FROM, _file(csv)


def _by_query(made: _Node | None, sql: object) -> Iterator[tuple[_Node, str, _Node]]:
    """The tables that a query reads, and the file made with it."""
    if not isinstance(sql, str) or not sql:
        return
    read, lineage = tables_of(sql).read, lineage_of(sql)
    for column in sorted(lineage.columns):
        table = column.rpartition(".")[0]
        yield _node_of("column", column), COLUMN_OF, _node_of("table", table)
        if made is not None:
            yield made, MADE_FROM, _node_of("column", column)
    for output in lineage.outputs:
        if not output.is_metric:
            continue
        metric = _node_of("metric", output.name)
        sources = [_node_of("column", each) for each in sorted(output.columns)] or [
            _node_of("table", e) for e in sorted(read)
        ]
        yield from ((metric, COMPUTED_FROM, each) for each in sources)
        if made is not None:
            yield made, MADE_FROM, metric
    if made is not None:
        yield from ((made, MADE_FROM, _node_of("table", each)) for each in sorted(read))


def _node_of(kind: str, name: str) -> _Node:
    if kind == "file":
        return _file(name)
    key = key_of(name)
    return f"metric:{key}" if kind == "metric" else key, Thing(name, kind)


def _file(path: str) -> _Node:
    ending = path.rsplit(".", 1)[-1].casefold()
    return key_of(path), Thing(path, "report" if ending in _REPORTS else "file")


def _codes(record: Record) -> Sequence[str]:
    """The columns that a definition names."""
    return sorted(
        each for each in identifiers(record.content) if each.isascii() and "_" in each and " " not in each
    )
