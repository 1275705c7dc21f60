"""A store that tallies the commits of each user, around one that keeps the records."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Commit, Committed, Health, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend


@runtime_checkable
class Tallies(Protocol):
    """A store that knows how many commits each user has made."""

    def commits_of(self, user_id: str) -> int: ...


class TallyingStore:
    """All that the protocol asks for, handed to the store behind."""

    name = "outside"

    def __init__(self, behind: MemoryBackend) -> None:
        self._behind = behind
        self._commits: Counter[str] = Counter()
        for verb in ("search", "get", "list", "count", "versions", "close", "update", "delete"):
            setattr(self, verb, getattr(behind, verb))

    @property
    def audit(self) -> Any:
        return self._behind.audit

    def write(self, records: Sequence[Any]) -> Any:
        return self._behind.write(records)

    def batch(self, commit: Commit) -> Committed:
        done = self._behind.batch(commit)
        self._commits.update({change.record.user_id for change in commit.changes})
        return done

    def health(self) -> Health:
        return replace(self._behind.health(), name=self.name)

    def commits_of(self, user_id: str) -> int:
        return self._commits[user_id]


def open_store(path: Path | None, settings: object) -> TallyingStore:
    return TallyingStore(InMemoryBackend() if path is None else SqliteBackend(path))
