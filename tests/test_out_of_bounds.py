"""Times beyond the calendar and metadata that no export can carry are refused wherever they come from."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent, SupervisorMemoryError
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.ports import record
from tests.breadth import examples
from tests.cases import every_case
from tests.interfaces.http.conftest import Client, client, make_client, memory

__all__ = ["client", "make_client", "memory"]

NEVER = [1e12, -1e12, 253_402_300_800.0, -62_135_596_801.0, 1e15, 1e300]
"""Moments before the year 1 and after the year 9999."""
FAR = [0.0, -62_135_596_800.0 + 86_400, 253_402_300_799.0 - 86_400]


def opened(backend: Any = None) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), backend=backend or InMemoryBackend())


# Times


@every_case(
    "moment",
    [
        *NEVER,
    ],
)
def test_a_time_that_no_calendar_has_is_refused_by_every_verb(moment: float) -> None:
    calls: list[Callable[[SupervisorMemory], Any]] = [
        lambda memory: memory.write("tea is hot", user_id="ada", created_at=moment),
        lambda memory: memory.add("Always answer in tables.", user_id="ada", created_at=moment),
        lambda memory: memory.add_many(["tea is hot"], user_id="ada", created_at=moment),
        lambda memory: memory.add_many([{"content": "tea", "created_at": moment}], user_id="ada"),
    ]
    with opened() as memory:
        for call in calls:
            with pytest.raises(InvalidContent, match="created_at"):
                call(memory)
        assert memory.get_all(user_id="ada") == []


@every_case("moment", FAR)
def test_a_time_of_the_calendar_is_taken_and_read_by_every_way(moment: float) -> None:
    with opened() as memory:
        memory.write("tea is hot", user_id="ada", created_at=moment)
        store = memory.store(guarded=False)
        assert len(store.search(("domain_facts", "ada"), limit=9)) == 1
        assert "tea is hot" in memory.recall("how is tea?", Scope("ada")).text


@pytest.mark.parametrize("moment", [1e12, -1e12])
async def test_a_record_that_was_stored_with_such_a_time_breaks_no_reading(moment: float) -> None:
    backend = InMemoryBackend()
    backend.write([record("tea is hot", user_id="ada", now=moment), record("tea is green", user_id="ada")])
    with opened(backend) as memory:
        store = memory.store(guarded=False)
        assert len(store.search(("domain_facts", "ada"), query="tea", limit=9)) == 2
        assert len(await store.asearch(("domain_facts", "ada"), limit=9)) == 2
        for item in store.search(("domain_facts", "ada"), limit=9):
            assert store.get(item.namespace, item.key) is not None


@every_case("moment", [1e12, -1e12])
def test_a_record_that_was_stored_with_such_a_time_is_read_by_our_own_verbs(moment: float) -> None:
    backend = InMemoryBackend()
    backend.write([record("tea is hot", user_id="ada", now=moment), record("tea is green", user_id="ada")])
    with opened(backend) as memory:
        assert len(memory.search("tea", user_id="ada")) == 2
        assert "green" in memory.recall("which tea?", Scope("ada")).text
        assert len(memory.topics(user_id="ada")) >= 1
        assert len(memory.get_all(user_id="ada")) == 2


@every_case("moment", [1e12, -1e12])
def test_an_import_leaves_out_what_is_beyond_the_calendar(moment: float) -> None:
    kept, text = io.BytesIO(), io.BytesIO()
    backend = InMemoryBackend()
    backend.write([record("tea is hot", user_id="ada", now=moment), record("tea is green", user_id="ada")])
    with opened(backend) as memory:
        memory.export(kept)
    text.write(kept.getvalue())
    text.seek(0)
    with opened() as memory:
        moved = memory.import_from(text)
        assert moved.counts.get("refused") == 1
        assert [each.content for each in memory.get_all(user_id="ada")] == ["tea is green"]


@pytest.mark.parametrize("moment", [1e12, -1e12, 1e300])
def test_a_time_that_no_calendar_has_is_refused_by_http(client: Client, moment: float) -> None:
    body = {"text": "Tea is hot.", "user_id": "ada", "created_at": moment}
    answer = client("POST", "/v1/memories", json=body)
    assert 400 <= answer.status_code < 500, answer.text


# Metadata


def nested(depth: int, leaf: Any = 1, *, as_list: bool = False) -> dict[str, Any]:
    value: Any = leaf
    for _ in range(depth):
        value = [value] if as_list else {"a": value}
    return {"deep": value}


def goes_round(metadata: Any) -> bool:
    """Whether it is refused by write, or else comes through an export and an import as it was."""
    with opened() as memory:
        try:
            kept = memory.write("tea is hot", user_id="ada", metadata=metadata).id
        except InvalidContent:
            return True
        file = io.BytesIO()
        memory.export(file)
        wanted = memory.get(kept).metadata
    file.seek(0)
    with opened() as other:
        moved = other.import_from(file)
        return moved.is_whole and other.get(kept).metadata == wanted


METADATA: dict[str, Any] = {
    "one level": nested(1),
    "fifty levels": nested(50),
    "an integer of 63 bits": {"n": 2**63 - 1},
    "much text": {"t": "x" * 60_000},
    "many keys": {f"k{n}": n for n in range(3_000)},
    "an empty key": {"": 1},
    "the smallest float": {"n": 5e-324},
    "the greatest float": {"n": 1.7976931348623157e308},
    "names of others": {"id": "x", "namespace": ["a"], "content": "y", "version": 9},
}
NOT_TAKEN: dict[str, Any] = {
    "sixty-two levels": nested(62),
    "sixty-four levels of lists": nested(64, as_list=True),
    "a hundred levels": nested(100),
    "four hundred levels": nested(400),
    "an integer of 65 bits": {"n": 2**64},
    "a negative integer of 65 bits": {"n": -(2**64)},
    "an integer of 300 digits": {"n": 10**300},
}


@every_case("what", METADATA)
def test_what_write_takes_as_metadata_the_import_takes(what: str) -> None:
    assert goes_round(METADATA[what])


@every_case("what", NOT_TAKEN)
def test_what_the_import_would_not_take_write_does_not_take_either(what: str) -> None:
    assert goes_round(NOT_TAKEN[what])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=examples(60), deadline=None)
@given(metadata=st.dictionaries(st.text(min_size=1, max_size=5), json_values, max_size=4))
def test_any_metadata_is_refused_or_goes_round(metadata: dict[str, Any]) -> None:
    assert goes_round(metadata)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("as_list", [False, True], ids=["objects", "lists"])
@pytest.mark.parametrize("depth", [600, 1_000, 20_000])
def test_metadata_that_is_too_deep_is_the_callers_fault(depth: int, as_list: bool) -> None:
    deep = nested(depth, as_list=as_list)
    with opened() as memory:
        id_ = memory.write("tea is hot", user_id="ada").id
        calls: list[Callable[[], Any]] = [
            lambda: memory.write("tea is green", user_id="ada", metadata=deep),
            lambda: memory.add("Always answer in tables.", user_id="ada", metadata=deep),
            lambda: memory.add_many([{"content": "tea", "metadata": deep}], user_id="ada"),
            lambda: memory.update(id_, metadata=deep, user_id="ada"),
        ]
        for call in calls:
            with pytest.raises(InvalidContent, match=r"metadata|nested|deep"):
                call()


def deep_text(depth: int, *, as_list: bool) -> str:
    opening, closing = ("[", "]") if as_list else ('{"a":', "}")
    return opening * depth + "1" + closing * depth


@pytest.mark.one_in(2)
@pytest.mark.parametrize("as_list", [False, True], ids=["objects", "lists"])
@pytest.mark.parametrize("depth", [300, 600, 1_000, 5_000, 50_000])
def test_a_body_that_is_too_deep_is_answered_4xx(client: Client, depth: int, as_list: bool) -> None:
    bodies = {
        "/v1/memories": '{"user_id": "ada", "text": "Tea.", "metadata": {"deep": %s}}',
        "/v1/search": '{"user_id": "ada", "query": "tea", "where": {"metadata": {"deep": %s}}}',
    }
    for path, body in bodies.items():
        answer = client(
            "POST",
            path,
            content=body % deep_text(depth, as_list=as_list),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, (path, answer.text[:300])


def test_a_line_of_an_export_that_is_too_deep_is_refused_alone(tmp_path: Path) -> None:
    with opened() as memory:
        memory.write("tea is hot", user_id="ada", metadata={"mark": "here"})
        memory.write("coffee is black", user_id="ada")
        file = io.BytesIO()
        memory.export(file)
    for depth in (1_000, 100_000):
        damaged = file.getvalue().replace(b'"here"', deep_text(depth, as_list=False).encode())
        with opened() as other:
            assert other.import_from(io.BytesIO(damaged)).counts.get("refused") == 1
            assert [each.content for each in other.get_all(user_id="ada")] == ["coffee is black"]


def test_conditions_that_are_too_deep_are_the_callers_fault() -> None:
    deep: Any = {"metadata": nested(3_000)}
    with opened() as memory:
        for call in (
            lambda: memory.search("tea", user_id="ada", where=deep),
            lambda: memory.get_all(user_id="ada", where=deep),
        ):
            with pytest.raises(SupervisorMemoryError) as raised:
                call()
            assert "RecursionError" not in str(raised.value)
            assert json.dumps(str(raised.value))
