"""Each way of saying something that the files of words know has an example; no example contradicts it."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import supervisor_memory
from supervisor_memory.language.lexicon import Lexicon, lexicon
from supervisor_memory.understand import mentions, relations, subject  # noqa: F401 - they fill places of the files
from tests.cases import every_case

LANGUAGE = Path(supervisor_memory.__file__).parent / "language"
FOLDERS = {"en": "en", "zh": "zh", "both": ""}
EXAMPLES = {
    (language, name, key): each
    for language in FOLDERS
    for name, lists in tomllib.loads(
        (Path(__file__).parent / "examples" / f"{language}.toml").read_text("utf-8")
    ).items()
    for key, each in lists.items()
}
relations._frames()  # fills the places of its file
NAMES = sorted({name for _, name, _ in EXAMPLES})
WORD = re.compile(r"[^\\(\[{|^$?*+]*")
SHORT = 4  # characters, up to which a piece is a word
MOST = 200  # times


def lists(language: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """The lists of ways to say something in a file, each with its patterns. Lists of words are left out."""
    file = LANGUAGE / FOLDERS[language] / f"{name}.toml"
    if not file.is_file():
        return
    for key, members in within(tomllib.loads(file.read_text("utf-8"))):
        patterns = [pattern for each in members for pattern in patterns_of(each)]
        if any(not WORD.fullmatch(each) for each in patterns):
            yield key, [each for each in patterns if len(each) >= SHORT]


def within(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, list[Any]]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from within(value, f"{before}{key}.")
        elif isinstance(value, list):
            yield f"{before}{key}", value


def patterns_of(entry: Any) -> list[str]:
    if isinstance(entry, dict):
        return entry.get("patterns") or [each for each in (entry.get("pattern"),) if each]
    return [entry] if isinstance(entry, str) else []


def compiled(words: Lexicon, key: str, pattern: str) -> "re.Pattern[str]":
    return re.compile(words.compiled(pattern, key).pattern, words.compiled(pattern, key).flags)


@every_case("language", FOLDERS)
def test_every_way_of_saying_something_has_an_example_and_none_contradicts(language: str) -> None:
    wrong = []
    for name in NAMES:
        words = lexicon(name)
        for key, patterns in lists(language, name):
            told = EXAMPLES.get((language, name, key), {"yes": [], "no": []})
            for pattern in patterns:
                rule = compiled(words, key, pattern)
                if not any(map(rule.search, told["yes"])):
                    wrong.append(f"{name}.toml: {key}: no example of {pattern!r}")
                found = filter(rule.search, told["no"])
                wrong += [f"{name}.toml: {key}: {pattern!r} finds {each!r}" for each in found]
    assert wrong == []


def test_no_example_is_of_a_list_that_is_gone() -> None:
    there = {
        (language, name, key) for language in FOLDERS for name in NAMES for key, _ in lists(language, name)
    }
    assert EXAMPLES.keys() - there == set()


@every_case("language", FOLDERS)
def test_no_way_of_saying_something_repeats_without_bound_what_takes_many_forms(language: str) -> None:
    """A repetition without bound stands only of a choice between words, where it gives nothing of another."""
    parse = __import__("re._parser", fromlist=["parse"]).parse
    wrong = [
        f"{name}.toml: {key}: {pattern!r}"
        for name in NAMES
        for key, patterns in lists(language, name)
        for pattern in patterns
        if nested(parse(compiled(lexicon(name), key, pattern).pattern))
    ]
    assert wrong == []


def nested(part: Any, *, inside: bool = False) -> bool:
    """Whether a repetition without bound holds one that may give something back in more than MOST ways."""
    if isinstance(part, tuple) and len(part) == 2 and str(part[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        _, most, repeated = part[1]
        is_free = not isinstance(most, int) or int(most) > MOST
        return (is_free and inside) or nested(repeated, inside=inside or is_free)
    if isinstance(part, str | int) or part is None:
        return False
    return any(nested(each, inside=inside) for each in part)
