"""What a sub-agent brings that is known costs a run no commit, and stands in the log when the run is over."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.verify import verified
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.stores.protocol import Commit
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from tests.faults.processes import FORKS, ended, forked
from tests.host.graphs import Graph, Team, asking, audit_of, config, model, open_memory, outcomes, team

CONCLUSION = "Revenue of May was 4 million in the north."


def opened(folder: Path) -> SupervisorMemory:
    settings = Settings(embedding_model="none", session_quiet=0)
    return SupervisorMemory(settings, backend=SqliteBackend(folder), clock=FixedClock())


def crew(*, answer: str = "It was 4 million.", after: Callable[[], Any] = lambda: None) -> Any:
    """Supervisor, worker, supervisor; `after` is called behind the worker, in the supervisor's last step."""

    def work(state: Any) -> Any:
        return {"final_answer": CONCLUSION}

    def last(state: Any) -> Any:
        after()
        return {"messages": [("ai", answer)]} if answer else {}

    builder = Graph(Team)
    builder.add_node("worker", work)
    builder.add_node("supervisor", last)
    builder.add_edge(START, "worker")
    builder.add_edge("worker", "supervisor")
    builder.add_edge("supervisor", END)
    return builder


def asks(thread: str) -> Any:
    return asking(f"What was the revenue, for {thread}?"), config(thread, user_id="ada")


def skips(memory: SupervisorMemory) -> list[tuple[Any, Any]]:
    return [(row["agent_id"], row["reason"]) for row in audit_of(memory) if row["op"] == "skip"]


def of_workers(memory: SupervisorMemory) -> list[str]:
    return [reason for agent, reason in skips(memory) if agent == "worker"]


def commits_of(memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The operations of each commit from now on."""
    seen: list[list[str]] = []
    batch = memory.backend.batch

    def heard(commit: Commit) -> Any:
        seen.append([event.op for event in commit.audit])
        return batch(commit)

    monkeypatch.setattr(memory.backend, "batch", heard)
    return seen


def test_it_stands_in_the_log_before_what_the_run_keeps_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as memory:
        graph = memory.attach(crew()).compile()
        graph.invoke(*asks("t1"))
        commits = commits_of(memory, monkeypatch)
        graph.invoke(*asks("t2"))
        assert of_workers(memory) == ["recalled-text"]
        assert not [ops for ops in commits if set(ops) == {"skip"}]
        assert [ops for ops in commits if ops[0] == "skip" and "add" in ops]
        assert verified(memory.backend.audit).faults == []


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_run_that_keeps_nothing_after_it_has_it_in_the_log_when_it_ends(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as memory:
        graph = memory.attach(crew(answer="")).compile()
        for thread in ("t1", "t2"):
            if how == "invoke":
                graph.invoke(*asks(thread))
            else:
                asyncio.run(graph.ainvoke(*asks(thread)))
        assert of_workers(memory) == ["recalled-text"]


def test_a_run_that_fails_after_it_has_it_in_the_log(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("no model")

    with opened(tmp_path) as memory:
        memory.attach(crew()).compile().invoke(*asks("t1"))
        with pytest.raises(ValueError, match="no model"):
            memory.attach(crew(after=fail)).compile().invoke(*asks("t2"))
        assert of_workers(memory) == ["recalled-text"]


@FORKS[0]
@pytest.mark.parametrize("answer", ["It was 4 million.", ""])
def test_a_process_that_is_killed_when_its_run_is_over_has_it_in_the_log(tmp_path: Path, answer: str) -> None:
    def run() -> None:
        memory = opened(tmp_path)
        graph = memory.attach(crew(answer=answer)).compile()
        graph.invoke(*asks("t1"))
        graph.invoke(*asks("t2"))
        os._exit(9)

    assert ended(forked(run)) == 9
    with opened(tmp_path) as memory:
        assert of_workers(memory) == ["recalled-text"]
        assert verified(memory.backend.audit).faults == []


def test_agents_that_work_at_once_and_repeat_themselves_are_each_in_the_log_once() -> None:
    names = ("north", "south", "west")

    def work(name: str) -> Callable[[Any], Any]:
        return lambda state: {"messages": [("ai", f"Revenue of the {name} was 4 million.")]}

    builder = Graph(Team)
    for name in names:
        builder.add_node(name, work(name))
        builder.add_edge(START, name)
    with open_memory() as memory:
        graph = memory.attach(builder, supervisor=None).compile()
        for thread in ("t1", "t2"):
            graph.invoke(*asks(thread))
        told = [each for each in skips(memory) if each[0] in names]
        assert sorted(told) == [(name, "recalled-text") for name in sorted(names)]
        assert verified(memory.backend.audit).faults == []


def test_a_step_that_runs_twice_in_a_run_tells_it_once() -> None:
    words = [CONCLUSION] * 3
    with open_memory() as memory:
        builder = team(model("go", "again", "done"), {"worker": model(*words)}, order=["worker", "worker"])
        graph = memory.attach(builder).compile()
        graph.invoke(*asks("t1"))
        assert len(of_workers(memory)) <= 1
        assert verified(memory.backend.audit).faults == []


def test_a_user_who_is_erased_before_it_is_kept_gets_no_name_and_the_record_no_key(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.attach(crew()).compile().invoke(*asks("t1"))

        def erase() -> None:
            memory.erase(user_id="ada", confirm=True)

        memory.attach(crew(answer="", after=erase)).compile().invoke(*asks("t2"))
        rows = [row for row in audit_of(memory) if row["op"] == "skip" and row["agent_id"] == "worker"]
        assert len(rows) == 1
        assert memory.backend.audit.users() == []
        last = [row for row in memory.backend.audit.tail(99) if row.op == "skip"][-1]
        assert (last.subject, last.event["commit_after"]) == (None, None)
        assert verified(memory.backend.audit).faults == []


def test_a_store_that_fails_when_the_run_ends_breaks_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory() as memory:
        graph = memory.attach(crew(answer="")).compile()
        graph.invoke(*asks("t1"))
        batch = memory.backend.batch

        def fails(commit: Commit) -> Any:
            if any(event.op == "skip" and event.agent_id == "worker" for event in commit.audit):
                raise BackendUnavailable("gone")
            return batch(commit)

        monkeypatch.setattr(memory.backend, "batch", fails)
        graph.invoke(*asks("t2"))
        assert ("degraded", "BackendUnavailable") in outcomes(memory, "remember")
