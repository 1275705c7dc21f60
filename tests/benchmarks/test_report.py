"""The tables and plots that the programs' figures become."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.corpus import read_corpora
from benchmarks.report import gain, kept, peers, quality, rewritten, search
from tests import programs
from tests.cases import every_case

ROOT = Path(__file__).parents[2]
OWN = ROOT / "benchmarks" / "quality"
COMPARED: dict[str, Any] = {
    "name": "a store, 100 records",
    "values": {
        **{"ours_ms": 0.5, "peer_ms": 2.0, "ratio": 4.0, "ratio_low": 3.5, "ratio_high": 4.5},
        **{"recall_ours": 1.0, "recall_peer": 0.98, "records": 100, "namespaces": 1, "peer": "a store"},
    },
    "told": "4 x as fast",
    "target": "at least 3 x",
    "is_met": True,
}
SKIPPED: dict[str, Any] = {
    "name": "another store",
    "values": {"skipped": "/somewhere/python3: no extensions"},
    "told": "left out: /somewhere/python3: no extensions",
    "target": "",
    "is_met": None,
}


def run(program: str, *options: str) -> str:
    return programs.run(f"benchmarks/{program}", *options, cwd=ROOT, timeout=300, check=True).stdout


def answered(*figures: float) -> list[dict[str, float]]:
    return [{"R@1": figure} for figure in figures]


def searched(records: int, ratio: float, *, is_met: bool | None) -> dict[str, Any]:
    values = {"records": records, "ours_ms": 4.0, "vectors_ms": 1.0, "numpy_ms": 0.5, "ratio": ratio}
    target = "" if is_met is None else "at most 15 times"
    values |= {"ratio_low": ratio - 1, "ratio_high": ratio + 1}
    return {"name": "a search", "values": values, "told": "", "target": target, "is_met": is_met}


def test_what_stands_between_the_marks_is_replaced_and_the_words_around_stay() -> None:
    page = "Before.\n<!-- peers -->\nold\n<!-- /peers -->\nAfter.\n"
    written = rewritten(page, {"peers": "| new |\n"})
    assert written == "Before.\n<!-- peers -->\n| new |\n<!-- /peers -->\nAfter.\n"
    assert rewritten(written, {"peers": "| new |\n"}) == written


@every_case("page", ["", "<!-- peers -->", "<!-- peers --><!-- /peers --><!-- peers -->"])
def test_a_page_without_the_marks_of_a_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="<!-- peers --> and <!-- /peers -->, once each"):
        rewritten(page, {"peers": "| new |"})


def test_a_line_beside_a_peer_tells_ratio_target_and_whether_it_is_reached() -> None:
    assert (
        "| a store, 100 records | 0.5 ms | 2 ms | 4 (3.5 to 4.5) | 100% and 98% | at least 3 x | yes |"
        in peers([COMPARED])
    )
    assert "| at least 3 x | **no** |" in peers([{**COMPARED, "is_met": False}])


def test_why_a_peer_was_left_out_names_no_path() -> None:
    written = peers([COMPARED, SKIPPED])
    assert "| another store | not measured |" in written
    assert "/somewhere" not in written


def test_a_search_is_judged_where_it_has_a_target() -> None:
    written = search([searched(100, 20.0, is_met=None), searched(10_000, 12.0, is_met=True)])
    assert "| 100 | 4 ms | 1 ms | 0.5 ms | 20 (19 to 21) |  |  |" in written
    assert "| 10,000 | 4 ms | 1 ms | 0.5 ms | 12 (11 to 13) | at most 15 times | yes |" in written


def test_a_gain_is_over_the_best_of_the_others_and_says_when_it_may_be_chance() -> None:
    worse, better = answered(0.0, 0.0, 0.0, 0.0), answered(0.0, 0.0, 0.0, 1.0)
    ahead = gain({"supervisor_memory": answered(1, 1, 1, 1), "worse": worse, "better": better}, "R@1")
    assert ahead == "R@1 beside better, the best of the others: +0.750 ± 0.490, ahead"
    assert gain({"supervisor_memory": better, "same": better}, "R@1").endswith("no difference")
    assert gain({"supervisor_memory": worse, "best": answered(1, 1, 1, 0)}, "R@1").endswith("behind")


@pytest.mark.slow
def test_programs_report_and_plots_work_together(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures, page = tmp_path / "figures", tmp_path / "page.md"
    figures.mkdir()
    page.write_text(
        "".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in ("quality", "search", "peers"))
    )
    run("search_cost.py", "--records", "40", "--rounds", "1", "--json", str(figures / "search.jsonl"))
    head = {"machine": "a machine", "at": "2026-01-01T00:00Z"}
    (figures / "peers.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(COMPARED)}\n")
    (figures / "quality.json").write_text(
        json.dumps([perfect(OWN / f"{name}.json") for name in ("en", "zh")])
    )

    run("report.py", "--folder", str(figures), "--page", str(page))
    written = page.read_text(encoding="utf-8")
    assert "Measured 2026-01-01 on a machine." in written
    assert "**Chinese dialogues**" in written
    assert "| 40 | " in written

    (figures / "notes.json").write_text(json.dumps([{"data": "en.json", "tokens": 90, "evidence": 0.5}]))
    for folder in ("once", "again"):
        run("plots.py", "--folder", str(figures), "--into", str(tmp_path / folder))
    for name in ("cost.svg", "evidence.svg", "growth.svg"):
        once, again = ((tmp_path / folder / name).read_text() for folder in ("once", "again"))
        assert once == again
        assert str(ROOT) not in once


def perfect(path: Path) -> dict[str, Any]:
    """What `quality.py` would tell of systems that find the evidence and nothing else."""
    rows = [
        {"q": each.text, "evidence": each.evidence, "found": each.evidence, "R@1": 1.0, "R@10": 1.0}
        for corpus in read_corpora(path)
        for each in corpus.questions
    ]
    names = ("supervisor_memory", "dense", "BM25", "BM25 + dense, sum")
    told = {"n": len(rows), "R@1": 1.0, "R@10": 1.0, "tokens": 12.0}
    return {
        "data": path.name,
        "embedder": "none",
        "systems": dict.fromkeys(names, told),
        "answers": dict.fromkeys(names, rows),
    }


def test_the_page_has_the_marks_of_every_table() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    tables = dict.fromkeys(("quality", "locomo", "notes", "kept", "peers", "search"), "| |")
    assert rewritten(page, tables) != page


def test_quality_shows_the_cuts_that_were_made() -> None:
    assert "| R@1 | R@10 | tokens of 10 |" in quality([perfect(OWN / "en.json")])


def test_the_state_that_is_left_has_a_line_for_each_set_language_and_figure() -> None:
    row = {"set": "pairs_first", "language": "en", "count": 10, "of": 40}
    table = kept([row | {"figure": "one text"}, row | {"figure": "replaced or joined", "count": 3}])
    assert table.splitlines()[2:] == [
        "| pairs_first | en | one text | 0.250 | 40 |",
        "| pairs_first | en | replaced or joined | 0.075 | 40 |",
    ]


def test_a_set_of_one_s_own_is_measured(tmp_path: Path) -> None:
    lines = [
        {"text": "I prefer tables.", "keep": 1, "expected": "I prefer tables."},
        {"text": "What time is it?", "keep": 0},
        {"text": "Thanks!", "keep": 1, "expected": "Boats are in Oslo."},
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text(
        "".join(f"{json.dumps({'id': str(n), 'lang': 'en'} | each)}\n" for n, each in enumerate(lines))
    )
    told = run("kept.py", "--only", "capture", str(file))
    assert [each.split()[1:] for each in told.splitlines()] == [
        ["en", "kept", "0.500", "of", "2", "bar", "0.75:", "missed"],
        ["en", "stored", "0.000", "of", "1", "bar", "0.07:", "held"],
    ]
