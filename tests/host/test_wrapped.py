"""A function around an agent: it is told what is known, and what it answers is kept as its own."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, GraphError, IdentityError, InvalidName
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from tests.host.graphs import Broken, open_memory, raising

ADA = Scope("ada", session_id="t1")
WISH = "Use tables by default."
FOUND = "Revenue rose by 12 percent in June because of two new contracts in the north."
ASKED = "How did revenue develop in June?"


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Wraps an agent that answers `answer`, calls it with `messages`; returns what it saw and answered."""

    def called(memory: SupervisorMemory, messages: Any, answer: Any, **given: Any) -> tuple[Any, Any]:
        seen: list[Any] = []
        if request.param == "sync":

            @memory.wrap(**{"scope": ADA, **given})
            def agent(messages: Any) -> Any:
                seen.append(messages)
                return answer

            return agent(messages), seen[0]

        @memory.wrap(**{"scope": ADA, **given})
        async def agent_async(messages: Any) -> Any:
            seen.append(messages)
            return answer

        return asyncio.run(agent_async(messages)), seen[0]

    return called


def kept(memory: SupervisorMemory) -> list[tuple[str, str | None]]:
    return [(each.content, each.source.agent_id) for each in memory.get_all(user_id="ada")]


def test_an_agent_is_told_what_is_known_and_what_it_answers_is_kept(
    memory: SupervisorMemory, call: Callable[..., Any]
) -> None:
    answer, first = call(memory, WISH, "Noted.")
    assert (answer, first) == ("Noted.", WISH)
    assert kept(memory) == [(WISH, None)]
    _, told = call(memory, [HumanMessage(ASKED)], [HumanMessage(ASKED), AIMessage(FOUND)], agent="analyst")
    assert isinstance(told[0], SystemMessage)
    assert WISH in told[0].text
    assert any(FOUND in text and who == "analyst" for text, who in kept(memory))


def test_the_messages_of_a_sub_agent_are_nobodys_words(
    memory: SupervisorMemory, call: Callable[..., Any]
) -> None:
    call(memory, [("user", "From now on I prefer charts.")], "Done.", agent="analyst")
    assert not any("charts" in text for text, _ in kept(memory))


def test_an_answer_of_the_supervisor_is_not_the_users(
    memory: SupervisorMemory, call: Callable[..., Any]
) -> None:
    call(memory, [("user", ASKED)], {"messages": [("user", ASKED), ("assistant", "I prefer charts.")]})
    assert not any("charts" in text for text, _ in kept(memory))


@pytest.mark.parametrize(
    ("messages", "shape"),
    [
        ([{"role": "user", "content": ASKED}], dict),
        ([("user", ASKED)], tuple),
        ([HumanMessage(ASKED)], SystemMessage),
        ([{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED}], dict),
        ([("system", "Be brief."), ("user", ASKED)], tuple),
        ([SystemMessage("Be brief."), HumanMessage(ASKED)], SystemMessage),
    ],
)
def test_the_note_is_in_the_shape_of_the_messages_and_leaves_them_alone(
    memory: SupervisorMemory, call: Callable[..., Any], messages: list[Any], shape: type
) -> None:
    memory.write(WISH, user_id="ada")
    before = str(messages)
    _, told = call(memory, messages, None)
    assert isinstance(told[0], shape)
    assert WISH in str(told[0])
    assert str(told).count("Be brief.") == before.count("Be brief.")
    assert str(told[-1]) == str(messages[-1])
    assert str(messages) == before
    assert len(told) == 2


def test_a_text_has_the_note_in_front(memory: SupervisorMemory, call: Callable[..., Any]) -> None:
    memory.write(WISH, user_id="ada")
    _, told = call(memory, ASKED, "So and so.")
    assert WISH in told
    assert told.endswith(f"\n\n{ASKED}")


def test_who_acts_comes_from_the_call_or_from_the_turn_around_it(memory: SupervisorMemory) -> None:
    @memory.wrap(scope=lambda messages, user: Scope(user))
    def of_user(messages: Any, user: str) -> Any:
        return messages

    @memory.wrap(agent="analyst")
    def of_turn(messages: Any) -> Any:
        return FOUND

    of_user(WISH, "bo")
    assert [each.content for each in memory.get_all(user_id="bo")] == [WISH]
    with pytest.raises(IdentityError, match="pass scope= to wrap"):
        of_turn(ASKED)
    with memory.turn(ADA, ASKED):
        of_turn(ASKED)
    assert any(FOUND in text and who == "analyst" for text, who in kept(memory))


def test_an_agent_that_fails_fails_as_ever_and_the_user_was_heard(
    memory: SupervisorMemory,
) -> None:
    def fails(messages: Any) -> Any:
        raise ZeroDivisionError

    async def fails_later(messages: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        memory.wrap("analyst", scope=ADA)(fails)(WISH)
    assert kept(memory) == []
    with pytest.raises(ZeroDivisionError):
        memory.wrap(scope=ADA)(fails)(WISH)
    assert kept(memory) == [(WISH, None)]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(memory.wrap(scope=ADA)(fails_later)("From now on show delays in minutes."))
    assert len(kept(memory)) == 2


def test_a_store_that_fails_changes_no_answer() -> None:
    down = raising(BackendUnavailable("the store is down"))
    with open_memory(backend=Broken(InMemoryBackend(), search=down, list=down, batch=down)) as memory:

        @memory.wrap(scope=ADA)
        def agent(messages: Any) -> Any:
            return messages

        assert agent(WISH) == WISH


def test_what_cannot_be_wrapped_is_refused_at_once(memory: SupervisorMemory) -> None:
    def parts(messages: Any) -> Iterator[str]:
        yield "So"

    with pytest.raises(GraphError, match=r"memory\.turn"):
        memory.wrap(scope=ADA)(parts)
    with pytest.raises(InvalidName):
        memory.wrap(agent="a\nb")
