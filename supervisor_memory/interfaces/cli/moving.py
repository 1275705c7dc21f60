"""The commands that move memories: export, import, copy. docs/moving.md tells what they promise."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supervisor_memory.errors import SettingsError
from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, say, told_settings
from supervisor_memory.interfaces.cli.progress import bar
from supervisor_memory.interfaces.cli.store import existing_memory, memory_to_fill
from supervisor_memory.interfaces.printable import as_json

if TYPE_CHECKING:
    from supervisor_memory.moving.arrival import Moved
    from supervisor_memory.settings import Settings

__all__ = ["add_commands"]

_Only = Annotated[str | None, typer.Option("--user", "-u", help="Only this user's records.", metavar="ID")]
_STANDARD = "-"


def add_commands(app: typer.Typer) -> None:
    app.command()(export)
    app.command(name="import")(import_)
    app.command()(copy)


def export(
    file: Annotated[str, typer.Argument(help="The file to write; -: standard output.", metavar="FILE")],
    *,
    user: _Only = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an export to this file was cut off.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a FILE that is there.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Write all records into a file, in every status, with their versions and vectors.

    The file gets its name when it is whole, until then it ends with ".part"; its owner alone may read it.
    """
    if file == _STANDARD and json:
        raise typer.BadParameter("standard output is for the records; leave out --json")
    if file != _STANDARD and Path(file).is_file() and not force:
        raise SettingsError(f"{file} is there already; name a file that is not, or replace it with --force")
    with existing_memory(told_settings(env_file), embedder=False) as memory, bar("export") as progress:
        target = sys.stdout.buffer if file == _STANDARD else file
        moved = memory.export(target, user_id=user, resume=resume, progress=progress)
    _tell(moved, json=json, quiet=file == _STANDARD)


def import_(
    file: Annotated[str, typer.Argument(help="The file to read; -: standard input.", metavar="FILE")],
    *,
    user: _Only = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Take the records of an export as they are. The store is made where it is missing.

    Run again, it changes nothing. Exit code 1 when something was refused: each is told, with its line.
    """
    with memory_to_fill(told_settings(env_file)) as memory, bar("import") as progress:
        source = sys.stdin.buffer if file == _STANDARD else file
        moved = memory.import_from(source, user_id=user, progress=progress)
    _tell(moved, json=json)


def copy(
    *,
    to: Annotated[
        str, typer.Option("--to", help="The backend to copy to: sqlite, json or qdrant.", metavar="NAME")
    ],
    path: Annotated[
        Path | None,
        typer.Option("--to-path", help="Its MEMORY_PATH; MEMORY_PATH if unset.", metavar="DIR"),
    ] = None,
    user: _Only = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Copy all records into another store, as they are. The other one is made where it is missing.

    Its other settings, such as QDRANT_URL, are those of the environment. Run again, it changes nothing.
    """
    settings = told_settings(env_file)
    target = _target(settings, to, path)
    with (
        existing_memory(settings, embedder=False) as memory,
        memory_to_fill(target) as other,
        bar("copy") as progress,
    ):
        moved = memory.copy_to(other, user_id=user, progress=progress)
    _tell(moved, json=json)


def _target(settings: "Settings", name: str, path: Path | None) -> "Settings":
    target = settings.model_copy(update={"backend": name, "path": path or settings.path})
    if (target.backend, target.path.resolve()) == (settings.backend, settings.path.resolve()):
        raise SettingsError("this would copy the store into itself; name another --to, or --to-path")
    return target


def _tell(moved: "Moved", *, json: bool, quiet: bool = False) -> None:
    """What became of the records. The first thousand that were refused are named."""
    if json:
        typer.echo(as_json(_value(moved)))
    elif not quiet:
        counts = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in moved.counts.items())
        typer.echo(counts or "there is nothing to move")
    for each in moved.refused:
        line = "" if each.line is None else f"line {each.line}: "
        say(f"refused: {line}{each.told}")
    if (more := moved.counts.get("refused", 0) - len(moved.refused)) > 0:
        say(f"refused: {more:,} more")
    if not moved.is_whole:
        raise typer.Exit(FAILED)


def _value(moved: "Moved") -> dict[str, Any]:
    refused = [
        {"line": each.line, "record_id": each.record_id, "reason": each.reason, "told": each.told}
        for each in moved.refused
    ]
    return {"counts": moved.counts, "refused": refused}
