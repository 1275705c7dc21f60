"""Which rooms of the house a sentence goes through before it is judged."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from supervisor_memory.model.records import Message
from supervisor_memory.stages.pre_insert.extract import read_user
from supervisor_memory.stores.caches import forget_texts
from supervisor_memory.understand.sense import sense_of
from supervisor_memory.understand.statements import Statement, decided
from tests.cases import every_case

MOST = 5
FINGERPRINT = "all-MiniLM-L6-v2@int8-1.0.0/384"


def rooms_of(what: Callable[[], object]) -> set[str]:
    """The folders of the package whose functions run meanwhile."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, given: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("supervisor_memory."):
            found.add(module.rpartition(".")[0])

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        what()
    finally:
        sys.setprofile(before)
    return found


def by_sense(read: Sequence[Statement]) -> list[Statement]:
    sense = sense_of(FINGERPRINT)
    assert sense is not None
    vector = np.ones(384, np.float32) / np.sqrt(384)
    return [decided(each, sense.again(each.learned, vector)) if each.learned else each for each in read]


@every_case(
    "text",
    [
        "Ferry tickets for the crew are booked through the harbour desk.",
        "I prefer ferries to planes when the crew travels.",
        "By crew we mean whoever sleeps on board.",
        "Forget what I said about the ferries, we fly now.",
        "Could you book a ferry for nine people?",
        "船员的渡轮票由港口前台订。",
        "以后船员出行一律坐渡轮。",
    ],
)
def test_a_sentence_is_judged_in_five_rooms_at_most(text: str) -> None:
    message = Message(role="user", content=text)
    read_user(message, again=by_sense)  # what is compiled at first use goes through one room more
    forget_texts()
    rooms = rooms_of(lambda: read_user(message, again=by_sense))
    assert "supervisor_memory.understand" in rooms
    assert len(rooms) <= MOST, rooms
