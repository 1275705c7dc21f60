"""The chat model of the team: a real one when configured, otherwise one that works by rules.

The rule-based model is no language model. It knows one subject, the flights of the reference team, and
exists so that the whole graph can run offline and give the same answer every time. It keeps nothing
between calls: what it does follows from the messages and the tools it is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from common.answers import acknowledge, apologise, axis_label, conclude, phrase, recount, refuse, scale_of
from common.messages import HANDOFF_PREFIX, since_request, stable_id
from common.queries import to_sql
from common.questions import Question
from common.reports import chart_in, csv_in, figures_in, sql_in
from common.turn import Turn, read_turn

__all__ = ["RuleBasedChatModel", "chat_model"]

Tool = dict[str, Any] | type | Callable[..., Any] | BaseTool


@dataclass(frozen=True)
class Reply:
    """What the model says: words, or one call of a tool."""

    text: str = ""
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


class RuleBasedChatModel(BaseChatModel):
    """A rule-based stand-in for a chat model; deterministic and offline.

    It recognises its part in the team by the tools bound to it and ignores tools it does not know.
    """

    @property
    def _llm_type(self) -> str:
        return "rule-based"

    def bind_tools(
        self, tools: Sequence[Tool], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as an ordinary chat model does. `tool_choice` is ignored: the rules choose."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        tools = {tool["function"]["name"] for tool in kwargs.get("tools", ())}
        message = _as_message(think(messages, tools), messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


def chat_model(name: str | None = None) -> BaseChatModel:
    """The model to work with.

    Args:
        name: A name for `init_chat_model`, such as "openai:gpt-5-mini"; None reads CHAT_MODEL from the
            environment, and without it takes the rule-based model.
    """
    name = name or os.environ.get("CHAT_MODEL")
    if not name:
        return RuleBasedChatModel()
    # Heavy, and not needed for the model that needs no network.
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


def think(messages: Sequence[BaseMessage], tools: set[str]) -> Reply:
    """Decide what to say next, in the part that the tools imply."""
    turn = read_turn(messages)
    heard = {
        message.name: message.text
        for message in since_request(messages)
        if isinstance(message, ToolMessage) and message.name
    }
    for tool, part in PARTS.items():
        if tool in tools:
            return part(turn, heard)
    return Reply(refuse(turn.language))


def _supervise(turn: Turn, heard: Mapping[str, str]) -> Reply:
    if turn.question is None:
        return Reply(_without_data(turn))
    report = heard.get(HANDOFF_PREFIX + "text2sql")
    if report is None:
        return _hand_to("text2sql", f"Query the figures for: {turn.words}")
    figures = figures_in(report)
    if figures is None:
        return Reply(apologise(turn.language, report))
    if turn.wants_chart and HANDOFF_PREFIX + "statistics" not in heard:
        kind = turn.preferences.chart or "bar"
        return _hand_to("statistics", f"Draw a {kind} chart of {csv_in(report)} for: {turn.words}")
    if HANDOFF_PREFIX + "analysis" not in heard:
        return _hand_to("analysis", f"Conclude from {csv_in(report)} what answers: {turn.words}")
    chart = chart_in(heard.get(HANDOFF_PREFIX + "statistics", ""))
    return Reply(phrase(turn.question, turn.preferences, figures, chart=chart))


def _without_data(turn: Turn) -> str:
    """What to say where there is nothing to look up in the flights."""
    if turn.is_remark:
        return acknowledge(turn.language)
    return recount(turn.language, turn.quotation) if turn.quotation else refuse(turn.language)


def _query(turn: Turn, heard: Mapping[str, str]) -> Reply:
    if turn.question is None:
        return Reply(refuse(turn.language))
    if "run_sql" not in heard:
        return Reply(tool="run_sql", args={"sql": to_sql(turn.question, turn.preferences.delay)})
    return Reply(heard["run_sql"])


def _compute(turn: Turn, heard: Mapping[str, str]) -> Reply:
    path = csv_in(heard.get(HANDOFF_PREFIX + "text2sql", ""))
    if turn.question is None or not path:
        return Reply("There is no query result to work on; text2sql comes first.")
    if "summarize_result" not in heard:
        return Reply(tool="summarize_result", args={"csv_path": path})
    if turn.wants_chart and "draw_chart" not in heard:
        return Reply(tool="draw_chart", args=_chart_of(turn.question, turn, path))
    return Reply("\n".join(heard[tool] for tool in ("summarize_result", "draw_chart") if tool in heard))


def _chart_of(question: Question, turn: Turn, path: str) -> dict[str, Any]:
    label = axis_label(question, turn.preferences)
    return {
        "csv_path": path,
        "kind": turn.preferences.chart or "bar",
        "title": f"{label} by {question.group}" if question.group else label,
        "value_label": label,
        "divide_by": scale_of(question, turn.preferences),
    }


def _analyse(turn: Turn, heard: Mapping[str, str]) -> Reply:
    report = heard.get(HANDOFF_PREFIX + "text2sql", "")
    path = csv_in(report)
    if turn.question is None or not path:
        return Reply("There is no query result to conclude from; text2sql comes first.")
    if "read_result" not in heard:
        return Reply(tool="read_result", args={"csv_path": path})
    figures = figures_in(heard["read_result"])
    if figures is None:
        return Reply(apologise(turn.language, heard["read_result"]))
    chart = chart_in(heard.get(HANDOFF_PREFIX + "statistics", ""))
    return Reply(
        conclude(turn.question, turn.preferences, figures, sql=sql_in(report), path=path, chart=chart)
    )


PARTS: Mapping[str, Callable[[Turn, Mapping[str, str]], Reply]] = {
    HANDOFF_PREFIX + "text2sql": _supervise,
    "run_sql": _query,
    "draw_chart": _compute,
    "read_result": _analyse,
}


def _hand_to(agent: str, task: str) -> Reply:
    return Reply(tool=HANDOFF_PREFIX + agent, args={"task": task})


def _as_message(reply: Reply, messages: Sequence[BaseMessage]) -> AIMessage:
    # An id repeated in one thread would replace the earlier message, so the whole history is part of it;
    # the user's messages come with ids that tell apart the same question asked twice.
    history = [f"{message.type}:{message.text}" for message in messages]
    history += [message.id or "" for message in messages if isinstance(message, HumanMessage)]
    said = (*history, reply.text, reply.tool, repr(sorted(reply.args.items())))
    calls = (
        [tool_call(name=reply.tool, args=dict(reply.args), id=stable_id("call", *said))] if reply.tool else []
    )
    return AIMessage(reply.text, tool_calls=calls, id=stable_id("ai", *said))
