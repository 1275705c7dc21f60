"""Every phrase of the pages, in English and Chinese, from words.toml."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from markupsafe import Markup

from supervisor_memory.model.explain import REASONS

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
NAMES: Final[Mapping[Language, str]] = MappingProxyType({"en": "English", "zh": "中文"})


def _read() -> Mapping[str, Mapping[Language, str]]:
    """The phrases of words.toml, and the reasons why records are in a note or are not."""
    phrases = tomllib.loads(files(__package__).joinpath("words.toml").read_text("utf-8"))
    in_chinese = phrases.pop("reasons-in-chinese")
    phrases |= {f"reason.{code}": (told, in_chinese.get(code, "")) for code, told in REASONS.items()}
    return {key: MappingProxyType(dict(zip(LANGUAGES, each, strict=True))) for key, each in phrases.items()}


WORDS: Final[Mapping[str, Mapping[Language, str]]] = MappingProxyType(_read())


def worded(key: str, language: Language, **values: object) -> str:
    """The phrase of a key; its `.one` where `n` is 1. A code without a phrase is told by its own words.

    Such a code is a reason of an operator's own. Values that are HTML stay so, and make the phrase HTML.
    """
    phrase = WORDS.get(f"{key}.one") if values.get("n") == 1 else None
    phrase = phrase or WORDS.get(key)
    if phrase is None:
        return (key.partition(".")[2] or key).replace("-", " ").replace(":", ", ")
    if any(isinstance(value, Markup) for value in values.values()):
        return Markup(phrase[language]).format(**values)  # a phrase of ours; values are escaped
    return phrase[language].format(**values) if values else phrase[language]


def preferred(accepts: str) -> Language:
    """The language of an Accept-Language header that is ours and weighs most; English where none is."""
    weights: dict[Language, float] = {}
    for entry in accepts.split(","):
        tag, _, weight = entry.strip().partition(";q=")
        for language in LANGUAGES:
            if tag.lower().partition("-")[0] == language:
                weights[language] = max(weights.get(language, 0.0), _number(weight or "1"))
    return max(weights, key=lambda each: weights[each]) if weights else "en"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
