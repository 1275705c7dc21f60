"""Four times the input takes about four times the work, for everything public that takes a text of anybody's.

Measured by the time of the processor, of the larger input first against a floor below which nothing is told.
"""

import contextlib
import io
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.testing.clock import FixedClock

MOST: Final = 7.0
"""Four is linear, sixteen is quadratic."""
FLOOR: Final = 0.25
"""Seconds of the processor below which the larger input is fine whatever the smaller one took."""
Do = Callable[[SupervisorMemory, str], object]
ADA: Final = Scope("ada", session_id="s1")


def opened(**more: Any) -> SupervisorMemory:
    """A memory with all the time it wants, so that a deadline hides no work."""
    given = Settings(
        embedding_model="none",
        queue_worker=False,
        **more,
    )
    return SupervisorMemory(given, clock=FixedClock())


def worked(do: Callable[[SupervisorMemory], object]) -> float:
    """Seconds of the processor that it takes, beside two records."""
    with opened() as memory:
        memory.write("Use tables by default.", user_id="ada")
        memory.write("Revenue means net of tax.", user_id="ada")
        began = time.process_time()
        do(memory)
        return time.process_time() - began


def assert_linear(do: Callable[[SupervisorMemory, int], object], few: int) -> None:
    """Of four times as many the work is at most `MOST` times that of a few.

    At best of two: in the second all that is cached is there.
    """
    many = less = float("inf")
    for _ in range(2):
        many = min(many, worked(lambda memory: do(memory, 4 * few)))
        if many <= FLOOR:
            return  # plain enough
        less = min(less, worked(lambda memory: do(memory, few)))
        if many <= MOST * max(less, FLOOR / MOST):
            return
    pytest.fail(f"{few}: {less:.2f} s, {4 * few}: {many:.2f} s")


# One long text

UNITS: dict[str, str] = {
    "newlines": "\n",
    "space and newline": " \n",
    "newline and tab": "\n\t",
    "carriage returns": "\r\n",
    "spaces": " ",
    "ideographic spaces": "\u3000",
    "letters": "a",
    "words": "word ",
    "sentences": "It is so. ",
    "wishes": "Use tables by default. ",
    "Chinese wishes": "以后默认用表格。",
    "Chinese": "表",
    "digits": "7",
    "figures": "1.",
    "thousands": "1,",
    "dots": ".",
    "commas": ", ",
    "Chinese commas": "，",
    "colons": "a: ",
    "Chinese colons": "结论：",
    "quotes": '"',
    "open quotes": "“",
    "corner brackets": "「",
    "parentheses": "(",
    "brackets": "[",
    "braces": "{",
    "tags": "<a>",
    "less than": "<",
    "fences of ours": "</memory",
    "code fences": "```\n",
    "backticks": "`",
    "quoted lines": "> a\n",
    "bullets": "- a\n",
    "numbered lines": "1. a\n",
    "table rows": "| a | b |\n",
    "headings": "# a\n",
    "rules": "---\n",
    "dashes": "-",
    "equals": "=",
    "underscores": "_",
    "stars": "**",
    "slashes": "/a",
    "back slashes": "\\",
    "paths": "a/b.csv ",
    "addresses": "a@b.co ",
    "links": "http://a.b/c ",
    "keys of issues": "AIR-1 ",
    "SQL": "select a from b; ",
    "negations": "not never no ",
    "dates": "2026-01-05 ",
    "speakers": "system: ",
    "documents": "<document>",
    "accents": "e\u0301",
    "emoji": "👩\u200d🚀",
    "Arabic": "عمر ",
    "Thai": "ราคา",
    "forget": "Forget that I want tables. ",
}


def longest(unit: str, size: int) -> str:
    """So many bytes of a unit, within what a record may hold."""
    return (unit * size)[: size // max(1, len(unit.encode()) // max(1, len(unit)))]


WAYS: dict[str, Do] = {
    "remember": lambda memory, text: memory.remember([("user", text)], ADA),
    "remember an answer": lambda memory, text: memory.remember(
        (), Scope("ada", "analyst", "s1"), outcome=Outcome(final_answer=text)
    ),
    "remember SQL": lambda memory, text: memory.remember(
        (), Scope("ada", "analyst", "s1"), outcome=Outcome(side_effects=({"type": "sql", "sql": text},))
    ),
    "recall": lambda memory, text: memory.recall([("user", text)], ADA),
    "search": lambda memory, text: memory.search(text, user_id="ada"),
    "add": lambda memory, text: memory.add(text, user_id="ada"),
}


def done(do: Do, memory: SupervisorMemory, text: str) -> None:
    with contextlib.suppress(ValueError):  # nothing but blanks, or longer than a record may be
        do(memory, text)


def ways_and_units() -> list[Any]:
    return [pytest.param(way, unit, id=f"{way}-{unit}") for way in WAYS for unit in UNITS]


@pytest.mark.one_in(36)
@pytest.mark.parametrize(("way", "unit"), ways_and_units())
def test_one_long_text_of_a_user_or_an_agent(way: str, unit: str) -> None:
    def long(memory: SupervisorMemory, size: int) -> None:
        done(WAYS[way], memory, "Please remember: " + longest(UNITS[unit], size))

    assert_linear(long, 15_900)


WRITTEN = ("words", "Chinese", "dashes", "figures", "code fences")


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    "unit",
    [
        *WRITTEN,
        "space and newline",
    ],
)
def test_one_long_text_that_is_written_and_written_again(unit: str) -> None:
    def write(memory: SupervisorMemory, size: int) -> None:
        text = "Remember: " + longest(UNITS[unit], size - 100)
        for end in (" one", " two"):
            done(lambda m, t: m.write(t, user_id="ada", kind="domain-facts"), memory, text + end)

    assert_linear(write, 8_000)


# Many of something


def findings(count: int) -> list[str]:
    return [f"Fact {n}: town {n * 7} has {n * 13} desks and {n * 17} chairs." for n in range(count)]


def test_many_messages_of_a_conversation_that_is_added() -> None:
    def add(memory: SupervisorMemory, count: int) -> None:
        memory.add([("user", f"Remember that {text}") for text in findings(count)], user_id="ada")

    assert_linear(add, 40)


def test_many_messages_of_which_nothing_is_kept() -> None:
    def add(memory: SupervisorMemory, count: int) -> None:
        memory.add([("user", f"What about town {n}?") for n in range(count)], user_id="ada")

    assert_linear(add, 500)


def test_many_equal_messages() -> None:
    def add(memory: SupervisorMemory, count: int) -> None:
        memory.add([("user", "Use tables by default.")] * count, user_id="ada")

    assert_linear(add, 200)


def test_many_messages_that_are_remembered_of_one_turn() -> None:
    def remember(memory: SupervisorMemory, count: int) -> None:
        memory.remember([("user", f"Remember that {text}") for text in findings(count)], ADA)

    assert_linear(remember, 30)


def test_a_long_thread_that_is_recalled_for() -> None:
    def recall(memory: SupervisorMemory, count: int) -> None:
        said = [(("user", "ai")[n % 2], text) for n, text in enumerate(findings(count))]
        memory.recall([*said, ("user", "which town has desks?")], ADA)

    assert_linear(recall, 1_000)


def test_many_side_effects_of_one_agent() -> None:
    def remember(memory: SupervisorMemory, count: int) -> None:
        effects = tuple({"path": f"out/table_{n}.csv", "rows": n} for n in range(count))
        memory.remember((), Scope("ada", "analyst", "s1"), outcome=Outcome(side_effects=effects))

    assert_linear(remember, 40)


def test_many_texts_that_are_added_as_they_are() -> None:
    assert_linear(lambda memory, count: memory.add_many(findings(count), user_id="ada"), 250)


def test_many_texts_that_are_summarised() -> None:
    assert_linear(lambda memory, count: memory.summarize(findings(count)), 250)


def test_many_tags_and_much_metadata() -> None:
    def write(memory: SupervisorMemory, count: int) -> None:
        metadata = {"tags": [f"tag{n}" for n in range(count)], **{f"key{n}": n for n in range(count)}}
        memory.write("Tea is hot.", user_id="ada", metadata=metadata)

    assert_linear(write, 500)


# A record of many lines


def lines(count: int, line: str) -> str:
    """So many lines, as far as a record takes them."""
    return "\n".join([line] * min(count, 64_000 // (len(line.encode()) + 1)))


def of_lines(memory: SupervisorMemory, count: int, line: str) -> str:
    return memory.add_many([lines(count, line)], user_id="ada")[0].id


LINES = ["表", *(pytest.param(line, marks=pytest.mark.slow) for line in ("x", "a b", "- a", "1", "a: b"))]


@pytest.mark.parametrize("line", LINES)
def test_many_lines_that_are_appended_to_a_record_of_many(line: str) -> None:
    def append(memory: SupervisorMemory, count: int) -> None:
        kept = of_lines(memory, count, line)
        memory.update(kept, content=lines(count, "y"), metadata={"strategy": "append"}, user_id="ada")

    assert_linear(append, 7_500)


@pytest.mark.parametrize("line", LINES)
def test_what_is_written_beside_a_record_of_many_lines(line: str) -> None:
    def write(memory: SupervisorMemory, count: int) -> None:
        memory.write(f"Steps: {lines(count, line)}", user_id="ada", kind="task-traces")
        memory.write(f"Steps: {line} and more", user_id="ada", kind="task-traces")
        memory.recall(f"which steps are {line}?", ADA)

    assert_linear(write, 7_500)


@pytest.mark.parametrize("line", LINES)
def test_a_record_of_many_lines_is_exported_and_imported(line: str) -> None:
    def move(memory: SupervisorMemory, count: int) -> None:
        of_lines(memory, count, line)
        file = io.BytesIO()
        memory.export(file)
        file.seek(0)
        with opened() as other:
            other.import_from(file)

    assert_linear(move, 7_500)


# By HTTP


def bodies(count: int) -> Sequence[tuple[str, Any]]:
    said = [{"role": "user", "content": f"Remember that {text}"} for text in findings(count)]
    return [("/v1/memories", {"user_id": "ada", "messages": said})]


def test_a_body_of_many_messages_is_no_more_work_than_its_size() -> None:
    from supervisor_memory.interfaces.http.access import Tokens
    from supervisor_memory.interfaces.http.app import create_app
    from tests.interfaces.http.conftest import SETTING, Client

    def post(memory: SupervisorMemory, count: int) -> None:
        client = Client(create_app(memory, tokens=Tokens.read(SETTING), rate=1_000_000))
        for path, body in bodies(count):
            assert client("POST", path, json=body).status_code < 500

    assert_linear(post, 40)
