"""MemGPT: overflow, core memory and pages by the published code, and a scripted model that looks up."""

import json
from datetime import datetime
from typing import Any

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY, TIER, Message, Record, Scope
from supervisor_memory.recipes.memgpt import OVERFLOW, PUBLISHED, overflowing
from supervisor_memory.recipes.memgpt_agent import CORE, PAGED, SAID, containing
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.ports import record
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case
from tests.recipes.test_golden import golden
from tests.recipes.vectors import Given

SETTINGS = Settings(embedding_model="none", queue_worker=False)
GOLDEN, AGENT = golden("memgpt"), golden("memgpt_agent")


@every_case("case", GOLDEN["overflow"])
def test_as_many_messages_are_summed_up_as_in_the_published_code(case: dict[str, Any]) -> None:
    users = [place % 2 == 0 for place in range(len(case["tokens"]))]
    assert overflowing(case["tokens"], users, share=0.75, keep=3) == (case["summarised"] or 0)


def test_a_string_is_found_whatever_its_case_the_oldest_first_in_pages() -> None:
    told = GOLDEN["recall"]
    messages = [record(text, now=float(n), id=f"{n:02}") for n, text in enumerate(told["messages"])]
    for page, places in enumerate(told["pages"]):
        found = containing(messages[::-1], told["search"], page, size=5)
        assert [int(each.id) for each in found] == places
    assert not containing(messages, told["search"], len(told["pages"]), size=5)


def call(tool: str, **arguments: object) -> str:
    return json.dumps({"tool": tool, **arguments})


def test_the_archive_is_read_by_meaning_page_after_page() -> None:
    told = GOLDEN["archival"]
    angles = {f"<{name}>": (cosine, (1 - cosine**2) ** 0.5) for name, cosine in told["cosine"].items()}
    given = Given({**angles, "question": (1.0, 0.0)})
    script = [*["{}"] * 7, call("archival_memory_search", query="question", page=1), call("none")]
    model = ScriptedModel(script=script)
    with SupervisorMemory(SETTINGS, recipe="memgpt_agent", embedder=given, llm=model) as memory:
        memory.add_many([*angles], user_id="ada", infer=False)
        found = memory.search("question", user_id="ada", threshold=0.0, limit=20)
        pages = [f"<{name}>" for page in told["pages"] for name in page]
        assert [hit.record.content for hit in found][:5] == pages[:5]
        assert {hit.record.content for hit in found if hit.found == PAGED} == {*pages[5:]}
    with SupervisorMemory(SETTINGS, recipe="memgpt", embedder=given) as memory:
        memory.add_many([*angles], user_id="ada", infer=False)
        found = memory.search("question", user_id="ada", threshold=0.0, limit=20)
        assert [hit.record.content for hit in found] == pages[:5]


def talk(memory: SupervisorMemory, turns: int, user_id: str = "ada", session: str = "s") -> None:
    scope = Scope(user_id, session_id=session)
    for n in range(turns):
        said = [Message("user", f"Crate {n} holds kiwis."), Message("assistant", f"Noted, crate {n}.")]
        memory.remember(said, scope, turn_id=f"{session}{n}")
        memory.services.clock.now += 60  # type: ignore[attr-defined]  # the clock of these tests


def summaries(memory: SupervisorMemory, user_id: str = "ada") -> list[Record]:
    return [each for each in memory.get_all(user_id=user_id) if OVERFLOW in each.tags]


@pytest.mark.parametrize("with_model", [False, True])
def test_a_conversation_over_the_window_gets_one_summary_and_the_next_holds_it(*, with_model: bool) -> None:
    model = ScriptedModel(script=["Crates of kiwis.", "Many crates of kiwis."]) if with_model else None
    backend, clock = InMemoryBackend(), FixedClock()
    recipe = PUBLISHED.recipe(window=100)
    talker = SupervisorMemory(SETTINGS, backend=backend, clock=clock)  # its queue asks no model
    with SupervisorMemory(SETTINGS, backend=backend, recipe=recipe, clock=clock, llm=model) as memory:
        talk(talker, 4)
        assert not memory.optimize(user_id="ada").steps
        talk(talker, 16)
        talk(talker, 2, session="other")
        assert len(memory.optimize(user_id="ada").steps) == 1
        (first,) = summaries(memory)
        assert not memory.optimize(user_id="ada").steps
        messages = memory.sessions.messages("s", user_id="ada")
        assert 0 < len(first.made_from) <= len(messages) - 3
        kept = [each for each in messages if each.id not in first.made_from]
        assert memory.get(kept[0].id).source.source_class != "user"
        talk(talker, 40)
        memory.optimize(user_id="ada")
        (second,) = summaries(memory)
        assert (second.id, second.version) == (first.id, 2)
        assert {*first.made_from} < {*second.made_from}
        if model is not None:
            assert (first.content, second.content) == ("Crates of kiwis.", "Many crates of kiwis.")
            assert "Crates of kiwis." in model.prompts[1]
        told = memory.recall([Message("user", "Which crate?")], Scope("ada", session_id="s"))
        assert second.id in told.ids
        assert (
            second.id
            not in memory.recall([Message("user", "Which crate?")], Scope("ada", session_id="new")).ids
        )
        memory.delete(messages[0].id, user_id="ada")
        assert summaries(memory) == []


def test_core_memory_holds_two_thousand_characters() -> None:
    assert PUBLISHED.checked({}).core == GOLDEN["core"]["limit"]
    settings = SETTINGS.model_copy(
        update={"standing_notes": 20, "max_notes": 40, "max_context_tokens": 4_000}
    )
    with SupervisorMemory(settings, recipe="memgpt", clock=FixedClock()) as memory:
        for word in ("pear", "fig", "plum", "kiwi", "lime", "date", "quince", "melon", "cherry"):
            text = f"I like {word} with " + " ".join(f"{word}{k}" for k in range(60)) + "."
            apart = {"strategy": "keep-both"}
            done = memory.write(text, user_id="ada", kind="user-profile", metadata=apart)
            assert done.status == "added"
        note = memory.recall([Message("user", "How many whales swim by Oslo?")], Scope("ada", session_id="s"))
        assert 0 < len(note.ids) < 9
        assert sum(len(hit.record.content) for hit in note.hits) <= 2_000


def test_a_model_looks_up_messages_by_letters_and_by_day_and_stops_after_three_steps() -> None:
    calls = [
        call("conversation_search", query="KIWIS", page=0),
        call("conversation_search_date", start="2026-01-05", end="2026-01-05"),
        call("conversation_search_date", start="yesterday", end="2026-01-05"),
    ]
    model, backend, clock = ScriptedModel(script=[*calls, *calls]), InMemoryBackend(), FixedClock()
    memory = SupervisorMemory(SETTINGS, backend=backend, clock=clock)
    talk(memory, 3)
    talk(memory, 3, user_id="bob")
    with SupervisorMemory(SETTINGS, backend=backend, recipe="memgpt_agent", llm=model, clock=clock) as memory:
        found = memory.search("What did we say?", user_id="ada", threshold=0.0, limit=20)
        said = [hit.record for hit in found if hit.found == SAID]
        assert {each.family for each in said} == {SESSION_FAMILY}
        assert {each.user_id for each in said} == {"ada"}
        assert len(said) == 5  # a page holds five; the first has the three that hold the letters
        assert len(model.prompts) == 3
        assert "Crate 0 holds kiwis." in model.prompts[1]


@every_case("asked", AGENT["calls"])
def test_a_call_finds_what_the_published_function_finds(asked: dict[str, Any]) -> None:
    arguments = {name: value for name, value in asked.items() if name != "found"}
    clock, model = FixedClock(), ScriptedModel(script=[json.dumps(arguments), call("none")])
    with SupervisorMemory(SETTINGS, recipe="memgpt_agent", clock=clock) as memory:
        for n, each in enumerate(AGENT["messages"]):
            if each["role"] in ("user", "assistant"):  # others are no messages of a session here
                clock.now = datetime.fromisoformat(each["at"] + "+00:00").timestamp()
                said = [Message(each["role"], each["text"])]
                memory.remember(said, Scope("ada", session_id="s"), turn_id=str(n))
        with SupervisorMemory(
            SETTINGS, backend=memory.backend, recipe="memgpt_agent", llm=model, clock=clock
        ) as asking:
            asking.search("whales?", user_id="ada", threshold=0.0, limit=20)
    if asked["found"] == "ValueError":
        assert len(model.prompts) == 1
        return
    told = model.prompts[1]
    places = {n: told.find(f"\n{each['text']}") for n, each in enumerate(AGENT["messages"])}
    assert sorted((n for n, at in places.items() if at >= 0), key=places.__getitem__) == asked["found"]


def test_of_what_is_found_a_model_reads_the_first_three_thousand_characters() -> None:
    told = AGENT["returned"]
    model = ScriptedModel(script=[call("conversation_search", query="xx"), call("none")])
    with SupervisorMemory(SETTINGS, recipe="memgpt_agent", clock=FixedClock()) as memory:
        memory.remember([Message("user", "x" * told["length"])], Scope("ada", session_id="s"), turn_id="1")
        with SupervisorMemory(SETTINGS, backend=memory.backend, recipe="memgpt_agent", llm=model) as asking:
            asking.search("whales?", user_id="ada", threshold=0.0)
    assert "x" * told["read"] in model.prompts[1]
    assert "x" * (told["read"] + 1) not in model.prompts[1]


@every_case("answer", ["no", "[1]", call("rm"), call("conversation_search"), call("none")])
def test_a_call_that_there_is_not_ends_the_search(answer: str) -> None:
    model = ScriptedModel(script=[answer])
    with SupervisorMemory(SETTINGS, recipe="memgpt_agent", llm=model, clock=FixedClock()) as memory:
        memory.search("kiwis?", user_id="ada")
        assert len(model.prompts) == 1


def test_what_the_model_puts_into_core_memory_stands_in_every_note() -> None:
    model = ScriptedModel(
        script=[call("core_memory_append"), call("archival_memory_insert"), "x", *["{}"] * 2]
    )
    with SupervisorMemory(SETTINGS, recipe="memgpt_agent", llm=model, clock=FixedClock()) as memory:
        texts = ["The project is called Falcon.", "Tea is at five.", "The sky was grey."]
        ids = [each.id for each in memory.add_many(texts, user_id="ada", infer=False)]
        assert [memory.get(id).metadata.get(TIER) for id in ids] == [CORE, "archive", None]
        note = memory.recall([Message("user", "How do whales sleep?")], Scope("ada", session_id="s"))
        assert note.ids == (ids[0],)
