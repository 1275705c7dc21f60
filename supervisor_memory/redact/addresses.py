"""Addresses and accounts in a text: e-mail and network addresses, phone numbers, bank accounts."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from supervisor_memory.language.terms import CJK
from supervisor_memory.language.unseen import UNSEEN
from supervisor_memory.redact.contacts import DOMAINS, emails
from supervisor_memory.redact.ip_addresses import ips
from supervisor_memory.redact.keys import secrets
from supervisor_memory.redact.numbers import ibans
from supervisor_memory.redact.spans import FINDERS, Read, Span, merged, without_unseen

_IN_URL: Final = r"[^\s<>\"'，。；、）】]"
_URL: Final = re.compile(rf"\b(?:[a-z][a-z0-9+.-]{{1,15}}://|www\.){_IN_URL}+", re.IGNORECASE)
# A domain in letters of any script: one that looks like another's is another.
_DOMAIN: Final = rf"(?:[\w-]++\.)+[^\W\d_{CJK}][^\W_{CJK}]*+(?:-++[^\W_{CJK}]++)*"
_DOMAINS: Final = (re.compile(_DOMAIN), *DOMAINS)
_BARE_URL: Final = re.compile(rf"(?<![\w./@\\-]){_DOMAIN}(?::[0-9]+)?/{_IN_URL}+")
_MARKS: Final = str.maketrans(dict.fromkeys("，；！？（）", " "))  # folded, they could be of an address


def addresses(text: str) -> frozenset[str]:
    """Find the addresses and accounts in a text, whole and normalised for comparing.

    Case, full width and invisible characters do not matter, nor spaces and signs between digits.
    """
    read = Read(UNSEEN.sub("", text).translate(_MARKS))
    return frozenset(_plain(read.text[span.start : span.end], span.type) for span in merged(_spans_in(read)))


def striking(text: str) -> list[tuple[int, int]]:
    """Start and end of each address, account and secret in a text, in order, to mark them for a reader."""
    plain, places = without_unseen(text) or (text, range(len(text)))
    read = Read(plain.translate(_MARKS))
    found = merged([*_spans_in(read), *secrets(read)])
    return [(places[each.start], places[each.end - 1] + 1) for each in found if each.start < each.end]


def _plain(told: str, kind: str) -> str:
    plain = unicodedata.normalize("NFKC", told).casefold().replace("。", ".")
    return re.sub(r"[^\w+]", "", plain) if kind in ("IBAN", "PHONE") else plain.rstrip(".,;:!?)/")


def _spans_in(read: Read) -> Iterator[Span]:
    yield from emails(read, _DOMAINS)
    yield from ips(read)
    yield from ibans(is_iban)(read)
    for pattern in (_URL, _BARE_URL):
        yield from (Span(*match.span(), "IP") for match in pattern.finditer(read.text))
    for form in ("abroad", "cn_mobile"):
        yield from (Span(*match.span(), "PHONE") for match in read.near_digits(FINDERS[form]))


def is_iban(account: str) -> bool:
    """Whether an account in capitals without spaces has the checksum of ISO 13616."""
    moved = account[4:] + account[:4]
    return int("".join(str(int(each, 36)) for each in moved)) % 97 == 1
