"""Rules set records aside; nothing is lost, and what was changed in between is left."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.audit.verify import verified
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import BackendError, BackendUnavailable, SettingsError
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Record, Source, new_id
from supervisor_memory.stages.insert.again import decide_again
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit, Committed, Incomplete, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.testing.ports import ports
from supervisor_memory.testing.ports import record as record_at
from supervisor_memory.upkeep import forget as forgetting
from supervisor_memory.upkeep.forget import RUN
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0
NOW = MONDAY + 400 * DAY + 3_600


@pytest.fixture(params=IN_PROCESS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


@pytest.fixture
def one_backend() -> MemoryBackend:
    return InMemoryBackend()


def memory_over(
    backend: MemoryBackend, *, now: float = NOW, llm: Any = None, **settings: Any
) -> SupervisorMemory:
    given = {"forget": "manual", "embedding_model": "none", **settings}
    return SupervisorMemory(
        Settings(**given), backend=backend, clock=FixedClock(now), embedder=HashingEmbedder(), llm=llm
    )


def trace(content: str, *, day: float = 0.0, **facts: Any) -> Record:
    return record_at(content, user_id="ada", **{"kind": "task-traces", "now": MONDAY + day * DAY, **facts})


def traces(count: int, **facts: Any) -> list[Record]:
    return [trace(f"Step {n}: wrote table_{n}.csv", day=n / 10, **facts) for n in range(count)]


def statuses(backend: MemoryBackend, records: Iterable[Record]) -> list[str]:
    return [record.status for record in backend.get([record.id for record in records])]


def found(memory: SupervisorMemory, text: str) -> list[str]:
    return [hit.record.content for hit in memory.search(text, user_id="ada", threshold=0, limit=9)]


# Expired


def test_what_has_expired_is_set_aside_and_its_versions_are_kept(backend: MemoryBackend) -> None:
    gone = trace("The ticket is 4711", expires_at=NOW)
    said = trace("the ticket?", family=SESSION_FAMILY, layer="history", expires_at=NOW - 1)
    pinned = trace("A pinned ticket", metadata={"pinned": True}, expires_at=NOW - 1)
    there = trace("The hotel is the Ritz", expires_at=NOW + 1)
    backend.write([gone, said, pinned, there])
    memory = memory_over(backend)

    planned = memory.forget(user_id="ada", dry_run=True)
    assert {each.record_id: (each.rule, each.why) for each in planned.taken} == {
        each.id: ("expired", "expired 2027-02-09") for each in (gone, said, pinned)
    }
    assert statuses(backend, [gone, said, pinned, there]) == ["active"] * 4

    assert memory.forget(user_id="ada").taken == planned.taken
    assert statuses(backend, [gone, said, pinned, there]) == [*["deleted"] * 3, "active"]
    assert memory.get(gone.id).status == "deleted"
    assert [v.status for v in memory.history(gone.id)] == ["active", "deleted"]
    assert found(memory, "ticket") == ["The hotel is the Ritz"]
    assert [topic.ids for topic in memory.topics(user_id="ada")] == [(there.id,)]
    assert memory.forget(user_id="ada").taken == ()


def test_a_clock_that_goes_back_forgets_nothing(one_backend: MemoryBackend) -> None:
    record = trace("The ticket is 4711", expires_at=NOW)
    one_backend.write([record])
    assert memory_over(one_backend, now=NOW - 400 * DAY).forget().taken == ()


def test_it_tells_how_far_it_is(one_backend: MemoryBackend) -> None:
    one_backend.write([trace(f"The ticket is {number}", expires_at=NOW) for number in range(7)])
    told: list[tuple[int, int]] = []
    memory_over(one_backend).forget(dry_run=True, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1][0] >= told[-1][1] == 7
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_everybody_or_one_user(backend: MemoryBackend) -> None:
    mine = trace("The ticket is 4711", expires_at=NOW)
    theirs = record_at("The ticket is 4712", user_id="bo", expires_at=NOW)
    backend.write([mine, theirs])
    assert [each.user_id for each in memory_over(backend).forget(user_id="bo").taken] == ["bo"]
    assert statuses(backend, [mine, theirs]) == ["active", "deleted"]
    assert [each.user_id for each in memory_over(backend).forget().taken] == ["ada"]


# Too many of a kind


def test_the_oldest_of_too_many_become_a_summary(backend: MemoryBackend) -> None:
    many = traces(62)
    wish = record_at("Use tables.", user_id="ada", kind="user-profile", now=MONDAY - DAY)
    backend.write([*many, wish])
    memory = memory_over(backend, compact_over={"task-traces": 60})
    planned = memory.forget(dry_run=True)
    done = memory.forget()
    assert done.taken == planned.taken
    assert [each.record_id for each in done.taken] == [record.id for record in many[:12]]
    assert statuses(backend, [*many, wish]) == [*["compressed"] * 12, *["active"] * 51]

    [whole] = backend.get(done.summaries)
    assert (whole.layer, whole.status, whole.kind) == ("summary", "active", "task-traces")
    assert whole.metadata["compressed_from"] == [record.id for record in many[:12]]
    assert all(r.metadata["compressed_into"] == whole.id for r in backend.get([m.id for m in many[:12]]))
    assert all(record.content in whole.content for record in many[:12])
    assert whole.embedder == HashingEmbedder().fingerprint
    assert found(memory, "table_7.csv")[0] == whole.content
    assert not any(record.content in found(memory, record.content) for record in many[:12])
    assert memory.forget().taken == ()


def test_a_hundred_and_one_are_thirty_in_two_summaries_at_most_and_the_rest(
    one_backend: MemoryBackend,
) -> None:
    many = [
        trace(f"Step {n}: joined orders_{n} with customers on customer_id, {n * 37} rows came out", day=n / 9)
        for n in range(101)
    ]
    one_backend.write(many)
    memory = memory_over(one_backend)
    done = memory.forget()
    assert done.counts == {"compacted": 30}
    assert 1 <= len(done.summaries) <= 2
    assert statuses(one_backend, many) == [*["compressed"] * 30, *["active"] * 71]
    most = 3 * memory.settings.max_context_tokens // 4
    assert all(memory.services.count_tokens(each.content) <= most for each in one_backend.get(done.summaries))


def test_a_hundred_are_not_too_many(one_backend: MemoryBackend) -> None:
    one_backend.write(traces(100))
    assert memory_over(one_backend).forget().taken == ()


def test_other_kinds_and_namespaces_do_not_make_too_many(one_backend: MemoryBackend) -> None:
    elsewhere: list[dict[str, Any]] = [
        {"family": "sql_memories"},
        {"kind": "tool-effects"},
        {"user_id": "bo"},
    ]
    for place in elsewhere:
        one_backend.write(
            [record_at(f"{n}", **{"user_id": "ada", "kind": "task-traces", **place}) for n in range(60)]
        )
    assert memory_over(one_backend).forget().taken == ()


def test_what_has_its_own_place_is_never_merged(one_backend: MemoryBackend) -> None:
    kept = [
        trace("pinned", metadata={"pinned": True}),
        trace("ends", expires_at=NOW + 1),
        trace("verbatim", layer="history"),
        trace("summary", layer="summary"),
        trace("an item", metadata={"store": {"key": "k"}}),
        trace("too long to share a summary " * 99),
    ]
    one_backend.write([*kept, *traces(60)])
    memory_over(one_backend, compact_over={"task-traces": 50}).forget()
    assert statuses(one_backend, kept) == ["active"] * 6


def test_a_summary_is_trusted_as_little_as_what_it_is_made_of(one_backend: MemoryBackend) -> None:
    many = traces(62)
    by = [Source(("user", "agent", "tool")[n % 3], "sql") for n in range(62)]
    one_backend.write([trace(m.content, day=n / 10, source=by[n]) for n, m in enumerate(many)])
    done = memory_over(one_backend, compact_over={"task-traces": 60}).forget()
    [whole] = one_backend.get(done.summaries)
    assert whole.source == Source("tool", "sql")


def test_what_was_merged_long_ago_goes(backend: MemoryBackend) -> None:
    recent, old = (trace(f"Step {n}", status="compressed") for n in range(2))
    backend.write([old, trace("Step 0", status="compressed", id=recent.id, now=NOW - 89 * DAY)])
    done = memory_over(backend).forget()
    assert [(each.record_id, each.rule) for each in done.taken] == [(old.id, "compressed-for-long")]
    assert statuses(backend, [recent, old]) == ["compressed", "deleted"]


def test_what_was_merged_can_be_restored(backend: MemoryBackend) -> None:
    many = traces(62)
    backend.write(many)
    memory = memory_over(backend, compact_over={"task-traces": 60})
    memory.forget()
    memory.review.restore(many[3].id, reviewer="eve")
    assert memory.get(many[3].id).status == "active"
    assert many[3].content in found(memory, many[3].content)


def test_what_has_expired_can_be_restored(one_backend: MemoryBackend) -> None:
    one_backend.write([record := trace("The ticket is 4711", expires_at=NOW)])
    memory = memory_over(one_backend)
    memory.forget()
    memory.review.restore(record.id, reviewer="eve")
    assert found(memory, "ticket") == ["The ticket is 4711"]
    assert memory.forget().taken == ()


def test_what_is_quarantined_is_in_no_summary_that_is_found(backend: MemoryBackend) -> None:
    many = traces(62)
    by = Source("agent", "sql", session_id="poisoned")
    backend.write([*many[:3], trace("Step 3: drop all tables", day=0.35, source=by), *many[4:]])
    memory = memory_over(backend, compact_over={"task-traces": 60})
    [whole] = memory.forget().summaries
    assert "drop all tables" in found(memory, "drop all tables")[0]
    memory.review.quarantine(user_id="ada", session_id="poisoned", reviewer="eve")
    assert memory.get(whole).status == "quarantined"
    assert not any("drop all tables" in text for text in found(memory, "drop all tables"))


# Capacity and decay


def test_over_capacity_goes_what_is_worth_least(backend: MemoryBackend) -> None:
    kept = [
        record_at("Use tables.", user_id="ada", kind="user-profile", family="all", importance=0.0),
        trace("Pinned", family="all", metadata={"pinned": True}, importance=0.0),
        record_at("GMV is sales", user_id="ada", family="all", subject="gmv", attribute="definition"),
        trace("Waits", family="all", status="pending", importance=0.0),
        trace("Important", family="all", importance=0.9),
        trace("Late", family="all", day=399),
    ]
    gone = [trace("Early", family="all"), trace("Trifle", family="all", importance=0.1, day=399)]
    backend.write([*kept, *gone])
    memory = memory_over(backend, capacity=5)
    done = memory.forget()
    assert {each.record_id for each in done.taken} == {each.id for each in gone}
    assert done.counts == {"over-capacity": 2}
    assert "7 active in all, over 5; worth 0." in done.taken[0].why
    assert statuses(backend, [*kept, *gone]) == [
        *["active"] * 3,
        "pending",
        *["active"] * 2,
        *["deleted"] * 2,
    ]


def test_what_is_read_is_worth_more(one_backend: MemoryBackend) -> None:
    read, unread = trace("A"), trace("B", day=10)
    one_backend.write([read, unread])
    memory = memory_over(one_backend, capacity=1)
    for _ in range(5):
        memory.get(read.id)
    one_backend.audit.flush()
    assert [each.record_id for each in memory.forget().taken] == [unread.id]


def test_a_namespace_that_is_all_kept_stays_over_capacity(one_backend: MemoryBackend) -> None:
    wishes = [record_at(f"Wish {n}", user_id="ada", kind="user-profile") for n in range(3)]
    one_backend.write(wishes)
    assert memory_over(one_backend, capacity=1).forget().taken == ()


def test_what_has_decayed_goes_where_that_is_asked_for(backend: MemoryBackend) -> None:
    old, young, weighty = trace("Old"), trace("Young", day=399), trace("Weighty", importance=0.8)
    wish = record_at("Use tables.", user_id="ada", kind="user-profile")
    backend.write([old, young, weighty, wish])
    assert memory_over(backend).forget().taken == ()
    done = memory_over(backend, forget_decayed=True).forget()
    assert [(each.record_id, each.rule) for each in done.taken] == [(old.id, "decayed")]
    assert done.taken[0].why == "not changed for 400 days, never read, importance 0.5"


def test_each_record_is_taken_once_by_the_first_rule(one_backend: MemoryBackend) -> None:
    one_backend.write([*traces(62), trace("Gone", expires_at=NOW)])
    memory = memory_over(one_backend, compact_over={"task-traces": 60}, capacity=40, forget_decayed=True)
    planned = memory.forget(dry_run=True)
    assert max(Counter(each.record_id for each in planned.taken).values()) == 1
    assert planned.counts == {"expired": 1, "compacted": 12, "decayed": 50}


# While others write


def meddling(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], object]
) -> list[Commit]:
    """Do something just before the first commit; returns what is committed."""
    commits: list[Commit] = []
    batch = backend.batch

    def between(commit: Commit) -> Committed:
        if commit.changes and not commits:
            commits.append(commit)
            meddle()
        elif commit.changes:
            commits.append(commit)
        return batch(commit)

    monkeypatch.setattr(backend, "batch", between)
    return commits


def test_what_is_changed_between_plan_and_commit_is_left(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [trace(f"Ticket {n}", expires_at=NOW) for n in range(4)]
    backend.write(records)
    late = Record(**{**_values(records[2]), "expires_at": NOW + DAY, "content": "Ticket two"})
    batch = backend.batch
    meddling(backend, monkeypatch, lambda: batch(Commit((Change(late, expects=1),))))
    done = memory_over(backend).forget()
    assert done.left == (records[2].id,)
    assert statuses(backend, records) == ["deleted", "deleted", "active", "deleted"]
    assert backend.get([records[2].id])[0].content == "Ticket two"


def test_a_group_that_is_changed_in_between_stays_as_it_is(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = traces(62)
    backend.write(many)
    late = Record(**{**_values(many[4]), "content": "Step 4: failed"})
    batch = backend.batch
    meddling(backend, monkeypatch, lambda: batch(Commit((Change(late, expects=1),))))
    memory = memory_over(backend, compact_over={"task-traces": 60})
    done = memory.forget()
    assert (done.taken, done.summaries, len(done.left)) == ((), (), 12)
    assert statuses(backend, many) == ["active"] * 62
    assert memory.forget().counts == {"compacted": 12}


def _values(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__ if name != "content_hash"}


def test_two_that_forget_at_once_take_nothing_twice(tmp_path: Path) -> None:
    records = [*traces(62), *(trace(f"Ticket {n}", expires_at=NOW) for n in range(40))]
    with closing(SqliteBackend(tmp_path)) as one, closing(SqliteBackend(tmp_path)) as other:
        one.write(records)
        starts, done = threading.Barrier(2), []

        def run(backend: MemoryBackend) -> None:
            memory = memory_over(backend, compact_over={"task-traces": 60})
            starts.wait()
            done.append(memory.forget())

        threads = [threading.Thread(target=run, args=(each,)) for each in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = Counter(each.record_id for run in done for each in run.taken)
        assert (len(taken), max(taken.values())) == (52, 1)
        assert sum(len(run.summaries) for run in done) == 1
        assert Counter(row.event["reason"] for row in one.audit.tail(999, op="forget")) == {
            "expired": 40,
            "compacted": 12,
        }
        assert Counter(statuses(one, records)) == {"compressed": 12, "active": 50, "deleted": 40}


def test_it_goes_on_where_it_was_cut_off(one_backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "_TOGETHER", 2)
    records = [trace(f"Ticket {n}", expires_at=NOW) for n in range(5)]
    one_backend.write(records)
    commits = meddling(one_backend, monkeypatch, lambda: None)
    batch = one_backend.batch

    def fails_at_the_second(commit: Commit) -> Committed:
        if commit.changes and commits:
            raise BackendError("the disk is full")
        return batch(commit)

    monkeypatch.setattr(one_backend, "batch", fails_at_the_second)
    with pytest.raises(BackendError, match="disk is full"):
        memory_over(one_backend).forget()
    assert Counter(statuses(one_backend, records)) == {"deleted": 2, "active": 3}
    monkeypatch.setattr(one_backend, "batch", batch)
    assert memory_over(one_backend).forget().counts == {"expired": 3}


def test_many_are_planned_in_pages(one_backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "_PAGE", 7)
    one_backend.write([*traces(62), *(trace(f"Ticket {n}", expires_at=NOW) for n in range(20))])
    memory = memory_over(one_backend, compact_over={"task-traces": 60}, capacity=45)
    # one summary came, so six more have to go
    assert memory.forget().counts == {"expired": 20, "compacted": 12, "over-capacity": 6}


def test_a_store_out_of_reach_forgets_nothing(
    one_backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_backend.write([record := trace("The ticket is 4711", expires_at=NOW)])
    monkeypatch.setattr(one_backend, "list", lambda *_, **__: Incomplete([record]))
    with pytest.raises(BackendUnavailable, match="nothing is forgotten"):
        memory_over(one_backend).forget(user_id="ada")
    assert statuses(one_backend, [record]) == ["active"]


def test_what_waited_for_a_store_is_not_forgotten_where_it_was_changed_meanwhile() -> None:
    backend = InMemoryBackend()
    backend.write([trace("new words", id=(record_id := new_id()))])
    aside = Record(**{**_values(backend.get([record_id])[0]), "status": "deleted"})
    commit = Commit((Change(aside, expects=9),), (AuditEvent("forget", "ada", record_id=record_id),))
    view = ports(backend=backend).deciding()
    assert decide_again(commit, lambda id_: id_, insert=(), view=view) == {}
    assert backend.get([record_id])[0].status == "active"


# The log


def test_the_log_tells_each_rule_and_no_content(tmp_path: Path) -> None:
    with closing(SqliteBackend(tmp_path)) as backend:
        memory = memory_over(backend, compact_over={"task-traces": 50}, now=MONDAY)
        for n in range(52):
            memory.write(f"Step {n}: wrote table_{n}.csv", user_id="ada", kind="task-traces")
        memory.write("The ticket is 4711", user_id="ada", metadata={"ttl": 60})
        memory = memory_over(backend, compact_over={"task-traces": 50})
        done = memory.forget()
        assert done.counts == {"expired": 1, "compacted": 2}
        rows = backend.audit.tail(99, op="forget")
        assert [(row.event["reason"], row.event["actor"]) for row in rows] == [
            *[("expired", "operator")],
            *[("compacted", "operator")] * 2,
        ]
        [ran] = backend.audit.tail(9, op=RUN)
        assert ran.event["detail"] == {"records": 3, "left": 0, "expired": 1, "compacted": 2}
        assert not any(b"ticket" in row.payload for row in backend.audit.rows(limit=999))
        assert memory.history(done.taken[0].record_id)[-1].reason == "expired"
        assert verified(backend.audit, backend.get).problems == []


# By itself


def test_after_a_write_what_has_expired_is_set_aside_in_the_background(backend: MemoryBackend) -> None:
    backend.write([record := trace("The ticket is 4711", expires_at=NOW)])
    memory = memory_over(backend, forget="expired")
    memory.write("Use tables by default.", user_id="ada")
    memory.flush()
    assert statuses(backend, [record]) == ["deleted"]
    [row] = backend.audit.tail(9, op="forget")
    assert (row.event["actor"], row.event["reason"]) == ("supervisor", "expired")


def test_it_looks_once_an_hour_for_a_user(one_backend: MemoryBackend) -> None:
    clock = FixedClock(NOW)
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=one_backend, clock=clock)

    def remembers_and_expires(text: str) -> str:
        record = trace(text, expires_at=NOW)
        one_backend.write([record])
        memory.remember([("user", f"By default use {text}.")], Scope("ada"))
        memory.flush()
        return statuses(one_backend, [record])[0]

    assert remembers_and_expires("tables") == "deleted"
    clock.now += 3_599
    assert remembers_and_expires("charts") == "active"
    clock.now += 2
    assert remembers_and_expires("colours") == "deleted"


def test_by_hand_means_never_by_itself(one_backend: MemoryBackend) -> None:
    one_backend.write([record := trace("The ticket is 4711", expires_at=NOW)])
    memory = memory_over(one_backend, forget="manual")
    memory.write("Use tables by default.", user_id="ada")
    memory.flush()
    assert statuses(one_backend, [record]) == ["active"]


def test_by_itself_it_merges_what_has_settled_once_and_forgets_nothing_that_has_decayed(
    one_backend: MemoryBackend,
) -> None:
    one_backend.write(traces(170))
    memory = memory_over(one_backend, forget="auto", forget_decayed=True)
    memory.write("Use tables by default.", user_id="ada")
    memory.flush()
    assert Counter(row.event["reason"] for row in one_backend.audit.tail(999, op="forget")) == {
        "compacted": 30
    }


def test_capacity_of_one_user_or_namespace_is_none_of_anothers(one_backend: MemoryBackend) -> None:
    memory = memory_over(one_backend, capacity=3, forget="expired")
    for n in range(6):
        memory.write(f"Use printer {n} in hall {n * 3}.", user_id="ada", kind="task-traces", task="halls")
        memory.write(f"Finding {n}: ticket {n * 7}.", user_id="ada", kind="experience")
        memory.add_many([f"the moon of month {n}"], user_id="bob")
        memory.flush()
    assert one_backend.count(Filter("ada", families=("experience",))) == 3
    assert one_backend.count(Filter("bob")) == 3


def test_far_over_capacity_it_makes_room_for_some_more(one_backend: MemoryBackend) -> None:
    one_backend.write(traces(450))
    memory = memory_over(one_backend, capacity=200, forget="expired")
    memory.write("Use tables by default.", user_id="ada")
    memory.flush()
    assert one_backend.count(Filter("ada", families=("task_traces",))) == 180


@pytest.mark.parametrize(("forget", "days"), [("auto", 29), ("expired", 99)])
def test_by_itself_it_merges_nothing_that_is_fresh_or_unless_it_is_asked_to(
    one_backend: MemoryBackend, forget: str, days: int
) -> None:
    assert Settings().forget == "expired"
    one_backend.write(traces(170, now=NOW - days * DAY))
    memory = memory_over(one_backend, forget=forget)
    memory.write("Use tables by default.", user_id="ada")
    memory.flush()
    assert one_backend.count(Filter(statuses=("compressed",))) == 0


def test_a_store_that_fails_in_the_background_breaks_nothing(
    one_backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_over(one_backend, forget="auto")

    def fails(*_: object, **__: object) -> int:
        raise BackendError("the disk is gone")

    monkeypatch.setattr(one_backend, "count", fails)
    assert memory.write("Use tables by default.", user_id="ada").status == "added"
    assert memory.flush()


# What a user does with a record that was merged


def merged(backend: MemoryBackend, count: int = 62) -> tuple[SupervisorMemory, list[Record], Record]:
    """A store whose oldest traces have become a summary."""
    many = traces(count)
    backend.write(many)
    memory = memory_over(backend, compact_over={"task-traces": 60})
    [summary_id] = memory.forget().summaries
    return memory, many, memory.get(summary_id)


def test_what_is_changed_after_it_was_merged_is_found_again(backend: MemoryBackend) -> None:
    memory, many, summary = merged(backend)
    done = memory.update(many[1].id, content="Step 1: wrote invoices_9.csv", user_id="ada")
    assert (done.status, memory.get(many[1].id).status) == ("updated", "active")
    assert "Step 1: wrote invoices_9.csv" in found(memory, "invoices_9.csv")
    now = memory.get(summary.id)
    assert "table_1.csv" not in now.content
    assert "table_0.csv" in now.content
    assert now.metadata["compressed_from"] == [many[n].id for n in range(12) if n != 1]
    assert verified(backend.audit, backend.get).problems == []


def test_what_is_deleted_after_it_was_merged_is_in_no_summary(backend: MemoryBackend) -> None:
    memory, many, summary = merged(backend)
    assert memory.delete(many[3].id, user_id="ada") == 1
    assert not any("table_3.csv" in each for each in found(memory, "table_3.csv"))
    assert "table_4.csv" in memory.get(summary.id).content
    assert memory.delete(many[3].id, user_id="ada") == 0


def test_a_summary_of_nothing_is_deleted_with_the_last_of_its_records(one_backend: MemoryBackend) -> None:
    memory, many, summary = merged(one_backend)
    for record in many[:12]:
        memory.delete(record.id, user_id="ada")
    assert memory.get(summary.id).status == "deleted"
    assert not any("table_2.csv" in each for each in found(memory, "table_2.csv"))


def test_what_upkeep_has_deleted_since_can_still_be_taken_out_of_its_summary(
    one_backend: MemoryBackend,
) -> None:
    _, many, summary = merged(one_backend)
    later = memory_over(one_backend, now=NOW + 100 * DAY, compact_over={"task-traces": 60})
    assert later.forget().counts == {"compressed-for-long": 12}
    assert "table_5.csv" in later.get(summary.id).content
    later.delete(many[5].id, user_id="ada")
    assert "table_5.csv" not in later.get(summary.id).content
    assert "table_6.csv" in later.get(summary.id).content


def test_two_who_delete_at_once_leave_no_word_of_either(one_backend: MemoryBackend) -> None:
    memory, many, summary = merged(one_backend)
    both = [threading.Thread(target=memory.delete, args=(many[n].id,)) for n in range(8)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert not any(f"table_{n}.csv" in memory.get(summary.id).content for n in range(8))


def test_what_is_changed_comes_back_beside_what_has_its_place(one_backend: MemoryBackend) -> None:
    files = [
        trace(f"csv file: out/{n}.csv", day=n / 10, kind="tool-effects", subject=f"out/{n}.csv",
              attribute="artifact")
        for n in range(62)
    ]  # fmt: skip
    one_backend.write(files)
    memory = memory_over(one_backend, compact_over={"tool-effects": 60})
    memory.forget()
    memory.write("csv file: out/1.csv (7 rows)", user_id="ada", source_class="tool")
    done = memory.update(files[1].id, content="csv file: out/1.csv (9 rows)", user_id="ada")
    assert (done.status, memory.get(files[1].id).status) == ("updated", "active")


def test_an_erased_user_is_in_no_summary(backend: MemoryBackend) -> None:
    memory, _, _ = merged(backend)
    memory.erase(user_id="ada", confirm=True)
    assert backend.count(Filter("ada", statuses=None)) == 0


def test_who_the_user_is_cannot_be_compacted() -> None:
    with pytest.raises(SettingsError, match="user-profile is never merged"):
        Settings(compact_over={"user-profile": 100})
    with pytest.raises(SettingsError, match="negative"):
        Settings(compact_over={"task-traces": -1})
