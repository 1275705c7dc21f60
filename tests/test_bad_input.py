"""What cannot be taken is refused: a typed error says what, which, what to do; nothing is written."""

import itertools
import math
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import RemoveMessage
from langgraph.store.memory import InMemoryStore

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import (
    ContentTooLarge,
    InvalidContent,
    InvalidName,
    MissingUser,
    RecordNotFound,
    SettingsError,
    SupervisorMemoryError,
)
from supervisor_memory.model.records import Filter
from tests.cases import every_case

BIG = "x" * 10_000_000
HUGE_TEXTS = {
    "letters": BIG,
    "lines": "\n" * 10_000_000,
    "sentences": "Always answer in tables. " * 400_000,
    "chinese": "以后都用表格回答。" * 1_000_000,
    "fences": '<memory id="aaaaaaaaaaaa">' * 400_000,
    "surrogates": "\ud800" * 1_000_000,
}


@pytest.fixture
def memory() -> SupervisorMemory:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write("tea is hot", user_id="u1")
    return memory


def count(memory: SupervisorMemory) -> tuple[int, int]:
    everything = (Filter(statuses=None), Filter(statuses=None, families=("session_messages",)))
    return sum(memory.backend.count(where) for where in everything), memory.backend.audit.count()


def refused(memory: SupervisorMemory, call: Callable[[], Any], error: type[Exception]) -> str:
    before = count(memory)
    began = time.monotonic()
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, SupervisorMemoryError)
    assert time.monotonic() - began < 2
    assert count(memory) == before
    message = str(raised.value)
    assert 10 < len(message) < 400
    return message


USERS: list[tuple[Any, type[Exception]]] = [
    ("", MissingUser),
    ("   ", MissingUser),
    (None, MissingUser),
    (5, MissingUser),
    (["u1"], MissingUser),
    ("null", MissingUser),
    ("u\x00", InvalidName),
    ("u\n1", InvalidName),
    ("u\u200b1", InvalidName),
    ("u\u202e1", InvalidName),
    ("u\ud800", InvalidName),
    ("e\u0301", InvalidName),
    (" u1", InvalidName),
    ("u" * 129, InvalidName),
    (BIG, InvalidName),
    (" " * 10_000_000, MissingUser),
]


@every_case(("user", "error"), USERS)
def test_a_user_id_that_could_be_mistaken_is_refused_by_every_verb(
    memory: SupervisorMemory, user: Any, error: type[Exception]
) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: memory.write("x", user_id=user),
        lambda: memory.add("Always answer in tables.", user_id=user),
        lambda: memory.add_many(["x"], user_id=user),
        lambda: memory.search("x", user_id=user),
        lambda: memory.get_all(user_id=user),
        lambda: memory.delete_all(user_id=user, confirm=True),
        lambda: Scope(user),
    ]
    if user is not None:
        calls += [
            lambda: memory.get("some-id", user_id=user),
            lambda: memory.update("some-id", content="x", user_id=user),
            lambda: memory.delete("some-id", user_id=user),
            lambda: memory.history("some-id", user_id=user),
        ]
    for call in calls:
        assert "user id" in refused(memory, call, error)


def test_no_user_at_all_is_a_mistake_python_tells(memory: SupervisorMemory) -> None:
    with pytest.raises(TypeError, match="user_id"):
        memory.write("x")  # type: ignore[call-arg]


CONTENTS: list[tuple[Any, type[Exception]]] = [
    ("", InvalidContent),
    (" \n\t ", InvalidContent),
    ("\u200b\u200d", InvalidContent),
    (None, InvalidContent),
    (5, InvalidContent),
    (b"bytes", InvalidContent),
    (["x"], InvalidContent),
    ("bell \x07", InvalidContent),
    ("esc \x1b[2J", InvalidContent),
    ("nul \x00", InvalidContent),
    ("lone \ud800", InvalidContent),
    (BIG, ContentTooLarge),
    ("表" * 30_000, ContentTooLarge),
]


@every_case(("content", "error"), CONTENTS)
def test_a_content_that_cannot_be_kept_is_refused(
    memory: SupervisorMemory, content: Any, error: type[Exception]
) -> None:
    id_ = memory.get_all(user_id="u1")[0].id
    refused(memory, lambda: memory.write(content, user_id="u1"), error)
    refused(memory, lambda: memory.add_many([content], user_id="u1"), error)
    refused(memory, lambda: memory.summarize([content]), error)
    if content is not None:
        refused(memory, lambda: memory.update(id_, content=content), error)


def test_a_decomposed_text_is_composed_and_found(memory: SupervisorMemory) -> None:
    id_ = memory.write("le cafe\u0301 est chaud", user_id="u1").id
    assert memory.get(id_).content == "le café est chaud"
    assert memory.write("le café est chaud", user_id="u1").id == id_
    assert memory.search("cafe\u0301", user_id="u1")[0].record.id == id_


@every_case("kind", ["user_profile", "", "facts", 5, ["domain-facts"]])
def test_an_unknown_kind_is_refused_with_the_known_ones(memory: SupervisorMemory, kind: Any) -> None:
    assert "domain-facts" in refused(
        memory, lambda: memory.write("x", user_id="u1", kind=kind), InvalidContent
    )


@every_case("family", ["", "a/b", "../x", "a b", "x" * 97, "口径", 5, "a\x00"])
def test_a_family_that_cannot_be_one_is_refused(memory: SupervisorMemory, family: Any) -> None:
    refused(memory, lambda: memory.write("x", user_id="u1", family=family), InvalidName)
    refused(memory, lambda: memory.search("x", user_id="u1", families=[family]), InvalidName)
    refused(memory, lambda: memory.get_all(user_id="u1", families=[family]), InvalidName)


@every_case("families", ["user_profile", [], ()])
def test_families_that_could_mean_two_things_are_refused(memory: SupervisorMemory, families: Any) -> None:
    assert "None for all" in refused(
        memory, lambda: memory.search("x", user_id="u1", families=families), InvalidContent
    )


@every_case("strategy", ["newest", "", 5, {"a": 1}])
def test_an_unknown_strategy_is_refused_by_every_verb_that_merges(
    memory: SupervisorMemory, strategy: Any
) -> None:
    id_ = memory.get_all(user_id="u1")[0].id
    asked = {"strategy": strategy}
    for call in (
        lambda: memory.write("x", user_id="u1", metadata=asked),
        lambda: memory.add("Always answer in tables.", user_id="u1", metadata=asked),
        lambda: memory.update(id_, content="x", metadata=asked),
    ):
        assert "overwrite, append, summarise" in refused(memory, call, InvalidContent)


METADATA: list[Any] = [
    {"when": datetime(2026, 1, 1)},
    {"a": {1, 2}},
    {"a": b"x"},
    {"a": math.nan},
    {"a": math.inf},
    {"a": "\ud800"},
    {"a": object()},
    {("a", "b"): 1},
    5,
    "text",
    [1, 2],
    {"a": BIG},
    {"a": np.float32(1)},
]


@every_case("metadata", [*METADATA, "circular", "deep"])
def test_metadata_that_json_cannot_hold_is_refused(memory: SupervisorMemory, metadata: Any) -> None:
    if metadata == "circular":
        metadata = {}
        metadata["self"] = metadata
    if metadata == "deep":
        metadata = {}
        for _ in range(100_000):
            metadata = {"a": metadata}
    id_ = memory.get_all(user_id="u1")[0].id
    for call in (
        lambda: memory.write("x", user_id="u1", metadata=metadata),
        lambda: memory.add("Always answer in tables.", user_id="u1", metadata=metadata),
        lambda: memory.update(id_, metadata=metadata),
        lambda: memory.add_many([{"content": "x", "metadata": metadata}], user_id="u1"),
    ):
        assert "metadata" in refused(memory, call, InvalidContent)


@every_case("ttl", [0, -5, "60", True, [60], 10**400])
def test_a_time_to_live_that_is_none_is_refused(memory: SupervisorMemory, ttl: Any) -> None:
    assert "ttl" in refused(
        memory, lambda: memory.write("x", user_id="u1", metadata={"ttl": ttl}), InvalidContent
    )


@every_case("when", [math.nan, math.inf, 1.7e12, "2026-01-01", True, 10**400, [1.0], datetime.min])
def test_a_time_that_is_none_is_refused(memory: SupervisorMemory, when: Any) -> None:
    for call in (
        lambda: memory.write("x", user_id="u1", created_at=when),
        lambda: memory.add("Always answer in tables.", user_id="u1", created_at=when),
        lambda: memory.add_many(["x"], user_id="u1", created_at=when),
        lambda: memory.add_many([{"content": "x", "created_at": when}], user_id="u1"),
    ):
        assert "created_at" in refused(memory, call, InvalidContent)


@every_case("limit", [0, -1, 2.5, "5", True, math.nan])
def test_a_limit_that_is_no_number_of_records_is_refused(memory: SupervisorMemory, limit: Any) -> None:
    assert "limit" in refused(memory, lambda: memory.search("x", user_id="u1", limit=limit), InvalidContent)
    assert "limit" in refused(memory, lambda: memory.get_all(user_id="u1", limit=limit), InvalidContent)


@every_case("threshold", [-0.1, 1.1, math.nan, "0.3", True])
def test_a_threshold_outside_the_unit_interval_is_refused(memory: SupervisorMemory, threshold: Any) -> None:
    refused(memory, lambda: memory.search("x", user_id="u1", threshold=threshold), InvalidContent)


def test_numbers_of_numpy_are_numbers(memory: SupervisorMemory) -> None:
    limit, threshold = np.int64(1), np.float32(0.5)
    found = memory.search("hot tea", user_id="u1", limit=limit, threshold=threshold)  # type: ignore[arg-type]
    assert [hit.record.content for hit in found] == ["tea is hot"]


def test_families_that_are_no_list_are_refused(memory: SupervisorMemory) -> None:
    families: Any = 5
    refused(memory, lambda: memory.search("x", user_id="u1", families=families), InvalidContent)


@every_case("embedder", ["all-MiniLM-L6-v2", len, HashingEmbedder, 7])
def test_what_cannot_embed_is_refused_when_a_memory_is_made(embedder: Any) -> None:
    with pytest.raises(SettingsError, match="no `embed_query`") as raised:
        SupervisorMemory(Settings(), embedder=embedder)
    assert "EMBEDDING_MODEL" in str(raised.value)


@every_case("query", [None, 5, b"x", ["x"]])
def test_a_query_that_is_no_text_is_refused(memory: SupervisorMemory, query: Any) -> None:
    assert "query" in refused(memory, lambda: memory.search(query, user_id="u1"), InvalidContent)


@every_case("query", ["\x00", "\ud800", "\u200b", '" OR *', "a AND NOT (", "x" * 100_000, "%"])
def test_any_text_can_be_asked(memory: SupervisorMemory, query: str) -> None:
    assert len(memory.search(query, user_id="u1")) == 0
    assert len(memory.search(query, user_id="u1", threshold=0)) == 1


WHERE: list[tuple[Any, str]] = [
    (5, "where is '5'"),
    ([("tags", "x")], "where is a list"),
    ("tags=x", "where is 'tags=x'"),
    ({"tag": "x"}, "'tag'; did you mean 'tags'?"),
    ({"sinse": 0}, "'sinse'; did you mean 'since'?"),
    ({"user_id": "u2"}, "no key 'user_id'; its keys are kind, tags, session, agent, since, until, metadata"),
    ({"session": ["s1"]}, "where.session is list"),
    ({"agent": ""}, "where.agent is ''"),
    ({"$or": []}, "no key '$or'"),
    ({5: 1}, "no key '5'"),
    ({10**5000: 1}, "no key a huge number"),
    ({BIG: 1}, "no key 'xxx"),
    ({"kind": "user_profile"}, "where.kind is 'user_profile'; use one of user-profile"),
    ({"kind": {"$in": ["identity"]}}, "where.kind is a dict"),
    ({"kind": []}, "where.kind is a list of 0"),
    ({"kind": [None]}, "where.kind is ''"),
    ({"tags": 5}, "where.tags holds '5'"),
    ({"tags": {"a": 1}}, "where.tags holds a dict"),
    ({"tags": ()}, "where.tags is a list of 0"),
    ({"tags": ["t"] * 51}, "where.tags is a list of 51"),
    ({"since": "yesterday"}, "where.since is 'yesterday'; pass '2026-01-31'"),
    ({"since": ""}, "where.since is ''"),
    ({"since": math.nan}, "where.since is 'nan'"),
    ({"since": -math.inf}, "where.since is '-inf'"),
    ({"since": True}, "where.since is 'True'"),
    ({"since": 1.7e12}, "where.since is '1700000000000.0'"),
    ({"since": "1700000000000"}, "where.since is '1700000000000.0'"),
    ({"until": 10**5000}, "where.until is a huge number"),
    ({"until": {"$lt": 5}}, "where.until is a dict"),
    ({"since": "2026-02-01", "until": "2026-01-31"}, "where.since is not before where.until"),
    ({"metadata": "x"}, "where.metadata is 'x'; pass a mapping"),
    ({"metadata": [("a", 1)]}, "where.metadata is a list"),
    ({"metadata": dict.fromkeys(map(str, range(51)), 1)}, "where.metadata has 51 keys"),
    ({"metadata": {"a": {"$gt": 1}}}, "metadata.a is a dict"),
    ({"metadata": {"a": {}}}, "metadata.a is a dict"),
    ({"metadata": {"a": [[1]]}}, "metadata.a is a list"),
    ({"metadata": {"a": []}}, "metadata.a has 0 values"),
    ({"metadata": {"a": list(range(51))}}, "metadata.a has 51 values"),
    ({"metadata": {"a": math.nan}}, "metadata.a is nan"),
    ({"metadata": {"a": [1, math.inf]}}, "metadata.a is inf"),
    ({"metadata": {"a": b"x"}}, "metadata.a is a bytes"),
    ({"metadata": {"a": 10**5000}}, "metadata.a is a number of too many digits"),
    ({"metadata": {"": 1}}, "metadata has no key ''"),
    ({"metadata": {"a b": 1}}, "metadata has no key 'a b'"),
    ({"metadata": {'a"]': 1}}, "metadata has no key"),
    ({"metadata": {"茶": 1}}, "metadata has no key '茶'"),
    ({"metadata": {"a" * 65: 1}}, "metadata has no key"),
    ({"metadata": {"a\n": 1}}, "metadata has no key"),
    ({"metadata": {5: 1}}, "metadata has no key 'int'"),
]


@every_case(("where", "told"), WHERE)
def test_a_filter_that_cannot_be_one_is_refused_by_the_name_of_what_is_wrong(
    memory: SupervisorMemory, where: Any, told: str
) -> None:
    for call in (
        lambda: memory.search("tea", user_id="u1", where=where),
        lambda: memory.search("", user_id="u1", where=where),
        lambda: memory.get_all(user_id="u1", where=where),
    ):
        is_name = isinstance(where, dict) and where.keys() & {"session", "agent"}
        assert told in refused(memory, call, InvalidName if is_name else InvalidContent)


@pytest.mark.parametrize(
    "limit", [10**6, 10**9, sys.maxsize, 2**63, 10**300], ids=lambda limit: f"{limit:.0e}"
)
@pytest.mark.parametrize("query", ["tea", ""])
def test_a_huge_limit_means_all(memory: SupervisorMemory, limit: int, query: str) -> None:
    memory.write("plantations of tea lie in the hills", user_id="u1")
    assert len(memory.search(query, user_id="u1", limit=limit)) == 2
    assert len(memory.search(query, user_id="u1", limit=limit, threshold=0)) == 2
    assert len(memory.get_all(user_id="u1", limit=limit)) == 2


@every_case("after", ["", "{}", "[1]", '["x", "y"]', '[1, "\\ud800"]', "9" * 5_000, 7])
def test_a_cursor_that_is_none_is_refused(memory: SupervisorMemory, after: Any) -> None:
    with pytest.raises(InvalidContent, match="cursor"):
        memory.get_all(user_id="u1", after=after)


@every_case("id_", [None, "", 5, "no-such", BIG, "\ud800", "\x00", ["a"]])
def test_an_id_that_is_none_is_not_found(memory: SupervisorMemory, id_: Any) -> None:
    for call in (
        lambda: memory.get(id_),
        lambda: memory.history(id_),
        lambda: memory.update(id_, content="x"),
        lambda: memory.delete(id_),
    ):
        refused(memory, call, RecordNotFound)


ITEMS: list[tuple[Any, type[Exception]]] = [
    ("", InvalidContent),
    (None, InvalidContent),
    (5, InvalidContent),
    ([], InvalidContent),
    ({}, InvalidContent),
    ({"text": "x"}, InvalidContent),
    ({"content": 5}, InvalidContent),
    ({"content": BIG}, ContentTooLarge),
    ({"content": "x", "speaker": 5}, InvalidName),
    ({"content": "x", "speaker": "\u200b"}, InvalidName),
    ({"content": "x", "session_id": ""}, InvalidName),
    ({"content": "x", "session_id": "s\n"}, InvalidName),
    ({"content": "x", "created_at": math.nan}, InvalidContent),
    ({"content": "x", "metadata": {"a": object()}}, InvalidContent),
    ({"content": "x", "metadata": {"ttl": -1}}, InvalidContent),
]


@every_case("item, error, infer", [(*item, infer) for item in ITEMS for infer in (False, True)])
def test_one_bad_item_of_many_writes_nothing_and_is_named(
    memory: SupervisorMemory, item: Any, error: type[Exception], infer: bool
) -> None:
    items = ["From now on use tables.", *(f"fine {n}" for n in range(99)), item, "also fine"]
    assert "item 100" in refused(memory, lambda: memory.add_many(items, user_id="u1", infer=infer), error)


@every_case("items", ["a text", {"content": "x"}, None, 5, b"x"])
def test_items_that_are_no_list_are_refused(memory: SupervisorMemory, items: Any) -> None:
    assert "pass a list" in refused(memory, lambda: memory.add_many(items, user_id="u1"), InvalidContent)


ODD_MESSAGES: list[Any] = [
    5,
    None,
    [None],
    [5],
    [{"role": "user", "content": "fine"}, {"content": "no role"}],
    {"role": "critic", "content": "x"},
    {"role": "user", "content": 5},
    {"role": 5, "content": "x"},
    [("user",)],
    RemoveMessage(id="x"),
    object(),
]


@pytest.mark.parametrize("messages", ODD_MESSAGES, ids=lambda value: repr(value)[:14])
def test_messages_that_are_none_are_refused_by_add_and_passed_over_in_a_graph(
    memory: SupervisorMemory, messages: Any
) -> None:
    assert "messages" in refused(memory, lambda: memory.add(messages, user_id="u1"), InvalidContent)
    assert memory.recall(messages, Scope("u1")).degraded is False
    assert all(r.saved for r in memory.remember(messages, Scope("u1", session_id="s")))


def test_one_odd_message_takes_nothing_from_the_others(memory: SupervisorMemory) -> None:
    messages = [
        RemoveMessage(id="x"),
        5,
        {"role": "user", "content": ["is the tea hot?", 5, {"type": "image"}]},
    ]
    assert "tea is hot" in memory.recall(messages, Scope("u1")).text
    assert len(memory.remember(messages, Scope("u1", session_id="s"))) == 1


@pytest.mark.one_in(6)
@pytest.mark.parametrize("text", HUGE_TEXTS)
def test_ten_megabytes_are_answered(memory: SupervisorMemory, text: str) -> None:
    huge = HUGE_TEXTS[text]
    began = time.monotonic()
    note = memory.recall(huge, Scope("u1"))
    assert not note.degraded
    results = memory.remember(huge, Scope("u1", session_id="s1"), outcome=None)
    memory.remember((), Scope("u1", "agent"), outcome=Outcome(final_answer=huge))
    memory.route(huge, Scope("u1"))
    assert time.monotonic() - began < 6
    if text not in ("lines", "fences"):
        assert {r.reason for r in results if not r.saved} <= {"content-too-large", "content-unreadable"}
        assert any(not r.saved for r in results)


@pytest.mark.parametrize("text", ["letters", "sentences"])
def test_ten_megabytes_are_refused_by_the_direct_verbs(memory: SupervisorMemory, text: str) -> None:
    huge = HUGE_TEXTS[text]
    assert "messages[0]" in refused(memory, lambda: memory.add(huge, user_id="u1"), ContentTooLarge)
    assert len(memory.search(huge, user_id="u1")) == 0


@every_case("source_class", ["", "admin", None, ["user"]])
def test_an_unknown_source_is_refused(memory: SupervisorMemory, source_class: Any) -> None:
    refused(memory, lambda: memory.write("x", user_id="u1", source_class=source_class), InvalidContent)


@every_case(
    "name, value",
    itertools.product(["agent_id", "session_id", "run_id", "task"], ["", "a\n", "\u200b", "x" * 200, 5]),
)
def test_names_of_other_things_are_checked_too(memory: SupervisorMemory, name: str, value: Any) -> None:
    assert name.replace("_", " ") in refused(
        memory, lambda: memory.write("x", user_id="u1", **{name: value}), InvalidName
    )


def test_an_unknown_policy_is_refused(memory: SupervisorMemory) -> None:
    refused(memory, lambda: memory.route("x", Scope("u1"), policy="wild"), InvalidContent)  # type: ignore[arg-type]
    refused(memory, lambda: memory.route(None, Scope("u1")), InvalidContent)  # type: ignore[arg-type]
    refused(memory, lambda: memory.summarize("one text"), InvalidContent)


VECTORS: dict[str, Any] = {
    "wrong dimension": np.ones(3, np.float32),
    "NaN": np.full(256, np.nan, np.float32),
    "infinite": np.full(256, np.inf, np.float32),
    "zero": np.zeros(256, np.float32),
    "text": "vector",
    "nothing": None,
    "a matrix": np.ones((2, 256), np.float32),
}


@every_case("vector", VECTORS)
def test_a_vector_that_is_none_leaves_the_record_saved_and_found_by_words(vector: str) -> None:
    class Bad(HashingEmbedder):
        def embed_query(self, text: str) -> Any:
            return VECTORS[vector]

        def embed_documents(self, texts: Any) -> Any:
            return [VECTORS[vector]] * len(texts)

    memory = SupervisorMemory(embedder=Bad())
    results = [memory.write("tea is hot", user_id="u1"), *memory.add_many(["tea is cold"], user_id="u1")]
    assert all(r.saved for r in results)
    hits = memory.search("tea", user_id="u1")
    assert len(hits) == 2
    assert hits.degraded
    assert hits.notes == ("without the embedder: BadVector",)
    degraded = [row.event for row in memory.backend.audit.tail(9) if row.outcome == "degraded"]
    assert [(e["op"], e["reason"]) for e in degraded] == [
        ("write", "embedder:BadVector"),
        ("write", "embedder:BadVector"),
        ("search", "embedder:BadVector"),
    ]


def test_what_is_no_backend_is_named_with_the_way_out() -> None:
    with pytest.raises(SettingsError, match=r"wrap it: BaseStoreBackend\(InMemoryStore"):
        SupervisorMemory(backend=InMemoryStore())  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="dict is no MemoryBackend"):
        SupervisorMemory(backend={})  # type: ignore[arg-type]


def test_a_user_id_in_the_place_of_a_scope_is_named() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    for call in (memory.recall, memory.remember):
        with pytest.raises(MissingUser, match=r"scope is str; pass Scope\(user_id\)"):
            call("hello", "ada")  # type: ignore[arg-type]
