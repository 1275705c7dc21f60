"""The example that explains a search: every candidate has its line, in English and in Chinese."""

import re
from pathlib import Path

from tests import programs

EXAMPLE = Path(__file__).parent.parent.parent / "examples/06_explain.py"
LINE = re.compile(r"^ *(?P<rank>\d|–)  +(?P<score>\d\.\d\d) .*?  (?P<reason>[a-z-]+)  +(?P<text>\S.*)$", re.M)


def test_the_example_shows_each_candidate_with_what_became_of_it() -> None:
    done = programs.run(EXAMPLE, cwd=EXAMPLE.parent.parent, timeout=120, check=True)
    _, english, chinese, note, nothing, accesses = re.split(r"\n# (?=[A-Z])", done.stdout)
    for told, best in (
        (english, "GMV excludes refunds and cancelled orders."),
        (chinese, "成交额不含退款和取消的订单。"),
    ):
        lines = [found.groupdict() for found in LINE.finditer(told)]
        assert len(lines) > 2
        assert [line["reason"] for line in lines[:2]] == ["kept", "kept"]
        assert lines[0]["text"] == best
        assert {line["reason"] for line in lines[2:]} <= {"over-limit", "below-threshold"}
    first = next(LINE.finditer(note))
    assert (first["reason"], first["text"]) == ("standing", "Use tables by default.")
    assert "<memory id=" in note
    assert {found["reason"] for found in LINE.finditer(nothing)} == {"below-threshold"}
    assert "nothing relevant: the best of " in nothing
    assert len(re.findall(r"^inject \S{36} rank \d score \d\.\d\d (?:kept|standing)$", accesses, re.M)) == 3
