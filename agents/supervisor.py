"""Supervisor: plans, hands tasks over, and writes the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END
from langgraph.prebuilt import ToolNode

from agents.member import AGENTS
from common.memory_state import CustomState
from common.messages import HANDOFF_PREFIX, fold_reports, is_new_turn

__all__ = ["SUPERVISOR_PROMPT", "SupervisorAgent"]

SUPERVISOR_PROMPT = """\
You lead a team that answers questions about the flights which left New York in 2013. You plan, hand tasks
over one at a time, and write the answer yourself. You never state a figure that no agent reported.

For a question about the data:
1. transfer_to_text2sql: it queries the database and reports SQL, file and rows.
2. transfer_to_statistics: only when the user wants a picture or further aggregates.
3. transfer_to_analysis: it concludes from the result. Never skip it.
4. Then answer: short, in the user's language, rounded to hundredths where values are not whole,
   words rather than any layout unless another form is wished for. Name the file of a picture.

Wishes of the user, old or new, and notes above the conversation may settle form, language, rounding, units,
kind of picture and what counts as late. The latest message beats the notes; the notes beat older messages.
Pass on in the task what the agent has to know.

When the message only states a wish or a fact, confirm it briefly and hand nothing over. When the data cannot
answer it but a note quotes words of an earlier conversation that do, answer with these words, their day and
who said them. When neither can, say so and name what the data can answer.
"""

DUTIES = {
    "text2sql": "Hand over to text2sql, which queries the flights database. Comes first.",
    "statistics": "Hand over to statistics, which aggregates a query result and draws it.",
    "analysis": "Hand over to analysis, which concludes from a query result. Comes last, always.",
}


class SupervisorAgent:
    """The node that speaks with the user.

    Args:
        model: Any chat model that can call tools.
        tools: More tools for the supervisor; they run in the node `tools`.
        prompt: Its instructions.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
        prompt: str = SUPERVISOR_PROMPT,
    ) -> None:
        self.model = model
        self.extra_tools = list(tools)
        self.prompt = prompt
        self.handoffs = self._init_tools()
        self.agent = self._init_agent()

    def _init_tools(self) -> list[BaseTool | Callable[..., Any]]:
        """The handoff tools; a model is offered these and the extra ones."""
        return [_handoff_tool(agent) for agent in AGENTS]

    def _init_agent(self) -> Runnable[list[AnyMessage], AIMessage]:
        """The model, told who it is and what it can do."""
        prompt = SystemMessage(self.prompt)

        def address(messages: list[AnyMessage]) -> list[AnyMessage]:
            return [prompt, *fold_reports(messages, AGENTS)]

        return RunnableLambda(address) | self.model.bind_tools([*self.handoffs, *self.extra_tools])

    def run(self, state: CustomState) -> dict[str, Any]:
        """Say what comes next: a handoff, a tool, or the answer."""
        return self._update(state, self.agent.invoke(state["messages"]))

    async def arun(self, state: CustomState) -> dict[str, Any]:
        """`run`, for an event loop."""
        return self._update(state, await self.agent.ainvoke(state["messages"]))

    def as_node(self) -> Runnable[CustomState, dict[str, Any]]:
        """Both ways of running as one node."""
        return RunnableLambda(self.run, afunc=self.arun, name="supervisor")

    def tool_node(self) -> ToolNode | None:
        """The node for the extra tools; None when there are none.

        It knows the handoff tools too: a model that hands over and calls a tool in one breath must be
        answered on both, and hears that the handoff has to come by itself.
        """
        return ToolNode([*self.extra_tools, *self.handoffs]) if self.extra_tools else None

    def next_node(self, state: CustomState) -> str:
        """Where the supervisor's last message leads."""
        calls = _last_calls(state["messages"])
        if not calls:
            return END
        if self._needs_tool_node(calls):
            return "tools"
        return next((agent for call in calls if (agent := _agent_of(call))), "supervisor")

    def _needs_tool_node(self, calls: Sequence[ToolCall]) -> bool:
        return bool(self.extra_tools) and any(_agent_of(call) is None for call in calls)

    def _update(self, state: CustomState, said: AIMessage) -> dict[str, Any]:
        update: dict[str, Any] = {"messages": [said]}
        if is_new_turn(state["messages"]):
            update |= {"final_answer": "", "side_effects": [], "analysis": None}
        if not said.tool_calls:
            return update | {"final_answer": said.text}
        if not self._needs_tool_node(said.tool_calls):
            update["messages"] += _receipts(said.tool_calls)
        return update


def _handoff_tool(agent: str) -> BaseTool:
    def decline(task: str) -> str:
        return f"Nothing was handed to {agent}: call {HANDOFF_PREFIX}{agent} again, by itself."

    return StructuredTool.from_function(
        decline,
        name=f"{HANDOFF_PREFIX}{agent}",
        description=f"{DUTIES[agent]} task: what to do, in one sentence.",
    )


def _agent_of(call: ToolCall) -> str | None:
    agent = call["name"].removeprefix(HANDOFF_PREFIX)
    return agent if call["name"].startswith(HANDOFF_PREFIX) and agent in AGENTS else None


def _last_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message.tool_calls
    return []


def _receipts(calls: Sequence[ToolCall]) -> list[ToolMessage]:
    """One answer per call, as providers require: the first handoff is taken, the others are not.

    The receipt of the handoff taken comes last, where the agent's report will follow it.
    """
    taken = next((call for call in calls if _agent_of(call)), None)
    refused = [_answer(call, f"Not done: {_reason(call)}") for call in calls if call is not taken]
    if taken is None:
        return refused
    task = taken["args"].get("task", "")
    return [*refused, _answer(taken, f"Handed to {_agent_of(taken)}. Task: {task}")]


def _reason(call: ToolCall) -> str:
    if _agent_of(call):
        return "one handoff at a time; call it again when the first agent has reported."
    return f"there is no tool named {call['name']!r}."


def _answer(call: ToolCall, text: str) -> ToolMessage:
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"] or "", id=f"answer_{call['id']}")
