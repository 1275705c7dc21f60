"""IP addresses in a folded text."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from supervisor_memory.redact.spans import FINDERS, Label, Read, Span

_LABEL: Final = Label(FINDERS.listed("ip_words"))
_VERSION: Final = Label(FINDERS.listed("version_words"))
_PRODUCT: Final = re.compile(r"(?:^|[\s(;,])[A-Za-z][A-Za-z0-9_.-]*/$")  # Chrome/120.0.0.0, no part of a path
_NEAR: Final = 40
_PRIVATE_STARTS: Final = frozenset({"10", "172", "192"})
_DOTS: Final = 3
_SMALL: Final = 31
"""Four numbers no larger than this are a version or a section more often than an address."""
_V6_START: Final = re.compile(r"[0-9A-Fa-f]{3,4}:")


def ips(read: Read) -> Iterator[Span]:
    """IP addresses of version 4 and 6; not loopback, unspecified and multicast addresses, nor masks."""
    text = read.text
    if text.count(".") >= _DOTS:
        for match in FINDERS["v4"].finditer(text):
            if _is_told(match[0]) and not _is_version(read, match):
                yield Span(*match.span(), "IP")
    if text.count(":") > 1:
        for match in FINDERS["v6"].finditer(text):
            start = match.start() + (match[0][0] == ":" and match[0][:2] != "::")  # as in "IP:2001:…"
            told = text[start : match.end()]
            told = told if told.endswith("::") else told.rstrip(":.")
            if _is_v6(told):
                yield Span(start, start + len(told), "IP")


def _is_version(read: Read, match: re.Match[str]) -> bool:
    before = read.before(match.start())
    if before.names(_VERSION) or _PRODUCT.search(read.text[max(0, match.start() - _NEAR) : match.start()]):
        return True
    parts = match[0].split(".")
    looks_like_one = parts[0] not in _PRIVATE_STARTS and all(int(part) <= _SMALL for part in parts)
    return looks_like_one and not before.names(_LABEL)


def _is_v6(told: str) -> bool:
    """Valid, and neither a time of day nor a name of C++: `dead::beef`."""
    groups = [group for group in told.split(":") if group]
    enough = len(groups) > 2 or _V6_START.match(told) is not None  # noqa: PLR2004
    has_digit = any(char.isdigit() for char in told)
    return enough and has_digit and told.count(":") > 1 and _is_told(told)


def _is_told(told: str) -> bool:
    """Whether a text is an IP address of a single machine other than this one."""
    try:
        address = ipaddress.ip_address(told)
    except ValueError:
        return False
    is_mask = told.startswith("255.")
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or is_mask)
