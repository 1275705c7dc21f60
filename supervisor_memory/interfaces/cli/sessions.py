"""The sessions on the command line: who spoke when, under which name. docs/sessions.md is their page."""

from typing import Annotated, Any

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import (
    FAILED,
    EnvFile,
    Json,
    User,
    for_user,
    opened,
    print_json,
    say,
)
from supervisor_memory.interfaces.cli.reviewing import OfAgent
from supervisor_memory.interfaces.cli.where import Since, Until
from supervisor_memory.interfaces.present import (
    parties_told,
    session_erased,
    session_told,
    sessions_told,
    timeline_told,
)
from supervisor_memory.interfaces.printable import moment, one_line

_LINE = 200
sessions = typer.Typer(help="The conversations that memory has words of.", no_args_is_help=True)
Session = Annotated[str, Argument(help="A session's id: LangGraph's thread.", metavar="SESSION")]
OneUser = Annotated[str | None, for_user("Only this user's sessions.")]
Most = Annotated[int, Option("--limit", "-n", min=1, max=1000, help="At most so many.")]
After = Annotated[str | None, Option("--after", help="Go on after this `next`.", metavar="NEXT")]


@sessions.command(name="list")
def list_(
    *,
    user: OneUser = None,
    agent: OfAgent = None,
    since: Since = None,
    until: Until = None,
    limit: Most = 20,
    after: After = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Sessions, the one with the newest message first."""
    asked = {"user_id": user, "agent_id": agent, "since": since, "until": until, "after": after}
    with opened(env_file) as memory:
        told = sessions_told(memory, limit=limit, **asked)
    if json:
        print_json(told)
        return
    for each in told["sessions"]:
        _show(each)
    if not told["sessions"]:
        typer.echo("there is no session")


@sessions.command()
def users(*, limit: Most = 20, after: After = None, json: Json = False, env_file: EnvFile = None) -> None:
    """The users with a session, the one who spoke last first."""
    with opened(env_file) as memory:
        told = parties_told(memory.sessions.users(limit=limit, after=after), limit=limit)
    _show_parties(told, json=json)


@sessions.command()
def agents(
    *,
    user: OneUser = None,
    limit: Most = 20,
    after: After = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """The agents that spoke in a session, the one who spoke last first."""
    with opened(env_file) as memory:
        rows = memory.sessions.agents(user_id=user, limit=limit, after=after)
        told = parties_told(rows, limit=limit)
    _show_parties(told, json=json)


@sessions.command()
def show(*, session: Session, user: User, json: Json = False, env_file: EnvFile = None) -> None:
    """A session, and what was said in it."""
    with opened(env_file) as memory:
        told = session_told(memory, session, user_id=user)
    if json:
        print_json(told)
        return
    _show(told)
    for each in told["messages"]:
        who = each["speaker"] or each["agent_id"] or each["role"]
        typer.echo(f"{each['sequence']:>5} {one_line(who)}: {one_line(each['content'], most=_LINE)}")


@sessions.command()
def rename(
    *,
    session: Session,
    name: Annotated[str, Argument(help="The name.", metavar="NAME")],
    user: User,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Give a session a name."""
    with opened(env_file) as memory:
        memory.sessions.rename(session, name, user_id=user)
        _print_result(session_told(memory, session, user_id=user, with_messages=False), json=json)


@sessions.command()
def close(*, session: Session, user: User, json: Json = False, env_file: EnvFile = None) -> None:
    """End a session; a later message opens it again."""
    with opened(env_file) as memory:
        memory.sessions.close(session, user_id=user)
        _print_result(session_told(memory, session, user_id=user, with_messages=False), json=json)


@sessions.command()
def erase(
    *,
    session: Session,
    user: User,
    yes: Annotated[bool, Option("--yes", help="Do it. Without, only tell how much it would remove.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Remove a session for good: its messages, and the records whose words only it said."""
    with opened(env_file) as memory:
        told = session_erased(memory, session, user_id=user, reviewer="operator", confirm=yes)
    if json:
        print_json(told)
    else:
        counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in told["counts"].items())
        typer.echo(f"{'removed' if yes else 'would remove'} of {one_line(session)}: {counts}")
    for line in told["pending"]:
        say(f"pending: {line}")
    if told["pending"]:
        raise typer.Exit(FAILED)


def timeline(
    *,
    user: User,
    session: Annotated[str | None, Option("--session", help="Only this session.", metavar="ID")] = None,
    agent: OfAgent = None,
    since: Since = None,
    until: Until = None,
    said: Annotated[bool, Option("--said", help="Show messages, too.")] = False,
    limit: Annotated[int, Option("--limit", "-n", min=1, max=100, help="At most so many sessions.")] = 10,
    after: After = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what was said, learned, changed and decided, by session, and what the notes there cost."""
    asked = {"session_id": session, "agent_id": agent, "since": since, "until": until, "after": after}
    with opened(env_file) as memory:
        told = timeline_told(memory, limit=limit, user_id=user, with_said=said, **asked)
    if json:
        print_json(told)
        return
    day = None
    for each in told["sessions"]:
        if each["day"] != day:
            day = each["day"]
            typer.echo(day)
        _show_chapter(each)
    if not told["sessions"]:
        typer.echo(f"there is no session of {one_line(user)} in that time")


def _show_chapter(told: dict[str, Any]) -> None:
    name = f" {one_line(told['name'])!r}" if told["name"] else ""
    typer.echo(
        f"  {one_line(told['session_id'])}{name}: {told['said']} messages until {moment(told['last_at'])}"
    )
    for each in told["entries"]:
        before = f" (before: {one_line(each['before'], most=_LINE)})" if each["before"] else ""
        typer.echo(f"    {each['what']:8} {one_line(each['text'], most=_LINE)}{before} [{each['id']}]")
    if told["earlier"] is not None:
        typer.echo(f"    before: --session {one_line(told['session_id'])} --until {told['earlier']}")
    for each in told["costs"]:
        who = one_line(each["agent_id"] or "supervisor")
        tokens = f"{each['tokens']} tokens for {each['sources']} of what was said"
        typer.echo(f"    {each['notes']} {'note' if each['notes'] == 1 else 'notes'} of {who}: {tokens}")


def _show_parties(told: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(told)
        return
    for each in told["rows"]:
        amount = f"{each['sessions']} sessions with {each['messages']} messages"
        typer.echo(f"{one_line(each['id'])}: {amount} until {moment(each['last_at'])}")
    if not told["rows"]:
        typer.echo("there is no session")


def _print_result(told: dict[str, Any], *, json: bool) -> None:
    print_json(told) if json else _show(told)


def _show(told: dict[str, Any]) -> None:
    name = f" {one_line(told['name'])!r}" if told["name"] else ""
    agents = f", with {one_line(', '.join(told['agents']))}" if told["agents"] else ""
    typer.echo(f"{one_line(told['session_id'])}{name} of {one_line(told['user_id'])}, {told['status']}")
    typer.echo(f"   {told['message_count']} messages until {moment(told['last_at'])}{agents}")
