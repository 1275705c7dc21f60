"""The commands for the queue: what waits to be read, reading it now, and what could not be read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import (
    FAILED,
    EnvFile,
    Json,
    for_user,
    opened,
    print_json,
    say,
    told_settings,
)
from supervisor_memory.interfaces.printable import as_json, counted, moment, one_line

if TYPE_CHECKING:
    from supervisor_memory.reading.existing import Waiting

_LINE: Final = 160
queue = typer.Typer(help="What was observed and is not memory yet.", no_args_is_help=True)
User = Annotated[str | None, for_user("Only this user's.")]
Limit = Annotated[int, Option("--limit", "-n", min=1, help="Most events.")]


@queue.command(name="list")
def list_(*, user: User = None, limit: Limit = 100, json: Json = False, env_file: EnvFile = None) -> None:
    """List the events that wait to be read, oldest first. Makes no file."""
    _show("waiting", env_file, user_id=user, limit=limit, json=json)


@queue.command()
def dead(*, user: User = None, limit: Limit = 100, json: Json = False, env_file: EnvFile = None) -> None:
    """List the events that failed three times (dead letters). Exit code 1 when there are any."""
    if _show("dead", env_file, user_id=user, limit=limit, json=json):
        raise typer.Exit(FAILED)


@queue.command()
def retry(
    ids: Annotated[list[str] | None, Argument(help="Events; none: all the dead.", metavar="ID")] = None,
    *,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Let dead events wait again; `queue flush` or the next process reads them."""
    from supervisor_memory.reading.existing import queue_in

    with queue_in(told_settings(env_file)) as file:
        retried = 0 if file is None else file.retry(ids or None)
    again = f"{counted(retried, 'event waits', 'events wait')} again"
    typer.echo(as_json({"retried": retried}) if json else again)


@queue.command()
def flush(
    *,
    seconds: Annotated[float, Option(min=0.0, help="How long it may take.")] = 180.0,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Read all that waits, now, with MEMORY_LLM where one is set. Exit code 1: some could not be read."""
    with opened(env_file, embedder=True) as memory:
        before = memory.upkeep.queue.counts()["waiting"]
        is_done = memory.upkeep.queue.flush(seconds=seconds)
        counts = memory.upkeep.queue.counts()
    left = counts["waiting"]
    if json:
        print_json({"read": max(before - left, 0), "in_time": is_done, "counts": counts})
    else:
        waits = counted(left, "event waits", "events wait")
        typer.echo(f"{waits}, {counts['dead']} dead; {before} to read before")
    if not is_done:
        say("the time ran out; what was begun goes on waiting, run it again")
    if left or not is_done:
        raise typer.Exit(FAILED)


def _show(
    state: Literal["waiting", "dead"], env_file: Path | None, *, user_id: str | None, limit: int, json: bool
) -> bool:
    """Show the events in a state; returns whether there are any."""
    from supervisor_memory.reading.existing import queue_in

    found: Sequence[Waiting] = ()
    counts = {"waiting": 0, "dead": 0}
    with queue_in(told_settings(env_file)) as file:
        if file is not None:
            found, counts = file.listed(state, user_id=user_id, limit=limit), dict(file.counts())
    if json:
        events = [
            {"state": each.state, "attempts": each.attempts, "reason": each.reason, **each.event.to_dict()}
            for each in found
        ]
        print_json({"counts": counts, "events": events})
        return bool(found)
    typer.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count) or "nothing waits")
    for each in found:
        event = each.event
        who = event.tool or event.scope.agent_id or event.source_class
        typer.echo(
            one_line(f"{event.id}  {moment(event.created_at)}  {event.scope.user_id}  {who}  {each.reason}")
        )
        typer.echo(f"   {one_line(event.text, most=_LINE)}")
    return bool(found)
