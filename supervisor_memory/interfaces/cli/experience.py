"""Commands for lessons of tools: list guidelines, rate runs, withdraw.

docs/experience.md is its page.
"""

from dataclasses import asdict
from typing import Annotated

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import (
    EnvFile,
    Json,
    RecordId,
    User,
    for_user,
    print_json,
    whole_id,
)
from supervisor_memory.interfaces.cli.reviewing import Reviewer, login_of, opened_by
from supervisor_memory.interfaces.printable import counted, one_line

experience = typer.Typer(help="What agents learned of their tools.", no_args_is_help=True)


@experience.command(name="list")
def list_(
    *,
    user: Annotated[str | None, for_user("Only of this user's agents.")] = None,
    agent: Annotated[str | None, Option("--agent", help="Only of this agent.", metavar="NAME")] = None,
    tool: Annotated[str | None, Option("--tool", help="Only of this tool.", metavar="NAME")] = None,
    withdrawn: Annotated[bool, Option("--withdrawn", help="Those that are not told any more.")] = False,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Most guidelines.")] = 100,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """List the guidelines of tools: what they say, how often they were told and held, and their runs."""
    with opened_by(env_file, by) as memory:
        found = memory.experience.guidelines(
            user_id=user, agent_id=agent, tool=tool, withdrawn=withdrawn, limit=limit
        )
    if json:
        print_json({"guidelines": [each.to_dict() for each in found]})
        return
    for each in found:
        who = one_line(each.record.source.agent_id or "the supervisor")
        typer.echo(f"{each.record.id}  of {who}, told {counted(each.told, 'time')}")
        typer.echo(f"  {one_line(each.record.content)}")
        for lesson in each.lessons:
            runs = ", ".join(map(one_line, lesson.runs)) or "unknown"
            typer.echo(f"  held {lesson.held}, failed {lesson.failed}, learned in: {runs}")
    if not found:
        typer.echo("no tool has a guideline")


@experience.command()
def withdraw(id: RecordId, *, by: Reviewer = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Withdraw a guideline: it is in no note any more and is not learned again. `review restore` brings it
    back."""
    with opened_by(env_file, by) as memory:
        done = memory.experience.withdraw(whole_id(memory, id), reviewer=login_of(by))
    if json:
        print_json(asdict(done))
        return
    typer.echo(f"withdrawn: {done.id}")


@experience.command()
def rate(
    run: Annotated[str, Argument(help="LangGraph's id of the run.", metavar="RUN")],
    score: Annotated[float, Argument(help="From 0, it failed, to 1, it was right.", metavar="SCORE")],
    *,
    user: User,
    error: Annotated[str | None, Option("--error", help="What was wrong.", metavar="TEXT")] = None,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Rate a run: its guidelines count the score, and harmful ones are withdrawn."""
    with opened_by(env_file, by) as memory:
        done = memory.rate(run, score, user_id=user, error=error, reviewer=login_of(by))
    if json:
        print_json(asdict(done))
        return
    typer.echo(
        f"{counted(len(done.counted), 'guideline counts', 'guidelines count')} it, "
        f"{len(done.withdrawn)} withdrawn"
    )


@experience.command()
def identity(
    text: Annotated[
        str | None, Argument(help="Who it is from now on; none: only show.", metavar="TEXT")
    ] = None,
    *,
    user: User,
    agent: Annotated[
        str | None, Option("--agent", help="Whose; none: the supervisor's.", metavar="NAME")
    ] = None,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show or set an agent's identity for a user, which each note for that agent contains."""
    with opened_by(env_file, by) as memory:
        desk = memory.experience
        if text is not None:
            desk.set_identity(text, user_id=user, agent_id=agent, reviewer=login_of(by))
        found = desk.identity(user_id=user, agent_id=agent)
    if json:
        print_json({"identity": None if found is None else found.to_dict()})
        return
    typer.echo("nobody has said who it is" if found is None else one_line(found.content))
