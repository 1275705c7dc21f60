"""What the errors of SQLite mean to us."""

import apsw

from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, ReadOnlyStore

__all__ = ["translated"]


def translated(error: apsw.Error | UnicodeDecodeError, *, where: str, waited: float) -> BackendError:
    """What an error of SQLite means to a caller; to be raised `from` it."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return BackendUnavailable(
                f"{where} was locked by another process for more than {waited:g} s; try again, or look for "
                "a process that holds it",
                path=where,
            )
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return CorruptStore(
                f"{where} is damaged or no SQLite file ({error}); it is left as it is: run "
                "`supervisor-memory repair`, or restore a backup",
                path=where,
            )
        case apsw.SQLError() if "malformed JSON" in str(error):
            return CorruptStore(
                f"a record in {where} cannot be read ({error}); it is left as it is: restore a backup",
                path=where,
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return ReadOnlyStore(
                f"{where} can be read but not written ({error}); check its owner and mode", path=where
            )
        case apsw.CantOpenError():
            return BackendUnavailable(
                f"{where} cannot be opened ({error}); check that its directory exists and is writable",
                path=where,
            )
        case apsw.FullError():
            return BackendError(f"no room left for {where}; nothing was saved: free some space", path=where)
        case apsw.IOError():
            return BackendError(
                f"the disk refused {where} ({error}); nothing was saved: look at its space, quota and health",
                path=where,
            )
        case UnicodeDecodeError():
            return CorruptStore(
                f"a text in {where} is damaged ({error.reason}); it is left as it is: run "
                "`supervisor-memory audit verify --deep`, then `supervisor-memory repair`",
                path=where,
            )
        case _:
            return BackendError(f"{where}: {type(error).__name__}: {error}", path=where)
