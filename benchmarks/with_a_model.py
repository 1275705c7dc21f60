"""Replay lines and stories with a chat model: what is kept, what it costs.

Run: python benchmarks/with_a_model.py MODEL FILE [FILE ...] [--price-in 0.15] [--price-out 0.60] [--rules]
                                            [--beside mem0 langmem] [--most 20] [--seconds 20]

MODEL is any name that LangChain's init_chat_model knows, such as openai:gpt-5-mini, or a file of llama.cpp,
such as model.gguf (pip install llama-cpp-python). FILE has JSON lines of
    {"id", "lang", "keep", "text", "expected"}      a message; kept: a record has .6 of the expected words
    {"id", "lang", "story", "expected": {"current", "stale"}}  messages, a day apart, and regular expressions:
                                                    right: all that is current is told, nothing stale is
Each goes by `memory.add` for a user of its own. Prices are dollars a million tokens. `--rules` asks no model.
`--beside` asks the model the same with the prompts of mem0 (pip install --no-deps mem0ai) and of langmem, as
they are installed: one call a message, with what the messages of that user have left so far.
"""

import argparse
import json
import re
import runpy
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult

from supervisor_memory import Settings, SupervisorMemory

DAY = 86_400.0
ENOUGH = 0.6
# llama.cpp crashes when two threads ask one model at once, as a digest and `add` do.
_ONE_AT_A_TIME = threading.Lock()
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


class Gguf(BaseChatModel):
    """A model in a file of llama.cpp, in this process, without chance."""

    llama: Any
    most: int = 400

    @property
    def _llm_type(self) -> str:
        return "gguf"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        roles = {"human": "user", "system": "system", "ai": "assistant"}
        said = [{"role": roles[each.type], "content": str(each.content)} for each in messages]
        with _ONE_AT_A_TIME:
            told = self.llama.create_chat_completion(
                messages=said, temperature=0, max_tokens=self.most, stop=stop
            )
        used = told["usage"]
        usage = UsageMetadata(
            input_tokens=used["prompt_tokens"],
            output_tokens=used["completion_tokens"],
            total_tokens=used["total_tokens"],
        )
        message = AIMessage(told["choices"][0]["message"]["content"] or "", usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def model_named(name: str) -> Any:
    """The model of a name or a .gguf file."""
    if name.endswith(".gguf"):
        from llama_cpp import Llama  # type: ignore[import-not-found]  # installed by hand

        return Gguf(llama=Llama(name, n_ctx=8_192, verbose=False))
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


Known: TypeAlias = Sequence[tuple[str, str]]
Reader: TypeAlias = Callable[[Any, str, float, Known], Known]
"""(model, message, when it was said, what is known) → what is known then; each as (id, text)."""


def by_mem0(model: Any, text: str, at: float, known: Known) -> Known:
    """One call with mem0's prompts for extraction, which only add."""
    spec = find_spec("mem0")
    if spec is None or spec.origin is None:
        raise SystemExit("mem0 is not installed; pip install --no-deps mem0ai")
    prompts = runpy.run_path(
        str(Path(spec.origin).parent / "configs" / "prompts.py")
    )  # without its dependencies
    asked = prompts["generate_additive_extraction_prompt"](
        existing_memories=[{"id": id_, "text": each} for id_, each in known],
        new_messages=[{"role": "user", "content": text}],
        timestamp=at,
    )
    said = str(model.invoke([("system", prompts["ADDITIVE_EXTRACTION_PROMPT"]), ("human", asked)]).text)
    block = re.search(r"\{.*\}", said, re.DOTALL)
    try:
        read = json.loads(block[0], strict=False) if block else {}
    except ValueError:
        read = {}
    items = read.get("memory", []) if isinstance(read, dict) else []
    new = [each["text"] for each in items if isinstance(each, dict) and isinstance(each.get("text"), str)]
    return [*known, *((str(n), each) for n, each in enumerate(new, start=len(known)))]


def by_langmem(model: Any, text: str, at: float, known: Known) -> Known:
    """One call of langmem's memory manager, as it comes; the model has to call tools."""
    from langmem import create_memory_manager  # type: ignore[import-untyped]  # it ships no types

    manager = create_memory_manager(model, enable_deletes=True)
    found = manager.invoke({"messages": [{"role": "user", "content": text}], "existing": list(known)})
    texts = ((each.id, getattr(each.content, "content", each.content)) for each in found)
    return [(id_, each) for id_, each in texts if isinstance(each, str)]


BESIDE: Mapping[str, Reader] = {"mem0": by_mem0, "langmem": by_langmem}


def replay_by(
    rows: Iterable[Mapping[str, Any]], model: Any, reader: Reader
) -> tuple[Mapping[str, Sequence[float]], Counter[str]]:
    """As `replay`, by another's prompts; and what the calls that failed raised."""
    found: dict[str, list[float]] = {}
    failed: Counter[str] = Counter()
    began = time.time() - 100 * DAY
    for row in rows:
        known: Known = []
        for day, text in enumerate(row.get("story") or [row["text"]]):
            try:
                known = reader(model, text, began + day * DAY, known)
            except Exception as error:  # noqa: BLE001 - a model and a library of strangers: all is told
                failed[f"{type(error).__name__}: {error}"[:100]] += 1
        name, value = judged(row, [each for _, each in known])
        found.setdefault(f"{row.get('lang', '')} {name}".strip(), []).append(value)
    return found, failed


def replay(
    rows: Iterable[Mapping[str, Any]], model: Any, *, seconds: float = 20
) -> Mapping[str, Sequence[float]]:
    """The figures of each kind of row: how many were kept, stored or right, and how long each took."""
    found: dict[str, list[float]] = {}
    began = time.time() - 100 * DAY
    settings = Settings(backend="in_memory", llm_timeout_ms=round(1000 * seconds))
    with SupervisorMemory(settings, llm=model) as memory:
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
    parser.add_argument(
        "--beside", nargs="*", choices=BESIDE, default=[], help="whose prompts to try as well"
    )
    parser.add_argument("--most", type=int, help="lines of the files; without it all")
    parser.add_argument("--seconds", type=float, default=20, help="the most time a call may take")
    asked = parser.parse_args()
    rows = [
        json.loads(line) for file in asked.files for line in file.read_text(encoding="utf-8").splitlines()
    ][: asked.most]
    model = None if asked.rules else model_named(asked.model)
    ways: dict[str, Callable[[Any], Mapping[str, Sequence[float]]]] = {
        "supervisor_memory": lambda model: replay(rows, model, seconds=asked.seconds)
    }
    failed: Counter[str] = Counter()

    def beside(model: Any, *, reader: Reader) -> Mapping[str, Sequence[float]]:
        figures, why = replay_by(rows, model, reader)
        failed.update(why)
        return figures

    for name in () if asked.rules else asked.beside:
        ways[name] = partial(beside, reader=BESIDE[name])
    for name, way in ways.items():
        counting = Counting()
        failed.clear()
        figures = way(None if model is None else model.model_copy(update={"callbacks": [counting]}))
        print(name)
        for figure, values in sorted(figures.items()):
            print(f"  {figure:12s} {sum(values) / len(values):.3f} of {len(values)}")
        used = counting.counts
        cost = (used["input_tokens"] * asked.price_in + used["output_tokens"] * asked.price_out) / 1e6
        told = f"tokens in {used['input_tokens']}, out {used['output_tokens']}, ${cost:.4f}"
        print(
            f"  calls {used['calls']}, {told}",
            *(f"\n  {n} times {why}" for why, n in failed.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
