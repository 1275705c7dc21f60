"""Metadata that can be written can be exported and imported again; what cannot be is refused at once."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import ContentTooLarge, InvalidContent, InvalidMetadata
from tests.breadth import examples

NAMED = ("strategy", "ttl", "tags", "importance", "pinned", "use_when")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**66), 2**66) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def opened() -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"))


def nested(levels: int) -> dict[str, Any]:
    """Metadata of so many levels, as JSON counts: the innermost value is one."""
    value: Any = 1
    for _ in range(levels - 1):
        value = {"in": value}
    return dict(value)


def moved(memory: SupervisorMemory) -> SupervisorMemory:
    """A second memory that has all of the first, by an export and an import."""
    file = io.BytesIO()
    memory.export(file)
    again = opened()
    file.seek(0)
    assert again.import_from(file).refused == ()
    return again


@settings(max_examples=examples(100), deadline=None)
@given(
    metadata=st.dictionaries(st.text(max_size=5).filter(lambda name: name not in NAMED), values, max_size=3)
)
def test_what_is_written_can_be_moved(metadata: dict[str, Any]) -> None:
    with opened() as memory:
        try:
            kept = memory.write("I like tea.", user_id="ada", metadata=metadata).id
        except InvalidContent:
            return
        assert dict(moved(memory).get(kept).metadata) == dict(memory.get(kept).metadata)


def test_metadata_as_deep_as_may_be_can_be_moved_with_their_versions() -> None:
    with opened() as memory:
        kept = memory.write("I like tea.", user_id="ada", metadata=nested(64)).id
        memory.update(kept, metadata={"whole": [2**64 - 1, -(2**63)]})
        store = memory.store(guarded=False)
        store.put(("memories", "ada"), "k", {"content": "deep", "deep": nested(61)})
        again = moved(memory)
        assert [version.content for version in again.history(kept)] == ["I like tea."] * 2
        assert again.store(guarded=False).get(("memories", "ada"), "k") is not None


@pytest.mark.parametrize(
    "metadata",
    [nested(65), nested(400), nested(100_000), {"n": 2**64}, {"n": [-(2**63) - 1]}, {"n": 10**4_000}],
    ids=["65 levels", "400 levels", "100,000 levels", "2**64", "-2**63-1", "4,000 digits"],
)
def test_metadata_that_could_not_be_moved_are_refused_by_every_verb(metadata: dict[str, Any]) -> None:
    with opened() as memory:
        kept = memory.write("I like tea.", user_id="ada").id
        for write in (
            lambda: memory.write("I like coffee.", user_id="ada", metadata=metadata),
            lambda: memory.add("I like coffee.", user_id="ada", metadata=metadata),
            lambda: memory.add_many([{"content": "coffee", "metadata": metadata}], user_id="ada"),
            lambda: memory.update(kept, metadata=metadata),
        ):
            with pytest.raises(InvalidMetadata, match=r"levels|64 bits|digits"):
                write()
        with pytest.raises(InvalidContent):
            memory.store(guarded=False).put(("memories", "ada"), "k", metadata)
        with pytest.raises(ContentTooLarge):
            memory.write("I like coffee.", user_id="ada", metadata={"long": "x" * 70_000})
        assert [record.content for record in memory.get_all(user_id="ada")] == ["I like tea."]
