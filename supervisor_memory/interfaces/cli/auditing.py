"""The commands of the audit: what was done to records, and what readers were told."""

import json as json_
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from supervisor_memory.errors import BackendError, RecordNotFound, SettingsError
from supervisor_memory.interfaces.cli import tables
from supervisor_memory.interfaces.cli.moving import bar
from supervisor_memory.interfaces.cli.options import (
    FAILED,
    EnvFile,
    Json,
    User,
    for_file,
    for_user,
    opened,
    print_json,
    say,
    told_settings,
)
from supervisor_memory.interfaces.cli.where import at, moment_of
from supervisor_memory.interfaces.present import audit_rows, decisions_of, hits_told, notes_of
from supervisor_memory.interfaces.printable import as_json, counted, moment, one_line
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.records import Scope
from supervisor_memory.reading.audit import (
    KEEP,
    AuditRow,
    FaultKind,
    Verified,
    read_anchors,
    verified_exports,
)

audit = typer.Typer(help="Who changed what, when and why.", no_args_is_help=True)
EXIT_CODES: Final[dict[FaultKind, int]] = {"chain": 3, "truncated": 4, "state": 5, "content": 6}
"""How `audit verify` ends, by the gravest thing that is wrong: the first of these."""
_NOTES: Final = 20
_SOME: Final = 5
_LEAST_KEPT: Final = 100
"""The fewest rows that stay: more than other processes may be writing just now."""
_EARLIEST: Final = 100_000_000
"""In seconds since 1970: a smaller number is that of a row."""
_Archives = Annotated[
    list[Path] | None, for_file("--archive", "Read these archived rows first; repeatable, in any order.")
]
_USER = Annotated[str | None, for_user("Only what concerns this user.")]


@audit.command()
def tail(
    *,
    user: _USER = None,
    record: Annotated[
        str | None, Option("--record", help="Only what was done to this record.", metavar="ID")
    ] = None,
    op: Annotated[
        str | None, Option("--op", help="Only this operation, as memory.write.", metavar="NAME")
    ] = None,
    count: Annotated[int, Option("-n", "--lines", min=1, help="How many rows.")] = 20,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the last rows of the audit log, newest last, each beside its record's present text.

    The log itself holds no content. A record that is no longer active shows its status instead, one that
    is gone from the store shows as "erased".
    """
    with opened(env_file) as memory:
        _show(memory, memory.audit.tail(count, user_id=user, record_id=record, op=op), json=json)


@audit.command(name="list")
def list_(
    *,
    user: _USER = None,
    after: Annotated[
        int, Option("--after", min=0, help="The number of the last row seen.", metavar="ROW")
    ] = 0,
    count: Annotated[int, Option("-n", "--lines", min=1, help="How many rows.")] = 100,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the audit log from its beginning, a page at a time, as `tail` shows rows."""
    with opened(env_file) as memory:
        _show(memory, memory.audit.rows(after=after, limit=count, user_id=user), json=json)


@audit.command()
def show(
    row: Annotated[int, Argument(help="Its number.", metavar="ROW", min=1)],
    *,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show one row of the audit log whole: the event, its hash, and the record beside it."""
    with opened(env_file) as memory:
        log = memory.audit
        found = log.rows(after=row - 1, limit=1)
        if not found or found[0].seq != row:
            is_archived = any(row <= segment.through for segment in log.segments())
            why = "it is archived" if is_archived else f"its last is {log.count()}"
            raise RecordNotFound(f"the audit log has no row {row}; {why}", id=str(row))
        [told] = audit_rows(memory, found)
    if json:
        print_json(told)
        return
    for name, value in told.items():
        typer.echo(one_line(f"{name:15} {value if isinstance(value, str) else json_.dumps(value)}"))


@audit.command()
def verify(
    *,
    deep: Annotated[
        bool, Option("--deep", help="Also compare every record, and its text, with its last row.")
    ] = False,
    state: Annotated[
        bool, Option("--state", help="Also compare every record, without its text, with its last row.")
    ] = False,
    anchor: Annotated[Path | None, for_file("--anchor", "Also compare with these anchors.")] = None,
    exported: Annotated[
        list[Path] | None,
        for_file(
            "--export", "Prove what `audit export` wrote instead, of any number of instances; repeatable."
        ),
    ] = None,
    archive: _Archives = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Prove the audit log row by row, with --state or --deep the records by it, with --anchor its end.

    What was archived is read with --archive, else the proof begins behind it.

    Exit code 3: a row, or an archive, was changed, taken out, put in or written anew; 4: the end is missing,
    or all that the anchors are of is archived, which only an anchor can tell; 5: a record is not the one that
    was written last; 6: its text is not.
    """
    anchors = [] if anchor is None else read_anchors(anchor)
    if exported:
        if archive:
            raise SettingsError(
                "--archive is for the log of a store; name all files of exports with --export"
            )
        signed = told_settings(env_file).anchor_key
        key = None if signed is None else signed.get_secret_value()
        _print_verified(verified_exports(exported, anchors=anchors, key=key), json=json)
        return
    with opened(env_file) as memory:
        if (deep or state) and (name := memory.upkeep.shared_store()):
            raise BackendError(
                f"the records of {name} are changed by other instances too, whose logs are "
                "elsewhere: --state and --deep compare a store of this machine. Without, the rows are proved"
            )
        if any(each.mac for each in anchors) and memory.settings.anchor_key is None:
            say("warning: the anchors are signed, and MEMORY_ANCHOR_KEY is not set: nobody checks by whom")
        with bar("verify") as progress:
            found = memory.audit.verify(
                state=state, deep=deep, anchors=anchors, archives=archive or (), progress=progress
            )
        log_id = memory.audit.log_id
    _print_verified({log_id: found}, json=json)


@audit.command()
def anchor(
    file: Annotated[Path, Argument(help="Where it is added, as a line.", metavar="FILE")],
    *,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Write an anchor, the last row of the audit log, to a file that writers of the log cannot change.

    Signed where MEMORY_ANCHOR_KEY is set. `audit verify --anchor FILE` tells by it whether the end of the log
    was cut off, or all of it written anew.
    """
    with opened(env_file) as memory:
        found = memory.audit.anchor(file)
    if json:
        print_json(asdict(found))
    else:
        typer.echo(f"row {found.seq} is anchored in {one_line(str(file))}")
    if not found.mac:
        say(
            "not signed: MEMORY_ANCHOR_KEY is not set, so whoever can write the file can write another anchor"
        )


@audit.command()
def export(
    file: Annotated[Path, Argument(help="The file to make.", metavar="FILE")],
    *,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Write the audit log to a file, a row a line, with everything needed to verify it elsewhere.

    Each line has the payload as it was hashed, the hash of the row before and its own; docs/auditing.md says
    how they are made. It holds no content of records. What is archived already is in the archives alone.
    """
    with opened(env_file) as memory:
        rows = memory.audit.export(file)
    typer.echo(as_json({"rows": rows}) if json else f"{rows} rows written to {one_line(str(file))}")


@audit.command()
def archive(
    file: Annotated[Path, Argument(help="The file to make.", metavar="FILE")],
    *,
    keep: Annotated[
        int, Option("--keep", min=_LEAST_KEPT, help="How many of the newest rows stay.", metavar="ROWS")
    ] = KEEP,
    dry_run: Annotated[bool, Option("--dry-run", help="Only tell which rows it would move.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Move the oldest rows of the audit log into a new file, in the format of `audit export`.

    From then on that file is the beginning of the chain: keep it. `audit verify --archive FILE` proves it
    with the rest, `audit replay --archive FILE` reads it. Where no more rows are there than stay, no file is
    made.
    """
    with opened(env_file) as memory:
        rows = memory.audit.archivable(keep=keep)
        segment = None if dry_run else memory.audit.archive(file, keep=keep)
    if segment is not None:
        rows = range(segment.first, segment.through + 1)
    if json:
        told = {"rows": len(rows), "through": rows[-1] if rows else None, "dry_run": dry_run}
        print_json({**told, "sha256": None if segment is None else segment.sha256})
    elif segment is None and not (dry_run and rows):
        typer.echo(f"nothing to archive: there are no more than {keep} rows that are not archived")
    else:
        would = "would be moved" if dry_run else "moved"
        typer.echo(f"{len(rows)} rows, {rows[0]} to {rows[-1]}, {would} to {one_line(str(file))}")


@audit.command()
def replay(
    *,
    until: Annotated[
        str | None,
        Option(
            "--until",
            help="The last row, by its number, or a moment, as 2026-01-31 or 7d; a day counts whole.",
            metavar="WHEN",
            callback=at,
        ),
    ] = None,
    user: _USER = None,
    archive: _Archives = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the records as they were at a moment, each with its decider.

    A text that was erased since shows as "erased". What was deleted by then is counted, not shown. The log is
    taken as it is: `audit verify` proves it.
    """
    row = int(until) if until is not None and until.isdecimal() and int(until) < _EARLIEST else None
    with opened(env_file) as memory:
        found = memory.audit.replay(
            until_row=row,
            until=None if row is not None else moment_of(until, end=True),
            user_id=user,
            archives=archive or (),
        )
    if json:
        print_json(asdict(found))
    else:
        told = f"as of row {found.row}: {counted(len(found.records), 'record')}"
        typer.echo(f"{told}; {found.deleted} more were deleted by then" if found.deleted else told)
        for each in found.records:
            when = f"{moment(each.at)} by {each.op} of {each.actor}"
            typer.echo(one_line(f"{each.record_id}  version {each.version}, {each.status}, {when}"))
            typer.echo(f"    {'erased' if each.content is None else one_line(each.content)}")
    if found.archived:
        say(
            f"the rows 1 to {found.archived} are archived and were not read: what only they tell of is "
            "missing; --archive FILE reads them"
        )


def why(
    id: Annotated[str, Argument(help="Of a record, of a run of the graph, or of a note.", metavar="ID")],
    *,
    count: Annotated[int, Option("-n", "--lines", min=1, help="How many notes.")] = _NOTES,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Tell what was recalled, for whom and by what scores, and what was left out and why; newest first.

    Of a record also what was decided on it, and which known record came nearest to saying the same.
    """
    told: list[dict[str, Any]] = []
    said = ""
    with opened(env_file) as memory:
        decided = decisions_of(memory, id, limit=count)
        try:
            told = notes_of(memory, id, limit=count)
        except RecordNotFound as error:
            said = str(error)
    if json:
        print_json({"id": id, "notes": told, "decisions": decided})
    else:
        tables.show_notes(told)
        tables.show_decisions(decided)
        if said:
            typer.echo(one_line(said))
    if said and not decided:
        raise typer.Exit(FAILED)


def preview(
    question: Annotated[str, Argument(help="What the user says.", metavar="TEXT")],
    *,
    user: User,
    agent: Annotated[
        str | None, Option("--agent", help="Who would read it; the supervisor if unset.", metavar="NAME")
    ] = None,
    task: Annotated[str | None, Option("--task", help="For this task.", metavar="ID")] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the note that an agent would be given now. Nothing is logged or changed."""
    with opened(env_file, embedder=True) as memory:
        note = memory.preview(question, Scope(user, agent, task=task))
    if json:
        told = {"user_id": user, "agent_id": agent, "text": note.text, "tokens": note.tokens}
        print_json({**told, "degraded": note.degraded, **hits_told(note.hits, explain=True)})
        return
    for line in note.text.splitlines() or ["no note: nothing is relevant enough"]:
        typer.echo(one_line(line))
    typer.echo(f"\n{note.tokens} tokens")
    tables.show_explanation(note.hits)


def _print_verified(found: Mapping[str, Verified], *, json: bool) -> None:
    """Print the result for each log, and set the exit code."""
    problems = [problem for log in found.values() for problem in log.problems]
    faults = [fault for log in found.values() for fault in log.faults]
    rows, records = (sum(getattr(log, name) for log in found.values()) for name in ("rows", "records"))
    if json:
        told = {"faults": [asdict(fault) for fault in faults], "problems": problems, "logs": sorted(found)}
        unseen = [row for log in found.values() for row in log.unseen]
        archived = sum(log.archived for log in found.values())
        told |= {"archived": archived, "unseen_anchors": unseen}
        print_json({"rows": rows, "records": records, **told})
    else:
        beside = f" and {records} records" if records else ""
        of_logs = f" of {len(found)} logs" if len(found) > 1 else ""
        typer.echo(f"{rows} rows{of_logs}{beside} verified, {counted(len(faults), 'problem')}")
        for log_id, log in found.items():
            for problem in log.problems:
                typer.echo(one_line(f"problem: {problem}" + (f" (log {log_id})" if len(found) > 1 else "")))
        for log in found.values():
            for line in _left_out(log):
                say(line)
    if faults:
        raise typer.Exit(min(EXIT_CODES[fault.kind] for fault in faults))


def _left_out(log: Verified) -> Iterator[str]:
    """Name the rows that were not verified because they are archived and the archive was not given."""
    if log.archived:
        yield f"the rows 1 to {log.archived} are archived and were not read; --archive FILE reads them"
    if log.unseen:
        rows = ", ".join(map(str, log.unseen[:_SOME])) + (", …" if len(log.unseen) > _SOME else "")
        yield f"{len(log.unseen)} anchors are of rows among them, and were not looked at: {rows}"


def _show(memory: SupervisorMemory, found: Sequence[AuditRow], *, json: bool) -> None:
    rows = audit_rows(memory, found)
    if json:
        print_json({"rows": rows})
    else:
        tables.show_audit(rows)
