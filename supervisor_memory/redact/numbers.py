"""Payment cards, accounts, and numbers that states give people, in a folded text: by checksum."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from supervisor_memory.redact.spans import FINDERS, Label, Read, Span

if TYPE_CHECKING:
    from types import ModuleType

_NOT_DIGITS: Final = re.compile(r"[^0-9]")

# --- payment cards, ISO/IEC 7812

_CARD_LABEL: Final = Label(FINDERS.listed("card_words"))
_NO_CARD: Final = Label(FINDERS.listed("no_card_words"))


def cards(read: Read) -> Iterator[Span]:
    """Numbers of payment cards: a known issuer's prefix, its lengths, and Luhn's checksum.

    Behind a word for a card, an unknown issuer will do, or a checksum that is wrong by a slip.
    """
    for match in read.near_digits(FINDERS["card"]):
        start, end = match.span(1)
        digits = _NOT_DIGITS.sub("", match[1])
        issued, sound = _is_issued(digits), luhn(digits)
        before = read.before(start)
        if issued and sound:
            named = not (before.names(_NO_CARD) or before.sign == "#") or before.names(_CARD_LABEL)
        else:
            named = (issued or sound) and before.names(_CARD_LABEL)
        if named:
            yield Span(start, end, "CARD")


def luhn(digits: str) -> bool:
    """Whether the checksum of ISO/IEC 7812-1 holds."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value  # noqa: PLR2004
    return total % 10 == 0


_ISSUERS: Final = FINDERS.rows("issuers")


def _is_issued(digits: str) -> bool:
    return any(
        len(digits) in each["lengths"] and each["first"] <= digits[: len(each["first"])] <= each["last"]
        for each in _ISSUERS
    )


# --- resident ids of China, GB 11643

_CN_ID_LABEL: Final = Label(FINDERS.listed("cn_id_words"))
_CN_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECKS: Final = "10X98765432"


def cn_ids(read: Read) -> Iterator[Span]:
    """Resident ids: 18 places with a date and a checksum.

    Behind a word for an id, the checksum may be wrong by a slip, and the old form of 15 digits will do.
    """
    for match in read.near_digits(FINDERS["cn_id"]):
        if _has_cn_check(match[0]) or read.before(match.start()).names(_CN_ID_LABEL):
            yield Span(*match.span(), "CN_ID")
    for match in read.near_digits(FINDERS["cn_id_old"]):
        if read.before(match.start()).names(_CN_ID_LABEL):
            yield Span(*match.span(), "CN_ID")


def _has_cn_check(told: str) -> bool:
    number = told.replace(" ", "").replace("-", "").upper()
    total = sum(weight * int(digit) for weight, digit in zip(_CN_WEIGHTS, number, strict=False))
    return _CN_CHECKS[total % 11] == number[-1]


# --- social security numbers of the USA

_US_SSN_LABEL: Final = Label(FINDERS.listed("us_ssn_words"))


def us_ssns(is_valid: Callable[[str], bool]) -> "Finder":
    """Social security numbers, which have no checksum: with dashes, or behind a word for one.

    Args:
        is_valid: Whether digits with dashes can be one: `stdnum.us.ssn.is_valid`.
    """

    def find(read: Read) -> Iterator[Span]:
        for match in read.near_digits(FINDERS["us_ssn"]):
            labelled = read.before(match.start()).names(_US_SSN_LABEL)
            if labelled or (match[1] == "-" and is_valid(match[0])):
                yield Span(*match.span(), "US_SSN")

    return find


# --- IBAN, ISO 13616

_IBAN_ENDS: Final = re.compile(r"[A-Za-z0-9](?![A-Za-z0-9])")


def ibans(is_valid: Callable[[str], bool]) -> "Finder":
    """Bank accounts: IBANs in their country's own form, with a right checksum.

    Args:
        is_valid: Whether a text without spaces is an IBAN: `stdnum.iban.is_valid`.
    """

    def find(read: Read) -> Iterator[Span]:
        text = read.text
        for match in FINDERS["iban"].finditer(text):
            for end in reversed([each.end() for each in _IBAN_ENDS.finditer(text, *match.span())]):
                told = text[match.start() : end]
                if is_valid(re.sub("[ -]", "", told).upper()):
                    yield Span(match.start(), end, "IBAN")
                    break

    return find


# --- other countries' numbers of persons

Finder: TypeAlias = Callable[[Read], Iterator[Span]]
_OF_DIGITS: Final = FINDERS.table("of_digits")
_OF_LETTERS: Final = FINDERS.table("of_letters")
_ID_LABEL: Final = Label(FINDERS.listed("national_id_words"))
_ONLY_LABELLED: Final = FINDERS.words("only_labelled")


def _group(module: str) -> str:
    return module.replace(".", "_")


_MODULES: Final = {_group(name): name for name in (*_OF_DIGITS, *_OF_LETTERS)}


class NationalIds:
    """Numbers of persons of eight more states: Brazil, France, Korea, Spain, Finland, India, Italy, Mexico.

    By form and checksum; numbers of India and of Spain's citizens only behind a word for them.
    """

    MODULES: Final = (*_OF_DIGITS, *_OF_LETTERS)

    def __init__(self, modules: "Mapping[str, ModuleType]") -> None:
        self._checks: Mapping[str, Callable[[str], bool]] = {n: m.is_valid for n, m in modules.items()}
        self._of_digits = _any_of(_OF_DIGITS)
        self._of_letters = _any_of(_OF_LETTERS)

    def __call__(self, read: Read) -> Iterator[Span]:
        found = (*read.near_digits(self._of_digits), *self._of_letters.finditer(read.text))
        for match in found:
            name = _MODULES[match.lastgroup or ""]
            if name in _ONLY_LABELLED and not read.before(match.start()).names(_ID_LABEL):
                continue
            if self._checks[name](match[0]):
                yield Span(*match.span(), "NATIONAL_ID")


def _any_of(forms: Mapping[str, str]) -> re.Pattern[str]:
    """A pattern of all forms, with a group named after each module."""
    groups = (f"(?P<{_group(name)}>{form})" for name, form in forms.items())
    return re.compile(rf"(?<![0-9A-Za-z_-])(?:{'|'.join(groups)})(?![0-9A-Za-z_-])")
