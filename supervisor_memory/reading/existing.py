"""Looks at the store of the settings without a memory, and makes no file; repairs it, too."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from supervisor_memory.disk.database import Database
from supervisor_memory.errors import BackendUnavailable, SettingsError
from supervisor_memory.settings import Settings
from supervisor_memory.stores.journal.entries import Entries, Entry
from supervisor_memory.stores.journal.place import JOURNAL_FILE_NAME
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.upkeep.queue.tables import QUEUE_FILE_NAME, QueueFile, Waiting

if TYPE_CHECKING:
    from supervisor_memory.stores.sqlite.repair import Repaired

__all__ = [
    "NOTHING_WAITS",
    "Entry",
    "QueueFile",
    "Waiting",
    "backlog_in",
    "existing_backend",
    "queue_in",
    "repair",
    "store_exists",
    "store_files",
]

NOTHING_WAITS: Final = {"begun": 0, "waiting": 0, "dead": 0, "erasures": 0}
_SHOWN: Final = 100
_MARKERS = {"sqlite": ("memory.db",), "json": ("memory.json", "audit.db")}
_PREFIXES = ("memory.", "audit.", "journal.", "queue.")


def store_exists(settings: Settings) -> bool:
    """Whether the backend of the settings keeps files, and they are there."""
    return any((settings.path / name).exists() for name in _MARKERS.get(settings.backend, ()))


def store_files(settings: Settings) -> list[Path]:
    """The files of the store, by name; the directory itself comes first. None where there is no store.

    Of a store that is elsewhere: its journal and audit log.
    """
    if not store_exists(settings) and not (
        settings.backend == "qdrant" and (settings.path / JOURNAL_FILE_NAME).exists()
    ):
        return []
    folder = settings.path.absolute()
    return [folder, *sorted(file for file in folder.iterdir() if file.name.startswith(_PREFIXES))]


def existing_backend(settings: Settings) -> MemoryBackend:
    """Open a store that exists, without applying what waits in its journal.

    Raises:
        BackendUnavailable: there is no such store, or no other process could see it.
        SettingsError, BackendError: it cannot be opened.
    """
    if settings.backend in _MARKERS and not store_exists(settings):
        raise BackendUnavailable(
            f"there is no {settings.backend} store in {settings.path} yet, so nothing is remembered; it is "
            "made by the first run of a graph with memory. Another place: MEMORY_PATH, or --env-file",
            path=str(settings.path),
        )
    if settings.backend == "in_memory":
        raise BackendUnavailable(
            "not persistent: MEMORY_BACKEND=in_memory keeps records inside the process that made them, so "
            "there is nothing to see from here; set MEMORY_BACKEND=sqlite"
        )
    return open_backend(settings.backend, settings.path, settings, replays=False)


@contextmanager
def queue_in(settings: Settings) -> Iterator[QueueFile | None]:
    """The queue of the settings' store; None where none was made."""
    place = settings.path
    if settings.backend == "in_memory" or not (place / QUEUE_FILE_NAME).exists():
        yield None
        return
    with closing(QueueFile(place)) as file:
        yield file


@dataclass(frozen=True, slots=True)
class Backlog:
    """The commits in a journal: counts by state, how many were `retried`, the first waiting and dead."""

    counts: Mapping[str, int]
    retried: int = 0
    waiting: tuple[Entry, ...] = ()
    dead: tuple[Entry, ...] = ()


def backlog_in(settings: Settings, *, retry: bool = False) -> Backlog:
    """Read the journal of the settings' store; with `retry` its dead commits wait again."""
    if not (file := settings.path / JOURNAL_FILE_NAME).exists():
        return Backlog(NOTHING_WAITS)
    with closing(Database(file)) as database:
        entries = Entries(database)
        retried = entries.retry_dead() if retry else 0
        return Backlog(
            {**NOTHING_WAITS, **entries.counts(), "erasures": len(entries.erasures())},
            retried,
            tuple(entries.first("waiting", limit=_SHOWN)),
            tuple(entries.first("dead", limit=_SHOWN)),
        )


def repair(settings: Settings) -> "Repaired":
    """Make the damaged store of the settings anew from all that is still readable.

    Raises:
        SettingsError: the store keeps no files here.
        BackendUnavailable: another process writes it, or a newer release has written it.
        OSError: the directory cannot be written, or is full; then nothing was changed.
    """
    from supervisor_memory.stores.sqlite.repair import repair_json, repair_sqlite

    repairs = {"sqlite": repair_sqlite, "json": repair_json}
    if settings.backend not in repairs:
        raise SettingsError(
            f"MEMORY_BACKEND={settings.backend!r} keeps no records in files here, so there is nothing to "
            "repair",
            name="backend",
        )
    return repairs[settings.backend](settings.path, now=time.time())
