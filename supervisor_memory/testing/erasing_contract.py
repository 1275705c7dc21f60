"""The promises of every backend that `Erases`. Inherit, and add a fixture `backend`: an empty backend.

One whose records outlive it inherits `SharedErasingContract` and adds a fixture `reopen`: a function that
opens another handle on the same place, as another process would.
"""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from supervisor_memory.audit.rows import Access
from supervisor_memory.audit.turns import given
from supervisor_memory.errors import Conflict, RecordNotFound, SupervisorMemoryError, WasErased
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Hit, Record, Scope
from supervisor_memory.stores.protocol import (
    Change,
    Commit,
    Erased,
    Erases,
    ErasesRecords,
    MemoryBackend,
    Moves,
    Stored,
)
from supervisor_memory.testing.backend_contract import Reopen
from supervisor_memory.testing.records import (
    ALIKE,
    NOW,
    assert_chain,
    contents,
    direction,
    embedded,
    query,
    tea,
    with_vector,
    written,
)

LATER = NOW + 1
"""When users are erased: after `tea()` was said."""


def erase(backend: MemoryBackend, user_id: str = "alice", *, at: float = LATER) -> Erased:
    assert isinstance(backend, Erases)
    return backend.erase(user_id, at=at)


def left_of(backend: MemoryBackend, user_id: str = "alice") -> Sequence[Record]:
    """All records of a user, in any status, session messages too."""
    families = (None, (SESSION_FAMILY,))
    where = [Filter(user_id=user_id, statuses=None, families=each) for each in families]
    return [record for each in where for record in backend.list(each, limit=10**6)]


def said(content: str = "hello tea", **values: Any) -> Record:
    return tea(content, family=SESSION_FAMILY, layer="history", **values)


class ErasingContract:
    """The promises of `Erases`. Each test gets an empty backend."""

    def test_erasing_is_a_power_of_its_own(self, backend: MemoryBackend) -> None:
        assert isinstance(backend, Erases)

    def test_what_is_erased_is_found_in_no_way_and_counted(self, backend: MemoryBackend) -> None:
        hers, deleted, hello = (
            embedded("green tea", axis=1),
            tea("white tea"),
            with_vector(said(), direction(1)),
        )
        backend.write([hers, deleted, hello, tea("black tea", user="bo")])
        backend.update([Change(replace(hers, content="green tea, cold"), expects=1)])
        backend.delete([deleted.id])
        told = given("inject", Scope("alice"), at=NOW, hits=[Hit(hers)])
        backend.audit.record_access([Access("search", NOW, "alice", record_id=hers.id), told])
        expected = {
            "records": 3, "versions": 2, "vectors": 2, "accesses": 2, "record_keys": 3, "notes": 1,
            "pseudonyms": 1,
        }  # fmt: skip
        assert isinstance(backend, Erases)
        assert dict(backend.holds("alice")) == expected
        erased = erase(backend)
        assert (dict(erased.removed), erased.pending) == (expected, ())
        assert not any(backend.holds("alice").values())
        assert left_of(backend) == []
        assert backend.get([hers.id, deleted.id, hello.id]) == ()
        assert backend.versions(hers.id) == ()
        assert backend.count(Filter(user_id="alice", statuses=None)) == 0
        for families in (None, (SESSION_FAMILY,)):
            assert not backend.search(query("tea", vector=direction(1), families=families), limit=9).items
        assert contents(backend.search(query("tea", user="bo"), limit=9)) == ["black tea"]
        assert backend.audit.key(hers.id) is None
        assert backend.audit.accesses(9, record_id=hers.id) == ()

    def test_the_log_tells_of_it_and_stays_a_chain(self, backend: MemoryBackend) -> None:
        backend.write([tea(), tea(user="bo")])
        erase(backend)
        rows = backend.audit.tail(99)
        assert [row.op for row in rows if row.op.startswith("erase")] == ["erase.begin", "erase.done"]
        assert backend.audit.tail(9, user_id="alice") == ()
        assert backend.audit.tail(9, user_id="bo")
        assert_chain(rows, backend.audit.log_id)

    def test_only_one_user_is_erased_however_alike_the_names_are(self, backend: MemoryBackend) -> None:
        backend.write([tea(user=user) for user in ALIKE])
        before = {user: [record.to_json() for record in left_of(backend, user)] for user in ALIKE}
        erase(backend, "_")
        after = {user: [record.to_json() for record in left_of(backend, user)] for user in ALIKE}
        assert after == before | {"_": []}

    def test_what_moved_between_families_and_embedders_goes_everywhere(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded("green tea", axis=1))
        steps = [
            replace(record, namespace=("identity", "alice")),
            replace(with_vector(tea("hot tea"), direction(2), "other@1/8"), id=record.id),
            replace(record, content="green tea, cold", vector=None, embedder=None),
        ]
        for version, step in enumerate(steps, start=1):
            backend.update([Change(step, expects=version)])
        assert len(backend.versions(record.id)) == 4
        assert erase(backend).removed["versions"] == 3
        assert left_of(backend) == []
        backend.write([replace(record, created_at=LATER)])
        assert len(backend.versions(record.id)) == 1

    def test_hundreds_of_records_go_and_hundreds_of_others_stay(self, backend: MemoryBackend) -> None:
        mine = [tea(f"my tea {n}") for n in range(230)]
        theirs = [tea(f"their tea {n}", user="bo") for n in range(230)]
        backend.write([*mine, *theirs])
        assert erase(backend).removed["records"] == 230
        assert left_of(backend) == []
        assert {record.id for record in left_of(backend, "bo")} == {record.id for record in theirs}

    def test_a_user_who_has_nothing_can_be_erased_and_is_refused_afterwards(
        self, backend: MemoryBackend
    ) -> None:
        erased = erase(backend)
        assert (erased.removed["records"], erased.pending) == (0, ())
        with pytest.raises(WasErased):
            backend.write([tea()])

    def test_a_record_made_before_the_erasure_is_refused_and_later_ones_are_kept(
        self, backend: MemoryBackend
    ) -> None:
        erase(backend)
        with pytest.raises(WasErased) as caught:
            backend.write([tea(), tea("late tea", created_at=LATER)])
        assert len(caught.value.facts["record_ids"]) == 1
        assert backend.count(Filter(statuses=None)) == 0
        backend.write([tea("late tea", created_at=LATER), tea(user="bo")])
        assert backend.count(Filter(statuses=None)) == 2

    def test_a_verbatim_record_does_not_come_back_under_its_id_whatever_its_time(
        self, backend: MemoryBackend
    ) -> None:
        hello = written(backend, said())
        erase(backend)
        with pytest.raises(WasErased):
            backend.write([replace(hello, created_at=LATER + 9)])
        backend.write([said("hello again", created_at=LATER + 9)])

    def test_a_clock_that_was_set_back_does_not_lift_a_tombstone(self, backend: MemoryBackend) -> None:
        erase(backend)
        erase(backend, at=LATER - 99)
        with pytest.raises(WasErased):
            backend.write([tea(created_at=LATER - 50)])

    def test_what_bears_a_time_that_is_yet_to_come_goes_as_well(self, backend: MemoryBackend) -> None:
        backend.write([tea("tea of tomorrow", created_at=LATER + 86_400)])
        assert erase(backend).pending == ()
        assert left_of(backend) == []

    def test_an_update_of_an_erased_record_does_not_bring_it_back(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        erase(backend)
        with pytest.raises(RecordNotFound):
            backend.update([Change(replace(record, content="changed tea"), expects=1)])
        assert left_of(backend) == []

    def test_commits_that_come_again_write_nothing(self, backend: MemoryBackend) -> None:
        record, hello = tea(), said()
        commits = [
            Commit((Change(record),), (AuditEvent("add", user_id="alice", record_id=record.id),)),
            Commit((Change(replace(record, content="cold tea"), expects=1),)),
            Commit((Change(hello), Change(tea("more tea")))),
        ]
        for commit in commits:
            backend.batch(commit)
        erase(backend)
        for commit in commits:
            with pytest.raises(SupervisorMemoryError):
                backend.batch(commit)
        assert left_of(backend) == []
        assert backend.audit.tail(9, user_id="alice") == ()

    def test_a_user_can_come_back_and_be_erased_again(self, backend: MemoryBackend) -> None:
        backend.write([tea()])
        erase(backend)
        backend.write([tea(created_at=LATER), said(created_at=LATER)])
        assert len(left_of(backend)) == 2
        assert erase(backend, "bo", at=LATER + 1).pending == ()
        assert len(left_of(backend)) == 2
        assert erase(backend, at=LATER + 2).removed["records"] == 2
        assert left_of(backend) == []

    def test_records_that_come_from_another_store_are_refused_too(self, backend: MemoryBackend) -> None:
        if not isinstance(backend, Moves):
            pytest.skip("its records cannot move")
        erase(backend)
        taken = backend.take([Stored(tea()), Stored(tea("late tea", created_at=LATER))])
        assert [(each.what, each.reason) for each in taken] == [("refused", "erased"), ("added", "")]


class ErasingRecordsContract:
    """The promises of `ErasesRecords`. Each test gets an empty backend."""

    def test_some_records_go_with_their_versions_and_others_stay(self, backend: MemoryBackend) -> None:
        gone, kept = embedded("green tea", axis=1), embedded("white tea", axis=2)
        hello, other = with_vector(said(), direction(1)), tea("black tea", user="bo")
        backend.write([gone, kept, hello, other])
        backend.update([Change(replace(each, content=f"{each.content}, cold"), 1) for each in (gone, kept)])
        erased = erase_records(backend, [gone.id, hello.id, other.id, "unknown"])
        assert {what: erased.removed[what] for what in ("records", "versions", "vectors")} == {
            "records": 2, "versions": 1, "vectors": 2,
        }  # fmt: skip
        assert erased.pending == ()
        assert contents(left_of(backend)) == ["white tea, cold"]
        assert backend.versions(gone.id) == ()
        assert len(backend.versions(kept.id)) == 2
        assert contents(left_of(backend, "bo")) == ["black tea"]
        assert contents(backend.search(query("tea", vector=direction(1)), limit=9)) == ["white tea, cold"]
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)

    def test_records_that_stay_can_lose_their_earlier_versions(self, backend: MemoryBackend) -> None:
        kept = written(backend, tea("white tea"))
        backend.update([Change(replace(kept, content="white tea, cold"), 1)])
        assert erase_records(backend, [], history_of=[kept.id]).removed["versions"] == 1
        assert contents(backend.versions(kept.id)) == ["white tea, cold"]
        (now,) = backend.get([kept.id])
        backend.update([Change(replace(now, content="white tea, hot"), now.version)])
        assert contents(backend.versions(kept.id)) == ["white tea, cold", "white tea, hot"]

    def test_erased_messages_and_what_was_read_from_them_do_not_come_back(
        self, backend: MemoryBackend
    ) -> None:
        hello = written(backend, said())
        erase_records(backend, [hello.id])
        for again in (hello, tea("green tea", ref_id=hello.id)):
            with pytest.raises(WasErased):
                backend.write([again])
        backend.write([tea("white tea", ref_id="another"), said("hello again")])
        assert contents(left_of(backend)) == ["hello again", "white tea"]


def erase_records(backend: MemoryBackend, ids: Sequence[str], **options: Any) -> Erased:
    assert isinstance(backend, ErasesRecords)
    return backend.erase_records(ids, user_id="alice", at=LATER, **options)


class SharedErasingContract(ErasingContract):
    """For backends with lasting records and, perhaps, several handles on the same place."""

    def test_another_handle_is_given_nothing_of_the_erased(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        record = embedded(axis=1)
        other = reopen()
        backend.write([record, tea(user="bo")])
        assert len(other.search(query(vector=direction(1)), limit=5)) == 1
        erase(backend)
        assert len(other.search(query(vector=direction(1)), limit=5)) == 0
        assert other.get([record.id]) == ()
        assert other.versions(record.id) == ()
        assert left_of(other) == []
        assert len(left_of(other, "bo")) == 1
        other.close()

    def test_another_handle_refuses_what_was_said_before(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        before, record, hello = reopen(), tea(), said()
        before.write([record, hello])
        erase(backend)
        after = reopen()
        for number, other in enumerate((before, after)):
            with pytest.raises(WasErased):
                other.write([tea("another tea")])
            with pytest.raises(WasErased):
                other.write([replace(hello, created_at=LATER + 5)])
            with pytest.raises((RecordNotFound, Conflict)):
                other.update([Change(replace(record, content="changed tea"), expects=1)])
            assert len(left_of(other)) == number
            other.write([tea(f"tea {number}", created_at=LATER)])
        assert len(left_of(backend)) == 2
        before.close()
        after.close()

    def test_two_handles_can_erase_one_user(self, backend: MemoryBackend, reopen: Reopen) -> None:
        backend.write([tea()])
        other = reopen()
        assert erase(other, at=LATER + 5).pending == ()
        assert erase(backend, at=LATER).pending == ()
        for each in (backend, other):
            with pytest.raises(WasErased):
                each.write([tea(created_at=LATER + 4)])
        other.close()
