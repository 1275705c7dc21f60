"""The commands for a store that may be out of reach: what waits for it, and whether the copy is as it is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from supervisor_memory.backends.protocol import Journals
from supervisor_memory.errors import BackendError
from supervisor_memory.interfaces.options import FAILED, EnvFile, Json, say, told_settings
from supervisor_memory.interfaces.printable import as_json, one_line
from supervisor_memory.interfaces.store import existing_memory

if TYPE_CHECKING:
    from supervisor_memory.backends.journal_entries import Entry
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["add_commands"]

_SHOWN: Final = 100


def add_commands(app: typer.Typer) -> None:
    app.command()(backlog)
    app.command()(reconcile)


def backlog(
    *,
    retry: Annotated[
        bool, typer.Option("--retry", help="Let the dead letters wait again; the next process applies them.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what is saved here and waits for the store, and what the store refuses for good (dead letters).

    Asks the store nothing. Exit code 1 when there are dead letters.
    """
    with existing_memory(told_settings(env_file), embedder=False) as memory:
        journal = _journal_of(memory)
        retried = journal.retry_dead_letters() if retry else 0
        counts = dict(journal.backlog())
        waiting = [_told(entry) for entry in journal.waiting(_SHOWN)]
        dead = [_told(entry) for entry in journal.dead_letters(_SHOWN)]
    if json:
        typer.echo(as_json({"counts": counts, "retried": retried, "waiting": waiting, "dead": dead}))
    else:
        told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        typer.echo(told or "nothing waits")
        for entry in (*waiting, *dead):
            typer.echo(one_line("{begun_at}  {commit}  {changes} changes  {state} {reason}".format(**entry)))
    if retried:
        say(f"{retried} dead letters wait again")
    if dead:
        raise typer.Exit(FAILED)


def reconcile(*, json: Json = False, env_file: EnvFile = None) -> None:
    """Apply what waits, then compare the copy of MEMORY_DUAL_WRITE with the store, and mend both.

    Exit code 1 when the store does not take something back.
    """
    with existing_memory(told_settings(env_file), embedder=True) as memory:
        done = _journal_of(memory).reconcile()
    if json:
        counts = {name: getattr(done, name) for name in ("compared", "brought", "restored", "forgotten")}
        typer.echo(as_json({**counts, "refused": done.refused}))
    else:
        typer.echo(
            f"compared {done.compared} records: {done.brought} brought into the copy, {done.restored} given "
            f"back to the store, {done.forgotten} forgotten for their user was erased"
        )
    for record_id, reason in done.refused.items():
        say(f"refused: {record_id} ({reason}); it stays in the copy")
    if done.refused:
        raise typer.Exit(FAILED)


def _journal_of(memory: "SupervisorMemory") -> Journals:
    if isinstance(memory.backend, Journals):
        return memory.backend
    raise BackendError(
        f"MEMORY_BACKEND={memory.backend.name} is on this machine and has no journal: nothing ever waits"
    )


def _told(entry: "Entry") -> dict[str, Any]:
    begun = datetime.fromtimestamp(entry.at, UTC)
    return {
        "seq": entry.seq,
        "commit": entry.commit.id,
        "begun_at": begun.isoformat(timespec="seconds"),
        "state": entry.state,
        "reason": entry.reason,
        "attempts": entry.attempts,
        "changes": len(entry.commit.changes),
        "records": _ids(entry),
    }


def _ids(entry: "Entry") -> Sequence[str]:
    return [change.record.id for change in entry.commit.changes]
