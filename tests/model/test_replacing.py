"""A copy of a value is what `dataclasses.replace` makes of it."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest

from supervisor_memory.errors import InvalidContent
from supervisor_memory.flow import Outcome, Remembering
from supervisor_memory.model.records import Filter, Hit, Hits, Record, Scope
from supervisor_memory.model.replacing import replace
from supervisor_memory.stores.protocol import ByWords
from supervisor_memory.testing.records import tea


@dataclass(frozen=True, slots=True)
class _One:
    only: tuple[int, ...] = ()


class _Users(Scope):
    """As a user may write it: without slots of its own."""


def test_a_copy_is_that_of_dataclasses() -> None:
    record = tea("Ada likes tea.")
    said = Remembering(Scope("ada"), facts=(1,))
    assert replace(said, is_given=True) == dataclasses.replace(said, is_given=True)
    assert replace(record, version=2, tags=("a",)) == dataclasses.replace(record, version=2, tags=("a",))
    assert replace(Hit(record, 0.5), excerpt="tea") == dataclasses.replace(Hit(record, 0.5), excerpt="tea")
    assert replace(Filter("ada"), ids=("r1",)) == Filter("ada", ids=("r1",))
    assert replace(_One((1,)), only=(2, 3)) == _One((2, 3))
    assert replace(_One((1,))) == _One((1,))
    hits = Hits((Hit(record, 0.5),))  # of a class with a base, and so of another layout
    assert replace(hits, degraded=True) == dataclasses.replace(hits, degraded=True)


def test_a_subclass_without_slots_of_a_class_that_has_them_keeps_its_fields() -> None:
    found = ByWords((Hit(tea(), 0.5),))
    assert replace(found, degraded=True) == dataclasses.replace(found, degraded=True)
    assert replace(_Users("ada"), run_id="r1") == dataclasses.replace(_Users("ada"), run_id="r1")


def test_the_value_itself_stays_as_it_was() -> None:
    said = Remembering(Scope("ada"))
    replace(said, turn_id="t1")
    assert said.turn_id is None


def test_what_a_class_checks_is_checked_again() -> None:
    with pytest.raises(InvalidContent, match="score"):
        replace(Outcome(score=0.5), score=7.0)
    record: Record = replace(tea(), content="coffee", content_hash="")
    assert record.content_hash == tea("coffee").content_hash


def test_a_field_that_is_not_there_is_an_error() -> None:
    unknown: dict[str, Any] = {"points": 1.0}
    with pytest.raises(TypeError, match="Hit has no field 'points'"):
        replace(Hit(tea()), **unknown)
