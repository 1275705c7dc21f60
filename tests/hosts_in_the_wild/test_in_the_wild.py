"""Public graphs' shapes, with memory and without: nothing differs but what the models read."""

from typing import Any

import pytest

from supervisor_memory import SupervisorMemory
from tests.hosts_in_the_wild import (
    appended_in_place,
    coordinator_planner,
    few_shot,
    first_turn,
    interrupt_pipeline,
    map_and_reduce,
    nested_full_history,
    own_prompts,
    rag_first_message,
    summarising_chat,
    three_keys,
    trimmed_window,
)
from tests.hosts_in_the_wild.host import EARLIER, FENCE, WISH, Host, How, play, seeded

HOSTS = {
    "rag_first_message": rag_first_message.HOST,
    "first_turn": first_turn.HOST,
    "coordinator_planner": coordinator_planner.HOST,
    "nested_full_history": nested_full_history.HOST,
    "appended_in_place": appended_in_place.HOST,
    "few_shot_anthropic": few_shot.ANTHROPIC,
    "few_shot_openai": few_shot.OPENAI,
    "few_shot_google": few_shot.GOOGLE,
    "own_prompts": own_prompts.HOST,
    "three_keys": three_keys.HOST,
    "three_keys_plain": three_keys.PLAIN,
    "interrupt_pipeline": interrupt_pipeline.HOST,
    "summarising_chat": summarising_chat.HOST,
    "trimmed_window": trimmed_window.HOST,
    "map_and_reduce": map_and_reduce.HOST,
}
ONLY_ASYNC = {"three_keys", "three_keys_plain", "interrupt_pipeline"}


EVERY = pytest.mark.parametrize(
    ("host", "how"),
    [
        pytest.param(host, how, id=f"{name}-{how}")
        for name, host in HOSTS.items()
        for how in (["async"] if name in ONLY_ASYNC else ["sync", "async"])
    ],
)


@pytest.fixture
def memory() -> Any:
    with seeded() as memory:
        yield memory


@pytest.mark.one_in(8)
@EVERY
async def test_messages_updates_interrupts_and_state_are_as_without_memory(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    bare, attached = await play(host, how), await play(host, how, memory)
    assert attached.states == bare.states
    if how == "async" or not host.varies:
        assert sorted(attached.streams) == sorted(bare.streams)  # of side by side steps any may be first
    assert FENCE not in str(attached.streams + attached.states)


@pytest.mark.one_in(4, shift=1)
@EVERY
async def test_every_model_call_that_a_person_would_expect_holds_the_note(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    played = await play(host, how, memory)
    assert set(played.calls) == set(host.scripts)
    for role, calls in played.calls.items():
        told = ["\n".join(str(message.text) for message in call) for call in calls]
        notes = [(text.count(FENCE), text.count(EARLIER)) for text in told]
        if role not in host.open:
            assert (role, notes) == (role, [(0, 0) if role in host.untold else (1, 1)] * len(calls))


@pytest.mark.one_in(4, shift=6)
@EVERY
async def test_the_prompts_say_what_they_said_and_the_note(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    bare, attached = await play(host, how), await play(host, how, memory)
    for role, calls in bare.calls.items():
        for without, told in zip(calls, attached.calls[role], strict=True):
            rest = [m for m in told if m.type != "system"]
            assert [(m.type, m.content) for m in rest] == [
                (m.type, m.content) for m in without if m.type != "system"
            ]
            systems = [str(m.text) for m in told if m.type == "system"]
            assert len(systems) <= 1
            assert "".join(systems).startswith("".join(str(m.text) for m in without if m.type == "system"))


@pytest.mark.one_in(4, shift=1)
@EVERY
async def test_what_the_user_says_is_heard_and_is_the_users(
    memory: SupervisorMemory, host: Host, how: How
) -> None:
    await play(host, how, memory)
    kept = {record.content for record in memory.get_all(user_id="ada") if record.family == "user_profile"}
    assert kept >= {EARLIER, WISH}
    said = [EARLIER, *(str(getattr(turn, "resume", turn)) for turn in host.turns)]
    assert [text for text in kept if not any(text in each for each in said)] == []


@pytest.mark.parametrize("host", [few_shot.ANTHROPIC, few_shot.GOOGLE, few_shot.OPENAI])
async def test_what_a_provider_is_sent_holds_the_note_once(memory: SupervisorMemory, host: Host) -> None:
    played = await play(host, "sync", memory)
    sent = [str(payload) for model in played.models.values() for payload in model.payloads]
    assert [payload.count(FENCE) for payload in sent] == [1] * 4
