"""Long-term memory for a LangGraph supervisor and the agents it leads."""

from supervisor_memory.flow import Outcome
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Hit, Hits, Note, Record, Route, Scope, WriteResult
from supervisor_memory.settings import Settings

__all__ = [
    "Hit",
    "Hits",
    "Note",
    "Outcome",
    "Record",
    "Route",
    "Scope",
    "Settings",
    "SupervisorMemory",
    "WriteResult",
]
