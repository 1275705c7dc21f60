"""Fit the weights of `supervisor_memory/compare/weights.json` to our own sets of write attempts.

Run: python benchmarks/tune_merging.py [FILE …] [--check FILE] [--write]

Two logistic regressions over the evidence of a pair (`compare/evidence.py`): whether a text is about what a
known one is about, and, if so, whether it takes its place. Pairs are each line with each earlier one of its
stream and kind that is still true. Printed are the rates of leaving one domain out: fitted on the others,
decided on it.
--check decides on a file that nothing is fitted to. --write rewrites the table of weights.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from merging.lines import Line, read_lines, slots_of

from supervisor_memory.compare import verdict
from supervisor_memory.compare.apart import apart
from supervisor_memory.compare.evidence import evidence, nearness, rarity
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Embedder

OWN = Path(__file__).parent / "merging"
READERS = {"en": MINILM, "zh": E5}
RIVALS = 10
RIDGE = {"about": 1.0, "instead": 1.0}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    line: Line
    slot: str
    old: str
    apart: str
    takes_place: bool
    facts: dict[str, float]
    bare: dict[str, float]
    is_about: bool
    is_instead: bool


def pairs_of(lines: Sequence[Line]) -> list[Pair]:
    """Each line with what is still true and nearest to it."""
    found: list[Pair] = []
    slots = slots_of(lines)
    for language in dict.fromkeys(line.language for line in lines):
        reader = open_embedder(READERS[language], dimension=None)
        assert reader is not None
        own = [line for line in lines if line.language == language]
        for _, stream in groupby(own, key=lambda line: line.stream):
            found += _of_stream(list(stream), slots, reader)
    return found


def _of_stream(lines: list[Line], slots: dict[str, str], reader: Embedder) -> Iterable[Pair]:
    vectors = reader.embed_documents([line.content for line in lines])
    true: list[int] = []
    for number, line in enumerate(lines):
        if line.kind == "task-traces":
            continue
        cosines = {other: float(vectors[number] @ vectors[other]) for other in true}
        rivals = [other for other in true if lines[other].kind == line.kind]
        rivals = sorted(rivals, key=lambda other: -cosines[other])[:RIVALS]
        readings = [read(lines[other].content) for other in rivals]
        new = read(line.content)
        weights = rarity([new, *readings])
        scale = reader.calibration
        near = [nearness(cosines[other], unrelated=scale.unrelated, same=scale.same) for other in rivals]
        for nth, (other, old) in enumerate(zip(rivals, readings, strict=True)):
            lead = near[nth] - max((each for n, each in enumerate(near) if n != nth), default=0.0)
            same = line.is_joined and slots[lines[other].id] == slots[line.id]
            yield Pair(
                line,
                slots[lines[other].id],
                old.text,
                apart(beside(old, new)),
                takes_place(beside(old, new)),
                dict(evidence(beside(old, new), near=near[nth], lead=lead, weights=weights)),
                dict(evidence(beside(old, new), near=None, lead=0.0, weights=weights)),
                same,
                same and line.relation == "conflict",
            )
        if line.relation == "conflict":
            true = [other for other in true if slots[lines[other].id] != slots[line.id]]
        true.append(number)


def fitted(rows: Sequence[dict[str, float]], wanted: Sequence[bool], ridge: float) -> dict[str, float]:
    """Weights of a logistic regression with a ridge, by Newton's method. "" is the constant."""
    names = sorted({name for row in rows for name in row})
    x = np.array([[1.0, *(row.get(name, 0.0) for name in names)] for row in rows])
    y = np.array(wanted, dtype=float)
    penalty = np.full(x.shape[1], ridge)
    penalty[0] = 1e-3
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (p - y) + penalty * w
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        w -= step
        if np.abs(step).max() < 1e-6:
            break
    return dict(zip(["", *names], map(float, w), strict=True))


@dataclass(frozen=True)
class Weights:
    about: dict[str, float]
    instead: dict[str, float]


def weights_of(pairs: Sequence[Pair], *, bare: bool) -> Weights:
    def facts(pair: Pair) -> dict[str, float]:
        return pair.bare if bare else pair.facts

    pairs = [pair for pair in pairs if not pair.apart]
    joined = [pair for pair in pairs if pair.is_about]
    return Weights(
        fitted([facts(p) for p in pairs], [p.is_about for p in pairs], RIDGE["about"]),
        fitted([facts(p) for p in joined], [p.is_instead for p in joined], RIDGE["instead"]),
    )


def tally(pairs: Sequence[Pair], weights: Weights, *, bare: bool, least: float) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {"merged": [0, 0], "false": [0, 0], "conflict": [0, 0]}
    for _, own in groupby(pairs, key=lambda p: p.line.id):
        group = list(own)
        line = group[0].line
        rated = [
            (verdict.chance(p.bare if bare else p.facts, weights.about) * (not p.apart), p) for p in group
        ]
        best, pair = max(rated, key=lambda each: each[0])
        is_taken = best >= least
        odds = verdict.chance(pair.bare if bare else pair.facts, weights.instead)
        instead = pair.takes_place or odds >= 0.5
        if line.relation == "duplicate":
            counts["merged"][0] += is_taken and pair.is_about
            counts["merged"][1] += 1
        elif line.relation == "conflict":
            counts["conflict"][0] += is_taken and pair.is_about and instead
            counts["conflict"][1] += 1
        elif line.relation != "append":
            counts["false"][0] += is_taken
            counts["false"][1] += 1
    return counts


def added(tables: Iterable[dict[str, list[int]]]) -> dict[str, list[int]]:
    total: dict[str, list[int]] = {}
    for table in tables:
        for name, (hits, of) in table.items():
            row = total.setdefault(name, [0, 0])
            row[0] += hits
            row[1] += of
    return total


def told(table: dict[str, list[int]]) -> str:
    return "  ".join(f"{name} {hits}/{of} {hits / max(of, 1):.3f}" for name, (hits, of) in table.items())


def left_out(pairs: Sequence[Pair], *, bare: bool, least: float) -> dict[str, dict[str, list[int]]]:
    """Language → counts, each stream decided by weights that never saw its like in either language."""
    found: dict[str, list[dict[str, list[int]]]] = {}
    for domain in dict.fromkeys(_domain(p.line) for p in pairs):
        weights = weights_of([p for p in pairs if _domain(p.line) != domain], bare=bare)
        for language in READERS:
            own = [p for p in pairs if _domain(p.line) == domain and p.line.language == language]
            found.setdefault(language, []).append(tally(own, weights, bare=bare, least=least))
    return {language: added(tables) for language, tables in found.items()}


_DOMAINS = {"clinic": "hospital"}


def _domain(line: Line) -> str:
    name = line.stream.partition("-")[2]
    return _DOMAINS.get(name, name)


def table_of(weights: Weights, bare: Weights) -> str:
    """The weights as `weights.json` has them, without those that count for nothing."""
    named = {"with vectors": weights, "by words alone": bare}
    table = {
        name: {
            "about": {fact: round(value, 2) for fact, value in mine.about.items() if abs(value) >= 0.005},
            "instead": {fact: round(value, 2) for fact, value in mine.instead.items() if abs(value) >= 0.005},
        }
        for name, mine in named.items()
    }
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [line for path in options.files or sorted(OWN.glob("??.jsonl")) for line in read_lines(path)]
    pairs = pairs_of(lines)
    print(f"{len(pairs)} pairs")
    for bare in (False, True):
        for least in (0.4, 0.5, 0.6, 0.7):
            for language, table in left_out(pairs, bare=bare, least=least).items():
                print(
                    f"{'words alone' if bare else 'with meaning':12} least {least} {language}: {told(table)}"
                )
    weights, bare_weights = weights_of(pairs, bare=False), weights_of(pairs, bare=True)
    if options.check:
        others = pairs_of(read_lines(options.check))
        for language in READERS:
            own = [p for p in others if p.line.language == language]
            for least in (0.4, 0.5, 0.6, 0.7):
                print(f"check {least} {language}: {told(tally(own, weights, bare=False, least=least))}")
    if options.write:
        file = Path(verdict.__file__).with_name("weights.json")
        file.write_text(table_of(weights, bare_weights), encoding="utf-8")


if __name__ == "__main__":
    main()
