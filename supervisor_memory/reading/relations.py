"""Relations in memory: the neighbours of a thing, the way between two, the lineage of a result.

Nothing is kept for it: the relations are read off the active records when somebody asks, so that they hold as
long as the records that say so. docs/relations.md has its page.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import ARTIFACT, RELATIONS, Record
from supervisor_memory.signals.walk import MOST_HOLDERS
from supervisor_memory.understand.entities import entities, key_of
from supervisor_memory.understand.lineage import lineage_of
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.relations import SAME, Relation, pieces, relations
from supervisor_memory.understand.sql import tables_of

MADE_FROM: Final = "made_from"
COMPUTED_FROM: Final = "computed_from"
COLUMN_OF: Final = "column_of"
LINEAGE: Final = frozenset({MADE_FROM, COMPUTED_FROM, COLUMN_OF, "reads_from", "filled_by"})
"""Relationships by which a thing comes from another: table – column – metric – file – report."""
MOST_RECORDS: Final = 20_000
"""The newest records of a user that are read."""
_BY_RELATION, _BY_RECORD = 2, 5
_FARTHEST: Final = 6 * _BY_RECORD
_MOST_PARSED: Final = 4_000
_MOST_REACHED: Final = 1_000
_LONGEST_NAME: Final = 200
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
    """A step of a way: a record joins two things.

    Args:
        relationship: Between the two, if the record tells one; "": it names both.
    """

    source: Thing
    relationship: str
    destination: Thing
    record_id: str


@dataclass(frozen=True, slots=True)
class Relations:
    """What is around a thing or a record, and the way to another.

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


def around(
    records: Iterable[Record],
    about: str,
    *,
    to: str | None,
    limit: int,
    offset: int,
    origin: Record | None = None,
    goal: Record | None = None,
) -> Relations:
    """The relations of a thing, or of all things in a record.

    Args:
        records: All of one user, newest first.
        about, to: Names, as "fct_orders" or, where several things have one, "table:orders"; or the ids
            of `origin` and `goal`.

    Raises:
        InvalidContent: a name is empty or too long.
    """
    read = list(islice(records, MOST_RECORDS + 1))
    graph = _Graph(read[:MOST_RECORDS])
    nodes = graph.nodes_of(about, origin)
    beside = graph.neighbours(nodes, within=origin)
    page = beside[offset : offset + limit]
    links = graph.links_of(nodes, within=origin)[:limit]
    path = graph.path(nodes, graph.nodes_of(to, goal)) if to is not None else []
    upstream, downstream = graph.made_of(nodes, behind=True), graph.made_of(nodes, behind=False)
    told = [origin.id] if origin else []
    told += [each.record_id for each in links] + [each.record_id for each in path]
    told += [id_ for each in page for id_ in each.record_ids]
    notes = [f"only the newest {MOST_RECORDS:,} records were read"] if len(read) > MOST_RECORDS else []
    notes += [f"more than {_MOST_PARSED:,} records name what is around it; some were left out"] * graph.is_cut
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
    """The things named in records. Words are looked up in all of them; a record is read closely when a walk
    comes to it."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = {each.id: each for each in records}
        self.is_cut = False
        self._order = {id_: place for place, id_ in enumerate(self.records)}
        self._pieces = {each.id: pieces(_readable(each)) for each in records}
        self._holders: defaultdict[str, list[str]] = defaultdict(list)
        for id_, text in self._pieces.items():
            for piece in dict.fromkeys(text):
                self._holders[piece].append(id_)
        self._things: dict[Node, Thing] = {}
        self._named: dict[str, dict[Node, None]] = {}
        self._links: defaultdict[Node, dict[_Edge, None]] = defaultdict(dict)
        self._known: dict[Node, Sequence[str]] = {}
        self._same: dict[Node, frozenset[Node]] = {}

    # --- read off records

    def _read(self, id_: str) -> Collection[Node]:
        """The things that a record names, with its relations taken in."""
        if id_ in self._named:
            return self._named[id_]
        if len(self._named) >= _MOST_PARSED:
            self.is_cut = True
            return ()
        record, named = self.records[id_], self._named.setdefault(id_, {})
        found = [(key_of(each.name), Thing(each.name, each.kind)) for each in entities(record.content)]
        told = [(_place(each.source), each.relationship, _place(each.destination)) for each in _told(record)]
        for one, relationship, other in (*told, *_made(record)):
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

    def _of(self, node: Node) -> Sequence[str]:
        """The ids of the records that name a thing, newest first, each of them read."""
        if node in self._known:
            return self._known[node]
        thing = self._things.get(node)
        kind, _, id_ = node.partition(":")
        if kind == "report" and id_ in self.records:
            found: Sequence[str] = [id_]
        else:
            name = thing.name if thing else node
            found = self._holding_all(pieces(name))
            if "." in name and (thing is None or thing.kind == "column"):  # queries have `f.arr_delay`
                found = (
                    found if found and thing is None else self._holding_all(pieces(name.rsplit(".", 1)[-1]))
                )
        for id_ in found:
            self._read(id_)
        for id_ in found:
            if node in self._things and id_ in self._named:
                self._named[id_].setdefault(node)
        self._known[node] = found
        return found

    def _holding_all(self, name: Sequence[str]) -> Sequence[str]:
        holders = min((self._holders.get(piece, ()) for piece in name), key=len, default=())
        return [id_ for id_ in holders if _holds(self._pieces[id_], name)]

    def _edges(self, node: Node) -> Collection[_Edge]:
        self._of(node)
        return self._links.get(node, {})

    def _all_names(self, node: Node) -> frozenset[Node]:
        """The thing under all its names: aliases, and for a word that is one column that column."""
        if node in self._same:
            return self._same[node]
        found, queue = {node}, [node]
        while queue:
            each = queue.pop()
            edges = [edge for edge in self._edges(each) if edge[1] == SAME]
            others = {edge[0] if edge[2] == each else edge[2] for edge in edges} | self._column(each)
            queue += others - found
            found |= others
        same = frozenset(found)
        self._same |= dict.fromkeys(same, same)
        return same

    def _column(self, node: Node) -> set[Node]:
        """The column that a definition names by its last part."""
        thing = self._things.get(node)
        if thing is None or thing.kind != "identifier" or "." in node:
            return set()
        named = {other for id_ in self._of(node) for other in self._named.get(id_, ())}
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
        holders = self._of(key)
        wanted = [key, f"metric:{key}"]
        if is_told and kind in _PREFIXED:
            wanted = [f"{kind}:{key}"]
            self._of(wanted[0])
        found = [node for node in wanted if node in self._things]
        if is_told:
            found = [node for node in found if self._things[node].kind == kind]
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
        found.sort(key=lambda edge: self._order[edge[3]])
        return [
            Link(self.thing(one), relationship, self.thing(other), id_, _since(self.records[id_]))
            for one, relationship, other, id_ in found
        ]

    def neighbours(self, nodes: Collection[Node], *, within: Record | None) -> list[Neighbour]:
        """The things beside some things, or all things in a record."""
        related: defaultdict[Node, dict[str, None]] = defaultdict(dict)
        said_by: defaultdict[Node, dict[str, None]] = defaultdict(dict)
        if within is not None:
            for node in nodes:
                said_by[node] |= dict.fromkeys(self._of(node))
        for node in sorted(nodes) if within is None else ():
            for source, relationship, destination, id_ in self._edges(node):
                other = destination if source == node else source
                if other not in nodes:
                    related[other][relationship] = None
                    said_by[other][id_] = None
            for id_ in self._of(node):
                for other in self._named.get(id_, ()):
                    if other not in nodes:
                        said_by[other][id_] = None
        order = sorted(said_by, key=lambda node: (node not in related, self._holding(node), node))
        return [
            Neighbour(self.thing(n), tuple(related[n]), tuple(said_by[n])[:_SHOWN_RECORDS]) for n in order
        ]

    def _holding(self, node: Node) -> int:
        """How many records hold the rarest word of a thing."""
        return min((len(self._holders.get(each, ())) for each in pieces(self.thing(node).name)), default=0)

    def path(self, begin: Collection[Node], end: Collection[Node]) -> list[Step]:
        """The nearest way from some things to others, by relations and by records that name both.

        A relation counts as nearer. What many records name leads nowhere, but where the way begins."""
        came: dict[Node, tuple[Node, str, str] | None] = {}
        queue: list[tuple[int, int, Node, tuple[Node, str, str] | None]] = [
            (0, 0, n, None) for n in sorted(begin)
        ]
        pushed = len(queue)
        while queue:
            far, _, node, by = heappop(queue)
            if node in came:
                continue
            came[node] = by
            if node in end:
                return self._way(node, came)
            if far >= _FARTHEST or (by is not None and self._holding(node) > MOST_HOLDERS):
                continue
            for cost, other, relationship, id_ in self._onward(node):
                if other not in came:
                    pushed += 1
                    heappush(queue, (far + cost, pushed, other, (node, relationship, id_)))
        return []

    def _onward(self, node: Node) -> Iterator[tuple[int, Node, str, str]]:
        for source, relationship, destination, id_ in self._edges(node):
            yield _BY_RELATION, destination if source == node else source, relationship, id_
        for id_ in self._of(node):
            yield from ((_BY_RECORD, other, "", id_) for other in self._named.get(id_, ()) if other != node)

    def _way(self, node: Node, came: Mapping[Node, tuple[Node, str, str] | None]) -> list[Step]:
        steps: list[Step] = []
        while (before := came[node]) is not None:
            source, relationship, id_ = before
            steps.append(Step(self.thing(source), relationship, self.thing(node), id_))
            node = source
        return steps[::-1]

    def made_of(self, nodes: Collection[Node], *, behind: bool) -> list[Node]:
        """All that some things are made from, or that is made from them, over any steps, nearest first."""
        found: dict[Node, None] = {}
        queue = deque(sorted(nodes))
        while queue and len(found) < _MOST_REACHED:
            node = queue.popleft()
            for source, relationship, destination, _ in list(self._edges(node)):
                here, there = (source, destination) if behind else (destination, source)
                if relationship not in LINEAGE or here != node:
                    continue
                for each in sorted(self._all_names(there)):
                    if each not in found and each not in nodes:
                        found[each] = None
                        queue.append(each)
        return list(found)


def _readable(record: Record) -> str:
    """The words by which a record is looked up: its text, and the names in its metadata."""
    metadata = record.metadata
    texts = [metadata.get(name) for name in ("path", "sql", "csv_path", "chart_path", "query")]
    told = [record.content, record.subject or "", *(each for each in texts if isinstance(each, str))]
    told += [name for _, name in record.rests_on]
    kept = metadata.get(RELATIONS)
    told += [
        str(each) for row in (kept if isinstance(kept, list) else ()) if isinstance(row, list) for each in row
    ]
    return "\n".join(told)


def _holds(text: Sequence[str], name: Sequence[str]) -> bool:
    """Whether a name stands in a text, word for word."""
    first, size = name[0], len(name)
    return any(piece == first and text[at : at + size] == name for at, piece in enumerate(text))


_SHOWN_RECORDS: Final = 10


def _sureness(thing: Thing) -> int:
    """How much a kind tells: that of a name by its form is the least."""
    return _KINDS.index(thing.kind) + 1 if thing.kind in _KINDS else 0


def _since(record: Record) -> float:
    return record.created_at if record.valid_from is None else record.valid_from


def _told(record: Record) -> Iterator[Relation]:
    """The relations that a record's words tell, and those that a model has read in them."""
    kept = record.metadata.get(RELATIONS)
    for each in kept if isinstance(kept, list) else ():
        if isinstance(each, (list, tuple)) and [*map(type, each)] == [str, str, str]:
            yield Relation(*each)
    yield from relations(record.content)


def _place(name: str) -> tuple[Node, Thing]:
    named = [each for each in entities(name) if each.key == key_of(name)]
    return key_of(name), Thing(name, named[0].kind if named else "name")


_Node = tuple[Node, Thing]


def _made(record: Record) -> Iterator[tuple[_Node, str, _Node]]:
    """What a file, a query, a conclusion or a definition is made of."""
    metadata = record.metadata
    path, sql = metadata.get("path"), metadata.get("sql")
    if record.attribute == "definition" and record.subject:
        metric = _of("metric", record.subject)
        yield from ((metric, COMPUTED_FROM, _of("identifier", each)) for each in _codes(record))
    elif record.attribute == ARTIFACT and isinstance(path, str):
        made = _file(path)
        yield from ((made, MADE_FROM, _of(*each)) for each in record.rests_on)
        yield from _by_query(made, metadata.get("query"))
    elif record.attribute == ARTIFACT and isinstance(sql, str):
        yield from _by_query(None, sql)
        tables = tables_of(sql)
        for table in sorted(tables.written):
            made = _of("table", table)
            yield from ((made, MADE_FROM, _of("table", each)) for each in sorted(tables.read - {table}))
            for output in lineage_of(sql).outputs:
                column = _of("column", f"{table}.{output.name}")
                yield column, COLUMN_OF, made
                yield from ((column, COMPUTED_FROM, _of("column", each)) for each in sorted(output.columns))
    elif record.kind == "task-traces" and (record.rests_on or isinstance(sql, str)):
        report = f"report:{record.id}", Thing(record.content[:_SHOWN_OF_A_TEXT], "report", record.id)
        yield from ((report, MADE_FROM, _of(*each)) for each in record.rests_on)
        csv = metadata.get("csv_path")
        yield from _by_query(_file(csv) if isinstance(csv, str) and csv else report, sql)
        chart = metadata.get("chart_path")
        if isinstance(csv, str) and csv and isinstance(chart, str) and chart:
            yield _file(chart), MADE_FROM, _file(csv)


def _by_query(made: _Node | None, sql: object) -> Iterator[tuple[_Node, str, _Node]]:
    """What a query reads, and what was made with it."""
    if not isinstance(sql, str) or not sql:
        return
    read, lineage = tables_of(sql).read, lineage_of(sql)
    for column in sorted(lineage.columns):
        table = column.rpartition(".")[0]
        yield _of("column", column), COLUMN_OF, _of("table", table)
        if made is not None:
            yield made, MADE_FROM, _of("column", column)
    for output in lineage.outputs:
        if not output.is_metric:
            continue
        metric = _of("metric", output.name)
        sources = [_of("column", each) for each in sorted(output.columns)] or [
            _of("table", e) for e in sorted(read)
        ]
        yield from ((metric, COMPUTED_FROM, each) for each in sources)
        if made is not None:
            yield made, MADE_FROM, metric
    if made is not None:
        yield from ((made, MADE_FROM, _of("table", each)) for each in sorted(read))


def _of(kind: str, name: str) -> _Node:
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
