"""MemoryOS: heat, topics and tiers by the published code, over a store and with a scripted model."""

import json
from dataclasses import replace

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.rows import Access
from supervisor_memory.model.records import TIER, Record
from supervisor_memory.recipes.memoryos import LONG, MID, PUBLISHED, SHORT, heat, joining
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.topics import KNOWLEDGE, PORTRAIT, TOPIC
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case
from tests.recipes.test_golden import golden, near
from tests.recipes.vectors import Given

SETTINGS = Settings(embedding_model="hashing", queue_worker=False)
GOLDEN = golden("memoryos")


def tagged(memory: SupervisorMemory, tag: str) -> list[Record]:
    return [record for record in memory.get_all(user_id="ada", limit=1_000) if tag in record.tags]


def tiers(memory: SupervisorMemory) -> dict[str, int]:
    found: dict[str, int] = memory.status(user_id="ada")["tiers"]
    return found


def say(
    memory: SupervisorMemory, count: int, what: str = "Crate {} holds pears.", begin: float = 0.0
) -> list[str]:
    entries = [{"content": what.format(n), "created_at": begin + n} for n in range(count)]
    return [each.id for each in memory.add_many(entries, user_id="ada", infer=False)]


def test_heat_and_what_makes_two_topics_one_are_those_of_the_published_code() -> None:
    for each in GOLDEN["heat"]:
        found = heat(each["visits"], each["pages"], each["hours"])
        assert (found, found >= PUBLISHED.checked({}).hot_from) == (near(each["heat"]), each["told"])
    for each in GOLDEN["join"]:
        found = joining(each["cosine"], each["mine"], each["theirs"])
        assert (found, found >= PUBLISHED.checked({}).joins_from) == (near(each["score"]), each["joins"])


@every_case("case", GOLDEN["short"])
def test_over_ten_pages_the_oldest_leave_short_term_memory(case: dict[str, int]) -> None:
    with SupervisorMemory(SETTINGS, recipe="memoryos") as memory:
        ids = say(memory, case["pairs"])
        memory.optimize(user_id="ada", chores=["migrate"])
        moved = {id for id in ids if memory.get(id).metadata[TIER] == MID}
        assert moved == {*ids[: case["leave"]]}
        assert tiers(memory) == {SHORT: case["pairs"] - case["leave"], MID: case["leave"], LONG: 0}


def test_the_pages_told_are_the_nearest_of_the_nearest_segments() -> None:
    told = GOLDEN["search"]
    angles = {"question": [1.0, 0.0]}
    for segment, each in told["segments"].items():
        for name, cosine in {segment: each["cosine"], **each["pages"]}.items():
            angles[f"<{name}>"] = [cosine, (1.0 - cosine**2) ** 0.5]
    given = Given(angles)
    with SupervisorMemory(SETTINGS, recipe="memoryos", embedder=given) as memory:
        names: dict[str, str] = {}
        for segment, each in told["segments"].items():
            pages = [f"<{page}>" for page in each["pages"]]
            ids = [done.id for done in memory.add_many(pages, user_id="ada", infer=False)]
            names |= dict(zip(ids, each["pages"], strict=True))
            records = [memory.get(id) for id in ids]
            mid = [replace(r, metadata={**r.metadata, TIER: MID}) for r in records]
            topic = made_from(records, f"<{segment}>", tag=TOPIC, now=memory.services.clock(), tier=MID)
            vector = given.embed_query(topic.content)
            changes = [Change(r, expects=r.version) for r in mid]
            new = replace(topic, vector=vector, embedder=given.fingerprint)
            memory.backend.batch(Commit((*changes, Change(new))))
        found = memory.search("question", user_id="ada", threshold=0.0, limit=20)
        assert [names[hit.record.id] for hit in found] == told["order"]


def test_over_the_capacity_the_segment_visited_least_goes_with_its_pages() -> None:
    told, clock = GOLDEN["evict"], FixedClock()
    with SupervisorMemory(
        SETTINGS, recipe=PUBLISHED.recipe(short=1, mid=told["capacity"]), clock=clock
    ) as memory:
        pages = {}
        for number, (name, visits) in enumerate(told["visits"].items()):
            (pages[name],) = say(memory, 1, f"Depot {name} holds pears.", begin=number * 7_200.0)
            for _ in range(visits):
                memory.backend.audit.record_access([Access("search", clock(), "ada", record_id=pages[name])])
        say(memory, 1, "The last one.", begin=99_999.0)
        memory.backend.audit.flush()
        memory.optimize(user_id="ada")
        assert len(tagged(memory, TOPIC)) == len(told["visits"])
        memory.optimize(user_id="ada")
        gone = {name for name, id in pages.items() if memory.get(id).status == "deleted"}
        assert gone == {*told["gone"]}
        assert len(tagged(memory, TOPIC)) == told["capacity"]


def test_without_a_model_an_episode_is_a_segment_that_grows_and_all_pages_are_found_at_any_time() -> None:
    with SupervisorMemory(SETTINGS, recipe="memoryos") as memory:
        pears = say(memory, 12)
        whales = say(memory, 12, "Whale {} swims by Oslo.", begin=90_000.0)
        for _ in range(2):  # before the chores have run, and after
            for what, ids in (("crate 3 pears", pears), ("whale 2 Oslo", whales)):
                found = memory.search(what, user_id="ada", threshold=0.0, limit=7)
                assert {hit.record.id for hit in found} <= {*ids}
            memory.optimize(user_id="ada")
        topics = tagged(memory, TOPIC)
        assert sorted(len(each.made_from) for each in topics) == [2, 12]
        say(memory, 3, "Whale {} has come back to Oslo.", begin=90_100.0)
        memory.optimize(user_id="ada")
        assert sorted(len(each.made_from) for each in tagged(memory, TOPIC)) == [5, 12]
        memory.delete(pears[0], user_id="ada")
        assert len(tagged(memory, TOPIC)) == 1  # a page has gone, and its segment with it
        found = memory.search("crate 3 pears", user_id="ada", threshold=0.0, limit=7)
        assert {hit.record.id for hit in found} <= {*pears[1:]}
        memory.optimize(user_id="ada")
        assert sorted(len(each.made_from) for each in tagged(memory, TOPIC)) == [5, 11]


def topic(summary: str, *keywords: str) -> str:
    return json.dumps({"topics": [{"summary": summary, "keywords": keywords}]})


def test_a_model_names_topics_and_draws_a_portrait_of_what_is_hot() -> None:
    portrait = json.dumps({"portrait": "Ada likes pears.", "knowledge": ["Crates are in Kiel."]})
    again = topic("Crates of pears again.", "pear", "crate")
    model = ScriptedModel(
        script=[topic("Pears in crates.", "pear", "crate"), portrait, portrait, again, again]
    )
    clock = FixedClock()
    recipe = PUBLISHED.recipe(short=1)
    with SupervisorMemory(SETTINGS, recipe=recipe, llm=model, clock=clock) as memory:
        say(memory, 6)
        memory.optimize(user_id="ada", chores=["migrate", "gather_topics"])
        (made,) = tagged(memory, TOPIC)
        assert (made.content, made.metadata["keywords"]) == ("Pears in crates.", ["pear", "crate"])
        assert "- Crate 4 holds pears." in model.prompts[0]
        plan = memory.optimize(user_id="ada", chores=["draw_portrait"], dry_run=True)
        assert {step.why for step in plan.steps} == {"heat 6.0, from 5", "of hot topics"}
        assert tagged(memory, PORTRAIT) == []  # the plan has asked the model, and keeps nothing
        memory.optimize(user_id="ada", chores=["draw_portrait"])
        (drawn,), (line,) = tagged(memory, PORTRAIT), tagged(memory, KNOWLEDGE)
        assert (drawn.content, line.content) == ("Ada likes pears.", "Crates are in Kiel.")
        assert tiers(memory)[LONG] == 1
        assert not memory.optimize(user_id="ada", chores=["draw_portrait"]).steps  # it counts from 0 again
        found = memory.search("Kiel crates", user_id="ada", threshold=0.0, limit=20)
        assert {drawn.id, line.id} <= {hit.record.id for hit in found}
        say(memory, 2, "Pears {} again.", begin=90_000.0)
        memory.optimize(user_id="ada", chores=["migrate", "gather_topics"])
        assert [len(each.made_from) for each in tagged(memory, TOPIC)] == [7]  # the same keywords: 1.0
