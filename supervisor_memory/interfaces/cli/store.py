"""The memory of the settings, as the commands open it."""

from typing import TYPE_CHECKING

from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["existing_memory", "memory_to_fill"]

_OPERATOR = "operator"
"""The reader's name in the access log for all commands."""


def existing_memory(settings: Settings, *, embedder: bool) -> "SupervisorMemory":
    """The memory over a store that exists, read by the operator; see `SupervisorMemory.existing`."""
    from supervisor_memory.memory import SupervisorMemory

    return SupervisorMemory.existing(settings, embedder=embedder).read_by(_OPERATOR)


def memory_to_fill(settings: Settings) -> "SupervisorMemory":
    """The memory over a store for new records; the store is made where it is missing.

    Raises:
        BackendUnavailable: the records would be gone with this process.
        SettingsError, BackendError: it cannot be opened.
    """
    if settings.backend == "in_memory":
        raise BackendUnavailable(
            "not persistent: MEMORY_BACKEND=in_memory loses all that comes to it when this command ends; "
            "choose sqlite, json or qdrant"
        )
    from supervisor_memory.memory import SupervisorMemory

    return SupervisorMemory(settings.model_copy(update={"embedding_model": "none"}))
