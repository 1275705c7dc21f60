"""The graph of the things named in a user's records, read as far as a question walks."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import Record
from supervisor_memory.reading.relations.answer import Link, Neighbour, Step, Thing
from supervisor_memory.reading.relations.in_record import LINEAGE, Node, read_record
from supervisor_memory.signals.walk import MOST_HOLDERS
from supervisor_memory.understand.entities import key_of
from supervisor_memory.understand.relations import SAME, pieces

_BY_RELATION, _BY_RECORD = 2, 5
_FARTHEST: Final = 6 * _BY_RECORD
_MOST_READ: Final = 1_000  # records, for a way, and for each side of a lineage
_MOST_OF_A_NAME: Final = 500
_MOST_REACHED: Final = 1_000
_LONGEST_NAME: Final = 200
_BETWEEN_WORDS: Final = re.compile(r"[ _-]")
_KINDS: Final = ("table", "column", "metric", "file", "report")
_PREFIXED: Final = ("metric", "report")
_SHOWN_RECORDS: Final = 10

Naming = Callable[[Sequence[Sequence[str]], int], Sequence[tuple[int, Sequence[Record]]]]
"""Takes names, each by its terms, and a limit; gives how many records hold each, and the newest of them."""
_Edge = tuple[Node, str, Node, str]
"""From where, how, where to, and the id of the record that says so."""


class Graph:
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
        found, told = read_record(record)
        for one, relationship, other in told:
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


def _sureness(thing: Thing) -> int:
    """How certain a kind of thing is; a kind read off the form of a name is the least certain."""
    return _KINDS.index(thing.kind) + 1 if thing.kind in _KINDS else 0


def _valid_since(record: Record) -> float:
    return record.created_at if record.valid_from is None else record.valid_from


def _sought(name: str) -> Sequence[str]:
    """The terms to look a name up by. The parts of `fct_orders` are left out, since more records have them,
    and so is a Chinese character at the edge, which a sentence joins with the next one."""
    every = terms(name)
    parts = {part for term in every if "_" in term for part in term.split("_")}
    return [term for term in every if term not in parts and (len(term) > 1 or not has_cjk(term))]
