"""Puts placeholders in the place of what must not be kept. A memory makes one, and uses it everywhere.

Texts without digits, "@" and words such as "password" are handed back at once.
"""

import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from supervisor_memory.errors import RedactionError, SettingsError
from supervisor_memory.redact.spans import Read, Span, merged, without_unseen
from supervisor_memory.redact.types import TYPES, placeholder, read_regions, read_types

__all__ = ["Redact", "Redactor", "open_redactor"]

Redact: TypeAlias = Callable[[str], str]
"""A function of the host's own: a text in, the same text without what must not be kept out."""
Finder: TypeAlias = Callable[[Read], Iterator[Span]]

_MOST_ROUNDS: Final = 8
_OF_WORDS: Final = frozenset({"EMAIL", "SECRET"})
"""What can do without digits; all others have four and more, near each other."""
_SEVERAL_DIGITS: Final = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){3}|[0-9A-Fa-f]{1,4}::?[0-9A-Fa-f]")
_NAMES: Final = re.compile(r"\[([A-Z][A-Z0-9_]{1,40})\]|<([A-Z][A-Z0-9_]{1,40})>")
_LONGEST_KEY: Final = 64


class Redactor:
    """Takes personal data and secrets out of texts.

    What it has taken out once it leaves alone: placeholders stay as they are.

    Args:
        finders: By type, what finds it. None: it leaves every text as it is, unless there is `own`.
        own: Called with what the finders leave.
    """

    def __init__(self, finders: Mapping[str, Finder] | None = None, own: Redact | None = None) -> None:
        self._finders = dict(finders or {})
        self._of_words = {name: find for name, find in self._finders.items() if name in _OF_WORDS}
        self._own = own
        self._names = set(self._finders)  # of placeholders; those of `own` are learned as it puts them

    @property
    def is_off(self) -> bool:
        """Whether it never changes anything."""
        return not self._finders and self._own is None

    def text(self, text: str) -> str:
        """The text with placeholders; where nothing is found, the very same object.

        Raises:
            RedactionError: the host's function failed, or answered no text.
        """
        if not self._finders:
            return text if self._own is None else self._by_own(self._own, text)
        told = text
        for _ in range(_MOST_ROUNDS):  # what goes may have hidden another's beginning
            found = self._spans(told)
            if not found:
                break
            told = _replaced(told, found)
        return told if self._own is None else self._by_own(self._own, told)

    def value(self, value: Any) -> Any:
        """The same for all texts and whole numbers in a value that JSON can hold, however deep. Keys stay.

        A key is a word before its value: `{"password": "…"}`, `{"phone": 13800138000}`.
        """
        if self.is_off:
            return value
        if isinstance(value, Mapping):
            return {key: self._under(key, each) for key, each in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(each) for each in value]
        return self._scalar(value, "")

    def counts(self, text: str) -> Counter[str]:
        """How many placeholders of each type a text holds."""
        found = (match[1] or match[2] for match in _NAMES.finditer(text))
        return Counter(name for name in found if name in self._names)

    def _under(self, key: object, value: Any) -> Any:
        if isinstance(value, (Mapping, list, tuple)):
            return self.value(value)
        return self._scalar(value, f"{key}: " if isinstance(key, str) and len(key) <= _LONGEST_KEY else "")

    def _scalar(self, value: Any, before: str) -> Any:
        """A text with placeholders; a number that is somebody's is its placeholder."""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return value
        quote = '"' if before and isinstance(value, str) and '"' not in value else ""
        whole = f"{before}{quote}{value}{quote}"
        told = self.text(whole)
        if told == whole:
            return value
        if told.startswith(before + quote) and told.endswith(quote):
            return told[len(before + quote) : len(told) - len(quote)]
        return self.text(str(value))

    def _spans(self, text: str) -> Sequence[Span]:
        """Those of the text as it is and, where somebody put what nobody sees into it, as it reads."""
        found = list(self._found(text))
        if seen := without_unseen(text):
            plain, places = seen
            read = self._found(plain)
            found += (Span(places[each.start], places[each.end - 1] + 1, each.type) for each in read)
        return merged(found)

    def _found(self, text: str) -> Iterator[Span]:
        read = Read(text)
        finders = self._finders if _SEVERAL_DIGITS.search(read.text) else self._of_words
        return (span for find in finders.values() for span in find(read))

    def _by_own(self, own: Redact, text: str) -> str:
        failure = ""
        try:
            told: object = own(text)
        except Exception as error:  # noqa: BLE001
            # Its text and its traceback may quote what was to be taken out, so they go no further.
            told, failure = None, f"failed with {type(error).__name__}"
        if not isinstance(told, str):
            raise RedactionError(
                f"the redact function {failure or 'answered ' + type(told).__name__}; nothing was kept. "
                "It has to answer every text with a text"
            )
        self._names |= set(_named(told)) - set(_named(text))
        return told


def _named(text: str) -> Iterator[str]:
    return (match[1] or match[2] for match in _NAMES.finditer(text))


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    place = 0
    for span in spans:
        parts += (text[place : span.start], placeholder(span.type))
        place = span.end
    return "".join((*parts, text[place:]))


def open_redactor(wanted: str, regions: str, own: Redact | None = None) -> Redactor:
    """What the settings ask for.

    Args:
        wanted: As MEMORY_REDACT, `regions` as MEMORY_PHONE_REGIONS.

    Raises:
        SettingsError: a library is not installed, or a region is unknown to it.
    """
    if own is not None and not callable(own):
        raise SettingsError(f"redact is {type(own).__name__}; pass a function from a text to a text")
    return Redactor({name: _finder(name, regions) for name in read_types(wanted)}, own)


def _finder(name: str, regions: str) -> Finder:
    """What finds a type. Imported here: their patterns take a while to compile."""
    from supervisor_memory.redact import addresses, contacts, keys, numbers

    match name:
        case "EMAIL":
            return contacts.emails
        case "PHONE":
            return contacts.Phones(_module("phonenumbers", name), read_regions(regions))
        case "CN_ID":
            return numbers.cn_ids
        case "US_SSN":
            return numbers.us_ssns(_module("stdnum.us.ssn", name).is_valid)
        case "NATIONAL_ID":
            wanted = numbers.NationalIds.MODULES
            return numbers.NationalIds({each: _module(f"stdnum.{each}", name) for each in wanted})
        case "CARD":
            return numbers.cards
        case "IBAN":
            return numbers.ibans(_module("stdnum.iban", name).is_valid)
        case "IP":
            return addresses.ips
        case "SECRET":
            return keys.secrets
    raise SettingsError(f"there is no {name!r}; use {', '.join(TYPES)}", name=name)


def _module(name: str, type_: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"MEMORY_REDACT asks for {type_.lower()}, which needs the package {name.partition('.')[0]!r}: "
            "pip install 'supervisor-memory[redact]'; or leave it out, as MEMORY_REDACT=secrets does",
            package=name,
        ) from error
