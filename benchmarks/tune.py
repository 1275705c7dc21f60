"""Which weights of the signals find most in your own conversations, and is that more than chance?

Run: python benchmarks/tune.py [--data FILE …] [--embedder NAME]

A file has the shape of `benchmarks/quality/*.json`: conversations or collections of facts, each with
questions and the ids of the turns that answer them; `benchmarks/quality/corpus.py` describes it. There must
be two or more, for weights are judged on what they were not chosen by. Without --data our own sets are read,
but not the dialogues with an assistant, which no weight was chosen by.
A file whose name ends in "zh" is read with multilingual-e5-small, others with all-MiniLM-L6-v2, unless
--embedder names one for all.

The search goes from weight to weight, tries rounded values, and takes one that finds more. First it leaves
out one corpus at a time and counts what the weights found from the others gain there: that is what to expect
of new questions. Where the interval that holds this gain 19 times in 20 has 0 in it, keep the defaults.
Counted is the mean of R@5, R@10 and nDCG@10, by the match alone: what ranking adds to it has no weight here.

What it prints last can be set as it is: MEMORY_SIGNAL_WEIGHTS in the environment, `signal_weights` in Python.
"""

import argparse
import json
import logging
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from quality.corpus import Corpus, read_corpora
from quality.metrics import score
from quality.systems import entry

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import DEFAULT, Weights
from supervisor_memory.signals.index import Index, entry_of
from supervisor_memory.signals.measure import Asked, Cosines, measure

OWN = Path(__file__).parent / "quality"
_STEPS = (0.0, 0.5, 0.75, 1.25, 1.5, 2.0)
_WORTH = 0.001
"""What a change must gain on the questions it is chosen by, so that a plateau is not left for a peak."""
_FIGURES = ("R@5", "R@10", "nDCG@10")
_USER = "reader"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A corpus in an index, and its questions with all but the weights worked out."""

    id: str
    index: Index
    ids: Sequence[str]
    """Of the items, by row."""
    questions: Sequence[tuple[Asked, Cosines | None, Sequence[str]]]


def prepare(corpus: Corpus, embedder: Embedder | None) -> Prepared:
    """Store a corpus as a memory does, and index what it holds."""
    settings = Settings(embedding_model="none", write_timeout_ms=600_000)
    with SupervisorMemory(settings, clock=lambda: _asked(corpus)) as memory:
        results = memory.add_many([entry(item) for item in corpus.items], user_id=_USER, infer=False)
        records = [memory.get(result.id, user_id=_USER) for result in results if result.id is not None]
    index = Index()
    for key, record in enumerate(records):
        index.put(key, entry_of(record))
    vectors = embedder.embed_documents([record.embedded_text for record in records]) if embedder else None
    rows = np.arange(len(records), dtype=np.intp)
    questions: list[tuple[Asked, Cosines | None, Sequence[str]]] = []
    for each in corpus.questions:
        unrelated = embedder.calibration.unrelated if embedder else 0.0
        cosines = None
        if embedder is not None and vectors is not None:
            cosines = (rows, vectors @ embedder.embed_query(each.text))
        asked = Asked(each.text, terms(each.text), _asked(corpus), unrelated)
        questions.append((asked, cosines, each.evidence))
    return Prepared(corpus.id, index, [item.id for item in corpus.items], questions)


def _asked(corpus: Corpus) -> float:
    """When the questions are asked: a day after the last turn, where the corpus does not say."""
    return corpus.asked or max((item.created_at or 0.0 for item in corpus.items), default=0.0) + 86_400.0


@lru_cache(maxsize=4096)
def figures(corpus: Prepared, weights: Weights) -> tuple[float, ...]:
    """How well each question is answered with these weights, in [0, 1]."""
    return tuple(_figures(corpus, weights))


def _figures(corpus: Prepared, weights: Weights) -> Iterator[float]:
    for asked, cosines, evidence in corpus.questions:
        match = measure([corpus.index], asked, [cosines], weights).match
        found = [corpus.ids[row] for row in np.argsort(-match, kind="stable")[:10]]
        told = score(found, evidence, k=10)
        yield statistics.mean(told[name] for name in _FIGURES)


def mean_of(corpora: Sequence[Prepared], weights: Weights) -> float:
    """The mean over all questions."""
    return statistics.mean(each for corpus in corpora for each in figures(corpus, weights))


def best_of(corpora: Sequence[Prepared], *, rounds: int) -> Weights:
    """The weights that a search from the defaults arrives at, one weight after the other."""
    weights, found = DEFAULT, mean_of(corpora, DEFAULT)
    for _ in range(rounds):
        before = weights
        for name, default in asdict(DEFAULT).items():
            for step in _STEPS:
                tried = _with(weights, name, round(20 * default * step) / 20)
                if tried is not None and (value := mean_of(corpora, tried)) > found + _WORTH:
                    weights, found = tried, value
        if weights == before:
            break
    return weights


def _with(weights: Weights, name: str, value: float) -> Weights | None:
    """The weights with one changed; None where that leaves none for words."""
    changed = asdict(weights) | {name: value}
    return Weights(**changed) if changed["words"] or changed["words_before"] else None


def gains(corpora: Sequence[Prepared], *, rounds: int) -> list[float]:
    """What weights found without a corpus gain on each of its questions, over the defaults."""
    found: list[float] = []
    for held_out in corpora:
        weights = best_of([each for each in corpora if each is not held_out], rounds=rounds)
        pairs = zip(figures(held_out, weights), figures(held_out, DEFAULT), strict=True)
        own = [new - old for new, old in pairs]
        print(f"without {held_out.id}: {told(weights)}; there {statistics.mean(own):+.3f}", flush=True)
        found += own
    return found


def told(weights: Weights) -> str:
    """What differs from the defaults, as MEMORY_SIGNAL_WEIGHTS is written."""
    defaults = asdict(DEFAULT)
    return json.dumps({name: value for name, value in asdict(weights).items() if value != defaults[name]})


def verdict(gained: Sequence[float], proposed: Weights) -> str:
    """What to do, by what weights that were chosen elsewhere gained on each question."""
    gain = statistics.mean(gained)
    error = 1.96 * statistics.stdev(gained) / len(gained) ** 0.5 if len(gained) > 1 else float("inf")
    about = f"{gain:+.3f} ± {error:.3f} on questions they were not chosen by"
    if gain <= error or proposed == DEFAULT:
        return f"keep the defaults: other weights gain {about}"
    return f"gain {about}\nMEMORY_SIGNAL_WEIGHTS='{told(proposed)}'"


def read(paths: Sequence[Path], embedder: str | None) -> list[Prepared]:
    """The corpora of all files, each with the embedder of its language."""
    opened: Mapping[str, Embedder | None] = {}
    found = []
    for path in paths:
        name = embedder or (E5 if path.stem.endswith("zh") else MINILM)
        if name not in opened:
            opened = {**opened, name: open_embedder(name, dimension=None)}
        found += [prepare(corpus, opened[name]) for corpus in read_corpora(path)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="conversations or facts, JSON")
    parser.add_argument("--embedder", choices=(MINILM, E5, "none"), help="for every file")
    parser.add_argument("--rounds", type=int, default=3, help="how often all weights are gone through")
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    own = sorted(file for file in OWN.glob("*.json") if not file.stem.startswith("assistant"))
    corpora = read(options.data or own, options.embedder)
    if len(corpora) < 2:
        raise SystemExit("one corpus is not enough: weights are judged on another than they were chosen by")
    count = sum(len(corpus.questions) for corpus in corpora)
    print(f"{count} questions, {len(corpora)} corpora; defaults {mean_of(corpora, DEFAULT):.3f}", flush=True)
    gained = gains(corpora, rounds=options.rounds)
    proposed = best_of(corpora, rounds=options.rounds)
    print(f"on all: {told(proposed)}, {mean_of(corpora, proposed):.3f} on what they were chosen by")
    print(verdict(gained, proposed))


if __name__ == "__main__":
    main()
