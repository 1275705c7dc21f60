"""Read a thread before a run from its checkpointer: a middleware has no graph to ask."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_DURABILITY
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

_LONGEST_WAIT = 1.0  # seconds until the checkpoint that a run goes on from is written
_PAUSE = 0.002


@dataclass(frozen=True, slots=True)
class Held:
    """A thread at one of its checkpoints."""

    values: Mapping[str, Any]
    metadata: Mapping[str, Any]
    config: RunnableConfig
    parent_config: RunnableConfig | None


class Checkpoints:
    """The thread that a step of a run is in, as it was before the run.

    Args:
        config: The config of the step.
        loop: The event loop of the run, where it is an async one; read from another thread.
    """

    def __init__(self, config: RunnableConfig, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.config = config
        self._loop = loop
        held: Mapping[str, Any] = config.get("configurable") or {}
        found = held.get(CONFIG_KEY_CHECKPOINTER)
        self._saver: BaseCheckpointSaver[Any] | None = (
            found if isinstance(found, BaseCheckpointSaver) and held.get("thread_id") else None
        )
        self._is_late = held.get(CONFIG_KEY_DURABILITY) == "async"
        self._now = str(held.get("checkpoint_id") or "")
        self.is_nested = "|" in str(held.get("checkpoint_ns") or "")
        self._root: RunnableConfig = {
            "configurable": {"thread_id": held.get("thread_id"), "checkpoint_ns": ""}
        }

    def state(self, config: RunnableConfig) -> Held | None:
        """The thread as it was before the run, or as the checkpoint of a config has it."""
        if self._saver is None or self.is_nested:
            return None
        asked = (config.get("configurable") or {}).get("checkpoint_id")
        if config is not self.config and asked:
            return _as_held(self._read(config))
        found = self._latest()
        if found is None:
            return Held({}, {}, self._root, None)
        if found.checkpoint["id"] < self._now and found.metadata.get("source") != "input":
            return _as_held(found)  # the run is not written yet, or will be only at its end
        while found is not None and found.metadata.get("source") != "input":
            found = self._read(found.parent_config) if found.parent_config else None
        return _as_held(found)

    def history(self, config: RunnableConfig, limit: int) -> list[Held]:
        """The checkpoints of the thread, the newest first."""
        return list(islice(self._chain(), limit))

    def _chain(self) -> Iterator[Held]:
        found = self._latest()
        while found is not None:
            held = _as_held(found)
            if held is not None:
                yield held
            found = self._read(found.parent_config) if found.parent_config else None

    def _latest(self) -> CheckpointTuple | None:
        until = time.monotonic() + _LONGEST_WAIT
        found = self._read(self._root)
        while self._is_late and (found is None or found.checkpoint["id"] < self._now):
            if time.monotonic() > until:
                break
            time.sleep(_PAUSE)
            found = self._read(self._root)
        return found

    def _read(self, config: RunnableConfig) -> CheckpointTuple | None:
        saver = self._saver
        assert saver is not None
        if self._loop is None:
            return saver.get_tuple(config)
        return asyncio.run_coroutine_threadsafe(saver.aget_tuple(config), self._loop).result()


def _as_held(found: CheckpointTuple | None) -> Held | None:
    if found is None:
        return None
    return Held(found.checkpoint["channel_values"], found.metadata, found.config, found.parent_config)
