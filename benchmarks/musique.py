"""Are passages found that answer a question only together? MuSiQue, by the default and beside others.

Run: python benchmarks/musique.py FILE [--questions N]

FILE is a list of questions, each with its `paragraphs` (`title`, `paragraph_text`, `is_supporting`), as
MuSiQue publishes them; HippoRAG's repository has a hundred in data/musique_train.json on its branch `legacy`.
The passages of all questions are one user's memory, stored as they are, each once. A question is searched for
with no threshold; R@5 is the share of its supporting passages among the first five, all@5 the questions with
all of them there. No language model takes part; the embedder is all-MiniLM-L6-v2.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

from quality.corpus import Corpus, Item, Question
from quality.systems import System, ours, systems
from quality.vectors import Remembered
from relations import WITHOUT, gained

from supervisor_memory import DEFAULT
from supervisor_memory.embedding.open import MINILM, open_embedder
from supervisor_memory.recipes.open import open_recipe

FIRST = 5


def read(path: Path, most: int | None) -> Corpus:
    """The passages of a file, and its first questions. Raises KeyError: an entry lacks what it must have."""
    ids: dict[str, str] = {}
    questions = []
    for told in json.loads(path.read_text("utf-8"))[:most]:
        texts = {f"{p['title']}: {p['paragraph_text']}": p["is_supporting"] for p in told["paragraphs"]}
        for text in texts:
            ids.setdefault(text, f"p{len(ids)}")
        gold = tuple(ids[text] for text, is_gold in texts.items() if is_gold)
        questions.append(Question(told["question"], told["id"].split("__")[0], gold))
    return Corpus("musique", tuple(Item(id_, text) for text, id_ in ids.items()), tuple(questions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int)
    options = parser.parse_args()
    corpus = read(options.file, options.questions)
    opened = open_embedder(MINILM, dimension=None)
    assert opened is not None
    embedder = Remembered(opened)
    every: Mapping[str, System] = {
        "default": ours(embedder, backend="in_memory", recipe=DEFAULT),
        "without neighbours": ours(embedder, backend="in_memory", recipe=WITHOUT),
        "hipporag": ours(embedder, backend="in_memory", recipe=open_recipe("hipporag")),
        "BM25": systems(embedder, backend="in_memory")["BM25"],
    }
    print(f"{len(corpus.questions)} questions, {len(corpus.items):,} passages")
    first: list[float] = []
    for name, system in every.items():
        shares = []
        with system(corpus) as search:
            for question in corpus.questions:
                found = set(search(question.text, FIRST)[:FIRST])
                shares.append(len(found & set(question.evidence)) / len(question.evidence))
        first = first or shares
        more, half = gained(first, shares)
        whole = mean(share == 1.0 for share in shares)
        beside = "" if shares is first else f"  to the default {more:+.3f} ± {half:.3f}"
        print(f"{name:20} R@5 {mean(shares):.3f}  all@5 {whole:.2f}{beside}", flush=True)


if __name__ == "__main__":
    main()
