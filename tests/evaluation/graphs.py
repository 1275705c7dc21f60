"""A supervisor that answers with the project code in its prompt, and variants that fail."""

import re
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

CODE = re.compile(r"X-\d+")


class Reading(BaseChatModel):
    """A model that answers with the last code in its prompt; optionally, notes confuse it."""

    confused: bool = False

    @property
    def _llm_type(self) -> str:
        return "reading"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = "\n".join(str(message.text) for message in messages)
        if "boom" in str(messages[-1].text) or ("fragile" in str(messages[-1].text) and "<memory" in prompt):
            raise RuntimeError("the model is out of order")
        found = CODE.findall(prompt)
        text = f"The code is {found[-1]}." if found else "I do not know."
        if self.confused and "<memory" in prompt:
            text = "Something else."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def _built(model: BaseChatModel) -> Any:
    def supervisor(state: MessagesState) -> dict[str, Any]:
        if "person" in str(state["messages"][-1].text):
            interrupt("a person has to look")
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", supervisor)
    builder.add_edge(START, "supervisor")
    return builder


def team() -> Any:
    """A team that answers with the code it reads."""
    return _built(Reading())


def confused_team() -> Any:
    """A team that answers wrongly once it has a note."""
    return _built(Reading(confused=True))


def compiled_team() -> Any:
    """The same, compiled by its owner."""
    return _built(Reading()).compile()


def no_graph() -> Any:
    """A factory that makes none."""
    return 3
