"""The review desk on the command line: what waits, what a person decides, and what is taken back.

docs/reviewing.md is its page.
"""

import getpass
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import (
    EnvFile,
    Json,
    RecordId,
    User,
    for_user,
    opened,
    print_json,
    say,
    whole_id,
)
from supervisor_memory.interfaces.cli.where import at, moment_of
from supervisor_memory.interfaces.printable import as_json, one_line
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import WriteResult
from supervisor_memory.review.promotion import OnErase
from supervisor_memory.review.proposal import Proposal
from supervisor_memory.review.sweep import Swept

_LINE: Final = 200
review = typer.Typer(help="What waits for a person, and what a person takes back.", no_args_is_help=True)

Id = Annotated[str, Argument(help="The id of what waits, or enough of its beginning or end.", metavar="ID")]
Reviewer = Annotated[
    str | None,
    Option("--as", help="Who looks and decides, for the logs; your login if unset.", metavar="LOGIN"),
]
OneUser = Annotated[str | None, for_user("Only what is this user's.")]
OfSource = Annotated[
    str | None, Option("--source", help="Only what is said by: user, agent, tool, system.", metavar="CLASS")
]
OfRun = Annotated[str | None, Option("--run", help="Only of this run.", metavar="ID")]
OfSession = Annotated[str | None, Option("--session", help="Only of this session.", metavar="ID")]
OfAgent = Annotated[str | None, Option("--agent", help="Only of this agent.", metavar="NAME")]
Since = Annotated[
    str | None,
    Option("--since", help="Only what was said or recorded from then on.", metavar="WHEN", callback=at),
]
Until = Annotated[
    str | None,
    Option("--until", help="Only what was said or recorded before.", metavar="WHEN", callback=at),
]
Yes = Annotated[bool, Option("--yes", help="Do it. Without, only tell what it would do.")]


@review.command(name="list")
def list_(
    *,
    user: OneUser = None,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Most proposals.")] = 100,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """List what waits, the newest first: why, and what approving it would do."""
    with opened_by(env_file, by) as memory:
        waiting = memory.review.pending(user_id=user, limit=limit)
    if json:
        print_json({"proposals": [each.to_dict() for each in waiting]})
        return
    for each in waiting:
        _show(each)
    if not waiting:
        typer.echo("nothing waits for review")


@review.command()
def show(id: Id, *, by: Reviewer = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Show a proposal beside the known record, with its source words."""
    with opened_by(env_file, by) as memory:
        id = whole_id(memory, id)
        waiting = memory.review.show(id)
        said = memory.messages(id)
    if json:
        print_json({**waiting.to_dict(), "messages": [each.to_dict() for each in said]})
        return
    _show(waiting)
    for each in said:
        typer.echo(f"  said:     {one_line(each.content, most=_LINE)}")


@review.command()
def approve(id: Id, *, by: Reviewer = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Let it be remembered, decided against what is known by now."""
    _decide(env_file, id, lambda memory, id: memory.review.approve(id, reviewer=login_of(by)), json=json)


@review.command()
def edit(
    id: Id,
    content: Annotated[str, Argument(help="What to remember instead.", metavar="TEXT")],
    *,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Let it be remembered in your words; where it came from stays as it is."""
    _decide(
        env_file, id, lambda memory, id: memory.review.edit(id, content, reviewer=login_of(by)), json=json
    )


@review.command()
def reject(
    id: Id,
    *,
    reason: Annotated[str, Option("--reason", help="Why, for who looks later.", metavar="TEXT")] = "",
    by: Reviewer = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be rejected.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Do not remember it, nor have it proposed again. `review restore` lets it wait again."""
    if dry_run:
        show(id, by=by, json=json, env_file=env_file)
        say("nothing was changed; without --dry-run it is rejected")
        return
    _decide(
        env_file,
        id,
        lambda memory, id: memory.review.reject(id, reviewer=login_of(by), reason=reason),
        json=json,
    )


@review.command()
def restore(id: RecordId, *, by: Reviewer = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Bring back a record that was deleted, replaced or forgotten; what was rejected waits again."""
    _decide(env_file, id, lambda memory, id: memory.review.restore(id, reviewer=login_of(by)), json=json)


@review.command()
def revert(
    id: RecordId,
    *,
    version: Annotated[int, Option("--version", min=1, help="As `show` numbers them.", metavar="N")],
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Give a record the text of an earlier version, as a new one."""
    _decide(
        env_file,
        id,
        lambda memory, id: memory.review.revert(id, version=version, reviewer=login_of(by)),
        json=json,
    )


@review.command()
def undo(id: Id, *, by: Reviewer = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Take back the last decision on a proposal, or a promotion: all records are as before."""
    with opened_by(env_file, by) as memory:
        id = whole_id(memory, id)
        memory.review.undo(id, reviewer=login_of(by))
        status = memory.get(id).status
    told = "waits for review again" if status == "pending" else f"taken back, now {status}"
    typer.echo(as_json({"id": id, "status": status}) if json else f"{told}: {one_line(id)}")


@review.command()
def promote(
    id: RecordId,
    *,
    on_erase: Annotated[
        str,
        Option(
            "--on-erase",
            help="What becomes of it when its author is erased: erase or anonymise.",
            metavar="WHAT",
        ),
    ] = "erase",
    name_ok: Annotated[
        list[str] | None, Option("--name-ok", help="A name in it that is no person's.", metavar="NAME")
    ] = None,
    by: Reviewer = None,
    yes: Yes = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Share a definition or a guideline with MEMORY_TEAM. Shows who would read what; --yes shares it."""
    with opened_by(env_file, by) as memory:
        id = whole_id(memory, id)
        if not yes:
            seen = memory.review.preview_promotion(id)
            if json:
                print_json(seen.to_dict())
            else:
                for line in str(seen).splitlines():
                    typer.echo(one_line(line, most=_LINE))
            say("nothing was changed; --yes shares it")
            return
        if on_erase not in ("erase", "anonymise"):
            raise typer.BadParameter("use erase or anonymise", param_hint="--on-erase")
        chosen: OnErase = "erase" if on_erase == "erase" else "anonymise"
        done = memory.review.promote(
            id, reviewer=login_of(by), on_erase=chosen, names_ok=tuple(name_ok or ())
        )
    if json:
        print_json(asdict(done))
        return
    typer.echo(f"shared: {done.id}; `supervisor-memory review undo {done.id}` takes it back")


@review.command()
def shared(
    *,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Most records.")] = 100,
    by: Reviewer = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """List what MEMORY_TEAM shares, the last promoted first."""
    with opened_by(env_file, by) as memory:
        found = memory.review.shared(limit=limit)
    if json:
        print_json({"records": [each.to_dict() for each in found]})
        return
    for each in found:
        typer.echo(f"{each.id}  {each.kind}  {one_line(each.content, most=_LINE)}")
    if not found:
        typer.echo("nothing is shared")


def _sweeping(name: str, told: str) -> None:
    """Add the command of a verb that takes back all that came from somewhere."""

    def sweep(
        *,
        user: User,
        source: OfSource = None,
        run: OfRun = None,
        session: OfSession = None,
        agent: OfAgent = None,
        since: Since = None,
        until: Until = None,
        by: Reviewer = None,
        yes: Yes = False,
        json: Json = False,
        env_file: EnvFile = None,
    ) -> None:
        asked = {"source": source, "run_id": run, "session_id": session, "agent_id": agent}
        times = {"since": moment_of(since, end=False), "until": moment_of(until, end=True)}
        which = {name: value for name, value in {**asked, **times}.items() if value is not None}
        with opened_by(env_file) as memory:
            verb: Callable[..., Swept] = getattr(memory.review, name.replace("-", "_"))
            swept = verb(user_id=user, reviewer=login_of(by), dry_run=not yes, **which)
        _print_swept(swept, json=json)

    review.command(name, help=told)(sweep)


_sweeping(
    "quarantine",
    "Set aside all that came from a source, run, session, agent or time: found no more, and kept.",
)
_sweeping("release", "End a quarantine: what was set aside of this is as it was before.")
_sweeping(
    "roll-back",
    "Take back all writes of a source: added records are withdrawn, changed records are as before.",
)


def opened_by(env_file: Path | None, by: str | None = None) -> SupervisorMemory:
    """The existing memory of the settings, read by a login."""
    return opened(env_file, embedder=True).read_by(login_of(by))


def _decide(
    env_file: Path | None, id: str, verb: Callable[[SupervisorMemory, str], WriteResult], *, json: bool
) -> None:
    with opened_by(env_file) as memory:
        done = verb(memory, whole_id(memory, id))
    if json:
        print_json(asdict(done))
        return
    reason = f" ({one_line(done.reason)})" if done.reason else ""
    status = "waits for review again" if done.status == "pending" else done.status
    typer.echo(f"{status}{reason}: {done.id}, version {done.version}")


def _show(proposal: Proposal) -> None:
    user = one_line(proposal.record.user_id)
    typer.echo(f"{proposal.id}  of {user}: {', '.join(proposal.why)}")
    lines = {
        "by": proposal.said_by,
        "proposed": proposal.record.content,
        "from": proposal.evidence,
        "known": proposal.existing.content if proposal.existing else "",
        "kept": proposal.text if proposal.text != proposal.record.content else "",
        "then": f"{proposal.decision} {proposal.reason}".strip(),
    }
    for name, text in lines.items():
        if text:
            typer.echo(f"  {name + ':':<9} {one_line(text, most=_LINE)}")


def _print_swept(swept: Swept, *, json: bool) -> None:
    if json:
        print_json(swept.to_dict())
    else:
        for step in swept.steps:
            typer.echo(f"{step.action}: {step.record_id}  {one_line(step.text, most=_LINE)}")
        for record_id, why in swept.left.items():
            typer.echo(f"left: {record_id} ({why})")
        would = "would be " if swept.dry_run else ""
        typer.echo(f"{len(swept.steps)} {would}changed, {len(swept.left)} {would}left")
    if swept.dry_run:
        say("nothing was changed; --yes does it")


def login_of(by: str | None) -> str:
    """The name given, or else the login with a dash for each other character."""
    if by is not None:
        return by
    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a process whose user has no name
        login = ""
    return re.sub(r"[^A-Za-z0-9_.@-]", "-", login)[:128] or "operator"
