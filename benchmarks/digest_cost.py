"""What the digest of a session costs, and the first turn of a thread. CPU time of this process, no model.

Run: python benchmarks/digest_cost.py
The sessions repeat an ordinary exchange, half of it in Chinese. The median of many runs is told, without the
first, in which patterns are compiled.
"""

import statistics
import time
from collections.abc import Callable
from itertools import cycle, islice

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.understand.digest import Said, digest

SAID = (
    "The nightly export of the parts catalogue fails in depot {n}. Can you find out why?",
    "It stops at row {n}: a supplier name has a tab in it. The other {n} rows are fine.",
    "Quote the fields of depot {n} then.",
    "I quoted all text fields and started the export again; the dealer import {n} has not been tested yet.",
    "帮我分析一下{n}号仓库九月的退货率为什么上升。",
    "退货率从{n}%升到6.8%，主要来自童鞋类目。尺码表{n}还没核对。",
    "那先核对{n}号尺码表，从十一月开始用五分制。",
    "好的，{n}号先核对新旧尺码表，然后再看供应商华瑞的批次。",
)


def session(messages: int, *, first: int = 0) -> list[Said]:
    texts = islice(cycle(SAID), messages)
    return [Said(str(n), text.format(n=first + n), n % 2 == 0) for n, text in enumerate(texts)]


def milliseconds(function: Callable[[int], object], *, runs: int) -> float:
    times = []
    for run in range(runs + 1):
        began = time.process_time()
        function(run)
        times.append(1_000 * (time.process_time() - began))
    return statistics.median(times[1:])


def main() -> None:
    for messages in (10, 50, 200):
        sessions = [session(messages, first=1_000 * run) for run in range(22)]
        cost = milliseconds(lambda run: digest(sessions[run]), runs=20)  # noqa: B023
        print(f"a digest of {messages} messages: {cost:.1f} ms CPU")
    settings = Settings(embedding_model="none", queue_worker=False)
    clock = FixedClock()
    with SupervisorMemory(settings, clock=clock) as memory:
        for n in range(20):
            roles = cycle(("user", "assistant"))
            said = [(next(roles), each.text) for each in session(20, first=100 * n)]
            memory.remember(said, Scope("ada", session_id=f"s{n}"))
        for text in ("Where were we?", "Which depot has most rows?"):
            cost = milliseconds(
                lambda run: memory.recall([("user", text)], Scope("ada", session_id=f"n{run}")),  # noqa: B023
                runs=20,
            )
            print(f"a first turn {text!r}: {cost:.1f} ms CPU, without a digest made before")
        clock.forward(days=1)
        memory.flush()
        cost = milliseconds(
            lambda run: memory.recall([("user", "Where were we?")], Scope("ada", session_id=f"m{run}")),
            runs=20,
        )
        print(f"a first turn 'Where were we?': {cost:.1f} ms CPU, once they were made")


if __name__ == "__main__":
    main()
