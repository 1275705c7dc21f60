"""Calls of tools that failed, held until one works; without secrets from the first moment."""

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from supervisor_memory.ports import Services
from supervisor_memory.redact.redactor import Redactor, open_redactor
from supervisor_memory.understand.lessons.lesson import Call
from supervisor_memory.understand.lessons.values import last_name
from supervisor_memory.upkeep.experience.places import MOST_HEARD, MOST_PLACES, Place, bound, drop_user

_MOST_FAILED: Final = 4
"""The most failed calls kept for a tool, an agent and a run."""
_SECRETS: Final = "secrets"


class Calls:
    """The failed calls of agents in their runs, and which calls were heard already."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._secrets: Redactor | None = None
        self._lock = threading.Lock()
        self._failed: OrderedDict[tuple[Place, str], list[Call]] = OrderedDict()
        self._heard: OrderedDict[tuple[Place, str, str, bool], None] = OrderedDict()

    def has_failed(self, place: Place, tool: str) -> bool:
        """Whether a call of the tool failed in this run, and none has worked since."""
        return (place, tool) in self._failed

    def failed_before(self, place: Place, tool: str) -> list[Call]:
        """Take out the calls that failed before the one that works now."""
        with self._lock:
            return self._failed.pop((place, tool), [])

    def keep_failed(self, place: Place, call: Call) -> None:
        with self._lock:
            held = self._failed.setdefault((place, call.tool), [])
            held.append(call)
            del held[:-_MOST_FAILED]
            self._failed.move_to_end((place, call.tool))
            bound(self._failed, MOST_PLACES)

    def is_heard(self, place: Place, call: Call, call_id: str | None) -> bool:
        if call_id is None:
            return False
        key = (place, call.tool, call_id, call.error is None)
        with self._lock:
            if key in self._heard:
                return True
            self._heard[key] = None
            bound(self._heard, MOST_HEARD)
        return False

    def forget(self, user_id: str) -> None:
        """Drop what is held of a user."""
        with self._lock:
            drop_user(self._failed, user_id)
            drop_user(self._heard, user_id)

    def clean_text(self, text: str) -> str:
        """A text without secrets, and without what the settings have taken out."""
        return self._services.redactor.text(self._secret_finder().text(text))

    def _secret_finder(self) -> Redactor:
        if self._secrets is None:
            self._secrets = open_redactor(_SECRETS, self._services.settings.phone_regions)
        return self._secrets

    def clean(self, call: Call) -> Call:
        """The call without secrets, and without what the settings have taken out, before anything is kept."""
        secrets = self._secret_finder()

        def clean(name: str, value: Any) -> Any:
            told = secrets.value({last_name(name): value})
            return next(iter(self._services.redactor.value(told).values()))

        given = {name: clean(name, value) for name, value in call.arguments.items()}
        return replace(
            call, arguments=given, error=None if call.error is None else self.clean_text(call.error)
        )
