"""Our records as items of a LangGraph store: what is put, how long it lives, and what is refused."""

import json
from typing import Any

import pytest
from langgraph.store.base import PutOp

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.store import MemoryStore, label_for
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case
from tests.host.store.conftest import ADA, BOB, keys, value_at


@pytest.mark.parametrize(
    "value",
    [
        {"content": " Likes green tea "},
        {"kind": "Memory", "content": {"content": "Likes green tea"}, "more": 1},
    ],
)
def test_what_is_put_for_a_user_is_found_in_memory(
    store: MemoryStore, memory: SupervisorMemory, value: dict[str, Any]
) -> None:
    store.put(ADA, "k", value)
    assert value_at(store, ADA, "k") == value
    (hit,) = memory.search("who likes tea?", user_id="ada@x.com")
    assert hit.record.content == "Likes green tea"
    assert not memory.search("who likes tea?", user_id="bob")


def test_a_third_label_is_a_task(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put((*ADA, "trip"), "k", {"content": "the train leaves at nine"})
    assert not memory.search("train", user_id="ada@x.com")
    assert len(memory.search("train", user_id="ada@x.com", task="trip")) == 1


def test_any_json_value_comes_back_and_is_found_by_its_words(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    value = {"a": [1, None, {"b": "caf\u00e9 \x00 \x7f"}], "content": "", "n": 1.5, "dotted.name": True}
    store.put(ADA, "k", value)
    store.put(ADA, "empty", {})
    assert value_at(store, ADA, "k") == value
    assert value_at(store, ADA, "empty") == {}
    assert len(memory.search("café", user_id="ada@x.com")) == 1


def test_what_memory_wrote_is_an_item_with_its_id_as_key(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write(
        "GMV excludes refunds", user_id="ada@x.com", kind="domain-facts", metadata={"tags": ["kpi"], "row": 7}
    ).id
    (item,) = store.search(("domain_facts", label_for("ada@x.com")))
    assert item.key == id_
    assert item.value["kind"] == "Memory"
    assert item.value["content"] == {"content": "GMV excludes refunds"}
    beside = item.value["supervisor_memory"]
    assert (beside["kind"], beside["tags"], beside["metadata"]["row"]) == ("domain-facts", ["kpi"], 7)
    json.dumps(item.dict())


def test_a_foreign_put_changes_the_text_and_keeps_the_rest(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write(
        "GMV excludes refunds", user_id="ada@x.com", kind="domain-facts", metadata={"tags": ["kpi"], "row": 7}
    ).id
    before = memory.get(id_)
    namespace = ("domain_facts", label_for("ada@x.com"))
    store.put(namespace, id_, {"kind": "Memory", "content": {"content": "GMV includes refunds"}})
    after = memory.get(id_)
    assert after.content == "GMV includes refunds"
    assert (after.kind, after.tags, after.source, after.importance, after.created_at) == (
        *(before.kind, before.tags, before.source, before.importance, before.created_at),
    )
    assert after.metadata["row"] == 7
    assert after.version == before.version + 1
    assert [old.content for old in memory.history(id_)] == ["GMV excludes refunds", "GMV includes refunds"]
    value = value_at(store, namespace, id_)
    assert value["content"] == {"content": "GMV includes refunds"}
    assert value["supervisor_memory"]["metadata"]["row"] == 7
    assert len(memory.get_all(user_id="ada@x.com")) == 1


def test_what_memory_updates_the_store_shows(store: MemoryStore, memory: SupervisorMemory) -> None:
    values: dict[str, dict[str, Any]] = {
        "flat": {"content": "likes tea", "n": 1},
        "nested": {"kind": "Memory", "content": {"content": "likes cake", "n": 1}},
        "other": {"n": 1},
    }
    for key, value in values.items():
        store.put(ADA, key, value)
        memory.update(Address(ADA, key).id, content=f"new {key}", user_id="ada@x.com")
    assert value_at(store, ADA, "flat") == {"content": "new flat", "n": 1}
    assert value_at(store, ADA, "nested") == {"kind": "Memory", "content": {"content": "new nested", "n": 1}}
    assert value_at(store, ADA, "other") == {"n": 1, "content": "new other"}


def test_an_item_that_lost_its_key_gets_it_back_with_the_next_put(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    memory.update(Address(ADA, "k").id, metadata={"a": 1}, merge=False)
    assert store.get(ADA, "k") is None
    store.put(ADA, "k", {"content": "likes coffee"})
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}
    assert len(memory.get_all(user_id="ada@x.com")) == 1


def test_equal_values_may_stand_under_different_keys(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "a", {"content": "likes tea"})
    store.put(ADA, "b", {"content": "Likes tea."})
    store.batch([PutOp(ADA, key, {"same": 1}) for key in "cdefg"])
    assert value_at(store, ADA, "a") == {"content": "likes tea"}
    assert value_at(store, ADA, "b") == {"content": "Likes tea."}
    assert len(store.search(ADA)) == 7
    assert memory.get(Address(ADA, "b").id).layer == "history"
    store.delete(ADA, "a")
    store.put(ADA, "b", {"content": "Likes tea."})
    assert memory.get(Address(ADA, "b").id).layer == "abstract"


def test_a_deleted_item_is_gone_and_its_history_stays(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    store.delete(ADA, "k")
    store.delete(ADA, "never there")
    assert store.get(ADA, "k") is None
    assert store.search(ADA) == []
    assert store.list_namespaces() == []
    id_ = Address(ADA, "k").id
    assert [old.status for old in memory.history(id_)] == ["active", "deleted"]
    store.put(ADA, "k", {"content": "likes coffee"})
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}
    assert memory.get(id_).version == 3


def test_memory_deletes_what_was_put(store: MemoryStore, memory: SupervisorMemory) -> None:
    for namespace in (ADA, (*ADA, "t"), (*ADA, "t", "deep", "er"), (*ADA, "zero\u200bwidth")):
        store.put(namespace, "k", {"content": "likes tea"})
    store.put(BOB, "k", {"content": "likes tea"})
    memory.delete_all(user_id="ada@x.com", confirm=True)
    assert [item.namespace for item in store.search(())] == [BOB]


def test_an_item_lives_its_minutes_after_it_was_last_read(store: MemoryStore, clock: FixedClock) -> None:
    store.put(ADA, "k", {"content": "likes tea"}, ttl=10)
    store.put(ADA, "for ever", {"content": "likes cake"})
    for _ in range(3):
        clock.now += 9 * 60
        assert store.get(ADA, "k") is not None
    clock.now += 9 * 60
    assert len(store.search(ADA)) == 2
    clock.now += 9 * 60
    assert store.get(ADA, "k", refresh_ttl=False) is not None
    clock.now += 2 * 60
    assert store.get(ADA, "k") is None
    assert keys(store.search(ADA)) == ["for ever"]
    store.put(ADA, "k", {"content": "likes coffee"})
    clock.now += 1e6
    assert value_at(store, ADA, "k") == {"content": "likes coffee"}


def test_a_store_has_a_time_to_live_of_its_own(volatile: SupervisorMemory, clock: FixedClock) -> None:
    store = MemoryStore(volatile, ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(ADA, "k", {})
    store.put(ADA, "for ever", {}, ttl=None)
    clock.now += 9 * 60
    assert len(store.search(ADA)) == 2
    clock.now += 60
    assert keys(store.search(ADA)) == ["for ever"]
    assert store.list_namespaces() == [ADA]


@every_case("ttl", [-1, float("nan"), float("inf"), 1e300])
def test_a_time_to_live_is_a_number_of_minutes(volatile: SupervisorMemory, ttl: float) -> None:
    with pytest.raises(InvalidContent, match="minutes"):
        MemoryStore(volatile).put(ADA, "k", {}, ttl=ttl)


def test_a_burst_of_reads_is_no_burst_of_commits(volatile: SupervisorMemory, clock: FixedClock) -> None:
    store = MemoryStore(volatile)
    store.put(ADA, "k", {}, ttl=100)
    for _ in range(50):
        clock.now += 1
        store.get(ADA, "k")
    assert volatile.get(Address(ADA, "k").id).version == 1
    clock.now += 60
    store.get(ADA, "k")
    assert volatile.get(Address(ADA, "k").id).version == 2


def test_a_foreign_put_does_not_make_a_record_live_longer(
    volatile: SupervisorMemory, clock: FixedClock
) -> None:
    store = MemoryStore(volatile)
    id_ = volatile.write("likes tea", user_id="bob", family="memories", metadata={"ttl": 600}).id
    store.put(BOB, id_, {"content": "likes coffee"})
    assert volatile.get(id_).expires_at == clock.now + 600
    store.put(BOB, id_, {"content": "likes coffee"}, ttl=1)
    assert volatile.get(id_).expires_at == clock.now + 60


@every_case(
    "value",
    [
        {"a": object()},
        {"a": float("nan")},
        {"a": "\ud800"},
        {1: "a"},
        {"a": {2: 3}},
        ["a"],
        "a",
        {"a": {1, 2}},
    ],
)
def test_a_value_that_json_cannot_hold_is_refused(store: MemoryStore, value: Any) -> None:
    with pytest.raises(InvalidContent, match="put a dictionary"):
        store.put(ADA, "k", value)
    assert store.get(ADA, "k") is None


def test_a_value_that_goes_round_in_circles_is_refused(store: MemoryStore) -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(InvalidContent):
        store.put(ADA, "k", value)


def test_a_key_that_is_no_text_of_unicode_is_refused(store: MemoryStore) -> None:
    assert store.get(ADA, "\ud800") is None
    with pytest.raises(InvalidContent):
        store.put(ADA, "\ud800", {})


def test_a_value_that_is_too_large_is_refused(store: MemoryStore) -> None:
    with pytest.raises(ContentTooLarge, match="split it"):
        store.put(ADA, "k", {"content": "x" * 70_000})
    with pytest.raises(ContentTooLarge, match="split it"):
        store.put(ADA, "k", {"rows": list(range(30_000))})


def test_every_change_is_audited_without_its_words(store: MemoryStore, memory: SupervisorMemory) -> None:
    store.put(ADA, "k", {"content": "likes tea"})
    store.put(ADA, "k", {"content": "likes coffee"})
    store.put(ADA, "twin", {"content": "likes coffee"})
    store.delete(ADA, "k")
    rows = [row.event for row in memory.backend.audit.tail(100) if str(row.event["op"]).startswith("store.")]
    told = [(row["op"], row["reason"], row["version_before"], row["version_after"]) for row in rows]
    assert sorted(told, key=str) == sorted(
        [
            ("store.put", "", None, 1),
            ("store.put", "", 1, 2),
            ("store.put", "verbatim", None, 1),
            ("store.delete", "", 2, 3),
        ],
        key=str,
    )
    assert {row["actor"] for row in rows} == {"store"}
    assert "coffee" not in str(rows)
