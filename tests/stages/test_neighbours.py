"""Neighbours of the first hits come in the last places, where their way is relevant, with the way told."""

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from supervisor_memory import DEFAULT, Scope, Settings, SupervisorMemory, why
from supervisor_memory.model.records import Hit, Hits, Joint, Message
from supervisor_memory.stages.post_retrieval.neighbours import add_joined
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from tests.cases import every_case

FACTS = [
    "Basket Health is built on top of fct_orders.",
    "The rows of fct_orders come out of night_job.",
    "night_job was written by Ilse Brandt.",
    *(f"Room {n} has {n + 4} chairs and a window." for n in range(20)),
]
QUESTION = "What is Basket Health built on?"


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        for fact in FACTS:
            memory.write(fact, user_id="ada")
        yield memory


def texts(hits: Hits) -> list[str]:
    return [hit.record.content for hit in hits]


def test_a_hit_leads_to_the_facts_behind_it(memory: SupervisorMemory) -> None:
    assert texts(memory.search(QUESTION, user_id="ada")) == FACTS[:3]


def test_a_chinese_name_joins_two_facts_and_common_words_do_not() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.write("晨露现在交给尹航维护了。", user_id="ada")
        memory.write("尹航六月来的，读的是江南大学。", user_id="ada")
        for floor in "二三四五六七八九":
            memory.write(f"{floor}楼现在每天早上由保安维护秩序。", user_id="ada")
        last = memory.search("晨露交给谁了？", user_id="ada")[1]
    assert (last.record.content, last.names) == ("尹航六月来的，读的是江南大学。", ("尹航",))


def test_the_nearest_of_each_hit_comes_first() -> None:
    others = [{"content": f"Kim_{n} lives in Oslo"} for n in range(4)]
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.add_many([{"content": "The rota of May"}, *others], user_id="bo", infer=False)
        known = {record.content: record for record in memory.get_all(user_id="bo")}
        worths = zip(others, (0.9, 0.89, 0.88, 0.8), ("first", "first", "first", "second"), strict=True)
        near = Hits(
            tuple(
                Hit(known[each["content"]], 0.0, {"walk": worth}, path=(Joint(hit, "Kim"),))
                for each, worth, hit in worths
            )
        )
        memory.backend.related = lambda *_, **__: near  # type: ignore[attr-defined]
        told = texts(memory.search("rota of May", user_id="bo", limit=5))
    assert told[1:] == [f"Kim_{n} lives in Oslo" for n in (0, 3)]


def test_without_the_operator_they_are_not_found(memory: SupervisorMemory) -> None:
    without = tuple(each for each in DEFAULT.post_retrieval if each is not add_joined)
    other = SupervisorMemory(
        Settings(embedding_model="none"),
        backend=memory.backend,
        recipe=replace(DEFAULT, post_retrieval=without),
    )
    assert texts(other.search(QUESTION, user_id="ada")) == FACTS[:1]


def test_the_way_is_told(memory: SupervisorMemory) -> None:
    first, second, third = memory.search(QUESTION, user_id="ada")
    assert (first.path, first.reason) == ((), "kept")
    assert (second.names, second.reason) == (("fct_orders",), "joined")
    assert third.names == ("fct_orders", "night_job")
    assert third.path[1].record_id == second.record.id
    assert "joined to a hit through fct_orders → night_job" in why(third.parts, third.names)


def test_relevance_falls_along_the_way_and_the_score_is_never_above_the_hits_before(
    memory: SupervisorMemory,
) -> None:
    hits = memory.search(QUESTION, user_id="ada")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    relevances = [hit.parts["relevance"] for hit in hits]
    assert relevances == sorted(relevances, reverse=True)


def test_a_threshold_reads_the_relevance_of_the_way(memory: SupervisorMemory) -> None:
    strict = memory.search(QUESTION, user_id="ada", threshold=0.99)
    assert texts(strict) == FACTS[:1]


def test_the_note_holds_the_whole_way(memory: SupervisorMemory) -> None:
    note = memory.preview(QUESTION, Scope("ada"))
    assert all(fact.rstrip(".") in note.text for fact in FACTS[:3])


def test_what_the_reader_sees_anyway_is_not_added(memory: SupervisorMemory) -> None:
    seen = [Message("user", f"{FACTS[1]} {QUESTION}")]
    note = memory.recall(seen, Scope("ada"), query=QUESTION)
    assert FACTS[1] not in [hit.record.content for hit in note.hits]


def test_every_candidate_is_accounted_for_once(memory: SupervisorMemory) -> None:
    hits = memory.search("Which room has a window, and what of Basket Health?", user_id="ada", explain=True)
    ids = [each.hit.record.id for each in hits.considered]
    assert len(ids) == len(set(ids))
    assert {each.reason for each in hits.considered if each.hit.path} <= {"joined"}


def test_the_first_three_places_are_for_no_neighbour(memory: SupervisorMemory) -> None:
    assert texts(memory.search(QUESTION, user_id="ada", limit=3)) == FACTS[:1]
    assert texts(memory.search(QUESTION, user_id="ada", limit=4)) == FACTS[:2]


def test_hits_are_told_in_the_order_of_their_scores() -> None:
    near = {"Kim_0 lives in Oslo": 0.6, "Kim_1 has a boat": 0.7, "Kim_1 sails": 0.65}
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.add_many([{"content": text} for text in ("The rota of May", *near)], user_id="bo", infer=False)
        known = {record.content: record for record in memory.get_all(user_id="bo")}
        hits = [
            Hit(known[text], 0.0, {"walk": walk}, path=(Joint(text[:5], "Kim"),))
            for text, walk in near.items()
        ]
        memory.backend.related = lambda *_, **__: Hits(tuple(hits))  # type: ignore[attr-defined]
        found = memory.search("rota of May", user_id="bo", limit=10)
    scores = [hit.score for hit in found]
    assert len(found) == 4
    assert scores == sorted(scores, reverse=True)


def test_a_neighbour_takes_the_place_of_none_that_is_more_relevant() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        for n in range(5):
            memory.add_many([{"content": f"The rota of week {n} names Kim_{n}"}], user_id="bo", infer=False)
        memory.add_many([{"content": "Kim_0 lives in Oslo"}], user_id="bo", infer=False)
        hits = memory.search("rota of week names", user_id="bo", limit=5)
        assert not any(hit.path for hit in hits)


def test_a_hit_that_is_a_neighbour_too_keeps_its_place_before_one_that_is_none() -> None:
    weeks = [{"content": f"The rota of week {n} names Kim_{n}{', on holidays' * (n < 3)}"} for n in range(5)]
    others = [{"content": "Kim_0 lives in Oslo"}, {"content": "Kim_0 has a boat"}]
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.add_many([*weeks, *others], user_id="bo", infer=False)
        known = {record.content: record for record in memory.get_all(user_id="bo", limit=7)}
        memory.backend.related = lambda *_, **__: Hits()  # type: ignore[attr-defined]
        first, second, third, fourth, last = memory.search(
            "holidays rota of week names", user_id="bo", limit=5
        )
        ways = ((last.record, 0.95), *((known[each["content"]], 0.9) for each in others))
        path = (Joint(first.record.id, "Kim_0"),)
        near = Hits(tuple(Hit(record, 0.0, {"walk": walk}, path=path) for record, walk in ways))
        memory.backend.related = lambda *_, **__: near  # type: ignore[attr-defined]
        told = texts(memory.search("holidays rota of week names", user_id="bo", limit=5))
    assert last.parts["relevance"] == fourth.parts["relevance"] < 0.9 < third.parts["relevance"]
    assert told == [
        *texts(Hits((first, second, third))),
        last.record.content,
        "Kim_0 lives in Oslo",
    ]


def test_nothing_is_walked_where_no_neighbour_could_take_a_place() -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        memory.add_many(
            [{"content": f"The rota of week {n} names Kim_{n}"} for n in range(5)], user_id="bo", infer=False
        )
        memory.add_many([{"content": "Kim_4 lives in Oslo"}], user_id="bo", infer=False)
        walks: list[object] = []
        walk = memory.backend.related  # type: ignore[attr-defined]
        memory.backend.related = lambda *args, **options: walks.append(args) or walk(*args, **options)  # type: ignore[attr-defined, func-returns-value]
        full = memory.search("rota of week names", user_id="bo", limit=3)
        assert (len(full), walks) == (3, [])
        free = memory.search("rota of week names", user_id="bo", limit=10)
        assert len(walks) == 1
        assert "Kim_4 lives in Oslo" in texts(free)


def test_a_store_that_cannot_walk_looks_among_what_was_found_and_says_so(memory: SupervisorMemory) -> None:
    class NoWalk:
        related = None

        def __getattr__(self, name: str) -> object:
            return getattr(memory.backend, name)

    with SupervisorMemory(Settings(embedding_model="none"), backend=NoWalk()) as other:  # type: ignore[arg-type]
        hits = other.search(QUESTION, user_id="ada", explain=True)
    assert texts(hits) == FACTS[:1]
    assert any("this store cannot walk" in note for note in hits.notes)


@every_case("told_of", [lambda walk: walk, functools.wraps(InMemoryBackend.related)])
def test_a_walk_that_takes_the_place_of_ours_has_a_thread_of_its_own_again(
    told_of: Callable[[Callable[..., Hits]], Callable[..., Hits]],
) -> None:
    class Hangs(InMemoryBackend):
        @told_of
        def related(self, *_: object, **__: object) -> Hits:
            released.wait(60)
            return Hits()

    released = threading.Event()
    settings = Settings(embedding_model="none", search_timeout_ms=1_500)
    with SupervisorMemory(settings, backend=Hangs()) as memory:
        for fact in FACTS:
            memory.write(fact, user_id="ada")
        hits = memory.search(QUESTION, user_id="ada")
        released.set()
    assert (texts(hits), hits.degraded) == (FACTS[:1], True)


@every_case("parts", [{}, {"walk": "near"}, {"walk": None}, {"walk": float("nan")}, {"walk": -1.0}])
def test_a_graph_database_that_says_not_how_near_is_told_so_and_takes_no_hit_away(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture, parts: dict[str, float]
) -> None:
    class Bare:
        def related(self, *_: object, **__: object) -> Hits:
            return Hits((Hit(memory.get_all(user_id="ada")[0], 0.9, parts),))

        def __getattr__(self, name: str) -> object:
            return getattr(memory.backend, name)

    with SupervisorMemory(Settings(embedding_model="none"), backend=Bare()) as other:  # type: ignore[arg-type]
        hits = other.search(QUESTION, user_id="ada")
    assert (texts(hits), hits.degraded) == (FACTS[:1], True)
    assert "without a part 'walk' in [0, 1]" in caplog.text


def test_a_graph_database_that_hangs_takes_no_hit_away(memory: SupervisorMemory) -> None:
    class Hangs:
        def related(self, *_: object, **__: object) -> Hits:
            released.wait(60)
            return Hits()

        def __getattr__(self, name: str) -> object:
            return getattr(memory.backend, name)

    released = threading.Event()
    settings = Settings(embedding_model="none", search_timeout_ms=1_500)
    with SupervisorMemory(settings, backend=Hangs()) as other:  # type: ignore[arg-type]
        found, note = other.search(QUESTION, user_id="ada"), other.recall([], Scope("ada"), query=QUESTION)
        released.set()
    for hits in (found, note.hits):
        assert (texts(hits), hits.degraded) == (FACTS[:1], True)
        assert "without the relations: DeadlineExceeded" in hits.notes
