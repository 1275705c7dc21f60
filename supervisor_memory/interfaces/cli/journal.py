"""The commands for a store out of reach: show the journal, and compare the copy with the store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supervisor_memory.errors import BackendError
from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, say, told_settings
from supervisor_memory.interfaces.cli.store import existing_memory
from supervisor_memory.interfaces.printable import as_json, one_line

if TYPE_CHECKING:
    from supervisor_memory.reading.existing import Entry

__all__ = ["add_commands"]


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

    Asks the store nothing and makes no file. Exit code 1 when there are dead letters.
    """
    from supervisor_memory.reading.existing import backlog_in

    settings = told_settings(env_file)
    _need_journal(settings.backend)
    found = backlog_in(settings, retry=retry)
    counts, retried = found.counts, found.retried
    waiting, dead = ([_told(entry) for entry in entries] for entries in (found.waiting, found.dead))
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
    settings = told_settings(env_file)
    _need_journal(settings.backend)
    with existing_memory(settings, embedder=True) as memory:
        done = memory.upkeep.reconcile()
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


def _need_journal(backend: str) -> None:
    if backend != "qdrant":
        raise BackendError(
            f"MEMORY_BACKEND={backend} keeps records on this machine and has no journal: nothing ever waits"
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
