"""The team with the rule-based model answers forty questions right, down to the last row and decimal."""

import csv
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from agents.team import build_team
from common.llm import RuleBasedChatModel
from tests.agents.forty_questions import FORTY_QUESTIONS, ExamQuestion

Row = tuple[str | float, ...]

MINUTES_PER_HOUR = 60
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Signs are left out: "7.87 minutes early" says -7.87 as well as a minus does, and the CSV is signed.
FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
TABLE_RULE = re.compile(r"^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?$")


@pytest.fixture(scope="module")
def database(flights: Path) -> Path:
    return flights


@pytest.fixture(scope="module")
def reader(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


@pytest.mark.one_in(20)
@pytest.mark.parametrize("case", FORTY_QUESTIONS, ids=lambda case: case.name)
def test_the_team_answers(
    case: ExamQuestion, database: Path, reader: sqlite3.Connection, tmp_path: Path
) -> None:
    expected: list[Row] = reader.execute(case.sql).fetchall()

    state = ask(case, database=database, output_dir=tmp_path)

    answer = state["final_answer"]
    check_rows(case, csv_rows(state["side_effects"]), expected)
    check_figures(case, answer, expected)
    check_leading_label(case, answer, expected)
    check_language(case, answer)
    check_form(case, answer, expected)
    check_charts(case, state["side_effects"])


def test_the_exam_has_twenty_questions_in_each_language() -> None:
    languages = [case.language for case in FORTY_QUESTIONS]
    assert (languages.count("en"), languages.count("zh")) == (20, 20)


def test_no_two_questions_share_a_name() -> None:
    names = [case.name for case in FORTY_QUESTIONS]
    assert sorted(set(names)) == sorted(names)


def ask(case: ExamQuestion, *, database: Path, output_dir: Path) -> dict[str, Any]:
    """Put the question to a fresh team, after what was said before it, and return the final state."""
    team = build_team(model=RuleBasedChatModel(), database=database, output_dir=output_dir).compile()
    return dict(team.invoke({"messages": conversation(case), "user_id": "u1"}))


def conversation(case: ExamQuestion) -> list[AnyMessage]:
    messages: list[AnyMessage] = [SystemMessage(case.note)] if case.note else []
    acknowledgement = "Noted." if case.language == "en" else "好的。"
    for statement in case.earlier:
        messages += [HumanMessage(statement), AIMessage(acknowledgement)]
    return [*messages, HumanMessage(case.question)]


def csv_rows(side_effects: list[dict[str, Any]]) -> list[Row]:
    """Read the one CSV the team wrote: its first column if there are several, and its last."""
    [effect] = [effect for effect in side_effects if effect["type"] == "csv"]
    with Path(effect["path"]).open(encoding="utf-8", newline="") as file:
        _header, *lines = csv.reader(file)
    assert effect["rows"] == len(lines)
    return [(*line[:1], float(line[-1])) if len(line) > 1 else (float(line[0]),) for line in lines]


def check_rows(case: ExamQuestion, found: list[Row], expected: list[Row]) -> None:
    """The CSV holds the expected rows in order; delays owed in hours may be stored in either unit."""
    assert labels(found) == labels(expected)
    acceptable = [values(expected)]
    if case.delay_unit == "hours":
        acceptable.append([value / MINUTES_PER_HOUR for value in values(expected)])
    assert any(values(found) == pytest.approx(figures, rel=1e-6) for figures in acceptable), (
        f"the CSV has {values(found)}, the independent SQL {values(expected)}"
    )


def check_figures(case: ExamQuestion, answer: str, expected: list[Row]) -> None:
    """The answer quotes a key figure in the unit and decimals in force, and nothing with more decimals."""
    quoted = figures_in(answer)
    owed = {shown(case, value) for value in key_values(case, expected)}
    assert owed & set(quoted), f"none of {sorted(owed)} stands in {answer!r}"
    assert all(decimals_of(figure) <= case.decimals for figure in quoted), answer


def check_leading_label(case: ExamQuestion, answer: str, expected: list[Row]) -> None:
    """The answer names the airline or airport its key figure belongs to; months go by many names."""
    leader = expected[0][0]
    if isinstance(leader, str):
        assert leader in answer


def check_language(case: ExamQuestion, answer: str) -> None:
    owed = case.answer_language or case.language
    assert bool(CHINESE.search(answer)) == (owed == "zh"), f"not in {owed!r}: {answer!r}"


def check_form(case: ExamQuestion, answer: str, expected: list[Row]) -> None:
    lines = [line.strip() for line in answer.strip().splitlines()]
    has_table = any(TABLE_RULE.match(line) for line in lines)
    bullets = [line for line in lines if line.startswith("- ")]
    assert has_table == (case.form == "table"), answer
    assert bool(bullets) == (case.form == "list"), answer
    if case.form == "table":
        assert sum("|" in line for line in lines) >= len(expected) + 2, answer
    if case.form == "list":
        assert len(bullets) >= len(expected), answer
    if case.form == "one sentence":
        assert len(lines) == 1, answer


def check_charts(case: ExamQuestion, side_effects: list[dict[str, Any]]) -> None:
    charts = [effect for effect in side_effects if effect["type"] == "chart"]
    assert [chart["chart"] for chart in charts] == ([case.chart] if case.chart else [])
    for chart in charts:
        assert chart["path"].endswith(".png")
        assert Path(chart["path"]).read_bytes().startswith(b"\x89PNG")


def labels(rows: list[Row]) -> list[str]:
    return [str(row[0]) if len(row) > 1 else "" for row in rows]


def values(rows: list[Row]) -> list[float]:
    return [float(row[-1]) for row in rows]


def key_values(case: ExamQuestion, rows: list[Row]) -> list[str | float]:
    return [row[-1] for row in (rows if case.calendar_order else rows[:1])]


def shown(case: ExamQuestion, value: str | float) -> str:
    """Write a value of the expected rows the way the answer owes it, without its sign."""
    if case.delay_unit == "hours":
        value = float(value) / MINUTES_PER_HOUR
    return str(value) if isinstance(value, int) else f"{abs(float(value)):.{case.decimals}f}"


def figures_in(answer: str) -> list[str]:
    """Every number in the text, without sign and thousands separators."""
    return [figure.replace(",", "") for figure in FIGURE.findall(answer)]


def decimals_of(figure: str) -> int:
    return len(figure.partition(".")[2])
