"""What it costs a graph to put a tool's result into the queue: the time of one call, and of its parts.

The target is less than 1 ms for half of the calls. The read in the background is not part of it: nobody
waits for that, so the worker is off here.
"""

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.upkeep.queue.event import Event
from supervisor_memory.upkeep.queue.tables import QueueFile

RESULT = "region,revenue\n" + "\n".join(f"north {n},{n * 31}" for n in range(400))  # cut to 4 KB
SQL = "SELECT region, SUM(amount) AS revenue FROM sales WHERE year = 2026 GROUP BY region"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000)
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    for backend in ("in_memory", "sqlite"):
        with tempfile.TemporaryDirectory() as folder:
            measure(backend, Path(folder), options.events)


def measure(backend: Literal["in_memory", "sqlite"], place: Path, count: int) -> None:
    """Print what one result costs, and what of that the file does."""
    scope = Scope("ada", "analyst", "s1")
    settings = Settings(backend=backend, path=place / "memory", embedding_model="none", queue_worker=False)
    with SupervisorMemory(settings) as memory:
        queue = memory.queue
        taken = measured(lambda n: queue.observe("run_sql", {"sql": f"{SQL} -- {n}"}, RESULT, scope), count)
        queue.forget("ada", at=time.time())  # so that closing reads nothing
    file = QueueFile(None if backend == "in_memory" else place / "bare")
    kept = measured(lambda n: file.add([Event(scope, f"{n} {RESULT[:4_000]}")]), count)
    file.close()
    print(f"{backend:10} one result: {taken}; of that the file: {kept} (target: p50 under 1 ms)")


def measured(call: Callable[[int], object], count: int) -> str:
    """The times of calls, as one line."""
    times = []
    for number in range(count + 20):
        began = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - began)
    milliseconds = sorted(1000 * seconds for seconds in times[20:])  # the first ones fill caches
    late = milliseconds[int(len(milliseconds) * 0.99)]
    return f"p50 {statistics.median(milliseconds):.3f} ms, p99 {late:.3f} ms"


if __name__ == "__main__":
    main()
