"""What the vectors of session messages cost: bytes a message, and how many a second the background embeds.

The peer is the bare embedder, given the same texts by itself: the rest is reading the messages and committing
them. All of it on one core, beside a program that writes 50 messages of 40 words a second: the target is that
as few wait at the end as in the middle.

Run: make bench        (or: python benchmarks/message_vectors.py --messages 500)
"""

import argparse
import logging
import os
import random
import tempfile
import time
from pathlib import Path

from supervisor_memory import Scope, Settings, SupervisorMemory

PROSE = (Path(__file__).parent / "quality" / "en.json").read_text("utf-8")
WORDS = [word for word in PROSE.split() if word.isalpha()]
SESSIONS = 20
LONG = 400
PACE = 50


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long messages are written")
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for words, count in ((40, options.messages), (LONG, max(1, options.messages // 5))):
        rate(words, count)
    pace(options.seconds)


def messages(words: int, count: int) -> list[str]:
    """Different texts of so many words, which people wrote."""
    chance = random.Random(words)
    return [" ".join(chance.choices(WORDS, k=words)) for _ in range(count)]


def opened(folder: str, model: str = "all-MiniLM-L6-v2", *, worker: bool) -> SupervisorMemory:
    in_time = {"search_timeout_ms": 60_000, "write_timeout_ms": 60_000}
    settings = Settings(backend="sqlite", path=Path(folder), queue_worker=worker, **in_time)
    return SupervisorMemory(settings.model_copy(update={"embedding_model": model}))


def bytes_of(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def rate(words: int, count: int) -> None:
    """Print the bytes of a message and the rate of embedding, with the bare embedder's beside it."""
    texts = messages(words, count)
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, "none", worker=False) as memory:
            empty = bytes_of(folder)
            for number, text in enumerate(texts):
                scope = Scope("ada", session_id=f"s{number % SESSIONS}")
                memory.remember([("assistant", text)], scope)
        before = bytes_of(folder)
        with opened(folder, worker=False) as memory:
            assert memory.embedder is not None
            memory.embedder.embed_documents(texts[:8])  # which loads the model
            began = time.process_time()
            assert memory.flush(seconds=3_600)
            ours = count / (time.process_time() - began)
            began = time.process_time()
            memory.embedder.embed_documents(texts)
            bare = count / (time.process_time() - began)
        after = bytes_of(folder)
    print(
        f"messages of {words} words: {(before - empty) / count:,.0f} bytes each without a vector, "
        f"{(after - empty) / count:,.0f} with; in a second of CPU {ours:,.0f} are embedded, "
        f"{bare:,.0f} by the bare embedder ({ours / bare:.2f} x)"
    )


def pace(seconds: float) -> None:
    """Print how many messages wait for a vector while 50 a second are written."""
    texts = messages(40, int(PACE * seconds))
    waiting: list[int] = []
    with tempfile.TemporaryDirectory() as folder, opened(folder, worker=True) as memory:
        memory.search("which loads the model", user_id="ada")
        began, used = time.perf_counter(), time.process_time()
        for number, text in enumerate(texts):
            time.sleep(max(0.0, began + number / PACE - time.perf_counter()))
            scope = Scope(f"user-{number % SESSIONS}", session_id="s")
            memory.remember([("assistant", text)], scope)
            if number % PACE == PACE - 1:
                waiting.append(memory.upkeep.messages_waiting() or 0)
        share = (time.process_time() - used) / (time.perf_counter() - began)
        written = len(texts) / (time.perf_counter() - began)
        began = time.perf_counter()
        assert memory.flush(seconds=3_600)
        late = time.perf_counter() - began
    half = len(waiting) // 2
    print(
        f"{written:.0f} messages of 40 words a second from {SESSIONS} users, with {share:.0%} of a core: "
        f"at most {max(waiting[:half])} wait in the first half, {max(waiting[half:])} in the second; the "
        f"last has its vector {late:.2f} s later (target: keeps up with {PACE} a second)"
    )


if __name__ == "__main__":
    main()
