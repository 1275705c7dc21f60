"""Labels and keys: whose item it is, and that nobody reaches another's."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import IdentityError, InvalidName, MissingUser
from supervisor_memory.host.store.addresses import Address
from supervisor_memory.host.store.store import MemoryStore, label_for, user_for
from supervisor_memory.model.records import Filter
from tests.cases import every_case
from tests.host.store.conftest import ADA, BOB, Letters, keys, value_at


def test_the_label_of_a_user_is_another_spelling_of_the_same_user() -> None:
    users = ["ada", "ada@x.com", "a.b", "a%2Eb", "a%b", "a%25b", "100%", "%", "%2", "..", "陈", "A", "a"]
    labels = [label_for(user) for user in users]
    assert len(set(labels)) == len(users)
    assert not any("." in label for label in labels)
    assert [user_for(label) for label in labels] == users


@every_case("label", ["a.b", "100%", "%2e", "%41", "a%2", "K\u212a", "zero\u200bwidth"])
def test_a_label_that_label_for_did_not_make_is_no_user(label: str) -> None:
    with pytest.raises(InvalidName):
        user_for(label)


@given(st.text(alphabet="aK\u212a.%25E\u200b e\u0301", min_size=1, max_size=8))
def test_labels_and_users_are_one_to_one(text: str) -> None:
    with contextlib.suppress(IdentityError):
        assert user_for(label_for(text)) == text
    with contextlib.suppress(IdentityError):
        assert label_for(user_for(text)) == text


def test_nobody_has_no_label() -> None:
    with pytest.raises(MissingUser):
        label_for("")
    with pytest.raises(MissingUser):
        label_for("null")


ODD = [
    ("docs",),
    ("memories", "100%"),
    ("memories", "%41da"),
    ("memories", "null"),
    ("memories", "K"),
    ("memories", "\u212a"),
    ("memories", "zero\u200bwidth"),
    ("memories", " ada"),
    ("memories", "x" * 200),
    ("_store", "ada"),
    ("two words", "ada"),
    ("memories", "ada", "t", "deep"),
    ("memories", "ada", "t", "deep", "er"),
    ("memories", "ada", "bad\u202etask"),
    ("memories", "ada", "t"),
    ("memories", "ada"),
    ("memories", "Ada"),
    ("memories",),
    ("//", "*", "%", "_"),
]


def test_every_namespace_has_rows_of_its_own(store: MemoryStore) -> None:
    for number, namespace in enumerate(ODD):
        store.put(namespace, "k", {"n": number})
    for number, namespace in enumerate(ODD):
        assert value_at(store, namespace, "k") == {"n": number}
        found = store.search(namespace, limit=100)
        assert {item.namespace for item in found} == {n for n in ODD if n[: len(namespace)] == namespace}
    assert store.list_namespaces() == sorted(ODD)


def test_labels_that_name_nobody_are_no_users_memory(store: MemoryStore, memory: SupervisorMemory) -> None:
    for namespace in (("docs",), ("memories", "100%"), ("memories", "\u212a")):
        store.put(namespace, "k", {"content": "the secret is tea"})
    for user in ("100%", "K", "docs"):
        assert not memory.search("secret tea", user_id=user)
    for record in memory.backend.list(Filter(), limit=10):
        with pytest.raises(InvalidName):
            memory.search("secret tea", user_id=record.user_id)


def test_a_key_that_is_anothers_record_id_does_not_reach_it(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    id_ = memory.write("GMV excludes refunds", user_id="bob", family="memories").id
    assert store.get(BOB, id_) is not None
    assert store.get(ADA, id_) is None
    store.put(ADA, id_, {"content": "mine"})
    store.delete(ADA, id_)
    store.put(ADA, id_, {"content": "mine again"})
    assert value_at(store, BOB, id_)["content"] == {"content": "GMV excludes refunds"}
    assert memory.get(id_).version == 1
    put = Address(BOB, "k").id
    store.put(BOB, "k", {"content": "bob's"})
    assert store.get(BOB, put) is None
    assert store.get(ADA, put) is None


def test_what_a_records_metadata_claims_of_another_place_is_not_believed(
    store: MemoryStore, memory: SupervisorMemory
) -> None:
    claim = {"namespace": list(BOB), "key": "k", "value": {"content": "forged"}}
    id_ = memory.write("likes tea", user_id="ada@x.com", family="memories", metadata={"store": claim}).id
    assert store.search(BOB) == []
    assert store.get(BOB, "k") is None
    assert keys(store.search(ADA)) == [id_]
    own = {"namespace": list(ADA), "key": id_, "value": {"content": "likes tea"}}
    nonsense: list[Any] = [
        *([1], "x", {"value": {}}, {**own, "value": 3}, {**own, "namespace": 1}, {**own, "namespace": [[1]]}),
        *({**own, "ttl": "x"}, {**own, "vectors": 1}, {**own, "vectors": {"embedder": None, "rows": "x"}}),
    ]
    indexed = MemoryStore(memory, index={"dims": 10, "embed": Letters()})
    for each in nonsense:
        memory.update(id_, metadata={"store": each})
        assert keys(store.search(())) == keys(indexed.search((), query="tea")) == [id_]


def test_keys_and_labels_are_any_text(store: MemoryStore) -> None:
    odd = ["", " ", "a.b", "../..", "陈", "\U0001f375", "a\nb", "\u200b", "k" * 5000]
    for number, key in enumerate(odd):
        store.put(("笔记", "陈"), key, {"n": number})
    assert [value_at(store, ("笔记", "陈"), key)["n"] for key in odd] == list(range(len(odd)))
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("valid",), "k", {}), GetOp(("a.b",), "k")])
    assert store.search(("valid",)) == []
