"""Keys, tokens and passwords, also those in connection strings, in a folded text."""

import re
from collections.abc import Iterator
from typing import Final

from supervisor_memory.redact.spans import FINDERS, Read, Span, is_placeholder

_TOKENS: Final = FINDERS.compiled(
    rf"(?<![A-Za-z0-9_])(?:{'|'.join(FINDERS.listed('tokens'))})(?![A-Za-z0-9_])", "tokens"
)

_STOPS: Final = re.compile(r"[,;<>\"'`]")
_MARK: Final = re.compile(r"[0-9!@#$%^&*+~]")
_PIN: Final = re.compile(r"\d{3,8}\Z")
_LETTER: Final = re.compile(r"[A-Za-z]")
_TERMINAL: Final = re.compile(r"\s*(?:$|[\n,.;)\]}，。；、）】！!]|\Z)")
_LEAST_KEY, _LONG_KEY, _LEAST_WORD = 8, 24, 4
_LEAST_BESIDE, _LEAST_KEY_BESIDE = 5, 16
_WORDS: Final = FINDERS.listed("secret_words")
_PREFIXES: Final = FINDERS.listed("token_starts")


def secrets(read: Read) -> Iterator[Span]:
    """Keys of well-known forms, private keys, passwords in URLs, and values named as a secret."""
    text, lowered = read.text, read.lowered
    if any(prefix in text for prefix in _PREFIXES):
        yield from (Span(*match.span(), "SECRET") for match in _TOKENS.finditer(text))
    if "-----begin" in lowered:
        yield from _private_keys(text)
    if "://" in text:
        yield from (Span(*match.span(), "SECRET") for match in FINDERS["webhook"].finditer(text))
        yield from _first_groups(FINDERS["password_in_url"], text)
    if "-u" in text:
        yield from _first_groups(FINDERS["for_curl"], text)
    if "bearer" in lowered or "basic" in lowered:
        yield from _first_groups(FINDERS["bearer"], text)
    if any(word in lowered for word in _WORDS):
        yield from _named_secrets(read)


def _first_groups(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for match in pattern.finditer(text):
        if not is_placeholder(match[1]) and not FINDERS["no_value"].match(match[1]):
            yield Span(*match.span(1), "SECRET")


def _private_keys(text: str) -> Iterator[Span]:
    """Private keys, from first to last line; without a last line, all text that can belong to the key."""
    place = 0
    while begin := FINDERS["pem_begin"].search(text, place):
        following = FINDERS["pem_begin"].search(text, begin.end())
        reach = begin.end(), following.start() if following else len(text)
        rest = FINDERS["pem_end"].search(text, *reach) or FINDERS["pem_rest"].match(text, *reach)
        place = rest.end() if rest else begin.end()
        yield Span(begin.start(), place, "SECRET")


def _named_secrets(read: Read) -> Iterator[Span]:
    text = read.text
    for name in FINDERS["names"].finditer(read.lowered):
        kind = FINDERS["kind"].match(read.lowered, name.end())
        value = FINDERS["value"].match(text, kind.end()) if kind else None
        if kind is None or value is None or value.lastgroup is None:
            continue
        start, end = value.span(value.lastgroup)
        is_quoted = value.lastgroup != "bare"
        if not is_quoted:
            end = _bare_end(text, start, end)
        told = text[start:end]
        if not told or is_placeholder(told) or FINDERS["no_value"].match(told) or text.startswith("(", end):
            continue
        is_last = is_quoted or _TERMINAL.match(text, end) is not None
        if name["pin"]:
            if not kind["beside"] and _PIN.match(told):  # "the pin is 4711", and not "pin 13"
                yield Span(start, end, "SECRET")
        elif (_is_password if name["strong"] else _is_key)(told, kind, is_quoted=is_quoted, is_last=is_last):
            yield Span(start, end, "SECRET")


def _bare_end(text: str, start: int, end: int) -> int:
    if stop := _STOPS.search(text, start, end):
        end = stop.start()
    while end > start and text[end - 1] in ".:)]}":
        end -= 1
    return end


def _is_key(told: str, kind: re.Match[str], *, is_quoted: bool, is_last: bool) -> bool:
    if kind["beside"]:
        return _is_mixed(told) and len(told) >= _LEAST_KEY_BESIDE
    return " " not in told and ((_is_mixed(told) and len(told) >= _LEAST_KEY) or len(told) >= _LONG_KEY)


def _is_password(told: str, kind: re.Match[str], *, is_quoted: bool, is_last: bool) -> bool:
    """Whether a value behind a word for a password is a password, not the next word of a sentence."""
    if kind["beside"]:  # "password hunter2", and not "password field"
        return _is_mixed(told) and len(told) >= _LEAST_BESIDE
    if _MARK.search(told.rstrip("!")):
        return True
    if kind["told"]:  # "the password is required"
        return is_quoted and " " not in told
    return len(told) >= _LEAST_WORD and (is_last or kind["chinese"] is not None or "=" in kind[0])


def _is_mixed(told: str) -> bool:
    return " " not in told and _LETTER.search(told) is not None and _MARK.search(told) is not None
