"""The commands `history` and `diff`: how a record came to say what it says."""

from typing import TYPE_CHECKING, Annotated

import typer

from supervisor_memory.errors import RecordNotFound
from supervisor_memory.interfaces.cli.options import EnvFile, Json, told_settings
from supervisor_memory.interfaces.printable import as_json, moment, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor_memory.model.versions import Version

__all__ = ["add_commands"]

_ID = Annotated[str, typer.Argument(help="A record's id.", metavar="ID")]


def add_commands(app: typer.Typer) -> None:
    app.command()(history)
    app.command()(diff)


def history(id: _ID, *, json: Json = False, env_file: EnvFile = None) -> None:
    """Show the versions of a record, oldest first: what it said, since when, and what decided it."""
    found = _versions(id, env_file)
    if json:
        typer.echo(as_json({"id": id, "versions": [version.to_dict() for version in found]}))
        return
    for version in found:
        when = "" if version.recorded_at is None else f", recorded {moment(version.recorded_at)}"
        decided = f" by {version.op} of {version.actor}" if version.op else ""
        reason = f" ({version.reason})" if version.reason else ""
        said = f", said in session {version.said_in}" if version.said_in else ""
        typer.echo(one_line(f"version {version.version}, {version.status}{when}{decided}{reason}{said}"))
        typer.echo(f"    {one_line(version.content)}")


def diff(
    id: _ID,
    *,
    old: Annotated[
        int | None, typer.Option("--from", min=1, help="The one before --to, if unset.", metavar="N")
    ] = None,
    new: Annotated[
        int | None, typer.Option("--to", min=1, help="The present one, if unset.", metavar="N")
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what changed in a record from one version to another: [-taken out-] and {+put in+}."""
    from supervisor_memory.interfaces.differences import differences

    found = {version.version: version for version in _versions(id, env_file)}
    last = max(found) if new is None else new
    first = max(1, last - 1) if old is None else old
    if missing := {first, last} - set(found):
        raise RecordNotFound(
            f"record {id} has no version {min(missing)}; it has {min(found)} to {max(found)}", id=id
        )
    parts = differences(found[first].content, found[last].content)
    if json:
        told = [{"what": part.what, "text": part.text} for part in parts]
        typer.echo(as_json({"id": id, "from": first, "to": last, "parts": told}))
        return
    marks = {"same": ("", ""), "del": ("[-", "-]"), "ins": ("{+", "+}")}
    words = (f"{marks[part.what][0]}{part.text}{marks[part.what][1]}" for part in parts)
    typer.echo(one_line("".join(words)))


def _versions(id: str, env_file: EnvFile) -> "Sequence[Version]":
    from supervisor_memory.interfaces.cli.store import existing_memory

    with existing_memory(told_settings(env_file), embedder=False) as memory:
        return memory.history(id)
