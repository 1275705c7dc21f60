"""Fit `NEAREST` of `stages/post_retrieval/neighbours.py`: which records are steps to an answer?

Run: python benchmarks/tune_relations.py [--embedder NAME]

Logistic regression over the hits and neighbours of each question, at five and at ten places: is a record one
of the facts that the answer needs, by its worth, by being the best neighbour of a hit, and by the relevance
of the best hit, which differs from question to question? NEAREST is the second weight over the first. The
questions are of the worlds in `benchmarks/steps`, one a line, by authors who knew no rule. Printed are the
figures of worlds that the weights have not seen, a quarter left out at a time, and what all give.

Each world is read with its language's embedder, unless --embedder names one for all.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt
from relations import told

from supervisor_memory import DEFAULT, Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.flow import Recalling
from supervisor_memory.model.records import Hit, Hits
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval import neighbours

WORLDS = Path(__file__).parent / "steps"
READERS = {"en": MINILM, "zh": E5}
PLACES = (5, 10)
PARTS = 4
RIDGE = 1.0
ROUNDS = 30
HOURS_APART = 6 * 3_600.0
PATIENCE_MS = 60_000
USER = "reader"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question at so many places: the hits before neighbours come, the neighbours, and what is needed."""

    world: str
    language: str
    hops: int
    places: int
    own: Sequence[Hit]
    near: Hits
    needed: Sequence[str]

    def rows(self) -> tuple[Floats, Floats]:
        """The features of each record, and whether it is a step."""
        texts = {hit.record.id: told(hit.record.content) for hit in (*self.own, *self.near)}
        worths = neighbours.worths_of(self.own, self.near, nearest=0.0)
        raised = neighbours.worths_of(self.own, self.near, nearest=1.0)
        best = max(hit.parts.get("relevance", 0.0) for hit in self.own)
        features = [(worth, raised[id_] - worth, best) for id_, worth in worths.items()]
        steps = [float(any(each in texts[id_] for each in self.needed)) for id_ in worths]
        return np.array(features), np.array(steps)

    def found(self, nearest: float) -> float:
        """The share of what is needed that stands in the places."""
        places = min(ceil(neighbours.PLACES * self.places), self.places - neighbours.FIRST)
        filled = neighbours.filled(self.own, self.near, places=places, most=self.places, nearest=nearest)
        texts = [told(hit.record.content) for hit in (*filled[0], *filled[1])]
        return sum(any(each in text for text in texts) for each in self.needed) / len(self.needed)


def questions(path: Path, embedder: str | None) -> Iterator[Asked]:
    """Put the questions of all worlds of a language."""
    seen: list[tuple[Sequence[Hit], Hits]] = []

    def listen(plan: Recalling, view: ReadStore) -> Recalling:
        seen.append((plan.hits.items, neighbours.neighbours(plan, view)))
        return plan

    steps = tuple(listen if each is neighbours.add_joined else each for each in DEFAULT.post_retrieval)
    settings = Settings(
        backend="in_memory",
        embedding_model=embedder or READERS[path.stem],
        search_timeout_ms=PATIENCE_MS,
        write_timeout_ms=PATIENCE_MS,
    )
    for line in path.read_text("utf-8").splitlines():
        world = json.loads(line)
        with SupervisorMemory(settings, recipe=replace(DEFAULT, post_retrieval=steps)) as memory:
            begun = time.time() - len(world["facts"]) * HOURS_APART
            for place, text in enumerate(world["facts"].values()):
                memory.write(text, user_id=USER, created_at=begun + place * HOURS_APART)
            for question in world["questions"]:
                needed = [told(world["facts"][id_]) for id_ in question["evidence"]]
                for places in PLACES if needed else ():
                    seen.clear()
                    memory.search(question["q"], user_id=USER, limit=places)
                    for own, near in seen:
                        yield Asked(world["world"], path.stem, question["hops"], places, own, near, needed)


def fitted(some: Iterable[Asked]) -> float:
    """NEAREST by some questions."""
    features, steps = map(np.concatenate, zip(*(each.rows() for each in some if each.own), strict=True))
    rows = np.column_stack([features, np.ones(len(features))])
    weights = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):  # Newton's method
        chances = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (steps - chances) - RIDGE * weights
        bend = (rows.T * (chances * (1 - chances))) @ rows + RIDGE * np.eye(len(weights))
        weights += np.linalg.solve(bend, slope)
    return float(weights[1] / weights[0])


def left_out(asked: Sequence[Asked]) -> Mapping[tuple[str, int, int], Sequence[float]]:
    """Language, hops and places → the share found of each question, its world not seen."""
    worlds = sorted({each.world for each in asked})
    found: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for part in range(PARTS):
        others = worlds[part::PARTS]
        nearest = fitted(each for each in asked if each.world not in others)
        for each in asked:
            if each.world in others:
                found[each.language, each.hops, each.places].append(each.found(nearest))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder")
    options = parser.parse_args()
    asked = [each for path in sorted(WORLDS.glob("??.jsonl")) for each in questions(path, options.embedder)]
    before = {name: defaultdict[tuple[str, int, int], list[float]](list) for name in ("without", "with")}
    for each in asked:
        key = each.language, each.hops, each.places
        before["without"][key].append(replace(each, near=Hits()).found(neighbours.NEAREST))
        before["with"][key].append(each.found(neighbours.NEAREST))
    print("language hops places: share found, all found; without neighbours, by NEAREST, its world left out")
    for key, unseen in sorted(left_out(asked).items()):
        told_ = (before["without"][key], before["with"][key], unseen)
        figures = (f"{np.mean(some):.3f} {np.mean([each == 1 for each in some]):.3f}" for some in told_)
        print(*key, *figures, sep="  ")
    print(f"NEAREST {fitted(asked):.3f}")


if __name__ == "__main__":
    main()
