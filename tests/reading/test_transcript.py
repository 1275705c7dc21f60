"""From a record back to what was said: its message, those around it, and a whole session."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Record, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent, RecordNotFound
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Message
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case
from tests.opened import EACH, opened

TALK = [
    Message("user", "Good morning.", id="m1"),
    Message("assistant", "Good morning!", id="a1"),
    Message("user", "Is it raining? Always answer in tables.", id="m2"),
    Message("assistant", "Noted.", id="a2"),
    Message("user", "以后都用分钟显示延误。", id="m3"),
    Message("assistant", "好的。", id="a3"),
]


def remembering(**options: Any) -> SupervisorMemory:
    settings = Settings(embedding_model="none", **options.pop("settings", {}))
    return SupervisorMemory(settings, clock=FixedClock(), **options)


@pytest.fixture(params=EACH)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        memory = remembering(backend=backend)
        yield memory
        memory.close()


def texts(records: list[Record]) -> list[str]:
    return [record.content for record in records]


def record(memory: SupervisorMemory, content: str, user_id: str = "alice") -> Record:
    (found,) = (r for r in memory.get_all(user_id=user_id) if r.content == content)
    return found


def test_a_statement_leads_to_its_message_and_those_around_it(memory: SupervisorMemory) -> None:
    memory.add(TALK, user_id="alice", session_id="s1")
    wish = record(memory, "Always answer in tables.")
    said = texts([Record.from_dict(m.to_dict()) for m in memory.messages(wish.id, user_id="alice", around=1)])
    assert said == ["Good morning!", "Is it raining? Always answer in tables.", "Noted."]
    assert memory.get(wish.ref_id or "", user_id="alice").content == said[1]
    chinese = record(memory, "以后都用分钟显示延误。")
    assert texts(memory.messages(chinese.id, around=0)) == ["以后都用分钟显示延误。"]


def test_a_session_is_read_in_the_order_it_was_said_in(memory: SupervisorMemory) -> None:
    memory.add(TALK[:4], user_id="alice", session_id="s1")
    memory.add("Something else", user_id="alice", session_id="s2")
    memory.services.clock.now += 60  # type: ignore[attr-defined]  # a FixedClock
    memory.add(TALK[4:], user_id="alice", session_id="s1")
    said = memory.session("s1", user_id="alice")
    assert texts(said) == [message.content for message in TALK]
    assert texts(memory.messages(said[2].id, user_id="alice", around=99)) == texts(said)


def test_what_an_agent_brought_leads_to_what_the_user_had_asked(memory: SupervisorMemory) -> None:
    asked, answered = Message("user", "Why so late?", id="m1"), Message("assistant", "Because of snow.")
    memory.remember([asked], Scope("alice", session_id="s1"), turn_id="m1")
    outcome = Outcome(final_answer="Delays in March came from snow at Newark.")
    memory.remember((), Scope("alice", "analysis", "s1"), outcome=outcome, turn_id="m1")
    memory.services.clock.now += 1  # type: ignore[attr-defined]  # a FixedClock
    memory.remember([answered], Scope("alice", session_id="s1"), turn_id="m1")
    brought = record(memory, "Delays in March came from snow at Newark.")
    assert texts(memory.messages(brought.id, user_id="alice")) == ["Why so late?", "Because of snow."]


def test_what_is_said_again_leads_to_where_it_was_said_last(memory: SupervisorMemory) -> None:
    memory.add("Always answer in tables.", user_id="alice", session_id="s1")
    memory.add("From now on answer in lists.", user_id="alice", session_id="s2")
    (wish,) = memory.get_all(user_id="alice")
    assert texts(memory.messages(wish.id)) == ["From now on answer in lists."]
    first = memory.history(wish.id)[0]
    assert memory.get(first.ref_id or "").content == "Always answer in tables."


def test_a_record_of_another_user_is_not_found_nor_is_a_session(memory: SupervisorMemory) -> None:
    memory.add(TALK, user_id="alice", session_id="s1")
    wish = record(memory, "Always answer in tables.")
    for id_ in (wish.id, wish.ref_id or "", "no such id"):
        with pytest.raises(RecordNotFound):
            memory.messages(id_, user_id="bob")
    with pytest.raises(RecordNotFound):
        memory.session("s1", user_id="bob")


def test_two_users_in_sessions_of_one_name_read_their_own(memory: SupervisorMemory) -> None:
    memory.add("Always answer in tables.", user_id="alice", session_id="s1")
    memory.add("Always answer in lists.", user_id="bob", session_id="s1")
    (wish,) = memory.get_all(user_id="bob")
    assert texts(memory.messages(wish.id, user_id="bob", around=9)) == ["Always answer in lists."]
    assert texts(memory.session("s1", user_id="alice")) == ["Always answer in tables."]


def test_without_kept_messages_a_record_points_nowhere() -> None:
    with remembering(settings={"keep_messages": False}) as memory:
        memory.add(TALK, user_id="alice", session_id="s1")
        wish = record(memory, "Always answer in tables.")
        assert wish.ref_id is None
        assert memory.messages(wish.id, user_id="alice") == []


def test_a_written_statement_was_said_nowhere() -> None:
    with remembering() as memory:
        written = memory.write("GMV excludes refunds", user_id="alice", session_id="s1")
        assert memory.messages(written.id, user_id="alice") == []


def test_deleted_messages_are_read_no_more() -> None:
    with remembering() as memory:
        memory.add(TALK, user_id="alice", session_id="s1")
        wish = record(memory, "Always answer in tables.")
        memory.delete(wish.ref_id or "", user_id="alice")
        assert memory.messages(wish.id, user_id="alice") == []
        assert len(memory.session("s1", user_id="alice")) == len(TALK) - 1


def test_an_imported_conversation_is_read_in_order_too() -> None:
    with remembering() as memory:
        lines = [{"content": f"line {n}", "speaker": "Jo", "session_id": "s1"} for n in range(5)]
        done = memory.add_many(lines, user_id="alice")
        assert texts(memory.messages(done[2].id, user_id="alice", around=1)) == ["line 1", "line 2", "line 3"]
        assert texts(memory.session("s1", user_id="alice")) == [f"line {n}" for n in range(5)]


def test_a_message_of_another_task_is_not_among_those_around() -> None:
    with remembering() as memory:
        memory.add("Always answer in tables.", user_id="alice", session_id="s1")
        memory.add("Call me Jo.", user_id="alice", session_id="s1", task="audit")
        wish = record(memory, "Always answer in tables.")
        assert texts(memory.messages(wish.id, around=9)) == ["Always answer in tables."]


def test_what_a_model_read_leads_to_the_message_that_holds_its_words() -> None:
    reply = json.dumps([{"content": "the release is on Friday", "kind": "domain-facts"}])
    with remembering(llm=ScriptedModel(script=[reply])) as memory:
        memory.add(
            [Message("user", "It rains."), Message("user", "Well, the release is on Friday, they say.")],
            user_id="alice",
            session_id="s1",
        )
        found = record(memory, "the release is on Friday")
        assert texts(memory.messages(found.id, around=0)) == ["Well, the release is on Friday, they say."]


def test_a_message_and_what_was_read_from_it_are_of_one_commit() -> None:
    with remembering() as memory:
        (result,) = memory.add("Always answer in tables.", user_id="alice", session_id="s1")
        kept = memory.backend.list(Filter(user_id="alice", families=(SESSION_FAMILY,)), limit=9)
        assert [message.id for message in kept] == [memory.get(result.id).ref_id]


def test_who_read_which_messages_is_in_the_access_log() -> None:
    with remembering() as memory:
        memory.add(TALK, user_id="alice", session_id="s1")
        wish = record(memory, "Always answer in tables.")
        said = memory.messages(wish.id, user_id="alice", around=1)
        memory.session("s1", user_id="alice")
        rows = [(row.op, row.record_id) for row in memory.backend.audit.accesses(50)]
        seen = [record_id for op, record_id in rows if op == "messages"]
        assert seen == [wish.id, *(message.id for message in said)]
        assert [op for op, _ in rows].count("session") == len(TALK)


@every_case("around", [-1, 0.5, True, None])
def test_around_is_a_number_of_messages(around: Any) -> None:
    with remembering() as memory, pytest.raises(InvalidContent):
        memory.messages("any", around=around)


def test_both_worlds_read_the_same() -> None:
    with remembering() as memory:
        memory.add(TALK, user_id="alice", session_id="s1")
        wish = record(memory, "Always answer in tables.")

        async def read() -> tuple[Any, ...]:
            return (
                await memory.atopics(user_id="alice"),
                await memory.amessages(wish.id),
                await memory.asession("s1", user_id="alice"),
            )

        assert asyncio.run(read()) == (
            memory.topics(user_id="alice"),
            memory.messages(wish.id),
            memory.session("s1", user_id="alice"),
        )
