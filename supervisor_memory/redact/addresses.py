"""Where things could be sent: e-mail addresses, addresses on the network, phone numbers and bank accounts."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from supervisor_memory.redact.contacts import emails
from supervisor_memory.redact.ip_addresses import ips
from supervisor_memory.redact.numbers import ibans
from supervisor_memory.redact.spans import FINDERS, Read, Span, merged

_URL: Final = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'，。；、）】]{1,200}", re.IGNORECASE)
_MOST: Final = 16


def addresses(text: str) -> Sequence[str]:
    """The addresses and accounts that a text names, the first ones where it names many."""
    read = Read(text)
    return [text[span.start : span.end].rstrip(".,;:!?)") for span in merged(_found(read))[:_MOST]]


def _found(read: Read) -> Iterator[Span]:
    yield from emails(read)
    yield from ips(read)
    yield from ibans(is_iban)(read)
    yield from (Span(*match.span(), "IP") for match in _URL.finditer(read.text))
    for form in ("abroad", "cn_mobile"):
        yield from (Span(*match.span(), "PHONE") for match in read.near_digits(FINDERS[form]))


def is_iban(account: str) -> bool:
    """Whether an account in capitals without spaces has the checksum of ISO 13616."""
    moved = account[4:] + account[:4]
    return int("".join(str(int(each, 36)) for each in moved)) % 97 == 1
