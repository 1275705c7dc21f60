"""Whether the first words of a new thread bring the digest of an earlier session, where they should alone.

Run: python benchmarks/openings.py [--embedder none] [--wrong]

The texts are in benchmarks/openings/first_words.jsonl, by the author of the rules: each with its
language, its set, and whether it wants of earlier sessions or nothing. Each is asked of `memory.preview`
as the first words of a thread, behind three sessions a day apart (sessions.json). A row is right where a
digest is told if one is wanted, and none if not. docs/digests.md has the figures, and those of others'
cases.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.testing.clock import MONDAY

HERE = Path(__file__).parent / "openings"
EMBEDDERS = {"en": "all-MiniLM-L6-v2", "zh": "multilingual-e5-small"}
DAY, PATIENT = 86_400.0, 9_000


def right(rows: list[dict[str, Any]], sessions: list[Any], embedder: str) -> list[bool]:
    settings = Settings(backend="in_memory", embedding_model=embedder, search_timeout_ms=PATIENT)
    with SupervisorMemory(settings) as memory:
        for number, messages in enumerate(sessions):
            at = MONDAY + number * DAY
            memory.add(messages, user_id="ada", session_id=f"s{number}", created_at=at)
        memory.flush()
        asked = Scope("ada", session_id="new")
        told = [memory.preview(row["text"], asked).hits for row in rows]
    has_digest = [any(hit.reason == "digest" for hit in hits) for hits in told]
    return [has is (row["wants"] == "earlier") for has, row in zip(has_digest, rows, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", help="none: words alone")
    parser.add_argument("--wrong", action="store_true", help="the texts that are not right, too")
    given = parser.parse_args()
    sessions = json.loads((HERE / "sessions.json").read_text("utf-8"))
    lines = (HERE / "first_words.jsonl").read_text("utf-8").splitlines()
    every = [json.loads(line) for line in lines]
    for tongue, embedder in EMBEDDERS.items():
        rows = [row for row in every if row["lang"] == tongue]
        of_set = defaultdict[str, list[bool]](list)
        for row, is_right in zip(
            rows, right(rows, sessions[tongue], given.embedder or embedder), strict=True
        ):
            of_set[row["set"]].append(is_right)
            if given.wrong and not is_right:
                print(f"  {row['text']!r}: wants {row['wants']}")
        for name, found in of_set.items():
            print(f"{tongue}  {name:30} {sum(found):3} of {len(found)}")


if __name__ == "__main__":
    main()
