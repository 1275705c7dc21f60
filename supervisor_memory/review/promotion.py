"""Promote a record to a team: its text as it would be told, its readers, and reasons against it.

A promoted record is a copy without its user, session and runs, owned by nobody who can act. The person who
promotes it also chooses what becomes of it when its author is erased.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from supervisor_memory.errors import Conflict, InvalidContent, RecordNotFound
from supervisor_memory.language.unseen import visible
from supervisor_memory.model.records import (
    AUTHOR,
    PROMOTED,
    TEAM,
    AuditEvent,
    Filter,
    Record,
    Source,
    WriteResult,
    new_id,
)
from supervisor_memory.moving.shared import people_in, personal_in, texts_of
from supervisor_memory.ports import Deciding, ReadStore, Services
from supervisor_memory.stages.insert.draft import with_vectors
from supervisor_memory.stages.retrieval.shared import SHARED_KINDS, owner_of
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.understand.lessons.lesson import GUIDELINE, LESSONS, lessons_of
from supervisor_memory.understand.lessons.wording import worded

OnErase = Literal["erase", "anonymise"]
"""Whether a shared record goes with its erased author, or stays as nobody's."""
KINDS_TO_SHARE: Final = SHARED_KINDS


@dataclass(frozen=True, slots=True)
class Promotion:
    """What promoting a record would do.

    Args:
        record: The record that would be promoted.
        text: What the notes of the team would hold; of a guideline all its lessons, of which a note holds
            those that are about its task.
        team: Whose users would read it: everybody's graph with this MEMORY_TEAM and this store.
        agent_id: The agent whose notes hold it, of each user; None: the supervisor's, and of a definition
            those of all agents.
        users: How many users this store knows by now.
        personal: The types of personal data and secrets found in it. With any it cannot be promoted.
        names: What may be the name of a person, as it is spelled in it.
        replaces: The shared record whose place it takes; None: it takes nobody's.
    """

    record: Record
    text: str
    team: str
    agent_id: str | None
    users: int
    personal: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    replaces: Record | None = None

    def to_dict(self) -> dict[str, Any]:
        """The preview as a plain dictionary for JSON."""
        return {
            "id": self.record.id,
            "version": self.record.version,
            "kind": self.record.kind,
            "text": self.text,
            "team": self.team,
            "agent_id": self.agent_id,
            "users": self.users,
            "personal": list(self.personal),
            "names": list(self.names),
            "replaces": None if self.replaces is None else self.replaces.content,
        }

    def __str__(self) -> str:
        who = "all agents and the supervisor" if self.agent_id is None else f"the agent {self.agent_id}"
        told = [self.text, f"read by: {who} of every user of the team {self.team} ({self.users} by now)"]
        told += [f"personal data: {', '.join(self.personal)}"] if self.personal else []
        told += [f"names of people? {', '.join(self.names)}"] if self.names else []
        told += [f"in the place of: {self.replaces.content}"] if self.replaces is not None else []
        return "\n".join(told)


def team_of(services: Services) -> str:
    """The user id under which the records that MEMORY_TEAM shares are kept.

    Raises:
        InvalidContent: it is empty.
    """
    if (owner := owner_of(services.settings)) is None:
        raise InvalidContent("nothing is shared: MEMORY_TEAM is empty; set the name of the team")
    return owner


def foreseen(record: Record, services: Services, view: ReadStore) -> Promotion:
    """Preview a promotion. Nothing is changed.

    Raises:
        SettingsError: what finds personal data is not installed.
        InvalidContent: MEMORY_TEAM is empty, or it is about a user, or is no statement.
        RecordNotFound: it is not in use.
    """
    owner = team_of(services)
    if record.user_id.startswith(TEAM):
        raise InvalidContent(f"record {record.id} is shared already", id=record.id)
    if record.kind not in SHARED_KINDS or record.layer != "abstract":
        raise InvalidContent(
            f"record {record.id} is of the kind {record.kind}, which stays its user's; definitions and "
            "experience alone can be promoted",
            id=record.id,
            kind=record.kind,
        )
    if record.status != "active":
        raise RecordNotFound(f"record {record.id} is {record.status}, and nobody reads it", id=record.id)
    shared = _shared_copy(record, owner, view.now)
    text = shared.content
    if record.attribute == GUIDELINE:  # a note holds as many lessons as fit, but which depends on its task
        lessons, tongue = lessons_of(shared.metadata), str(shared.metadata["language"])
        text = worded(record.subject or "", lessons, count=len, tongue=tongue, most=math.inf).text
    texts = texts_of(shared)
    users = {each for each in services.backend.audit.users() if not each.startswith(TEAM)}
    return Promotion(
        record,
        visible(text),
        services.settings.team,
        record.source.agent_id if record.family != record.kind.replace("-", "_") else None,
        len(users | {record.user_id}),
        personal_in(texts, services),
        people_in(texts, users | {record.user_id}, shared),
        _in_its_place(shared, view),
    )


def promoted(
    record: Record,
    services: Services,
    view: Deciding,
    *,
    on_erase: OnErase,
    reviewer: str,
    names_ok: Collection[str] = (),
    version: int | None = None,
) -> WriteResult:
    """Promote a record; see `Desk.promote`."""
    if isinstance(names_ok, str):
        raise InvalidContent("names_ok is one text; pass a list of names")
    if version is not None and version != record.version:
        raise Conflict(
            f"record {record.id} is in version {record.version} by now, not {version}; look at it once more",
            record_id=record.id,
        )
    if on_erase not in get_args(OnErase):
        raise InvalidContent(f"on_erase is {on_erase!r}; use {' or '.join(get_args(OnErase))}")
    seen = foreseen(record, services, view)
    if seen.personal:
        raise InvalidContent(
            f"record {record.id} holds personal data ({', '.join(seen.personal)}), and a team would read it; "
            "change the record first",
            id=record.id,
            personal=seen.personal,
        )
    if asked := [each for each in seen.names if each not in names_ok]:
        raise InvalidContent(
            f"record {record.id} names {', '.join(asked)}; where these are no people, pass them as names_ok",
            id=record.id,
            names=tuple(asked),
        )
    new = _shared_copy(record, team_of(services), view.now)
    author: Mapping[str, Any] = {}
    if on_erase == "erase":
        author = {AUTHOR: record.user_id, PROMOTED: record.id}
    new = replace(new, metadata={**new.metadata, **author})
    changes, told = [], []
    if (old := seen.replaces) is not None:
        gone = replace(old, status="stale", valid_to=view.now, updated_at=view.now, version=old.version + 1)
        changes.append(Change(gone, expects=old.version))
        told.append(
            AuditEvent.of(
                "supersede",
                old,
                actor=reviewer,
                version_before=old.version,
                version_after=old.version + 1,
                before=old.content,
                after=old.content,
            )
        )
    changes += with_vectors([Change(new)], view)
    told += [
        AuditEvent.of(
            "promote",
            new,
            actor=reviewer,
            version_after=1,
            after=new.content,
            reason=on_erase,
            detail={"kind": new.kind},
        ),
        AuditEvent.of("promote", record, actor=reviewer, reason=on_erase),
    ]
    done = view.commit(Commit(tuple(changes), tuple(told)))
    return WriteResult(new.id, "added", done.saved, "promoted", 1, done.applied)


def _shared_copy(record: Record, owner: str, now: float) -> Record:
    """The copy that a team reads: without user, session, runs, tags and other metadata."""
    metadata: dict[str, Any] = {}
    if record.attribute == GUIDELINE:
        lessons = [replace(each, runs=(), asked=()).to_dict() for each in lessons_of(record.metadata)]
        metadata = {LESSONS: lessons, "language": str(record.metadata.get("language", "en"))}
    if record.use_when is not None:
        metadata["use_when"] = record.use_when
    source = Source("tool" if record.source.source_class == "tool" else "system", record.source.agent_id)
    if record.source.agent_id is None:
        source = replace(source, speaker=owner.removeprefix(TEAM))
    task = () if record.task is None else (record.task,)
    return Record(
        new_id(),
        (record.family, owner, *task),
        visible(record.content),
        record.kind,
        now,
        now,
        metadata=metadata,
        importance=record.importance,
        source=source,
        subject=record.subject,
        attribute=record.attribute,
        valid_from=now,
        expires_at=record.expires_at,
    )


def _in_its_place(shared: Record, view: ReadStore) -> Record | None:
    """The shared record with the same text, or about the same thing."""
    beside = Filter.beside(shared)
    wheres = [replace(beside, content_hash=shared.content_hash)]
    if shared.subject is not None and shared.attribute is not None:
        wheres.append(replace(beside, subject=shared.subject, attribute=shared.attribute))
    return next((found[0] for where in wheres if (found := view.list(where, limit=1))), None)
