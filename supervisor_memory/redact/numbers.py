"""Payment cards, accounts, and numbers that states give people, in a folded text: by checksum."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from supervisor_memory.redact.spans import Label, Read, Span

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NationalIds", "cards", "cn_ids", "ibans", "luhn", "us_ssns"]

_BEFORE: Final = r"(?<![0-9A-Za-z_])(?<![0-9]\.)(?<![A-Za-z0-9]-)"
_AFTER: Final = r"(?![0-9A-Za-z_])(?!\.[0-9])"
_NOT_DIGITS: Final = re.compile(r"[^0-9]")

# --- payment cards, ISO/IEC 7812

_CARD: Final = re.compile(
    rf"{_BEFORE}(?=([0-9]{{13,19}}"
    r"|[0-9]{4}([ -])[0-9]{4}\2[0-9]{4}\2[0-9]{4}(?:\2[0-9]{1,3})?"
    r"|[0-9]{4}([ -])[0-9]{6}\3[0-9]{4,5}"
    rf"|[0-9]{{6}}[ -][0-9]{{10,13}}){_AFTER})"
)
_CARD_LABEL: Final = Label(
    ("卡", "银行卡", "信用卡", "帐", "账", "账户", "card", "visa", "mastercard", "amex", "pan")
)
_NO_CARD: Final = Label(
    (
        "订单", "单", "流水", "编", "工单", "条码", "时间戳",
        "order", "invoice", "ticket", "sku", "tracking", "uuid", "id", "timestamp", "ts", "epoch",
        "isbn", "ean", "gtin", "imei",
    )
)  # fmt: skip


def cards(read: Read) -> Iterator[Span]:
    """Numbers of payment cards: a known issuer's prefix, its lengths, and Luhn's checksum.

    Behind a word for a card, an unknown issuer will do, or a checksum that is wrong by a slip.
    """
    for match in read.near_digits(_CARD):
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


_ISSUERS: Final = (
    # first and last prefix, lengths
    ("4", "4", (16, 19)),  # Visa; those of 13 digits are gone, barcodes are not
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("81", "81", (16, 17, 18, 19)),
    ("3528", "3589", (16, 19)),  # JCB
    ("300", "305", (14,)),  # Diners
    ("36", "36", (14,)),
    ("38", "39", (14,)),
    ("2200", "2204", (16,)),  # Mir
)


def _is_issued(digits: str) -> bool:
    return any(
        len(digits) in lengths and first <= digits[: len(first)] <= last for first, last, lengths in _ISSUERS
    )


# --- resident ids of China, GB 11643

_CN_ID: Final = re.compile(
    rf"{_BEFORE}[1-9][0-9]{{5}}([ -]?)(?:18|19|20)[0-9]{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"\1[0-9]{3}[0-9Xx](?![0-9A-Za-z_])"
)
_CN_ID_OLD: Final = re.compile(
    rf"{_BEFORE}[1-9][0-9]{{5}}[0-9]{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{{3}}(?![0-9A-Za-z_])"
)
_CN_ID_LABEL: Final = Label(
    (
        "身份证",
        "身份证件",
        "身分证",
        "居民证",
        "证件",
        "id card",
        "national id",
        "resident id",
        "identity card",
        "id",
    )
)
_CN_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECKS: Final = "10X98765432"


def cn_ids(read: Read) -> Iterator[Span]:
    """Resident ids: 18 places with a date and a checksum.

    Behind a word for an id, the checksum may be wrong by a slip, and the old form of 15 digits will do.
    """
    for match in read.near_digits(_CN_ID):
        if _has_cn_check(match[0]) or read.before(match.start()).names(_CN_ID_LABEL):
            yield Span(*match.span(), "CN_ID")
    for match in read.near_digits(_CN_ID_OLD):
        if read.before(match.start()).names(_CN_ID_LABEL):
            yield Span(*match.span(), "CN_ID")


def _has_cn_check(told: str) -> bool:
    number = told.replace(" ", "").replace("-", "").upper()
    total = sum(weight * int(digit) for weight, digit in zip(_CN_WEIGHTS, number, strict=False))
    return _CN_CHECKS[total % 11] == number[-1]


# --- social security numbers of the USA

_US_SSN: Final = re.compile(rf"{_BEFORE}[0-9]{{3}}([- ]?)[0-9]{{2}}\1[0-9]{{4}}{_AFTER}(?!-[0-9A-Za-z])")
_US_SSN_LABEL: Final = Label(("社会安全", "社安", "社保", "ssn", "itin", "social", "social security"))


def us_ssns(is_valid: Callable[[str], bool]) -> "Finder":
    """Social security numbers, which have no checksum: with dashes, or behind a word for one.

    Args:
        is_valid: Whether digits with dashes can be one: `stdnum.us.ssn.is_valid`.
    """

    def find(read: Read) -> Iterator[Span]:
        for match in read.near_digits(_US_SSN):
            labelled = read.before(match.start()).names(_US_SSN_LABEL)
            if labelled or (match[1] == "-" and is_valid(match[0])):
                yield Span(*match.span(), "US_SSN")

    return find


# --- IBAN, ISO 13616

_IBAN: Final = re.compile(
    r"(?<![0-9A-Za-z_])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}(?:[ -]{0,1}[A-Za-z0-9]){0,4}"
)
_IBAN_ENDS: Final = re.compile(r"[A-Za-z0-9](?![A-Za-z0-9])")


def ibans(is_valid: Callable[[str], bool]) -> "Finder":
    """Bank accounts: IBANs in their country's own form, with a right checksum.

    Args:
        is_valid: Whether a text without spaces is an IBAN: `stdnum.iban.is_valid`.
    """

    def find(read: Read) -> Iterator[Span]:
        text = read.text
        for match in _IBAN.finditer(text):
            for end in reversed([each.end() for each in _IBAN_ENDS.finditer(text, *match.span())]):
                told = text[match.start() : end]
                if is_valid(re.sub("[ -]", "", told).upper()):
                    yield Span(match.start(), end, "IBAN")
                    break

    return find


# --- other countries' numbers of persons

Finder: TypeAlias = Callable[[Read], Iterator[Span]]
_OF_DIGITS: Final = {
    "br.cpf": r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}",
    "fr.nir": r"[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
    "kr.rrn": r"[0-9]{2}(?:0[1-9]|1[0-2])[0-3][0-9]-[0-9]{7}",
    "es.dni": r"[0-9]{8}-?[A-HJ-NP-TV-Z]",
    "es.nie": r"[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]",
    "fi.hetu": r"[0-3][0-9][01][0-9]{3}[-+A][0-9]{3}[0-9A-Y]",
    "in_.aadhaar": r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}",
}
_OF_LETTERS: Final = {
    "it.codicefiscale": r"[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]",
    "mx.curp": r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[0-9A-Z][0-9]",
}
_ID_LABEL: Final = Label(("aadhaar", "aadhar", "uidai", "dni", "nif", "d.n.i."))
_ONLY_LABELLED: Final = frozenset({"in_.aadhaar", "es.dni"})
"""Their checksums are weak: 1 of 10 random numbers passes for India, 1 of 23 for Spain."""


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
