"""Commands for memory as a folder of Markdown files: out, a plan of the edits, and in. docs/markdown.md."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, Json, User, print_json, say
from supervisor_memory.interfaces.cli.reviewing import Reviewer, login_of, opened_by
from supervisor_memory.interfaces.printable import one_line

markdown = typer.Typer(help="Memory as Markdown files, to edit it in git.", no_args_is_help=True)

_Folder = Annotated[Path, Argument(help="The folder with the files.", metavar="FOLDER")]


@markdown.command()
def export(
    folder: _Folder, *, user: User, by: Reviewer = None, json: Json = False, env_file: EnvFile = None
) -> None:
    """Write what is remembered of a user into FOLDER, a file a record. Edited files are kept."""
    with opened_by(env_file, by) as memory:
        done = memory.review.export_markdown(folder, user_id=user)
    if json:
        print_json(
            {"written": done.written, "same": done.same, "removed": done.removed, "kept": [*done.kept]}
        )
        return
    typer.echo(f"{done.written} written, {done.same} the same, {done.removed} removed")
    for each in done.kept:
        say(f"kept, for somebody edited it: {one_line(each)}")


@markdown.command(name="import")
def import_(
    folder: _Folder,
    *,
    user: User,
    by: Reviewer = None,
    yes: Annotated[bool, Option("--yes", help="Do it. Without, only show it as a diff.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Take what was edited in FOLDER. Exit code 1 where a file is a conflict, or wrong."""
    with opened_by(env_file, by) as memory:
        plan = memory.review.import_markdown(folder, user_id=user, reviewer=login_of(by), dry_run=not yes)
    if json:
        print_json({"is_done": plan.is_done, "files": [each.to_dict() for each in plan.files]})
    else:
        for line in str(plan).split("\n"):
            typer.echo(one_line(line, most=1_000))
    if not yes:
        say("nothing was changed; --yes does it")
    if not plan.is_whole:
        raise typer.Exit(FAILED)
