"""The commands that look after a whole store: whether it works, what is forgotten, erased, or mended."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Option

from supervisor_memory.core import Forgotten
from supervisor_memory.errors import BackendError, SettingsError
from supervisor_memory.interfaces.cli import tables
from supervisor_memory.interfaces.cli.moving import bar
from supervisor_memory.interfaces.cli.options import (
    FAILED,
    EnvFile,
    Json,
    User,
    existing_memory,
    for_user,
    opened,
    print_json,
    say,
    settings_from,
    told_settings,
)
from supervisor_memory.interfaces.present import erased, to_be_erased
from supervisor_memory.interfaces.printable import counted, one_line

if TYPE_CHECKING:
    from supervisor_memory.reading.existing import Entry

_SOME: Final = 3
_SHOWN: Final = 100
OneUser = Annotated[str | None, for_user("Only this user's records.")]


def doctor(
    *,
    everything: Annotated[
        bool, Option("--all", help="List every setting with its meaning, not only those set.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Tell which backend and embedder are live, where each setting comes from, and what is wrong.

    Makes no file. Exit code 0: works; 1: a problem, named at the end.
    """
    from supervisor_memory.reading import doctor as examination

    try:
        settings, said = settings_from(env_file)
    except SettingsError as error:
        if json:
            unread = dict.fromkeys(
                ("settings", "recipe", "backend", "queue", "embedder", "files", "capacity")
            )
            told = {"ok": False, **examination.versions(), **unread, "problems": [str(error)], "warnings": []}
            print_json(told)
        raise
    diagnosis = examination.diagnose(settings, warnings=said)
    if json:
        print_json(diagnosis.to_dict())
    else:
        tables.show_diagnosis(diagnosis, every_setting=everything)
    if not diagnosis.ok:
        raise typer.Exit(FAILED)


def erase(
    *,
    user: User,
    yes: Annotated[bool, Option("--yes", help="Do it. Without, only tell how much it would remove.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Remove a user for good: records and versions, their traces in the files, and who saw them.

    Nothing brings it back. Exit code 1 also where something is pending: run it again when others have let go
    of the store.
    """
    with opened(env_file) as memory:
        told = erased(memory, user, reviewer="operator") if yes else to_be_erased(memory, user)
    if json:
        print_json(told)
    else:
        counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in told["counts"].items())
        typer.echo(f"{'removed' if yes else 'would remove'} of {one_line(user)}: {counts}")
        for line in told["out_of_reach"]:
            typer.echo(f"out of reach: {line}")
    for line in told["pending"]:
        say(f"pending: {line}")
    if not yes:
        say("nothing was removed; --yes removes it for good")
    if told["pending"]:
        raise typer.Exit(FAILED)


def reembed(*, user: OneUser = None, json: Json = False, env_file: EnvFile = None) -> None:
    """Embed the records EMBEDDING_MODEL has not read: after a change of model, after a failure.

    Until then they are found by words alone. It can be cut off anywhere and run again, beside graphs.
    """
    with opened(env_file, embedder=True) as memory, bar("embedding") as progress:
        done = memory.reembed(user_id=user, progress=progress)
    if json:
        print_json(asdict(done))
        return
    typer.echo(f"embedded {counted(done.embedded, 'record')} with {one_line(done.embedder)}")
    if done.unread:
        say(f"{done.unread:,} are in a language it does not read; they are found by words alone")
    if done.refused:
        first = ", ".join(done.refused[:_SOME])
        say(f"it failed on {len(done.refused):,}, which are found by words alone: {first}")


def forget(
    *,
    user: OneUser = None,
    yes: Annotated[
        bool, Option("--yes", help="Do it. Without, only tell what would be set aside, and why.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Set aside by rule what has expired, too many of a kind, and what is over MEMORY_CAPACITY.

    It is found no more, and nothing is lost: the versions of each record are kept. Preferences, identity,
    definitions and what is pinned stay. `erase` is for good.
    """
    with opened(env_file, embedder=yes) as memory, bar("forget") as progress:
        found = memory.forget(user_id=user, dry_run=not yes, progress=progress)
    if json:
        taken = [{**asdict(each), "namespace": [*each.namespace]} for each in found.taken]
        told = {"done": yes, "counts": found.counts, "taken": taken}
        print_json({**told, "summaries": found.summaries, "left": found.left})
    else:
        _print_forgotten(found, is_done=yes)
    if not yes and found.taken:
        say("nothing was changed; --yes sets these aside")


def _print_forgotten(found: Forgotten, *, is_done: bool) -> None:
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


def repair(*, json: Json = False, env_file: EnvFile = None) -> None:
    """Make a damaged store anew from its readable parts; stop all programs that use it before.

    The damaged files get another name and are never deleted. A record whose text is not the last that was
    written is kept, and not recalled. Exit code 1: something was lost, and is named.
    """
    from supervisor_memory.reading import existing

    settings = told_settings(env_file)
    done = existing.repair(settings)
    if json:
        print_json({**asdict(done), "put_aside": [str(file) for file in done.put_aside]})
    elif not done.wrong:
        typer.echo(f"nothing is wrong with the store in {one_line(str(settings.path))}")
    else:
        for problem in done.wrong:
            typer.echo(f"problem: {one_line(problem)}")
        saved = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in done.saved.items())
        typer.echo(f"saved: {saved}")
        for line in done.lost:
            typer.echo(f"lost: {one_line(line)}")
        for file in done.put_aside:
            typer.echo(f"put aside: {one_line(str(file))}")
        if done.put_aside:
            typer.echo("those still hold personal data, of users erased later too: delete them when done")
    if done.lost:
        raise typer.Exit(FAILED)


def backlog(
    *,
    retry: Annotated[
        bool, Option("--retry", help="Let the dead letters wait again; the next process applies them.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what is saved here and waits for the store, and what the store refuses for good (dead letters).

    Asks the store nothing and makes no file. Exit code 1 when there are dead letters.
    """
    from supervisor_memory.reading.existing import backlog_in

    settings = told_settings(env_file)
    _need_journal(settings.backend)
    found = backlog_in(settings, retry=retry)
    waiting, dead = ([_waits(entry) for entry in entries] for entries in (found.waiting, found.dead))
    if json:
        print_json({"counts": found.counts, "retried": found.retried, "waiting": waiting, "dead": dead})
    else:
        told = ", ".join(f"{count} {state}" for state, count in found.counts.items() if count)
        typer.echo(told or "nothing waits")
        for entry in (*waiting, *dead):
            typer.echo(one_line("{begun_at}  {commit}  {changes} changes  {state} {reason}".format(**entry)))
    if found.retried:
        say(f"{found.retried} dead letters wait again")
    if dead:
        raise typer.Exit(FAILED)


def reconcile(*, json: Json = False, env_file: EnvFile = None) -> None:
    """Apply what waits, then compare the copy of MEMORY_DUAL_WRITE with the store, and mend both.

    Exit code 1 when the store does not take something back.
    """
    settings = told_settings(env_file)
    _need_journal(settings.backend)
    with existing_memory(settings, embedder=True) as memory:
        done = memory.upkeep.reconcile()
    if json:
        counts = {name: getattr(done, name) for name in ("compared", "brought", "restored", "forgotten")}
        print_json({**counts, "refused": done.refused})
    else:
        typer.echo(
            f"compared {done.compared} records: {done.brought} brought into the copy, {done.restored} given "
            f"back to the store, {done.forgotten} forgotten for their user was erased"
        )
    for record_id, reason in done.refused.items():
        say(f"refused: {record_id} ({reason}); it stays in the copy")
    if done.refused:
        raise typer.Exit(FAILED)


def _need_journal(backend: str) -> None:
    if backend != "qdrant":
        raise BackendError(
            f"MEMORY_BACKEND={backend} keeps records on this machine and has no journal: nothing ever waits"
        )


def _waits(entry: "Entry") -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "commit": entry.commit.id,
        "begun_at": datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds"),
        "state": entry.state,
        "reason": entry.reason,
        "attempts": entry.attempts,
        "changes": len(entry.commit.changes),
        "records": [change.record.id for change in entry.commit.changes],
    }
