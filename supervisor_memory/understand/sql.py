"""Which SQL a record carries, and when two statements are one query.

With sqlglot they are when their syntax trees are, but for layout, case of names and aliases of tables;
without it when they are equal but for spaces and the case of SQL's own words.
"""

import re
from functools import lru_cache
from typing import Any

from supervisor_memory.model.records import Candidate, Record
from supervisor_memory.text.terms import CJK

__all__ = ["another_query", "one_query", "query_of"]

_LONGEST_PARSED = 8_000
_BEGINS = re.compile(
    r"with\s+(?:recursive\s+)?[\w\"`]+\s*(?:\([^)]*\)\s*)?as\s*\(|select\s|insert\s+into\s|update\s+\S+\s+set\s|"
    r"delete\s+from\s|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view|index)\s|"
    r"alter\s+table\s|drop\s+(?:table|view|index)\s|merge\s+into\s|copy\s",
    re.IGNORECASE,
)
_PARSED = re.compile(r"(?:select|with|insert|update|delete)\b", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*SQL:\s*")
_ENDS_A_SENTENCE = re.compile(rf"[.!?。！？]\s*$|[{CJK}]")
_LITERAL = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""", re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PIECES = re.compile(rf"({_LITERAL.pattern}|{_COMMENT.pattern})", re.DOTALL)
_OWN_WORDS = """
select from where group by order having limit offset join inner left right full outer cross on using and or
not null is in like between case when then else end as distinct union all intersect except with recursive
insert into values update set delete create replace temp temporary table view index alter drop merge copy
count sum avg min max round cast coalesce over partition asc desc exists interval extract true false
"""
_WORDS = frozenset(_OWN_WORDS.split())


def query_of(text: str) -> str | None:
    """The SQL that a text is; None for anything else, such as a sentence that begins with a query."""
    sql = _LABEL.sub("", text, count=1)
    if not _BEGINS.match(_COMMENT.sub("", sql).lstrip()):
        return None
    code = _COMMENT.sub(" ", _LITERAL.sub(" x ", sql)).strip()
    statements = [each.strip() for each in code.split(";") if each.strip()]
    is_prose = _ENDS_A_SENTENCE.search(code) or not all(map(_BEGINS.match, statements))
    return None if is_prose else sql


def another_query(old: Record | Candidate, new: Record | Candidate) -> bool:
    """Whether both carry SQL, and not the same; or one of them is SQL and the other says something."""
    mine, yours = _query_in(old), _query_in(new)
    if mine is None or yours is None:
        return (query_of(old.content) is None) != (query_of(new.content) is None)
    return one_query(mine) != one_query(yours)


def _query_in(record: Record | Candidate) -> str | None:
    told = record.metadata.get("sql")
    if isinstance(told, str) and told.strip():
        return told
    return query_of(record.content)


@lru_cache(maxsize=1_024)
def one_query(sql: str) -> str:
    """The statement as all that are the same query have it."""
    is_read = len(sql) <= _LONGEST_PARSED and _PARSED.match(_COMMENT.sub("", sql).lstrip())
    if is_read and (parsed := _parsed(sql)) is not None:
        return parsed
    return _plain(sql)


def _plain(sql: str) -> str:
    """Without layout and comments, SQL's own words in small letters; what is quoted stays as it is."""
    parts = _PIECES.split(sql)
    kept = [
        ("" if part.startswith(("--", "/*")) else part)
        if nth % 2
        else re.sub(r"\w+", lambda word: _small(word[0]), re.sub(r"\s*([^\w\s.])\s*|\s+", r" \1 ", part))
        for nth, part in enumerate(parts)
    ]
    return " ".join("".join(kept).split()).rstrip("; ")


def _small(word: str) -> str:
    return word.casefold() if word.casefold() in _WORDS else word


def _parsed(sql: str) -> str | None:
    """The statements written out of their syntax trees; None without sqlglot, and for what it cannot read."""
    try:
        import sqlglot
        from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
    except ImportError:
        return None
    try:
        trees = [normalize_identifiers(tree) for tree in sqlglot.parse(sql) if tree is not None]
        return "; ".join(_without_aliases(tree).sql(comments=False) for tree in trees) or None
    except Exception:  # noqa: BLE001 - whatever makes it raise, the text is compared
        return None


def _without_aliases(tree: Any) -> Any:
    """A plain SELECT with its tables named by their place. In one with others inside, a name may be used
    anywhere, so that names stay; the names of its columns are what it answers with."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or sum(1 for _ in tree.find_all(exp.Query)) > 1:
        return tree
    tables = list(tree.find_all(exp.Table))
    places = {table.alias_or_name: f"t{nth}" for nth, table in enumerate(tables)}
    if len(places) < len(tables):
        return tree
    for table in tables:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(places[table.alias_or_name])))
    for column in tree.find_all(exp.Column):
        if len(tables) == 1 and column.table in places:
            column.set("table", None)
        elif column.table in places:
            column.set("table", exp.to_identifier(places[column.table]))
    return tree
