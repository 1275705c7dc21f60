"""The command `stats`: how well memory serves."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from typer import Option

from supervisor_memory.interfaces.cli.options import EnvFile, Json, for_user, opened, print_json
from supervisor_memory.interfaces.cli.where import at, moment_of
from supervisor_memory.interfaces.printable import counted, one_line
from supervisor_memory.reading.metrics import Figures, Metrics

_COUNTS: Final = (
    ("turns", "turn", "turns"),
    ("notes", "note", "notes"),
    ("searches", "search", "searches"),
    ("tokens", "token of notes", "tokens of notes"),
    ("writes", "write", "writes"),
    ("proposed", "proposed", "proposed"),
    ("approved", "approved", "approved"),
    ("rejected", "rejected", "rejected"),
    ("failures", "failure", "failures"),
)
_SHARES: Final = (
    ("hit_rate", "of notes showed a record"),
    ("search_hit_rate", "of searches showed a record"),
    ("degraded_rate", "of notes and searches were made without a part of memory"),
    ("reuse_rate", "of what was shown was said in another session"),
    ("use_rate", "of a note's wording is in the answer"),
    ("duplicate_rate", "of the writes were known already"),
)


def stats(
    *,
    user: Annotated[str | None, for_user("Only this user's; the queue is all's.")] = None,
    since: Annotated[
        str | None,
        Option(
            "--since", help="Only from then on: 2026-01-31, an ISO time, 7d.", metavar="WHEN", callback=at
        ),
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Tell how well memory serves: what was shown, used, written, refused; in all and by agent."""
    begin = moment_of(since, end=False)
    with opened(env_file) as memory:
        found = memory.audit.figures(user_id=user, since=begin)
    if json:
        print_json({"user_id": user, **found.to_dict()})
        return
    for line in _lines(found):
        typer.echo(line)


def _lines(found: Metrics) -> Iterator[str]:
    yield from _lines_of(found.total)
    waiting = ", ".join(f"{count} {state}" for state, count in found.queue.items())
    wait = "waits" if found.pending == 1 else "wait"
    yield f"{counted(found.pending, 'record')} {wait} for review; in the queue: {waiting}"
    for agent, figures in found.agents.items():
        yield ""
        yield one_line(agent or "the supervisor, and calls from Python")
        yield from (f"  {line}" for line in _lines_of(figures))


def _lines_of(figures: Figures) -> Iterator[str]:
    told = figures.to_dict()
    yield ", ".join(counted(told[name], one, many) for name, one, many in _COUNTS)
    for name, words in _SHARES:
        if told[name] is not None:
            yield f"{told[name]:6.1%} {words}"
