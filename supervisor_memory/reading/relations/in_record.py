"""Read the things that a record names, and the relations that it states: in words, by a model, in SQL."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from supervisor_memory.model.records import ARTIFACT, Record
from supervisor_memory.reading.relations.answer import Thing
from supervisor_memory.understand.entities import entities, key_of
from supervisor_memory.understand.lineage import lineage_of, tables_of
from supervisor_memory.understand.names import identifiers
from supervisor_memory.understand.relations import relations

MADE_FROM: Final = "made_from"
COMPUTED_FROM: Final = "computed_from"
COLUMN_OF: Final = "column_of"
LINEAGE: Final = frozenset({MADE_FROM, COMPUTED_FROM, COLUMN_OF, "reads_from", "filled_by"})
"""Relationships by which a thing comes from another: table – column – metric – file – report."""
_REPORTS: Final = ("png", "svg", "jpg", "jpeg", "pdf", "html", "htm", "md", "docx", "pptx", "ipynb")
_SHOWN_OF_A_TEXT: Final = 80

Node = str
"""The key of a thing's name; of metrics and reports, which may be called as a table, with the kind before."""
Named = tuple[Node, Thing]
Told = tuple[Named, str, Named]
"""A relation: from where, how, where to."""


def read_record(record: Record) -> tuple[list[Named], list[Told]]:
    """The things that a record names, those of its relations among them, and its relations."""
    things, told = _in_words(record.content)
    every = [*told, *_by_a_model(record), *_sources_of(record)]
    return [*things, *chain.from_iterable((one, other) for one, _, other in every)], every


@lru_cache(maxsize=8_192)
def _in_words(content: str) -> tuple[Sequence[Named], Sequence[Told]]:
    """The things that a text names, and the relations that it tells."""
    things = [(each.key, Thing(each.name, each.kind)) for each in entities(content)]
    known = dict(things)

    def place(name: str) -> Named:
        key = key_of(name)
        return (key, Thing(name, known[key].kind)) if key in known else _named_thing(name)

    told = [(place(each.source), each.relationship, place(each.destination)) for each in relations(content)]
    return things, told


def _by_a_model(record: Record) -> Iterator[Told]:
    """The relations that a model has read in a record."""
    return (
        (_named_thing(one), relationship, _named_thing(two)) for one, relationship, two in record.relations
    )


def _named_thing(name: str) -> Named:
    named = [each for each in entities(name) if each.key == key_of(name)]
    return key_of(name), Thing(name, named[0].kind if named else "name")


def _sources_of(record: Record) -> Iterator[Told]:
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


def _by_query(made: Named | None, sql: object) -> Iterator[Told]:
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


def _node_of(kind: str, name: str) -> Named:
    if kind == "file":
        return _file(name)
    key = key_of(name)
    return f"metric:{key}" if kind == "metric" else key, Thing(name, kind)


def _file(path: str) -> Named:
    ending = path.rsplit(".", 1)[-1].casefold()
    return key_of(path), Thing(path, "report" if ending in _REPORTS else "file")


def _codes(record: Record) -> Sequence[str]:
    """The columns that a definition names."""
    return sorted(
        each for each in identifiers(record.content) if each.isascii() and "_" in each and " " not in each
    )
