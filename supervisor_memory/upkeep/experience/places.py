"""The place of a call: an agent in a run. Data held for places are bounded, and dropped with their user."""

from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any, Final, TypeAlias

from supervisor_memory.model.records import Scope

MOST_PLACES: Final = 1_024
MOST_HEARD: Final = 4_096

Place: TypeAlias = tuple[str, str | None, str | None, str | None, str | None]
"""Of an agent in a run: user, task, session, run, agent."""


def place_of(scope: Scope) -> Place:
    """The place of an agent in a run."""
    return scope.user_id, scope.task, scope.session_id, scope.run_id, scope.agent_id


def bound(held: OrderedDict[Any, Any], most: int) -> None:
    """Drop the oldest of what is held over a number."""
    while len(held) > most:
        held.popitem(last=False)


def drop_user(held: MutableMapping[Any, Any], user_id: str) -> None:
    """Drop what is held of a user; a key is a place, or begins with one."""
    for key in [key for key in held if (key[0] if isinstance(key[0], str) else key[0][0]) == user_id]:
        held.pop(key)
