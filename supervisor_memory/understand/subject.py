"""Find the subject, property and value of a preference. English and Chinese.

To teach a new property, add a table to subjects.toml. A preference that touches two properties keeps none
of them: it would be replaced as a whole when only one of them changes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.understand.people import people
from supervisor_memory.understand.statements import MAX_SENTENCE, masked, normal

__all__ = ["About", "about_preference", "properties_of"]


@dataclass(frozen=True, slots=True)
class About:
    """Subject, attribute and value of a statement; each None if it is unknown."""

    subject: str | None = None
    attribute: str | None = None
    value: str | None = None


_LEXICON = lexicon("subjects")
_PROPERTIES = tuple(
    (name, each["said_of"], _LEXICON.patterns(f"properties.{name}.values"))
    for name, each in _LEXICON.table("properties").items()
)
"""Each property: its name, what it is said of when nothing is named, and its values."""
_DECIMALS = _LEXICON.pattern("decimals")
_DIGITS = {word: str(n) for n, words in enumerate(_LEXICON.listed("digits")) for word in words.split()}
_NAME = _LEXICON.pattern("name")
_STANDING = lexicon("wishes").pattern("preferences.standing-instruction")
_FACT = _LEXICON.pattern("fact")
_FACTS_ZH = _LEXICON.table("facts_zh")
_CONTRAST = _LEXICON.pattern("contrast")
_AVOIDS = _LEXICON.pattern("avoids")
_SUBJECTS = _LEXICON.patterns("subjects")
_BRIEF = _LEXICON.pattern("brief")
_OWN_ACTS = _LEXICON.pattern("own_acts")
_ANSWERS = _LEXICON.pattern("answers")
_PURPOSE = _LEXICON.pattern("purpose")
_GENERIC_PURPOSES = _LEXICON.words("generic_purposes")


def about_preference(text: str) -> About:
    """Subject, attribute and value of a preference; all None unless it has exactly one known property."""
    wish = _after_the_turn(normal(text[:MAX_SENTENCE]))
    found = _found(wish)
    if len(found) != 1:
        return About()
    [(name, said_of, value, avoided)] = found
    subject = said_of if said_of == "user" else _subject(wish, said_of)
    subject = (name == "verbosity" and _thing(wish)) or subject
    who = people(text[:MAX_SENTENCE])
    if who.leads and said_of != "user":
        subject = f"{min(who.others)}'s {subject}"
    if avoided:
        return About(subject, f"avoids-{value.replace(' ', '-')}", "yes")
    return About(subject, name, value)


def properties_of(text: str) -> tuple[str, ...]:
    """The properties a preference touches, as tags."""
    return tuple(dict.fromkeys(name for name, *_ in _found(_after_the_turn(normal(text[:MAX_SENTENCE])))))


def _after_the_turn(text: str) -> str:
    """Cut what precedes a clause like "from now on": 这次用列表，以后还是用表格."""
    clauses = re.split(r"[,;] ?", text)
    lasting = [clause for clause in clauses if _STANDING.search(clause)]
    return text[text.index(lasting[0]) :] if lasting and _STANDING.search(text) else text


def _found(text: str) -> list[tuple[str, str, str, bool]]:
    """Find (property, default subject, value, whether it is to be avoided)."""
    hidden = masked(text)
    wanted = _CONTRAST.sub(lambda match: match["kept"] or "", hidden)
    return [*_facts(text), *_of_properties(wanted, avoided=False)] or [*_of_properties(hidden, avoided=True)]


def _facts(text: str) -> Iterator[tuple[str, str, str, bool]]:
    if match := _NAME.search(text):
        name = next(g for g in match.groups() if g)
        avoided = bool(_AVOIDS.search(text[: match.start()][-12:]))
        yield "name", "user", name.strip(" .'").casefold(), avoided
    if match := _FACT.search(text):
        what = (match["what"] or match["what_zh"]).casefold()
        what = _FACTS_ZH.get(what, what)
        yield (
            what.replace("timezone", "time zone"),
            "user",
            (match["is"] or match["is_zh"]).strip(" .。").casefold(),
            False,
        )


def _of_properties(text: str, *, avoided: bool) -> Iterator[tuple[str, str, str, bool]]:
    negative = avoided or bool(_AVOIDS.search(text))
    for name, said_of, patterns in _PROPERTIES:
        if name == "language" and _OWN_ACTS.search(text):
            continue
        values = [value for value, pattern in patterns if pattern.search(text)]
        yield from ((name, said_of, value, negative) for value in values)
    for match in _DECIMALS.finditer(text):
        digit = (match["zh"] or match["en"] or "0").casefold()
        yield "decimals", "number", _DIGITS.get(digit, digit), negative


def _thing(text: str) -> str | None:
    """The subject that is to be short or detailed, if it is not the answers: "short meetings"."""
    match = _BRIEF.search(text)
    named = (match[name] for name in ("after", "before", "zh", "zhafter")) if match else ()
    found = (word.casefold() for word in named if word and not _ANSWERS.fullmatch(word))
    return next((word.removesuffix("s") for word in found), None)


def _subject(text: str, said_of: str) -> str:
    match = _PURPOSE.search(text)
    purpose = (match["en"] or match["zh"]).casefold().strip() if match else ""
    if purpose and purpose not in _GENERIC_PURPOSES:
        return purpose
    return next((name for name, pattern in _SUBJECTS if name != said_of and pattern.search(text)), said_of)
