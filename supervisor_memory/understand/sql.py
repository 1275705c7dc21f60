"""Find the SQL of a record, and compare two statements.

With sqlglot, two statements are the same query if their syntax trees are equal; layout, case of names and
aliases of tables do not matter. Without it, only spaces, comments and the case of SQL's own words may differ.
"""

import re
from functools import lru_cache
from typing import Any

from supervisor_memory.language.terms import CJK
from supervisor_memory.model.records import Candidate, Record

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
COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PIECES = re.compile(rf"({_LITERAL.pattern}|{COMMENT.pattern})", re.DOTALL)
_OWN_WORDS = """
select from where group by order having limit offset join inner left right full outer cross on using and or
not null is in like between case when then else end as distinct union all intersect except with recursive
insert into values update set delete create replace temp temporary table view index alter drop merge copy
count sum avg min max round cast coalesce over partition asc desc exists interval extract true false
"""
OWN_WORDS = frozenset(_OWN_WORDS.split())
"""Words of SQL itself."""


@lru_cache(maxsize=1_024)
def query_of(text: str) -> str | None:
    """The SQL of a text that is nothing but SQL; None for others, such as prose that begins with a query."""
    sql = _LABEL.sub("", text, count=1)
    if not _BEGINS.match(COMMENT.sub("", sql).lstrip()):
        return None
    code = COMMENT.sub(" ", _LITERAL.sub(" x ", sql)).strip()
    statements = [each.strip() for each in code.split(";") if each.strip()]
    is_prose = _ENDS_A_SENTENCE.search(code) or not all(map(_BEGINS.match, statements))
    return None if is_prose else sql


def without_comments(sql: str) -> str:
    """A statement without its comments."""
    return _PIECES.sub(lambda piece: " " if piece[0].startswith(("--", "/*")) else piece[0], sql)


def another_query(old: Record | Candidate, new: Record | Candidate) -> bool:
    """Whether two records carry different queries, or one is SQL and the other prose."""
    mine, yours = _query_in(old), _query_in(new)
    if mine is None or yours is None:
        return (query_of(old.content) is None) != (query_of(new.content) is None)
    return one_query(mine) != one_query(yours)


def _query_in(record: Record | Candidate) -> str | None:
    told = record.metadata.get("sql")
    return told if isinstance(told, str) and told.strip() else query_of(record.content)


@lru_cache(maxsize=1_024)
def one_query(sql: str) -> str:
    """The canonical form of a statement, equal for all statements of the same query."""
    is_read = len(sql) <= _LONGEST_PARSED and _PARSED.match(COMMENT.sub("", sql).lstrip())
    if is_read and (parsed := _parsed(sql)) is not None:
        return parsed
    return _plain(sql)


def _plain(sql: str) -> str:
    """The statement without layout and comments, with SQL's own words in lower case; quotations stay."""
    parts = _PIECES.split(sql)
    kept = [
        ("" if part.startswith(("--", "/*")) else part)
        if nth % 2
        else re.sub(r"\w+", lambda word: _small(word[0]), re.sub(r"\s*([^\w\s.])\s*|\s+", r" \1 ", part))
        for nth, part in enumerate(parts)
    ]
    return " ".join("".join(kept).split()).rstrip("; ")


def _small(word: str) -> str:
    return word.casefold() if word.casefold() in OWN_WORDS else word


def _parsed(sql: str) -> str | None:
    """The statements rewritten from their syntax trees; None without sqlglot, or if it cannot parse them."""
    try:
        import sqlglot
        from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
    except ImportError:
        return None
    try:
        trees = [normalize_identifiers(tree) for tree in sqlglot.parse(sql) if tree is not None]
        return "; ".join(_without_aliases(tree).sql(comments=False) for tree in trees) or None
    except Exception:  # noqa: BLE001  # sqlglot raises many kinds of errors; the text is compared then
        return None


def _without_aliases(tree: Any) -> Any:
    """Rename the tables of a plain SELECT by their position. Nested SELECTs keep their names, which may be
    used anywhere; columns keep theirs too, since the answer shows them."""
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
