"""The reference meaning."""

from dataclasses import replace

import pytest

from supervisor_memory.model.records import Record
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.state import State
from supervisor_memory.stores.protocol import Change, MemoryBackend
from supervisor_memory.testing.backend_contract import BackendContract


class TestInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return InMemoryBackend()


def test_it_says_that_it_forgets() -> None:
    health = InMemoryBackend().health()
    assert not health.persistent
    assert "MEMORY_BACKEND=sqlite" in health.message


def test_nothing_is_kept_of_wordings_and_messages_that_no_record_has_any_more() -> None:
    state = State()
    record = Record("1", ("domain_facts", "ada"), "The week begins on Monday.", "domain-facts", 1.0, 1.0)
    linked = replace(record, ref_id="m1", joined_ref_ids=("m1", "m2"))
    state.apply(state.stage([Change(linked)]))
    told = replace(record, content="The week begins on Sunday.", content_hash="", ref_id="m3")
    state.apply(state.stage([Change(told, expects=1)]))
    assert set(state._told_of) == {"m3"}
    assert len(state._worded) == 1
    state.drop("1")
    assert not state._told_of
    assert not state._worded
