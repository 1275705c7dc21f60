"""The replay with a model counts its calls and tokens, and tells a right story from a wrong one."""

import json

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from benchmarks.with_a_model import Counting, judged, replay
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
