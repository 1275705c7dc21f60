"""EMBEDDING_MODEL and EMBEDDING_DIM, read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from supervisor_memory.embedding import minilm
from supervisor_memory.embedding.open import open_embedder
from supervisor_memory.errors import EmbedderNotInstalled, EmbeddingError, SettingsError
from supervisor_memory.language import vocabulary
from tests.cases import every_case

VOCABULARY = Path(vocabulary.__file__).with_name("word_pieces.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A downloaded model folder with ONNX weights."""
    folder = tmp_path / "cache" / "all-MiniLM-L6-v2"
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    (folder / "onnx" / "model.onnx").symlink_to(minilm.checked_weights())
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128}))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder


def fingerprint(model: str | None) -> str:
    embedder = open_embedder(model, dimension=None)
    assert embedder is not None
    return embedder.fingerprint


@every_case(
    "model",
    [None, "", " ", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", " all-MiniLM-L6-v2 "],
)
def test_minilm_is_the_default_and_goes_by_both_names(model: str | None) -> None:
    assert fingerprint(model) == "all-MiniLM-L6-v2@int8-1.0.0/384"


@every_case("model", ["multilingual-e5-small", "intfloat/multilingual-e5-small"])
def test_e5_goes_by_both_names(model: str) -> None:
    assert fingerprint(model).startswith("multilingual-e5-small@")


def test_none_means_no_embedder() -> None:
    assert open_embedder("none", dimension=None) is None


def test_without_the_extra_the_default_is_no_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.embedding.extras.find_spec", lambda module: None)
    assert open_embedder(None, dimension=None) is None


def test_without_the_extra_a_model_asked_for_by_name_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.embedding.extras.find_spec", lambda module: None)
    with pytest.raises(EmbedderNotInstalled):
        open_embedder("all-MiniLM-L6-v2", dimension=None)


def test_hashing_takes_the_dimension_it_is_given() -> None:
    embedder = open_embedder("hashing", dimension=128)
    assert embedder is not None
    assert embedder.dimension == 128
    assert fingerprint("hashing") == "hashing-test@1/256"


def test_a_dimension_that_disagrees_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"EMBEDDING_DIM is 768, but .* 384 dimensions"):
        open_embedder("all-MiniLM-L6-v2", dimension=768)


def test_a_dimension_that_agrees_is_fine() -> None:
    assert open_embedder("all-MiniLM-L6-v2", dimension=384) is not None


def test_a_folder_with_onnx_weights_needs_no_torch(folder: Path) -> None:
    embedder = open_embedder(str(folder), dimension=384)
    assert embedder is not None
    assert embedder.fingerprint == "all-MiniLM-L6-v2@onnx-8199be6f699a/384"
    assert embedder.languages == ("en",)
    packaged = minilm.MiniLM()
    assert embedder.calibration == packaged.calibration
    assert np.allclose(embedder.embed_query("green tea"), packaged.embed_query("green tea"), atol=1e-6)


def test_a_relative_folder_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent.parent)
    assert fingerprint("cache/all-MiniLM-L6-v2").startswith("all-MiniLM-L6-v2@onnx-")


def test_a_folder_s_own_length_and_pooling_are_kept(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    embedder = open_embedder(str(folder), dimension=None)
    assert embedder is not None
    long = "one two three four five " * 30
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long + "something else"))
    assert not np.allclose(embedder.embed_query("tea"), minilm.MiniLM().embed_query("tea"), atol=1e-2)


def test_a_pooling_we_do_not_know_is_refused(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": False}))
    embedder = open_embedder(str(folder), dimension=None)
    assert embedder is not None
    with pytest.raises(EmbeddingError, match="neither mean nor cls pooling"):
        embedder.embed_query("tea")


def test_a_folder_of_an_unknown_model_gets_an_estimated_calibration(folder: Path) -> None:
    other = folder.rename(folder.with_name("my-model"))
    embedder = open_embedder(str(other), dimension=None)
    assert embedder is not None
    assert embedder.languages == ()
    assert embedder.calibration.unrelated == pytest.approx(minilm.CALIBRATION.unrelated, abs=0.15)
    assert embedder.calibration.same == pytest.approx(minilm.CALIBRATION.same, abs=0.15)


def test_damaged_weights_in_a_folder_are_an_embedding_error(folder: Path) -> None:
    weights = folder / "onnx" / "model.onnx"
    weights.unlink()
    weights.write_bytes(b"not a model")
    embedder = open_embedder(str(folder), dimension=None)
    assert embedder is not None
    with pytest.raises(EmbeddingError, match="onnxruntime cannot load"):
        embedder.embed_query("tea")


@every_case("model", ["./nowhere", "/no/such/folder", "~/no-such-folder", "a/b/c"])
def test_a_folder_that_does_not_exist_is_an_error(model: str) -> None:
    with pytest.raises(SettingsError, match="no such folder"):
        open_embedder(model, dimension=None)


def test_any_other_name_asks_for_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("supervisor_memory.embedding.extras.find_spec", lambda module: None)
    with pytest.raises(EmbedderNotInstalled, match=r"'supervisor-memory\[sentence-transformers\]'"):
        open_embedder("BAAI/bge-small-en-v1.5", dimension=None)
