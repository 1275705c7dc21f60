"""What each recipe finds without a model, beside the default and its own bare store, and what it costs.

Run: python benchmarks/recipes.py [--set NAME …] [--recipe NAME …] [--cost [--size N …]] [--write]
     python benchmarks/recipes.py --guards FILE [--recipe NAME …] [--write]

The sets are those of `benchmarks/quality`, with all-MiniLM-L6-v2 for English and multilingual-e5-small for
Chinese. `--cost` measures search and insert over growing stores instead, with an embedder that only hashes,
so that embedding counts for nothing. `--guards` compares recipes with what their mechanisms found as
prototypes, over the LoCoMo conversations that these were measured on, in the shape of `compare --on`: turns
as "Speaker: text", all-MiniLM-L6-v2, no chores, and ten records told where a recipe tells fewer; so it says
whether a recipe finds what its mechanism can, and not what its authors reached. `--write` puts the figures
into docs/recipes.json, of which docs/recipes.py makes the table of docs/recipes.md.
"""

import argparse
import json
import logging
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from quality.vectors import Remembered

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.open import E5, MINILM, open_embedder
from supervisor_memory.flow import Recipe
from supervisor_memory.interfaces.comparing import USER, measured
from supervisor_memory.language.tokens import count_tokens
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.reading.compared import (
    Asked,
    Held,
    Measured,
    Question,
    difference,
    mean,
    quantile,
    read_questions,
)
from supervisor_memory.recipes.bare import BY_MEANING
from supervisor_memory.recipes.open import OURS
from supervisor_memory.recipes.open import published as open_published
from supervisor_memory.settings import Settings

OWN = Path(__file__).parent / "quality"
PAGE = Path(__file__).parent.parent / "docs" / "recipes.json"
SETS = ("en", "zh", "facts_en", "facts_zh", "assistant_en", "assistant_zh")
CUTS, TOKENS, DEPTH = (5, 10), (600,), 40
ROUNDS = 5
PEER = "isage-neuromem"
SIZES = (300, 1_000, 3_000, 10_000)
GUARDS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "hipporag": ("R@10", 0.62, {}),
    "hipporag2": ("R@10", 0.70, {}),
    "generative_agents": ("R@10", 0.51, {}),
    "memorybank": ("R@10", 0.44, {"top_k": 10}),
    "a_mem": ("R@10", 0.51, {}),
    "memoryos": ("R@10", 0.40, {"pages": 10}),
    "mem0_now": ("R@10", 0.54, {}),
    "scm": ("R@10", 0.44, {"top_k": 10}),
    "secom": ("R@600t", 0.72, {}),
    "ld_agent": ("R@10", 0.32, {"memories": 10}),
    "memgpt": ("R@10", 0.31, {}),
}
"""For a recipe the figure, the least of it, and the constants that make it tell ten records. The least is
what a prototype found over five conversations (997 questions), less some .015."""


def figures(sets: Sequence[str], names: Sequence[str], neuromem: Path | None) -> dict[str, Any]:
    """The figures of each recipe, beside the default and the bare store, over all questions of the sets.

    Args:
        neuromem: A Python that has isage-neuromem, which is asked too.
    """
    found: dict[str, list[Measured]] = {}
    questions: list[Question] = []
    for name in sets:
        held = read_questions(OWN / f"{name}.json")
        questions += chain.from_iterable(each.questions for each in held)
        opened = open_embedder(E5 if name.endswith("zh") else MINILM, dimension=None)
        if opened is None:
            raise SystemExit("there is no embedder to measure with")
        embedder = Remembered(opened)
        recipes: tuple[Recipe | str, ...] = (*dict.fromkeys(("default", *names)), BY_MEANING)
        for recipe in recipes:
            done = measured(recipe, held, embedder=embedder, depth=DEPTH, upkeep=True)
            found.setdefault(done.recipe, []).append(done)
            print(name, done.recipe, flush=True)
        if neuromem is not None:
            found.setdefault(PEER, []).append(of_peer(neuromem, held, embedder))
    rows = {name: _joined(each) for name, each in found.items()}
    every = {name: row.figures(questions, cuts=CUTS, tokens=TOKENS) for name, row in rows.items()}
    told: dict[str, Any] = {"questions": len(questions), "sets": [*sets], "recipes": {}}
    for name, values in every.items():
        bare = difference(every[BY_MEANING.name]["R@10"], values["R@10"])
        ours = difference(every["default"]["R@10"], values["R@10"])
        times = [each.ms for each in rows[name].asked]
        told["recipes"][name] = {
            **{figure: round(mean(each), 3) for figure, each in values.items()},
            "tokens": round(mean([float(sum(a.tokens[: CUTS[-1]])) for a in rows[name].asked])),
            "against_default": str(ours),
            "against_bare": str(bare),
            "is_below_bare": bare.mean < 0 and not bare.is_none,
            "search_ms": round(quantile(times, 0.5), 1),
        }
    return told


def guards(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """The figure of each recipe that has a guard, over the conversations of a file."""
    opened = open_embedder(MINILM, dimension=None)
    if opened is None:
        raise SystemExit("there is no embedder to measure with")
    embedder, held = Remembered(opened), read_questions(path)
    questions = [*chain.from_iterable(each.questions for each in held)]
    told = {}
    for name, (figure, least, constants) in GUARDS.items():
        published = open_published(name)
        if published is None or name not in names:
            continue
        done = measured(published.recipe(**constants), held, embedder=embedder, depth=DEPTH)
        found = mean(done.figures(questions, cuts=CUTS, tokens=TOKENS)[figure])
        told[name] = {"figure": figure, "least": least, "found": round(found, 3), "with": constants}
        print(f"{name:20} {figure} {found:.3f}, guard {least:.2f}", flush=True)
    return told


def of_peer(python: Path, sets: Sequence[Held], embedder: Remembered) -> Measured:
    """What isage-neuromem finds, in an environment of its own, with the same vectors."""
    texts = [{id: str(item["content"]) for id, item in held.items.items()} for held in sets]
    given = []
    for held, known in zip(sets, texts, strict=True):
        vectors = embedder.embed_documents([*known.values()]).tolist()
        items = [
            {"id": id, "text": text, "vector": vector}
            for (id, text), vector in zip(known.items(), vectors, strict=True)
        ]
        questions = [
            {"text": q.text, "vector": embedder.embed_query(q.text).tolist()} for q in held.questions
        ]
        given.append({"items": items, "questions": questions})
    asked = json.dumps({"held": given, "dimension": embedder.dimension, "depth": DEPTH})
    program = [str(python), str(Path(__file__).parent / "neuromem.py")]
    done = subprocess.run(program, input=asked, capture_output=True, text=True, check=True)
    told = iter(json.loads(done.stdout.splitlines()[-1]))
    measured = Measured(PEER)
    for held, known in zip(sets, texts, strict=True):
        for _ in held.questions:
            each = next(told)
            sizes = tuple(count_tokens(known[id]) for id in each["ids"])
            measured.asked.append(Asked(tuple(each["ids"]), sizes, each["ms"]))
    return measured


def _joined(each: Sequence[Measured]) -> Measured:
    whole = Measured(each[0].recipe)
    for one in each:
        whole.asked += one.asked
    return whole


def cost(count: int, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Processor time of a search and an insert, in ms, over so many records: the quietest of five rounds."""
    told = {}
    for name in dict.fromkeys(("default", *names)):
        patience = {"search_timeout_ms": 60_000, "write_timeout_ms": 60_000}
        settings = Settings(embedding_model="none", queue_worker=False, **patience)
        with SupervisorMemory(settings, embedder=HashingEmbedder(64), recipe=name) as memory:
            texts = [f"Shelf {n} of depot {n % 97} holds {n % 13} boxes for order {n}." for n in range(count)]
            memory.add_many(texts, user_id=USER, infer=False)
            asked = [f"What is on shelf {n * 31 % count} of depot {n}?" for n in range(100)]
            said = [f"Order {count + n} was sent from depot {n}." for n in range(100)]
            searches = [_ms(partial(memory.search, q, user_id=USER, threshold=0.0)) for q in asked]
            inserts = [_ms(partial(memory.add_many, [s], user_id=USER, infer=False)) for s in said]
        middle = {"search_ms": _quietest(searches), "insert_ms": _quietest(inserts)}
        told[name] = {what: round(ms, 2) for what, ms in middle.items()}
        print(count, name, told[name], flush=True)
    return told


def _quietest(times: Sequence[float]) -> float:
    """The lowest median of the rounds, since other work on the machine only adds."""
    size = len(times) // ROUNDS
    return min(quantile(times[at : at + size], 0.5) for at in range(0, len(times), size))


def _ms(function: Any) -> float:
    begun = time.process_time()
    function()
    return 1_000 * (time.process_time() - begun)


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--set", action="append", choices=SETS, help="read these sets alone")
    parser.add_argument("--recipe", action="append", choices=[*OURS], help="measure these alone, anew")
    parser.add_argument("--cost", action="store_true", help="measure search and insert instead")
    parser.add_argument("--size", action="append", type=int, help="over so many records alone")
    parser.add_argument("--guards", type=Path, metavar="FILE", help="measure recipes that have a guard")
    parser.add_argument("--neuromem", type=Path, help="a Python with isage-neuromem, see neuromem.py")
    parser.add_argument("--write", action="store_true", help="write docs/recipes.json")
    given = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    told = json.loads(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    names = given.recipe or [*OURS]
    if given.guards:
        found = guards(given.guards, names)
        now = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "recipes": found}
        told["guards"] = now | {"recipes": told.get("guards", {}).get("recipes", {}) | found}
    elif given.cost:
        before = told.get("cost", {})
        new = {str(n): before.get(str(n), {}) | cost(n, names) for n in given.size or SIZES}
        told["cost"] = dict(sorted((before | new).items(), key=lambda pair: int(pair[0])))
    else:
        new = figures(given.set or SETS, names, given.neuromem)
        known = told.get("recipes", {}) if given.recipe else {}
        told |= new | {"recipes": known | new["recipes"]}
        told["date"] = datetime.now(UTC).strftime("%Y-%m-%d")
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    print(text)
    if given.write:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
