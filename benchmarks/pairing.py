"""Fit the second look at a pair of texts (`supervisor_memory/compare/pairing.py`), and tell how well it does.

Run: python benchmarks/pairing.py [--check FILE …]   leaves each author, domain and world out once
     python benchmarks/pairing.py --write NAME …     fits to all and writes these weights: changes, same,
                                                     instead, of_it

What is fitted: the words of a change, on the lines of benchmarks/sentences (corrections and endings against
what else is to be kept); then two logistic regressions over the facts of a pair, `same` and `instead`, on
benchmarks/kept, benchmarks/merging and benchmarks/worlds, and a third, `of_it`, on those pairs of all sets
whose later text tells a change. Of a story each step is paired with each later one: what is stale gives way
to a later value; two steps that are both current stay two. A "different" pair of benchmarks/kept tells no new
value either. The facts of a world in benchmarks/worlds all hold: each is paired with those nearest to it, and
every pair is two things. benchmarks/changes has told changes, each with a text that it replaces and with some
about the same thing that it leaves as they are ("second" to "eighth" by authors who knew no rule), and
"worlds": such pairs of worlds that are not kept. --check decides on sets of the same forms that nothing is
fitted to.

Printed: of texts that say the same how many are one, of different ones how many are replaced or joined, of
new values how many replace, by language; and by bounds of `of_it`, of benchmarks/changes, how many facts
that hold are replaced ("apart") and how many true changes replace ("instead").
"""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from merging.lines import Line, read_lines, slots_of

from supervisor_memory.compare import changes, pairing, verdict
from supervisor_memory.compare.changes import marks
from supervisor_memory.compare.pairing import Before, facts
from supervisor_memory.compare.verdict import Compared, Look, Verdict, is_weighed, looks
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Embedder

FOLDER = Path(__file__).parent
READERS = {"en": MINILM, "zh": E5}
RIVALS = 10
RIDGE = 2.0
Form: TypeAlias = Literal["pairs", "stories", "stream", "changes", "worlds"]
COUNTS: Mapping[Form, float] = {"pairs": 4.0, "stories": 3.0, "stream": 1.0, "worlds": 1.0}
"""How much a pair counts: streams have some four thousand, stories and pairs some hundreds."""
OF_A_CHANGE, OF_A_WORLD = 0.33, 0.1
"""How much a pair counts for `of_it`, and one of the seven thousand of worlds."""
BOUNDS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)
OF_NEIGHBOURS = frozenset({"alone", "lead", "behind"})
"""What tells of the other known texts, of which pairs have none."""
CHANGE_RIDGE, SEEN, STEPS, PACE = 0.25, 4, 300, 0.1
SMALLEST = 0.05
"""Weights nearer to zero are left out."""
Floats = npt.NDArray[np.float64]
Label: TypeAlias = Literal["same", "instead", "apart"]


@dataclass
class Row:
    """A pair of texts, and the decision that is right for it.

    `source` names the author, the topic of a stream, or the world; `line` is the id of the later text.
    """

    source: str
    lang: str
    label: Label
    form: Form
    line: str
    new: str
    look: Look
    facts: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None


Vectors: TypeAlias = Callable[[str, str], npt.NDArray[np.float32]]


def reading() -> tuple[Mapping[str, Embedder], Vectors]:
    """An embedder for each language, and a function of language and text that embeds each text once."""
    found = {lang: open_embedder(name, dimension=None) for lang, name in READERS.items()}
    readers = {lang: each for lang, each in found.items() if each is not None}
    known: dict[tuple[str, str], npt.NDArray[np.float32]] = {}

    def vector(lang: str, text: str) -> npt.NDArray[np.float32]:
        if (lang, text) not in known:
            known[lang, text] = readers[lang].embed_documents([text])[0]
        return known[lang, text]

    return readers, vector


def rows_of(path: Path, readers: Mapping[str, Embedder], vector: Vectors) -> list[Row]:
    """The pairs of a file, whatever its form."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    if "stream" in lines[0]:
        return [*_of_streams(read_lines(path), path.stem, readers, vector)]
    if "fact" in lines[0]:
        return [*_of_worlds(lines, path.stem, readers[path.stem], vector)]
    if "old" in lines[0]:
        told = _of_changes(path.stem, lines)
    else:
        author = path.stem.rpartition("_")[2]
        told = _of_pairs(author, lines) if "a" in lines[0] else _of_stories(author, lines)
    form: Form = "changes" if "old" in lines[0] else "pairs" if "a" in lines[0] else "stories"
    found = []
    for source, line, lang, old, new, label in told:
        cosine = float(vector(lang, old) @ vector(lang, new))
        [look] = looks(new, [Compared(old, cosine)], readers[lang].calibration)
        found.append(Row(source, lang, label, form, line, new, look))
    return found


Told: TypeAlias = Iterator[tuple[str, str, str, str, str, Label]]


def _of_pairs(author: str, lines: Sequence[Mapping[str, Any]]) -> Told:
    for line in lines:
        label: Label = "same" if line["same"] else "apart"
        yield author, line["id"], line["lang"], line["a"], line["b"], label


def _of_changes(name: str, lines: Sequence[Mapping[str, Any]]) -> Told:
    author, _, lang = name.rpartition("_")
    for n, line in enumerate(lines):
        source = line.get("by") or f"told by {author or 'us'}"
        label: Label = "instead" if line["want"] == "replaces" else "apart"
        yield source, f"{name}-{n}", lang, line["old"], line["new"], label


def _of_stories(author: str, lines: Sequence[Mapping[str, Any]]) -> Told:
    for line in lines:
        if line["class"] in ("retract", "tempting"):
            continue
        steps, is_one_thing = line["story"], line["class"] not in ("scoped-two", "add-up")
        states = [_state(step, line["expected"]) for step in steps]
        for later in range(1, len(steps)):
            for earlier in range(later):
                label = _label(states[earlier], states[later], line, is_one_thing=is_one_thing)
                if label is not None:
                    name = f"{line['id']}-{earlier}-{later}"
                    yield author, name, line["lang"], steps[earlier], steps[later], label


def _state(step: str, expected: Mapping[str, Sequence[str]]) -> frozenset[int] | None:
    """Which of the current values a step tells; empty: a stale one; None: neither."""
    current = frozenset(n for n, each in enumerate(expected["current"]) if re.search(each, step))
    return current if current or any(re.search(each, step) for each in expected["stale"]) else None


def _label(
    one: frozenset[int] | None, other: frozenset[int] | None, line: Mapping[str, Any], *, is_one_thing: bool
) -> Label | None:
    if one is None or other is None or (one and not other):
        return None
    if not one:
        return "instead" if is_one_thing or len(line["expected"]["current"]) == 1 else None
    return "same" if one == other or line["class"] == "paraphrase" else "apart"


def _of_streams(
    lines: Sequence[Line], name: str, readers: Mapping[str, Embedder], vector: Vectors
) -> Iterator[Row]:
    slots = slots_of(lines)
    for stream, of_stream in groupby(lines, key=lambda line: line.stream):
        true: list[Line] = []
        for line in of_stream:
            if line.kind == "task-traces":
                continue
            own = vector(line.language, line.content)
            cosines = {each.id: float(own @ vector(each.language, each.content)) for each in true}
            rivals = sorted((each for each in true if each.kind == line.kind), key=lambda r: -cosines[r.id])
            rivals = rivals[:RIVALS]
            compared = [Compared(each.content, cosines[each.id]) for each in rivals]
            domain = stream.partition("-")[2].replace("clinic", "hospital") if name in READERS else name
            for rival, look in zip(
                rivals, looks(line.content, compared, readers[line.language].calibration), strict=True
            ):
                is_same = line.is_joined and slots[rival.id] == slots[line.id]
                joined: Label = "instead" if line.relation == "conflict" else "same"
                label: Label = joined if is_same else "apart"
                if line.why not in ("exact", "case/punct") or label == "apart":
                    yield Row(domain, line.language, label, "stream", line.id, line.content, look)
            if line.relation == "conflict":
                true = [each for each in true if slots[each.id] != slots[line.id]]
            true.append(line)


def _of_worlds(
    lines: Sequence[Mapping[str, str]], lang: str, reader: Embedder, vector: Vectors
) -> Iterator[Row]:
    """Each fact beside the nearest others of its world, as if all of them were known."""
    for world, of_world in groupby(lines, key=lambda line: line["world"]):
        told = [line["fact"] for line in of_world]
        vectors = np.stack([vector(lang, fact) for fact in told])
        cosines = vectors @ vectors.T
        for place, new in enumerate(told):
            nearest = [other for other in np.argsort(-cosines[place]).tolist() if other != place][:RIVALS]
            compared = [Compared(told[other], float(cosines[place, other])) for other in nearest]
            for look in looks(new, compared, reader.calibration):
                yield Row(world, lang, "apart", "worlds", f"{world}-{place}", new, look)


# --- fitting -----------------------------------------------------------------------------------------------


def change_weights() -> dict[str, float]:
    """Weights of the words of a change, by Adam on all lines at once; "" is the constant."""
    told: dict[str, bool] = {}
    for path in sorted((FOLDER / "sentences").glob("*.jsonl")):
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            if line.get("keep"):
                told[line["text"]] = line["class"] in ("correction", "ending")
    texts = sorted(told)
    read = [marks(text) for text in texts]
    seen = Counter(mark for some in read for mark in some)
    names = sorted(mark for mark, count in seen.items() if count >= SEEN)
    places = {name: n for n, name in enumerate(names, 1)}
    known = [[places[mark] for mark in some if mark in places] for some in read]
    row_of = np.repeat(np.arange(len(texts)), [len(some) for some in known])
    columns = np.array([place for some in known for place in some], dtype=np.intp)
    share = np.array([1 / math.sqrt(len(some) or 1) for some in known])
    wanted = np.array([told[text] for text in texts], dtype=float)
    each = np.where(wanted > 0, 0.5 / wanted.mean(), 0.5 / (1 - wanted.mean()))
    w, first, second = (np.zeros(len(names) + 1) for _ in range(3))
    for step in range(1, STEPS + 1):
        z = w[0] + share * np.bincount(row_of, weights=w[columns], minlength=len(texts))
        off = each * (1 / (1 + np.exp(-z)) - wanted)
        gradient = np.bincount(columns, weights=(share * off)[row_of], minlength=len(w)) + CHANGE_RIDGE * w
        gradient[0] = off.sum()
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        w -= PACE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return {name: float(value) for name, value in zip(["", *names], w, strict=True)}


def fitted(rows: Sequence[Row], wanted: Label, *, counts: Mapping[Form, float] = COUNTS) -> dict[str, float]:
    """Weights of a logistic regression with a ridge, by Newton's method; "" is the constant."""
    names = sorted({name for row in rows for name in row.facts})
    x = np.array([[1.0, *(row.facts.get(name, 0.0) for name in names)] for row in rows])
    y = np.array([row.label == wanted for row in rows], dtype=float)
    each = np.array([counts.get(row.form, OF_A_CHANGE) for row in rows])
    penalty = np.full(x.shape[1], RIDGE)
    penalty[0] = 1e-3
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        hessian = (x * (each * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, x.T @ (each * (p - y)) + penalty * w)
        w -= step
        if np.abs(step).max() < 1e-6:
            break
    return dict(zip(["", *names], map(float, w), strict=True))


def learn_changes() -> dict[str, int]:
    """Fit the words of a change; the module holds the new weights after that."""
    told = {name: round(100 * w) for name, w in change_weights().items() if abs(w) >= SMALLEST}
    changes.change.cache_clear()
    _hold(changes, {name: weight / 100 for name, weight in told.items()})
    return told


def learn(rows: Sequence[Row], others: Sequence[Row] = ()) -> dict[str, dict[str, float]]:
    """Fit the second look to `rows`, and give the others their verdicts by it."""
    used = [row for row in rows if is_weighed(row.look)]
    others_than_changes = [row for row in used if row.form != "changes"]
    changes_told = [_alone(row) for row in used if _is_of_a_change(row)]
    fits = {
        "same": fitted(others_than_changes, "same"),
        "instead": fitted(others_than_changes, "instead"),
        "of_it": fitted(changes_told, "instead", counts={"worlds": OF_A_WORLD}),
    }
    weights = {
        name: {fact: round(w, 2) for fact, w in some.items() if abs(w) >= 0.005}
        for name, some in fits.items()
    }
    _hold(pairing, weights)
    for row in others:
        row.verdict = verdict._unless_of_another(row.look, verdict._again(row.look))
    return weights


def _is_of_a_change(row: Row) -> bool:
    """Whether `of_it` is fitted to this row: a told change of the earlier text, or one that an author wrote
    as a change of something else. The other lines of a stream are mostly far from it."""
    is_written = row.label == "apart" and row.form != "stream"
    return verdict._tells_a_change(row.look.pair.new) and (is_written or row.label == "instead")


def _alone(row: Row) -> Row:
    found = {name: value for name, value in row.facts.items() if name not in OF_NEIGHBOURS}
    return replace(row, facts=found)


def _hold(module: Any, weights: Any) -> None:
    """Let a module decide by these weights instead of its file's."""
    module._weights = lambda: weights


def _facts(look: Look) -> Mapping[str, float]:
    first = look.verdict
    assert look.near is not None
    before = Before(first.about, first.instead, first.apart)
    return dict(facts(look.pair, near=look.near, lead=look.lead, before=before))


# --- telling -----------------------------------------------------------------------------------------------


def told(rows: Iterable[Row]) -> str:
    """Count what became of the rows. The best rival of a line decides, as in the judge."""
    counts: Counter[str] = Counter()
    for _, of_line in groupby(sorted(rows, key=lambda row: row.line), key=lambda row: row.line):
        line = list(of_line)
        best = max(line, key=lambda row: row.verdict.rank if row.verdict else 0.0)
        found = best.verdict
        assert found is not None
        does = "apart" if found.about < 0.5 else "instead" if found.instead >= 0.5 else "same"
        meant = next((row.label for row in line if row.label != "apart"), "apart")
        counts[meant] += 1
        counts[f"{meant}, right"] += does == meant and meant in ("apart", best.label)
        counts["one"] += meant == does == "same" == best.label and found.is_one
        counts["elsewhere"] += does != "apart" and meant != "apart" and best.label == "apart"
    names = {"same": "joined", "instead": "replaced", "apart": "kept apart"}
    parts = [f"{name} {counts[f'{label}, right']}/{counts[label]}" for label, name in names.items()]
    return "  ".join([*parts, f"one wording {counts['one']}", f"elsewhere {counts['elsewhere']}"])


def show_bounds(name: str, rows: Sequence[Row]) -> None:
    """Print of how many rows the earlier text is replaced, for each bound of `of_it`."""
    chosen = verdict._CHANGES_IT, verdict._CHANGES_IT_REWORDED
    for lang, label in sorted({(row.lang, row.label) for row in rows}):
        own = [row for row in rows if (row.lang, row.label) == (lang, label)]
        counts = []
        for bound in BOUNDS:
            verdict._CHANGES_IT = verdict._CHANGES_IT_REWORDED = bound
            seen = [verdict._unless_of_another(row.look, verdict._again(row.look)) for row in own]
            replaced = sum(each.about >= 0.5 <= each.instead for each in seen)
            counts.append(f"{bound:.2f}: {replaced}")
        print(f"{name:12} {lang}  {label} {len(own)}, replaced by bound  {'  '.join(counts)}", flush=True)
    verdict._CHANGES_IT, verdict._CHANGES_IT_REWORDED = chosen


def show(name: str, rows: Sequence[Row]) -> None:
    for lang in READERS:
        if own := [row for row in rows if row.lang == lang]:
            print(f"{name:12} {lang}  {told(own)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--write", nargs="+", choices=("changes", "same", "instead", "of_it"), default=())
    options = parser.parse_args()
    readers, vector = reading()
    folders = (FOLDER / name for name in ("merging", "kept", "changes", "worlds"))
    paths = [path for folder in folders for path in sorted(folder.glob("*.jsonl"))]
    rows = [row for path in paths for row in rows_of(path, readers, vector)]
    print(f"{len(rows)} pairs, {sum(is_weighed(row.look) for row in rows)} of them weighed")
    others = {path: rows_of(path, readers, vector) for path in options.check}
    change = learn_changes() if "changes" in options.write or not options.write else {}
    for row in (*rows, *(row for some in others.values() for row in some)):
        if is_weighed(row.look):
            row.facts = _facts(row.look)
    if not options.write:
        for source in sorted({row.source for row in rows}):
            left_out = [row for row in rows if row.source == source]
            learn([row for row in rows if row.source != source], left_out)
            for form in sorted({row.form for row in left_out}):
                show(f"{source} {form}", [row for row in left_out if row.form == form])
            show_bounds(source, [row for row in left_out if row.form == "changes"])
    weights = learn(rows, [row for some in others.values() for row in some])
    for path, some in others.items():
        show(path.stem, some)
    here = Path(pairing.__file__)
    if "changes" in options.write:
        _write(here.with_name("changes.json"), change)
    if options.write:
        path = here.with_name("pairing.json")
        new = {name: each for name, each in weights.items() if name in options.write}
        _write(path, json.loads(path.read_text("utf-8")) | new)


def _write(path: Path, weights: Mapping[str, Any]) -> None:
    text = json.dumps(weights, ensure_ascii=False, indent=0)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
