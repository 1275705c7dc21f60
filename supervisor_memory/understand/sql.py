"""Find the SQL of a record, and compare two statements.

With sqlglot, two statements are the same query if their syntax trees are equal; layout, case of names and
aliases of tables do not matter. Without it, only spaces, comments and the case of SQL's own words may differ.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

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
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PIECES = re.compile(rf"({_LITERAL.pattern}|{_COMMENT.pattern})", re.DOTALL)
_OWN_WORDS = """
select from where group by order having limit offset join inner left right full outer cross on using and or
not null is in like between case when then else end as distinct union all intersect except with recursive
insert into values update set delete create replace temp temporary table view index alter drop merge copy
count sum avg min max round cast coalesce over partition asc desc exists interval extract true false
"""
OWN_WORDS = frozenset(_OWN_WORDS.split())
"""Words of SQL itself."""
_BEFORE_READ = r"(?<!delete )\b(?:from|join)"
_BEFORE_WRITTEN = (
    r"\b(?:(?:insert|merge)\s+(?:or\s+\w+\s+)?into|update|delete\s+from|truncate\s+table|"
    r"create\s+(?:or\s+replace\s+)?(?:table|view)(?!\s+if\s+not))"
)
_BEFORE_OWN = r"(?:\bwith(?:\s+recursive)?|\btemp(?:orary)?\s+table|,(?=\s*\w+\s+as\s*\())"


def query_of(text: str) -> str | None:
    """The SQL of a text that is nothing but SQL; None for others, such as prose that begins with a query."""
    sql = _LABEL.sub("", text, count=1)
    if not _BEGINS.match(_COMMENT.sub("", sql).lstrip()):
        return None
    code = _COMMENT.sub(" ", _LITERAL.sub(" x ", sql)).strip()
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
    is_read = len(sql) <= _LONGEST_PARSED and _PARSED.match(_COMMENT.sub("", sql).lstrip())
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
    except Exception:  # noqa: BLE001 - whatever makes it raise, the text is compared
        return None


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
            read |= {_named(each) for each in named}
            if target is None or tree.args.get("exists"):  # a table that is there stays as it is
                continue
            is_own = tree.find(exp.TemporaryProperty) or tree.args.get("kind") not in (None, "TABLE", "VIEW")
            (own if is_own else written).add(_named(target))
    except Exception:  # noqa: BLE001 - without sqlglot, or whatever makes it raise, the words decide
        return tables_by_words(sql)
    return Tables(frozenset(read - own), frozenset(written - own))


def tables_by_words(sql: str) -> Tables:
    """The tables of a text of SQL by the words before them: a hundred times as quick, and right where no
    table is named in an unusual place."""
    code = _COMMENT.sub(" ", re.sub("'(?:[^']|'')*'", "''", sql[:_LONGEST_PARSED]))
    own, written, read = (
        {re.sub(r"[\"`]", "", name).casefold() for name in re.findall(rf"(?i){before}\s+([\w.\"`]+)", code)}
        for before in (_BEFORE_OWN, _BEFORE_WRITTEN, _BEFORE_READ)
    )
    return Tables(frozenset(read - own), frozenset(written - own))


def _named(table: Any) -> str:
    return ".".join(part.name for part in table.parts).casefold()


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
