"""Notes and searches in the log: the records each reader was shown or not shown, with scores and reasons.

A row is a note as it was injected, or a search. Where a run tells a reader the same once more, its row has
the id of the first one in place of the records. Like the access log, the table is capped, not chained, and
holds no text: ids, numbers, and codes of `supervisor_memory.model.explain`.
"""

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from struct import iter_unpack, pack
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import uuid4

from supervisor_memory.disk.database import select

if TYPE_CHECKING:
    import apsw

    from supervisor_memory.model.records import Considered, Hit, Scope

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS notes(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL, ts_us INTEGER NOT NULL, subject TEXT, op TEXT NOT NULL,
        agent_id TEXT, session TEXT, run_id TEXT, tokens INTEGER, degraded INTEGER NOT NULL,
        shown TEXT NOT NULL, dropped TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS notes_by_subject ON notes(subject)",
    "CREATE INDEX IF NOT EXISTS notes_by_session ON notes(session, ts_us) WHERE session IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS notes_by_run ON notes(run_id) WHERE run_id IS NOT NULL",
)
MOST: Final = 20_000
"""How many rows are kept; the oldest make room."""
_DROPPED: Final = 20
_DIGITS: Final = 3
_BEHIND_A_NAME: Final = "\n"
_PAUSE_SECONDS: Final = 120.0
_MICRO: Final = 1_000_000
_QUOTED: Final = json.encoder.encode_basestring_ascii
_HOLDS: Final = """EXISTS(SELECT 1 FROM notes AS told WHERE instr(told.shown || told.dropped, ?)
    AND told.seq = iif(notes.shown LIKE '"%', (SELECT seq FROM notes AS first
        WHERE first.run_id = notes.run_id AND first.id = notes.shown ->> '$'), notes.seq))"""
"""Whether an entry, or the one that it refers to, names a record."""
_OF_FIRST: Final = "SELECT id, shown, dropped FROM notes WHERE run_id = ? AND id = ?"
_COLUMNS: Final = "seq, id, ts_us, op, agent_id, session, run_id, tokens, degraded, shown, dropped"

_CODED: Final = "iif(length({0}) > 160 OR {0} GLOB '*[^A-Za-z0-9_.:/@+=,;<>()#%-]*', 'redacted', {0})"
READINGS: Final = f"""SELECT NULL AS id, ts_us, subject, op, agent_id, session, run_id,
        {_CODED.format("value ->> 0")} AS record_id, value ->> 1 AS rank,
        CAST(round((value ->> 2) * 1000) AS INTEGER) AS score_milli, {_CODED.format("value ->> 3")} AS reason
    FROM notes, json_each(notes.shown) WHERE notes.shown LIKE '[%' AND notes.seq > """
"""The access rows made from the entries behind a row; an entry that refers to another makes none."""

Values: TypeAlias = tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A record in a note or a search, or one left out.

    `rank` is 1 for the best, None for a record left out; `score` and `parts` come from the hit, in [0, 1];
    `reason` is a code of `supervisor_memory.model.explain`. `made_of` has the messages whose sentences a
    digest told, each with the section.
    """

    record_id: str
    rank: int | None
    score: float
    reason: str
    parts: Mapping[str, float]
    made_of: Sequence[Sequence[str]] = ()

    @property
    def source_ids(self) -> Sequence[str]:
        """The messages that a digest was made of; else the record itself."""
        return tuple(dict.fromkeys(id_ for id_, _ in self.made_of)) or (self.record_id,)


@dataclass(frozen=True, slots=True)
class Given:
    """A note or a search on its way into the log.

    Args:
        at: In seconds since 1970.
        shown, dropped: The records in it and those left out, in JSON, as `packed` tells them.
        records: How many are in it.
        again: The id of an entry of the same run that told the same reader the same, whose records are not
            written twice; None: there is none.
    """

    id: str
    op: str
    at: float
    scope: "Scope"
    tokens: int | None
    degraded: bool
    shown: str
    dropped: str
    records: int = 0
    again: str | None = None


@dataclass(frozen=True, slots=True)
class Injection:
    """A note or a search as the log keeps it.

    `op` is "inject" for a note, "search" for a search; `agent_id` None is the supervisor, or a caller from
    Python; `session` is a pseudonym; `tokens` is the size of the note, None for a search; `degraded`: a part
    of memory did not answer.
    """

    id: str
    at: float
    op: str
    agent_id: str | None
    session: str | None
    run_id: str | None
    tokens: int | None
    degraded: bool
    shown: tuple[Shown, ...]
    dropped: tuple[Shown, ...]
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """The notes of one run of a graph, oldest first."""

    run_id: str | None
    session: str | None
    at: float
    notes: tuple[Injection, ...]


def given(
    op: str,
    scope: "Scope",
    *,
    at: float,
    hits: "Iterable[Hit]",
    dropped: "Iterable[Considered]" = (),
    tokens: int | None = None,
    degraded: bool = False,
) -> Given:
    """Make the log's entry of a note or a search, with the best of the records left out."""
    told = (*hits,)
    return Given(str(uuid4()), op, at, scope, tokens, degraded, *packed(told, dropped), records=len(told))


def packed(hits: "Iterable[Hit]", dropped: "Iterable[Considered]") -> tuple[str, str]:
    """The records of an entry, and the best of those left out, in JSON."""
    others = sorted(dropped, key=lambda each: -each.hit.score)[:_DROPPED]
    shown = _packed((hit, hit.reason, rank) for rank, hit in enumerate(hits, start=1))
    return shown, _packed((each.hit, each.reason, None) for each in others)


def row_of(entry: Given, subject: str | None, session: str | None, run_id: str | None) -> Values:
    """The row of an entry, with the log's pseudonyms for its user, session and run."""
    told = (entry.shown, entry.dropped) if entry.again is None else (json.dumps(entry.again), "[]")
    return (
        *(entry.id, int(entry.at * _MICRO), subject, entry.op, entry.scope.agent_id, session, run_id),
        *(entry.tokens, int(entry.degraded), *told),
    )


def keep(connection: "apsw.Connection", rows: Sequence[Values]) -> None:
    """Write rows, inside a transaction; the oldest make room."""
    connection.executemany("INSERT INTO notes VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?)", rows)
    if connection.last_insert_rowid() > MOST:
        connection.execute("DELETE FROM notes WHERE seq <= (SELECT max(seq) FROM notes) - ?", (MOST,))


def injections(
    connection: "apsw.Connection",
    *,
    subject: str | None = None,
    run_id: str | None = None,
    record_id: str | None = None,
    id: str | None = None,
    op: str | None = None,
    sessions: Sequence[str] | None = None,
    since: float | None = None,
    until: float | None = None,
    before: int | None = None,
    limit: int,
) -> list[Injection]:
    """The latest notes and searches, newest first.

    Args:
        subject, run_id, sessions: By their names in the log; any of the sessions.
        since, until: In seconds since 1970, without `until` itself.
        record_id: Only those that showed or left out this record.
        before: Only rows with a smaller `seq`.
    """
    wanted: list[tuple[str, str | int]] = [
        (condition, value)
        for condition, value in (
            ("subject = ?", subject if sessions is None else None),  # a session's name is its user's alone
            ("run_id = ?", run_id),
            (_HOLDS, None if record_id is None else f"[{json.dumps(record_id)},"),
            ("id = ?", id),
            ("op = ?", op),
            (
                "session IN (SELECT value FROM json_each(?))",
                None if sessions is None else json.dumps([*sessions]),
            ),
            ("ts_us >= ?", None if since is None else round(since * _MICRO)),
            ("ts_us < ?", None if until is None else round(until * _MICRO)),
            ("seq < ?", before),
        )
        if value is not None
    ]
    where = " AND ".join(condition for condition, _ in wanted) or "1"
    sql = f"SELECT {_COLUMNS} FROM notes WHERE {where} ORDER BY seq DESC LIMIT ?"
    rows = [*select(connection, "notes", sql, *(value for _, value in wanted), limit)]
    told: dict[str, tuple[str, str]] = {row[1]: row[-2:] for row in rows}
    found: list[Injection] = []
    for seq, id_, ts_us, does, agent, session, run, tokens, degraded, shown, _ in rows:
        first = json.loads(shown) if shown.startswith('"') else id_
        if first not in told:
            told |= {each[0]: each[1:] for each in select(connection, "notes", _OF_FIRST, run, first)}
        if first in told:  # else the first one has made room
            held, left_out = map(_unpacked, told[first])
            about = (id_, ts_us / _MICRO, does, agent, session, run, tokens, bool(degraded))
            found.append(Injection(*about, held, left_out, seq))
    return found


def grouped(notes: Iterable[Injection]) -> list[Turn]:
    """Group notes, newest first, into turns, newest first.

    A turn has the notes of a run. Where memory is read without a `run_id`, it has the notes of a session
    without a pause of more than two minutes.
    """
    found: list[list[Injection]] = []
    latest: dict[str, list[Injection]] = {}
    for note in reversed([*notes]):
        key = note.run_id or note.session or note.id
        group = latest.get(key)
        if group is None or (note.run_id is None and note.at - group[-1].at > _PAUSE_SECONDS):
            group = latest[key] = []
            found.append(group)
        group.append(note)
    return [Turn(each[0].run_id, each[0].session, each[0].at, tuple(each)) for each in reversed(found)]


def _packed(some: "Iterable[tuple[Hit, str, int | None]]") -> str:
    """Hits in JSON, each as its record's id, its rank, the score, the reason and the names of its parts.

    The numbers of all parts stand together behind the names of the first hit, in base64. The names are null
    where they are those of the hit before.
    """
    told = [*some]
    values: list[float] = []
    for hit, _, _ in told:
        values += hit.parts.values()
    numbers = b2a_base64(pack(f"<{len(values)}d", *values), newline=False).decode()
    found: list[str] = []
    before: tuple[str, ...] | None = None
    for hit, reason, rank in told:
        place, score = "null" if rank is None else rank, hit.score
        number = f"{score:.{_DIGITS}f}" if isfinite(score) else json.dumps(score)
        if (names := tuple(hit.parts)) == before:
            named = "null"
        else:
            named, numbers, before = f'{_in_lines(names)}{numbers}"', "", names
        made_of = _made_of_json(hit) if hit.made_of else ""
        found.append(f"[{_QUOTED(hit.record.id)},{place},{number},{_QUOTED(reason)},{named}{made_of}]")
    return f"[{','.join(found)}]"


@lru_cache(maxsize=1_024)
def _in_lines(names: tuple[str, ...]) -> str:
    """The names of a hit's parts, each in a line, as the string in JSON begins."""
    in_a_line = [name.replace(_BEHIND_A_NAME, " ") + _BEHIND_A_NAME for name in names]
    return _QUOTED("".join(in_a_line))[:-1]


def _made_of_json(hit: "Hit") -> str:
    """The messages of a digest as one more entry of the list."""
    return f",{json.dumps(hit.made_of, separators=(',', ':'))}"


def _unpacked(text: str) -> tuple[Shown, ...]:
    """Read what `_packed` wrote; an earlier release wrote the names of the parts again with each hit."""
    found: list[Shown] = []
    names: Sequence[str] = ()
    numbers: list[float] = []
    for id_, rank, score, reason, told, *made_of in json.loads(text):
        if isinstance(told, dict):  # as one before that wrote them
            parts: Mapping[str, float] = told
        else:
            if told is not None:
                *names, packed_ = told.split(_BEHIND_A_NAME)
                numbers += [round(value, _DIGITS) for (value,) in iter_unpack("<d", a2b_base64(packed_))]
            parts = dict(zip(names, numbers[: len(names)], strict=True))
            del numbers[: len(names)]
        found.append(Shown(id_, rank, score, reason, parts, *made_of))
    return tuple(found)
