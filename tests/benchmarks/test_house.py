"""The measures of a package, over one made up for it."""

from pathlib import Path

import pytest

from benchmarks.house import TOP, Module, by_room, check, measured, read_package, riddles

FILES = {
    "__init__.py": "",
    "plain.py": '''\
"""Add numbers."""

from made.room import other

NAMES = {
    "a": 1,
}


def add(a: int, b: int, rounded: bool = False) -> int:
    """The sum.

    Of two numbers.
    """
    return a + b


def _add(a, b):
    try:
        return a + b  # never fails
    except Exception:
        return 0
''',
    "room/__init__.py": "",
    "room/other.py": '''\
"""What becomes of that which one of those who ask is told of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from made.room.third import Asked


class Calls:
    def run(self, asked: "Asked") -> str:
        # as ever
        name = asked.name
        return name.upper()

    async def arun(self, asked: "Asked") -> str:
        name = asked.name
        return await asked.upper(name)
''',
    "room/third.py": "def late() -> None:\n    from made import plain\n\n    plain.add(1, 2)\n",
    "garden/plain.py": "import made.room.other\n",
}


@pytest.fixture
def modules(tmp_path: Path) -> list[Module]:
    for name, text in FILES.items():
        file = tmp_path / "made" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return read_package(tmp_path / "made")


def test_each_line_has_one_kind_and_each_file_one_room(modules: list[Module]) -> None:
    rooms = by_room(modules)
    assert {room: counts["files"] for room, counts in rooms.items()} == {TOP: 2, "room": 3, "garden": 1}
    kinds = {"code": 7, "table": 3, "docstring": 5, "import": 1, "blank": 6}
    assert rooms[TOP] == {"files": 2, "lines": sum(kinds.values()), **kinds}


def test_a_circle_through_a_type_and_a_late_import_is_none_at_import_time(modules: list[Module]) -> None:
    figures = measured(modules)
    assert figures["cycles at import time"].value == 0
    assert figures["cycles with lazy and type imports"] == (1, "3")
    assert figures["import edges per module"].value == round(4 / 6, 2)


def test_what_a_reader_stumbles_over_is_counted(modules: list[Module]) -> None:
    figures = measured(modules)
    assert figures["identical async twin lines"].value == 1
    assert figures["boolean positional defaults per 100"].note == "1 of 5"
    assert figures["functions annotated, %"].note == "4 of 5"
    assert figures["public with docstring, %"].note == "1 of 5"
    assert figures["broad excepts swallowed per 1,000"].note == "1 in all"
    assert figures["base names in several rooms"] == (1, "plain")
    assert figures["function, max"].value == 5  # without its docstring


def test_a_riddle_fails_the_check_and_is_named_with_its_place(
    modules: list[Module], capsys: pytest.CaptureFixture[str]
) -> None:
    (riddle,) = riddles(modules)
    assert not check(modules)
    assert str(riddle) in capsys.readouterr().out
    assert str(riddle).startswith("made/room/other.py:1: What becomes of that")
    assert check([module for module in modules if module.name != "made.room.other"])
