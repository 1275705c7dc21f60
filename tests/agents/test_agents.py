from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from agents.member import ResultFolder
from agents.statistics import StatisticsAgent, summarize
from agents.text2sql import Text2SQLAgent, check_single_select
from common.llm import RuleBasedChatModel, chat_model
from common.reports import Figures, csv_in, figures_in, sql_in
from tests.cases import every_case


@every_case(
    "sql",
    [
        "DROP TABLE flights",
        "SELECT 1; SELECT 2",
        "PRAGMA query_only = OFF",
        "ATTACH DATABASE 'x' AS y",
        "INSERT INTO airlines SELECT * FROM airlines",
        "not sql at all",
        "",
    ],
)
def test_anything_but_one_select_is_refused_before_it_reaches_sqlite(sql: str) -> None:
    with pytest.raises(ToolException, match="SELECT"):
        check_single_select(sql)


@every_case("sql", ["SELECT 1", "WITH a AS (SELECT 1 AS n) SELECT n FROM a", "SELECT 1 UNION SELECT 2"])
def test_one_select_is_let_through(sql: str) -> None:
    check_single_select(sql)


def test_text2sql_shows_sql_file_and_rows_and_names_the_file_after_the_sql(
    flights: Path, tmp_path: Path
) -> None:
    agent = Text2SQLAgent(RuleBasedChatModel(), database=flights, output_dir=tmp_path)

    report, effects = agent.query("SELECT carrier, name FROM airlines WHERE carrier = 'UA';")
    again, _ = agent.query("SELECT carrier, name FROM airlines WHERE carrier = 'UA'")

    assert report == again
    assert sql_in(report) == effects[0]["sql"]
    assert csv_in(report) == effects[1]["path"]
    assert figures_in(report) == Figures(("carrier", "name"), (("UA", "United Air Lines Inc."),))
    assert Path(effects[1]["path"]).read_text() == "carrier,name\nUA,United Air Lines Inc.\n"


def test_an_error_in_the_sql_is_told_to_the_model(flights: Path, tmp_path: Path) -> None:
    agent = Text2SQLAgent(RuleBasedChatModel(), database=flights, output_dir=tmp_path)

    answer = agent.tools[0].invoke({"sql": "SELECT colour FROM flights"})

    assert "no such column" in answer


def test_a_path_outside_the_results_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    results = ResultFolder(tmp_path / "results")

    for path in ("/etc/passwd", str(tmp_path / "secret.csv"), f"{tmp_path}/results/../secret.csv"):
        with pytest.raises(ToolException, match="no query result"):
            results.read(path)


def test_statistics_describes_the_last_column_and_skips_unknown_values() -> None:
    figures = Figures(("origin", "n"), (("JFK", "2"), ("LGA", "4"), ("EWR", "")))

    assert summarize(figures) == "n: 2 values, mean 3, lowest 2 (JFK), highest 4 (LGA)"


def test_an_empty_result_is_not_drawn(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n")
    agent = StatisticsAgent(RuleBasedChatModel(), output_dir=tmp_path)

    with pytest.raises(ToolException, match="nothing to draw"):
        agent.chart(str(tmp_path / "a.csv"), kind="bar", title="", value_label="", divide_by=1)


def test_without_a_configured_model_the_rules_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAT_MODEL", raising=False)

    assert chat_model()._llm_type == "rule-based"
