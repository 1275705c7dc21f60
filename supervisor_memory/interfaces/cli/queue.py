"""The commands for the queue: what waits to be read, reading it now, and what could not be read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, say, told_settings
from supervisor_memory.interfaces.cli.store import existing_memory
from supervisor_memory.interfaces.printable import as_json, counted, moment, one_line

if TYPE_CHECKING:
    from supervisor_memory.reading.existing import QueueFile, Waiting

__all__ = ["add_commands"]

_LINE: Final = 160
queue = typer.Typer(help="What was observed and is not memory yet.", no_args_is_help=True)
User = Annotated[str | None, typer.Option("--user", "-u", help="Only this user's.", metavar="ID")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Most events.")]


def add_commands(app: typer.Typer) -> None:
    app.add_typer(queue, name="queue")


@queue.command(name="list")
def list_(*, user: User = None, limit: Limit = 100, json: Json = False, env_file: EnvFile = None) -> None:
    """List the events that wait to be read, oldest first. Makes no file."""
    from supervisor_memory.reading.existing import queue_in

    with queue_in(told_settings(env_file)) as file:
        found = [] if file is None else file.listed("waiting", user_id=user, limit=limit)
        counts = _counts(file)
    _show(found, counts, json=json)


@queue.command()
def dead(*, user: User = None, limit: Limit = 100, json: Json = False, env_file: EnvFile = None) -> None:
    """List the events that failed three times (dead letters). Exit code 1 when there are any."""
    from supervisor_memory.reading.existing import queue_in

    with queue_in(told_settings(env_file)) as file:
        found = [] if file is None else file.listed("dead", user_id=user, limit=limit)
        counts = _counts(file)
    _show(found, counts, json=json)
    if found:
        raise typer.Exit(FAILED)


@queue.command()
def retry(
    ids: Annotated[list[str] | None, typer.Argument(help="Events; none: all the dead.", metavar="ID")] = None,
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
    seconds: Annotated[float, typer.Option(min=0.0, help="How long it may take.")] = 180.0,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Read all that waits, now, with MEMORY_LLM where one is set. Exit code 1: some could not be read."""
    with existing_memory(told_settings(env_file), embedder=True) as memory:
        before = memory.upkeep.queue.counts()["waiting"]
        is_done = memory.upkeep.queue.flush(seconds=seconds)
        counts = memory.upkeep.queue.counts()
    left = counts["waiting"]
    if json:
        typer.echo(as_json({"read": max(before - left, 0), "in_time": is_done, "counts": counts}))
    else:
        waits = counted(left, "event waits", "events wait")
        typer.echo(f"{waits}, {counts['dead']} dead; {before} to read before")
    if not is_done:
        say("the time ran out; what was begun goes on waiting, run it again")
    if left or not is_done:
        raise typer.Exit(FAILED)


def _counts(file: "QueueFile | None") -> dict[str, int]:
    return {"waiting": 0, "dead": 0} if file is None else dict(file.counts())


def _show(found: "Sequence[Waiting]", counts: dict[str, int], *, json: bool) -> None:
    if json:
        typer.echo(as_json({"counts": counts, "events": [_told(each) for each in found]}))
        return
    typer.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count) or "nothing waits")
    for each in found:
        event = each.event
        who = event.tool or event.scope.agent_id or event.source_class
        typer.echo(
            one_line(f"{event.id}  {moment(event.created_at)}  {event.scope.user_id}  {who}  {each.reason}")
        )
        typer.echo(f"   {one_line(event.text, most=_LINE)}")


def _told(each: "Waiting") -> dict[str, Any]:
    return {"state": each.state, "attempts": each.attempts, "reason": each.reason, **each.event.to_dict()}
