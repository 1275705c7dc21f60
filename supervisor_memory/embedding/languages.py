"""Whether an embedder can read a text."""

import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
LETTER = re.compile(r"[^\W\d_]")
KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
LOOKED_AT = 2_000  # characters
SHARE = 0.3


class Reader(Protocol):
    """An embedder, or anything else that says which languages it reads."""

    @property
    def languages(self) -> tuple[str, ...]: ...


def is_chinese(text: str) -> bool:
    """Whether so many letters are Chinese that the text cannot be understood without them."""
    start = text[:LOOKED_AT]
    letters = len(LETTER.findall(start))
    return not KANA_OR_HANGUL.search(start) and letters > 0 and len(HAN.findall(start)) / letters >= SHARE


def reads(text: str, *, embedder: Reader) -> bool:
    """Whether an embedder reads the language of `text`; if not, its vectors mean nothing, and search goes by
    words alone.

    An English model sees Chinese as single characters, and gives any two Chinese texts a high cosine,
    so that its calibration would call everything relevant. True when the languages are unknown.
    """
    languages = embedder.languages
    return not languages or "*" in languages or "zh" in languages or not is_chinese(text)


def hint(text: str, *, embedder: "Embedder") -> str | None:
    """A sentence for the author of `text`, when the embedder does not read its language; else None.

    None as well when the embedder's languages are unknown.
    """
    if reads(text, embedder=embedder):
        return None
    return (
        f"{embedder.fingerprint} does not read Chinese, so this will be found by its words only, not by its "
        "meaning; set EMBEDDING_MODEL=multilingual-e5-small"
    )
