"""Threads are read from JSON lines, LangSmith's export and a checkpointer."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from supervisor_memory import InvalidContent
from supervisor_memory.evaluation import Asked, read_threads
from tests.evaluation.graphs import team


def lines(path: Path, *entries: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in entries), "utf-8")
    return path


def test_lines_of_our_own_form(tmp_path: Path) -> None:
    first, second = read_threads(
        lines(
            tmp_path / "own.jsonl",
            {
                "id": "a",
                "user_id": "ada",
                "turns": ["Hello.", "How many?"],
                "sql": "SELECT 1",
                "at": "2026-01-31T00:00:00Z",
            },
            {
                "thread_id": "b",
                "turns": [{"text": "Code?", "must": "X-1", "new_session": True, "unrelated": True}],
            },
        )
    )
    assert (first.id, first.user_id, first.at) == ("a", "ada", 1_769_817_600.0)
    assert first.turns == (Asked("Hello."), Asked("How many?", sql="SELECT 1"))
    assert (second.user_id, second.turns[0].must, second.turns[0].unrelated) == ("b", ("X-1",), True)


def test_lines_of_messages_tell_which_tools_were_called(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "How many flights?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "query"}}]},
        {"role": "tool", "content": "3"},
        {"role": "assistant", "content": "Three."},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]
    [thread] = read_threads(
        lines(tmp_path / "m.jsonl", {"id": "a", "messages": messages, "expected": "Sure."})
    )
    assert [turn.text for turn in thread.turns] == ["How many flights?", "Thanks."]
    assert thread.turns[0].tools == {"query"}
    assert thread.turns[1].expected == ("Sure.",)


def test_root_runs_of_langsmith_become_threads_in_their_order(tmp_path: Path) -> None:
    def run(start: str, said: list[Any], answered: list[Any], **more: Any) -> dict[str, Any]:
        return {
            "start_time": start,
            "inputs": {"messages": said},
            "outputs": {"messages": answered},
            "extra": {"metadata": {"thread_id": "t", "user_id": "ada"}},
            **more,
        }

    def human(text: str) -> dict[str, Any]:
        kwargs = {"content": text, "type": "human"}
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "HumanMessage"],
            "kwargs": kwargs,
        }

    ai = {"type": "ai", "content": "Three.", "tool_calls": [{"name": "query", "args": {}}]}
    [thread] = read_threads(
        lines(
            tmp_path / "runs.jsonl",
            run("2026-02-02T00:00:00+00:00", [human("One?"), ai, human("Two?")], []),
            run("2026-02-01T00:00:00+00:00", [human("One?")], [human("One?"), ai]),
            run("2026-02-01T00:00:01+00:00", [human("inner")], [], parent_run_id="x"),
        )
    )
    assert (thread.id, thread.user_id, thread.at) == ("t", "ada", 1_769_904_000.0)
    assert [turn.text for turn in thread.turns] == ["One?", "Two?"]
    assert thread.turns[0].tools == {"query"}


def test_a_checkpointers_threads_are_those_of_its_users(tmp_path: Path) -> None:
    file = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        graph = team().compile(checkpointer=saver)
        for thread, text in (("one", "X-1?"), ("one", "X-2?"), ("two", "X-3?")):
            config = {"configurable": {"thread_id": thread, "user_id": "ada"}}
            graph.invoke({"messages": [("user", text)]}, config)
    found = read_threads(file)
    assert [(each.id, each.user_id) for each in found] == [("one", "ada"), ("two", "ada")]
    assert [turn.text for turn in found[0].turns] == ["X-1?", "X-2?"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1 is no JSON"),
        ("[1]", "line 1 is no JSON object"),
        ('{"id": "a"}', "neither a list `turns` nor a list `messages`"),
        ('{"turns": []}', "nothing that a user said"),
        ('{"turns": [{"text": ""}]}', "a turn without a text"),
        ('{"turns": [{"text": "a", "sequel": 1}]}', "known are expected"),
        ('{"turns": [{"text": "a", "must": 3}]}', "neither a text nor a list"),
        ('{"turns": ["a"], "at": "soon"}', "no ISO time"),
    ],
)
def test_a_line_that_is_none_is_named(line: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(line, "utf-8")
    with pytest.raises(InvalidContent, match=told):
        read_threads(file)


def test_a_file_of_another_database_is_told(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE t(x)")
    assert read_threads(file) == []
