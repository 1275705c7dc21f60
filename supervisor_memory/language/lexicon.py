"""Reads words, patterns and tables from TOML files.

Those of a language stand in its folder, `en` or `zh`, and in this one what belongs to no language or puts
words of several into one pattern. The files of one name are one lexicon: lists and blocks of the languages
follow each other, tables have the entries of all, and of a text in several files each is an alternative.

An entry of a file is one of these; names are in small letters, and the order of the file is kept:

    text      A piece of a regular expression. Of a text of several lines each line is trimmed, then they are
              joined: a space at the end of a line counts for nothing.
    list      As a pattern: alternatives, each in a group of its own. As words: the words, or rows of words
              that mean the same: `wife, spouse`, of which the first is what they mean, or `wife: 妻子, 老婆`.
    table     Entries with names of their own: `name.key = …`. One with a `pattern` is a pattern whose `flags`
              are not those of the file.
    blocks    Tables in an order, `[[name]]`, each with a `pattern` or `patterns` and what they stand for.

`{name}` in a text stands for another entry of the file or of common.toml: a text as it is, the words of a
list or the names of a table as alternatives, the longest first. Flags are letters: i (any case), s (a dot is
also a line break), m (^ and $ at every line), a (ASCII alone); the entry `flags` gives those of the file.

Other languages add to the lists and blocks of these files (packs.py).
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Any, TypeAlias, cast

from supervisor_memory.language.terms import CJK, HAN

Rules: TypeAlias = tuple[tuple[str, "re.Pattern[str]"], ...]
"""Pairs of a rule's name and its pattern, in the order of the file."""

PACKS = "supervisor_memory.languages"
"""The group of entry points under which others publish languages."""

LANGUAGES = ("en", "zh")
"""The folders of the languages that are built in, in the order in which their rules are tried."""

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_LETTERS = re.compile(r"(?m)^\S+ = |#.*|\\.|([a-z]{3,})")
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "a": re.ASCII}
_CHARACTERS = {"cjk": CJK, "han": HAN}
"""Placeholders of every file: the inside of a character class."""


class LexiconError(Exception):
    """An entry of a file cannot be read; the message names the file and the entry."""


@cache
def lexicon(name: str, *, room: str = __package__) -> "Lexicon":
    """Read the file `name`.toml of a package folder, by default from this folder and from the packs."""
    folder = files(room)
    told = [folder.joinpath(language, f"{name}.toml") for language in ("", *LANGUAGES)]
    words = Lexicon(name, *(file.read_text("utf-8") for file in told if file.is_file()))
    if room == __package__ and (packs := _packs()):
        from supervisor_memory.language.packs import extend

        for each in packs:
            extend(words, name, each)
    return words


@cache
def _packs() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=PACKS), key=lambda point: point.name))


def joined(text: str) -> str:
    """The lines of a text, each trimmed, joined to one."""
    return "".join(map(str.strip, text.splitlines())) if "\n" in text else text


def alternatives(words: Iterable[str]) -> str:
    """A pattern of any of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


class Lexicon(dict[str, re.Pattern[str]]):
    """The words and patterns of a subject: `lexicon[key]` is a pattern, compiled when it is first used."""

    def __init__(self, name: str, *tomls: str) -> None:
        self._file, self._read = f"{name}.toml", "\n".join(tomls)
        self._entries: dict[str, Any] = {}
        try:
            for toml in tomls:
                self._add(self._entries, tomllib.loads(toml))
        except tomllib.TOMLDecodeError as error:
            raise LexiconError(f"{self._file} is not TOML: {error}") from error

    def _add(self, entries: dict[str, Any], more: Mapping[str, Any], within: str = "") -> None:
        """Merge another language's entries into those read so far."""
        for key, value in more.items():
            known = entries.get(key)
            if known is None:
                entries[key] = value
            elif isinstance(known, dict) and isinstance(value, dict):
                self._add(known, value, f"{within}{key}.")
            elif isinstance(known, list) and isinstance(value, list):
                known.extend(value)
            elif isinstance(known, str) and isinstance(value, str):
                entries[key] = f"(?:{joined(known)}|{joined(value)})"
            else:
                raise LexiconError(f"{self._file}: {within}{key} is another kind of entry in each language")

    def __missing__(self, key: str) -> re.Pattern[str]:
        entry, flags = self._flagged(self._entry(key))
        found = self[key] = self._compile(key, entry, flags)
        return found

    def give(self, **words: str) -> None:
        """Add placeholders whose value is worked out from other entries."""
        self._entries |= words

    def text(self, key: str, **words: str) -> str:
        """The text of an entry, its placeholders filled in: with these words, or with other entries."""
        text = self._entry(key)
        for name, word in words.items():
            text = text.replace(f"{{{name}}}", word)
        return self._filled(key, text)

    def words(self, key: str) -> frozenset[str]:
        """The words of a list, or those between the spaces of a text."""
        return frozenset(self.listed(key))

    def listed(self, key: str) -> tuple[str, ...]:
        """The words of an entry in their order."""
        entry = self._entry(key)
        return tuple(entry.split() if isinstance(entry, str) else entry)

    def meanings(self, key: str) -> dict[str, str]:
        """Word → meaning, for a list of rows `meaning: word, word`."""
        rows = (
            (told, words.split(", ")) for told, _, words in (row.rpartition(": ") for row in self._entry(key))
        )
        return {word: told or words[0] for told, words in rows for word in words}

    def table(self, key: str) -> Mapping[str, Any]:
        """The entries of a table as they stand in the file."""
        entry = self._entry(key)
        if not isinstance(entry, dict):
            raise LexiconError(f"{self._file}: {key} is no table; write its entries as {key}.name = …")
        return entry

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of three small letters or more in its files."""
        return frozenset(_LETTERS.findall(self._read))

    def pattern(self, key: str) -> re.Pattern[str]:
        """The pattern of an entry."""
        return self._pattern(key, self._entry(key))

    def patterns(self, key: str) -> Rules:
        """The patterns of a table, with their names."""
        return tuple((name, self._pattern(f"{key}.{name}", each)) for name, each in self.table(key).items())

    def each(self, key: str) -> tuple[re.Pattern[str], ...]:
        """The members of a list, each a pattern by itself."""
        return tuple(self._pattern(f"{key}[{n}]", each) for n, each in enumerate(self._entry(key)))

    def members(self, key: str) -> list[Any] | None:
        """The list itself under this key, to be added to; None where there is none."""
        entry: Any = self._entries
        for name in key.split("."):
            entry = entry.get(name) if isinstance(entry, dict) else None
        return entry if isinstance(entry, list) else None

    def rows(self, key: str) -> tuple[dict[str, Any], ...]:
        """The blocks `[[key]]` of a file, or the tables of a list, as they stand there."""
        return tuple(self._entry(key))

    def blocks(self, key: str) -> tuple[tuple[Mapping[str, Any], re.Pattern[str]], ...]:
        """The blocks `[[key]]` of a file, in order, each once with each of its patterns."""
        return tuple(
            (block, self._pattern(f"[[{key}]] no. {n}", each))
            for n, block in enumerate(self.rows(key), 1)
            for each in block.get("patterns") or [block["pattern"]]
        )

    def compiled(self, text: str, key: str) -> re.Pattern[str]:
        """The pattern of a text that was put together from entries; `key` names it in errors."""
        return self._pattern(key, text)

    def _entry(self, key: str) -> Any:
        entry: Any = self._entries
        for name in key.split("."):
            if not isinstance(entry, dict) or name not in entry:
                raise LexiconError(f"{self._file} has no entry {key}")
            entry = entry[name]
        return entry

    def _pattern(self, key: str, entry: Any) -> re.Pattern[str]:
        entry, flags = self._flagged(entry)
        return cast("re.Pattern[str]", _LazyPattern(lambda: self._compile(key, entry, flags)))

    def _flagged(self, entry: Any) -> tuple[Any, str]:
        """An entry without its own flags, and the flags that count for it."""
        flags: str = self._entries.get("flags", "")
        return (
            (entry.get("pattern"), entry.get("flags", flags)) if isinstance(entry, dict) else (entry, flags)
        )

    def _compile(self, key: str, entry: Any, flags: str) -> re.Pattern[str]:
        try:
            if isinstance(entry, list):
                source = "|".join(f"(?:{self._filled(key, each)})" for each in entry)
            else:
                source = self._filled(key, entry)
            return re.compile(source, sum(_FLAGS[letter] for letter in flags))
        except (re.error, KeyError, OverflowError, RecursionError) as error:
            raise LexiconError(f"{self._file}: {key} is no pattern: {error}") from error

    def _filled(self, key: str, entry: Any) -> str:
        if not isinstance(entry, str):
            raise LexiconError(f"{self._file}: {key} is no text")
        return PLACEHOLDER.sub(lambda match: self._text_named(match[1], key), joined(entry))

    def _text_named(self, name: str, key: str) -> str:
        if name in _CHARACTERS:
            return _CHARACTERS[name]
        if name not in self._entries:
            common = lexicon("common")
            if self is common or name not in common._entries:
                raise LexiconError(
                    f"{self._file}: {key} names {{{name}}}, which is no entry here nor in common.toml"
                )
            return common._text_named(name, key)
        entry = self._entries[name]
        if isinstance(entry, dict) and "pattern" in entry:
            return self._filled(name, entry["pattern"])
        if isinstance(entry, str):
            return self._filled(name, entry)
        return alternatives(self.meanings(name) if isinstance(entry, list) else entry)


class _LazyPattern:
    """Stands for a pattern until one of its attributes is used."""

    def __init__(self, compile_now: Callable[[], re.Pattern[str]]) -> None:
        self._compile_now = compile_now

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return self._compile_now()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found
