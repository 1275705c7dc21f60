"""The command `topics`: the table of contents of one user's memory."""

from typing import Annotated

import typer

from supervisor_memory.interfaces.cli.options import EnvFile, Json, told_settings
from supervisor_memory.interfaces.printable import as_json, one_line

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    app.command()(topics)


def topics(
    *,
    user: Annotated[str, typer.Option("--user", "-u", help="Whose memory.", metavar="ID")],
    task: Annotated[
        str | None, typer.Option("--task", help="Also what belongs to this task.", metavar="ID")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens of all lines; MEMORY_MAX_CONTEXT_TOKENS if unset.")
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what there is to remember of one user: a line for each kind and whom or what it is about."""
    from supervisor_memory.interfaces.cli.store import existing_memory

    with existing_memory(told_settings(env_file), embedder=False) as memory:
        found = memory.topics(user_id=user, task=task, max_tokens=tokens)
    if json:
        typer.echo(as_json({"user_id": user, "topics": [topic.to_dict() for topic in found]}))
        return
    for topic in found:
        typer.echo(one_line(str(topic)))
    if not found:
        typer.echo(f"nothing to show of {one_line(user)}")
