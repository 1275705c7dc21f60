"""The command that makes a damaged store anew."""

from dataclasses import asdict

import typer

from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, told_settings
from supervisor_memory.interfaces.printable import as_json, one_line

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    app.command()(repair)


def repair(*, json: Json = False, env_file: EnvFile = None) -> None:
    """Make a damaged store anew from its readable parts; stop all programs that use it before.

    The damaged files get another name and are never deleted. A record whose text is not the last that was
    written is kept, and not recalled. Exit code 1: something was lost, and is named.
    """
    from supervisor_memory.reading import existing

    settings = told_settings(env_file)
    done = existing.repair(settings)
    if json:
        typer.echo(as_json({**asdict(done), "put_aside": [str(file) for file in done.put_aside]}))
    elif not done.wrong:
        typer.echo(f"nothing is wrong with the store in {one_line(str(settings.path))}")
    else:
        for problem in done.wrong:
            typer.echo(f"problem: {one_line(problem)}")
        saved = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in done.saved.items())
        typer.echo(f"saved: {saved}")
        for line in done.lost:
            typer.echo(f"lost: {one_line(line)}")
        for file in done.put_aside:
            typer.echo(f"put aside: {one_line(str(file))}")
        if done.put_aside:
            typer.echo("those still hold personal data, of users erased later too: delete them when done")
    if done.lost:
        raise typer.Exit(FAILED)
