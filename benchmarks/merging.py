"""What becomes of a text that is written: is the same fact merged, and are look-alikes kept apart?

Run: python benchmarks/merging.py [FILE …] [--misses] [--embedder NAME] [--decisions FILE] [--json FILE]

A file holds write attempts, one JSON object a line, with what should become of each (`merging/lines.py`).
Each stream is a user of its own; its lines are written in order by `memory.write`, with no language model.
Without a file, our own sets in `benchmarks/merging` are read. English is embedded by all-MiniLM-L6-v2 and
Chinese by multilingual-e5-small, unless --embedder names one for all ("none" for words alone).
"""

import argparse
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from kept import bar
from merging.lines import Decision, Line, read_lines, slots_of
from merging.replay import contradictions, replay
from merging.scores import Scores, score

from supervisor_memory import SupervisorMemory
from supervisor_memory.embedding.open import E5, MINILM
from supervisor_memory.settings import Settings

OWN = Path(__file__).parent / "merging"
READERS = {"en": MINILM, "zh": E5}
_MAIN = (
    "merged",
    "false merges, look-alikes",
    "false merges",
    "conflicts resolved",
    "appended",
    "misdirected",
)


def decided(lines: Sequence[Line], embedder: str | None) -> tuple[list[Decision], dict[str, float]]:
    """The decisions on all lines, and milliseconds a write by language, embedding included."""
    decisions, milliseconds = [], {}
    for language in dict.fromkeys(line.language for line in lines):
        own = [line for line in lines if line.language == language]
        with SupervisorMemory(Settings(embedding_model=embedder or READERS[language])) as memory:
            begun = time.perf_counter()
            decisions += replay(own, memory)
            milliseconds[language] = 1000 * (time.perf_counter() - begun) / len(own)
    return decisions, milliseconds


def table(scores: Scores, language: str) -> str:
    names = [*_MAIN, *sorted(name for name in scores.rates if name not in _MAIN)]
    rows = [(name, scores.rates[name]) for name in names if name in scores.rates]
    told = (f"  {name:44} {rate}  {bar(name, language, rate.hits, rate.total)}" for name, rate in rows)
    return "\n".join(map(str.rstrip, told))


def misses(scores: Scores, lines: Sequence[Line]) -> str:
    texts = {line.id: line.content for line in lines}
    told = []
    for wrong in scores.wrong:
        line, decision = wrong.line, wrong.decision
        told.append(f"  {line.id} {line.kind} {line.relation} of {line.of} ({line.why}): {line.content}")
        if line.of:
            told.append(f"      of         {texts[line.of]}")
        told.append(f"      {decision.decision:10} {decision.reason} {texts.get(decision.into or '', '')}")
    return "\n".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--misses", action="store_true", help="print each line that was decided wrongly")
    parser.add_argument("--embedder", help="one embedder for all languages")
    parser.add_argument("--decisions", type=Path, help="write the decisions here, one JSON object a line")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    figures, made = {}, []
    for path in options.files or sorted(OWN.glob("*.jsonl")):
        lines = read_lines(path)
        decisions, milliseconds = decided(lines, options.embedder)
        made += decisions
        left = contradictions(lines, decisions, slots_of(lines))
        for language, scores in score(lines, decisions).items():
            of_language = [line.id for line in lines if line.language == language]
            open_pairs = [pair for pair in left if pair[1] in of_language]
            print(
                f"{path.name}, {language}: {len(of_language)} lines, {milliseconds[language]:.1f} ms a write"
            )
            print(table(scores, language))
            print(f"  {'contradictions left':44} {len(open_pairs)}")
            if options.misses:
                print(misses(scores, lines))
            rates = {name: [rate.hits, rate.total] for name, rate in scores.rates.items()}
            figures[f"{path.name}, {language}"] = {**rates, "contradictions": len(open_pairs)}
    if options.decisions:
        rows = ({"id": each.id, "decision": each.decision, "into": each.into} for each in made)
        options.decisions.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
