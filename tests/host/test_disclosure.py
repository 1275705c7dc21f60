"""The supervisor's model goes from an overview to the words with the six tools it has."""

from collections.abc import Iterator

import pytest

from supervisor_memory import SupervisorMemory
from tests.breadth import HOW
from tests.host.graphs import config, open_memory
from tests.host.test_tools import call

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SAID = [
    ("user", "Good morning. From now on show delays in minutes."),
    ("assistant", "Noted."),
    ("user", "Delayed means arrival more than 15 minutes late."),
]


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        memory.add(SAID, user_id="ada", session_id="monday")
        yield memory


@HOW
async def test_from_the_contents_to_a_record_to_what_was_said(memory: SupervisorMemory, how: str) -> None:
    overview = await call(memory, "memory_summarize", how=how, items=[])
    assert overview["summary"].splitlines() == [
        "- user-profile(user): From now on show delays in minutes",
        "- domain-facts(delayed): Delayed means arrival more than 15 minutes late",
    ]
    [found, *_] = await call(memory, "memory_search", how=how, query="delays in minutes")
    assert found["content"] == "From now on show delays in minutes."
    for id_ in (found["id"], found["metadata"]["ref_id"]):
        said = await call(memory, "memory_search", how=how, query=id_)
        assert [message["content"] for message in said[:3]] == [text for _, text in SAID]
        assert [message["metadata"]["said_by"] for message in said[:2]] == ["user", "agent"]


async def test_ids_of_another_user_lead_nowhere_and_the_attempt_is_audited(memory: SupervisorMemory) -> None:
    [wish] = (r for r in memory.get_all(user_id="ada") if r.kind == "user-profile")
    for id_ in (wish.id, wish.ref_id):
        bobs = config("bobs thread", user_id="bob")
        assert await call(memory, "memory_search", query=id_, in_run=bobs) == []
    denied = [row for row in memory.backend.audit.tail(99) if row.event["outcome"] == "denied"]
    assert [row.event["record_id"] for row in denied] == [wish.id, wish.ref_id]


async def test_what_was_said_in_another_task_is_out_of_reach(memory: SupervisorMemory) -> None:
    [done] = memory.add("Call me Jo.", user_id="ada", session_id="s2", task="south")
    north = config(user_id="ada", memory_task="north")
    answer = await call(memory, "memory_search", query=done.id, in_run=north)
    assert "another task" in answer["error"]
    overview = await call(memory, "memory_summarize", items=[], in_run=north)
    assert "Jo" not in overview["summary"]


async def test_an_id_that_is_no_records_is_searched_for_like_any_text(memory: SupervisorMemory) -> None:
    order = "0b6e4c1e-5c39-4a57-8d1a-6f0c5b1f9d42"
    memory.write(f"Order {order} was cancelled", user_id="ada")
    [found, *_] = await call(memory, "memory_search", query=order)
    assert found["content"] == f"Order {order} was cancelled"


async def test_a_user_of_whom_nothing_is_remembered_has_no_contents(memory: SupervisorMemory) -> None:
    bobs = config("bobs thread", user_id="bob")
    assert await call(memory, "memory_summarize", items=[], in_run=bobs) == {"summary": ""}
