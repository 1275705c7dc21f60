"""Adds further languages: packages that others publish under the entry point `supervisor_memory.languages`.

A pack is a package with TOML files named like those of this folder. Its lists and blocks are added to theirs;
docs/languages.md tells how to write one. A pack that breaks its own promises is refused when it is read.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.resources import files
from typing import Any, Final, NoReturn

from supervisor_memory.language.lexicon import PLACEHOLDER, Lexicon, LexiconError, joined

_EXAMPLES: Final = frozenset({"yes", "no"})
_PATTERNS: Final = frozenset({"pattern", "patterns"})
_MOST_WAYS: Final = 100_000
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT"})


def extend(words: Lexicon, name: str, point: EntryPoint) -> None:
    """Add the entries of a pack's file `name`.toml, if it has one.

    Raises:
        LexiconError: The pack cannot be imported, has a file that no room reads, or an entry is refused: it
            is no list here, a repetition has no bound, a pattern has no example, or an example contradicts.
    """
    try:
        folder = files(point.module)
    except ImportError as error:
        raise LexiconError(f"language pack {point.name} cannot be imported: {error}") from error
    ours = {each.name for each in files(__package__).iterdir()}
    for file in folder.iterdir():
        if file.name.endswith(".toml") and file.name not in ours:
            known = ", ".join(sorted(each for each in ours if each.endswith(".toml")))
            raise LexiconError(f"language pack {point.name}: nothing reads {file.name}; there are {known}")
    file = folder.joinpath(f"{name}.toml")
    if file.is_file():
        _Pack(f"language pack {point.name}, {name}.toml", words).read(file.read_text("utf-8"))


class _Pack:
    """One file of a pack, on its way into the file of the same name."""

    def __init__(self, place: str, words: Lexicon) -> None:
        self._place, self._words = place, words
        self._texts: dict[str, str] = {}

    def read(self, toml: str) -> None:
        try:
            entries = tomllib.loads(toml)
        except tomllib.TOMLDecodeError as error:
            raise LexiconError(f"{self._place} is not TOML: {error}") from error
        for key, text in entries.items():
            if isinstance(text, str):  # what a placeholder of this file alone stands for
                self._texts[key] = self._filled(text)
        for key, members in _lists(entries):
            listed = self._words.members(key)
            if listed is None:
                self._refuse(key, "a pack adds to lists and blocks, and this is none here")
            form = _Form(self._words, key, listed)
            listed.extend([self._member(key, each, form) for each in members])

    def _member(self, key: str, given: Any, form: "_Form") -> Any:
        """A word or a rule as the list holds it."""
        if isinstance(given, str) and not form.blocks:
            if re.escape(given).replace("\\ ", " ").replace("\\-", "-") != given:
                self._refuse(key, f"{given!r} is a pattern; give it as a table with pattern, yes and no")
            return given
        if not isinstance(given, dict) or not isinstance(given.get("pattern"), str):
            what = "no table with a pattern" if form.blocks else "neither a word nor a table with a pattern"
            self._refuse(key, f"{given!r} is {what}")
        pattern = self._filled(given["pattern"])
        said = {name: value for name, value in given.items() if name not in _EXAMPLES | _PATTERNS}
        self._try(key, pattern, given, said, form)
        return {**said, "pattern": pattern} if said else pattern

    def _try(
        self, key: str, pattern: str, given: Mapping[str, Any], said: Mapping[str, Any], form: "_Form"
    ) -> None:
        try:
            rule = self._words.compiled(pattern, key)
            groups = rule.groupindex
        except LexiconError as error:
            self._refuse(key, str(error))
        if (ways := _ways_of(PLACEHOLDER.sub("x", pattern), rule.flags)) > _MOST_WAYS:
            why = "has no bound" if ways == math.inf else f"can match in more than {_MOST_WAYS:,} ways"
            self._refuse(key, f"a repetition of {pattern!r} {why}; write {{0,40}} instead of * and +, or a++")
        if missing := ", ".join(sorted(form.groups - groups.keys())):
            self._refuse(key, f"{pattern!r} lacks what the entries of this list have: (?P<{missing}>…)")
        if wrong := form.lacks(said):
            self._refuse(key, f"{pattern!r} {wrong}")
        examples = {name: given.get(name, []) for name in sorted(_EXAMPLES, reverse=True)}
        if not all(
            isinstance(each, list) and all(isinstance(one, str) for one in each) for each in examples.values()
        ):
            self._refuse(key, f"yes and no of {pattern!r} are no lists of sentences")
        if not examples["yes"]:
            self._refuse(key, f"{pattern!r} has no example; add yes = ['a sentence that it is for']")
        for name, sentences in examples.items():
            for example in sentences:
                found = rule.search(example)
                if (found is None) == (name == "yes"):
                    told = "does not find" if name == "yes" else "finds"
                    self._refuse(key, f"{pattern!r} {told} its example {name} = {example!r}")
                self._put(key, found, said)

    def _put(self, key: str, found: "re.Match[str] | None", said: Mapping[str, Any]) -> None:
        for name, value in said.items():
            try:
                _ = found and isinstance(value, str) and found.expand(value)
            except (re.error, IndexError) as error:
                self._refuse(key, f"{name} = {value!r} cannot be put: {error}")

    def _filled(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda match: self._texts.get(match[1], match[0]), joined(text))

    def _refuse(self, key: str, why: str) -> NoReturn:
        raise LexiconError(f"{self._place}: {key}: {why}")


class _Form:
    """The common form of a list's built-in entries, which a pack's entries must share.

    `blocks`: whether the entries are tables, with further keys beside their patterns.
    """

    def __init__(self, words: Lexicon, key: str, listed: list[Any]) -> None:
        self._words, self._key, self._listed = words, key, tuple(listed)
        self.blocks = bool(listed) and all(isinstance(each, dict) for each in listed)

    @cached_property
    def groups(self) -> frozenset[str]:
        """The groups that every pattern of the list names."""
        try:
            texts = [text for each in self._listed for text in _texts_of(each)]
            named = [frozenset(self._words.compiled(text, self._key).groupindex) for text in texts]
        except LexiconError:
            return frozenset()  # words that are no patterns
        return frozenset.intersection(*named) if named else frozenset()

    def lacks(self, said: Mapping[str, Any]) -> str:
        """The fault of a block's keys, as a sentence; "" if there is none."""
        if not self.blocks:
            return f"has {', '.join(sorted(said))}, which this list does not read" if said else ""
        shared = frozenset.intersection(*map(frozenset, self._listed)) - _PATTERNS
        allowed = frozenset.union(*map(frozenset, self._listed)) - _PATTERNS
        for name in sorted(shared - said.keys()):
            return f"has no {name}; it is one of {self._quoted_values(name)}"
        for name, value in said.items():
            if name not in allowed:
                return f"has {name}, which this list does not read; there are {', '.join(sorted(allowed))}"
            if not (value in self._values(name) or (isinstance(value, str) and "\\g<" in value)):
                return f"has {name} = {value!r}; it is one of {self._quoted_values(name)}"
        return ""

    def _values(self, name: str) -> list[Any]:
        return [each[name] for each in self._listed if name in each]

    def _quoted_values(self, name: str) -> str:
        return ", ".join(dict.fromkeys(map(repr, self._values(name))))


def _texts_of(entry: Any) -> list[str]:
    if isinstance(entry, dict):
        return entry.get("patterns") or [each for each in (entry.get("pattern"),) if each]
    return [entry] if isinstance(entry, str) else []


def _ways_of(pattern: str, flags: int) -> float:
    """The most ways in which a pattern can match from one place; a search may try all of them."""
    return _ways(import_module("re._parser").parse(pattern, flags))


def _ways(parsed: Any) -> float:
    """The ways of a sequence: the product over its items. A repetition counts the ways of its inside to the
    power of each allowed number, alternatives count their sum; a++ and (?>a), which never backtrack, count
    one."""
    product = 1.0
    for operator, value in parsed:
        name = str(operator)
        if name in _REPEATS:
            least, most, inside = value
            product *= _repeated(_ways(inside), int(least), int(most))
        elif name == "BRANCH":
            product *= sum(map(_ways, value[1]))
        elif name == "SUBPATTERN":
            product *= _ways(value[-1])
        elif name == "GROUPREF_EXISTS":
            product *= sum(_ways(each) for each in value[1:] if each)
        elif name in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"):
            inside = _ways(value if name == "ATOMIC_GROUP" else value[-1])
            product *= 1 if inside <= _MOST_WAYS else inside
    return product


def _repeated(inside: float, least: int, most: int) -> float:
    if most >= _MOST_WAYS:
        return math.inf
    if inside == 1:
        return most - least + 1.0
    return (
        math.inf
        if most * math.log(inside) > math.log(_MOST_WAYS) * 2
        else sum(inside**n for n in range(least, most + 1))
    )


def _lists(entries: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, list[Any]]]:
    for key, value in entries.items():
        if isinstance(value, list):
            yield f"{within}{key}", value
        elif isinstance(value, dict):
            yield from _lists(value, f"{within}{key}.")
