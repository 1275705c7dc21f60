"""How right the state is that a user's words leave: what is kept, what changed, what is one and what is two.

Run: python benchmarks/kept.py [--json FILE]         the stories and pairs of benchmarks/kept
     python benchmarks/kept.py --only capture FILE   one part of files of one's own

A set is lines of JSON with `id`, `lang` ("en" or "zh"), `class`, and by its part:

    capture  text, keep, and expected, the part to be kept. Said in one turn by a user of its own. A line
             counts as kept where the records hold .6 of the expected words.
    stories  story, one to four turns a day apart, and expected: regular expressions of what is current and
             of what is stale. Right is a state that tells all that is current and nothing stale; the worst is
             one that tells the stale and not the current. Both ways in are tried: a turn, and a write.
    pairs    a, b, same. Two that say the same are to leave one record, in one of the two wordings or a like
             one; of two that differ none may be replaced or joined.

No model is asked. Figures are counts over lines, by language; the files were written by people who did not
know the rules, half of each to look like the other half.
"""

import argparse
import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.language.terms import terms

OWN = Path(__file__).parent / "kept"
EMBEDDERS = {"en": MINILM, "zh": E5}
DAY = 86_400.0
LEAST_WORDS = 0.6
LONGEST = 1.5
"""Times the longer text: a record that is longer holds both texts, not one wording of what they say."""

AT_LEAST = {
    "kept": {"en": 0.75, "zh": 0.72},
    "right by add": {"en": 0.75, "zh": 0.8},
    "one text": {"en": 0.4, "zh": 0.4},
    "merged": {"en": 0.8, "zh": 0.88},
    "conflicts resolved": {"en": 0.75, "zh": 0.75},
}
AT_MOST = {"stored": 0.07, "worst by add": 0.05, "false merges, look-alikes": 0.03}
"""The project's bars, as shares; of pairs that differ one error a language is allowed."""

Row: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = Mapping[str, bool]


def capture(memory: SupervisorMemory, row: Row) -> Figures:
    """Whether a line was kept, or stored though there is nothing to keep."""
    user = row["id"]
    memory.add([{"role": "user", "content": row["text"]}], user_id=user, session_id=user)
    held = _held(memory, user)
    if not row["keep"]:
        return {"stored": bool(held)}
    wanted = set(terms(row["expected"]))
    return {"kept": bool(held) and len(wanted & set(terms(" ".join(held)))) >= LEAST_WORDS * len(wanted)}


def stories(memory: SupervisorMemory, row: Row) -> Figures:
    """The state after the turns of a story, by each way in."""
    found: dict[str, bool] = {}
    begun = time.time() - 40 * DAY
    for way in ("add", "write"):
        user = f"{row['id']}-{way}"
        for day, text in enumerate(row["story"]):
            at = begun + day * DAY
            if way == "add":
                said = [{"role": "user", "content": text}]
                memory.add(said, user_id=user, session_id=f"{user}-{day}", created_at=at)
            else:
                memory.write(text, user_id=user, created_at=at)
        held = _held(memory, user)
        current = [re.compile(each) for each in row["expected"]["current"]]
        tells_all = all(any(map(each.search, held)) for each in current)
        old = [text for text in held if not any(each.search(text) for each in current)]
        tells_old = any(re.search(each, text) for each in row["expected"]["stale"] for text in old)
        found |= {
            f"right by {way}": tells_all and not tells_old,
            f"worst by {way}": tells_old and not tells_all,
        }
    return found


def pairs(memory: SupervisorMemory, row: Row) -> Figures:
    """Whether two texts became one record."""
    user = row["id"]
    memory.write(row["a"], user_id=user)
    memory.write(row["b"], user_id=user, created_at=time.time() + DAY)
    held = _held(memory, user)
    if not row["same"]:
        return {"replaced or joined": len(held) < 2}
    longest = LONGEST * max(len(row["a"]), len(row["b"]))
    return {"one text": len(held) == 1 and len(held[0]) < longest}


PARTS: Mapping[str, Callable[[SupervisorMemory, Row], Figures]] = {
    "capture": capture,
    "stories": stories,
    "pairs": pairs,
}


def bar(figure: str, language: str, count: int, of: int) -> str:
    """The bar of a figure and whether it is held: "bar .75: held"; "" where there is none."""
    if figure == "replaced or joined":
        return f"bar 1 of {of}: {'held' if count <= 1 else 'missed'}"
    if (least := AT_LEAST.get(figure, {}).get(language)) is not None:
        return f"bar {least:.2f}: {'held' if count >= least * of else 'missed'}"
    if (most := AT_MOST.get(figure)) is not None:
        return f"bar {most:.2f}: {'held' if count <= most * of else 'missed'}"
    return ""


def _held(memory: SupervisorMemory, user: str) -> list[str]:
    return [record.content for record in memory.get_all(user_id=user)]


def measured(part: str, path: Path) -> Iterator[Row]:
    """A row for each figure of a file: how many lines it holds for, of how many."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for language, embedder in EMBEDDERS.items():
        counts: dict[str, list[bool]] = defaultdict(list)
        with SupervisorMemory(Settings(backend="in_memory", embedding_model=embedder)) as memory:
            for row in rows:
                if row["lang"] == language:
                    for figure, holds in PARTS[part](memory, row).items():
                        counts[figure].append(holds)
        for figure, each in counts.items():
            yield {
                "set": path.stem,
                "language": language,
                "figure": figure,
                "count": sum(each),
                "of": len(each),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="sets of one part; without any, those of benchmarks/kept"
    )
    parser.add_argument("--only", choices=PARTS, help="the part; without it the first word of a file's name")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    found: list[Row] = []
    for path in options.files or sorted(OWN.glob("*.jsonl")):
        part = options.only or path.stem.partition("_")[0]
        if part not in PARTS:
            parser.error(f"{path}: no part is called {part!r}; choose one with --only: {', '.join(PARTS)}")
        for row in measured(part, path):
            found.append(row)
            share = row["count"] / row["of"]
            told = bar(row["figure"], row["language"], row["count"], row["of"])
            line = f"{row['set']:16} {row['language']} {row['figure']:20} {share:.3f} of {row['of']}  {told}"
            print(line.rstrip(), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
