"""A session that has ended gets one digest, whoever looks; what may not be told leaves it."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, RecordNotFound
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Record
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Incomplete, MemoryBackend, SessionRow
from supervisor_memory.stores.sessions import CLOSED_AT
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from supervisor_memory.upkeep.automatic import Digests
from supervisor_memory.upkeep.digest import digesting
from supervisor_memory.upkeep.sessions import keep_state, keep_states
from tests.breadth import size
from tests.cases import every_case
from tests.opened import IN_PROCESS, opened

EXPORT = (
    ("user", "The nightly export of the parts catalogue fails. Find out why."),
    ("assistant", "It stops at row 88,120: a supplier name has a tab in it."),
    ("user", "Quote the fields then."),
    ("assistant", "I quoted all text fields. The dealer import has not been tested yet."),
)
DIGESTS = Filter(families=(DIGEST_FAMILY,))
FIRST = Scope("ada", session_id="s1")


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


def memory_over(backend: MemoryBackend | None = None, **given: Any) -> SupervisorMemory:
    model, clock = given.pop("llm", None), given.pop("clock", None) or FixedClock()
    return SupervisorMemory(
        Settings(**{"embedding_model": "none", **given}), backend=backend, clock=clock, llm=model
    )


def later(memory: SupervisorMemory, seconds: float = 3_600.0) -> None:
    memory.services.clock.forward(days=seconds / 86_400)  # type: ignore[attr-defined]


def digests(memory: SupervisorMemory) -> list[Record]:
    return sorted(memory.backend.list(DIGESTS, limit=99), key=lambda each: each.attribute or "")


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def test_a_session_that_is_quiet_gets_one_digest_of_what_was_said(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    assert memory.flush()
    assert digests(memory) == []
    later(memory)
    assert memory.flush()
    [made] = digests(memory)
    assert memory.flush()
    assert digests(memory) == [made]
    assert (made.layer, made.subject, made.attribute, made.version) == ("summary", "session", "s1", 1)
    assert "Open: The dealer import has not been tested yet." in made.content
    said = {each.id: each.content for each in memory.session("s1", user_id="ada") if each.layer == "history"}
    assert all(text in said[id_] for _, id_, text in made.metadata["lines"])
    assert made.ref_id in said
    assert not memory.audit.verify().problems


def test_a_session_that_was_followed_by_another_is_digested_in_the_background(tmp_path: Path) -> None:
    with memory_over(SqliteBackend(tmp_path)) as memory:
        memory.remember([*EXPORT], FIRST)
        later(memory, 60)
        memory.remember([("user", "Which floor has most badges?")], Scope("ada", session_id="s2"))
        assert eventually(lambda: len(digests(memory)) == 1)
        assert [each.attribute for each in digests(memory)] == ["s1"]


def test_sessions_that_end_within_a_second_are_digested_in_one_look_unless_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Filter] = []

    class Counting(SqliteBackend):
        def sessions(self, where: Filter, **page: Any) -> Sequence[SessionRow]:
            looks.append(where)
            return super().sessions(where, **page)

    monkeypatch.setattr(Digests, "pause", 600.0)
    with memory_over(Counting(tmp_path)) as memory:
        for number in range(4):
            memory.remember([*EXPORT], Scope("ada", session_id=f"s{number}"))
            later(memory, 60)
        assert (digests(memory), looks) == ([], [])
    with memory_over(SqliteBackend(tmp_path), queue_worker=False) as memory:
        assert [each.attribute for each in digests(memory)] == ["s0", "s1", "s2"]
        assert [where.user_id for where in looks] == ["ada"]


def test_a_session_is_digested_once_it_is_closed_by_hand(tmp_path: Path) -> None:
    with memory_over(SqliteBackend(tmp_path)) as memory:
        memory.remember([*EXPORT], FIRST)
        assert eventually(lambda: bool(memory.sessions.list(user_id="ada")))
        assert digests(memory) == []
        memory.sessions.close("s1", user_id="ada")
        assert eventually(lambda: len(digests(memory)) == 1)


def test_a_closed_session_is_digested_and_one_that_goes_on_later_as_well(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    now = memory.services.clock()
    end = lambda state: None if CLOSED_AT in state.metadata else replaced(state, **{CLOSED_AT: now + 1})  # noqa: E731
    keep_state(FIRST, lambda: memory.services.ports(9_000), end, reason="test", actor="operator")
    assert memory.flush()
    [first] = digests(memory)
    assert "dealer import" in first.content
    later(memory, 60)
    memory.remember(
        [("user", "We take tabs out of names."), ("assistant", "Tabs are taken out of 31 names.")], FIRST
    )
    later(memory)
    assert memory.flush()
    [second] = digests(memory)
    assert second.id == first.id
    assert "We take tabs out of names." in second.content
    assert "Quote the fields then." in second.content
    assert second.metadata[CLOSED_AT] == now + 1


def replaced(state: Record, **metadata: Any) -> Record:
    return replace(state, metadata={**state.metadata, **metadata})


DAY = 86_400.0


def test_a_day_is_told_by_the_digests_of_its_sessions(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    start = memory.services.clock()
    memory.add([*EXPORT], user_id="ada", session_id="s1")
    later(memory, DAY)
    tested = ("user", "What is left of it?"), ("assistant", "I tested the dealer import.")
    memory.add([*tested], user_id="ada", session_id="s2")
    memory.add("The xylophone is out of tune; have it repaired.", user_id="bo", session_id="s1")
    later(memory)
    assert memory.flush()
    told = memory.sessions.digest
    assert "Open: The dealer import has not been tested yet." in told(user_id="ada", until=start + 9)
    assert "Open" not in (day := told(user_id="ada", since=start + DAY))
    assert "Done: I tested the dealer import." in day
    both = told(user_id="ada")
    assert "tab in it" in both
    assert "has not been tested" not in both  # the later session did it
    assert "xylophone" not in both
    assert told(user_id="ada", session_id="s1") == told(user_id="ada", until=start + 9)
    [message] = [each for each in memory.session("s1", user_id="ada") if "tab in it" in each.content]
    memory.delete(message.id, user_id="ada")
    assert "tab in it" not in told(user_id="ada")
    assert told(user_id="cy") == ""


def test_a_topic_is_told_by_its_records(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    rules = ["Round revenue to thousands.", "Show revenue in euros."]
    for rule in rules:
        memory.write(rule, user_id="ada", kind="domain-facts", metadata={"target": "revenue"})
    memory.write(
        "The export runs at night.", user_id="ada", kind="domain-facts", metadata={"target": "export"}
    )
    [topic] = [each for each in memory.topics(user_id="ada") if each.target == "revenue"]
    told = memory.summarize(topic.ids, goal=topic.target, user_id="ada")
    assert all(rule in told for rule in rules)
    assert "export" not in told


def test_small_talk_leaves_no_digest_and_no_setting_makes_any(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([("user", "hi"), ("assistant", "Hello!")], FIRST)
    off = memory_over(backend, queue_worker=False, session_quiet=0)
    off.remember([*EXPORT], Scope("ada", session_id="s2"))
    later(memory)
    later(off)
    assert off.flush()
    assert digests(off) == []
    assert memory.flush()
    assert [each.attribute for each in digests(memory)] == ["s2"]


def test_what_was_retracted_or_deleted_leaves_the_digest(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    later(memory)
    assert memory.flush()
    said = memory.backend.list(Filter("ada", families=(SESSION_FAMILY,)), limit=99)
    [quoted] = [each for each in said if "Quote the fields" in each.content]
    memory.delete(quoted.id)
    assert memory.flush()
    [left] = digests(memory)
    assert "Quote the fields" not in left.content
    assert "dealer import" in left.content


def test_a_digest_whose_messages_were_deleted_or_never_came_is_deleted(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    later(memory)
    assert memory.flush()
    assert len(digests(memory)) == 1
    for each in memory.backend.list(Filter("ada", families=(SESSION_FAMILY,)), limit=99):
        memory.delete(each.id)
    assert memory.flush()
    assert digests(memory) == []
    digested = lambda state: replaced(state, until=memory.services.clock(), lines=[])  # noqa: E731
    scope = Scope("ada", session_id="elsewhere")
    keep_state(scope, lambda: memory.services.ports(9_000), digested, reason="test", actor="operator")
    assert memory.flush()
    assert [each.attribute for each in digests(memory)] == ["elsewhere"]
    later(memory, 4_000)
    assert memory.flush()
    assert digests(memory) == []


def test_a_session_without_an_abstract_record_is_found_by_its_summary_and_not_otherwise(
    backend: MemoryBackend,
) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    later(memory)
    assert memory.flush()
    assert memory.get_all(user_id="ada") == []
    asked = "why does the parts catalogue export fail"
    assert not memory.search(asked, user_id="ada", layers=["abstract"])
    [hit] = memory.search(asked, user_id="ada", layers=["abstract", "summary"])
    assert hit.record.family == DIGEST_FAMILY


def test_two_processes_make_one_digest(tmp_path: Path) -> None:
    clock = FixedClock()
    with memory_over(SqliteBackend(tmp_path), clock=clock, queue_worker=False) as memory:
        for n in range(20):
            memory.remember([*EXPORT], Scope("ada", session_id=f"s{n}"))
        later(memory)
        others = [memory_over(SqliteBackend(tmp_path), clock=clock, queue_worker=False) for _ in range(3)]
        threads = [threading.Thread(target=each.flush) for each in (memory, *others)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for other in others:
            other.close()
        made = digests(memory)
        assert sorted(each.attribute or "" for each in made) == sorted(f"s{n}" for n in range(20))
        assert {each.version for each in made} == {1}


def test_a_user_who_is_erased_while_sessions_are_digested_leaves_nothing(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    memory.remember([*EXPORT[:2]], Scope("ada", session_id="s2"))
    later(memory)

    def erased_first(*args: Any, **options: Any) -> Sequence[Record]:
        memory.erase(user_id="ada", confirm=True)
        return keep_states(*args, **options)

    monkeypatch.setattr("supervisor_memory.upkeep.digest.keep_states", erased_first)
    list(digesting(memory.services, "ada", small_talk={}))
    assert digests(memory) == []
    assert memory.backend.count(Filter("ada", statuses=None, families=(DIGEST_FAMILY,))) == 0


def test_digests_are_kept_in_one_commit_but_for_a_session_erased_meanwhile(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_over(backend, queue_worker=False)
    for name in ("s1", "s2", "s3"):
        memory.remember([*EXPORT], Scope("ada", session_id=name))
    later(memory)
    tried: list[int] = []

    def erased_first(*args: Any, **options: Any) -> Sequence[Record]:
        asked = [*args[0]]
        tried.append(len(asked))
        memory.sessions.erase("s2", user_id="ada", confirm=True)
        return keep_states(asked, *args[1:], **options)

    monkeypatch.setattr("supervisor_memory.upkeep.digest.keep_states", erased_first)
    list(digesting(memory.services, "ada", small_talk={}))
    assert tried == [3]
    assert {each.attribute for each in digests(memory)} == {"s1", "s3"}
    memory.remember([*EXPORT[:2]], Scope("ada", session_id="s4"))
    memory.remember([("user", "Draft the minutes of the fleet meeting.")], Scope("ada", session_id="s5"))
    later(memory)
    monkeypatch.undo()
    monkeypatch.delattr("supervisor_memory.upkeep.digest.keep_state")  # none is kept by itself
    list(digesting(memory.services, "ada", small_talk={}))
    assert {each.attribute for each in digests(memory)} == {"s1", "s3", "s4", "s5"}


def test_a_session_that_is_erased_while_it_is_digested_leaves_nothing(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([*EXPORT], FIRST)
    later(memory)

    def erased_first(*args: Any, **options: Any) -> Record | None:
        memory.sessions.erase("s1", user_id="ada", confirm=True)
        return keep_state(*args, **options)

    monkeypatch.setattr("supervisor_memory.upkeep.digest.keep_state", erased_first)
    list(digesting(memory.services, "ada", small_talk={}))
    assert memory.backend.count(Filter("ada", statuses=None, families=(DIGEST_FAMILY, SESSION_FAMILY))) == 0


def test_a_session_of_one_message_is_digested(backend: MemoryBackend) -> None:
    memory = memory_over(backend, queue_worker=False)
    memory.remember([EXPORT[0]], FIRST)
    later(memory)
    assert memory.flush()
    assert "Find out why." in digests(memory)[0].content


@pytest.mark.parametrize("words", [EXPORT, (("user", "Hello there!"), ("assistant", "Hello!"))])
def test_what_was_looked_at_once_is_not_read_at_each_further_session(words: Any, tmp_path: Path) -> None:
    read: list[str] = []

    class Watched(SqliteBackend):
        def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
            found = super().list(where, limit=limit, offset=offset)
            read.extend(each.source.session_id or "" for each in found if each.family == SESSION_FAMILY)
            return found

    def one_more(memory: SupervisorMemory, number: int) -> int:
        read.clear()
        memory.remember([*words], Scope("ada", session_id=f"s{number}"), turn_id=f"t{number}")
        memory._digests._wait(60)
        later(memory, 10)
        return len({*read} - {f"s{number}"})

    with memory_over(Watched(tmp_path)) as memory:
        others = [one_more(memory, number) for number in range(12)]
    assert max(others) <= 1  # the one before


@pytest.mark.parametrize("messages", [size(1_000, less=200), pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_long_session_is_digested(tmp_path: Path, messages: int) -> None:
    with memory_over(SqliteBackend(tmp_path), queue_worker=False) as memory:
        now = memory.services.clock()
        texts = [f"Row {n} of the export fails, it is not mended yet." for n in range(messages)]
        for start in range(0, len(texts), 500):
            some = [{"role": "user", "content": text} for text in texts[start : start + 500]]
            memory.remember(some, FIRST)
        later(memory)
        assert memory.flush(seconds=300)
        [made] = digests(memory)
        assert f"Row {messages - 1}" in made.content
        assert made.metadata["until"] >= now


def answers(*entries: tuple[str, int, str]) -> AIMessage:
    keys = ("section", "message", "content")
    return AIMessage(json.dumps([dict(zip(keys, each, strict=True)) for each in entries]))


def test_a_model_words_the_digest_and_loses_and_invents_no_number_or_name() -> None:
    script = [
        AIMessage("[]"),  # of the queue
        answers(
            ("learned", 1, "A tab in a supplier name stops the export at row 88,120."),
            ("learned", 1, "Row 99,999 is broken too."),
            ("decided", 2, "All fields are quoted."),
            ("next", 77, "Nobody said this."),
        ),
    ]
    with memory_over(llm=ScriptedModel(script=script), queue_worker=False) as memory:
        memory.remember([*EXPORT], FIRST)
        later(memory)
        list(digesting(memory.services, "ada", small_talk={}))
        [made] = digests(memory)
    assert "A tab in a supplier name stops the export at row 88,120." in made.content
    assert "99,999" not in made.content
    assert "Nobody said" not in made.content


def test_a_model_that_answers_nonsense_leaves_the_digest_to_the_rules() -> None:
    with memory_over(
        llm=ScriptedModel(script=[AIMessage("[]"), AIMessage("I would rather not.")]), queue_worker=False
    ) as memory:
        memory.remember([*EXPORT], FIRST)
        later(memory)
        list(digesting(memory.services, "ada", small_talk={}))
        [made] = digests(memory)
    assert "Decided: Quote the fields then." in made.content


def test_what_comes_late_with_an_earlier_time_is_digested_too(backend: MemoryBackend) -> None:
    with memory_over(backend) as memory:
        then = memory.services.clock() - 30 * 86_400
        for half in (EXPORT[2:], EXPORT[:2]):
            memory.add(
                [{"role": role, "content": text} for role, text in half],
                user_id="ada",
                session_id="s1",
                created_at=then,
            )
            later(memory)
            memory.flush()
        [digest] = digests(memory)
        assert "export of the parts catalogue" in digest.content
        assert "has not been tested yet" in digest.content


@every_case("unanswered", ["ref_ids", "ids"])
def test_nothing_is_digested_by_a_look_at_a_part_of_the_store(unanswered: str) -> None:
    class InParts(InMemoryBackend):
        is_whole = True

        def list(self, where: Filter, *, limit: int, offset: int = 0) -> Sequence[Record]:
            if self.is_whole or getattr(where, unanswered) is None:
                return super().list(where, limit=limit, offset=offset)
            return Incomplete()

    with memory_over(backend := InParts(), queue_worker=False) as memory:
        memory.remember([*EXPORT, ("user", "Delayed means more than 15 minutes late.")], FIRST)
        [fact] = [each for each in memory.get_all(user_id="ada") if "15 minutes" in each.content]
        later(memory)
        list(digesting(memory.services, "ada", small_talk={}))
        assert "15 minutes" in digests(memory)[0].content
        memory.remember([("user", "Tell me about the dealer import tomorrow.")], FIRST)
        memory.delete(fact.id)
        later(memory)
        before, backend.is_whole = digests(memory), False
        with pytest.raises(BackendUnavailable):
            list(digesting(memory.services, "ada", small_talk={}))
        backend.is_whole = True
        assert digests(memory) == before
        list(digesting(memory.services, "ada", small_talk={}))
        [digest] = digests(memory)
    assert "15 minutes" not in digest.content
    assert "the dealer import tomorrow" in digest.content
    assert "export of the parts catalogue" in digest.content


def test_a_session_that_is_erased_while_it_is_renamed_leaves_no_name(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory_over(backend) as memory:
        memory.remember([*EXPORT], FIRST)

        def erased_first(*args: Any, **options: Any) -> Record | None:
            memory.sessions.erase("s1", user_id="ada", confirm=True)
            return keep_state(*args, **options)

        monkeypatch.setattr("supervisor_memory.upkeep.sessions.keep_state", erased_first)
        with pytest.raises(RecordNotFound):
            memory.sessions.rename("s1", "a secret plan", user_id="ada")
        assert digests(memory) == []
