"""Sessions are listed, named, closed and erased; another user's are out of reach."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import (
    ConfirmationRequired,
    InvalidContent,
    InvalidName,
    RecordNotFound,
    WasErased,
)
from supervisor_memory.model.records import Filter, Scope
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.sessions import LINES, UNTIL, states_of
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.upkeep.automatic import Digests
from supervisor_memory.upkeep.sessions import keep_state
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


def memory_over(backend: MemoryBackend, **settings: Any) -> SupervisorMemory:
    given = {"embedding_model": "none", "queue_worker": False, **settings}
    return SupervisorMemory(
        Settings(**given), backend=backend, clock=FixedClock(MONDAY), embedder=HashingEmbedder()
    )


def forward(memory: SupervisorMemory, *, days: float) -> None:
    memory.services.clock.forward(days=days)  # type: ignore[attr-defined]


def say(memory: SupervisorMemory, text: str, session: str, *, user: str = "ada") -> None:
    memory.add(text, user_id=user, session_id=session)
    forward(memory, days=1 / 1440)


def everything(backend: MemoryBackend, user: str = "ada") -> list[str]:
    return [
        record.content
        for where in Filter(user, statuses=None).everywhere()
        for record in backend.list(where, limit=10_000)
    ]


def test_sessions_are_listed_newest_first_and_page_by_page(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    for number in range(5):
        say(memory, f"Hello number {number}", f"t{number}", user=("ada", "bo")[number % 2])
    say(memory, "Hello again", "t0")
    desk = memory.sessions
    assert [row.session_id for row in desk.list()] == ["t0", "t4", "t3", "t2", "t1"]
    assert [(row.session_id, row.messages) for row in desk.list(user_id="ada")] == [
        ("t0", 2),
        ("t4", 1),
        ("t2", 1),
    ]
    first = desk.list(limit=2)
    assert [row.session_id for row in desk.list(limit=9, after=first[-1].cursor)] == ["t3", "t2", "t1"]
    assert [row.session_id for row in desk.list(since=MONDAY + 200)] == ["t0", "t4"]
    with pytest.raises(InvalidContent, match="cursor"):
        desk.list(after="no cursor")


def test_a_session_is_named_closed_and_opened_again_by_a_message(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "We go to Rome in May.", "t1")
    assert memory.sessions.rename("t1", "  The   trip ", user_id="ada").name == "The trip"
    closed = memory.sessions.close("t1", user_id="ada")
    forward(memory, days=1)
    again = memory.sessions.close("t1", user_id="ada")
    assert (closed.status, again.closed_at) == ("closed", closed.closed_at)
    say(memory, "One more thing about Rome.", "t1")
    assert memory.sessions.get("t1", user_id="ada").status == "open"
    assert memory.sessions.close("t1", user_id="ada").closed_at == MONDAY + DAY + 120
    assert backend.count(states_of("ada")) == 1
    with pytest.raises(InvalidContent):
        memory.sessions.rename("t1", "  ", user_id="ada")


def test_two_processes_that_close_and_name_a_session_at_once_lose_nothing(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as first, closing(SqliteBackend(tmp_path)) as second:
        one, other = memory_over(first), memory_over(second)
        for number in range(10):
            session = f"t{number}"
            say(one, "We go to Rome in May.", session)
            acts = (
                lambda s=session: one.sessions.close(s, user_id="ada"),
                lambda s=session: other.sessions.close(s, user_id="ada"),
                lambda s=session: other.sessions.rename(s, "The trip", user_id="ada"),
            )
            threads = [threading.Thread(target=act) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            row = one.sessions.get(session, user_id="ada")
            assert (row.name, row.status) == ("The trip", "closed")
            assert len(first.list(states_of("ada", session), limit=9)) == 1


def test_a_session_that_ends_by_a_clock_that_was_set_back_is_closed(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    memory.add("Said in the future.", user_id="ada", session_id="t1", created_at=MONDAY + 9 * DAY)
    assert memory.sessions.close("t1", user_id="ada").status == "closed"


def test_what_is_said_after_a_closing_by_a_clock_that_was_ahead_opens_a_session_and_is_digested_and_told(
    backend: MemoryBackend,
) -> None:
    memory = memory_over(backend)
    scope = Scope("ada", session_id="t1")
    memory.remember([("user", "Find out why the export fails."), ("assistant", "Row 7 has a tab.")], scope)
    forward(memory, days=10)
    assert memory.sessions.close("t1", user_id="ada").status == "closed"
    assert memory.flush()
    forward(memory, days=-9.9)
    said = [("user", "Quote the fields then."), ("assistant", "The dealer import has not been tested yet.")]
    memory.remember(said, scope)
    assert memory.sessions.get("t1", user_id="ada").status == "open"
    asked = Scope("ada", session_id="t2")
    assert "not been tested yet" in memory.recall([("user", "Where were we?")], asked).text
    assert memory.sessions.close("t1", user_id="ada").status == "closed"
    assert memory.flush()
    assert "not been tested yet" in memory.sessions.digest(user_id="ada", session_id="t1")


def test_messages_of_a_clock_that_was_put_back_since_are_told_and_digested_in_the_background(
    backend: MemoryBackend,
) -> None:
    memory = memory_over(backend)
    scope, found = Scope("ada", session_id="t1"), Digests(memory.services)
    forward(memory, days=10)
    memory.remember([("user", "Find out why the export fails."), ("assistant", "Row 7 has a tab.")], scope)
    say(memory, "Count the badges of floor 2.", "t0")
    assert memory.flush()
    assert found.flush(seconds=9.0, user_id="ada")
    forward(memory, days=-9)
    said = [("user", "Quote the fields then."), ("assistant", "The dealer import has not been tested yet.")]
    memory.remember(said, scope)
    asked = Scope("ada", session_id="t2")
    assert "not been tested yet" in memory.recall([("user", "Back to the export")], asked).text
    assert found.flush(seconds=9.0, user_id="ada")
    assert "not been tested yet" in memory.sessions.digest(user_id="ada", session_id="t1")


@pytest.mark.parametrize("name", [None, "", " "])
def test_what_is_no_name_is_no_session(backend: MemoryBackend, name: Any) -> None:
    memory = memory_over(backend)
    say(memory, "Ada's words.", "t1")
    desk = memory.sessions
    for act in (desk.get, desk.messages, desk.close, partial(desk.erase, confirm=True)):
        with pytest.raises(InvalidName, match="session id"):
            act(name, user_id="ada")
    assert len(desk.messages("t1", user_id="ada")) == 1


def test_another_users_session_is_not_there(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "Ada's words.", "t1")
    desk = memory.sessions
    for act in (
        desk.get,
        desk.messages,
        desk.close,
        lambda s, user_id: desk.rename(s, "Mine", user_id=user_id),
    ):
        with pytest.raises(RecordNotFound, match="nothing is kept of session 't1' of user 'bo'"):
            act("t1", user_id="bo")
    with pytest.raises(RecordNotFound):
        desk.erase("t1", user_id="bo", confirm=True)
    assert desk.get("t1", user_id="ada").name is None


def test_messages_are_rows_with_role_parent_and_number(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    memory.add(
        [
            ("user", "Which orders are late?"),
            {"role": "assistant", "name": "sql", "content": "Twelve of them."},
        ],
        user_id="ada",
        session_id="t1",
    )
    first, second = memory.sessions.messages("t1", user_id="ada")
    assert (first.role, first.sequence, first.parent_id, first.type) == ("user", 1, None, "text")
    assert (second.role, second.sequence, second.parent_id, second.agent_id) == (
        "assistant",
        2,
        first.id,
        "sql",
    )
    assert second.content == "Twelve of them."
    assert [row.id for row in memory.sessions.agents()] == ["sql"]
    assert [(row.id, row.sessions, row.messages) for row in memory.sessions.users()] == [("ada", 1, 2)]


def test_users_and_agents_are_counted_page_by_page(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    for number in range(3):
        say(memory, f"Hello number {number}", f"t{number}", user=f"user{number}")
    first, *_ = memory.sessions.users(limit=1)
    rest = memory.sessions.users(after=first.cursor)
    assert [row.id for row in (first, *rest)] == ["user2", "user1", "user0"]
    assert memory.sessions.agents(user_id="user1") == ()
    with pytest.raises(InvalidContent, match="cursor"):
        memory.sessions.agents(after=memory.sessions.list()[0].cursor)
    with pytest.raises(InvalidContent, match="limit"):
        memory.sessions.users(limit=0)


def test_erasing_a_session_takes_what_only_it_said(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "From now on use tables for all reports.", "t1")
    say(memory, "Delayed means 15 minutes.", "t1")
    say(memory, "Delayed means 15 minutes.", "t2")
    say(memory, "I prefer green tea.", "t3")
    memory.sessions.rename("t1", "Reports", user_id="ada")
    with pytest.raises(ConfirmationRequired) as asked:
        memory.sessions.erase("t1", user_id="ada")
    assert asked.value.facts["held"] == {"records": 4, "kept": 1}
    receipt = memory.sessions.erase("t1", user_id="ada", confirm=True)
    assert (receipt.session_id, receipt.removed["records"], receipt.pending) == ("t1", 4, ())
    assert sorted(set(everything(backend))) == ["Delayed means 15 minutes.", "I prefer green tea."]
    (fact,) = memory.search(
        "what does delayed mean?", user_id="ada", threshold=0, where={"kind": "domain-facts"}
    )
    assert fact.record.ref_id == memory.sessions.messages("t2", user_id="ada")[0].id
    assert fact.record.source.session_id in (None, "t2")
    assert len(memory.history(fact.record.id)) == 1
    assert not memory.audit.verify().problems
    with pytest.raises(RecordNotFound):
        memory.sessions.get("t1", user_id="ada")


def test_the_words_that_replaced_others_go_with_their_session(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "Delayed means 15 minutes.", "t1")
    say(memory, "Delayed means 20 minutes.", "t2")
    memory.sessions.erase("t1", user_id="ada", confirm=True)
    assert not any("15" in text for text in everything(backend))
    (fact,) = (record for record in memory.get_all(user_id="ada") if "20" in record.content)
    assert [version.content for version in memory.history(fact.id)] == ["Delayed means 20 minutes."]
    memory.sessions.erase("t2", user_id="ada", confirm=True)
    assert everything(backend) == []
    assert not memory.audit.verify().problems


def test_a_turn_of_an_erased_session_does_not_come_back(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    scope = Scope("ada", session_id="t1")
    memory.remember([("user", "Delayed means 15 minutes.")], scope, turn_id="m1")
    memory.sessions.erase("t1", user_id="ada", confirm=True)
    memory.remember([("user", "Delayed means 15 minutes.")], scope, turn_id="m1")
    assert everything(backend) == []
    memory.remember([("user", "Delayed means 30 minutes.")], scope, turn_id="m2")
    assert set(everything(backend)) == {"Delayed means 30 minutes."}


def test_a_digest_is_erased_with_its_session(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "We chose the Ritz in Rome.", "t1")
    lines = [["decided", "m1", "We chose the Ritz in Rome."]]
    keep_state(
        Scope("ada", session_id="t1"),
        lambda: memory.services.ports(5_000),
        lambda s: replace(
            s, content="Decided: the Ritz.", metadata={**s.metadata, UNTIL: MONDAY, LINES: lines}
        ),
        reason="test",
        actor="operator",
    )
    assert memory.sessions.get("t1", user_id="ada").is_digested
    memory.sessions.erase("t1", user_id="ada", confirm=True)
    assert not any("Ritz" in text for text in everything(backend))


@pytest.mark.parametrize("name", ["json", "sqlite"])
def test_no_byte_of_an_erased_session_is_left_in_the_files(name: str, tmp_path: Path) -> None:
    with opened(name, tmp_path) as backend:
        memory = memory_over(backend, llm=None)
        say(memory, "The password of the xylophone is quetzalcoatl.", "t-secret")
        say(memory, "I prefer green tea.", "t2")
        memory.sessions.rename("t-secret", "Zanzibar plans", user_id="ada")
        forward(memory, days=1)
        assert memory.flush()
        assert memory.sessions.get("t-secret", user_id="ada").is_digested
        assert "xylophone" in str(memory.timeline(user_id="ada", with_said=True)).lower()
        memory.search("xylophone", user_id="ada")
        memory.sessions.erase("t-secret", user_id="ada", confirm=True)
        memory.close()
    held = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"green tea" in held
    for word in (b"quetzalcoatl", b"xylophone", b"Zanzibar", b"t-secret"):
        assert word not in held.lower().replace(b"zanzibar", b"Zanzibar"), word


def test_late_words_of_an_erased_session_are_refused(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "Delayed means 15 minutes.", "t1")
    (message,) = memory.session("t1", user_id="ada")
    memory.sessions.erase("t1", user_id="ada", confirm=True)
    with pytest.raises(WasErased):
        backend.write([message])


def test_async_twins_say_the_same(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "Hello there", "t1")

    async def look() -> Any:
        return await memory.sessions.alist(), await memory.sessions.aget("t1", user_id="ada")

    rows, row = asyncio.run(look())
    assert list(rows) == [row] == list(memory.sessions.list())


def test_all_of_a_session_an_agent_or_a_kind_is_deleted_at_once(backend: MemoryBackend) -> None:
    memory = memory_over(backend)
    say(memory, "Delayed means 15 minutes.", "t1")
    say(memory, "I prefer green tea.", "t2")
    memory.write("The export took 4 minutes.", user_id="ada", agent_id="sql")
    with pytest.raises(ConfirmationRequired, match="would delete 2 records"):
        memory.delete_all(user_id="ada", where={"session": "t1"})
    assert memory.delete_all(user_id="ada", where={"session": "t1"}, confirm=True) == 2
    assert [row.session_id for row in memory.sessions.list()] == ["t2"]
    assert memory.delete_all(user_id="ada", where={"agent": "sql"}, confirm=True) == 1
    assert memory.delete_all(user_id="ada", where={"kind": "user-profile"}, confirm=True) == 1
    assert memory.get_all(user_id="ada") == []
    assert len(memory.session("t2", user_id="ada")) == 1
    with pytest.raises(InvalidContent, match="asks for nothing"):
        memory.delete_all(user_id="ada", where={}, confirm=True)
