"""Lineage in SQL: the columns a statement reads, and the sources of each column in its result.

By sqlglot; without it there are the tables alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

_LONGEST_PARSED: Final = 8_000


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
    """What one or more statements read.

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
    except Exception:  # noqa: BLE001 - without sqlglot, or whatever makes it raise, tables are what is known
        return Lineage()


def _outputs(scope: Any) -> Iterator[Output]:
    from sqlglot import exp

    for each in getattr(scope.expression, "selects", ()):
        if each.alias_or_name:
            columns = frozenset(_columns(each.find_all(exp.Column), scope))
            is_metric = any(each.find(kind) for kind in (exp.AggFunc, exp.Window)) or _is_metric(each, scope)
            yield Output(each.alias_or_name.casefold(), columns, bool(is_metric))


def _is_metric(column: Any, scope: Any) -> bool:
    """Whether a column is shown as a query below has aggregated it."""
    from sqlglot import exp

    inner = column.unalias()
    source = _source(inner, scope) if isinstance(inner, exp.Column) else None
    below = _below(source, inner.name) if source is not None else None
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
        elif source is not None and (below := _below(source, column.name)) is not None:
            yield from below


def _source(column: Any, scope: Any) -> Any:
    """The table or the query that a column is of; None where the statement does not tell."""
    sources: Mapping[str, Any] = scope.sources
    if column.table:
        return sources.get(column.table)
    return next(iter(sources.values())) if len(sources) == 1 else None


def _below(scope: Any, name: str) -> frozenset[str] | None:
    """The columns behind a column of a query; None: the query has no such column."""
    if not hasattr(scope, "expression"):
        return None
    return next((each.columns for each in _outputs(scope) if each.name == name.casefold()), None)
