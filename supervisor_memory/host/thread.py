"""A long conversation, and the short prompt a model reads in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    message_to_dict,
    messages_from_dict,
)

from supervisor_memory.errors import InvalidContent
from supervisor_memory.host.run.state import memory_calls
from supervisor_memory.model.arguments import LONGEST_READ, Role, check_amount
from supervisor_memory.model.records import Message
from supervisor_memory.ports import Services, guarded
from supervisor_memory.reading.thread import Shortening
from supervisor_memory.understand.digest import Line

_VERSION = 1
_ROLES: Mapping[str, Role] = {"human": "user", "ai": "assistant", "system": "system"}


class Shortener:
    """Makes the short prompts of any number of conversations; safe to share between threads.

    Args:
        last: How many turns stay as they were, the present one included. A turn goes from a user's words to
            the next ones, with its tool calls and their results.
        tokens: The most tokens of the text that stands for the turns before.
    """

    def __init__(self, services: Services, *, last: int, tokens: int) -> None:
        self._last = check_amount(last, what="last")
        self._services = services
        self.shortening = Shortening(services, tokens=check_amount(tokens, what="tokens"))

    def prompt(self, messages: Sequence[BaseMessage], question: str | None = None) -> list[BaseMessage]:
        """The short form of a conversation; all messages, where nothing would be spared by it.

        Also where it fails or is late: what was read by then is not read again, so that the next one is in
        time. No message is changed.
        """
        first, whole = self._first(messages), [*messages]
        if not first:
            return whole
        asked = next((str(each.text) for each in reversed(messages) if isinstance(each, HumanMessage)), "")

        def shorten() -> str:
            return self.shortening.text(
                as_said(messages), first=first, question=(question or asked)[:LONGEST_READ]
            )

        seconds = self._services.settings.search_timeout_ms / 1000
        text = guarded(lambda: self._services.bridge.within(seconds, shorten), otherwise=lambda error: "")
        if not text:
            return whole
        return [*filter(_stays, whole[:first]), HumanMessage(text), *whole[first:]]

    def _first(self, messages: Sequence[BaseMessage]) -> int:
        """The place of the first message that stays as it was."""
        begins = [
            nth for nth, each in enumerate(messages) if isinstance(each, HumanMessage) and not _stays(each)
        ]
        first = begins[-self._last] if len(begins) > self._last else 0
        answered = {each.tool_call_id for each in messages[first:] if isinstance(each, ToolMessage)}
        calling = (
            nth
            for nth, each in enumerate(messages[:first])
            if isinstance(each, AIMessage) and any(call["id"] in answered for call in each.tool_calls)
        )
        return min(calling, default=first)


class LongThread:
    """A conversation, kept whole, and its short prompt: `add` what is said, and send a model the `prompt`.

    Get it from `memory.thread()`. One caller at a time.
    """

    def __init__(self, shortener: Shortener) -> None:
        self._shortener = shortener
        self.messages: list[BaseMessage] = []

    def add(self, *messages: Any) -> None:
        """Append LangChain messages, or their short forms: ("user", "…"), {"role": "user", …}."""
        self.messages += convert_to_messages(messages)

    def prompt(self, question: str | None = None) -> list[BaseMessage]:
        """The messages for a model.

        Args:
            question: What it is to answer; None: the user's latest words.
        """
        return self._shortener.prompt(self.messages, question)

    def find(self, question: str, *, around: int = 0, limit: int = 5) -> list[BaseMessage]:
        """The messages that a question is about, in their order, by words and, with an embedder, by meaning.

        All messages are looked through, those that a prompt leaves out as well.

        Args:
            around: How many messages before and after each are told with it.
            limit: At most so many, besides those around them.
        """
        beside = check_amount(around, what="around", least=0)
        said = [(nth, each) for nth, each in enumerate(as_said(self.messages)) if each.content]
        best = self._shortener.shortening.asked_for([each for _, each in said], question[:LONGEST_READ])
        places = (said[row][0] for row in best[: check_amount(limit, what="limit")])
        told = {nth for place in places for nth in range(place - beside, place + beside + 1)}
        return [each for nth, each in enumerate(self.messages) if nth in told]

    def state(self) -> dict[str, list[str]]:
        """The rolling state: sentences that still hold, grouped by what they say of the work."""
        found: dict[str, list[str]] = {}
        for line in self._shortener.shortening.state(as_said(self.messages)):
            found.setdefault(line.section, []).append(line.text)
        return found

    def snapshot(self) -> dict[str, Any]:
        """The messages and the state as JSON: `memory.thread(snapshot)` goes on from them, in any process."""
        lines = self._shortener.shortening.state(as_said(self.messages))
        return {
            "version": _VERSION,
            "messages": [message_to_dict(each) for each in self.messages],
            "state": [[*astuple(line)] for line in lines],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; what was added before is forgotten.

        Raises:
            InvalidContent: it is no snapshot, or one of a later version.
        """
        try:
            version, lines = snapshot["version"], [Line(*map(str, line)) for line in snapshot["state"]]  # type: ignore[arg-type]  # any section is taken
            messages = messages_from_dict([*snapshot["messages"]])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidContent(
                "this is no snapshot of a thread; pass what `snapshot()` returned"
            ) from error
        if version != _VERSION:
            raise InvalidContent(
                f"the snapshot has version {version!r}, not {_VERSION}; read it with what made it",
                version=version,
            )
        self.messages = messages
        self._shortener.shortening.know(as_said(messages), lines)


def as_said(messages: Sequence[BaseMessage]) -> list[Message]:
    """The messages as texts; answers of memory tools are empty, for not everybody may read them."""
    hidden = memory_calls(messages)
    return [
        Message(
            "system" if _stays(each) else _ROLES.get(each.type, "tool"),
            ""
            if isinstance(each, ToolMessage) and each.tool_call_id in hidden
            else str(each.text)[:LONGEST_READ],
            id=each.id,
        )
        for each in messages
    ]


def _stays(message: BaseMessage) -> bool:
    """Whether a message of an early turn stays: a system message, or a summary that LangChain made."""
    return isinstance(message, SystemMessage) or message.additional_kwargs.get("lc_source") == "summarization"
