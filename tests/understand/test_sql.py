"""When two SQL statements are one query, and which texts are SQL."""

import sys

import pytest

from supervisor_memory.understand.lineage import Tables, tables_of
from supervisor_memory.understand.sql import one_query, query_of
from tests.cases import every_case

LATE = (
    "SELECT f.carrier, COUNT(*) AS n FROM flights f WHERE f.origin = 'JFK' GROUP BY f.carrier ORDER BY n DESC"
)


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    one_query.cache_clear()
    tables_of.cache_clear()


@every_case(
    "again",
    [
        LATE.lower().replace("'jfk'", "'JFK'"),
        LATE.replace(" FROM", "\n  FROM").replace(" WHERE", "\n WHERE") + ";",
        LATE.replace("f.", "").replace("flights f", "flights"),
        f"-- the carriers of JFK\n{LATE}",
    ],
)
def test_layout_case_of_names_names_of_tables_and_comments_make_no_other_query(again: str) -> None:
    assert one_query(again) == one_query(LATE)


OTHERS = [
    (LATE, LATE.replace("JFK", "jfk")),
    (LATE, LATE.replace("COUNT(*)", "COUNT(tailnum)")),
    (LATE, LATE.replace("flights f", "legs f")),
    (LATE, LATE.replace("AS n", "AS flights_of_it").replace("BY n", "BY flights_of_it")),
    ("SELECT a FROM t; DELETE FROM x", "SELECT a FROM t; DELETE FROM y"),
    ("SELECT sum(x) AS a FROM t WHERE a = 1", "SELECT sum(x) AS b FROM t WHERE b = 1"),
    ("SELECT x.a, y.b FROM t x JOIN u y ON x.id = y.id", "SELECT y.a, x.b FROM t x JOIN u y ON x.id = y.id"),
    ("SELECT a AS x, b AS y FROM t ORDER BY x", "SELECT a AS x, b AS y FROM t ORDER BY y"),
    ("SELECT count(*) FROM t", "SELECT count(*) FROM s.t"),
    ("WITH c AS (SELECT 1 AS a) SELECT a FROM c", "WITH c AS (SELECT 2 AS a) SELECT a FROM c"),
    ("COPY t FROM 'a.csv'", "COPY t FROM 'b.csv'"),
]


@every_case(("one", "other"), OTHERS)
def test_another_literal_table_column_or_order_makes_another_query(one: str, other: str) -> None:
    assert one_query(one) != one_query(other)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_without_sqlglot_they_are_others_too(one: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert one_query(one) != one_query(other)


def test_without_sqlglot_spaces_and_the_case_of_sqls_own_words_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert one_query("select  a\nfrom t where b='X'") == one_query("SELECT a FROM t WHERE b = 'X';")
    assert one_query("SELECT a FROM t") != one_query("SELECT A FROM t")


@every_case("text", [LATE, f"SQL: {LATE}", f"{LATE}; DELETE FROM x;", "/* . */ SELECT '第一。' FROM t"])
def test_sql_is_told(text: str) -> None:
    assert query_of(text) == text.removeprefix("SQL: ")


@every_case(
    "text",
    [
        "Select the seats by the window.",
        "SELECT COUNT(*) FROM flights returns 8,255 rows.",
        "select count(*) from flights; returns 8,255 rows",
        "SELECT AVG(salary) FROM payroll 得到平均月薪",
        "The query is SELECT 1",
    ],
)
def test_a_sentence_that_begins_with_a_query_is_none(text: str) -> None:
    assert query_of(text) is None


@pytest.mark.parametrize("has_parser", [True, False])
@pytest.mark.parametrize(
    ("sql", "read", "written"),
    [
        ("SELECT name FROM flights JOIN airlines USING (carrier)", {"flights", "airlines"}, set()),
        ("WITH late AS (SELECT * FROM flights) SELECT * FROM late", {"flights"}, set()),
        (
            "INSERT OR REPLACE INTO daily SELECT *, 'from nowhere' FROM main.flights",
            {"main.flights"},
            {"daily"},
        ),
        ("UPDATE flights SET a = 1 WHERE b IN (SELECT c FROM weather)", {"weather"}, {"flights"}),
        ('DELETE FROM "Flights"', set(), {"flights"}),
        ("CREATE OR REPLACE VIEW late AS SELECT * FROM flights", {"flights"}, {"late"}),
        ("CREATE TABLE IF NOT EXISTS flights (a int)", set(), set()),
        ("CREATE TEMP TABLE late AS SELECT * FROM flights; SELECT * FROM late", {"flights"}, set()),
        ("CREATE INDEX by_origin ON flights (origin)", set(), set()),
    ],
)
def test_the_tables_that_a_statement_reads_and_writes(
    sql: str, read: set[str], written: set[str], has_parser: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_parser:
        monkeypatch.setitem(sys.modules, "sqlglot", None)

    assert tables_of(sql) == Tables(frozenset(read), frozenset(written))
