"""What a write or an added sentence costs of CPU beside the embedding: judging, finding rivals, deciding.

Run: python benchmarks/decision_cost.py [--lines 300]

The pairs and stories of benchmarks/kept are written, by `write` and by `add` of one message, for one user a
language in a store in memory. All texts are embedded before, so that an embedder costs nothing while it is
measured. Milliseconds of CPU of the process, once everything has been used once.
"""

import argparse
import json
import logging
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kept import EMBEDDERS

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.open import open_embedder
from supervisor_memory.understand.statements import sentences

KEPT = Path(__file__).parent / "kept"
WARM = 40
"""Texts before the clock counts: words and weights are read, patterns compiled."""


class Known:
    """An embedder that has the vectors of its texts at hand."""

    def __init__(self, embedder: Any, known: Iterable[str]) -> None:
        self._embedder = embedder
        self._known = {text: embedder.embed_documents([text])[0] for text in known}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, asked: Iterable[str]) -> list[Any]:
        return [self._known[each] if each in self._known else self._new(each) for each in asked]

    def _new(self, text: str) -> Any:
        return self._known.setdefault(text, self._embedder.embed_documents([text])[0])


def texts(lang: str) -> list[str]:
    """The texts of the pairs and stories in a language, each once."""
    rows = [json.loads(line) for file in sorted(KEPT.glob("*.jsonl")) for line in file.open(encoding="utf-8")]
    told = [row.get("story") or [row["a"], row["b"]] for row in rows if row["lang"] == lang]
    return list(dict.fromkeys(text for some in told for text in some))


def cost(lang: str, way: str, lines: int) -> list[float]:
    """Milliseconds of CPU of each text, in order."""
    settings = Settings(backend="in_memory", embedding_model=EMBEDDERS[lang])
    said = texts(lang)[: lines + WARM]
    pieces = {piece for text in said for piece in (text, *sentences(text))}
    embedder = Known(open_embedder(EMBEDDERS[lang], dimension=None), pieces)
    found = []
    with SupervisorMemory(settings=settings, embedder=embedder) as memory:
        for text in said:
            begun = time.process_time()
            if way == "write":
                memory.write(text, user_id=lang)
            else:
                memory.add([{"role": "user", "content": text}], user_id=lang, session_id=lang)
            found.append(1_000 * (time.process_time() - begun))
    return found[WARM:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, default=300)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for lang in EMBEDDERS:
        for way in ("write", "add"):
            found = sorted(cost(lang, way, options.lines))
            middle, late = statistics.median(found), found[int(0.95 * len(found))]
            print(f"{lang} {way}: median {middle:.2f} ms, p95 {late:.2f} ms of CPU, {len(found)} texts")


if __name__ == "__main__":
    main()
