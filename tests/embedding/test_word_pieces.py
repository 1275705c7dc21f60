"""Texts are cut into the pieces that `tokenizers` cuts them into."""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory.embedding.word_pieces import WordPieces
from supervisor_memory.language import vocabulary
from tests.breadth import size

VOCABULARY = Path(vocabulary.__file__).with_name("word_pieces.txt")
ROOT = Path(__file__).parents[2]
TOKENS = 256


@pytest.fixture(scope="module")
def reference() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    pieces = VOCABULARY.read_text("utf-8").splitlines()
    found = tokenizers.BertWordPieceTokenizer(
        vocab={piece: at for at, piece in enumerate(pieces)}, lowercase=True
    )
    found.enable_truncation(max_length=TOKENS)
    return found


@pytest.fixture(scope="module")
def ours() -> WordPieces:
    return WordPieces(VOCABULARY, tokens=TOKENS)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from strings(each)


def texts() -> list[str]:
    """What people and tools say in our own sets, and our pages by the line."""
    found = {
        text
        for file in sorted((ROOT / "benchmarks").rglob("*.json"))
        for text in strings(json.loads(file.read_text("utf-8")))
    }
    for page in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "supervisor_memory").rglob("*.toml"),
    ):
        found.update(page.read_text("utf-8").splitlines())
    return sorted(found)


def test_ten_thousand_texts_of_both_languages_are_cut_alike(ours: WordPieces, reference: Any) -> None:
    told = texts()
    assert len(told) >= 10_000
    assert sum(bool(re.search("[\u4e00-\u9fff]", text)) for text in told) >= 2_000
    assert [
        text for text in told[:: size(1, less=4)] if ours.encode(text) != reference.encode(text).ids
    ] == []


def test_every_character_that_unicode_has_long_had_is_read_alike(ours: WordPieces, reference: Any) -> None:
    """What came later, or changed its category, `tokenizers` does not know for accents or punctuation."""
    kind, long_ago = unicodedata.category, unicodedata.ucd_3_2_0.category
    kept = [c for c in map(chr, range(sys.maxunicode + 1)) if kind(c) == long_ago(c)]
    every = [c for c in kept if kind(c) not in {"Cn", "Cs"}]
    assert len(every) > 200_000
    apart = size(60, less=360)  # the characters of a block are alike
    lines = [" ".join(f"a{c}b" for c in every[at : at + 60]) for at in range(0, len(every), apart)]
    assert [line for line in lines if ours.encode(line) != reference.encode(line).ids] == []


@pytest.mark.parametrize(
    "text",
    ["", " ", "[SEP] and [MASK]", "[sep]", "x" * 100, "x" * 101, "a\x00b\ufffdc", "ΟΔΟΣ ΌΡΟΣ İstanbul",
     "한국어", "word " * 400, "e\u0301\u0323", "\u2028a\u3000b\xa0c\x85d", "don't—stop…", "ﬁﬃ①Ⅳ", "🙂👩‍👩‍👧"],
)  # fmt: skip
def test_odd_texts_are_cut_alike(text: str, ours: WordPieces, reference: Any) -> None:
    assert ours.encode(text) == reference.encode(text).ids
