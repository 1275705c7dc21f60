"""The store that the settings mean, opened only when it is there: looking must not make one."""

from pathlib import Path
from typing import TYPE_CHECKING

from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.settings import Settings
from supervisor_memory.stores.open import open_backend

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["existing_memory", "memory_to_fill", "store_exists", "store_files"]

_OPERATOR = "operator"
"""Who reads on the command line, in the access log."""
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
        settings.backend == "qdrant" and (settings.path / "journal.db").exists()
    ):
        return []
    folder = settings.path.absolute()
    return [folder, *sorted(file for file in folder.iterdir() if file.name.startswith(_PREFIXES))]


def existing_memory(settings: Settings, *, embedder: bool) -> "SupervisorMemory":
    """The memory over a store that is there.

    Args:
        embedder: Whether a question will be asked; without, no model is loaded.

    Raises:
        BackendUnavailable: there is no such store, or none that another process could see.
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
    from supervisor_memory.memory import SupervisorMemory

    # Who only looks applies nothing that waits.
    backend = open_backend(settings.backend, settings.path, settings, replays=False)
    known = settings if embedder else settings.model_copy(update={"embedding_model": "none"})
    return SupervisorMemory(known, backend=backend).read_by(_OPERATOR)


def memory_to_fill(settings: Settings) -> "SupervisorMemory":
    """The memory over a store that records shall come to; it is made where it is missing.

    Raises:
        BackendUnavailable: what comes to it would be gone with this process.
        SettingsError, BackendError: it cannot be opened.
    """
    if settings.backend == "in_memory":
        raise BackendUnavailable(
            "not persistent: MEMORY_BACKEND=in_memory loses all that comes to it when this command ends; "
            "choose sqlite, json or qdrant"
        )
    from supervisor_memory.memory import SupervisorMemory

    return SupervisorMemory(settings.model_copy(update={"embedding_model": "none"}))
