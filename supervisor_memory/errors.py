"""Everything this library raises on purpose.

SupervisorMemoryError
├── SettingsError              a setting is unknown, out of range, or contradicts another
│   └── RecipeError            a recipe's file cannot be read or has a forbidden entry
├── IdentityError              the acting user cannot be identified
│   ├── MissingUser            no user id
│   ├── InvalidName            a user, agent, session, family or task name that cannot be one
│   └── IdentityConflict       two trusted sources name different users
├── InvalidContent             the text cannot be remembered
│   ├── InvalidMetadata        its metadata cannot be kept, or not be moved to another store
│   └── ContentTooLarge
├── RedactionError             personal data could not be taken out, so nothing was kept
├── RecordNotFound             no such record, or not this user's
├── AlreadyReviewed            the record does not wait for a reviewer (any more)
├── ConfirmationRequired       the call would touch everything; say so explicitly
├── MemoryAccessDenied         the caller may not do this
│   └── StageDenied            an operator used a power its stage does not have
├── GraphError                 the graph cannot be wrapped
│   ├── UnknownNode
│   └── WorkerHasMemoryTools
├── EmbeddingError             the embedder failed on a text
│   ├── EmbedderNotInstalled
│   └── BadVector              wrong dimension, NaN, infinite or zero
├── BackendError               the store failed
│   ├── BackendUnavailable     cannot be opened or reached
│   ├── CorruptStore           the file is not what it should be; it is left as it is
│   ├── ReadOnlyStore
│   ├── WasErased              the user was erased after this was said; it does not come back
│   └── Conflict               somebody else changed it first; decide again
└── DeadlineExceeded           memory took longer than it may
"""

from typing import Any

__all__ = [
    "AlreadyReviewed",
    "BackendError",
    "BackendUnavailable",
    "BadVector",
    "ConfirmationRequired",
    "Conflict",
    "ContentTooLarge",
    "CorruptStore",
    "DeadlineExceeded",
    "EmbedderNotInstalled",
    "EmbeddingError",
    "GraphError",
    "IdentityConflict",
    "IdentityError",
    "InvalidContent",
    "InvalidMetadata",
    "InvalidName",
    "MemoryAccessDenied",
    "MissingUser",
    "ReadOnlyStore",
    "RecipeError",
    "RecordNotFound",
    "RedactionError",
    "SettingsError",
    "StageDenied",
    "SupervisorMemoryError",
    "UnknownNode",
    "WasErased",
    "WorkerHasMemoryTools",
]


class SupervisorMemoryError(Exception):
    """Base of all errors of this library. `facts` holds the data the message was made from."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class SettingsError(SupervisorMemoryError, ValueError):
    """A setting is unknown, out of range, or contradicts another."""


class RecipeError(SettingsError):
    """A recipe's file cannot be read or has a forbidden entry; the error's facts hold `file` and `line`."""


class IdentityError(SupervisorMemoryError):
    """The acting user cannot be identified."""


class MissingUser(IdentityError, ValueError):
    """No user id was given where memory needs one; there is no shared bucket to fall back to."""


class InvalidName(IdentityError, ValueError):
    """A user, agent, session, family or task name holds characters that would make two names look alike."""


class IdentityConflict(IdentityError):
    """Two trusted sources name different users; memory is off for that run."""


class InvalidContent(SupervisorMemoryError, ValueError):
    """The text is empty or holds characters that text cannot hold."""


class InvalidMetadata(InvalidContent):
    """The metadata are not JSON, are nested too deep, or hold too large a whole number."""


class ContentTooLarge(InvalidContent):
    """The text is over the limit for one record; nothing was stored."""


class RedactionError(SupervisorMemoryError):
    """Personal data could not be taken out of a text, so nothing of it was kept, sent or looked for."""


class RecordNotFound(SupervisorMemoryError, LookupError):
    """There is no such record, or it belongs to another user (the two are not told apart)."""


class AlreadyReviewed(SupervisorMemoryError):
    """The record does not wait for a reviewer: somebody has decided, or nobody ever asked."""


class ConfirmationRequired(SupervisorMemoryError, ValueError):
    """The call would touch everything of a user, or name nothing at all."""


class MemoryAccessDenied(SupervisorMemoryError, PermissionError):
    """The caller may not read or change memory."""


class StageDenied(MemoryAccessDenied):
    """An operator asked for a power that its stage does not have."""


class GraphError(SupervisorMemoryError, ValueError):
    """The graph cannot be wrapped as asked."""


class UnknownNode(GraphError):
    """The graph has no node of that name."""


class WorkerHasMemoryTools(GraphError):
    """A sub-agent carries a memory tool; only the supervisor may."""


class EmbeddingError(SupervisorMemoryError):
    """The embedder failed on a text."""


class EmbedderNotInstalled(EmbeddingError, ImportError):
    """The embedder's package is missing."""


class BadVector(EmbeddingError, ValueError):
    """A vector has the wrong dimension, or is NaN, infinite or zero."""


class BackendError(SupervisorMemoryError):
    """The store failed."""


class BackendUnavailable(BackendError, ConnectionError):
    """The store cannot be opened or reached."""


class CorruptStore(BackendError):
    """The file is damaged or is no store of ours. It is left untouched."""


class ReadOnlyStore(BackendError):
    """The store can be read but not written."""


class WasErased(BackendError):
    """The user was erased after this was said, so it does not come back. Nothing was written."""


class Conflict(BackendError):
    """A record changed, or its like appeared, since it was read. Nothing was written; decide again."""


class DeadlineExceeded(SupervisorMemoryError, TimeoutError):
    """Memory took longer than it may; the graph goes on without it."""


def raised_at(error: BaseException) -> str:
    """The file and line that raised an error, for a log that may not quote its message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "a place unknown"
