"""Replay lines and stories with a chat model: what is kept, what it costs.

Run: python benchmarks/with_a_model.py MODEL FILE [FILE ...] [--price-in 0.15] [--price-out 0.60] [--rules]

MODEL is any name that LangChain's init_chat_model knows, such as openai:gpt-5-mini. FILE has JSON lines of
    {"id", "lang", "keep", "text", "expected"}      a message; kept: a record has .6 of the expected words
    {"id", "lang", "story", "expected": {"current", "stale"}}  messages, a day apart, and regular expressions:
                                                    right: all that is current is told, nothing stale is
Each goes by `memory.add` for a user of its own. Prices are dollars a million tokens. `--rules` asks no model.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from supervisor_memory import Settings, SupervisorMemory

DAY = 86_400.0
ENOUGH = 0.6
_WORD = re.compile(r"[a-z0-9]{3,}|[\u4e00-\u9fff]{2}")


class Counting(BaseCallbackHandler):
    """Counts a model's calls and, where it tells them, tokens."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.counts["calls"] += 1
        for each in (one for some in response.generations for one in some):
            usage = getattr(getattr(each, "message", None), "usage_metadata", None) or {}
            self.counts.update({name: usage.get(name, 0) for name in ("input_tokens", "output_tokens")})


def replay(rows: Iterable[Mapping[str, Any]], model: Any) -> Mapping[str, Sequence[float]]:
    """The figures of each kind of row: how many were kept, stored or right, and how long each took."""
    found: dict[str, list[float]] = {}
    began = time.time() - 100 * DAY
    with SupervisorMemory(Settings(backend="in_memory"), llm=model) as memory:
        for row in rows:
            user, steps = str(row["id"]), row.get("story") or [row["text"]]
            for day, text in enumerate(steps):
                started = time.perf_counter()
                memory.add(text, user_id=user, session_id=f"{user}-{day}", created_at=began + day * DAY)
                found.setdefault("seconds", []).append(time.perf_counter() - started)
            told = [record.content for record in memory.get_all(user_id=user)]
            name, value = judged(row, told)
            found.setdefault(f"{row.get('lang', '')} {name}".strip(), []).append(value)
    return found


def judged(row: Mapping[str, Any], told: Sequence[str]) -> tuple[str, float]:
    """The figure's name and value for what is told of a row in the end."""
    if "story" in row:
        current, stale = row["expected"]["current"], row["expected"]["stale"]
        has_all = all(any(re.search(each, text) for text in told) for each in current)
        old = (t for t in told if any(re.search(s, t) for s in stale))
        return "right", float(has_all and all(any(re.search(c, t) for c in current) for t in old))
    if not row["keep"]:
        return "stored", float(bool(told))
    wanted = set(_WORD.findall(row["expected"].lower()))
    words = set(_WORD.findall(" ".join(told).lower()))
    return "kept", float(bool(told) and len(wanted & words) >= ENOUGH * len(wanted))


def main() -> None:
    """Replay the files and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--price-in", type=float, default=0.0)
    parser.add_argument("--price-out", type=float, default=0.0)
    parser.add_argument("--rules", action="store_true")
    asked = parser.parse_args()
    counting = Counting()
    model = None
    if not asked.rules:
        from langchain.chat_models import init_chat_model

        model = init_chat_model(asked.model, callbacks=[counting])
    rows = [
        json.loads(line) for file in asked.files for line in file.read_text(encoding="utf-8").splitlines()
    ]
    for name, values in sorted(replay(rows, model).items()):
        print(f"{name:12s} {sum(values) / len(values):.3f} of {len(values)}")
    used = counting.counts
    cost = (used["input_tokens"] * asked.price_in + used["output_tokens"] * asked.price_out) / 1e6
    print(
        f"calls {used['calls']}, tokens in {used['input_tokens']}, out {used['output_tokens']}, ${cost:.4f}"
    )


if __name__ == "__main__":
    main()
