"""Train the second reader of sentences, and tell how well it does on an author it was not trained on.

Run: python benchmarks/sentences.py            leaves each author out once: kept against stored, by threshold
     python benchmarks/sentences.py --write    trains on all lines and writes language/learned.json.gz
     python benchmarks/sentences.py --check    fails where learned.json.gz is not what these lines train

The lines of benchmarks/sentences have one file an author: {"lang", "class", "text"} and, where something is
to be kept, "keep": true or the part that is. The classes without it are hard ones on purpose: promises,
remarks, guesses, plans of the moment, other people's words. Kept and stored count what rules and weights
keep together: the weights decide where the rules have no verdict, and hold back what they doubt.
usual.jsonl has everyday ways of saying things, which the others avoid. It was written by somebody who knew
the rules, so it is trained on and counts in no figure.
"""

import argparse
import copy
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supervisor_memory.understand import learned
from supervisor_memory.understand.statements import judge, normal, sentences, without_question

Floats = NDArray[np.float64]

LINES = Path(__file__).parent / "sentences"
WEIGHTS = Path(learned.__file__).parent.parent / "language" / "learned.json.gz"

LEAST = 0.77
"""Of these lines, one author left out, this is where .07 of what is not worth keeping is stored."""
SEEN = 3
"""Lines that have a feature before it counts."""
COMMON = 0.005
"""Share of lines that have a word before it stands for itself in a skeleton."""
SCALE, RIDGE = 4.0, 1.0
SMALLEST = 0.05
"""Weights nearer to zero are left out."""
USUAL = "usual"
_WISHES = frozenset({"instruction", "preference"})
_SAME = 0.6


@dataclass(frozen=True)
class Unit:
    """A sentence as the readers see it: is it to be kept, is it a wish, and what do the rules say."""

    author: str
    lang: str
    text: str
    keep: bool
    wish: bool
    by_rules: bool
    is_open: bool

    def is_kept(self, chance: float, least: float) -> bool:
        """Whether rules and weights together keep it."""
        return (self.by_rules and chance >= learned.DOUBTED_UNDER) or (self.is_open and chance >= least)


def units() -> list[Unit]:
    """Every sentence of every line."""
    return [
        unit
        for path in sorted(LINES.glob("*.jsonl"))
        for line in _lines(path)
        for unit in _units(path.stem, line)
    ]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, path.read_text("utf-8").splitlines())


def _units(author: str, line: dict[str, Any]) -> Iterator[Unit]:
    pieces = [without_question(each) or each for each in sentences(line["text"])]
    keep = line.get("keep", False)
    wanted = _words(line["text"] if keep is True else keep or "")
    for piece in pieces:
        held = _words(piece)
        is_kept = bool(keep) and (len(pieces) == 1 or len(held & wanted) >= _SAME * max(len(held), 1))
        found = judge(piece)
        text, is_wish = normal(piece), line["class"] in _WISHES
        yield Unit(
            author, line["lang"], text, is_kept, is_wish, found.kind is not None, found.reason == "none"
        )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{3,}|[\u4e00-\u9fff]", text.lower()))


def trained(lines: Sequence[Unit]) -> learned.Weights:
    """Weights for these lines."""
    common = _common(lines)
    found = [learned.features(each.text, common) for each in lines]
    counts = Counter(feature for each in found for feature in each)
    known = sorted(name for name, count in counts.items() if count >= SEEN)
    rows = _Rows([[*each] for each in found], known)
    kept = np.array([each.keep for each in lines])
    lasting = _fitted(rows, kept)
    wish = _fitted(rows.of(kept), np.array([each.wish for each in lines])[kept])
    both = np.round(np.stack([lasting, wish], axis=1) * SCALE, 2)
    bias = both[0]
    features = {
        name: (float(row[0]), float(row[1]))
        for name, row in zip(known, both[1:-1], strict=True)
        if max(abs(row)) >= SMALLEST
    }
    names = _names(lines) & features.keys()
    return learned.Weights(LEAST, common, {"": (float(bias[0]), float(bias[1])), **features}, names)


class _Rows:
    """A matrix with a row for each sentence: SCALE for the bias, SCALE / √n at each of its n features.

    Column 0 is the bias, the last one stands for no feature and is always zero.
    """

    def __init__(self, found: Sequence[Sequence[str]], names: Sequence[str]) -> None:
        place = {name: n for n, name in enumerate(names, start=1)}
        known = [[place[name] for name in each if name in place] for each in found]
        self.width, longest = len(names) + 2, max(map(len, known), default=0)
        self.columns = np.full((len(known), longest + 1), self.width - 1)
        self.values = np.zeros(self.columns.shape)
        for columns, values, each in zip(self.columns, self.values, known, strict=True):
            columns[: len(each) + 1] = [0, *each]
            values[: len(each) + 1] = [SCALE, *[SCALE / np.sqrt(len(each) or 1)] * len(each)]

    def of(self, chosen: NDArray[np.bool_]) -> "_Rows":
        """Some of the rows."""
        some = copy.copy(self)
        some.columns, some.values = self.columns[chosen], self.values[chosen]
        return some

    def times(self, weights: Floats) -> Floats:
        product: Floats = (weights[self.columns] * self.values).sum(axis=1)
        return product

    def back(self, each: Floats) -> Floats:
        """The transposed matrix times one number a row."""
        spread = (self.values * each[:, None]).ravel()
        return np.bincount(self.columns.ravel(), weights=spread, minlength=self.width)


def _names(lines: Sequence[Unit]) -> frozenset[str]:
    """The words that always have a capital."""
    words = {word for each in lines for word in re.findall(r"[A-Za-z']+", each.text)}
    return frozenset(word.lower() for word in words if word.lower() not in words)


def _common(lines: Sequence[Unit]) -> frozenset[str]:
    counts = Counter(word for each in lines for word in set(re.findall(r"[a-z']+", each.text.lower())))
    english = sum(each.lang == "en" for each in lines)
    return frozenset(word for word, count in counts.items() if count >= COMMON * english)


def _fitted(rows: _Rows, truth: NDArray[np.bool_]) -> Floats:
    """The weights of ridge-penalised logistic regression, by Newton's method with conjugate gradients."""
    fitted = np.zeros(rows.width)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows.times(fitted)))
        slope = RIDGE * fitted + rows.back(chance - truth)
        step = _solved(rows, chance * (1 - chance), slope)
        fitted -= step
        if np.abs(step).max() < 1e-6:
            break
    return fitted


def _solved(rows: _Rows, bend: Floats, slope: Floats) -> Floats:
    """The solution of (RIDGE + rowsᵀ · bend · rows) x = slope."""
    found, left = np.zeros_like(slope), slope.copy()
    way, size = left.copy(), float(left @ left)
    least = 1e-10 * size
    for _ in range(1_000):
        if size <= least:
            break
        turned = RIDGE * way + rows.back(bend * rows.times(way))
        length = size / float(way @ turned)
        found += length * way
        left -= length * turned
        size, before = float(left @ left), size
        way = left + size / before * way
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    lines = units()
    if options.check:
        sys.exit(
            None if _is_shipped(trained(lines)) else f"{WEIGHTS.name} is not what these lines train: --write"
        )
    if options.write:
        packed = gzip.compress(_as_json(trained(lines)).encode(), mtime=0)
        WEIGHTS.write_bytes(packed)
        print(f"{WEIGHTS.name}: {len(packed) / 1024:.0f} kB")
        return
    print(_table([each for each in lines if each.author != USUAL], _left_out(lines)))


def _is_shipped(weights: learned.Weights) -> bool:
    """Whether these are the weights of learned.json.gz, as far as sums of floats agree between machines."""
    shipped = learned.weights()
    same = (shipped.least, shipped.common, shipped.names) == (weights.least, weights.common, weights.names)
    return same and all(
        max(abs(a - b) for a, b in zip(weights.features.get(name, (0, 0)), pair, strict=True)) <= 2 * SMALLEST
        for name, pair in shipped.features.items()
    )


def _as_json(weights: learned.Weights) -> str:
    features = {name: [round(100 * each) for each in pair] for name, pair in weights.features.items()}
    rows = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}:[{a},{b}]" for name, (a, b) in features.items()
    )
    common = json.dumps(sorted(weights.common))
    names = json.dumps(sorted(weights.names))
    return f'{{"least": {weights.least}, "common": {common}, "names": {names}, "features": {{\n{rows}\n}}}}\n'


def _left_out(lines: Sequence[Unit]) -> list[learned.Learned]:
    """What is learned of each line from the other authors."""
    by_author = {
        author: trained([each for each in lines if each.author != author])
        for author in {each.author for each in lines} - {USUAL}
    }
    return [learned.weigh(each.text, by_author[each.author]) for each in lines if each.author != USUAL]


def _table(lines: Sequence[Unit], found: Sequence[learned.Learned]) -> str:
    rows = ["lang  least   kept  stored   wishes told from facts   by rules alone"]
    for lang in ("en", "zh"):
        ours = [(unit, told) for unit, told in zip(lines, found, strict=True) if unit.lang == lang]
        alone = " ".join(
            f"{np.mean([u.by_rules for u, _ in ours if u.keep == k]):.3f}" for k in (True, False)
        )
        kept = [(told.wish >= 0.5) == unit.wish for unit, told in ours if unit.keep]
        rows += [
            f"{lang:4s}  {least:.2f}   {_share(ours, least, keep=True):.3f}   "
            f"{_share(ours, least, keep=False):.3f}   {np.mean(kept):.3f}                    {alone}"
            for least in (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
        ]
    return "\n".join(rows)


def _share(lines: Sequence[tuple[Unit, learned.Learned]], least: float, *, keep: bool) -> float:
    return float(np.mean([unit.is_kept(told.chance, least) for unit, told in lines if unit.keep == keep]))


if __name__ == "__main__":
    main()
