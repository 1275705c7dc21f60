"""What is measured. A system is a function from a corpus to a search over it.

To add one, write a function `(corpus) -> search` and name it in `systems` or `ablations`.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.flow import Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Weights
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.post_retrieval.rerank import reranked

from .corpus import Corpus, Item

__all__ = ["OURS", "Search", "System", "ablations", "entry", "systems"]

Search: TypeAlias = Callable[[str, int], Sequence[str]]
"""From a question and k to at most k ids, best first."""

System: TypeAlias = Callable[[Corpus], AbstractContextManager[Search]]

Scores: TypeAlias = npt.NDArray[np.float64]
Scoring: TypeAlias = Callable[[str], Scores]
"""From a question to one score an item."""

OURS = "supervisor_memory"
_PATIENCE_MS = 3_600_000  # a loaded machine must change no figure, nor long texts that are embedded slowly
_SIGNALS = (
    *("cosine", "bm25", "context", "neighbour", "answer", "episode", "speaker", "date", "information"),
)
_RRF = 60  # Cormack, Clarke and Büttcher 2009
_USER = "reader"


def systems(embedder: Embedder | None, *, backend: Literal["in_memory", "sqlite"]) -> dict[str, System]:
    """Ours first, then what it is compared with. Without an embedder there is BM25 alone.

    Texts are "Speaker: text" where there is a speaker, unless the name says otherwise.
    """

    def bm25(items: Sequence[Item]) -> Scoring:
        return _bm25([item.said for item in items])

    found = {
        OURS: ours(embedder, backend=backend),
        "BM25, text alone": _ranked(lambda items: _bm25([item.text for item in items])),
        "BM25": _ranked(bm25),
    }
    if embedder is None:
        return found

    def dense(items: Sequence[Item]) -> Scoring:
        return _dense([item.said for item in items], embedder)

    return found | {
        "dense, text alone": _ranked(lambda items: _dense([item.text for item in items], embedder)),
        "dense": _ranked(dense),
        "BM25 + dense, RRF": _ranked(_fused(_reciprocal, bm25, dense)),
        "BM25 + dense, sum": _ranked(_fused(_scaled, bm25, dense)),
    }


def ablations(embedder: Embedder | None, *, backend: Literal["in_memory", "sqlite"]) -> dict[str, System]:
    """Ours with one thing changed each, by the name of what is changed."""
    unranked = {"weight_decay": 0.0, "weight_source": 0.0}
    without = {
        f"without {name}": ours(embedder, backend=backend, settings={"signal_weights": {name: 0.0}})
        for name, weight in asdict(Weights()).items()
        if weight
    }
    return {
        "no embedder": ours(None, backend=backend),
        "match alone": ours(embedder, backend=backend, settings=unranked),
        **without,
        "RRF of all signals": ours(
            embedder, backend=backend, settings=unranked, recipe=reranked(DEFAULT, _by_ranks)
        ),
    }


def _reciprocal_ranks(
    signals: Sequence[npt.NDArray[np.float32]], *, constant: float = 60.0
) -> npt.NDArray[np.float32]:
    """Σ 1 / (constant + rank) over the signals; rows with score 0 in a signal have no rank there."""
    total = np.zeros(len(signals[0]), dtype=np.float32)
    for scores in signals:
        ranks = np.empty(len(scores), dtype=np.float32)
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        total += np.where(scores > 0, 1 / (constant + ranks), 0).astype(np.float32)
    return total


def _by_ranks(plan: Recalling, _view: ReadStore) -> Recalling:
    """The same hits by the sum of their reciprocal ranks in each signal."""
    signals = [
        np.array([max(hit.parts.get(name, 0.0), 0.0) for hit in plan.hits], dtype=np.float32)
        for name in _SIGNALS
    ]
    order = np.argsort(-_reciprocal_ranks(signals), kind="stable") if plan.hits else ()
    return replace(plan, hits=replace(plan.hits, items=tuple(plan.hits[int(place)] for place in order)))


def ours(
    embedder: Embedder | None,
    *,
    backend: Literal["in_memory", "sqlite"],
    settings: Mapping[str, object] | None = None,
    recipe: Recipe = DEFAULT,
) -> System:
    """A `SupervisorMemory`, used by its public verbs alone.

    Args:
        settings: What differs from the defaults.
    """

    @contextmanager
    def system(corpus: Corpus) -> Iterator[Search]:
        with TemporaryDirectory() as folder:
            chosen = {"backend": backend, "path": Path(folder), "embedding_model": "none", **(settings or {})}
            patience = {"search_timeout_ms": _PATIENCE_MS, "write_timeout_ms": _PATIENCE_MS}
            memory = SupervisorMemory(
                Settings.model_validate(chosen | patience),
                embedder=embedder,
                recipe=recipe,
                clock=time.time if corpus.asked is None else _standing_at(corpus.asked),
            )
            with memory:
                yield _search(memory, corpus.items)

    return system


def _standing_at(when: float) -> Callable[[], float]:
    return lambda: when


def _search(memory: SupervisorMemory, items: Sequence[Item]) -> Search:
    results = memory.add_many([entry(item) for item in items], user_id=_USER, infer=False)
    ids = {result.id: item.id for result, item in zip(results, items, strict=True)}

    def search(question: str, k: int) -> list[str]:
        hits = memory.search(question, user_id=_USER, limit=k, threshold=0.0)
        if hits.degraded:
            raise RuntimeError(f"the search was degraded, so its figures mean nothing: {hits.notes}")
        return [ids[hit.record.id] for hit in hits]

    return search


def entry(item: Item) -> dict[str, object]:
    """The item as `add_many` takes it."""
    told = {"content": item.text, "speaker": item.speaker, "created_at": item.created_at}
    return {name: value for name, value in told.items() if value is not None}


def _ranked(scoring: Callable[[Sequence[Item]], Scoring]) -> System:
    """A system out of scores: the highest first, equals in the order they were said."""

    @contextmanager
    def system(corpus: Corpus) -> Iterator[Search]:
        score = scoring(corpus.items)
        ids = [item.id for item in corpus.items]
        yield lambda question, k: [ids[row] for row in np.argsort(-score(question), kind="stable")[:k]]

    return system


def _dense(texts: Sequence[str], embedder: Embedder) -> Scoring:
    """The cosine of question and text."""
    matrix = embedder.embed_documents(texts)
    return lambda question: (matrix @ embedder.embed_query(question)).astype(np.float64)


def _bm25(texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> Scoring:
    """Okapi BM25 over our terms, with the IDF of Lucene, which is never negative.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
    """
    counts = [Counter(terms(text)) for text in texts]
    lengths = np.array([count.total() for count in counts], dtype=np.float64)
    norms = k1 * (1 - b + b * lengths / max(lengths.mean(), 1.0)) if texts else lengths
    rows: dict[str, list[int]] = {}
    for row, count in enumerate(counts):
        for term in count:
            rows.setdefault(term, []).append(row)

    def weights(term: str) -> tuple[npt.NDArray[np.int64], Scores]:
        where = np.array(rows[term], dtype=np.int64)
        times = np.array([counts[row][term] for row in rows[term]], dtype=np.float64)
        idf = math.log(1 + (len(texts) - len(where) + 0.5) / (len(where) + 0.5))
        return where, idf * times / (times + norms[where])

    def score(question: str) -> Scores:
        total = np.zeros(len(texts))
        for term in terms(question):
            if term in rows:
                where, weight = weights(term)
                total[where] += weight
        return total

    return score


def _fused(
    share: Callable[[Scores], Scores], *signals: Callable[[Sequence[Item]], Scoring]
) -> Callable[[Sequence[Item]], Scoring]:
    """The sum of what each signal says, every one made comparable by `share`."""

    def scoring(items: Sequence[Item]) -> Scoring:
        each = [signal(items) for signal in signals]
        return lambda question: np.sum([share(score(question)) for score in each], axis=0)

    return scoring


def _reciprocal(scores: Scores) -> Scores:
    """One over the place, after the first 60; what shares no word has no place."""
    places = np.empty(len(scores))
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return np.where(scores > 0, 1 / (_RRF + places), 0.0)


def _scaled(scores: Scores) -> Scores:
    """From 0, the least of them, to 1, the greatest."""
    spread = np.ptp(scores)
    return (scores - scores.min()) / spread if spread else np.zeros_like(scores)
