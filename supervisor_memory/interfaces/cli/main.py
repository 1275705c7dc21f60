"""The command line: it reads arguments, calls SupervisorMemory, and shows what comes back.

Exit codes: 0 fine, 1 failed or unhealthy, 2 wrong usage. With `--json`, stdout holds one JSON value and
nothing else; docs/cli.md lists its keys. What is said besides goes to stderr.
"""

import io
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from typer.core import TyperGroup

from supervisor_memory.errors import (
    IdentityError,
    InvalidContent,
    SettingsError,
    SupervisorMemoryError,
)
from supervisor_memory.interfaces.cli import (
    auditing,
    forgetting,
    journal,
    moving,
    queue,
    reviewing,
    stats,
    versions,
)
from supervisor_memory.interfaces.cli import repair as repairing
from supervisor_memory.interfaces.cli import topics as contents
from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, say, settings_from, told_settings
from supervisor_memory.interfaces.cli.where import (
    AsOf,
    Kinds,
    Metadata,
    Since,
    Tags,
    Until,
    moment_of,
    where_of,
)
from supervisor_memory.interfaces.mcp import command as mcp_command
from supervisor_memory.interfaces.present import audit_rows, erased, hits_told, to_be_erased
from supervisor_memory.interfaces.printable import as_json, counted, one_line

if TYPE_CHECKING:
    from supervisor_memory.memory import SupervisorMemory

__all__ = ["app", "main"]

WRONG_USAGE: Final = 2


class _OneLineErrors(TyperGroup):
    """Our errors, and those of the file system, as one line and an exit code; others are bugs."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (IdentityError, InvalidContent) as error:
            say(f"error: {error}")
            raise typer.Exit(WRONG_USAGE) from error
        except BrokenPipeError:
            raise
        except (SupervisorMemoryError, OSError) as error:
            say(f"error: {error}")
            raise typer.Exit(FAILED) from error


app = typer.Typer(
    cls=_OneLineErrors,
    help="Look into the long-term memory of a LangGraph supervisor.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # its tracebacks would show records
)

User = Annotated[str, typer.Option("--user", "-u", help="Whose memory.", metavar="ID")]
Family = Annotated[
    list[str] | None,
    typer.Option("--family", "-f", help="Only this family, as user_profile; repeatable.", metavar="NAME"),
]


@app.callback(invoke_without_command=True)
def _root(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        typer.echo(version_of("supervisor-memory"))
        raise typer.Exit


@app.command()
def doctor(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="List every setting with its meaning, not only those set.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Tell which backend and embedder are live, where each setting comes from, and what is wrong.

    Makes no file. Exit code 0: works; 1: a problem, named at the end.
    """
    from supervisor_memory.interfaces.cli import tables as lines
    from supervisor_memory.reading import doctor as examination

    try:
        settings, said = settings_from(env_file)
    except SettingsError as error:
        if json:
            unread = dict.fromkeys(
                ("settings", "recipe", "backend", "queue", "embedder", "files", "capacity")
            )
            told = {"ok": False, **examination.versions(), **unread, "problems": [str(error)], "warnings": []}
            typer.echo(as_json(told))
        raise
    diagnosis = examination.diagnose(settings, warnings=said)
    if json:
        typer.echo(as_json(diagnosis.to_dict()))
    else:
        lines.show_diagnosis(_console(), diagnosis, every_setting=everything)
    if not diagnosis.ok:
        raise typer.Exit(FAILED)


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for.", metavar="TEXT")],
    *,
    user: User,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, max=1000, help="Most hits; MEMORY_TOP_K if unset.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Least relevance; MEMORY_MIN_SCORE if unset; 0: the best anyhow."
        ),
    ] = None,
    family: Family = None,
    kind: Kinds = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    meta: Metadata = None,
    as_of: AsOf = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every candidate, with what became of it and why.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Search one user's memory as a graph would, and tell why each record was found.

    An empty TEXT shows what is pinned, and then what is newest.
    """
    from supervisor_memory.interfaces.cli import tables as lines

    with _open(env_file, embedder=True) as memory:
        hits = memory.search(
            text,
            user_id=user,
            limit=limit,
            threshold=threshold,
            families=family,
            where=where_of(kind, tag, since, until, meta),
            explain=explain,
            as_of=moment_of(as_of, end=True),
        )
    if json:
        told = {"query": text, "user_id": user, "degraded": hits.degraded, "notes": [*hits.notes]}
        typer.echo(as_json({**told, **hits_told(hits, explain=explain)}))
    elif explain and hits.considered:
        lines.show_explanation(_console(), hits)
    else:
        lines.show_hits(_console(), hits, user=user)
    for note in () if json else hits.notes:
        say(f"degraded: {note}" if hits.degraded else note)


@app.command(name="list")
def list_(
    *,
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most records.")] = 100,
    family: Family = None,
    kind: Kinds = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    meta: Metadata = None,
    as_of: AsOf = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """List one user's active records, the latest first. Session messages only with --family."""
    with _open(env_file) as memory:
        where = where_of(kind, tag, since, until, meta)
        then = moment_of(as_of, end=True)
        records = memory.get_all(user_id=user, limit=limit, families=family, where=where, as_of=then)
    if json:
        typer.echo(as_json({"user_id": user, "records": [record.to_dict() for record in records]}))
        return
    from supervisor_memory.interfaces.cli import tables as lines

    lines.show_records(_console(), records, user=user)
    if len(records) == limit:
        say(f"these are the latest {limit}; --limit shows more")


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="A record's id.", metavar="ID")],
    *,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show one record with its messages, earlier versions, audit rows and readers."""
    with _open(env_file) as memory:
        record = memory.get(id)
        versions = memory.history(id)
        rows = audit_rows(memory, memory.audit.tail(_ROWS, record_id=id))
        accesses = [asdict(row) for row in memory.audit.accesses(_ROWS, record_id=id)]
        messages = memory.messages(id)
    if json:
        told = {
            "record": record.to_dict(),
            "messages": [message.to_dict() for message in messages],
            "versions": [version.to_dict() for version in versions[:-1]],
            "audit": rows,
            "accesses": accesses,
        }
        typer.echo(as_json(told))
        return
    from supervisor_memory.interfaces.cli import tables as lines

    lines.show_record(_console(), record, versions, rows, accesses, messages=messages)


@app.command()
def erase(
    *,
    user: User,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without, only tell how much it would remove.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Remove a user for good: records and versions, their traces in the files, and who saw them.

    Nothing brings it back. Exit code 1 also where something is pending: run it again when others have let go
    of the store.
    """
    with _open(env_file) as memory:
        told = erased(memory, user, reviewer="operator") if yes else to_be_erased(memory, user)
    if json:
        typer.echo(as_json(told))
    else:
        counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in told["counts"].items())
        typer.echo(f"{'removed' if yes else 'would remove'} of {one_line(user)}: {counts}")
        for line in told["out_of_reach"]:
            typer.echo(f"out of reach: {line}")
    for line in told["pending"]:
        say(f"pending: {line}")
    if not yes:
        say("nothing was removed; --yes removes it for good")
    if told["pending"]:
        raise typer.Exit(FAILED)


@app.command()
def reembed(
    *,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Only this user's records.", metavar="ID")
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Embed the records that EMBEDDING_MODEL has not read: after a change of it, after it failed.

    Until then they are found by words alone. It can be cut off anywhere and run again, beside graphs.
    """
    from supervisor_memory.interfaces.cli.progress import bar

    with _open(env_file, embedder=True) as memory, bar("embedding") as progress:
        done = memory.reembed(user_id=user, progress=progress)
    if json:
        typer.echo(as_json(asdict(done)))
        return
    typer.echo(f"embedded {counted(done.embedded, 'record')} with {one_line(done.embedder)}")
    if done.unread:
        say(f"{done.unread:,} are in a language it does not read; they are found by words alone")
    if done.refused:
        first = ", ".join(done.refused[:_SOME])
        say(f"it failed on {len(done.refused):,}, which are found by words alone: {first}")


@app.command()
def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8765,
    env_file: EnvFile = None,
) -> None:
    """Answer by HTTP, as docs/http.md tells, and show the dashboard. The store is made where it is missing.

    Whoever asks needs a token of MEMORY_SERVER_TOKENS; where there are none, one is made and printed.
    """
    settings = told_settings(env_file)
    try:
        from supervisor_memory.interfaces.http.serve import serve as answer
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"serve needs {error.name}, which is not installed: pip install 'supervisor-memory[server]'"
        ) from error
    answer(settings, host=host, port=port)


_ROWS: Final = 20
_SOME: Final = 3


def _open(env_file: Path | None, *, embedder: bool = False) -> "SupervisorMemory":
    from supervisor_memory.interfaces.cli.store import existing_memory

    return existing_memory(told_settings(env_file), embedder=embedder)


def _console() -> Console:
    return Console(highlight=False, soft_wrap=False)


auditing.add_commands(app)
contents.add_commands(app)
forgetting.add_commands(app)
moving.add_commands(app)
repairing.add_commands(app)
reviewing.add_commands(app)
stats.add_commands(app)
versions.add_commands(app)
journal.add_commands(app)
mcp_command.add_commands(app)
queue.add_commands(app)


def main() -> None:
    """The entry point `supervisor-memory`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters it cannot show become escapes
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="supervisor-memory")
