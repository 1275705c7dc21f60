"""What a search may ask and what it finds: which records are meant, any text, no text, much text."""

import asyncio
import json
import os
import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Hit, Hits
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import tea
from tests import programs
from tests.cases import every_case
from tests.opened import EACH, opened

QUERIES = int(os.environ.get("SEARCH_QUERIES", "120"))
"""How many random questions each store is asked; `make slow` asks 50,000."""
MEGABYTE = 1_000_000
DAY = 86_400
SETTINGS = Settings(embedding_model="hashing")


class Alike(HashingEmbedder):
    """Another embedder, whose vectors have the same dimension."""

    @property
    def fingerprint(self) -> str:
        return f"other-{super().fingerprint}"


@pytest.fixture(params=EACH)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        yield SupervisorMemory(SETTINGS, backend=backend)


def texts(hits: Hits) -> list[str]:
    return [hit.record.content for hit in hits]


# Which records are meant


@pytest.fixture
def launches(memory: SupervisorMemory) -> SupervisorMemory:
    """Forty records that are more like the question than the two that are meant."""
    memory.add_many(
        [f"The launch window, launch {n}, is the launch of May." for n in range(40)], user_id="ada"
    )
    memory.write(
        "发射窗口: rockets go up in June.",
        user_id="ada",
        kind="experience",
        metadata={"project": "阿波罗", "crew": 3, "tags": ["launch", "发射"]},
        created_at=datetime(2025, 1, 31, 23, 30),
    )
    memory.write(
        "Of the launch nothing else is known.",
        user_id="ada",
        kind="identity",
        metadata={"project": "gemini", "crew": True, "tags": ["launch"]},
        created_at=datetime(2025, 2, 1),
    )
    return memory


JUNE, ELSE = "发射窗口: rockets go up in June.", "Of the launch nothing else is known."


MEANT: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "experience"}, [JUNE]),
    ({"kind": ["identity", "experience"]}, [ELSE, JUNE]),
    ({"tags": "launch"}, [ELSE, JUNE]),
    ({"tags": ["发射", "launch"]}, [JUNE]),
    ({"metadata": {"project": "阿波罗"}}, [JUNE]),
    ({"metadata": {"project": ["阿波罗", "gemini"]}}, [ELSE, JUNE]),
    ({"metadata": {"crew": 3.0}}, [JUNE]),
    ({"metadata": {"crew": True}}, [ELSE]),
    ({"metadata": {"crew": [1, "3"]}}, []),
    ({"metadata": {"project": "gemini"}, "tags": "发射"}, []),
    ({"since": "2025-01-31", "until": "2025-01-31"}, [JUNE]),
    ({"until": date(2025, 1, 31)}, [JUNE]),
    ({"since": datetime(2025, 2, 1), "until": datetime(2025, 2, 1, 0, 1)}, [ELSE]),
    ({"until": "2025-02-01T00:00"}, [JUNE]),
    ({"until": datetime(2025, 2, 1).timestamp()}, [JUNE]),
    ({"until": f"{datetime(2025, 2, 1).timestamp():.3f}"}, [JUNE]),
    ({"until": datetime(2025, 2, 5, tzinfo=UTC)}, [ELSE, JUNE]),
    ({"until": "2025-02-05T12:00:00+08:00", "kind": None}, [ELSE, JUNE]),
]


def test_only_the_records_that_are_meant_are_found_however_many_are_more_like_the_question(
    launches: SupervisorMemory,
) -> None:
    for where, expected in MEANT:
        found = launches.search("launch window of May", user_id="ada", where=where, threshold=0, limit=2)
        assert sorted(texts(found)) == sorted(expected), where
        assert sorted(texts(launches.search("", user_id="ada", where=where, limit=2))) == sorted(expected)
        listed = launches.get_all(user_id="ada", where=where)
        assert sorted(record.content for record in listed) == sorted(expected)


def test_no_restriction_is_no_restriction(launches: SupervisorMemory) -> None:
    everything = launches.get_all(user_id="ada", limit=200)
    unrestricted: list[dict[str, Any] | None]
    unrestricted = [None, {}, {"kind": None, "tags": None, "since": None}, {"metadata": {}}]
    for where in unrestricted:
        assert launches.get_all(user_id="ada", limit=200, where=where) == everything


def test_a_filter_never_leads_to_another_user(launches: SupervisorMemory) -> None:
    where: dict[str, Any] = {"tags": "launch", "metadata": {"project": ["阿波罗", "gemini"]}}
    assert not launches.search("launch", user_id="bo", where=where, threshold=0)
    assert not launches.search("", user_id="bo", where=where)
    assert launches.get_all(user_id="bo", where=where) == []


# No question


def test_a_question_that_asks_nothing_shows_what_is_pinned_and_then_what_is_new(
    memory: SupervisorMemory,
) -> None:
    def said(text: str, day: int, **metadata: Any) -> None:
        memory.write(text, user_id="ada", kind="experience", metadata=metadata, created_at=day * DAY)

    said("pinned long ago", 1, pinned=True)
    said("pinned later", 2, pinned=True)
    for text, pinned in (("a walk", False), ("the harbour", 1), ("some rain", "true"), ("old bread", None)):
        said(text, 3, pinned=pinned)
    said("the newest of all", 9)
    said("just before", 8)
    memory.write("of somebody else", user_id="bo", metadata={"pinned": True})
    for query in ("", " ", "\n\t ", "\u3000"):
        found = memory.search(query, user_id="ada", limit=4, threshold=1.0)
        assert texts(found) == ["pinned later", "pinned long ago", "the newest of all", "just before"]
        assert [hit.parts for hit in found] == [{"pinned": 1.0}] * 2 + [{}] * 2
    assert texts(memory.search("", user_id="ada", limit=1)) == ["pinned later"]
    assert len(memory.search("", user_id="ada", limit=99)) == 8
    assert len(memory.search("", user_id="ada")) == memory.settings.top_k


def test_what_has_expired_takes_no_place_where_nothing_is_asked(memory: SupervisorMemory) -> None:
    memory.write("still here", user_id="ada", kind="experience", created_at=DAY)
    short = {"ttl": 1, "pinned": True}
    for n in range(30):
        memory.write(f"over {n}", user_id="ada", kind="experience", metadata=short, created_at=2 * DAY + n)
    assert texts(memory.search("", user_id="ada", limit=3)) == ["still here"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("query", ["", "tea", "茶", "%", "\ud800"])
def test_a_user_of_whom_nothing_or_one_thing_is_known_can_be_asked_for(
    memory: SupervisorMemory, query: str
) -> None:
    for threshold in (None, 0.0, 1.0):
        found = memory.search(query, user_id="ada", threshold=threshold, where={"tags": "x"})
        assert (len(found), found.degraded) == (0, False)
    memory.write("绿茶 is a tea", user_id="ada", metadata={"tags": ["x"]})
    assert texts(memory.search(query, user_id="ada", threshold=0.0, where={"tags": "x"})) == ["绿茶 is a tea"]


# Any question


def made_up(number: int) -> str:
    """A random text: of all of Unicode, of what query languages mean something by, or of both."""
    chance = random.Random(number)
    language = (
        '"',
        "*",
        "(",
        ")",
        "^",
        "+",
        "-",
        ":",
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        "{tea}",
        "tea",
        "茶",
        "'",
        ";",
    )
    pieces = [
        chance.choice(language)
        if chance.random() < 0.5
        else "".join(chr(chance.randrange(chance.choice((0x80, 0x3000, 0x9FFF, 0x110000)))) for _ in range(4))
        for _ in range(chance.randrange(12))
    ]
    return chance.choice(("", " ")).join(pieces)


@pytest.mark.parametrize("store", ["in_memory", "sqlite", "qdrant"])
def test_no_text_breaks_a_search(store: str, tmp_path: Path) -> None:
    with opened(store, tmp_path) as backend:
        memory = SupervisorMemory(SETTINGS, backend=backend)
        memory.write("绿茶 is a tea", user_id="ada")
        memory.write("Delayed means more than 15 minutes late.", user_id="ada")
        memory.write("secret tea of somebody else", user_id="bo")
        for number in range(QUERIES):
            query = made_up(number)
            found = memory.search(query, user_id="ada", threshold=0, limit=1 + number % 3)
            assert (len(found), found.degraded, found.notes) == (min(2, 1 + number % 3), False, ()), repr(
                query
            )
            assert {hit.record.user_id for hit in found} == {"ada"}


LONG = {
    "one word": "x" * MEGABYTE,
    "words": "tea is hot " * (MEGABYTE // 11),
    "one run of Chinese": "绿茶很好喝" * (MEGABYTE // 5),
    "one character": "茶" * MEGABYTE,
    "many characters": "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))) * (MEGABYTE // 20_000),
    "quotes": '"' * MEGABYTE,
    "surrogates": "\ud800" * MEGABYTE,
    "spaces, then words": " " * (MEGABYTE - 3) + "tea",
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", LONG)
def test_a_million_characters_are_read_to_where_the_notes_say(memory: SupervisorMemory, query: str) -> None:
    memory.write("green tea is hot", user_id="ada")
    memory.write("绿茶很好喝", user_id="ada")
    found = memory.search(LONG[query], user_id="ada", threshold=0)
    assert found.notes == (f"the question has {len(LONG[query]):,} characters; the first 8,000 were read",)
    assert not found.degraded
    assert len(found) == 2
    if query in ("words", "one run of Chinese"):
        assert texts(found)[0] == ("green tea is hot" if query == "words" else "绿茶很好喝")


def test_a_note_tells_of_a_long_question_that_found_nothing(memory: SupervisorMemory) -> None:
    for known in (0, 1):
        found = memory.search("no such word " * 1_000, user_id="ada")
        assert len(found) == 0
        assert found.notes[0] == "the question has 13,000 characters; the first 8,000 were read", known
        memory.write("绿茶很好喝", user_id="ada")


# What others wrote


def test_vectors_of_another_embedder_are_not_compared_and_words_find_until_all_are_embedded_anew(
    tmp_path: Path,
) -> None:
    for name in ("in_memory", "sqlite", "qdrant"):
        with opened(name, tmp_path / name) as backend:
            before = SupervisorMemory(SETTINGS, backend=backend, embedder=HashingEmbedder())
            after = SupervisorMemory(SETTINGS, backend=backend, embedder=Alike())
            before.write("green tea from Uji", user_id="ada")
            after.write("coffee from Santos", user_id="ada")
            found = {h.record.content: h.parts for h in after.search("green tea", user_id="ada", threshold=0)}
            assert "cosine" in found["coffee from Santos"]
            assert not {"cosine", "sim"} & set(found["green tea from Uji"])
            assert texts(after.search("green tea", user_id="ada")) == ["green tea from Uji"]
            assert after.reembed().embedded == 1
            assert "cosine" in after.search("green tea", user_id="ada")[0].parts


OTHER = """
import json, sys
from supervisor_memory import SupervisorMemory
memory = SupervisorMemory.from_env()
for line in sys.stdin:
    verb, values = json.loads(line)
    found = getattr(memory, verb)(**values)
    print(json.dumps([hit.record.content for hit in found] if verb == "search" else str(found)), flush=True)
"""


def test_what_one_process_changes_or_deletes_the_next_search_of_another_sees(tmp_path: Path) -> None:
    settings = {"MEMORY_BACKEND": "sqlite", "MEMORY_PATH": str(tmp_path), "EMBEDDING_MODEL": "hashing"}
    where: dict[str, Any] = {"metadata": {"state": "open"}}
    with (
        SupervisorMemory(SETTINGS, backend=SqliteBackend(tmp_path)) as memory,
        programs.start(
            "-c", OTHER, env=programs.environment(**settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):

        def other(verb: str, **values: Any) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps([verb, values]), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        id_ = memory.write("The green tea is hot.", user_id="ada", metadata={"state": "open"}).id
        asked: dict[str, Any] = {"query": "green tea", "user_id": "ada"}
        assert other("search", **asked) == other("search", **asked, where=where) == ["The green tea is hot."]
        memory.update(id_, content="The green tea is cold.")
        cold = ["The green tea is cold."]
        assert other("search", **asked) == other("search", **asked, where=where) == cold
        other("update", id=id_, content="The green tea is lukewarm.", metadata={"state": "closed"})
        assert texts(memory.search(**asked)) == ["The green tea is lukewarm."]
        assert texts(memory.search(**asked, where=where)) == []
        other("delete", id=id_)
        for question in ("green tea", ""):
            assert texts(memory.search(question, user_id="ada")) == []
        memory.write("A cup of green tea.", user_id="ada")
        assert other("search", **asked) == ["A cup of green tea."]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=30) == 0


# What hits look like


def test_hits_are_short_where_they_are_looked_at() -> None:
    many = Hits(tuple(Hit(tea(f"record {n} " + "茶" * 200), 0.9 - n / 10) for n in range(5)))
    assert len(repr(many)) < 200
    assert repr(many).startswith("<Hits 5 found: 0.90 'record 0 茶茶")
    assert repr(many).endswith("; 2 more>")
    assert repr(Hits()) == "<Hits 0 found>"
    assert str(Hits()) == "nothing found"
    worse = Hits((Hit(tea("green tea"), 0.5, {"relevance": 0.25}),), degraded=True, notes=("without it",))
    assert repr(worse) == "<Hits 1 found, degraded: 0.50 'green tea'; without it>"
    assert str(worse) == "0.50 'green tea' (relevance 0.25)\nwithout it"


def test_a_report_answers_for_the_quarter_that_it_names_not_for_the_one_it_was_written_in(
    memory: SupervisorMemory,
) -> None:
    reports = {"Q1": datetime(2026, 4, 15), "Q2": datetime(2026, 7, 15), "Q3": datetime(2026, 10, 15)}
    for quarter, written in reports.items():
        text = f"Net revenue in {quarter} 2026 was {len(quarter)}.{written.month} million euros."
        memory.write(text, user_id="ada", created_at=written)
    for quarter in reports:
        found = memory.search(f"What was net revenue in {quarter} 2026?", user_id="ada")
        assert f" {quarter} " in found[0].record.content


# --- layers, sessions and agents


@pytest.mark.parametrize("store", EACH)
def test_what_was_said_is_found_by_its_layer_its_session_and_its_agent(store: str, tmp_path: Path) -> None:
    with opened(store, tmp_path) as backend:
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
        brought, said = "Tea is served at noon.", "The tea is hot."
        memory.write(brought, user_id="ada", session_id="ann@example.com", agent_id="analyst")
        memory.remember(said, Scope("ada", session_id="s1"))
        memory.remember("The tea is cold.", Scope("bob", session_id="s1"))

        def found(**asked: Any) -> list[str]:
            hits = memory.search("tea", user_id="ada", threshold=0, **asked)
            same = asyncio.run(memory.asearch("tea", user_id="ada", threshold=0, **asked))
            assert {hit.record.id for hit in same} == {hit.record.id for hit in hits}
            return sorted(hit.record.content for hit in hits)

        def kept(**where: Any) -> list[str]:
            return [record.content for record in memory.get_all(user_id="ada", where=where)]

        assert found() == [brought]
        assert found(layers=["history"]) == [said]
        assert found(layers=["abstract", "summary", "history"]) == [brought, said]
        assert found(layers=["abstract"], families=["session_messages"]) == []
        assert found(where={"session": "s1"}) == kept(session="s1") == [said]
        assert found(where={"agent": "analyst"}) == kept(agent="analyst") == [brought]
        assert kept(session="s1", agent="analyst") == kept(agent="Analyst") == kept(session="s") == []
        assert kept(session="ann@example.com") == [brought]


@every_case("layers", ["history", [], ["past"], ["history", "past"]])
def test_what_is_no_layer_is_refused(layers: Any) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    with pytest.raises(InvalidContent, match="abstract, summary, history"):
        memory.search("tea", user_id="ada", layers=layers)


def test_the_id_of_a_session_is_asked_for_as_it_is_where_texts_are_redacted() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none", redact="email"))
    memory.write("Tea is served at noon.", user_id="ada", session_id="ann@example.com")
    assert len(memory.get_all(user_id="ada", where={"session": "ann@example.com"})) == 1
