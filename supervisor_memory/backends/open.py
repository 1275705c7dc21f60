"""A backend by its name, for those who know it from a setting."""

import difflib
from pathlib import Path
from typing import Final

from supervisor_memory.backends.protocol import MemoryBackend
from supervisor_memory.errors import SettingsError

__all__ = ["BACKENDS", "open_backend"]

BACKENDS: Final = ("in_memory", "json", "sqlite")


def open_backend(name: str, path: Path | None) -> MemoryBackend:
    """Open the backend of this name.

    Args:
        path: The directory for backends that keep files; None is fine for `in_memory`.

    Raises:
        SettingsError: there is no such backend, or it needs a directory.
        BackendError: it cannot be opened.
    """
    match name:
        case "in_memory":
            from supervisor_memory.backends.in_memory import InMemoryBackend

            return InMemoryBackend()
        case "json":
            from supervisor_memory.backends.json_file import JsonBackend

            return JsonBackend(_needed(name, path))
        case "sqlite":
            from supervisor_memory.backends.sqlite import SqliteBackend

            return SqliteBackend(_needed(name, path))
        case "qdrant":
            raise SettingsError(
                'MEMORY_BACKEND="qdrant" is not in this release; use "sqlite", which any number of processes '
                "of one machine can share",
                name=name,
                choices=BACKENDS,
            )
    raise SettingsError(
        f"MEMORY_BACKEND={name!r} is no backend{_nearest(name)}; choose one of {', '.join(BACKENDS)}",
        name=name,
        choices=BACKENDS,
    )


def _needed(name: str, path: Path | None) -> Path:
    if path is None:
        raise SettingsError(
            f"MEMORY_BACKEND={name!r} keeps files and needs a directory; set MEMORY_PATH", name=name
        )
    return path


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), BACKENDS, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
