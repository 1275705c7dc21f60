"""Rerankers: operators that put ranked hits into another order. None is in the default recipe.

    memory = SupervisorMemory(recipe=reranked(DEFAULT, mmr()))

Each adds a part to the hits that it judged and leaves score and relevance as they were, so that the threshold
means what it meant. Each reads the best hits alone; the others stay behind them, in their order. What fails,
or takes longer than the time left, leaves the order as it was and marks the answer degraded.
"""

import math
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from supervisor_memory.embedding.extras import load, require
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.flow import Reading, Recalling, Recipe
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Hit
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.rank import rank

_EXTRA = "sentence-transformers"
_LONGEST_QUESTION = 2_000
_LONGEST_NOTE = 500
_NUMBERS = re.compile(r"[\d\s,;、，。.>\[\]]*\d[\d\s,;、，。.>\[\]]*")


class ScoresPairs(Protocol):
    """A cross-encoder: how well the second text of each pair answers the first."""

    def predict(self, pairs: list[tuple[str, str]], /) -> Iterable[float]: ...


def reranked(recipe: Recipe, *operators: Reading) -> Recipe:
    """The recipe with these operators right behind its ranking, in their order.

    Raises:
        ValueError: it does not rank; put them where they belong with `dataclasses.replace`.
    """
    steps = recipe.post_retrieval
    if rank not in steps:
        raise ValueError(f"recipe {recipe.name!r} has no rank in post_retrieval to put a reranker behind")
    place = steps.index(rank) + 1
    return replace(recipe, post_retrieval=(*steps[:place], *operators, *steps[place:]))


def mmr(*, weight: float = 0.7, best: int = 50) -> Reading:
    """Maximal marginal relevance: a hit that resembles an earlier one comes later.

    The likeness of two texts is the share of their terms that they have in common (Jaccard).

    Args:
        weight: In [0, 1]. 1: by score alone; 0: as different as can be.
        best: How many hits are put into order.

    Source: Carbonell & Goldstein, "The use of MMR", SIGIR 1998.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight is {weight}; use a number in [0, 1]")

    def by_mmr(plan: Recalling, view: ReadStore) -> Recalling:
        waiting = [(hit, frozenset(terms(hit.record.content))) for hit in plan.hits[:best]]
        likest = dict.fromkeys((hit.record.id for hit, _ in waiting), 0.0)
        chosen: list[Hit] = []
        while waiting:
            at = max(
                range(len(waiting)),
                key=lambda n: weight * waiting[n][0].score - (1 - weight) * likest[waiting[n][0].record.id],
            )
            hit, said = waiting.pop(at)
            chosen.append(_with_part(hit, "novelty", 1.0 - likest[hit.record.id]))
            for other, says in waiting:
                likest[other.record.id] = max(likest[other.record.id], _jaccard(said, says))
        return _in_front(plan, chosen)

    return by_mmr


def cross_encoder(model: ScoresPairs | str | Path, *, best: int = 20) -> Reading:
    """Order by a model that reads question and record together: slower and better than comparing vectors.

    Args:
        model: Anything with `predict(pairs)`, such as a `CrossEncoder` of sentence-transformers; or the name
            or folder of one, which is then loaded by the first search that needs it. That search may go
            without, for want of time. Scores outside [0, 1] are taken for logits.
        best: How many hits are read; the time it takes grows with them.

    Raises:
        EmbedderNotInstalled: a name is given and the extra `sentence-transformers` is missing.
    """
    if isinstance(model, (str, Path)):
        require("sentence_transformers", extra=_EXTRA, embedder=f"the cross-encoder {str(model)!r}")
    given = PerProcess(lambda: _loaded(model) if isinstance(model, (str, Path)) else model)
    turn = PerProcess(threading.Lock)  # the tokenizers of transformers refuse to be shared

    def by_cross_encoder(plan: Recalling, view: ReadStore) -> Recalling:
        hits = plan.hits[:best]
        if plan.query is None or not hits:
            return plan
        pairs = [(plan.query.text, hit.record.content) for hit in hits]

        def judge() -> list[float]:
            with turn.get():
                return _in_unit(given.get().predict(pairs), count=len(pairs))

        scores = view.attempt("cross-encoder", judge)
        if scores is None:
            return plan
        judged = [_with_part(hit, "cross-encoder", s) for hit, s in zip(hits, scores, strict=True)]
        return _in_front(plan, sorted(judged, key=lambda hit: -hit.parts["cross-encoder"]))

    return by_cross_encoder


def ask_model(*, best: int = 10) -> Reading:
    """Order by the memory's language model (`llm=`, MEMORY_LLM), which is asked once a recall.

    Without a model nothing changes. An answer that is no order of the notes is a fault like any other.

    Args:
        best: How many hits it is shown.

    Source: listwise reranking, Sun et al., "Is ChatGPT Good at Search?", EMNLP 2023.
    """

    def by_model(plan: Recalling, view: ReadStore) -> Recalling:
        hits = plan.hits[:best].items
        if plan.query is None or len(hits) < 2:  # noqa: PLR2004
            return plan
        question = _clipped(plan.query.text, _LONGEST_QUESTION)
        notes = (f"{n}. {_clipped(hit.record.content, _LONGEST_NOTE)}" for n, hit in enumerate(hits, start=1))
        answer = view.complete(view.prompt("rank", question=question, notes="\n".join(notes)))
        if answer is None:
            return plan
        order = view.attempt("reranking-model", lambda: _order(answer, count=len(hits)))
        return plan if order is None else _in_front(plan, [hits[place] for place in order])

    return by_model


def _with_part(hit: Hit, name: str, value: float) -> Hit:
    return replace(hit, parts={**hit.parts, name: value})


def _in_front(plan: Recalling, first: Sequence[Hit]) -> Recalling:
    """The plan with its first hits replaced by as many others."""
    return replace(plan, hits=replace(plan.hits, items=(*first, *plan.hits.items[len(first) :])))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def _loaded(name: str | Path) -> Any:
    package = load("sentence_transformers", extra=_EXTRA, embedder=f"the cross-encoder {str(name)!r}")
    return package.CrossEncoder(str(name), device="cpu")


def _in_unit(scores: Iterable[float], *, count: int) -> list[float]:
    """Scale scores to [0, 1], in the same order.

    Raises:
        ValueError: there are more or fewer than there were pairs, or one is no finite number.
    """
    values = [float(score) for score in scores]
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError(f"a cross-encoder gave {len(values)} scores for {count} pairs, or one is not finite")
    if all(0.0 <= value <= 1.0 for value in values):
        return values
    return [0.5 * (1.0 + math.tanh(value / 2)) for value in values]  # the logistic function, for any size


def _order(answer: str, *, count: int) -> list[int]:
    """The places named by an answer, from 0, then the missing places.

    It is read from the last line that holds nothing but numbers, for some models think aloud before.

    Raises:
        ValueError: there is no such line, or it names a note that does not exist.
    """
    lines = [line for line in answer.splitlines() if _NUMBERS.fullmatch(line.strip())]
    named = [int(number) - 1 for number in re.findall(r"\d{1,4}", lines[-1])] if lines else []
    if not named or not all(0 <= place < count for place in named):
        raise ValueError(f"the model gave no order of {count} notes")
    return list(dict.fromkeys((*named, *range(count))))


def _clipped(text: str, most: int) -> str:
    """Cut a text and put it on one line, so that no record looks like two."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
