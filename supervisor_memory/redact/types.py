"""The types that can be redacted, and the values of `MEMORY_REDACT`. Light: the settings import it."""

from typing import Final

PII: Final = ("EMAIL", "PHONE", "CN_ID", "US_SSN", "NATIONAL_ID", "CARD", "IBAN", "IP")
SECRETS: Final = ("SECRET",)
TYPES: Final = (*PII, *SECRETS)
_GROUPS: Final = {
    "off": (),
    "pii": PII,
    "secrets": SECRETS,
    "all": TYPES,
    **{name.lower(): (name,) for name in TYPES},
}


def placeholder(type_: str) -> str:
    """The text in the place of a finding of this type, such as `[EMAIL]`."""
    return f"[{type_}]"


def read_types(text: str) -> tuple[str, ...]:
    """The types that a setting names: "pii,secrets", "all", "off", or names of types such as "email,phone".

    Raises:
        ValueError: a name is unknown, or "off" stands beside another.
    """
    words = [word for part in text.split(",") if (word := part.strip().lower())]
    if unknown := [word for word in words if word not in _GROUPS]:
        raise ValueError(f"{unknown[0]!r} is nothing that can be redacted; use {', '.join(_GROUPS)}")
    if "off" in words and len(words) > 1:
        raise ValueError("off stands beside something else; use one or the other")
    wanted = {name for word in words for name in _GROUPS[word]}
    return tuple(name for name in TYPES if name in wanted)


def read_regions(text: str) -> tuple[str, ...]:
    """Countries by their two letters, "CN,US".

    Raises:
        ValueError: one is not of two letters.
    """
    words = [word for part in text.split(",") if (word := part.strip().upper())]
    if wrong := [word for word in words if not (len(word) == 2 and word.isascii() and word.isalpha())]:  # noqa: PLR2004
        raise ValueError(f"{wrong[0]!r} is no country; use two letters each, such as CN,US,DE")
    return tuple(dict.fromkeys(words))
