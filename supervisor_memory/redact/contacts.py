"""E-mail addresses and phone numbers in a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from supervisor_memory.errors import SettingsError
from supervisor_memory.redact.spans import FINDERS, Before, Label, Read, Span

if TYPE_CHECKING:
    from types import ModuleType

# --- e-mail

_LONGEST_LOCAL: Final = 64
_CJK: Final = "\u2e80"  # from here on letters are written without spaces between words
_IN_LOCAL: Final = frozenset("!#$%&'*+/=?^_`{|}~.-")
_USERINFO: Final = re.compile(r"://[^\s/@:]{0,64}:[^\s/]{0,64}$")
_SCALED_IMAGE: Final = re.compile(r"[0-9](?:\.[0-9])?x\.", re.IGNORECASE)


DOMAINS: Final = (FINDERS["domain"], FINDERS["chinese_domain"])


def emails(read: Read, domains: Sequence[re.Pattern[str]] = DOMAINS) -> Iterator[Span]:
    """Find e-mail addresses: a name, "@" and a domain in one of the given forms.

    The search looks a bounded way to the left of each "@".
    """
    text = read.text
    at = text.find("@")
    while at >= 0:
        domain = next(filter(None, (form.match(text, at + 1) for form in domains)), None)
        start = _local_start(text, at) if domain else at
        if domain and start < at and not _is_no_address(text, start, at):
            yield Span(start, domain.end(), "EMAIL")
        at = text.find("@", at + 1)


def _local_start(text: str, at: int) -> int:
    start, least = at, max(0, at - _LONGEST_LOCAL)
    while start > least and _is_local(text[start - 1]):
        start -= 1
    for sign in "=&?/":  # as in "?mail=ada@example.com"
        start = max(start, text.rfind(sign, start, at) + 1)
    while start < at and not text[start].isalnum() and text[start] != "_":  # a quote before it
        start += 1
    return start


def _is_local(char: str) -> bool:
    return (char.isalnum() and char < _CJK) or char in _IN_LOCAL


def _is_no_address(text: str, start: int, at: int) -> bool:
    """A remote of git or scp, a password in an address of a server, a picture for sharper screens."""
    return (
        text.startswith("git@", start)
        or _SCALED_IMAGE.match(text, at + 1) is not None
        or _USERINFO.search(text[max(0, at - 2 * _LONGEST_LOCAL) : at]) is not None
    )


# --- phone

_LABEL: Final = Label(
    (
        *FINDERS.listed("phone_words"),
        *map("".join, product(FINDERS.listed("phone_verbs"), FINDERS.listed("phone_whom"))),
    )
)
_NO_PHONE: Final = Label(FINDERS.listed("no_phone_words"))
_SIGNS: Final = frozenset("#¥$€£￥")

_LEAST, _MOST = 7, 15  # digits of a number, by E.164
_CUTS: Final = 5
_PARTS: Final = re.compile(r"[0-9]+")
_NANP_REGIONS: Final = frozenset({"US", "CA"})


class Phones:
    """Finds phone numbers.

    A number with a country code has to be valid in its country. A number without has to be written as in
    one of the regions, or stand behind a word for a phone.

    Raises:
        SettingsError: a region has no phone numbers.
    """

    def __init__(self, library: "ModuleType", regions: Sequence[str]) -> None:
        if unknown := [each for each in regions if each not in library.SUPPORTED_REGIONS]:
            raise SettingsError(
                f"MEMORY_PHONE_REGIONS names {unknown[0]!r}, which has no phone numbers; use the two "
                "letters of ISO 3166, such as CN,US,DE",
                region=unknown[0],
            )
        self._library = library
        self._regions = tuple(regions)
        self._others = tuple(r for r in regions if r != "CN" and r not in _NANP_REGIONS)
        self._has_nanp = bool(_NANP_REGIONS & set(regions))

    def __call__(self, read: Read) -> Iterator[Span]:
        if not read.runs:
            return
        for match in read.near_digits(FINDERS["abroad"]):
            yield from self._cut(read.text, *match.span(), regions=("",))
        yield from self._labelled(read)
        if "CN" in self._regions:
            yield from _unless_labelled(FINDERS["cn_mobile"], read)
            yield from _unless_labelled(FINDERS["cn_hotline"], read)
        for form in ("nanp", "trunk") if self._has_nanp else ("trunk",):
            for span in _unless_labelled(FINDERS[form], read):
                yield from self._cut(read.text, span.start, span.end)
        if self._others:
            yield from self._grouped(read)

    def _labelled(self, read: Read) -> Iterator[Span]:
        """Numbers behind a word for a phone, valid or not."""
        for match in read.near_digits(FINDERS["labelled"]):
            if _digits(match[0]) < _LEAST:
                continue
            before = read.before(match.start())
            if before.names(_LABEL):
                if "CN" in self._regions and FINDERS["cn_mobile"].fullmatch(match[0]):
                    continue  # found below, without asking the library
                yield from self._cut(read.text, *match.span()) or [_at_most(read.text, *match.span())]
            elif self._is_told_number(match[0], before):
                yield Span(*match.span(), "PHONE")

    def _is_told_number(self, told: str, before: Before) -> bool:
        """Whether a North American number stands behind "number", without "order" or the like before it."""
        is_whole = self._has_nanp and FINDERS["nanp_bare"].fullmatch(told) is not None
        return is_whole and before.has_number_word and not before.names(_NO_PHONE)

    def _grouped(self, read: Read) -> Iterator[Span]:
        """Valid numbers, in the groups in which a region writes them."""
        for match in read.near_digits(FINDERS["grouped"]):
            start, end = match.span(1)
            if not _LEAST <= _digits(match[1]) <= _MOST or read.before(start).names(_NO_PHONE):
                continue
            if any(_PARTS.findall(match[1]) == self._groups(match[1], region) for region in self._others):
                yield Span(start, end, "PHONE")

    def _cut(self, text: str, start: int, end: int, *, regions: Sequence[str] | None = None) -> list[Span]:
        """The longest part from the start that is a valid number; an empty list where no part is."""
        ends = [match.end() for match in _PARTS.finditer(text, start, end)]
        for stop in ends[: -_CUTS - 1 : -1]:
            if self._is_valid(text[start:stop], regions):
                return [_without_brackets(text, start, stop)]
        return []

    def _is_valid(self, told: str, regions: Sequence[str] | None) -> bool:
        digits = "".join(_PARTS.findall(told.replace("(0)", "")))
        if told.lstrip("(").startswith("+"):
            digits, regions = f"+{digits}", ("",)
        elif told.startswith("00"):
            digits, regions = f"+{digits[2:]}", ("",)
        if not _LEAST <= len(digits.lstrip("+")) <= _MOST:
            return False
        asked = self._regions if regions is None else regions
        return any(self._valid(digits, each) is not None for each in asked)

    def _valid(self, digits: str, region: str) -> Any:
        """The library's number of these digits; None where it is not valid in the region."""
        try:
            number = self._library.parse(digits, region or None)
        except self._library.NumberParseException:
            return None
        return number if self._library.is_valid_number(number) else None

    def _groups(self, told: str, region: str) -> list[str]:
        if (number := self._valid(told, region)) is None:
            return []
        written = self._library.format_number(number, self._library.PhoneNumberFormat.NATIONAL)
        return _PARTS.findall(written)


def _unless_labelled(form: re.Pattern[str], read: Read) -> Iterator[Span]:
    """Numbers of a form, without those named as an order, an amount and the like."""
    for match in read.near_digits(form):
        start, end = match.span()
        before = read.before(start)
        is_other = before.sign in _SIGNS or before.names(_NO_PHONE)
        if not (is_other or FINDERS["unit"].match(read.lowered, end)) or before.names(_LABEL):
            yield _without_brackets(read.text, start, end)


def _digits(text: str) -> int:
    return sum(len(part) for part in _PARTS.findall(text))


def _at_most(text: str, start: int, end: int) -> Span:
    """The span of as many groups of digits as a phone number can have."""
    stop, seen = start, 0
    for match in _PARTS.finditer(text, start, end):
        seen += len(match[0])
        if seen > _MOST and stop > start:
            break
        stop = match.end()
    return _without_brackets(text, start, stop)


def _without_brackets(text: str, start: int, stop: int) -> Span:
    """The span of a phone number without the brackets around it."""
    while text[start] == "(" and ")" not in text[start:stop]:
        start += 1
    while text[start : start + 2] == "((":
        start += 1
    return Span(start, stop, "PHONE")
