"""The commands for looking up records and their history."""

from dataclasses import asdict
from shlex import quote
from typing import Annotated, Final

import typer
from typer import Argument, Option

from supervisor_memory.errors import RecordNotFound
from supervisor_memory.interfaces.cli import tables
from supervisor_memory.interfaces.cli.options import (
    EnvFile,
    Json,
    RecordId,
    User,
    opened,
    print_json,
    say,
    whole_id,
)
from supervisor_memory.interfaces.cli.where import (
    AsOf,
    Kinds,
    Metadata,
    Since,
    Tags,
    Until,
    moment_of,
    where_of,
)
from supervisor_memory.interfaces.present import audit_rows, hits_told
from supervisor_memory.interfaces.printable import one_line

_ROWS: Final = 20
Family = Annotated[
    list[str] | None,
    Option("--family", "-f", help="Only this family, as user_profile; repeatable.", metavar="NAME"),
]


def search(
    text: Annotated[str, Argument(help="What to look for.", metavar="TEXT")],
    *,
    user: User,
    limit: Annotated[
        int | None, Option("--limit", "-n", min=1, max=1000, help="Most hits; MEMORY_TOP_K if unset.")
    ] = None,
    threshold: Annotated[
        float | None,
        Option(min=0.0, max=1.0, help="Least relevance; MEMORY_MIN_SCORE if unset; 0: the best anyhow."),
    ] = None,
    family: Family = None,
    kind: Kinds = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    meta: Metadata = None,
    as_of: AsOf = None,
    explain: Annotated[
        bool, Option("--explain", help="Show every candidate, with what became of it and why.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Search one user's memory as a graph would, and tell why each record was found.

    An empty TEXT shows what is pinned, and then what is newest.
    """
    with opened(env_file, embedder=True) as memory:
        hits = memory.search(
            text,
            user_id=user,
            limit=limit,
            threshold=threshold,
            families=family,
            where=where_of(kind, tag, since, until, meta),
            explain=explain,
            as_of=moment_of(as_of, end=True),
        )
    if json:
        told = {"query": text, "user_id": user, "degraded": hits.degraded, "notes": [*hits.notes]}
        print_json({**told, **hits_told(hits, explain=explain)})
        return
    if explain and hits.considered:
        tables.show_explanation(hits)
    else:
        tables.show_hits(hits, user=user)
    for note in hits.notes:
        say(f"degraded: {note}" if hits.degraded else note)


def list_(
    *,
    user: User,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Most records.")] = 100,
    after: Annotated[
        str | None, Option(help="Those behind the last record of a page, by what the page says.")
    ] = None,
    family: Family = None,
    kind: Kinds = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    meta: Metadata = None,
    as_of: AsOf = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """List one user's active records, the latest first. Session messages only with --family."""
    with opened(env_file) as memory:
        where = where_of(kind, tag, since, until, meta)
        then = moment_of(as_of, end=True)
        records = memory.get_all(
            user_id=user, limit=limit, after=after, families=family, where=where, as_of=then
        )
    more = records[-1].cursor if len(records) == limit else None
    if json:
        told = [record.to_dict() for record in records]
        print_json({"user_id": user, "records": told, "next": more})
        return
    tables.show_records(records, user=user)
    if more is not None:
        which = "these are the latest" if after is None else "these are"
        say(f"{which} {limit}; --limit shows more, and --after {quote(more)} those behind")


def delete(
    id: RecordId,
    *,
    keep_said: Annotated[
        bool, Option("--keep-said", help="The messages it was read from may still be recalled.")
    ] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Delete one record, and recall its messages no more; history stays, `review restore` brings it back."""
    with opened(env_file) as memory:
        id = whole_id(memory, id)
        if not keep_said and memory.get(id).ref_ids:
            say("the messages it was read from are recalled no more either; --keep-said keeps them")
        deleted = memory.delete(id, keep_said=keep_said)
    if json:
        print_json({"id": id, "deleted": deleted})
    else:
        done = "deleted" if deleted else "there was nothing to delete of"
        typer.echo(f"{done} {id}; `supervisor-memory review restore {id}` brings it back")


def show(id: RecordId, *, json: Json = False, env_file: EnvFile = None) -> None:
    """Show one record with its messages, earlier versions, audit rows and readers."""
    with opened(env_file) as memory:
        id = whole_id(memory, id)
        record = memory.get(id)
        versions = memory.history(id)
        rows = audit_rows(memory, memory.audit.tail(_ROWS, record_id=id))
        accesses = [asdict(row) for row in memory.audit.accesses(_ROWS, record_id=id)]
        messages = memory.messages(id)
    if json:
        said = [message.to_dict() for message in messages]
        earlier = [version.to_dict() for version in versions[:-1]]
        told = {"record": record.to_dict(), "messages": said, "versions": earlier}
        print_json({**told, "audit": rows, "accesses": accesses})
        return
    tables.show_record(record, versions, rows, accesses, messages=messages)


def topics(
    *,
    user: User,
    task: Annotated[
        str | None, Option("--task", help="Also what belongs to this task.", metavar="ID")
    ] = None,
    tokens: Annotated[
        int | None, Option(min=0, help="Most tokens of all lines; MEMORY_MAX_CONTEXT_TOKENS if unset.")
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the topics remembered of a user: a line for each kind and subject."""
    with opened(env_file) as memory:
        found = memory.topics(user_id=user, task=task, max_tokens=tokens)
    if json:
        print_json({"user_id": user, "topics": [topic.to_dict() for topic in found]})
        return
    for topic in found:
        typer.echo(one_line(str(topic)))
    if not found:
        typer.echo(f"nothing to show of {one_line(user)}")


def history(id: RecordId, *, json: Json = False, env_file: EnvFile = None) -> None:
    """Show the versions of a record, oldest first: text, time and deciding event."""
    with opened(env_file) as memory:
        id = whole_id(memory, id)
        found = memory.history(id)
    if json:
        print_json({"id": id, "versions": [version.to_dict() for version in found]})
        return
    for version in found:
        typer.echo(one_line(f"version {version.version}, {version.status}{tables.decided(version)}"))
        typer.echo(f"    {one_line(version.content)}")


def diff(
    id: RecordId,
    *,
    old: Annotated[
        int | None, Option("--from", min=1, help="The one before --to, if unset.", metavar="N")
    ] = None,
    new: Annotated[int | None, Option("--to", min=1, help="The present one, if unset.", metavar="N")] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show what changed in a record from one version to another: [-taken out-] and {+put in+}."""
    from supervisor_memory.interfaces.differences import differences

    with opened(env_file) as memory:
        id = whole_id(memory, id)
        found = {version.version: version for version in memory.history(id)}
    last = max(found) if new is None else new
    first = max(1, last - 1) if old is None else old
    if missing := {first, last} - set(found):
        raise RecordNotFound(
            f"record {id} has no version {min(missing)}; it has {min(found)} to {max(found)}", id=id
        )
    parts = differences(found[first].content, found[last].content)
    if json:
        told = [{"what": part.what, "text": part.text} for part in parts]
        print_json({"id": id, "from": first, "to": last, "parts": told})
        return
    marks = {"same": ("", ""), "del": ("[-", "-]"), "ins": ("{+", "+}")}
    words = (f"{marks[part.what][0]}{part.text}{marks[part.what][1]}" for part in parts)
    typer.echo(one_line("".join(words)))
