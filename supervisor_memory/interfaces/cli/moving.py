"""The commands that move memories: export, import, copy. docs/moving.md tells what they promise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from typer import Argument, Option

from supervisor_memory.errors import BackendUnavailable, SettingsError
from supervisor_memory.interfaces.cli.options import (
    FAILED,
    EnvFile,
    Json,
    existing_memory,
    for_user,
    opened,
    print_json,
    say,
    told_settings,
)
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from supervisor_memory.moving.arrival import Moved

_Only = Annotated[str | None, for_user("Only this user's records.")]
_STANDARD = "-"
_NAMED = 10
"""Refused records that are named one by one."""


def export(
    file: Annotated[str, Argument(help="The file to write; -: standard output.", metavar="FILE")],
    *,
    user: _Only = None,
    resume: Annotated[
        bool, Option("--resume", help="Go on where an export to this file was cut off.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace a FILE that is there.")] = False,
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
    with opened(env_file) as memory, bar("export") as progress:
        target = sys.stdout.buffer if file == _STANDARD else file
        moved = memory.export(target, user_id=user, resume=resume, progress=progress)
    _print_moved(moved, json=json, quiet=file == _STANDARD)


def import_(
    file: Annotated[str, Argument(help="The file to read; -: standard input.", metavar="FILE")],
    *,
    user: _Only = None,
    name_ok: Annotated[
        list[str] | None,
        Option("--name-ok", help="A name in what a team shares that is no person's.", metavar="NAME"),
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Take the records of an export as they are. The store is made where it is missing.

    What a team shares is looked through as before a promotion. Run again, it changes
    nothing. Exit code 1 when something was refused: each is told, with its line.
    """
    with _memory_to_fill(told_settings(env_file)) as memory, bar("import") as progress:
        source = sys.stdin.buffer if file == _STANDARD else file
        moved = memory.import_from(source, user_id=user, progress=progress, names_ok=tuple(name_ok or ()))
    _print_moved(moved, json=json)


def copy(
    *,
    to: Annotated[
        str, Option("--to", help="The backend to copy to: sqlite, json or qdrant.", metavar="NAME")
    ],
    path: Annotated[
        Path | None, Option("--to-path", help="Its MEMORY_PATH; MEMORY_PATH if unset.", metavar="DIR")
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
    with existing_memory(settings) as memory, _memory_to_fill(target) as other, bar("copy") as progress:
        moved = memory.copy_to(other, user_id=user, progress=progress)
    _print_moved(moved, json=json)


def _target(settings: Settings, name: str, path: Path | None) -> Settings:
    target = settings.model_copy(update={"backend": name, "path": path or settings.path})
    if (target.backend, target.path.resolve()) == (settings.backend, settings.path.resolve()):
        raise SettingsError("this would copy the store into itself; name another --to, or --to-path")
    return target


def _memory_to_fill(settings: Settings) -> SupervisorMemory:
    """The memory over a store for new records; the store is made where it is missing."""
    if settings.backend == "in_memory":
        raise BackendUnavailable(
            "not persistent: MEMORY_BACKEND=in_memory loses all that comes to it when this command ends; "
            "choose sqlite, json or qdrant"
        )
    return SupervisorMemory(settings.model_copy(update={"embedding_model": "none"}))


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, called with the amount done and the total; none for a file or a pipe."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=max(done, total))


def _print_moved(moved: "Moved", *, json: bool, quiet: bool = False) -> None:
    """Print the result. The first few refused records are named; `--json` names a thousand."""
    if json:
        print_json({"counts": moved.counts, "refused": [asdict(each) for each in moved.refused]})
    elif not quiet:
        counts = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in moved.counts.items())
        typer.echo(counts or "there is nothing to move")
    named = moved.refused[:_NAMED]
    for each in named:
        line = "" if each.line is None else f"line {each.line}: "
        say(f"refused: {line}{each.told}")
    if (more := moved.counts.get("refused", 0) - len(named)) > 0:
        say(f"refused: {more:,} more")
    if not moved.is_whole:
        raise typer.Exit(FAILED)
