"""A time of a record is in the years 1 to 9999, and one that is not stops nobody."""

import io
import json
from datetime import UTC, datetime

import pytest
from langchain_core.messages import HumanMessage

from supervisor_memory import Record, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import new_id
from supervisor_memory.stores.protocol import Change, Commit
from tests.cases import every_case

BEYOND = [1e12, -1e12, 253_402_300_800.0, -62_135_596_801.0, "300000000000"]
WITHIN = [0.0, 253_402_300_799.0, -62_135_596_800.0, "9999-12-31", datetime(1, 1, 2, tzinfo=UTC)]


def opened() -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"))


@every_case("when", BEYOND)
def test_a_time_beyond_the_calendar_is_refused_with_a_reason(when: float | str) -> None:
    with opened() as memory:
        if not isinstance(when, str):
            for write in (
                lambda: memory.write("I like tea.", user_id="ada", created_at=when),
                lambda: memory.add("I like tea.", user_id="ada", created_at=when),
                lambda: memory.add_many([{"content": "tea", "created_at": when}], user_id="ada"),
            ):
                with pytest.raises(InvalidContent, match="the years 1 to 9999"):
                    write()
        with pytest.raises(InvalidContent):
            memory.search("tea", user_id="ada", as_of=when)
        assert memory.get_all(user_id="ada") == []


@pytest.mark.parametrize("when", WITHIN, ids=str)
def test_the_ends_of_the_calendar_are_times(when: float | str | datetime) -> None:
    with opened() as memory:
        if not isinstance(when, str):
            memory.write("I like tea.", user_id="ada", created_at=when)
            assert memory.store(guarded=False).search(("user_profile", "ada"))
        memory.search("tea", user_id="ada", as_of=when)


def test_an_import_refuses_a_line_with_such_a_time_and_takes_the_others() -> None:
    file, again = io.BytesIO(), opened()
    with opened() as memory:
        memory.write("I like tea.", user_id="ada")
        memory.write("I like coffee in the morning.", user_id="ada")
        memory.export(file)
    lines = file.getvalue().splitlines(keepends=True)
    told = json.loads(lines[1])
    told["record"]["created_at"] = 1e12
    moved = again.import_from(io.BytesIO(b"".join([lines[0], json.dumps(told).encode() + b"\n", *lines[2:]])))
    assert len(moved.refused) == 1
    assert "created_at" in str(moved.refused)
    assert len(again.get_all(user_id="ada")) == 1


@every_case("when", [1e12, -1e12])
def test_such_a_time_that_is_stored_already_breaks_no_store(when: float) -> None:
    with opened() as memory:
        id_ = new_id()
        old = Record(id_, ("memories", "ada"), "tea is hot", "domain-facts", created_at=when, updated_at=when)
        memory.backend.batch(Commit((Change(old),)))
        memory.write("coffee is black", user_id="ada", family="memories")
        store = memory.store(guarded=False)
        assert len(store.search(("memories", "ada"))) == 2
        found = store.get(("memories", "ada"), id_)
        assert found is not None
        assert found.created_at.year == (9999 if when > 0 else 1)
        assert memory.recall([HumanMessage("Is the tea hot?")], Scope("ada"))
