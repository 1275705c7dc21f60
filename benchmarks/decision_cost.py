"""What a write or an added sentence costs of CPU beside the embedding: judging, finding rivals, deciding.

Run: python benchmarks/decision_cost.py [--lines 300] [--before CHECKOUT]

The pairs and stories of benchmarks/kept are written, by `write` and by `add` of one message, for one user a
language in a store in memory. Milliseconds of CPU of the process, without those of the embedder, once
everything has been used once; with what is done in the background meanwhile, the vectors of the messages that
`add` keeps. With --before the package of another checkout is measured in turn, with the same texts. It may
keep less of them, so those of which both keep something are told beside.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "kept"
EMBEDDERS = {"en": "all-MiniLM-L6-v2", "zh": "multilingual-e5-small"}
WARM = 40
"""Texts before the clock counts: words and weights are read, patterns compiled."""
TURNS = 2
"""How often each checkout is measured; of each text the least cost counts."""


class Known:
    """An embedder that tells what it has spent."""

    def __init__(self, embedder: Any, known: Sequence[str]) -> None:
        self._embedder, self.spent = embedder, 0.0
        self._known = dict(zip(known, embedder.embed_documents(known), strict=True))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, asked: Iterable[str]) -> list[Any]:
        begun = time.process_time()
        found = [self._known[each] if each in self._known else self._new(each) for each in asked]
        self.spent += time.process_time() - begun
        return found

    def _new(self, text: str) -> Any:
        return self._known.setdefault(text, self._embedder.embed_documents([text])[0])


def texts(lang: str) -> list[str]:
    """The texts of the pairs and stories in a language, each once."""
    rows = [json.loads(line) for file in sorted(KEPT.glob("*.jsonl")) for line in file.open(encoding="utf-8")]
    told = [row.get("story") or [row["a"], row["b"]] for row in rows if row["lang"] == lang]
    return list(dict.fromkeys(text for some in told for text in some))


def cost(lang: str, way: str, lines: int) -> list[tuple[float, bool]]:
    """Milliseconds of CPU of each text, in order, and whether something of it was decided."""
    from supervisor_memory import Settings, SupervisorMemory
    from supervisor_memory.embedding.open import open_embedder

    logging.disable(logging.WARNING)
    settings = Settings(backend="in_memory", embedding_model=EMBEDDERS[lang])
    said = texts(lang)[: lines + WARM]
    embedder = Known(open_embedder(EMBEDDERS[lang], dimension=None), said)
    found = []
    with SupervisorMemory(settings=settings, embedder=embedder) as memory:
        for text in said:
            begun = time.process_time() - embedder.spent
            if way == "write":
                done = [memory.write(text, user_id=lang)]
            else:
                done = memory.add([{"role": "user", "content": text}], user_id=lang, session_id=lang)
            spent = 1_000 * (time.process_time() - embedder.spent - begun)
            found.append((spent, any(each.id for each in done)))
    return found[WARM:]


def measured(checkout: Path, lang: str, way: str, lines: int) -> list[tuple[float, bool]]:
    """The costs in a process of its own, with the package of a checkout."""
    run = [sys.executable, __file__, "--lines", str(lines), "--only", lang, way]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    told = subprocess.run(run, env=environment, check=True, capture_output=True, text=True)
    return [(spent, is_kept) for spent, is_kept in json.loads(told.stdout)]


def least(runs: Sequence[Sequence[tuple[float, bool]]]) -> list[tuple[float, bool]]:
    """Of each text the least of several runs."""
    return [min(each) for each in zip(*runs, strict=True)]


def told(found: Sequence[float]) -> str:
    late = sorted(found)[int(0.95 * len(found))]
    return f"median {statistics.median(found):.2f} ms, p95 {late:.2f} ms of CPU, {len(found)} texts"


def compared(now: Sequence[tuple[float, bool]], before: Sequence[tuple[float, bool]]) -> Iterator[str]:
    """What another checkout takes, of all texts and of those of which both keep something."""
    of_both = [
        (mine, theirs) for (mine, kept), (theirs, too) in zip(now, before, strict=True) if kept and too
    ]
    of_all = [(mine, theirs) for (mine, _), (theirs, _) in zip(now, before, strict=True)]
    for what, pairs in (("", of_all), ("of what both keep, ", of_both)):
        mine, theirs = ([each[n] for each in pairs] for n in range(2))
        ratio = statistics.median(mine) / statistics.median(theirs)
        yield f"{what}before: {told(theirs)}; now: {told(mine)}; {ratio:.2f} times as much"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--before", type=Path, help="another checkout, to be measured in turn")
    parser.add_argument("--only", nargs=2, metavar=("LANGUAGE", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(cost(*options.only, options.lines)))
        return
    here = Path(__file__).parent.parent
    for lang in EMBEDDERS:
        for way in ("write", "add"):
            checkouts = [here] if options.before is None else [options.before.resolve(), here]
            runs = [[measured(each, lang, way, options.lines) for each in checkouts] for _ in range(TURNS)]
            *before, now = [least(some) for some in zip(*runs, strict=True)]
            print(f"{lang} {way}: {told([spent for spent, _ in now])}")
            for line in (line for each in before for line in compared(now, each)):
                print(f"    {line}")


if __name__ == "__main__":
    main()
