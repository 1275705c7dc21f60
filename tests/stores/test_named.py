"""Records are found by the names in them, in each store the same; what is erased is read no more."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query
from supervisor_memory.reading.relations import around

USERS = ("ada", "bo", "cy")
PEOPLE = ("Nils Berg", "Ilse Brandt", "Olga Stern", "张教授", "李明")
FRAMES = (
    "{a} reads from {b}.",
    "{a} is maintained by {p}.",
    "{p} wrote {a} and checks {b} in June.",
    "The {a} board, also called {b}, is shown to {p}.",
    "{a} 由 {p} 维护。",
    "{p}每周检查 {a} 和 {b}。",
    "The canteen of {p} opens at noon.",
)


@pytest.fixture(params=["in_memory", "json", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(backend=request.param, path=tmp_path, embedding_model="none")) as memory:
        yield memory


def filled(memory: SupervisorMemory, dice: random.Random, *, facts: int, things: int = 14) -> None:
    names = [f"tab_{number}" for number in range(things)]
    for number in range(facts):
        a, b = dice.sample(names, 2)
        text = dice.choice(FRAMES).format(a=a, b=b, p=dice.choice(PEOPLE))
        memory.add_many([{"content": text, "kind": "domain-facts"}], user_id=USERS[number % len(USERS)])
    for user in USERS:
        told = memory.get_all(user_id=user)
        memory.delete(told[0].id, user_id=user)
        memory.update(told[1].id, content=f"{names[0]} was moved by {PEOPLE[0]}.", user_id=user)


def query(memory: SupervisorMemory, user: str) -> Query:
    return Query("", Filter(user_id=user), now=memory.services.clock())


def test_a_name_finds_all_records_with_its_words_and_no_others(memory: SupervisorMemory) -> None:
    filled(memory, random.Random(5), facts=60)
    backend = memory.services.backend
    for user in USERS:
        own = memory.get_all(user_id=user, limit=1_000)
        for name in ("tab_3", "Nils Berg", "张教授", "canteen", "tab_0 board", "nobody", ""):
            wanted = set(terms(name))
            held = {each.id for each in own if wanted and wanted <= set(terms(each.content))}
            [(count, found)] = backend.naming([terms(name)], query(memory, user), limit=100)  # type: ignore[attr-defined]
            assert ({each.id for each in found}, count) == (held, len(held))
            [(_, newest)] = backend.naming([terms(name)], query(memory, user), limit=2)  # type: ignore[attr-defined]
            assert list(newest) == list(found[:2])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_by_names_is_what_reading_everything_finds(seed: int) -> None:
    dice = random.Random(seed)
    memory = SupervisorMemory(Settings(embedding_model="none"))
    filled(memory, dice, facts=90, things=10 + 10 * seed)
    for user in USERS:
        own = memory.get_all(user_id=user, limit=1_000)
        for name in ("tab_0", "tab_1", "Nils Berg", "张教授", "李明", "canteen", own[3].id):
            goal = dice.choice(["tab_2", "Olga Stern", "tab_9"])
            told = memory.relations(name, user_id=user, to=goal, limit=1_000).to_dict()
            origin = next((each for each in own if each.id == name), None)
            read = around(own, name, to=goal, limit=1_000, offset=0, origin=origin).to_dict()
            assert told == read


def test_a_name_of_ten_kilobytes_is_kept_and_leads_nowhere(memory: SupervisorMemory) -> None:
    long = "tab_" + "x" * 10_240
    memory.add_many([f"{long} reads from tab_1.", "tab_1 is maintained by Nils Berg."], user_id="ada")
    hits = memory.search("What reads from tab_1?", user_id="ada")
    assert len(hits) == 2
    told = memory.relations("tab_1", user_id="ada", to="Nils Berg")
    assert [step.destination.name for step in told.path] == ["Nils Berg"]
    assert all(len(each.thing.name) < 100 for each in told.neighbours)


def test_what_is_erased_while_it_is_read_is_not_read_after(memory: SupervisorMemory) -> None:
    filled(memory, random.Random(8), facts=60)
    failed: list[BaseException] = []
    is_over = threading.Event()

    def read() -> None:
        try:
            while not is_over.is_set():
                memory.relations("tab_1", user_id="ada", to="Nils Berg")
                memory.search("Who maintains tab_1?", user_id="ada")
        except BaseException as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    memory.erase(user_id="ada", confirm=True)
    told = memory.relations("tab_1", user_id="ada", to="Nils Berg")
    is_over.set()
    for each in readers:
        each.join()
    assert failed == []
    assert (told.names, told.path, dict(told.records)) == ((), (), {})
    assert memory.relations("tab_1", user_id="bo").names
