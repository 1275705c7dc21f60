"""Draw plots of what the programs measured: cost by number of records, of recipes too, evidence by tokens.

Run: make bench        (or: python benchmarks/plots.py [--folder build/bench] [--into docs/images])

Needs the extra `demo`, for matplotlib. The same figures make the same files, byte for byte.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import matplotlib as mpl
from matplotlib.figure import Figure
from quality.corpus import read_corpora

from supervisor_memory.language.tokens import count_tokens

ROOT: Final = Path(__file__).parents[1]
OWN: Final = Path(__file__).parent / "quality"
DIALOGUES: Final = {"en.json": "English dialogues", "zh.json": "Chinese dialogues"}
SYSTEMS: Final = {"supervisor_memory": "ours", "dense": "dense", "BM25": "BM25", "BM25 + dense, sum": "sum"}
SIDES: Final = {"ours": "ours, whole search", "vectors": "ours, vectors alone", "numpy": "numpy, rows alone"}
WORK: Final = {"search_ms": "a search", "insert_ms": "an insert"}
DEEPEST: Final = 20

Row: TypeAlias = Mapping[str, Any]


def cost(search: Sequence[Row], peers: Sequence[Row]) -> Figure:
    """Milliseconds of CPU for a search of one namespace, by its records; each peer where it was measured."""
    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    values = [line["values"] for line in search if "numpy_ms" in line["values"]]
    for side, label in SIDES.items():
        axes.plot(
            [row["records"] for row in values], [row[f"{side}_ms"] for row in values], "o-", label=label
        )
    for number, row in enumerate(each["values"] for each in peers if _is_one_namespace(each)):
        axes.plot(row["records"], row["peer_ms"], "^sDvP*"[number % 6], label=row["peer"], color="0.35")
    axes.set(xscale="log", yscale="log", xlabel="records in the namespace", ylabel="CPU, ms a search")
    axes.legend(fontsize=7)
    return figure


def _is_one_namespace(line: Row) -> bool:
    values = line["values"]
    return values.get("namespaces") == 1 and "peer_ms" in values and "numpy" not in values["peer"]


def growth(cost: Mapping[str, Mapping[str, Row]]) -> Figure:
    """Milliseconds of CPU for a search and an insert of each recipe, by the records there are."""
    figure = Figure(figsize=(9, 4.2))
    panels = figure.subplots(1, len(WORK))
    counts = sorted(cost, key=int)
    for axes, (what, title) in zip(panels, WORK.items(), strict=True):
        for number, recipe in enumerate(cost[counts[-1]]):
            known = [n for n in counts if recipe in cost[n]]
            times = [cost[n][recipe][what] for n in known]
            style = "k-" if recipe == "default" else ("-", ":", "--")[number % 3] + "osv^DP*"[number % 7]
            axes.plot([int(n) for n in known], times, style, label=recipe, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="records", title=title)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("CPU, ms")
    panels[-1].legend(fontsize=6, ncols=2)
    return figure


def evidence(files: Sequence[Row], notes: Sequence[Row]) -> Figure:
    """The share of the evidence in the first 1 to 20 items by the tokens of them, and in a note."""
    figure = Figure(figsize=(9, 4))
    panels = figure.subplots(1, len(DIALOGUES), sharey=True)
    for axes, (name, title) in zip(panels, DIALOGUES.items(), strict=True):
        answers = next(each["answers"] for each in files if each["data"] == name)
        tokens = {
            (corpus.id, item.id): count_tokens(item.said)
            for corpus in read_corpora(OWN / name)
            for item in corpus.items
        }
        corpora = [corpus.id for corpus in read_corpora(OWN / name) for _ in corpus.questions]
        for system, label in SYSTEMS.items():
            line = [_point(answers[system], corpora, tokens, k) for k in range(1, DEEPEST + 1)]
            axes.plot(*zip(*line, strict=True), ".-", label=label)
        for note in (each for each in notes if each["data"] == name):
            axes.plot(note["tokens"], note["evidence"], "k*", markersize=11, label="our note, with its frame")
        axes.set(title=title, xlabel="tokens", ylim=(0, 1))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("share of the evidence")
    panels[-1].legend(fontsize=8, loc="lower right")
    return figure


def _point(
    answers: Sequence[Row], corpora: Sequence[str], tokens: Mapping[tuple[str, str], int], k: int
) -> tuple[float, float]:
    """The mean tokens of the first k items, and the mean share of the evidence among them."""
    spent = held = 0.0
    for answer, corpus in zip(answers, corpora, strict=True):
        found = answer["found"][:k]
        spent += sum(tokens[corpus, id_] for id_ in found)
        held += len(set(found) & set(answer["evidence"])) / len(answer["evidence"])
    return spent / len(answers), held / len(answers)


def saved(figure: Figure, path: Path) -> None:
    """Write the figure without a date, so that the same figures make the same file."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update({"svg.hashsalt": "supervisor-memory", "svg.fonttype": "none", "path.simplify": True})
    read = {path.stem: path.read_text(encoding="utf-8") for path in options.folder.glob("*.json*")}
    search, peers = (
        [json.loads(line) for line in read[name].splitlines()[1:]] for name in ("search", "peers")
    )
    saved(cost(search, peers), options.into / "cost.svg")
    saved(evidence(json.loads(read["quality"]), json.loads(read["notes"])), options.into / "evidence.svg")
    recipes = json.loads((ROOT / "docs" / "recipes.json").read_text("utf-8"))
    saved(growth(recipes["cost"]), options.into / "growth.svg")
    print("drew cost.svg, evidence.svg and growth.svg")


if __name__ == "__main__":
    main()
