"""The promises of every store that `Moves` records. Inherit beside `BackendContract`:

class TestMine(MovingContract):
    @pytest.fixture
    def backend(self):
        return MyBackend()
"""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

import contextlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record, Source
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Erases, MemoryBackend, Moves, Stored, Taken
from supervisor_memory.testing.records import (
    EMBEDDER,
    NOW,
    assert_chain,
    contents,
    direction,
    embedded,
    ids,
    query,
    tea,
    with_vector,
    written,
)

OTHER = "sextant@2/4"


def full_store() -> InMemoryBackend:
    """A store with something of everything."""
    store = InMemoryBackend()
    once = tea("tea in the morning", metadata={"deep": [{"a": [1, 2.5, None, True]}], "茶": "绿茶"})
    store.write([with_vector(once, direction(0))])
    (twice,) = store.get([once.id])
    store.update([Change(replace(twice, content="tea at noon", updated_at=NOW + 1), expects=1)])
    (thrice,) = store.get([once.id])
    again = with_vector(replace(thrice, content="tea at night"), direction(1))
    store.update([Change(again, expects=2)])
    gone = written(store, tea("coffee", subject="drink", attribute="preference"))
    store.delete([gone.id])
    said = Source("agent", "sql", "thread 1", "run-1", "m1", "小明")
    store.write(
        [
            tea("likes juice", subject="drink", attribute="preference", tags=("drink", "喜好")),
            tea("tea at noon", family="domain_facts", kind="domain-facts", importance=0.25, ref_id="r0"),
            tea("said tea", family=SESSION_FAMILY, layer="history", kind="task-traces", source=said),
            tea("said tea", family=SESSION_FAMILY, layer="history", kind="task-traces", source=said),
            tea("tea of a task", family="sql_memories", task="q3", expires_at=NOW + 9, valid_to=NOW + 8),
            tea("tea to come", status="pending", joined_ref_ids=("r1",), former_ref_ids=("r2",)),
            embedded("绿茶比咖啡好", user="用户", axis=2),
            with_vector(tea("green tea", user="用户"), direction(0) * 0.6 + direction(2) * 0.8),
            with_vector(tea("black tea", user="用户"), direction(1, dimension=4), OTHER),
            *(tea(f"tea number {number}", user=f"user-{number % 3}") for number in range(9)),
        ]
    )
    return store


def all_of(store: MemoryBackend, *, limit: int = 100, user_id: str | None = None) -> list[Stored]:
    """All that a store gives away, in order of the ids."""
    assert isinstance(store, Moves)
    found: list[Stored] = []
    while page := store.stored(after=found[-1].record.id if found else None, limit=limit, user_id=user_id):
        assert len(page) <= limit
        found += page
    return sorted(found, key=lambda each: each.record.id)


def take(store: MemoryBackend, records: Sequence[Stored]) -> list[Taken]:
    assert isinstance(store, Moves)
    taken = list(store.take(records))
    assert [each.record_id for each in taken] == [each.record.id for each in records]
    return taken


def assert_same(some: Sequence[Stored], others: Sequence[Stored]) -> None:
    """Records, versions and vectors are equal; vectors up to what a store that normalises them changes."""
    assert list(some) == list(others)
    for one, other in zip(some, others, strict=True):
        if one.vector is None or other.vector is None:
            assert one.vector is other.vector
        else:
            assert one.vector.dtype == other.vector.dtype == np.float32
            np.testing.assert_allclose(one.vector, other.vector, rtol=0, atol=1e-6)


class MovingContract:
    """Promises of the protocol `Moves`, as tests."""

    def test_a_store_takes_what_another_gives_and_gives_it_on_unchanged(self, backend: MemoryBackend) -> None:
        given = all_of(full_store())
        assert {each.what for each in take(backend, given)} == {"added"}
        assert_same(all_of(backend), given)
        for each in given:
            assert list(backend.versions(each.record.id)) == [*each.earlier, each.record]
            assert list(backend.get([each.record.id])) == [each.record]

    def test_taking_again_changes_nothing(self, backend: MemoryBackend) -> None:
        given = all_of(full_store())
        take(backend, given)
        rows = backend.audit.count()
        assert {each.what for each in take(backend, given)} == {"same"}
        assert_same(all_of(backend), given)
        assert backend.audit.count() == rows

    @pytest.mark.parametrize("limit", [1, 2, 5, 19, 1_000])
    def test_pages_of_any_size_bring_each_record_once(self, backend: MemoryBackend, limit: int) -> None:
        given = all_of(full_store())
        take(backend, given)
        assert_same(all_of(backend, limit=limit), given)

    def test_the_records_of_one_user_can_be_asked_for(self, backend: MemoryBackend) -> None:
        given = all_of(full_store())
        take(backend, given)
        for user in ("alice", "用户", "user-1", "user-", "", "nobody"):
            wanted = [each for each in given if each.record.user_id == user]
            assert_same(all_of(backend, limit=2, user_id=user), wanted)

    def test_what_was_taken_is_found_as_it_was_before(self, backend: MemoryBackend) -> None:
        reference = full_store()
        take(backend, all_of(reference))
        for asked in (
            query(),
            query("noon"),
            query("绿茶", user="用户"),
            query(families=(SESSION_FAMILY,)),
            query(tasks=("q3",)),
            query("tea", user="用户", vector=direction(2) * 0.9 + direction(0) * 0.1),
            query("tea", user="用户", vector=direction(1, dimension=4), embedder=OTHER),
            query("juice", vector=direction(1)),
        ):
            found, wanted = backend.search(asked, limit=50), reference.search(asked, limit=50)
            assert {hit.record.id: hit.record for hit in found} == {h.record.id: h.record for h in wanted}
            cosines, expected = (
                {hit.record.id: hit.parts["cosine"] for hit in hits if "cosine" in hit.parts}
                for hits in (found, wanted)
            )
            assert cosines == pytest.approx(expected, abs=1e-5)
        where = Filter(statuses=None)
        assert ids(backend.list(where, limit=99)) == ids(reference.list(where, limit=99))

    def test_those_who_have_searched_before_find_what_is_taken(self, backend: MemoryBackend) -> None:
        asked = query("tea", user="用户", vector=direction(2))
        backend.write([embedded("mint tea", user="用户", axis=3)])
        assert contents(backend.search(asked, limit=9)) == ["mint tea"]
        take(backend, all_of(full_store()))
        found = backend.search(asked, limit=9)
        assert contents(found) == ["black tea", "green tea", "mint tea", "绿茶比咖啡好"]
        assert max(hit.parts.get("cosine", 0.0) for hit in found) == pytest.approx(1.0, abs=1e-5)

    def test_a_record_that_was_taken_lives_on(self, backend: MemoryBackend) -> None:
        given = all_of(full_store())
        take(backend, given)
        (before,) = (each for each in given if each.record.content == "tea at night")
        update = replace(before.record, content="no more tisane", updated_at=NOW + 5)
        backend.update([Change(update, expects=before.record.version)])
        assert contents(backend.search(query("tisane"), limit=9)) == ["no more tisane"]
        assert "tea at night" not in contents(backend.search(query("night"), limit=9))
        assert [each.version for each in backend.versions(update.id)] == [1, 2, 3, 4]
        assert backend.delete([update.id]) == 1

    def test_an_earlier_version_here_is_brought_up_to_date(self, backend: MemoryBackend) -> None:
        source = InMemoryBackend()
        record = written(source, embedded("old tea", subject="a", attribute="b"))
        take(backend, all_of(source))
        backend.search(query(vector=direction(0)), limit=5)
        (current,) = source.get([record.id])
        for version, content in enumerate(("newer", "newest infusion"), start=1):
            changed = with_vector(replace(current, content=content, subject="c"), direction(version))
            source.update([Change(changed, expects=version)])
        given = all_of(source)
        assert [each.what for each in take(backend, given)] == ["replaced"]
        assert_same(all_of(backend), given)
        found = backend.search(query("infusion old", vector=direction(2)), limit=5)
        assert contents(found) == ["newest infusion"]
        assert found[0].parts["cosine"] == pytest.approx(1.0, abs=1e-5)
        backend.write([tea("old tea", subject="a", attribute="b")])

    def test_a_later_version_here_is_left_as_it_is(self, backend: MemoryBackend) -> None:
        source = InMemoryBackend()
        record = written(source, tea())
        earlier = all_of(source)
        take(backend, earlier)
        backend.update([Change(replace(record, content="likes black tea"), expects=1)])
        assert [each.what for each in take(backend, earlier)] == ["older"]
        assert contents(backend.list(Filter(), limit=5)) == ["likes black tea"]

    @pytest.mark.parametrize("versions", [1, 2, 3])
    def test_a_record_with_another_history_is_refused(self, backend: MemoryBackend, versions: int) -> None:
        mine, theirs = tea("mine"), InMemoryBackend()
        theirs.write([replace(mine, content="theirs", content_hash="")])
        backend.write([mine])
        backend.update([Change(replace(mine, content="mine too"), expects=1)])
        for version in range(1, versions):
            changed = replace(mine, content=f"theirs {version}", content_hash="")
            theirs.update([Change(changed, expects=version)])
        (taken,) = take(backend, all_of(theirs))
        assert (taken.what, taken.reason) == ("refused", "other-record")
        assert contents(backend.versions(mine.id)) == ["mine", "mine too"]

    def test_a_record_of_another_user_is_refused_and_nobody_is_named(self, backend: MemoryBackend) -> None:
        record = written(backend, tea("mine", user="the owner"))
        (taken,) = take(backend, [Stored(replace(record, namespace=("user_profile", "a thief")))])
        assert (taken.what, taken.reason) == ("refused", "other-record")
        assert "owner" not in taken.told
        assert all_of(backend, user_id="a thief") == []

    def test_what_has_no_place_is_refused_by_itself(self, backend: MemoryBackend) -> None:
        backend.write([tea("same words"), tea("one", subject="s", attribute="a")])
        page = [
            Stored(tea("first")),
            Stored(tea("Same  words.")),
            Stored(tea("two", subject="s", attribute="a")),
            Stored(tea("same words", layer="history")),
            Stored(tea("same words", status="deleted")),
            Stored(tea("same words", user="bob")),
            Stored(tea("last")),
        ]
        taken = take(backend, page)
        assert [each.reason for each in taken] == ["", "content_hash", "attribute", "", "", "", ""]
        assert {each.what for each in taken} == {"added", "refused"}
        assert len(all_of(backend)) == 7
        assert len(backend.search(query("words"), limit=9)) == 2

    def test_a_place_that_is_left_in_a_page_can_be_taken_in_it(self, backend: MemoryBackend) -> None:
        source = InMemoryBackend()
        first = written(source, tea("wanted words", subject="s", attribute="a"))
        take(backend, all_of(source))
        source.update([Change(replace(first, content="other words", subject="t"), expects=1)])
        source.write([tea("wanted words", subject="s", attribute="a", id="0")])
        assert {each.what for each in take(backend, all_of(source))} == {"added", "replaced"}
        assert_same(all_of(backend), all_of(source))

    def test_what_cannot_be_stored_is_refused_by_itself(self, backend: MemoryBackend) -> None:
        other, vector = tea("other"), direction(0)
        nan = vector.copy()
        nan[3] = np.nan
        page = [
            Stored(tea("one")),
            Stored(tea("two", embedder=EMBEDDER), vector=nan),
            Stored(tea("three", embedder=EMBEDDER), vector=vector * 0),
            Stored(tea("four", embedder=EMBEDDER)),
            Stored(tea("five"), vector=vector),
            Stored(tea("six", metadata={"value": "\ud800"})),
            Stored(tea("seven", expires_at=float("nan"))),
            Stored(replace(other, version=2), (replace(other, id="x"),)),
            Stored(replace(other, version=2), (replace(other, namespace=("user_profile", "bob")),)),
            Stored(replace(other, version=2), (replace(other, version=2),)),
            Stored(replace(other, version=0)),
            Stored(tea("twelve")),
        ]
        assert isinstance(backend, Moves)
        taken = list(backend.take(page))
        assert [each.reason for each in taken] == ["", *["invalid"] * 10, ""]
        assert contents(each.record for each in all_of(backend)) == ["one", "twelve"]

    def test_every_record_that_is_taken_is_in_the_audit_log_without_its_words(
        self, backend: MemoryBackend
    ) -> None:
        given = all_of(full_store())
        taken_again = [*given, replace(given[0], record=replace(given[0].record, content="canary"))]
        assert isinstance(backend, Moves)
        backend.take(taken_again)
        rows = backend.audit.tail(999, op="memory.import")
        assert {row.record_id for row in rows if row.outcome == "ok"} == {each.record.id for each in given}
        (refused,) = (row for row in rows if row.outcome == "skipped")
        assert refused.event["detail"] == {"other-record": 1}
        texts = b"".join(row.payload for row in rows)
        assert not any(json.dumps(each.record.content).encode() in texts for each in given)
        every = backend.audit.tail(9_999)
        assert_chain(every, backend.audit.log_id)

    def test_what_was_said_before_its_user_was_erased_does_not_come_back(
        self, backend: MemoryBackend
    ) -> None:
        if not isinstance(backend, Erases):
            pytest.skip("it does not erase")
        given = all_of(full_store())
        take(backend, given)
        backend.erase("alice", at=NOW + 100)
        taken = {each.record_id: each for each in take(backend, given)}
        for each in given:
            is_hers = each.record.user_id == "alice"
            assert (taken[each.record.id].reason == "erased") == is_hers
        assert all_of(backend, user_id="alice") == []
        later = Stored(tea("tea from now on", created_at=NOW + 101))
        assert [each.what for each in take(backend, [later])] == ["added"]

    def test_a_record_that_two_bring_at_the_same_moment_is_there_once(self, backend: MemoryBackend) -> None:
        given = all_of(full_store())
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: take(backend, given), range(4)))
        assert_same(all_of(backend), given)
        added = sum(each.what == "added" for taken in answers for each in taken)
        assert added == len(given)
        assert {each.what for taken in answers for each in taken} == {"added", "same"}

    def test_what_is_stored_changes_with_nothing_that_was_given(self, backend: MemoryBackend) -> None:
        backend.write([embedded(metadata={"list": [1]})])
        (given,) = all_of(backend)
        with contextlib.suppress(TypeError):  # a backend may hand out copies, or what nobody can change
            given.record.metadata["list"].append(2)
        assert given.vector is not None
        given.vector.setflags(write=True)
        given.vector[:] = 0
        (again,) = all_of(backend)
        assert again.record.metadata == {"list": [1]}
        assert again.vector is not None
        np.testing.assert_array_equal(again.vector, direction(0))
        brought: Record = tea("another", metadata={"list": [1]}, id="another")
        take(backend, [Stored(brought)])
        brought.metadata["list"].append(3)
        assert backend.get(["another"])[0].metadata == {"list": [1]}
