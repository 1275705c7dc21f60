"""What a text may hold, its parts and its hash."""

import hashlib
import re
import unicodedata
from functools import lru_cache

from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.language.unseen import UNSEEN

MAX_CONTENT_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 1024 * 1024
"""A message over this is refused; a message over `MAX_CONTENT_BYTES` is kept in parts."""
_CUTS = (("\n\n",), ("\n", "。", "！", "？", ". ", "! ", "? "))
_NOT_IN_CONTENT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check_content(text: str, *, most: int = MAX_CONTENT_BYTES) -> str:
    """Return the text as it will be stored: NFC, outer whitespace removed.

    Args:
        most: Bytes of UTF-8; a message may have more than a record.

    Raises:
        InvalidContent: not a string, nothing visible in it, control characters or lone surrogates.
        ContentTooLarge: over `most`. Texts are refused, never cut.
    """
    if not isinstance(text, str):
        raise InvalidContent(
            f"content is {type(text).__name__}, not text; pass a string", type=type(text).__name__
        )
    if len(text) > most:
        raise ContentTooLarge(
            f"content of {len(text):,} characters is over the limit of {most:,} bytes; split it, or store a "
            "file and remember its path",
            size=len(text),
        )
    if not text.isprintable() and (bad := _NOT_IN_CONTENT.search(text)):
        raise InvalidContent(
            f"content {text[:40]!r} holds the control character {bad[0]!r}; remove it and write again",
            character=bad[0],
        )
    clean = unicodedata.normalize("NFC", text).strip()
    if (size := len(clean.encode())) > most:
        raise ContentTooLarge(
            f"content of {size:,} bytes is over the limit of {most:,}; split it, or store a file and "
            "remember its path",
            size=size,
        )
    if not _is_seen(clean):
        raise InvalidContent(
            f"content {text[:40]!r} holds nothing visible; pass some text", content=text[:40]
        )
    return clean


def _is_seen(text: str) -> bool:
    """Whether a text holds anything visible."""
    if text.isascii() and text.isprintable():
        return text.strip() != ""
    return any(unicodedata.category(c)[0] not in "CZ" for c in UNSEEN.sub("", text))


def parts_of_message(text: str) -> tuple[str, ...]:
    """The parts of at most 64 KiB in which a message is kept, in order; a short message is one.

    A part ends after a paragraph, else after a line or sentence, else after a character.

    Raises:
        InvalidContent, ContentTooLarge: as `check_content`, for a message over 1 MiB.
    """
    left = check_content(text, most=MAX_MESSAGE_BYTES).encode()
    parts: list[str] = []
    while len(left) > MAX_CONTENT_BYTES:
        part = left[:MAX_CONTENT_BYTES].decode(errors="ignore")
        ends = (max(part.rfind(mark) + len(mark) for mark in marks) for marks in _CUTS)
        part = part[: next((end for end in ends if end > len(part) // 2), len(part))]
        parts.append(part)
        left = left[len(part.encode()) :]
    return tuple(part.strip() for part in (*parts, left.decode()) if _is_seen(part))


_WORDS = re.compile(r"`([^`\n]{1,80})`|(?<!\w)([A-Za-z]\w{1,79})(?!\w)", re.ASCII)
_CASED = re.compile(r"[a-z]\w*[A-Z]|(?=\w*\d)\w*[a-z]\w*[A-Z]", re.ASCII)


def cased_words(text: str) -> frozenset[str]:
    """The words for which case counts, if they have capitals: in backticks, camelCase, keys like K7aB."""
    found: set[str] = set()
    for code, word in set(_WORDS.findall(text)):
        if code:
            found.update(each for each in code.split() if not each.islower())
        elif not word.islower() and _CASED.match(word):
            found.add(word)
    return frozenset(found)


def content_hash(text: str) -> str:
    """SHA-256 of the text as a reader sees it: NFKC, case, spaces and closing punctuation do not count.

    The case of `cased_words` does.
    """
    return _known_hash(text) if len(text) <= _LONGEST_KNOWN else _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(" ".join((_as_seen(text), *sorted(cased_words(text)))).encode()).hexdigest()


_LONGEST_KNOWN = 2_000
_known_hash = lru_cache(maxsize=2_048)(_hash)  # a turn asks for those of the same messages again and again


def is_hash_of(text: str, given: object) -> bool:
    """Whether a hash belongs to a text; also accepts the older form, for which case never counted."""
    return given in (content_hash(text), hashlib.sha256(_as_seen(text).encode()).hexdigest())


def _as_seen(text: str) -> str:
    seen = unicodedata.normalize("NFKC", text).casefold()
    if not seen.isascii():
        seen = "".join(c for c in seen if unicodedata.category(c) != "Cf")
    return " ".join(seen.split()).rstrip(".。!！ ")
