"""Adds further languages: packages that others publish under the entry point `supervisor_memory.languages`.

A pack is a package with TOML files named like those of this folder. Its lists and blocks are added to theirs;
docs/languages.md tells how to write one. A pack that breaks its own promises is refused when it is read.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from importlib.resources import files
from typing import Any, NoReturn

from supervisor_memory.language.lexicon import PLACEHOLDER, Lexicon, LexiconError, joined

_SET = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED = re.compile(r"(?<![*+?}])(?:[*+]|\{\d*,\})(?!\+)")
_EXAMPLES = frozenset({"yes", "no"})


def extend(words: Lexicon, name: str, point: EntryPoint) -> None:
    """Add what a pack says in its file `name`.toml, if it has one.

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
            listed.extend([self._member(key, each) for each in members])

    def _member(self, key: str, given: Any) -> Any:
        """A word or a rule as the list holds it."""
        if isinstance(given, str):
            if re.escape(given).replace("\\ ", " ").replace("\\-", "-") != given:
                self._refuse(key, f"{given!r} is a pattern; give it as a table with pattern, yes and no")
            return given
        if not isinstance(given, dict) or not isinstance(given.get("pattern"), str):
            self._refuse(key, f"{given!r} is neither a word nor a table with a pattern")
        pattern = self._filled(given["pattern"])
        if _UNBOUNDED.search(_SET.sub("x", pattern)):
            self._refuse(key, f"a repetition of {pattern!r} has no bound; write {{0,40}} instead of * and +")
        self._try(key, pattern, given)
        said = {name: value for name, value in given.items() if name not in _EXAMPLES | {"pattern"}}
        return {**said, "pattern": pattern} if said else pattern

    def _try(self, key: str, pattern: str, given: Mapping[str, Any]) -> None:
        rule = self._words.compiled(pattern, key)
        if not given.get("yes"):
            self._refuse(key, f"{pattern!r} has no example; add yes = ['a sentence that it is for']")
        for name in sorted(_EXAMPLES):
            for example in given.get(name, ()):
                if (rule.search(example) is None) == (name == "yes"):
                    told = "does not find" if name == "yes" else "finds"
                    self._refuse(key, f"{pattern!r} {told} its example {name} = {example!r}")

    def _filled(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda match: self._texts.get(match[1], match[0]), joined(text))

    def _refuse(self, key: str, why: str) -> NoReturn:
        raise LexiconError(f"{self._place}: {key}: {why}")


def _lists(entries: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, list[Any]]]:
    for key, value in entries.items():
        if isinstance(value, list):
            yield f"{within}{key}", value
        elif isinstance(value, dict):
            yield from _lists(value, f"{within}{key}.")
