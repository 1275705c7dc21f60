"""What each stage may do, and what it is refused."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from supervisor_memory import Settings
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import BackendError, DeadlineExceeded, MemoryAccessDenied, StageDenied
from supervisor_memory.flow import Remembering, remember
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query, Scope
from supervisor_memory.ports import Maintaining, guarded
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case
from tests.faulty import FaultyBackend, NotAnException

QUERY = Query(text="tea", where=Filter(user_id="alice"), terms=("tea",), now=1.0)
HERS = Filter(user_id="alice")
POWERS: dict[str, Any] = {
    "search": lambda view: view.search(QUERY, limit=1),
    "list": lambda view: view.list(HERS, limit=1),
    "reads": lambda view: view.reads(["an-id"]),
    "embed": lambda view: view.embed(["tea"]),
    "commit": lambda view: view.commit(Commit()),
}


@every_case(
    ("stage", "allowed"),
    [
        ("no_store", {"embed"}),
        ("read_store", {"embed", "search", "list", "reads"}),
        ("deciding", set(POWERS)),
        ("maintaining", set(POWERS)),
    ],
)
def test_a_stage_has_its_powers_and_no_others(stage: str, allowed: set[str]) -> None:
    world = ports([record("tea")])
    for power, use in POWERS.items():
        view = getattr(world, stage)()
        if power in allowed:
            use(view)
        else:
            with pytest.raises(StageDenied, match=rf"may not '{power}'.*Move the operator"):
                use(view)


def test_a_refusal_names_the_view_and_is_a_denial() -> None:
    view: Any = ports().no_store()
    with pytest.raises(MemoryAccessDenied, match="its view is NoStore") as refused:
        view.commit(Commit())
    assert refused.value.facts["power"] == "commit"


@every_case("power", ["erase", "backend", "write", "delete", "batch"])
def test_nothing_else_is_within_reach(power: str) -> None:
    with pytest.raises(StageDenied):
        getattr(ports().deciding(), power)


@every_case("power", ["search", "commit"])
def test_an_operator_after_insert_has_each_power_once(power: str) -> None:
    view = ports().maintaining()
    POWERS[power](view)
    with pytest.raises(StageDenied, match="once; batch"):
        POWERS[power](view)


def test_one_search_after_insert_carries_several_queries() -> None:
    view = ports([record("tea"), record("rice")]).maintaining()
    rice = replace(QUERY, text="rice", terms=terms("rice"))
    found = view.search_many([QUERY, rice, QUERY], limit=1)
    assert [[hit.record.content for hit in hits] for hits in found] == [["tea"], ["rice"], ["tea"]]
    for again in (lambda: view.search(QUERY, limit=1), lambda: view.search_many([QUERY], limit=1)):
        with pytest.raises(StageDenied, match="once; batch"):
            again()


def test_each_operator_after_insert_has_its_own_once() -> None:
    seen: list[int] = []

    def upkeep(said: Remembering, view: Maintaining) -> Remembering:
        seen.append(len(view.search(QUERY, limit=5)))
        view.commit(Commit())
        return said

    recipe = replace(DEFAULT, post_insert=(upkeep, upkeep))
    remember(Remembering(Scope("alice")), ports([record("tea")]), recipe)
    assert seen == [1, 1]


def test_an_operator_after_insert_that_answers_nonsense_loses_nothing() -> None:
    world = ports()
    recipe = replace(DEFAULT, post_insert=(lambda said, view: None,))  # type: ignore[arg-type, return-value]
    said = Remembering(Scope("alice"), skipped=("content-too-large",))
    assert len(remember(said, world, recipe).results) == 1


class Counting(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Any:
        self.queries.append(text)
        return super().embed_query(text)


def test_a_question_is_embedded_once() -> None:
    embedder = Counting()
    world = ports(embedder=embedder)
    first, second = (world.read_store().embed_query("what is GMV?") for _ in range(2))
    assert embedder.queries == ["what is GMV?"]
    assert np.array_equal(np.asarray(first), np.asarray(second))


def test_only_the_latest_questions_are_kept() -> None:
    world = ports(embedder=Counting())
    for n in range(200):
        world.no_store().embed_query(f"question {n}")
    known = list(world.services.vectors)
    assert len(known) == 96
    assert known[-1][2] == "question 199"


def test_an_embedder_that_cannot_read_a_language_is_not_asked() -> None:
    class English(Counting):
        @property
        def languages(self) -> tuple[str, ...]:
            return ("en",)

    world = ports(embedder=English())
    assert world.no_store().embed_query("指标口径是什么") is None
    assert world.deciding().embed(["指标口径是什么", "GMV"])[0] is None
    assert world.deciding().embed(["指标口径是什么", "GMV"])[1] is not None
    assert not world.degraded


def test_a_step_the_flow_can_do_without_is_noted_and_not_tried_again() -> None:
    world, tries = ports(), []

    def fail() -> None:
        tries.append(1)
        raise NotAnException("misconfigured")

    assert world.attempt("model", 1.0, fail) is None
    assert world.attempt("model", 1.0, fail) is None
    assert len(tries) == 1
    assert world.reasons == "model:NotAnException"


def test_nothing_is_begun_after_the_deadline() -> None:
    backend = FaultyBackend()
    world = ports(backend=backend, seconds=0.0)
    with pytest.raises(DeadlineExceeded, match="not begun"):
        world.deciding().commit(Commit((Change(record("tea")),)))
    time.sleep(0.05)
    assert backend.contents() == []


def test_our_own_errors_pass_as_they_are() -> None:
    backend = FaultyBackend()
    backend.break_("search", "answers garbage")
    view = ports(backend=backend).read_store()
    with pytest.raises(BackendError, match="answered str"):
        view.search(QUERY, limit=1)


def test_a_model_leaves_time_for_the_commit() -> None:
    def late(prompt: str) -> str:
        time.sleep(5)
        return "late"

    world = ports(complete=late, seconds=2, settings=Settings(llm_timeout_ms=60_000))
    began = time.monotonic()
    assert world.deciding().complete("merge") is None
    assert time.monotonic() - began < 2.1
    assert world.deciding().commit(Commit((Change(record("tea")),))).saved


def failing(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


@every_case("error", [ValueError("x"), NotAnException("x"), BackendError("x"), DeadlineExceeded("x")])
def test_guarded_answers_an_error(error: BaseException) -> None:
    assert guarded(failing(error), otherwise=lambda met: met) is error


@every_case("end", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_guarded_lets_the_end_of_the_process_pass(end: BaseException) -> None:
    with pytest.raises(type(end)):
        guarded(failing(end), otherwise=lambda met: None)


def test_a_step_that_fails_or_hangs_is_noted_and_left_out() -> None:
    world = ports(seconds=0.2)
    view = world.read_store()
    assert view.attempt("counting", lambda: 1 + 1) == 2
    assert view.attempt("dividing", lambda: 1 / 0) is None
    assert view.attempt("sleeping", lambda: time.sleep(5)) is None
    assert world.reasons == "dividing:ZeroDivisionError;sleeping:DeadlineExceeded"
