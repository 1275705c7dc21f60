"""Deciding: skip, merge, append, supersede or add; and who may change what."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import Conflict
from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import Candidate, Filter, Record, Scope, Source, SourceClass, WriteResult
from supervisor_memory.settings import Settings
from supervisor_memory.stages.insert.draft import expiry
from supervisor_memory.stages.insert.judges.by_evidence import likeness
from supervisor_memory.stages.insert.place import place
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Commit, Committed
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record
from tests.cases import every_case

ALICE = Scope("alice")
DAY = 86_400.0


class World:
    """A store, and one decision after the other."""

    def __init__(self, backend: InMemoryBackend | None = None, **settings: Any) -> None:
        self.backend = backend or InMemoryBackend(clock=lambda: MONDAY)
        self.settings = Settings(**settings)
        self.now = MONDAY

    def say(
        self,
        *contents: str,
        by: SourceClass = "user",
        subject: str | None = None,
        value: str | None = None,
        kind: Any = "domain-facts",
        metadata: Mapping[str, Any] | None = None,
        strategy: str | None = None,
        created_at: float | None = None,
        embedder: HashingEmbedder | None = None,
    ) -> tuple[WriteResult, ...]:
        data = {**(metadata or {}), **({"value": value} if value else {})}
        candidates = tuple(
            Candidate(
                content,
                kind,
                Source(by),
                subject,
                "definition" if subject else None,
                value,
                metadata=data,
                strategy=strategy,
            )
            for content in contents
        )
        self.now += 60
        world = ports(now=self.now, settings=self.settings, backend=self.backend, embedder=embedder)
        said = Remembering(ALICE, candidates=candidates, created_at=created_at)
        return place(said, world.deciding()).results

    @property
    def active(self) -> list[Record]:
        return list(self.backend.list(Filter(user_id="alice"), limit=100))

    @property
    def texts(self) -> list[str]:
        return sorted(record.content for record in self.active)


def test_an_exact_repeat_is_skipped_with_the_id_of_the_first() -> None:
    world = World()
    (first,) = world.say("GMV excludes refunds")
    for again in ("GMV excludes refunds", "gmv  excludes refunds.", "ＧＭＶ excludes refunds!"):
        (result,) = world.say(again)
        assert (result.id, result.status, result.reason) == (first.id, "skipped", "duplicate")
    assert len(world.active) == 1


def test_a_contradiction_on_one_subject_supersedes_under_the_same_id() -> None:
    world = World()
    (first,) = world.say("delayed means over 15 minutes", subject="delayed", value="15")
    (second,) = world.say("delayed means over 30 minutes", subject="delayed", value="30")
    assert (second.id, second.status, second.version) == (first.id, "updated", 2)
    assert world.texts == ["delayed means over 30 minutes"]
    assert [r.content for r in world.backend.versions(first.id)] == [
        "delayed means over 15 minutes",
        "delayed means over 30 minutes",
    ]


def test_compatible_texts_on_one_subject_are_merged_by_the_strategy_of_their_kind() -> None:
    world = World()
    world.say("GMV excludes refunds", subject="gmv", value="v")
    (merged,) = world.say("GMV excludes refunds and taxes", subject="gmv", value="v")
    assert (merged.status, merged.reason) == ("merged", "summarise")
    assert world.texts == ["GMV excludes refunds and taxes"]


def test_the_strategy_in_the_metadata_wins() -> None:
    world = World()
    world.say("GMV excludes refunds", subject="gmv", value="v")
    (result,) = world.say("GMV leaves taxes out", subject="gmv", value="v", strategy="append")
    assert result.status == "appended"
    assert world.texts == ["GMV excludes refunds\n[2026-01-05] GMV leaves taxes out"]


def test_steps_of_a_task_are_appended_with_their_date_and_only_once() -> None:
    world = World()
    world.say("loaded the flights of March", kind="task-traces", subject="march", value="v")
    for _ in range(3):
        world.say("found 12 late flights", kind="task-traces", subject="march", value="v")
    assert world.texts == ["loaded the flights of March\n[2026-01-05] found 12 late flights"]


@every_case("by", ["agent", "tool"])
def test_what_an_agent_or_a_tool_says_stands_beside_what_the_user_said(by: SourceClass) -> None:
    world = World()
    (first,) = world.say("delayed means over 15 minutes", subject="delayed", value="15")
    (second,) = world.say("delayed means over 30 minutes", subject="delayed", value="30", by=by)
    (third,) = world.say("delayed means over 15 minutes late", subject="delayed", value="15", by=by)
    assert second.status == "added"
    assert {second.id, third.id}.isdisjoint({first.id})
    assert world.backend.get([first.id])[0].content == "delayed means over 15 minutes"
    assert world.backend.get([first.id])[0].version == 1


def test_the_users_words_take_the_place_of_an_agents_and_can_no_longer_be_changed_by_one() -> None:
    world = World()
    (agents,) = world.say("delayed means over 15 minutes", subject="delayed", value="15", by="agent")
    (users,) = world.say("delayed means over 30 minutes", subject="delayed", value="30")
    assert (users.status, users.reason) == ("updated", "more-trusted-source")
    world.say("delayed means over 15 minutes", subject="delayed", value="15", by="agent")
    world.say("delayed means over 99 minutes", subject="delayed", value="99", by="agent")
    (mine,) = [r for r in world.active if r.source.source_class == "user"]
    assert mine.content == "delayed means over 30 minutes"
    (told,) = (row for row in world.backend.audit.tail(50, record_id=mine.id) if row.event["op"] == "update")
    assert told.event["detail"]["in_place_of"] == agents.id
    assert world.backend.get([agents.id])[0].status == "stale"


def test_the_user_who_repeats_an_agent_makes_the_statement_his() -> None:
    world = World()
    world.say("delayed means over 15 minutes", by="agent")
    (mine,) = world.say("delayed means over 15 minutes")
    assert [(r.id, r.source.source_class) for r in world.active] == [(mine.id, "user")]


def test_near_duplicates_are_merged_and_rivals_are_not() -> None:
    world = World()
    world.say("revenue in Q1 was 500 before tax and 400 after it")
    (same,) = world.say("in Q1 revenue was 500 before tax and 400 after it")
    (other,) = world.say("revenue in Q2 was 500 before tax and 400 after it")
    assert same.status in ("merged", "skipped")
    assert other.status == "added"
    assert len(world.active) == 2


@every_case("embedder", [None, HashingEmbedder()])
def test_candidates_of_one_batch_that_say_the_same_become_one(embedder: HashingEmbedder | None) -> None:
    world = World()
    results = world.say(
        "revenue in Q1 was 500 before tax and 400 after it",
        "revenue in Q1 was 500 before tax and 400 after it.",
        "in Q1 revenue was 500 before tax and 400 after it",
        "GMV excludes refunds",
        embedder=embedder,
    )
    assert len(results) == 4
    assert len({result.id for result in results}) == 2
    assert len(world.active) == 2


def test_rivals_of_one_batch_leave_the_last() -> None:
    world = World()
    first, second = world.say("delayed means over 15", "delayed means over 30", subject="delayed")
    assert first.id == second.id
    assert world.texts == ["delayed means over 30"]


def test_time_to_live_in_seconds_wins_over_days_by_kind() -> None:
    settings = Settings(ttl_days={"task-traces": 2})
    assert expiry("task-traces", {}, MONDAY, settings) == MONDAY + 2 * DAY
    assert expiry("task-traces", {"ttl": 60}, MONDAY, settings) == MONDAY + 60
    assert expiry("domain-facts", {}, MONDAY, settings) is None


def test_what_has_expired_can_be_said_again() -> None:
    world = World()
    (first,) = world.say("the server is down", metadata={"ttl": 30})
    (second,) = world.say("the server is down", metadata={"ttl": 30})
    assert (second.status, second.reason) == ("added", "expired-before")
    (visible,) = [r for r in world.active if r.is_visible(world.now)]
    assert visible.id == second.id != first.id


def test_an_expired_statement_does_not_come_back_by_merging() -> None:
    world = World()
    world.say("step 1", kind="task-traces", subject="job", value="v", metadata={"ttl": 30})
    world.say("step 2", kind="task-traces", subject="job", value="v")
    assert world.texts == ["step 2"]


def test_a_statement_of_the_past_does_not_supersede_a_newer_one() -> None:
    world = World()
    (newer,) = world.say("delayed means over 30 minutes", subject="delayed", value="30")
    (older,) = world.say(
        "delayed means over 15 minutes", subject="delayed", value="15", created_at=MONDAY - 9 * DAY
    )
    assert (older.id, older.status, older.reason) == (newer.id, "skipped", "older-than-what-is-known")
    assert world.texts == ["delayed means over 30 minutes"]


def test_a_statement_of_the_past_keeps_its_date() -> None:
    world = World()
    world.say("GMV excludes refunds", created_at=MONDAY - 9 * DAY)
    assert (world.active[0].created_at, world.active[0].updated_at) == (MONDAY - 9 * DAY, MONDAY - 9 * DAY)


def test_a_changed_record_keeps_its_birth_and_its_other_metadata() -> None:
    world = World()
    world.say("delayed means over 15", subject="delayed", value="15", metadata={"owner": "ops"})
    world.say("delayed means over 30", subject="delayed", value="30", metadata={"unit": "minutes"})
    (now,) = world.active
    assert now.created_at < now.updated_at
    assert now.metadata == {"owner": "ops", "unit": "minutes", "value": "30"}


def test_verbatim_copies_do_not_hide_the_statement_they_repeat() -> None:
    world = World()
    (first,) = world.say("step 1", kind="task-traces")
    world.backend.write(
        [record("step 1", kind="task-traces", layer="history", now=MONDAY + 500 + n) for n in range(50)]
    )
    (again,) = world.say("step 1", kind="task-traces")
    assert (again.id, again.status) == (first.id, "skipped")


def test_a_verbatim_record_that_is_there_is_not_added_again() -> None:
    world, same = ports(), record("hello", layer="history")
    for _ in range(2):
        place(Remembering(ALICE, verbatim=(same,)), world.deciding())
    assert world.services.backend.count(Filter(user_id="alice", statuses=None)) == 1


class Contested(InMemoryBackend):
    """Somebody else is faster, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def batch(self, commit: Commit) -> Committed:
        if self.times > 0:
            self.times -= 1
            raise Conflict("somebody was faster", what="version")
        return super().batch(commit)


def test_a_conflict_is_decided_again() -> None:
    world = World(Contested(5))
    assert world.say("GMV excludes refunds")[0].status == "added"
    assert len(world.active) == 1


def test_conflicts_without_end_are_raised() -> None:
    with pytest.raises(Conflict):
        World(Contested(10**6)).say("GMV excludes refunds")


def test_a_store_that_did_not_save_is_believed() -> None:
    class Unsure(InMemoryBackend):
        def batch(self, commit: Commit) -> Committed:
            return replace(super().batch(commit), saved=False)

    assert World(Unsure()).say("GMV excludes refunds")[0].saved is False


def test_every_decision_is_audited_skips_included() -> None:
    world = World()
    world.say("delayed means over 15", subject="delayed")
    world.say("delayed means over 15", subject="delayed")
    world.say("delayed means over 30", subject="delayed")
    events = [row.event for row in world.backend.audit.tail(9)]
    assert [(e["op"], e["outcome"], e["reason"]) for e in events] == [
        ("add", "ok", ""),
        ("skip", "skipped", "duplicate"),
        ("update", "ok", "contradicts:subject"),
    ]


def test_what_could_not_be_kept_is_audited_and_answered() -> None:
    world = ports()
    done = place(Remembering(ALICE, skipped=("content-too-large",)), world.deciding())
    assert [(r.id, r.status, r.saved, r.reason) for r in done.results] == [
        ("", "skipped", False, "content-too-large")
    ]
    (row,) = world.services.backend.audit.tail(9)
    assert (row.event["op"], row.event["reason"]) == ("skip", "content-too-large")


def test_likeness_is_symmetric_and_one_for_the_same_words() -> None:
    a, b = "GMV excludes refunds and taxes", "taxes and refunds: GMV excludes"
    assert likeness(a, b, dense=None) == likeness(b, a, dense=None) == 1.0
    assert likeness("", a, dense=None) == 0.0
    assert likeness("tea is hot", "GMV excludes refunds", dense=0.0) == 0.0
