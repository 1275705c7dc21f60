"""/v1/memories and /v1/search: what is remembered, and how it changes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query

from supervisor_memory.interfaces.http import answers, bodies
from supervisor_memory.interfaces.http.given import Asking, Memory, OneUser, User, Writing
from supervisor_memory.interfaces.present import hits_told, timeline_told
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.arguments import as_moment
from supervisor_memory.model.records import Event, Kind, WriteResult, WriteStatus

router = APIRouter(tags=["memories"])
_EVENTS: Final[dict[WriteStatus, Event]] = {
    **{"added": "ADD", "merged": "UPDATE", "updated": "UPDATE", "appended": "UPDATE"},
    **{"skipped": "NONE", "pending": "NONE"},
}
AsOf = Annotated[str | None, Query(description="What was valid then: ISO 8601, or seconds since 1970.")]


@router.post("/memories")
def add(body: bodies.Add, memory: Memory, caller: Writing) -> answers.Added:
    """Remember a text, or the statements of messages: one result for each statement."""
    user_id = caller.one_user(body.user_id)
    where = body.model_dump(include={"agent_id", "session_id", "run_id", "task", "metadata"})
    where["created_at"] = as_moment(body.created_at, what="created_at", end=False)
    if body.messages is not None:
        said = body.messages
        messages = said if isinstance(said, str) else [each.model_dump(exclude_none=True) for each in said]
        return _added(memory, memory.add(messages, user_id=user_id, infer=body.infer, **where))
    text = body.text or ""
    if not body.infer:
        return _added(memory, memory.add(text, user_id=user_id, infer=False, **where))
    done = memory.write(text, user_id=user_id, kind=body.kind, source_class=body.source_class, **where)
    return _added(memory, [done])


@router.post("/search")
def search(body: bodies.Search, memory: Memory, caller: Asking) -> answers.Found:
    """The records that bear on a question, best first, each with the parts of its score."""
    user_id = caller.one_user(body.user_id)
    asked = body.model_dump(exclude={"query", "user_id"})
    hits = memory.search(body.query, user_id=user_id, **asked)
    told = hits_told(hits, explain=True)
    return answers.Found.model_validate(
        {
            **{"query": body.query, "user_id": user_id, "degraded": hits.degraded, "notes": hits.notes},
            "results": [_flat_hit(each) for each in told["hits"]],
            "considered": [_flat_hit(each) for each in told["considered"]] if body.explain else None,
        }
    )


@router.get("/timeline")
def timeline(
    memory: Memory,
    user_id: OneUser,
    *,
    since: Annotated[str | None, Query(description="What was said from then on.")] = None,
    until: Annotated[str | None, Query(description="What was said before; a day counts whole.")] = None,
    session: Annotated[str | None, Query(description="Only this session.")] = None,
    agent: Annotated[str | None, Query(description="Only sessions in which this agent spoke.")] = None,
    said: Annotated[bool, Query(description="Whether messages are told word for word, too.")] = False,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> answers.Timeline:
    """What was said, learned, changed and decided, by session, and what the notes there cost."""
    asked = {"since": since, "until": until, "session_id": session, "agent_id": agent, "after": after}
    told = timeline_told(memory, limit=limit, user_id=user_id, with_said=said, **asked)
    return answers.Timeline.model_validate(told)


@router.get("/memories")
def list_memories(
    memory: Memory,
    user_id: OneUser,
    *,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[
        str | None, Query(max_length=1_000, description="The `next` of the page before.")
    ] = None,
    family: Annotated[list[str] | None, Query(description="Session messages only by family.")] = None,
    kind: Annotated[list[Kind] | None, Query(description="Any of these.")] = None,
    tag: Annotated[list[str] | None, Query(description="All of these.")] = None,
    session: Annotated[str | None, Query(description="Of this session, its messages too.")] = None,
    agent: Annotated[str | None, Query(description="Brought by this agent.")] = None,
    since: Annotated[str | None, Query(description="Only what was said from then on.")] = None,
    until: Annotated[str | None, Query(description="Only what was said before.")] = None,
    as_of: AsOf = None,
) -> answers.Records:
    """A user's active records, most recently updated first."""
    where = {"kind": kind or None, "tags": tag or None, "session": session, "agent": agent}
    where |= {"since": since, "until": until}
    found = memory.get_all(
        user_id=user_id, limit=limit, after=after, families=family or None, where=where, as_of=as_of
    )
    records = [answers.Record.model_validate(each.to_dict()) for each in found]
    more = found[-1].cursor if len(found) == limit else None
    return answers.Records(user_id=user_id, records=records, next=more)


@router.get("/memories/{id}")
def get_memory(id: str, memory: Memory, user_id: User, as_of: AsOf = None) -> answers.Record:
    """One record, in any status."""
    return answers.Record.model_validate(memory.get(id, user_id=user_id, as_of=as_of).to_dict())


@router.patch("/memories/{id}")
def update_memory(
    id: str, body: bodies.Change, memory: Memory, caller: Writing, user_id: User
) -> answers.Written:
    """Change a record; its old version stays in the history."""
    done = memory.review.change(id, **body.model_dump(), reviewer=caller.name, user_id=user_id)
    return answers.written(done)


@router.delete("/memories/{id}")
def delete_memory(
    id: str, memory: Memory, caller: Writing, user_id: User, *, keep_said: bool = False
) -> answers.Deleted:
    """Delete a record, and recall its messages no more; `POST /v1/review/undo` brings it back."""
    deleted = memory.review.delete(id, reviewer=caller.name, user_id=user_id, keep_said=keep_said)
    return answers.Deleted(id=id, deleted=deleted)


@router.get("/memories/{id}/history")
def history(id: str, memory: Memory, user_id: User) -> answers.History:
    """Every version of a record: valid times, time of recording, decision."""
    versions = memory.history(id, user_id=user_id)
    return answers.History(versions=[answers.Version.model_validate(each.to_dict()) for each in versions])


@router.post("/memories/{id}/revert")
def revert(id: str, body: bodies.Revert, memory: Memory, caller: Writing, user_id: User) -> answers.Written:
    """Give a record the text of an earlier version, as a new one."""
    done = memory.review.revert(id, version=body.version, reviewer=caller.name, user_id=user_id)
    return answers.written(done)


def _added(memory: SupervisorMemory, results: Sequence[WriteResult]) -> answers.Added:
    ids = [each.id for each in results if each.id]
    texts = {record.id: record.content for record in memory.upkeep.records(ids)} if ids else {}
    return answers.Added(
        results=[
            answers.Result(**asdict(each), memory=texts.get(each.id), event=_EVENTS[each.status])
            for each in results
        ]
    )


def _flat_hit(hit: dict[str, Any]) -> dict[str, Any]:
    return {**hit, "id": hit["record"]["id"], "memory": hit["record"]["content"]}
