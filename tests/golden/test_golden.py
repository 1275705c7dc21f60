"""What memory decides of frozen sentences, pairs, stores and questions is what it decided, to the byte.

Where a change is meant, `python -m tests.golden --write` writes the files anew, and `git diff` shows it.
"""

from difflib import unified_diff
from itertools import islice

import pytest

from tests.golden.files import FILES, HERE

SHOWN = 30


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FILES)
def test_what_is_decided_has_not_changed(name: str) -> None:
    path = HERE / f"{name}.txt"
    golden, now = path.read_bytes().decode().split("\n"), [*FILES[name](), ""]
    if different := list(islice(unified_diff(golden, now, path.name, "now", n=1, lineterm=""), SHOWN)):
        pytest.fail("\n".join((*different, "meant? python -m tests.golden --write")), pytrace=False)


def test_no_file_is_left_over() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(FILES)
