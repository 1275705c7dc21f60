"""What every recipe promises. Inherit, and give it a fixture `recipe`.

    class TestMine(RecipeContract):
        @pytest.fixture
        def recipe(self) -> Recipe:
            return MINE

Five conversations are held over a store in memory, without a model and without an embedder. A recipe that
needs another store overrides the fixture `backend`, one that needs a model or an embedder `options`.
"""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

from collections.abc import Iterator
from typing import Any

import pytest

from supervisor_memory.flow import Outcome, Recipe
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Message, Note, Scope
from supervisor_memory.settings import Settings
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import FixedClock

_BUDGET = 120
ADA, BOB = "ada", "bob"

CONVERSATIONS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "preferences": (
        ("Always answer in tables.", None),
        ("GMV means gross merchandise value before refunds.", None),
        ("What was GMV last week?", "GMV was 31 million last week, before refunds."),
    ),
    "a change of mind": (
        ("I live in Ghent.", None),
        ("I have moved: I live in Leuven now.", None),
        ("Forget that I live in Leuven.", None),
    ),
    "中文": (
        ("以后默认用表格回答。", None),
        ("准点率是指延误不超过15分钟的航班占比。", None),
        ("上周的准点率是多少？", "上周的准点率是82%，以延误不超过15分钟计。"),
    ),
    "small talk": (("hello", None), ("thanks!", None), ("", None), ("👍", None)),
    "work": (
        ("AIR-12: which flights were late?", "Departures from JFK were late on 3 of 7 days in March."),
        ("Go on with AIR-12.", "Snow explains two of the three late days in March."),
        ("Never send my reports by mail.", "SELECT origin, avg(dep_delay) FROM flights GROUP BY origin"),
    ),
}
"""What the user says, and what an agent answers, if any."""


def hold(memory: SupervisorMemory, name: str, *, user_id: str = ADA) -> list[Note]:
    """Hold one of the conversations as a graph would: recall, then remember. Returns the notes."""
    notes = []
    mine, analyst = Scope(user_id, session_id=name), Scope(user_id, "analyst", name)
    for nth, (said, answer) in enumerate(CONVERSATIONS[name]):
        message, turn = Message("user", said, id=f"{name}-{nth}"), f"{name}-{nth}"
        notes.append(memory.recall([message], mine))
        memory.remember([message], mine, turn_id=turn)
        if answer is not None:
            notes.append(memory.recall([message], analyst))
            memory.remember((), analyst, outcome=Outcome(final_answer=answer, asked=said), turn_id=turn)
    return notes


def _refuse(*given: Any, **options: Any) -> Any:
    raise ConnectionError("the store is down")


class RecipeContract:
    """The promises of a recipe. Each test gets an empty store."""

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return InMemoryBackend(clock=FixedClock())

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        """Options of `SupervisorMemory` beside settings, store, clock and recipe."""
        return {}

    @pytest.fixture
    def memory(
        self, recipe: Recipe | str, backend: MemoryBackend, options: dict[str, Any]
    ) -> Iterator[SupervisorMemory]:
        settings = Settings(
            embedding_model="none", max_context_tokens=_BUDGET, queue_worker=False, search_timeout_ms=5_000
        )
        clock = FixedClock()
        with SupervisorMemory(settings, backend=backend, clock=clock, recipe=recipe, **options) as memory:
            yield memory

    @pytest.mark.parametrize("name", CONVERSATIONS)
    def test_a_conversation_is_held_without_a_fault(self, memory: SupervisorMemory, name: str) -> None:
        notes = hold(memory, name)
        assert memory.flush()
        assert not any(note.degraded for note in notes)
        assert [
            row.event["op"] for row in memory.backend.audit.tail(99) if row.event["outcome"] == "degraded"
        ] == []

    @pytest.mark.parametrize("name", CONVERSATIONS)
    def test_a_note_keeps_to_the_budget(self, memory: SupervisorMemory, name: str) -> None:
        for note in (*hold(memory, name), *hold(memory, name)):
            assert memory.services.count_tokens(note.text) <= _BUDGET
            assert bool(note.text) or not note.ids

    @pytest.mark.parametrize(
        ("said", "asked", "known"),
        [
            ("GMV means gross merchandise value before refunds.", "What is GMV before refunds?", "gross"),
            ("准点率是指延误不超过15分钟的航班占比。", "准点率是什么？", "15分钟"),
        ],
    )
    def test_what_the_user_stated_is_found_again(
        self, memory: SupervisorMemory, said: str, asked: str, known: str
    ) -> None:
        memory.remember([Message("user", said)], Scope(ADA, session_id="s"))
        assert known in memory.recall([Message("user", asked)], Scope(ADA, session_id="t")).text
        assert any(known in hit.record.content for hit in memory.search(asked, user_id=ADA))

    @pytest.mark.parametrize("name", CONVERSATIONS)
    def test_two_users_never_mix(self, memory: SupervisorMemory, name: str) -> None:
        hold(memory, name, user_id=ADA)
        told = hold(memory, name, user_id=BOB)
        told.extend(hold(memory, other, user_id=BOB)[-1] for other in CONVERSATIONS)
        everything = memory.search("", user_id=BOB, limit=100)
        seen = [*everything, *(hit for note in told for hit in note.hits)]
        assert {hit.record.user_id for hit in seen} <= {BOB}
        assert {record.user_id for record in memory.get_all(user_id=BOB)} <= {BOB}

    @pytest.mark.parametrize("asked", ["What is GMV?", "准点率是什么？"])
    def test_an_empty_store_is_no_fault(self, memory: SupervisorMemory, asked: str) -> None:
        assert not memory.recall([Message("user", asked)], Scope(ADA)).degraded
        assert not memory.search(asked, user_id=ADA).degraded
        assert not memory.search("", user_id=ADA)

    def test_where_the_store_is_down_the_note_says_so_and_nothing_raises(
        self, memory: SupervisorMemory, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hold(memory, "preferences")
        for verb in ("search", "list", "get", "batch"):
            monkeypatch.setattr(backend, verb, _refuse)
        note = memory.recall([Message("user", "What is GMV?")], Scope(ADA))
        assert note.degraded
        assert not note.ids
        results = memory.remember([Message("user", "Always answer in euros.")], Scope(ADA, session_id="s"))
        assert not any(result.saved for result in results)

    def test_each_way_to_write_answers_for_each_text(self, memory: SupervisorMemory) -> None:
        written = memory.write("Amounts are in euros.", user_id=ADA)
        assert written.status in ("added", "pending")
        assert len(memory.add_many(["the moon is up", "天黑了"], user_id=ADA)) == 2
        assert memory.add("Always answer in tables.", user_id=ADA, session_id="s")
