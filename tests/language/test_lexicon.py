"""The files of words and patterns, and what reads them."""

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import supervisor_memory
from supervisor_memory.language.lexicon import Lexicon, LexiconError, lexicon
from tests.cases import every_case
from tests.language.patterns import every_pattern

PACKAGE = Path(supervisor_memory.__file__).parent
FILES = sorted(file for room in ("language", "redact") for file in (PACKAGE / room).rglob("*.toml"))
CHINESE = re.compile("[\u4e00-\u9fff]")
USED = re.compile(r'(?="([^"{}.\s]+)["\.])|\{([^"{}\s]+)\}')
"""Names as a module writes them, and as a placeholder does."""
LONGEST_CALCULATED_WITH = 2
"""Characters: 万 and 中午 stand in functions that calculate with them."""
REPEATED_IN_REPEATED = {
    "supervisor_memory.compare.slots:code",
    "supervisor_memory.stages.insert.tasks_and_metrics:several",
    "supervisor_memory.understand.statements:edges",
}
"""Patterns that repeat without bound what repeats without bound, with a mark between, or nothing behind."""


def test_every_pattern_that_a_module_asks_for_can_be_compiled() -> None:
    found = every_pattern()
    assert len(found) > 400
    assert all(re.compile(pattern.pattern, pattern.flags) for _, pattern in found)


def test_no_pattern_repeats_without_bound_what_repeats_without_bound() -> None:
    found = {name for name, pattern in every_pattern() if repeats_twice(parsed(pattern))}
    assert found <= REPEATED_IN_REPEATED


def parsed(pattern: "re.Pattern[str]") -> Any:
    return importlib.import_module("re._parser").parse(pattern.pattern, pattern.flags)


def repeats_twice(part: Any, *, inside: bool = False) -> bool:
    """Whether an unbounded repetition holds another one; possessive ones give nothing back."""
    if isinstance(part, tuple) and len(part) == 2 and str(part[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        _, most, repeated = part[1]
        is_unbounded = str(most) == "MAXREPEAT"
        return (is_unbounded and inside) or repeats_twice(repeated, inside=inside or is_unbounded)
    if isinstance(part, str | int) or part is None:
        return False
    return any(repeats_twice(each, inside=inside) for each in part)


def test_a_pattern_that_looks_first_for_what_it_can_begin_with_looks_for_all_of_it() -> None:
    found = [
        (text, parsed(lexicon(file.stem).compiled(text, "given")).data)
        for file in FILES
        if file.parent.name != "redact"
        for text in texts(tomllib.loads(file.read_text("utf-8")))
        if text.strip().startswith("(?=[")
    ]
    assert len(found) >= 4
    for text, [(_, (_, looked_for)), *behind] in found:
        assert beginnings(behind) == beginnings(looked_for), text


def test_the_beginnings_of_a_pattern_are_those_of_all_its_alternatives() -> None:
    whole = re.compile(r"(?<!x)\b(?:a?[c-d]|(?P<of>e|f)g|(?:h|)i{2}|(?>j)|\n\s*)k")
    assert beginnings(parsed(whole)) == ({*"acdefhij\n"}, False)
    assert beginnings(parsed(re.compile("a*(?:b|)"))) == ({*"ab"}, True)


def texts(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict | list):
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from texts(each)


def beginnings(part: Any) -> tuple[set[str], bool]:
    """The characters that what matches can begin with, and whether it can be empty."""
    found: set[str] = set()
    for op, value in part:
        match str(op):
            case "AT" | "ASSERT" | "ASSERT_NOT":
                continue
            case "LITERAL":
                inside = [({chr(value)}, False)]
            case "IN":
                inside = [({each for one in value for each in characters(*one)}, False)]
            case "BRANCH":
                inside = [beginnings(each) for each in value[1]]
            case "SUBPATTERN":
                inside = [beginnings(value[-1])]
            case "ATOMIC_GROUP":
                inside = [beginnings(value)]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, _, repeated = value
                letters, is_empty = beginnings(repeated)
                inside = [(letters, is_empty or least == 0)]
            case _:
                raise AssertionError(f"{op} is no beginning that this test can tell")
        found.update(*(letters for letters, _ in inside))
        if not any(is_empty for _, is_empty in inside):
            return found, False
    return found, True


def characters(op: object, value: Any) -> set[str]:
    """Those of a part of a class."""
    if str(op) == "RANGE":
        return {chr(each) for each in range(value[0], value[1] + 1)}
    assert str(op) == "LITERAL", "any other class begins with too much to be looked for"
    return {chr(value)}


def test_every_entry_of_a_file_is_used() -> None:
    texts = [file.read_text("utf-8") for file in (*PACKAGE.rglob("*.py"), *FILES)]
    used = {name for text in texts for found in USED.findall(text) for name in found}
    unused = [
        f"{file.name}: {key}"
        for file in FILES
        for key in tomllib.loads(file.read_text("utf-8"))
        if key != "flags" and key not in used
    ]
    assert unused == []


@every_case("room", ["understand", "compare", "redact"])
def test_words_and_patterns_stand_in_the_files_and_not_in_python(room: str) -> None:
    found = [
        f"{file.name}:{node.lineno}: {node.value}"
        for file in sorted((PACKAGE / room).glob("*.py"))
        for node in strings(ast.parse(file.read_text("utf-8")))
        if CHINESE.search(node.value) and len(node.value) > LONGEST_CALCULATED_WITH
    ]
    assert found == []


def strings(tree: ast.Module) -> Iterator[Any]:
    """The strings of a module that are not docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node


# --- how a file is read ----------------------------------------------------------------------------------


def read(toml: str) -> Lexicon:
    return Lexicon("given", toml)


def test_the_lines_of_a_text_are_trimmed_and_joined() -> None:
    words = read("tea = '''\n    (?:green|black|\n      white) tea\n'''")
    assert words.pattern("tea").pattern == "(?:green|black|white) tea"


def test_spaces_of_a_text_on_one_line_count() -> None:
    assert read("gap = ' tea '").pattern("gap").pattern == " tea "


def test_a_list_as_a_pattern_is_alternatives_in_groups() -> None:
    assert read("tea = ['green|black', 'white']").pattern("tea").pattern == "(?:green|black)|(?:white)"


def test_a_placeholder_stands_for_an_entry_and_bounds_stay_bounds() -> None:
    words = read("leaf = '(?:leaf|leaves)'\ntea = '{leaf}{2,3}'")
    assert words.pattern("tea").pattern == "(?:leaf|leaves){2,3}"


def test_a_placeholder_of_a_list_or_a_table_is_its_words_the_longest_first() -> None:
    words = read("teas = ['tea', 'green tea']\ndays.today = 0\ndays.yesterday = -1\nboth = '{teas} {days}'")
    assert words.text("both") == r"green\ tea|tea yesterday|today"


def test_a_placeholder_may_name_an_entry_of_the_common_file() -> None:
    assert read("quoted = '{mask}+'").pattern("quoted").fullmatch("\ufffc\ufffc")


def test_rows_of_words_tell_what_each_word_means_and_fill_placeholders_with_the_words() -> None:
    words = read("kin = ['wife, spouse', 'twin', '0 2: first half, 上半月']\nmine = 'my (?:{kin})'")
    assert words.meanings("kin") == {
        **dict.fromkeys(("wife", "spouse"), "wife"),
        "twin": "twin",
        **dict.fromkeys(("first half", "上半月"), "0 2"),
    }
    assert words["mine"].search("my spouse")
    assert not words["mine"].search("my 0 2")


def test_words_that_are_worked_out_fill_placeholders() -> None:
    words = read("tea = '(?:{teas})'")
    words.give(teas="green|black")
    assert words.pattern("tea").fullmatch("black")


def test_flags_are_those_of_the_file_unless_a_pattern_has_its_own() -> None:
    words = read("flags = 'i'\ntea = 'tea'\nTEA.flags = ''\nTEA.pattern = 'TEA'")
    assert words.pattern("tea").match("Tea")
    assert not words.pattern("TEA").match("Tea")


def test_the_order_of_a_table_is_kept() -> None:
    assert [name for name, _ in read("r.b = 'b'\nr.a = 'a'").patterns("r")] == ["b", "a"]


def test_each_pattern_of_a_block_comes_with_what_the_block_says() -> None:
    blocks = read("[[r]]\nput = 'x'\npatterns = ['a', 'b']\n[[r]]\nput = 'y'\npattern = 'c'").blocks("r")
    assert [(block["put"], pattern.pattern) for block, pattern in blocks] == [
        ("x", "a"),
        ("x", "b"),
        ("y", "c"),
    ]


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    broken = read("tea = '(?:green'").pattern("tea")
    with pytest.raises(LexiconError, match=r"given\.toml: tea is no pattern: .*unterminated"):
        broken.search("green")


@every_case(
    ("toml", "told"),
    [
        ("tea = '{leaf}'", "given.toml: tea names {leaf}"),
        ("tea = ['{leaf}']", "given.toml: tea names {leaf}"),
        ("tea.flags = 'x'\ntea.pattern = 'tea'", "given.toml: tea is no pattern"),
        ("tea = 3", "given.toml: tea is no text"),
        ("tea = 'green {tea}'", "given.toml: tea is no pattern: maximum recursion"),
    ],
)
def test_an_error_names_the_file_and_the_entry(toml: str, told: str) -> None:
    with pytest.raises(LexiconError) as error:
        read(toml).pattern("tea").search("tea")
    assert told in str(error.value)


def test_an_error_in_a_block_names_its_number() -> None:
    blocks = read("[[r]]\npattern = 'a'\n[[r]]\npattern = '('").blocks("r")
    with pytest.raises(LexiconError, match=r"given\.toml: \[\[r\]\] no\. 2 is no pattern"):
        blocks[1][1].search("a")


def test_an_entry_that_is_not_there_is_named_at_once() -> None:
    with pytest.raises(LexiconError, match=r"given\.toml has no entry tea"):
        read("").pattern("tea")


def test_a_file_that_is_not_toml_is_named() -> None:
    with pytest.raises(LexiconError, match=r"given\.toml is not TOML"):
        read("tea = ")


def test_a_file_is_read_once() -> None:
    assert lexicon("common") is lexicon("common")


def test_files_of_several_languages_are_one_lexicon() -> None:
    words = Lexicon(
        "given",
        "flags = 'i'\nboth = '{tea}!'",
        "tea = 'tea|chai'\nr.a = ['a']",
        "tea = '茶'\nr.a = ['甲']\nr.b = ['乙']",
    )
    assert words["both"].fullmatch("TEA!")
    assert words["both"].fullmatch("茶!")
    assert not words["both"].search("tea")
    assert [(name, rule.pattern) for name, rule in words.patterns("r")] == [
        ("a", "(?:a)|(?:甲)"),
        ("b", "(?:乙)"),
    ]


def test_an_entry_is_of_one_kind_in_every_language() -> None:
    with pytest.raises(LexiconError, match=r"given\.toml: r\.a is another kind of entry"):
        Lexicon("given", "r.a = ['a']", "r.a = 'b'")


def test_no_file_of_a_language_has_words_of_the_other() -> None:
    chinese = [
        file
        for file in (PACKAGE / "language" / "en").glob("*.toml")
        if CHINESE.search(file.read_text("utf-8"))
    ]
    assert chinese == []
    assert {file.name for file in (PACKAGE / "language" / "en").iterdir()} == {
        file.name for file in (PACKAGE / "language" / "zh").iterdir()
    }
