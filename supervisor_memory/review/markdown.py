"""Memory as a folder of Markdown files to edit in git: export, a plan of the edits, import.

A file is a record: its text, and above it between two lines of `---` the id and the version that it was
written from. Nothing that somebody edited is written over, and nothing in the store is changed that was
changed there since: such a file is a conflict, which is told and left.
"""

import difflib
import json
import os
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from supervisor_memory.errors import InvalidContent, RecordNotFound, SettingsError, SupervisorMemoryError
from supervisor_memory.flow import Remembering, run
from supervisor_memory.model.arguments import check_kind
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    KINDS,
    MAX_CONTENT_BYTES,
    SESSION_FAMILY,
    Filter,
    Kind,
    Record,
    Scope,
    Source,
    WriteResult,
    check_content,
)
from supervisor_memory.ports import Ports
from supervisor_memory.review.proposal import Insert
from supervisor_memory.stages.pre_insert.extract import describe
from supervisor_memory.understand.lessons.lesson import LESSONS
from supervisor_memory.upkeep.edit import Curator

What: TypeAlias = Literal["add", "change", "delete", "same", "older", "conflict", "wrong"]
_LINE: Final = "---"
_MOST_BYTES: Final = MAX_CONTENT_BYTES + 8_192
_MOST_FILES: Final = 20_000
_READ: Final = ("id", "version", "kind", "delete")
"""What of the lines above a text counts; the others tell of the record, and are written anew."""
_TOLD: Final = ("subject", "attribute", "agent", "by", "tags", "updated")
_KEY: Final = re.compile(r"([a-z_]{1,32}):[ \t]*(.*?)[ \t]*\Z")
_SLUG: Final = 48


@dataclass(frozen=True, slots=True)
class Page:
    """A file, read: what its first lines say, and its text."""

    file: str
    text: str
    record_id: str = ""
    version: int = 0
    kind: Kind | None = None
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned or finished import of one file.

    Args:
        file: Its path below the folder.
        what: "add" and "change" its text, "delete" the record; "same": nothing was edited; "older": the
            record has changed since, and the file has not; "conflict": both have, or it is another's;
            "wrong": it cannot be read.
        before, after: The text in the store, and that of the file.
        why: Of a conflict or a wrong file, a sentence.
    """

    file: str
    what: What
    record_id: str = ""
    before: str = ""
    after: str = ""
    why: str = ""

    def diff(self) -> str:
        """What would change, as lines of a unified diff; "" where nothing would."""
        if self.what not in ("add", "change", "delete", "conflict"):
            return ""
        old, new = self.before.splitlines(), [] if self.what == "delete" else self.after.splitlines()
        name = self.record_id or "(new)"
        return "\n".join(difflib.unified_diff(old, new, name, self.file, lineterm=""))

    def to_dict(self) -> dict[str, Any]:
        """The file's part of a plan for JSON."""
        return {name: getattr(self, name) for name in Planned.__slots__}


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned or finished import of a folder, file by file."""

    files: tuple[Planned, ...]
    is_done: bool = False

    @property
    def counts(self) -> Mapping[str, int]:
        """How many files there are of each sort."""
        return Counter(each.what for each in self.files)

    @property
    def is_whole(self) -> bool:
        """Whether no file is a conflict, or wrong."""
        return not any(each.what in ("conflict", "wrong") for each in self.files)

    def __str__(self) -> str:
        told = [each.diff() or f"{each.file}: {each.what}" for each in self.files if each.what != "same"]
        told += [f"{each.file}: {each.why}" for each in self.files if each.why]
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return "\n".join([*told, counts or "no files"])


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of a folder after an export: counts written, unchanged, removed; names kept.

    Args:
        removed: Files of records that are not in use any more, which nobody had edited.
        kept: Files that somebody has edited: import them first.
    """

    written: int
    same: int
    removed: int
    kept: tuple[str, ...] = ()


def export(folder: Path, records: Iterable[Record], versions: Callable[[str], Sequence[Record]]) -> Exported:
    """Write records into a folder, one a file, and remove files of records that are gone.

    Args:
        versions: All versions of a record, by which it is told whether a file was edited.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there: dict[str, Page] = {}
    kept: list[str] = []
    for each in read(folder):
        if isinstance(each, Planned) or not each.record_id:
            kept.append(each.file)
        else:
            there[each.record_id] = each
    written = same = removed = 0
    for record in records:
        page, text = there.pop(record.id, None), rendered(record)
        file = folder / (page.file if page is not None else _name(record))
        if page is not None and file.read_text("utf-8") == text:
            same += 1
        elif page is not None and _is_edited(page, versions(record.id)):
            kept.append(page.file)
        else:
            _put(file, text)
            written += 1
    for id_, page in there.items():
        if _is_edited(page, versions(id_)):
            kept.append(page.file)
        else:
            (folder / page.file).unlink()
            removed += 1
    return Exported(written, same, removed, tuple(sorted(kept)))


def exportable(record: Record) -> bool:
    """Whether a record is a text that a person can edit: no message, no digest, no lessons of a tool."""
    return (
        record.layer == "abstract"
        and record.family not in (SESSION_FAMILY, DIGEST_FAMILY)
        and LESSONS not in record.metadata
    )


def rendered(record: Record) -> str:
    """A record as a file."""
    updated = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(record.updated_at, 0.0)))
    told: dict[str, Any] = {
        "id": record.id,
        "version": record.version,
        "kind": record.kind,
        "subject": record.subject,
        "attribute": record.attribute,
        "agent": record.source.agent_id,
        "by": record.source.source_class,
        "tags": list(record.tags) or None,
        "updated": updated,
    }
    lines = (f"{name}: {_value(value)}" for name, value in told.items() if value is not None)
    return "\n".join((_LINE, *lines, _LINE, "", record.content, ""))


def read(folder: Path) -> Iterator[Page | Planned]:
    """The Markdown files in and below a folder, sorted by name; a wrong file as a planned error.

    Raises:
        SettingsError: there is no such folder, or there are over 20,000 files.
    """
    if not folder.is_dir():
        raise SettingsError(f"{folder} is no folder", path=str(folder))
    files = sorted(each for each in folder.rglob("*.md") if ".git" not in each.relative_to(folder).parts)
    if len(files) > _MOST_FILES:
        raise SettingsError(f"{folder} has {len(files):,} files; {_MOST_FILES:,} at most", path=str(folder))
    for file in files:
        name = file.relative_to(folder).as_posix()
        try:
            if file.is_symlink() or not file.is_file():
                raise InvalidContent("it is no file, but leads to another place")
            if file.stat().st_size > _MOST_BYTES:
                raise InvalidContent(f"it has over {_MOST_BYTES:,} bytes")
            yield parsed(name, file.read_text("utf-8"))
        except (OSError, UnicodeError, InvalidContent) as error:
            yield Planned(name, "wrong", why=str(error))


def parsed(file: str, text: str) -> Page:
    """A file's text as a page.

    Raises:
        InvalidContent: a line above the text is wrong; the error names it.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    told: dict[str, Any] = {}
    if not lines or lines[0].strip() != _LINE:
        return Page(file, check_content(text))
    end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == _LINE), None)
    if end is None:
        raise InvalidContent(f"line 1: there is no second line of {_LINE}")
    for number, line in enumerate(lines[1:end], 2):
        found = _KEY.match(line)
        if line.strip() and (found is None or found[1] not in (*_READ, *_TOLD)):
            key = found[1] if found else line[:40]
            near = difflib.get_close_matches(key, (*_READ, *_TOLD), n=1)
            hint = f"did you mean {near[0]}?" if near else f"use {', '.join(_READ)}"
            raise InvalidContent(f"line {number}: {key!r} is nothing that a file can say; {hint}")
        if found is not None:
            told[found[1]] = _read_value(found[2])
    return Page(
        file,
        check_content("\n".join(lines[end + 1 :])),
        _text(told, "id", ""),
        _number(told),
        _kind(told),
        _is_true(told),
    )


@dataclass(frozen=True, slots=True)
class Importer:
    """Plans and carries out the changes of a folder to a user's records.

    Args:
        curator: Looks records up, and changes and deletes them.
        insert: The operators that decide on a new text.
        writing: Makes new ports.
    """

    user_id: str
    curator: Curator
    insert: Insert
    writing: Callable[[], Ports]
    clean: Callable[[str], str]

    def plan(self, folder: Path) -> Plan:
        """Plan the import. Nothing is changed."""
        return Plan(
            tuple(each if isinstance(each, Planned) else self._planned(each) for each in read(folder))
        )

    def apply(self, folder: Path, *, reviewer: str) -> Plan:
        """Carry out the plan, and write the new ids and versions into the files; failures are reported."""
        done: list[Planned] = []
        for page in read(folder):
            planned = page if isinstance(page, Planned) else self._planned(page)
            if isinstance(page, Page) and planned.what in ("add", "change", "delete"):
                try:
                    planned = self._applied(folder, page, planned, reviewer)
                except SupervisorMemoryError as error:
                    planned = replace(planned, what="conflict", why=str(error))
            done.append(planned)
        return Plan(tuple(done), is_done=True)

    def _planned(self, page: Page) -> Planned:
        if not page.record_id:
            what: What = "wrong" if page.delete else "add"
            return Planned(page.file, what, after=page.text, why="it names no record" if page.delete else "")
        ports = self.writing()
        try:
            now = self.curator.own(page.record_id, self.user_id, ports)
        except RecordNotFound as error:
            return Planned(page.file, "conflict", page.record_id, after=page.text, why=str(error))
        both = {"record_id": now.id, "before": now.content, "after": page.text}
        if now.status != "active" or not exportable(now):
            why = (
                f"the record is {now.status}"
                if now.status != "active"
                else "it is no text that is edited here"
            )
            return Planned(page.file, "same" if page.delete else "conflict", **both, why=why)
        if not page.delete and page.text == now.content:
            return Planned(page.file, "same", **both)
        if page.version != now.version:
            versions = ports.store(ports.services.backend.versions, now.id)
            if not page.delete and not _is_edited(page, versions):
                return Planned(page.file, "older", **both)
            why = f"it was edited from version {page.version}; the record is at {now.version} by now"
            return Planned(page.file, "conflict", **both, why=why)
        return Planned(page.file, "delete" if page.delete else "change", **both)

    def _applied(self, folder: Path, page: Page, planned: Planned, reviewer: str) -> Planned:
        if planned.what == "delete":
            self.curator.delete(planned.record_id, self.user_id, actor=reviewer)
            (folder / page.file).unlink()
            return planned
        if planned.what == "change":
            text = self.clean(page.text)
            done = self.curator.update(planned.record_id, self.user_id, text, {}, merge=True, actor=reviewer)
        else:
            done = self._added(page)
        if not done.id:
            return replace(planned, what="conflict", why=f"it was not taken: {done.reason}")
        ports = self.writing()
        _put(folder / page.file, rendered(self.curator.own(done.id, self.user_id, ports)))
        return replace(planned, record_id=done.id)

    def _added(self, page: Page) -> WriteResult:
        source = Source("user")
        told = describe(self.clean(page.text), page.kind, source=source)
        said = Remembering(Scope(self.user_id), candidates=(told,), is_reviewed=True)
        return run(self.insert, said, self.writing().deciding()).results[0]


def whole(user_id: str) -> Filter:
    """All records of a user that may be in a folder."""
    return Filter(user_id, layers=("abstract",))


def _is_edited(page: Page, versions: Sequence[Record]) -> bool:
    """Whether a file says something else than the version that it was written from."""
    return not any(each.version == page.version and each.content == page.text for each in versions)


def _name(record: Record) -> str:
    plain = unicodedata.normalize("NFKC", record.content).casefold()
    slug = re.sub(r"[^\w]+", "-", plain)[:_SLUG].strip("-_") or "memory"
    return f"{record.family}/{slug}-{record.id.replace('-', '')[-8:]}.md"


def _put(file: Path, text: str) -> None:
    """Write a file atomically: readers find the old or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    part.write_text(text, "utf-8")
    os.replace(part, file)


def _value(value: Any) -> str:
    """A value as YAML and JSON both read it."""
    is_plain = isinstance(value, str) and re.fullmatch(r"[\w@.:/-]+(?: [\w@.:/-]+)*", value) is not None
    is_word = is_plain and not re.fullmatch(r"[\d.:-]+|true|false|null|yes|no|on|off|~", value, re.IGNORECASE)
    return str(value) if is_word and ": " not in value else json.dumps(value, ensure_ascii=False)


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(told: Mapping[str, Any], name: str, otherwise: str) -> str:
    value = told.get(name, otherwise)
    if isinstance(value, str):
        return value
    raise InvalidContent(f"{name} is {value!r:.40}; leave it as it was written")


def _number(told: Mapping[str, Any]) -> int:
    value = told.get("version", 0)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidContent(f"version is {value!r:.40}; leave it as it was written")


def _kind(told: Mapping[str, Any]) -> Kind | None:
    value = told.get("kind")
    if value is None or value in KINDS:
        check_kind(value)
        return value
    near = difflib.get_close_matches(str(value), KINDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(KINDS)}"
    raise InvalidContent(f"there is no kind {str(value)[:40]!r}; {hint}")


def _is_true(told: Mapping[str, Any]) -> bool:
    value = told.get("delete", False)
    if isinstance(value, bool):
        return value
    raise InvalidContent(f"delete is {value!r:.40}; write true, or leave the line out")
