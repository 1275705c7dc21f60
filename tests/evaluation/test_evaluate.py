"""Replays tell whether memory helps, and hide nothing that went wrong."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import GraphError, Settings, SettingsError, SupervisorMemory
from supervisor_memory.evaluation import (
    Arm,
    Asked,
    Prices,
    Report,
    SqlJudge,
    Thread,
    evaluate,
    load_factory,
    reported,
)
from tests.evaluation.graphs import compiled_team, confused_team, no_graph, team

SETTINGS = Settings(embedding_model="hashing")


def stated_then_asked(number: int, question: str = "What is my project code?") -> Thread:
    """A user states a code, and asks for it in another session."""
    return Thread(
        f"t{number}",
        f"user{number}",
        (
            Asked(f"My project code is X-{number}."),
            Asked(question, must=(rf"X-{number}\b",), is_new=True),
        ),
    )


def run(threads: list[Thread], factory: Any = team, **options: Any) -> Report:
    return reported(evaluate(threads, factory, settings=SETTINGS, **options))


def without_measured(report: Report) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in arm.items() if name != "measured"} for arm in report.to_dict()["arms"]
    ]


def test_memory_helps_where_the_answer_was_said_in_an_earlier_session() -> None:
    [arm] = run([stated_then_asked(number) for number in range(1, 9)]).arms
    assert (arm.bare_right, arm.right, arm.gains, arm.harms, arm.pairs) == (0, 8, 8, 0, 8)
    assert arm.verdict == "memory helps"
    assert arm.gain is not None
    assert arm.gain.low > 0
    assert arm.tokens is not None
    assert arm.tokens.value > 0
    assert arm.apart == {"nothing to judge it by": 8}


def test_one_gain_is_no_difference_for_its_interval_holds_zero() -> None:
    [arm] = run([stated_then_asked(1)]).arms
    assert (arm.gains, arm.verdict) == (1, "no difference")


def test_harm_is_told_and_its_cases_are_shown_side_by_side_with_why() -> None:
    asked = Asked("Is X-9 the code?", must=("X-9",), unrelated=True, is_new=True)
    threads = [Thread(f"t{n}", f"u{n}", (Asked("My project code is X-1."), asked)) for n in range(8)]
    report = run(threads, confused_team)
    [arm] = report.arms
    assert (arm.verdict, arm.harms) == ("memory harms", 8)
    assert (arm.unrelated, arm.unrelated_harms) == (8, 8)
    text = "\n".join(report.lines())
    assert "bare (right): The code is X-9." in text
    assert "memory (wrong): Something else." in text
    assert "My project code is X-1. [" in text


def test_a_graph_that_raises_is_counted_apart_and_ends_its_session() -> None:
    threads = [
        Thread("a", "a", (Asked("boom", must=("x",)), Asked("And now?", must=("x",)))),
        Thread(
            "b",
            "b",
            (Asked("My project code is X-1."), Asked("What is my fragile code?", must=("x",), is_new=True)),
        ),
    ]
    report = run(threads)
    [arm] = report.arms
    assert arm.apart == {
        "raised, both ways": 1,
        "not reached, both ways": 1,
        "nothing to judge it by": 1,
        "raised, with memory alone": 1,
    }
    assert arm.pairs == 0
    assert arm.verdict == "nothing was judged"
    assert "RuntimeError: the model is out of order" in "\n".join(report.lines())


def test_a_run_that_waits_for_a_person_is_counted_apart() -> None:
    [arm] = run([Thread("a", "a", (Asked("Ask a person.", must=("x",)),))]).arms
    assert arm.apart == {"waited for a person, both ways": 1}


def test_a_recording_whose_tools_the_graph_lacks_is_counted_apart() -> None:
    threads = [Thread("a", "a", (Asked("How late is X-1?", must=("X-1",), tools=frozenset({"query"})),))]
    [turn] = evaluate(threads, team, settings=SETTINGS).turns
    assert turn.lacks == ("query",)
    [arm] = run(threads).arms
    assert (arm.apart, arm.pairs) == ({"the graph lacks tools of the recording": 1}, 0)


def test_a_judge_that_fails_is_told_and_counted_apart() -> None:
    def judge(asked: Asked, answer: str) -> bool | None:
        raise ValueError("no verdict")

    replays = evaluate(
        [Thread("a", "a", (Asked("X-1?", expected=("X-1",)),))], team, settings=SETTINGS, judge=judge
    )
    assert replays.turns[0].answers["memory"].judge_error == "ValueError: no verdict"
    assert reported(replays).arms[0].apart == {"the judge failed": 1}


def test_a_query_that_fails_is_a_judge_that_fails(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    threads = [Thread("a", "a", (Asked("X-1?", sql="SELECT x FROM y"),))]
    replays = evaluate(threads, team, settings=SETTINGS, sql=SqlJudge(empty))
    assert "no such table" in replays.turns[0].answers["bare"].judge_error
    with pytest.raises(SettingsError, match="name the database"):
        evaluate(threads, team, settings=SETTINGS)


def test_two_runs_agree_to_the_digit_but_for_what_is_measured() -> None:
    threads = [stated_then_asked(number) for number in range(1, 6)]
    first, second = run(threads), run(threads)
    assert without_measured(first) == without_measured(second)
    assert first.to_dict()["worst"] == second.to_dict()["worst"]


def test_recipes_backends_and_embedders_are_arms_side_by_side() -> None:
    arms = [Arm(), Arm(recipe="mem0"), Arm(backend="sqlite", embedder="none")]
    report = run([stated_then_asked(1)], arms=arms)
    assert [each.arm for each in report.arms] == ["memory", "mem0", "sqlite none"]
    with pytest.raises(SettingsError, match="choose one of in_memory, json, sqlite"):
        run([stated_then_asked(1)], arms=[Arm(backend="qdrant")])
    with pytest.raises(SettingsError, match="named twice"):
        run([stated_then_asked(1)], arms=[Arm(), Arm()])


def test_cost_is_told_by_agent_and_price() -> None:
    replays = evaluate([stated_then_asked(1)], team, settings=SETTINGS)
    [arm] = reported(replays, prices=Prices(tokens_in=1.0, tokens_out=10.0)).arms
    bare, with_memory = (arm.agents["supervisor"][name] for name in ("bare", "memory"))
    assert bare["calls"] == with_memory["calls"] == 2
    assert bare["dollars"] == pytest.approx((bare["tokens_in"] + 10 * bare["tokens_out"]) / 1_000_000)
    assert with_memory["tokens_in"] > bare["tokens_in"]


def test_nothing_leaves_the_machine_and_no_store_of_the_users_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Any, address: Any) -> None:
        raise AssertionError(f"something connects to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "not-a-key")
    own = Settings(backend="sqlite", path=tmp_path / "own", embedding_model="none")
    report = reported(evaluate([stated_then_asked(1)], team, settings=own))
    assert report.arms[0].gains == 1
    assert not (tmp_path / "own").exists()


def test_a_graph_may_be_compiled_be_asynchronous_or_take_memory_by_itself() -> None:
    given: list[Any] = []

    def itself(memory: SupervisorMemory | None) -> Any:
        given.append(memory)
        return team() if memory is None else memory.attach(team())

    assert run([stated_then_asked(1)], compiled_team).arms[0].gains == 1
    assert run([stated_then_asked(1)], asynchronous=True).arms[0].gains == 1
    assert run([stated_then_asked(1)], itself).arms[0].gains == 1
    assert given[0] is None
    assert isinstance(given[1], SupervisorMemory)


def test_what_is_no_graph_is_refused_with_the_way_out() -> None:
    with pytest.raises(GraphError, match="returned int"):
        run([stated_then_asked(1)], no_graph)
    with pytest.raises(GraphError, match="give the factory a parameter `memory`"):
        run([stated_then_asked(1)], team, supervisor="boss")
    for place in ("tests.evaluation.graphs", "tests.evaluation.graphs:nobody", "nowhere:team"):
        with pytest.raises(SettingsError):
            load_factory(place)


def test_the_demo_team_answers_by_a_definition_of_an_earlier_session(flights: Path, tmp_path: Path) -> None:
    from agents.team import build_team
    from supervisor_memory.evaluation import read_threads
    from supervisor_memory.evaluation.threads import apart

    root = Path(__file__).parents[2]
    names = json.loads((root / "benchmarks/flights/names.json").read_text("utf-8"))
    threads = apart(read_threads(root / "benchmarks/flights/own.jsonl"))
    replays = evaluate(
        [threads[0], threads[13]],
        lambda: build_team(output_dir=tmp_path, database=flights),
        settings=Settings(embedding_model="none"),
        sql=SqlJudge(flights, names=names),
    )
    report = reported(replays)
    assert report.arms[0].gains == 2
    assert set(report.arms[0].agents) == {"supervisor", "text2sql", "analysis"}


def test_the_shipped_questions_are_80_and_each_query_finds_a_value(flights: Path) -> None:
    from supervisor_memory.evaluation import read_threads

    root = Path(__file__).parents[2]
    judge = SqlJudge(flights)
    threads = [
        each for name in ("own", "fresh") for each in read_threads(root / f"benchmarks/flights/{name}.jsonl")
    ]
    assert len(threads) == 80
    assert all(len(thread.turns) == 2 for thread in threads)
    for thread in threads[::20]:
        assert judge(thread.turns[1], "nothing") is False
