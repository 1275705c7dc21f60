"""The bodies of answers, with the same keys as the command line; docs/cli.md lists them."""

from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from supervisor_memory.model.records import Event, Kind, Layer, SourceClass, Status, WriteResult, WriteStatus
from supervisor_memory.review.sweep import Action


class Source(BaseModel):
    source_class: SourceClass
    agent_id: str | None
    session_id: str | None
    run_id: str | None
    message_id: str | None
    speaker: str | None


class Record(BaseModel):
    """A memory. Times are in seconds since 1970. `joined_ref_ids`, `former_ref_ids`: where there are any."""

    model_config = ConfigDict(extra="allow")

    id: str
    namespace: list[str] = Field(description="Family, user and, of a task, its name.")
    content: str
    kind: Kind
    layer: Layer
    status: Status
    metadata: dict[str, Any]
    tags: list[str]
    importance: float
    source: Source
    created_at: float
    updated_at: float
    ref_id: str | None
    subject: str | None
    attribute: str | None
    content_hash: str
    version: int
    valid_from: float | None
    valid_to: float | None
    expires_at: float | None
    embedder: str | None


class Version(Record):
    recorded_at: float | None
    op: str
    reason: str
    actor: str
    said_in: str | None = Field(description="The session in which this version was said; null: in none.")


class Records(BaseModel):
    user_id: str
    records: list[Record]
    next: str | None = Field(description="What is to follow `after` for the next page; null: there is none.")


class History(BaseModel):
    versions: list[Version] = Field(description="Oldest first.")


class Written(BaseModel):
    """The outcome of writing a text."""

    id: str = Field(description="The record it is in now; empty: none.")
    status: WriteStatus
    saved: bool
    reason: str
    version: int
    applied: bool


def written(done: WriteResult) -> Written:
    return Written(**asdict(done))


class Result(Written):
    memory: str | None = Field(description="What the record says now.")
    event: Event


class Added(BaseModel):
    results: list[Result]


class Deleted(BaseModel):
    id: str
    deleted: int


class Lesson(BaseModel):
    """A failed call compared with the next working one."""

    edits: list[tuple[str, str | None, str | None]] = Field(
        description="The argument, what stood in the failed call, what stands in the one that worked."
    )
    error: str = Field(description="The essence of what the tool said.")
    runs: list[str] = Field(description="The runs in which it was learned: the evidence.")
    times: int = Field(description="How often it was learned.")
    held: int = Field(description="How often a call that did as it says worked.")
    failed: int = Field(description="How often such a call failed.")
    helped: int = Field(description="Runs with it that were rated well.")
    hurt: int = Field(description="Runs with it that were rated badly.")
    at: float = Field(description="When it was learned or held last.")
    said: str = Field(description="What a person says in place of the edits; empty: nobody has.")


class Guideline(BaseModel):
    """The guideline of a tool, which its agent is told."""

    id: str
    tool: str
    agent_id: str | None = Field(description="Who learned it; null: the supervisor.")
    user_id: str
    status: Status
    content: str
    told: int = Field(description="How often a note held it.")
    lessons: list[Lesson]


class Guidelines(BaseModel):
    guidelines: list[Guideline]


class Promotion(BaseModel):
    """The effects of promoting a record."""

    id: str
    version: int
    kind: Kind
    text: str = Field(description="What the notes of the team would hold.")
    team: str
    agent_id: str | None = Field(description="The agent whose notes hold it; null: of all.")
    users: int = Field(description="How many users this store knows by now.")
    personal: list[str] = Field(description="Personal data in it, by type; with any it cannot be promoted.")
    names: list[str] = Field(description="What may be the name of a person.")
    replaces: str | None = Field(description="The shared text whose place it takes.")


class Rated(BaseModel):
    run_id: str
    score: float
    counted: list[str] = Field(description="The guidelines that count it.")
    withdrawn: list[str] = Field(description="Those of them that are told no more.")


class Candidate(BaseModel):
    id: str
    memory: str
    score: float
    parts: dict[str, float] = Field(description="What the score is made of.")
    why: str
    record: Record


class Hit(Candidate):
    rank: int


class Considered(Candidate):
    reason: str = Field(description="What became of it, as a code.")
    told: str = Field(description="The same in words.")


class Found(BaseModel):
    query: str
    user_id: str
    degraded: bool
    notes: list[str]
    results: list[Hit]
    considered: list[Considered] | None = Field(description="Every candidate, with explain.")


class Proposal(BaseModel):
    """A statement that waits for a person, beside the known record."""

    id: str
    user_id: str
    content: str
    why: list[str]
    said_by: str
    evidence: str
    decision: str
    reason: str
    text: str
    existing: Record | None
    record: Record


class Shared(BaseModel):
    records: list[Record]


class Proposals(BaseModel):
    proposals: list[Proposal]


class Shown(Proposal):
    messages: list[Record]


class Step(BaseModel):
    record_id: str
    action: Action
    text: str


class Swept(BaseModel):
    """The outcome of a quarantine, a release or a roll-back."""

    id: str = Field(description="Names it in the audit log; empty: nothing was changed.")
    rule: str = Field(description="What was asked for, as a code.")
    dry_run: bool = Field(description="true: nothing was changed; confirm does it.")
    steps: list[Step]
    left: dict[str, str] = Field(description="Record id → why it was left as it is, as a code.")


class Beside(BaseModel):
    """A record as it is now: its text only while it is active; `erased` where there is none."""

    status: str
    user_id: str | None
    content: str | None
    changed: str | None = Field(None, description="What it rests on and that has changed since.")


class AuditRow(BaseModel):
    seq: int
    ts_us: int
    op: str
    outcome: str
    reason: str
    actor: str
    source_class: str | None
    subject: str | None
    family: str | None
    record_id: str | None
    version_before: int | None
    version_after: int | None
    commit_before: str | None
    commit_after: str | None
    agent_id: str | None
    session: str | None
    run_id: str | None
    detail: dict[str, Any]
    event_id: str
    log_id: str
    schema_: int = Field(alias="schema")
    hash: str
    record: Beside | None


class AuditPage(BaseModel):
    rows: list[AuditRow]
    next: int | None = Field(description="What is to follow `before`, or `after`, for the next page.")


class Verified(BaseModel):
    rows: int
    records: int
    problems: list[str]


class Origin(BaseModel):
    id: str = Field(description="Of the message.")
    section: str = Field(description="Of the digest: asked, decided, done, learned, next, preferences.")
    record: Beside


class TurnRecord(BaseModel):
    record_id: str
    rank: int | None
    score: float | None
    reason: str
    parts: dict[str, float]
    why: str = Field(description="The parts in words.")
    told: str = Field(description="The reason in words.")
    then: str | None = Field(description="What the reader was given, where it is another text than now.")
    record: Beside
    made_of: list[Origin] = Field(description="Of a digest: the messages whose sentences it told.")


class Note(BaseModel):
    id: str
    seq: int
    at: float
    op: str
    agent_id: str | None
    session: str | None
    run_id: str | None
    tokens: int | None
    degraded: bool
    shown: list[TurnRecord]
    dropped: list[TurnRecord]


class Why(BaseModel):
    notes: list[Note] = Field(description="Newest first.")


class Turn(BaseModel):
    run_id: str | None
    session: str | None
    at: float
    notes: list[Note]


class Turns(BaseModel):
    turns: list[Turn] = Field(description="Newest first.")
    next: int | None = Field(description="What to send as `before` for the next page; null: there is none.")


class Session(BaseModel):
    session_id: str
    user_id: str
    name: str | None
    status: Literal["open", "closed"]
    agents: list[str] = Field(description="Those that spoke in it.")
    first_at: float
    last_at: float
    closed_at: float | None
    message_count: int
    is_digested: bool


class Sessions(BaseModel):
    sessions: list[Session]
    next: str | None = Field(description="What to send as `after` for the next page; null: there is none.")


class Party(BaseModel):
    id: str
    sessions: int = Field(description="In how many it spoke.")
    messages: int = Field(description="That these sessions have, of anybody.")
    first_at: float
    last_at: float


class Parties(BaseModel):
    rows: list[Party] = Field(description="The one who spoke last first.")
    next: str | None = Field(description="What to send as `after` for the next page; null: there is none.")


class Said(BaseModel):
    id: str
    sequence: int = Field(description="From 1.")
    parent_id: str | None = Field(description="The message before it.")
    role: Literal["user", "assistant", "tool", "system"]
    type: Literal["text"]
    content: str
    created_at: float
    agent_id: str | None
    speaker: str | None


class WholeSession(Session):
    messages: list[Said]


class Entry(BaseModel):
    at: float = Field(description="When it was said.")
    what: Literal["said", "learned", "changed", "decided"]
    id: str = Field(description="Of the record or, where none says this, of the message.")
    text: str
    agent_id: str | None
    before: str | None = Field(description="What a changed record said until then.")
    status: Status | None = Field(description="What a record is now.")


class Cost(BaseModel):
    notes: int
    tokens: int = Field(description="Of the notes.")
    sources: int = Field(description="Tokens of the messages, whole, that they stand for.")
    spared: int = Field(description="The difference.")


class CostOfReader(Cost):
    agent_id: str | None = Field(description="null: the supervisor.")


class Chapter(BaseModel):
    session_id: str
    user_id: str
    name: str | None
    status: Literal["open", "closed"]
    agents: list[str]
    first_at: float
    last_at: float
    day: str = Field(description="Of its newest message, in UTC.")
    said: int = Field(description="How many messages are of the period.")
    entries: list[Entry] = Field(description="In order.")
    earlier: float | None = Field(
        description="What to send as `until`, with this session, for what was said before; null: nothing was."
    )
    cost: Cost
    costs: list[CostOfReader]


class Timeline(BaseModel):
    user_id: str
    sessions: list[Chapter] = Field(description="The one with the newest message first.")
    next: str | None = Field(description="What to send as `after` for the next page; null: there is none.")


class Thing(BaseModel):
    name: str
    kind: str = Field(description="Such as person, table, column, metric, file, report; name: not known.")
    record_id: str | None = Field(description="Of a conclusion, the record that is the thing.")


class RelationTold(BaseModel):
    source: Thing
    relationship: str = Field(description="Such as advised_by. In a way also empty: a record names both.")
    destination: Thing
    record_id: str = Field(description="The record that says so.")


class LinkTold(RelationTold):
    since: float


class NeighbourTold(BaseModel):
    thing: Thing
    relationships: list[str] = Field(description="None: records name both, and tell no relation.")
    record_ids: list[str]


class RecordTold(BaseModel):
    id: str
    content: str
    kind: Kind
    created_at: float


class Relations(BaseModel):
    user_id: str
    about: str
    names: list[Thing] = Field(description="All names of it; empty: no record names it.")
    links: list[LinkTold]
    neighbours: list[NeighbourTold]
    path: list[RelationTold] = Field(description="The way to the other one, step by step.")
    upstream: list[Thing] = Field(description="What it is made from, over any number of steps.")
    downstream: list[Thing] = Field(description="What is made from it.")
    records: list[RecordTold] = Field(description="Those that say all this.")
    next: int | None = Field(description="What to send as `offset`; null: there are no more.")
    notes: list[str]


class Held(BaseModel):
    user_id: str
    counts: dict[str, int]


class Erased(BaseModel):
    user_id: str
    erased_at: float | None = Field(description="null: nothing was removed.")
    counts: dict[str, int]
    pending: list[str]
    out_of_reach: list[str]


class ErasedSession(Erased):
    session_id: str
