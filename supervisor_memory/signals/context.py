"""What the place of a record in its conversation says about it. Pure functions of arrays.

"Yes, to Lisbon!" answers a question, and holds none of its words. Measured on turns of long conversations,
this is worth more than any model of the single turn: docs/ranking.md has the table.

Source: windows and whole documents as evidence for a passage, Callan, "Passage-level evidence in document
retrieval" (1994); smoothing by neighbours, Murdock and Croft, "A translation model for sentence retrieval"
(2005).
"""

import numpy as np
import numpy.typing as npt

from supervisor_memory.signals.index import Index
from supervisor_memory.signals.lexical import Floats, Rows

__all__ = [
    "answers",
    "episode_lengths",
    "in_episodes",
    "neighbours",
    "taken",
    "with_previous",
    "with_previous_lengths",
]


def with_previous(index: Index, rows: Rows) -> Rows:
    """The rows that hold a term in themselves or in what was said just before; twice where in both."""
    after = index.after[rows]
    return np.concatenate([rows, after[after >= 0]])


def with_previous_lengths(index: Index) -> Floats:
    """The length of each row together with what was said just before, in terms."""
    lengths = index.lengths[: index.size]
    before = index.before[: index.size]
    found: Floats = lengths + np.where(before >= 0, lengths[before], np.float32(0))
    return found


def in_episodes(index: Index, rows: Rows) -> Rows:
    """The episodes that hold a term, as often as they do."""
    episodes = index.episodes[rows]
    found: Rows = episodes[episodes >= 0].astype(np.intp)
    return found


def episode_lengths(index: Index) -> Floats:
    """The length of each episode, in terms."""
    episodes = index.episodes[: index.size]
    is_said = episodes >= 0
    lengths = np.bincount(episodes[is_said], weights=index.lengths[: index.size][is_said])
    found: Floats = lengths.astype(np.float32)
    return found


def neighbours(index: Index, scores: Floats) -> Floats:
    """The better score of what was said just before and just after; 0 where nothing was."""
    found: Floats = np.maximum(
        taken(scores, index.before[: index.size]), taken(scores, index.after[: index.size])
    )
    return found


def answers(index: Index, scores: Floats) -> Floats:
    """The score of what was said just before where that is a question: this may be its answer."""
    before = index.before[: index.size]
    is_answer = (before >= 0) & index.asks[before]
    found: Floats = np.where(is_answer, scores[before], np.float32(0))
    return found


def taken(scores: Floats, rows: npt.NDArray[np.int32]) -> Floats:
    """The score of each of these rows; 0 for one that is none."""
    if not len(scores):
        return np.zeros(len(rows), dtype=np.float32)
    found: Floats = np.where(rows >= 0, scores[rows], np.float32(0))
    return found
