"""Whether memory helps a graph: its own threads replayed, bare and with memory, side by side.

docs/evaluating.md tells how to ask and how to read the answer. Nothing here sends a text anywhere.
"""

from supervisor_memory.evaluation.graph import load_factory
from supervisor_memory.evaluation.judges import Judge, ModelJudge, SqlJudge, by_rules
from supervisor_memory.evaluation.replay import Arm, Prices, Replays, evaluate
from supervisor_memory.evaluation.report import Report, reported
from supervisor_memory.evaluation.threads import Asked, Thread, read_threads, threads_of

__all__ = [
    "Arm",
    "Asked",
    "Judge",
    "ModelJudge",
    "Prices",
    "Replays",
    "Report",
    "SqlJudge",
    "Thread",
    "by_rules",
    "evaluate",
    "load_factory",
    "read_threads",
    "reported",
    "threads_of",
]
