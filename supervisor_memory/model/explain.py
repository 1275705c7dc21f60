"""Explain in words why a record was returned or not: the parts of its score, the reason, a table.

It takes plain values, so that hits can print themselves; docs/ranking.md shows how to read the table.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "kept": "handed out",
        "standing": "handed out whatever the question: a preference that stands (MEMORY_STANDING_NOTES)",
        "said": "handed out as an excerpt of what was said (MEMORY_RECALL_SAID)",
        "digest": "handed out as the digest of a session that the first words of a thread go on with",
        "guideline": "handed out because it is about a tool that the reader calls (MEMORY_EXPERIENCE)",
        "joined": "handed out because a hit leads to it: both name the same thing",
        "added": "handed out because an operator of the recipe added it, without a search",
        "below-threshold": "not relevant enough: under the threshold (MEMORY_MIN_SCORE)",
        "no-answer": "it, or all that was found, has too little of what is asked to answer it",
        "not-for-you": "others said it, and an agent is told the user's words and its own",
        "after-knee": "the match falls off sharply before it (MEMORY_KNEE)",
        "over-limit": "relevant, but beyond the number that is handed out (MEMORY_TOP_K, MEMORY_MAX_NOTES)",
        "over-budget": "relevant, but it does not fit into the note (MEMORY_MAX_CONTEXT_TOKENS)",
        "already-said": "the reader sees it anyway",
        "untold": "what it says was replaced, taken back, deleted or refused, or waits for review",
        "left-out": "left out by an operator of the recipe",
    }
)
"""The outcomes of a candidate: a code for programs and logs → words for people."""

_NAMES = {"fused": "match", "sim": "meaning", "coverage": "words", "decay": "recency"}
_WEIGHED = ("fused", "decay", "source", "importance", "reads")
_EVIDENCE = ("relevance", "sim", "coverage", "named")
_RAW = frozenset({"cosine", "bm25", "match", "standing"})  # on a scale of their own, or shown as the reason
_STRONGEST = 3  # of the other signals
_WIDTH = 60
_FORMULA = (
    "score: the mean of match, recency, source, … by their weights (MEMORY_WEIGHT_*); "
    "the threshold reads relevance alone."
)


class Row(NamedTuple):
    """A candidate of a search. `rank` is None if it was dropped; `reason` is a code of `REASONS`."""

    rank: int | None
    score: float
    parts: Mapping[str, float]
    reason: str
    text: str


def why(parts: Mapping[str, float], names: Sequence[str] = ()) -> str:
    """Say in words why a record was found, from the `parts` of its `Hit`.

    Args:
        names: What joins it to another hit, step by step: the names of `Hit.path`.

    Source: docs/cli.md explains each word.
    """
    if "relevance" not in parts:  # nothing was asked
        return "pinned" if "pinned" in parts else "recent"
    signals = [f"meaning {parts['sim']:.2f}"] if "sim" in parts else []
    signals.append(f"words {parts.get('coverage', 0.0):.2f}")
    if "digest" in parts:
        about = f"is about what is named ({', '.join(signals)})" if "coverage" in parts else "was the latest"
        return f"a digest of the session that {about}"
    if "named" in parts:
        signals.append("defines a word of the question")
    reasons = ["always recalled"] if parts.get("standing") else []
    if "walk" in parts:
        through = " → ".join(filter(None, names))
        reasons.append(f"joined to a hit through {through}" if through else "joined to a hit")
    if "fused" in parts:
        reasons.append(f"match {parts['fused']:.2f}")
    reasons.append(f"relevance {parts.get('relevance', 0.0):.2f} ({', '.join(signals)})")
    reasons.append(f"recency {parts.get('decay', 0.0):.2f}")
    reasons.append(f"source {parts.get('source', 0.0):.2f}")
    return ", ".join(reasons)


def table(rows: Sequence[Row]) -> str:
    """A table of candidates for people, a line each, and a legend."""
    named = {name for row in rows for name in row.parts}
    columns = [name for name in (*_WEIGHED, *_EVIDENCE) if name in named]
    also = ["also"] if named - {*columns, *_RAW} else []
    head = ("#", "score", *(_NAMES.get(name, name) for name in columns), *also, "reason", "record")
    lines = [head, *(_line(row, columns, also=bool(also)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = 2 + len(columns)
    shown = ("  ".join(_aligned(line, widths, numbers)).rstrip() for line in lines)
    legend = (
        f"{reason}: {REASONS.get(reason, 'as an operator of the recipe says')}."
        for reason in dict.fromkeys(row.reason for row in rows)
    )
    return "\n".join((*shown, "", _FORMULA, *legend))


def _line(row: Row, columns: Sequence[str], *, also: bool) -> tuple[str, ...]:
    rank = "–" if row.rank is None else str(row.rank)
    values = (f"{row.parts[name]:.2f}" if name in row.parts else "·" for name in columns)
    others = [_others(row.parts, columns)] if also else []
    text = row.text if len(row.text) <= _WIDTH else f"{row.text[: _WIDTH - 1]}…"
    return (rank, f"{row.score:.2f}", *values, *others, row.reason, repr(text)[1:-1])


def _others(parts: Mapping[str, float], columns: Sequence[str]) -> str:
    """The strongest signals without a column of their own."""
    left = [(name, value) for name, value in parts.items() if value and name not in {*columns, *_RAW}]
    strongest = sorted(left, key=lambda part: -part[1])[:_STRONGEST]
    return ", ".join(f"{name} {value:.2f}" for name, value in strongest) or "·"


def _aligned(line: Sequence[str], widths: Sequence[int], numbers: int) -> Iterator[str]:
    """Pad cells to the widths: numbers to the right, words to the left, the last column not at all."""
    for place, (cell, width) in enumerate(zip(line[:-1], widths, strict=False)):
        yield cell.rjust(width) if place < numbers else cell.ljust(width)
    yield line[-1]


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 note", "2,000 notes"; `many` is the plural where an s does not make it."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
