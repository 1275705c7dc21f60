"""The command that forgets by rule. docs/forgetting.md tells which rules there are."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from supervisor_memory.interfaces.cli.options import EnvFile, Json, say, told_settings
from supervisor_memory.interfaces.cli.store import existing_memory
from supervisor_memory.interfaces.printable import as_json, one_line

if TYPE_CHECKING:
    from supervisor_memory.core import Forgotten

__all__ = ["add_commands"]

_SHOWN: Final = 100


def add_commands(app: typer.Typer) -> None:
    app.command()(forget)


def forget(
    *,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Only this user's records.", metavar="ID")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without, only tell what would be set aside, and why.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Set aside by rule what has expired, too many of a kind, and what is over MEMORY_CAPACITY.

    It is found no more, and nothing is lost: the versions of each record are kept. Preferences, identity,
    definitions and what is pinned stay. `erase` is for good.
    """
    with existing_memory(told_settings(env_file), embedder=yes) as memory:
        found = memory.forget(user_id=user, dry_run=not yes)
    if json:
        taken = [{**asdict(each), "namespace": [*each.namespace]} for each in found.taken]
        told = {"done": yes, "counts": found.counts, "taken": taken}
        typer.echo(as_json({**told, "summaries": found.summaries, "left": found.left}))
    else:
        _tell(found, is_done=yes)
    if not yes and found.taken:
        say("nothing was changed; --yes sets these aside")


def _tell(found: "Forgotten", *, is_done: bool) -> None:
    """Without `--yes` each record, as far as people read."""
    for each in () if is_done else found.taken[:_SHOWN]:
        typer.echo(one_line(f"{each.rule}: {each.record_id} of {each.user_id} ({each.kind}): {each.why}"))
    if not is_done and len(found.taken) > _SHOWN:
        typer.echo(f"… and {len(found.taken) - _SHOWN:,} more; --json has all")
    counts = ", ".join(f"{count:,} {rule}" for rule, count in found.counts.items()) or "nothing"
    typer.echo(f"{'set aside' if is_done else 'would set aside'}: {counts}")
    if found.summaries:
        typer.echo(f"summaries made: {len(found.summaries):,}")
    if found.left:
        say(f"{len(found.left):,} were left: changed meanwhile, or too long for a summary")
