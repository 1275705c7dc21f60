"""Fit the weights of `supervisor_memory/compare/weights.json` to our own sets of write attempts.

Run: python benchmarks/tune_merging.py [FILE …] [--check FILE] [--write vectors|words …]

Two logistic regressions over the evidence of a pair (`compare/evidence.py`): whether a text is about what a
known one is about, and, if so, whether it takes its place. Pairs are each line with each earlier one of its
stream and kind that is still true. By words alone `about` also learns from told changes, of which a third
counts, and from facts that all hold, of which a tenth counts (benchmarks/changes, benchmarks/worlds): where
vectors are known, `pairing.py` has seen them. Printed are the rates of leaving one domain out: fitted on the
others, decided on it.
--check decides on a file that nothing is fitted to. --write rewrites the weights with vectors, or by words
alone.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from merging.lines import Line, read_lines, slots_of
from pairing import reading, rows_of

from supervisor_memory import Settings
from supervisor_memory.compare import verdict
from supervisor_memory.compare.apart import apart
from supervisor_memory.compare.evidence import evidence, nearness, rarity
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Embedder

OWN = Path(__file__).parent / "merging"
BESIDE = {"changes": 0.3, "worlds": 0.1}
"""Folders of further pairs for `about` by words alone, and how much a pair of each counts."""
READERS = {"en": MINILM, "zh": E5}
RIVALS = 10
RIDGE = 1.0
PARTS = 4
LEAST = (0.4, 0.5, 0.6, 0.7)
TABLES = {"vectors": "with vectors", "words": "by words alone"}
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


@dataclass(frozen=True)
class Known:
    """A pair by words alone, and whether the later text replaces the other."""

    folder: str
    source: str
    facts: Mapping[str, float]
    takes_place: bool
    is_about: bool


def known_beside() -> list[Known]:
    """The pairs of `BESIDE` that no rule keeps apart."""
    readers, vector = reading()
    return [
        Known(
            folder,
            row.source,
            evidence(pair, near=None, lead=0.0, weights=rarity([pair.new, pair.old])),
            takes_place(pair),
            row.label == "instead",
        )
        for folder in BESIDE
        for path in sorted((OWN.parent / folder).glob("*.jsonl"))
        for row in rows_of(path, readers, vector)
        if not apart(pair := row.look.pair)
    ]


def fitted(
    rows: Sequence[Mapping[str, float]],
    wanted: Sequence[bool],
    counts: Sequence[float] | None = None,
) -> dict[str, float]:
    """Weights of a logistic regression with a ridge, by Newton's method. "" is the constant.

    Args:
        counts: How much each row counts; None: all count 1.
    """
    names = sorted({name for row in rows for name in row})
    x = np.array([[1.0, *(row.get(name, 0.0) for name in names)] for row in rows])
    y = np.array(wanted, dtype=float)
    c = np.ones(len(y)) if counts is None else np.array(counts, dtype=float)
    penalty = np.full(x.shape[1], RIDGE)
    penalty[0] = 1e-3
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (c * (p - y)) + penalty * w
        hessian = (x * (c * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        w -= step
        if np.abs(step).max() < 1e-6:
            break
    return dict(zip(["", *names], map(float, w), strict=True))


@dataclass(frozen=True)
class Weights:
    about: dict[str, float]
    instead: dict[str, float]


def weights_of(pairs: Sequence[Pair], beside: Sequence[Known] = (), *, bare: bool) -> Weights:
    """The weights for pairs with vectors or by words alone.

    Args:
        beside: Further pairs for `about` by words alone.
    """

    def facts(pair: Pair) -> Mapping[str, float]:
        return pair.bare if bare else pair.facts

    pairs = [pair for pair in pairs if not pair.apart]
    joined = [pair for pair in pairs if pair.is_about]
    about = [(facts(pair), pair.is_about, 1.0) for pair in pairs]
    about += [(pair.facts, pair.is_about, BESIDE[pair.folder]) for pair in beside if bare]
    rows, wanted, counts = zip(*about, strict=True)
    return Weights(
        fitted(rows, wanted, counts), fitted([facts(p) for p in joined], [p.is_instead for p in joined])
    )


def tally_beside(pairs: Sequence[Pair], beside: Sequence[Known], *, least: float) -> dict[str, list[int]]:
    """Of further pairs, how many are replaced or joined by weights that saw neither author nor world."""
    counts: dict[str, list[int]] = {}
    sources = list(dict.fromkeys(each.source for each in beside))
    for part in range(PARTS):
        own = frozenset(sources[part::PARTS])
        weights = weights_of(pairs, [each for each in beside if each.source not in own], bare=True)
        for each in beside:
            if each.source in own:
                is_taken = verdict.chance(each.facts, weights.about) >= least
                instead = (
                    each.takes_place or verdict.chance(each.facts, weights.instead) >= verdict.INSTEAD_FROM
                )
                kind = f"{each.folder} {'told' if each.is_about else 'that hold'}"
                for name, found in (("replaced", instead), ("joined", not instead)):
                    row = counts.setdefault(f"{kind} {name}", [0, 0])
                    row[0] += is_taken and found
                    row[1] += 1
    return counts


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


def left_out(
    pairs: Sequence[Pair], beside: Sequence[Known], *, bare: bool, least: float
) -> dict[str, dict[str, list[int]]]:
    """Language → counts, each stream decided by weights that never saw its like in either language."""
    found: dict[str, list[dict[str, list[int]]]] = {}
    for domain in dict.fromkeys(_domain(p.line) for p in pairs):
        weights = weights_of([p for p in pairs if _domain(p.line) != domain], beside, bare=bare)
        for language in READERS:
            own = [p for p in pairs if _domain(p.line) == domain and p.line.language == language]
            found.setdefault(language, []).append(tally(own, weights, bare=bare, least=least))
    return {language: added(tables) for language, tables in found.items()}


_DOMAINS = {"clinic": "hospital"}


def _domain(line: Line) -> str:
    name = line.stream.partition("-")[2]
    return _DOMAINS.get(name, name)


def table_of(weights: Weights) -> dict[str, dict[str, float]]:
    """The weights as `weights.json` has them, without those that count for nothing."""
    found = {"about": weights.about, "instead": weights.instead}
    return {
        name: {fact: round(value, 2) for fact, value in mine.items() if abs(value) >= 0.005}
        for name, mine in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--write", nargs="+", choices=TABLES, default=())
    options = parser.parse_args()
    lines = [line for path in options.files or sorted(OWN.glob("??.jsonl")) for line in read_lines(path)]
    pairs, beside = pairs_of(lines), known_beside()
    print(f"{len(pairs)} pairs, and {len(beside)} by words alone")
    for table, bare in (("with meaning", False), ("words alone", True)):
        for least in LEAST:
            for language, counts in left_out(pairs, beside, bare=bare, least=least).items():
                print(f"{table:12} least {least} {language}: {told(counts)}")
    least = Settings().duplicate_threshold
    print(f"words alone  least {least}: {told(tally_beside(pairs, beside, least=least))}")
    weights = {name: weights_of(pairs, beside, bare=name == "words") for name in TABLES}
    if options.check:
        others = pairs_of(read_lines(options.check))
        for language in READERS:
            own = [p for p in others if p.line.language == language]
            for least in LEAST:
                counts = tally(own, weights["vectors"], bare=False, least=least)
                print(f"check {least} {language}: {told(counts)}")
    if options.write:
        file = Path(verdict.__file__).with_name("weights.json")
        table = json.loads(file.read_text("utf-8"))
        table |= {TABLES[name]: table_of(weights[name]) for name in options.write}
        file.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
