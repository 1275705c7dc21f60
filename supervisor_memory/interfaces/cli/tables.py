"""What the commands show to people. Every text of a record goes through `printable` and `Text`, which
reads no markup."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from supervisor_memory.interfaces.printable import moment, one_line, printable, who_said
from supervisor_memory.model.explain import why
from supervisor_memory.model.records import Hits, Record
from supervisor_memory.model.versions import Version, read_from_message

if TYPE_CHECKING:
    from supervisor_memory.reading.doctor import Diagnosis

# NO_COLOR (no-color.org) makes rich leave out colours; bold and dim text goes with them.
_CONSOLE: Final = Console(
    highlight=False, soft_wrap=False, color_system=None if Console().no_color else "auto"
)
_LINE: Final = 200
_MICRO: Final = 1_000_000
_MILLI: Final = 1_000
_MEGA: Final = 1_000_000


def show_hits(hits: Hits, *, user: str) -> None:
    if not hits:
        _line(f"nothing relevant is remembered of {one_line(user)}")
        return
    for rank, hit in enumerate(hits, start=1):
        _line(f"{rank}. {hit.score:.2f}  {one_line(hit.record.content, most=_LINE)}")
        _line(f"   {why(hit.parts, hit.names)}", style="dim")
        _line(f"   {_described(hit.record)}", style="dim")


def show_explanation(hits: Hits) -> None:
    """Print every candidate in a table, with a legend."""
    for line in str(replace(hits, notes=())).splitlines():
        _line(printable(line))


def show_records(records: Sequence[Record], *, user: str) -> None:
    if not records:
        _line(f"nothing is remembered of {one_line(user)}")
    for record in records:
        _line(one_line(record.content, most=_LINE))
        _line(f"   {_described(record)}", style="dim")


def show_record(
    record: Record,
    versions: Sequence[Version],
    rows: Sequence[Mapping[str, Any]],
    accesses: Sequence[Mapping[str, Any]],
    *,
    messages: Sequence[Record],
) -> None:
    """A record with its `versions`, its events, its readers, and the messages around its origin."""
    _line(printable(record.content))
    _CONSOLE.print()
    _show_pairs(_facts(record, versions[-1]))
    if messages:
        of = read_from_message(versions).version
        _head("said" if of == record.version else f"said, for version {of}")
    for message in messages:
        is_its_own = message.id in (record.ref_id, record.id)
        _line(f"{'>' if is_its_own else ' '} {who_said(message)}: {one_line(message.content, most=_LINE)}")
    for version in reversed(versions[:-1]):
        _head(f"version {version.version}, {version.status}, of {moment(version.updated_at)}")
        _line(printable(version.content))
        _line(_in_time(version), style="dim")
    _head("audit")
    show_audit(rows, with_record=False)
    _head("seen by")
    for row in accesses:
        by = row["agent_id"] or "supervisor"
        score = "" if row["score_milli"] is None else f"  score {row['score_milli'] / _MILLI:.2f}"
        reason = f"  {one_line(row['reason'])}" if row["reason"] else ""
        _line(f"{moment(row['ts_us'] / _MICRO)}  {one_line(by)}  {one_line(row['op'])}{score}{reason}")


def show_audit(rows: Sequence[Mapping[str, Any]], *, with_record: bool = True) -> None:
    """Rows of the log; a user by name where a record of these rows tells it, else by the log's pseudonym."""
    if not rows:
        _CONSOLE.print("no rows")
    beside = [(row["subject"], (row["record"] or {}).get("user_id")) for row in rows]
    names = {subject: user_id for subject, user_id in beside if subject and user_id}
    for row in rows:
        whose = one_line(names.get(row["subject"]) or row["subject"] or "")
        who = f"by {row['agent_id'] or row['actor']}" + (f" for {whose}" if whose else "")
        where = f" in {row['family']}" if row["family"] else ""
        is_of_nothing = row["op"] == "skip" and not row["record_id"]
        reason = f": {row['reason']}" if row["reason"] and not is_of_nothing else ""
        line = f"#{row['seq']}  {moment(row['ts_us'] / _MICRO)}  {row['op']} ({row['outcome']}) {who}"
        _line(one_line(line + where + reason))
        if is_of_nothing:
            _line(f"    {_left_out(row['reason'])}", style="dim")
        if with_record and row["record"]:
            _line(f"    {_text_now(row['record'])}", style="dim")


def _left_out(reasons: str) -> str:
    """The sentences of a turn that were not kept, by reason: "question:2;small-talk" in words."""
    told = (each.partition(":") for each in reasons.split(";"))
    counts = ", ".join(f"{code} ({number})" if number else code for code, _, number in told)
    return one_line(f"left out of what was said: {counts}")


def show_notes(notes: Sequence[Mapping[str, Any]]) -> None:
    """Print notes and search results, each record with its scores in words."""
    for note in notes:
        reader = note["agent_id"] or "the supervisor"
        size = "" if note["tokens"] is None else f", {note['tokens']} tokens"
        run = f", run {note['run_id']}" if note["run_id"] else ""
        _head(one_line(f"{moment(note['at'])}  {note['op']} for {reader}{size}{run}  ({note['id']})"))
        for each in (*note["shown"], *note["dropped"]):
            at, words = (f"{each['rank']:>3}.", each["why"]) if each["rank"] else ("  – ", each["told"])
            words = each["told"] if each["reason"] == "guideline" else words  # no score chose it
            _line(one_line(f"{at} {each['score']:.2f}  {each['record_id']}  {words}"))
            for part in each["made_of"]:
                _line(
                    one_line(f"     {part['section']}: {part['id']}  {_text_now(part['record'])}"),
                    style="dim",
                )
            if not each["made_of"]:
                _line(f"     {_text_then(each)}", style="dim")


def show_decisions(decisions: Sequence[Mapping[str, Any]]) -> None:
    """Print the decisions on a record, each with the nearest known record."""
    for each in decisions:
        reason, near = f": {each['reason']}" if each["reason"] else "", each["nearest"]
        apart = f", apart from {near['id']} ({each['apart']})" if near else ""
        _line(one_line(f"{moment(each['at'])}  decided to {each['op']}{reason}{apart}"))
        if near:
            _line(f"     {_text_now(near)}", style="dim")


def _text_then(each: Mapping[str, Any]) -> str:
    """The text that a reader was given and, where it was changed since, the present text."""
    now = _text_now(each["record"])
    return now if each["then"] is None else f"{one_line(each['then'])} (now: {now})"


def show_diagnosis(diagnosis: "Diagnosis", *, every_setting: bool) -> None:
    told = diagnosis.to_dict()
    versions = f"supervisor-memory {told['version']} · Python {told['python']} · SQLite {told['sqlite']}"
    versions += f" · recipe {one_line(diagnosis.recipe)}"
    _line(versions)
    _show_settings(told["settings"], every=every_setting)
    parts = {"backend": _backend_lines, "queue": _queue_lines, "embedder": _embedder_lines}
    for title, lines in parts.items():
        _head(title)
        _show_pairs(lines(diagnosis))
    if diagnosis.files:
        _head("files")
        for file in diagnosis.files:
            size = f"  {file.bytes / _MEGA:.1f} MB" if file.bytes else ""
            _line(f"{file.mode}  {one_line(file.path)}{size}")
    _head("result")
    for warning in diagnosis.warnings:
        _line(Text.assemble(("warning: ", "yellow"), one_line(warning)))
    for problem in diagnosis.problems:
        _line(Text.assemble(("problem: ", "bold red"), one_line(problem)))
    if diagnosis.ok:
        _line("ok: memory works as these settings say", style="green")


def _show_settings(settings: Iterable[Mapping[str, Any]], *, every: bool) -> None:
    _head("settings" if every else "settings (--all shows every one, with its meaning)")
    always = ("MEMORY_BACKEND", "EMBEDDING_MODEL")
    shown = [each for each in settings if every or each["origin"] != "default" or each["env"] in always]
    if not every:
        pairs = [(each["env"], f"{_value(each['value'])}  ({each['origin']})") for each in shown]
        _show_pairs(pairs)
        return
    for each in shown:
        _line(f"{each['env']} = {_value(each['value'])}  ({each['origin']})")
        _line(f"    {each['meaning']}", style="dim")


def _backend_lines(diagnosis: "Diagnosis") -> Iterable[tuple[str, str]]:
    backend, capacity = diagnosis.backend, diagnosis.capacity
    works = {True: "works", False: "does not work", None: "not made yet"}[backend.ok]
    yield "name", f"{backend.name}, {works}"
    yield "kept", "on disk" if backend.persistent else "in this process only, not persistent"
    yield "where", backend.location
    yield from backend.details.items()
    if backend.message:
        yield "note", backend.message
    if backend.exists and backend.ok:
        yield "active", f"{capacity.active:,} records; MEMORY_CAPACITY {capacity.limit:,} a namespace"
        yield "over", ", ".join(f"{name} ({count:,})" for name, count in capacity.over) or "no namespace"
        if capacity.messages is not None:
            yield "said", f"{capacity.messages:,} messages without a vector"
        yield "expired", f"{capacity.expired:,}, not set aside yet"
        yield "forgot", "never" if capacity.forgot_at is None else moment(capacity.forgot_at)


def _queue_lines(diagnosis: "Diagnosis") -> Iterable[tuple[str, str]]:
    queue = diagnosis.queue
    oldest = "" if queue.oldest_seconds is None else f", the oldest for {queue.oldest_seconds:,.0f} s"
    yield "waiting", f"{queue.waiting:,} events{oldest}"
    yield "dead", f"{queue.dead:,}"


def _embedder_lines(diagnosis: "Diagnosis") -> Iterable[tuple[str, str]]:
    embedder = diagnosis.embedder
    if embedder.message:
        yield "note", embedder.message
    if embedder.fingerprint is None:
        return
    chinese = {True: "reads Chinese", False: "does not read Chinese", None: "languages unknown"}
    yield "model", embedder.fingerprint
    yield "loads", f"in {embedder.seconds:.1f} s"
    yield "Chinese", chinese[embedder.reads_chinese]


def _facts(record: Record, present: Version) -> Iterable[tuple[str, str]]:
    yield "id", record.id
    yield "user", record.user_id
    yield "namespace", "/".join(record.namespace)
    yield "kind", f"{record.kind}, layer {record.layer}"
    yield "status", f"{record.status}, version {record.version}"
    if record.subject:
        yield "about", f"{record.subject}: {record.attribute}"
    yield "created", moment(record.created_at)
    yield "updated", moment(record.updated_at)
    if record.expires_at is not None:
        yield "expires", moment(record.expires_at)
    given = {k: v for k, v in record.to_dict()["source"].items() if v is not None}
    told = ", ".join(f"{name} {value}" for name, value in given.items())
    yield "source", told if record.version == 1 else f"{told} (of version 1)"
    if record.version > 1 and present.said_in is not None:
        yield "said in", f"session {present.said_in}"
    for name, value in record.metadata.items():
        yield f"metadata.{name}", str(value)
    if record.ref_id is not None:
        yield "made from", record.ref_id
    yield "vector", record.embedder or "none: found by words alone"


def _in_time(version: Version) -> str:
    since, until = ("ever" if at is None else moment(at) for at in (version.valid_from, version.valid_to))
    return one_line(f"valid {since} to {until}{decided(version)}")


def decided(version: Version) -> str:
    """When a version was recorded, and what decided it."""
    known = "" if version.recorded_at is None else f", recorded {moment(version.recorded_at)}"
    by = f" by {version.op} of {version.actor}" if version.op else ""
    why = f" ({version.reason})" if version.reason else ""
    said = f", said in session {version.said_in}" if version.said_in else ""
    return f"{known}{by}{why}{said}"


def _described(record: Record) -> str:
    family = "/".join((record.family, *record.namespace[2:]))
    parts = (record.kind, family, f"from {who_said(record)}", moment(record.updated_at), record.id)
    return one_line(" · ".join(parts))


def _text_now(beside: Mapping[str, str | None] | None) -> str:
    """The record's present text, or its fate, for a row."""
    if beside is None:
        return ""
    changed = f", rests on {beside['changed']}, which has changed since" if beside.get("changed") else ""
    return one_line(beside["content"] or f"[{beside['status']}{changed}]", most=_LINE)


def _value(value: object) -> str:
    return "unset" if value is None else str(value)


def _head(title: str) -> None:
    _CONSOLE.print()
    _line(one_line(title), style="bold")


def _show_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        _line(Text.assemble((f"{one_line(name):<{width}}  ", "dim"), one_line(value)))


def _line(text: str | Text, *, style: str = "") -> None:
    """One line, which the terminal may wrap; a file or a pipe gets it whole."""
    _CONSOLE.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)
