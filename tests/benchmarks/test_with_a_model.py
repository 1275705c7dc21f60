"""The replay with a model counts its calls and tokens, and tells a right story from a wrong one."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from benchmarks.with_a_model import Counting, Known, by_langmem, by_mem0, judged, replay, replay_by
from supervisor_memory.testing.scripted import ScriptedModel

STORY = {"id": "s", "story": ["x"], "expected": {"current": ["Vienna"], "stale": ["Berlin"]}}


def test_calls_and_tokens_are_counted() -> None:
    usage = UsageMetadata(input_tokens=900, output_tokens=30, total_tokens=930)
    told = json.dumps([{"do": "add", "content": "Fond of tables", "quote": "I prefer tables"}])
    counting = Counting()
    model = ScriptedModel(script=[AIMessage(told, usage_metadata=usage)], callbacks=[counting])
    row = {"id": "a", "lang": "en", "keep": 1, "text": "I prefer tables.", "expected": "Fond of tables"}
    assert replay([row], model)["en kept"] == [1.0]
    assert counting.counts == {"calls": 1, "input_tokens": 900, "output_tokens": 30}


def test_an_old_value_is_right_only_beside_the_new_one() -> None:
    assert judged(STORY, ["Lives in Vienna, was in Berlin"]) == ("right", 1.0)
    assert judged(STORY, ["Lives in Vienna", "Lives in Berlin"]) == ("right", 0.0)
    assert judged(STORY, []) == ("right", 0.0)


ROW = {"id": "a", "lang": "en", "keep": 1, "text": "I prefer tables.", "expected": "prefers tables"}


def test_the_prompts_of_mem0_are_read_as_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "mem0" / "configs"
    place.mkdir(parents=True)
    (tmp_path / "mem0" / "__init__.py").write_text("raise ImportError('needs much')")
    (place / "prompts.py").write_text(
        "ADDITIVE_EXTRACTION_PROMPT = 'Extract.'\n"
        "def generate_additive_extraction_prompt(existing_memories, new_messages, timestamp):\n"
        "    return f'{new_messages} {existing_memories}'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = ScriptedModel(script=['```json\n{"memory": [{"text": "Prefers tables"}, {"text": 3}]}\n```'])
    assert replay_by([ROW], model, by_mem0) == ({"en kept": [1.0]}, {})


def test_a_call_that_fails_keeps_nothing_and_is_told() -> None:
    def fails(model: object, text: str, at: float, known: object) -> Known:
        raise ValueError("the context is too short")

    figures, failed = replay_by([ROW], ScriptedModel(script=[]), fails)
    assert figures == {"en kept": [0.0]}
    assert failed == {"ValueError: the context is too short": 1}


def test_a_model_that_calls_no_tool_of_langmem_leaves_nothing() -> None:
    assert replay_by([ROW], ScriptedModel(script=["I see."]), by_langmem) == ({"en kept": [0.0]}, {})
