"""The stand-in for tests."""

import subprocess
import sys

import numpy as np
import pytest

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.errors import SettingsError
from supervisor_memory.testing.embedder_contract import EmbedderContract
from tests.cases import every_case


class TestHashing(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashingEmbedder()


def test_it_says_what_it_is() -> None:
    embedder = HashingEmbedder(dimension=64)
    assert embedder.fingerprint == "hashing-test@1/64"
    assert "for tests" in repr(embedder)
    assert (HashingEmbedder.__doc__ or "").startswith("FOR TESTS")


def test_another_process_gives_the_same_vector() -> None:
    script = (
        "from supervisor_memory.embedding.hashing import HashingEmbedder;"
        "print(HashingEmbedder().embed_query('green tea 绿茶').tobytes().hex())"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == HashingEmbedder().embed_query("green tea 绿茶").tobytes().hex()


@every_case(
    ("query", "shares", "differs"),
    [
        ("green tea", "likes green tea", "drives a red car"),
        ("deploying", "they deploy weekly", "the cat sleeps"),
        ("绿茶", "用户喜欢喝绿茶", "用户住在里斯本"),
    ],
)
def test_shared_words_make_texts_alike(query: str, shares: str, differs: str) -> None:
    embedder = HashingEmbedder()
    close, far = embedder.embed_documents([shares, differs]) @ embedder.embed_query(query)
    assert close > far


def test_case_and_width_do_not_matter() -> None:
    embedder = HashingEmbedder()
    assert np.array_equal(embedder.embed_query("TEA 16"), embedder.embed_query("ｔｅａ １６"))


def test_too_few_dimensions_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least 16"):
        HashingEmbedder(dimension=4)
