"""What nobody can change, and is a dictionary or a list to everybody who reads."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from supervisor_memory.model.records import FrozenDict, FrozenList, frozen, thawed
from tests.cases import every_case

VALUE = {"list": [1, {"deep": True}, [None]], "text": "茶"}


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)), frozen],
    ids=["copy", "deepcopy", "pickle", "frozen"],
)
def test_it_equals_what_it_was_made_of_and_stays_frozen(again: Callable[[Any], Any]) -> None:
    value = again(frozen(VALUE))
    assert value == VALUE
    assert json.loads(json.dumps(value)) == VALUE
    assert isinstance(value, FrozenDict)
    assert isinstance(value["list"], FrozenList)


@every_case(
    "change",
    [
        lambda value: value.__setitem__("text", "tea"),
        lambda value: value.__delitem__("text"),
        lambda value: value.__ior__({"text": "tea"}),
        lambda value: value.update(text="tea"),
        lambda value: value.setdefault("new", 1),
        lambda value: value.pop("text"),
        lambda value: value.popitem(),
        lambda value: value.clear(),
        lambda value: value["list"].__setitem__(0, 2),
        lambda value: value["list"].__delitem__(0),
        lambda value: value["list"].__iadd__([2]),
        lambda value: value["list"].__imul__(2),
        lambda value: value["list"].append(2),
        lambda value: value["list"].extend([2]),
        lambda value: value["list"].insert(0, 2),
        lambda value: value["list"].pop(),
        lambda value: value["list"].remove(1),
        lambda value: value["list"].reverse(),
        lambda value: value["list"].sort(),
        lambda value: value["list"].clear(),
        lambda value: value["list"][1].update(deep=False),
    ],
)
def test_nothing_changes_it(change: Callable[[Any], object]) -> None:
    value = frozen(VALUE)
    with pytest.raises(TypeError, match="cannot be changed"):
        change(value)
    assert value == VALUE


def test_a_thawed_copy_can_be_changed_to_its_depth() -> None:
    kept = frozen(VALUE)
    mine = thawed(kept)
    mine["list"][1]["deep"] = False
    mine["list"][2].append(1)
    assert kept == VALUE
