"""Lineage in SQL: the tables a statement reads and writes, and the source columns of its result.

By sqlglot; without it there are the tables alone."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from supervisor_memory.understand.sql import COMMENT

_LONGEST_PARSED: Final = 8_000
_BEFORE_READ = r"(?<!delete )\b(?:from|join)"
_BEFORE_WRITTEN = (
    r"\b(?:(?:insert|merge)\s+(?:or\s+\w+\s+)?into|update|delete\s+from|truncate\s+table|"
    r"create\s+(?:or\s+replace\s+)?(?:table|view)(?!\s+if\s+not))"
)
_BEFORE_OWN = r"(?:\bwith(?:\s+recursive)?|\btemp(?:orary)?\s+table|,(?=\s*\w+\s+as\s*\())"


class Tables(NamedTuple):
    """The tables that statements read and write, in lower case; temporary tables are left out."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


@lru_cache(maxsize=256)
def tables_of(sql: str) -> Tables:
    """The tables of a text of SQL. Without sqlglot they are found by the words before them."""
    read, written, own = set[str](), set[str](), {""}
    try:
        import sqlglot
        from sqlglot import exp

        writes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.TruncateTable, exp.Copy)
        for tree in filter(None, sqlglot.parse(sql[:_LONGEST_PARSED])):
            own |= {each.alias.casefold() for each in tree.find_all(exp.CTE)}
            named = [*tree.find_all(exp.Table, bfs=True)]
            target = named.pop(0) if isinstance(tree, writes) and named else None
            read |= {_full_name(each) for each in named}
            if target is None or tree.args.get("exists"):  # a table that is there stays as it is
                continue
            is_own = tree.find(exp.TemporaryProperty) or tree.args.get("kind") not in (None, "TABLE", "VIEW")
            (own if is_own else written).add(_full_name(target))
    except Exception:  # noqa: BLE001  # sqlglot is missing, or raises one of its many kinds of errors
        return tables_by_words(sql)
    return Tables(frozenset(read - own), frozenset(written - own))


def tables_by_words(sql: str) -> Tables:
    """The tables of a text of SQL, found by the words before them: a hundred times as fast as parsing, and
    right unless a table is named in an unusual place."""
    code = COMMENT.sub(" ", re.sub("'(?:[^']|'')*'", "''", sql[:_LONGEST_PARSED]))
    own, written, read = (
        {re.sub(r"[\"`]", "", name).casefold() for name in re.findall(rf"(?i){before}\s+([\w.\"`]+)", code)}
        for before in (_BEFORE_OWN, _BEFORE_WRITTEN, _BEFORE_READ)
    )
    return Tables(frozenset(read - own), frozenset(written - own))


def _full_name(table: Any) -> str:
    return ".".join(part.name for part in table.parts).casefold()


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a result.

    Args:
        columns: Those that it is computed from, such as "flights.dep_delay".
        is_metric: Whether it aggregates; else it is a column that is shown as it is.
    """

    name: str
    columns: frozenset[str]
    is_metric: bool


@dataclass(frozen=True, slots=True)
class Lineage:
    """The tables and columns that one or more statements read.

    Args:
        columns: All columns that are read, in conditions too, with their tables, in lower case. A column
            whose table the statement does not tell is left out.
    """

    columns: frozenset[str] = frozenset()
    outputs: tuple[Output, ...] = ()


@lru_cache(maxsize=256)
def lineage_of(sql: str) -> Lineage:
    """The columns of a text of SQL; none without sqlglot, or where it cannot read the text."""
    try:
        import sqlglot
        from sqlglot.optimizer.scope import traverse_scope

        columns: set[str] = set()
        outputs: list[Output] = []
        for tree in filter(None, sqlglot.parse(sql[:_LONGEST_PARSED])):
            scopes = traverse_scope(tree)
            for scope in scopes:
                columns.update(_columns(scope.columns, scope))
            outputs += _outputs(scopes[-1]) if scopes else ()
        return Lineage(frozenset(columns), tuple(outputs))
    except Exception:  # noqa: BLE001  # sqlglot is missing, or raises one of its many kinds of errors
        return Lineage()


def _outputs(scope: Any) -> Iterator[Output]:
    from sqlglot import exp

    for each in getattr(scope.expression, "selects", ()):
        if each.alias_or_name:
            columns = frozenset(_columns(each.find_all(exp.Column), scope))
            is_metric = any(each.find(kind) for kind in (exp.AggFunc, exp.Window)) or _is_metric(each, scope)
            yield Output(each.alias_or_name.casefold(), columns, bool(is_metric))


def _is_metric(column: Any, scope: Any) -> bool:
    """Whether a column shows an aggregate of a subquery unchanged."""
    from sqlglot import exp

    inner = column.unalias()
    source = _source(inner, scope) if isinstance(inner, exp.Column) else None
    below = _source_columns(source, inner.name) if source is not None else None
    return below is not None and any(
        each.is_metric for each in _outputs(source) if each.name == inner.name.casefold()
    )


def _columns(found: Any, scope: Any) -> Iterator[str]:
    """The columns of tables behind those that a query names."""
    from sqlglot import exp

    for column in found:
        source = _source(column, scope)
        if isinstance(source, exp.Table):
            table = ".".join(part.name for part in source.parts)
            yield f"{table}.{column.name}".casefold()
        elif source is not None and (below := _source_columns(source, column.name)) is not None:
            yield from below


def _source(column: Any, scope: Any) -> Any:
    """The table or the query that a column is of; None where the statement does not tell."""
    sources: Mapping[str, Any] = scope.sources
    if column.table:
        return sources.get(column.table)
    return next(iter(sources.values())) if len(sources) == 1 else None


def _source_columns(scope: Any, name: str) -> frozenset[str] | None:
    """The source columns of a query's column; None: the query has no such column."""
    if not hasattr(scope, "expression"):
        return None
    return next((each.columns for each in _outputs(scope) if each.name == name.casefold()), None)
