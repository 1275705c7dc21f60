"""What is packed of a large namespace: quick to read, never another answer, nothing of who was erased."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query, Record, Source
from supervisor_memory.stores.protocol import ByWords, Change
from supervisor_memory.stores.sqlite import packed, rounded, tables
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import tea

WORDS = ("hills", "plains", "green", "black", "cup", "leaf", "茶叶", "高山")
ALIKE = ""  # a question by meaning alone
FEW = 8


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records are large here."""
    monkeypatch.setattr(packed, "LEAST", FEW)
    monkeypatch.setattr(tables, "LEAST", FEW)
    monkeypatch.setattr(packed, "_LOOKED_AT_EVERY", 4)
    monkeypatch.setattr(rounded, "MOST_IN_A_CHUNK", 7)


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[SqliteBackend]:
    with closing(SqliteBackend(tmp_path)) as backend:
        backend.write([made(number) for number in range(30)])
        yield backend


def made(number: int) -> Record:
    chance = random.Random(number)
    text = f"tea number{number} of the {' '.join(chance.sample(WORDS, 3))}"
    if number % 3:
        return embedded(tea(text), number)
    speaker = chance.choice(("Ada", "Bo", None))
    said = Source("user", session_id=f"s{number % 2}", speaker=speaker)
    return tea(text + "?", layer="history", source=said, created_at=1_000.0 + 60 * number)


def embedded(record: Record, number: int) -> Record:
    """The record with a vector, most of them of one embedder; every eighth has none."""
    if number % 8 == 0:
        return replace(record, vector=None, embedder=None)
    vector = np.random.default_rng(number).standard_normal(24).astype(np.float32)
    return replace(record, vector=vector, embedder="other" if number % 11 == 0 else "test")


ASKED = np.random.default_rng(7).standard_normal(24).astype(np.float32)


def answers(backend: SqliteBackend) -> dict[str, dict[str, dict[str, float]]]:
    """What a process that begins now finds for each word."""

    def query(word: str) -> Query:
        told = tuple(terms(word)) if word != ALIKE else ()
        return Query(word, Filter("alice"), told, ASKED, "test", now=9e9)

    with closing(SqliteBackend(where(backend), read_only=True)) as fresh:
        return {
            word: {
                hit.record.content: {name: round(value, 3) for name, value in hit.parts.items()}
                for hit in fresh.search(query(word), limit=99)
            }
            for word in (*WORDS, ALIKE)
        }


def where(backend: SqliteBackend) -> Path:
    path = backend.database.path
    assert path is not None
    return path.parent


def held(backend: SqliteBackend) -> list[bytes]:
    with backend.database.reading() as connection:
        return [bytes(row[0]) for row in connection.execute("SELECT data FROM packed")]


def test_whatever_changes_a_packed_index_answers_as_the_entries_do(filled: SqliteBackend) -> None:
    chance, packs = random.Random(4), set[bytes]()
    living = {each.id: each for each in filled.list(Filter("alice"), limit=99)}
    for number in range(30, 90):
        match chance.randrange(4):
            case 0:
                filled.write([new := made(number)])
                living[new.id] = new
            case 1:
                gone = chance.choice(sorted(living))
                filled.delete([gone])
                del living[gone]
            case _:
                old = living[chance.choice(sorted(living))]
                longer = embedded(replace(old, content=f"{old.content} more"), chance.randrange(99))
                filled.update([Change(longer, old.version)])
                [living[old.id]] = filled.get([old.id])
        if number % 6:
            continue
        packs |= {*held(filled)}
        seen = answers(filled)
        with filled.database.writing() as connection:
            kept = connection.execute("SELECT * FROM packed").fetchall()
            connection.execute("DELETE FROM packed")
        assert answers(filled) == seen
        with filled.database.writing() as connection:
            connection.executemany("INSERT INTO packed VALUES(?, ?, ?, ?)", kept)
    assert len(packs) > 3


def test_a_store_of_the_eighth_format_is_packed_when_it_is_opened(filled: SqliteBackend) -> None:
    before = answers(filled)
    with filled.database.writing() as connection:
        for what in ("more", "less", "elsewhere"):
            connection.execute(f"DROP TRIGGER a_record_{what}")
        for what in ("packed", "rounded", "counts"):
            connection.execute(f"DROP TABLE {what}")
        connection.execute("PRAGMA user_version=8")
    filled.close()
    with closing(SqliteBackend(where(filled))) as backend:
        assert len(held(backend)) == 1
        assert answers(backend) == before
        assert backend.count(Filter("alice")) == len(backend.list(Filter("alice"), limit=99)) == 30


@pytest.mark.parametrize("damage", [b"", b"\xff" * 400, b"\x02" + b"\0" * 7 + b"{}"])
def test_a_damaged_value_is_told_and_the_entries_are_read(
    filled: SqliteBackend, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    before = answers(filled)
    with filled.database.writing() as connection:
        connection.execute("UPDATE packed SET data = ?", (damage,))
    assert answers(filled) == before
    assert "a packed index is damaged" in caplog.text


@pytest.mark.parametrize("damage", [b"", b"\0" * 400])
def test_where_rounded_vectors_are_damaged_the_vectors_are_read(
    filled: SqliteBackend, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    before = answers(filled)
    with filled.database.writing() as connection:
        connection.execute("UPDATE rounded SET data = ?", (damage,))
    assert answers(filled) == before
    assert "packed vectors are damaged" in caplog.text
    filled.write([made(number) for number in range(30, 60)])  # packs anew, without reading the damage
    caplog.clear()
    assert len(answers(filled)[ALIKE]) > len(before[ALIKE])


def test_rounded_vectors_follow_an_embedder_that_changes(filled: SqliteBackend) -> None:
    every = [each for each in filled.list(Filter("alice"), limit=99) if each.layer != "history"]
    for number, each in enumerate(every):
        anew = replace(embedded(each, number), embedder="newer")
        filled.update([Change(anew, each.version)] if anew.vector is not None else [])
    with filled.database.reading() as connection:
        packed_now = connection.execute("SELECT sum(size) FROM rounded WHERE embedder = 'newer'").get
    assert packed_now >= FEW


def test_nothing_of_what_was_erased_is_packed(filled: SqliteBackend) -> None:
    [gone] = [each for each in filled.list(Filter("alice"), limit=99) if "number7 " in each.content]
    assert any(b"number7" in value for value in held(filled))
    filled.erase_records([gone.id], user_id="alice", at=9e9)
    assert held(filled)
    assert not any(b'"number7"' in value for value in held(filled))
    filled.erase("alice", at=9e9)
    assert not held(filled)
    with filled.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM rounded").get == 0


def test_records_are_counted_as_they_change(filled: SqliteBackend) -> None:
    """The counts that are kept beside those that are counted, by every filter that they can tell."""
    first, second, third, *_ = filled.list(Filter("alice"), limit=99)
    moved = replace(first, kind="domain-facts", namespace=("domain_facts", "alice"))
    filled.write([tea("of another user", user="bob")])
    filled.update([Change(moved, 1)])
    filled.delete([second.id])
    filled.erase_records([third.id], user_id="alice", at=9e9)
    filters = [
        Filter(user, families=families, kinds=kinds, statuses=statuses)
        for user in ("alice", "bob", None)
        for families in (None, ("user_profile",), ("domain_facts", "user_profile"))
        for kinds in (None, ("user-profile",))
        for statuses in (None, ("active",), ("deleted", "stale"))
    ]
    assert [filled.count(each) for each in filters] == [len(filled.list(each, limit=99)) for each in filters]
    filled.erase("alice", at=9e9)
    with filled.database.reading() as connection:
        left = connection.execute("SELECT DISTINCT user_id FROM counts JOIN namespaces USING (namespace)")
        assert [*left] == [("bob",)]
        assert connection.execute("SELECT count(*) FROM counts").get == 1


def test_a_search_without_time_for_all_vectors_goes_by_words_and_the_next_ones_read_on(
    filled: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Query("green tea", Filter("alice"), tuple(terms("green tea")), ASKED, "test", now=9e9)
    by_words = filled.search(replace(asked, vector=None, embedder=None), limit=99)
    with closing(SqliteBackend(where(filled), read_only=True)) as fresh:
        seconds = iter(
            [1.0, 0.9] + 9 * [0.3, 1.0, 0.9]
        )  # of each search: all of it, enough for a chunk, no more
        monkeypatch.setattr("supervisor_memory.stores.sqlite.store.seconds_left", lambda: next(seconds))
        late = fresh.search(asked, limit=99)
        assert isinstance(late, ByWords)
        assert late.degraded
        assert [hit.record.content for hit in late] == [hit.record.content for hit in by_words]
        searches = [fresh.search(asked, limit=99) for _ in range(6)]
    assert isinstance(searches[0], ByWords)
    assert not searches[-1].degraded
    assert any("cosine" in hit.parts for hit in searches[-1])
    assert not any("cosine" in hit.parts for hit in late)


def test_a_note_says_that_vectors_were_not_read_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="hashing", queue_worker=False)
    with SupervisorMemory(settings) as memory:
        for number in range(2 * FEW):
            memory.write(f"Tea number {number} is green.", user_id="alice")
    with SupervisorMemory(settings) as memory:
        hasty = iter([1.0] + 99 * [0.1])
        monkeypatch.setattr("supervisor_memory.stores.sqlite.store.seconds_left", lambda: next(hasty))
        hits = memory.search("Which tea is green?", user_id="alice")
        assert hits
        assert hits.degraded
        assert "without the vectors: not-read-in-time" in hits.notes
        monkeypatch.undo()
        again = memory.search("Which tea is green?", user_id="alice")
        assert not again.degraded
