"""One turn of a conversation in the host's own code, such as an @entrypoint or a loop."""

import uuid
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from langchain_core.messages import AIMessage, HumanMessage

from supervisor_memory.core import Memory
from supervisor_memory.host.hooks import Hooks, Visit
from supervisor_memory.host.prompts import install
from supervisor_memory.host.run.beginning import Beginning, hosting
from supervisor_memory.host.run.identity import acting_as
from supervisor_memory.model.arguments import check_scope
from supervisor_memory.model.records import Note, Scope


class HostTurn:
    """A turn in the host's own code, with the user and their words; get one from `SupervisorMemory.turn`.

    Use it with `with` or `async with`. The user's words are heard when the block ends, also by an error.
    """

    def __init__(self, memory: Memory, scope: Scope, text: str) -> None:
        check_scope(scope)
        install()
        self._hooks = Hooks(memory)
        self._scope = scope
        self._asked = HumanMessage(text, id=str(uuid.uuid4()))
        self._answers: list[AIMessage] = []
        self._within = ExitStack()
        self._visit = Visit(scope)

    @property
    def note(self) -> Note:
        """The supervisor's note, which the chat models called inside read."""
        return self._visit.note

    def answered(self, text: str) -> None:
        """Keep this text as the final answer."""
        self._answers.append(AIMessage(text))

    def __enter__(self) -> Self:
        self._recall()
        return self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self._end()

    async def __aenter__(self) -> Self:
        await self._hooks.memory.bridge.run(self._recall)
        return self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        await self._hooks.memory.bridge.run(self._end)

    def _recall(self) -> None:
        if not self._hooks.memory.settings.enabled:
            return
        asked = self._asked
        begun = Beginning(self._scope, (asked,), asked=asked.text, turn_id=asked.id, forgets=True)
        self._visit = self._hooks.visit({"messages": [asked]}, self._scope, begun)

    def _begin(self) -> Self:
        self._within.enter_context(acting_as(self._visit.scope, self._visit.told))
        self._within.enter_context(hosting(self._visit.begun))
        return self

    def _leave(self) -> None:
        """End the acting everywhere, also in copied contexts: a generator may end in another context."""
        self._visit.told.is_over = True
        if self._visit.begun is not None:
            self._visit.begun.is_over = True
        with suppress(ValueError):
            self._within.close()

    def _end(self) -> None:
        visit = self._visit
        if visit.begun is not None:
            self._hooks.deliver(visit, "turn", warns=False)
            self._hooks.hear(visit.begun, self._answers, visit.note)
