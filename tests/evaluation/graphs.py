"""A supervisor whose model tells the project code that it reads anywhere in its prompt, and its troubles."""

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
    """Answers with the last code in its prompt. It is confused by notes where asked to be."""

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
    """It answers what it reads."""
    return _built(Reading())


def confused_team() -> Any:
    """It answers wrongly once it is told a note."""
    return _built(Reading(confused=True))


def compiled_team() -> Any:
    """The same, compiled by its owner."""
    return _built(Reading()).compile()


def no_graph() -> Any:
    """A factory that makes none."""
    return 3
