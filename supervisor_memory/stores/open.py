"""Opens the backend that a setting names."""

import difflib
from collections.abc import Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from supervisor_memory.errors import SettingsError, SupervisorMemoryError
from supervisor_memory.stores.protocol import MemoryBackend

if TYPE_CHECKING:
    from pydantic import SecretStr

    from supervisor_memory.stores.qdrant.collection_names import Division

BACKENDS: Final = ("in_memory", "json", "sqlite")
"""Backends that need no more than a directory."""
CHOICES: Final = (*BACKENDS, "qdrant")
GROUP: Final = "supervisor_memory.backends"
"""The group of entry points under which other packages publish stores: name = module:function, which is given
the directory and the settings, and returns a `MemoryBackend`."""
_SHARE: Final = 0.5
"""The share of a flow's deadline that a server may take for a call; the rest is for going on without it."""


class Remote(Protocol):
    """The settings of a server, as `Settings` has them."""

    @property
    def qdrant_url(self) -> str | None: ...
    @property
    def qdrant_key(self) -> "SecretStr | None": ...
    @property
    def qdrant_ca(self) -> Path | None: ...
    @property
    def qdrant_link_local(self) -> bool: ...
    @property
    def qdrant_prefix(self) -> str: ...
    @property
    def qdrant_collections(self) -> "Division": ...
    @property
    def dual_write(self) -> bool: ...
    @property
    def search_timeout_ms(self) -> int: ...
    @property
    def write_timeout_ms(self) -> int: ...


def open_backend(
    name: str, path: Path | None, remote: Remote | None = None, *, replays: bool = True
) -> MemoryBackend:
    """Open the backend of this name.

    Args:
        path: The directory of the files: of the store, or with `qdrant` of the journal and the audit log.
            None is fine for `in_memory`; with `qdrant` journal and log are then in memory.
        remote: The settings of the server, for `qdrant`.
        replays: Whether this process applies commits that wait for the server in the journal.

    Raises:
        SettingsError: there is no such backend, or it needs a directory or an address.
        BackendError: it cannot be opened.
    """
    match name:
        case "in_memory":
            from supervisor_memory.stores.memory.in_memory import InMemoryBackend

            return InMemoryBackend()
        case "json":
            from supervisor_memory.stores.memory.json_file import JsonBackend

            return JsonBackend(_needed(name, path))
        case "sqlite":
            from supervisor_memory.stores.sqlite.store import SqliteBackend

            return SqliteBackend(_needed(name, path))
        case "qdrant":
            return _open_qdrant(path, remote, replays=replays)
    return _open_published(name, path, remote)


def _open_published(name: str, path: Path | None, remote: Remote | None) -> MemoryBackend:
    """Open the store that another package publishes under a name."""
    points = entry_points(group=GROUP)
    if name not in points.names:
        choices = (*CHOICES, *sorted(points.names))
        told = f"is no backend{_nearest(name, choices)}; choose one of {', '.join(choices)}"
        raise SettingsError(f"MEMORY_BACKEND={name!r} {told}", name=name, choices=choices)
    point = points[name]
    try:
        store = point.load()(path, remote)
    except SupervisorMemoryError:
        raise
    except Exception as error:
        told = f"cannot be opened by {point.value}: {type(error).__name__}: {error}"
        raise SettingsError(f"MEMORY_BACKEND={name!r} {told}", name=name) from error
    if not isinstance(store, MemoryBackend):
        raise SettingsError(
            f"MEMORY_BACKEND={name!r} is {type(store).__name__} by {point.value}, which is no MemoryBackend; "
            "run supervisor_memory.testing.backend_contract on it",
            name=name,
        )
    return store


def _open_qdrant(path: Path | None, remote: Remote | None, *, replays: bool) -> MemoryBackend:
    if remote is None or not remote.qdrant_url:
        raise SettingsError(
            'MEMORY_BACKEND="qdrant" needs the address of a server: set QDRANT_URL=http://localhost:6333, or '
            "for development QDRANT_URL=:memory: or a directory",
            name="qdrant",
        )
    if find_spec("qdrant_client") is None:
        told = 'MEMORY_BACKEND="qdrant" needs qdrant-client: pip install "supervisor-memory[qdrant]"'
        raise SettingsError(told, name="qdrant")
    from supervisor_memory.audit.log import RelayedLog
    from supervisor_memory.stores.journal.store import JournalBackend
    from supervisor_memory.stores.qdrant.store import QdrantBackend
    from supervisor_memory.stores.qdrant.url import IN_MEMORY, connect, is_server

    client = connect(
        remote.qdrant_url,
        key=None if remote.qdrant_key is None else remote.qdrant_key.get_secret_value(),
        ca=remote.qdrant_ca,
        link_local=remote.qdrant_link_local,
        seconds=remote.write_timeout_ms / 1000,
    )
    # What is on this machine is slow at worst, and never out of reach.
    share = _SHARE if is_server(remote.qdrant_url) else inf
    try:
        store = QdrantBackend(
            client,
            prefix=remote.qdrant_prefix,
            collections=remote.qdrant_collections,
            audit=RelayedLog(),
            on_close=client.close,
        )
        return JournalBackend(
            store,
            None if remote.qdrant_url == IN_MEMORY else path,
            copies=remote.dual_write,
            replays=replays,
            read_seconds=share * remote.search_timeout_ms / 1000,
            write_seconds=share * remote.write_timeout_ms / 1000,
        )
    except BaseException:
        client.close()
        raise


def _needed(name: str, path: Path | None) -> Path:
    if path is None:
        told = f"MEMORY_BACKEND={name!r} keeps files and needs a directory; set MEMORY_PATH"
        raise SettingsError(told, name=name)
    return path


def _nearest(name: str, choices: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), choices, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
