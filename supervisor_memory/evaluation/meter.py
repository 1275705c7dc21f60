"""What a turn's model calls cost, by agent, and which tools they were offered."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from supervisor_memory.language.tokens import count_tokens

_IDS: Final = re.compile(r'(?<=<memory id=")[^"]*')
"""The random part of a note, which two runs do not share."""
MEMORY: Final = "(memory)"
"""Under this name goes what memory asks a model of its own."""


class Meter(BaseCallbackHandler):
    """Counts tokens in and out, calls and seconds of model calls, by the node they belong to.

    Tokens are those the provider tells, or an estimate of the text where it tells none.
    """

    raise_error = False
    run_inline = True

    def __init__(self, *, agent: str | None = None) -> None:
        self._agent = agent
        self._open: dict[UUID, tuple[str, float, int]] = {}
        self.costs: dict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: dict[str, float] = defaultdict(float)
        self.tools: set[str] = set()
        """Every tool that a model call was offered, or that ran, since the beginning."""

    def taken(self) -> tuple[dict[str, dict[str, int]], dict[str, float]]:
        """What was counted since the last time: amounts, and seconds, by agent."""
        counted = {agent: dict(amounts) for agent, amounts in sorted(self.costs.items())}
        seconds = dict(sorted(self.seconds.items()))
        self.costs.clear()
        self.seconds.clear()
        self._open.clear()
        return counted, seconds

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any],
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A call begins."""
        agent = self._agent or _node_of(metadata or {})
        read = sum(count_tokens(_IDS.sub("", str(one.text))) for some in messages for one in some)
        self._open[run_id] = agent, time.perf_counter(), read
        for tool in (kwargs.get("invocation_params") or {}).get("tools") or ():
            self.tools.add(str((tool.get("function") or tool).get("name") or ""))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A call has ended."""
        agent, began, read = self._open.pop(run_id, (self._agent or "", time.perf_counter(), 0))
        self.seconds[agent] += time.perf_counter() - began
        costs = self.costs[agent]
        costs["calls"] += 1
        for each in (one for some in response.generations for one in some):
            usage = getattr(getattr(each, "message", None), "usage_metadata", None) or {}
            costs["tokens_in"] += usage.get("input_tokens", read)
            costs["tokens_out"] += usage.get("output_tokens", count_tokens(each.text))

    def on_tool_start(self, serialized: Mapping[str, Any] | None, input_str: str, **kwargs: Any) -> None:
        """A tool runs."""
        self.tools.add(str((serialized or {}).get("name") or ""))


def _node_of(metadata: Mapping[str, Any]) -> str:
    """The outermost node of a call: an agent's own graph runs inside of it."""
    place = str(metadata.get("langgraph_checkpoint_ns") or metadata.get("checkpoint_ns") or "")
    return place.partition("|")[0].partition(":")[0] or str(metadata.get("langgraph_node") or "")
