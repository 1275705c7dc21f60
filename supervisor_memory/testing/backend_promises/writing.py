"""Promises of a backend: writing, changing and deleting, with versions and conflicts."""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

from dataclasses import replace

import numpy as np
import pytest

from supervisor_memory.errors import BadVector, ConfirmationRequired, Conflict, InvalidContent, RecordNotFound
from supervisor_memory.model.records import AuditEvent, Filter, Source
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.testing.records import (
    DIMENSION,
    NOW,
    changed,
    conflict,
    contents,
    direction,
    embedded,
    everything,
    ids,
    query,
    tea,
    ways,
    with_vector,
    written,
)


class Writing:
    """Tests of writes, updates, commits and deletions."""

    # Writing and changing

    def test_writing_an_id_again_conflicts(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        with conflict("id", record):
            backend.write([replace(record, content="something else", content_hash="")])
        assert backend.get([record.id])[0].content == record.content

    def test_an_update_counts_up_the_version(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        results = backend.update([changed(record, content="likes black tea", updated_at=NOW + 1)])
        assert [(r.id, r.status, r.version) for r in results] == [(record.id, "updated", 2)]
        stored = backend.get([record.id])[0]
        assert (stored.content, stored.version, stored.updated_at) == ("likes black tea", 2, NOW + 1)
        assert contents(backend.search(query("black"), limit=5)) == ["likes black tea"]
        assert not backend.search(query("green"), limit=5)

    def test_an_update_of_a_version_that_has_changed_conflicts(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        backend.update([changed(record, content="first")])
        with conflict("version", record):
            backend.update([changed(record, content="second")])
        assert backend.get([record.id])[0].content == "first"

    def test_a_record_that_is_not_there_cannot_be_updated(self, backend: MemoryBackend) -> None:
        with pytest.raises(RecordNotFound):
            backend.update([Change(tea(), expects=1)])

    def test_an_update_cannot_take_a_record_to_another_user(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        with pytest.raises(RecordNotFound):
            backend.update([changed(record, namespace=("user_profile", "mallory"))])
        assert backend.count(Filter(user_id="mallory")) == 0

    def test_an_update_can_take_a_record_to_another_family(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded())
        assert backend.search(query(vector=direction(0)), limit=5)
        backend.update([changed(replace(record, vector=None), namespace=("identity", "alice"))])
        for families, expected in ((("identity",), 1), (("user_profile",), 0)):
            found = backend.search(query(families=families, vector=direction(0)), limit=5)
            assert ways(found) == dict([(record.content, {"cosine", "bm25"})] * expected)

    def test_an_update_does_not_change_where_a_record_comes_from(self, backend: MemoryBackend) -> None:
        record = written(backend, tea(source=Source("tool", "browser")))
        backend.update([changed(record, source=Source("user"))])
        assert backend.get([record.id])[0].source == Source("tool", "browser")

    def test_a_change_of_whose_words_they_are_is_made_and_kept_in_the_versions(
        self, backend: MemoryBackend
    ) -> None:
        record = written(backend, tea(source=Source("user", session_id="s1")))
        rewritten = replace(record, content="likes black tea", source=Source("agent", "browser"))
        backend.batch(Commit((Change(rewritten, expects=1, changes_source=True),)))
        assert backend.get([record.id])[0].source == Source("agent", "browser")
        assert [each.source for each in backend.versions(record.id)] == [record.source, rewritten.source]

    def test_the_stored_wording_hash_is_that_of_the_content(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        backend.update([changed(record, content="likes black tea")])  # replace() kept the old hash
        assert backend.get([record.id])[0].content_hash == tea("likes black tea").content_hash

    def test_all_versions_are_kept_oldest_first(self, backend: MemoryBackend) -> None:
        record = written(backend, tea("tea one"))
        backend.update([changed(record, content="tea two")])
        backend.update([changed(replace(record, version=2), content="tea three")])
        backend.delete([record.id])
        versions = backend.versions(record.id)
        assert [(v.version, v.content, v.status) for v in versions] == [
            (1, "tea one", "active"),
            (2, "tea two", "active"),
            (3, "tea three", "active"),
            (4, "tea three", "deleted"),
        ]
        assert not backend.versions("unknown")

    def test_a_deleted_record_can_be_restored(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded())
        backend.delete([record.id])
        deleted = backend.get([record.id])[0]
        backend.update([changed(deleted, status="active")])
        found = backend.search(query(vector=direction(0)), limit=5)
        assert ways(found) == {record.content: {"cosine", "bm25"}}

    # Likes and places

    def test_two_active_records_cannot_have_one_wording(self, backend: MemoryBackend) -> None:
        first = written(backend, tea("Likes tea."))
        with conflict("content_hash", first):
            backend.write([tea("likes  TEA")])
        backend.write(
            [tea("likes tea", user="bob"), tea("likes tea", task="t"), tea("likes tea", family="f")]
        )
        backend.write([tea("likes tea", status="pending")])

    def test_two_active_records_cannot_have_one_subject_and_attribute(self, backend: MemoryBackend) -> None:
        first = written(backend, tea("tea", subject="drink", attribute="favourite"))
        with conflict("attribute", first):
            backend.write([tea("coffee", subject="drink", attribute="favourite")])
        backend.write([tea("a", subject="drink"), tea("b", subject="drink"), tea("c", attribute="favourite")])
        backend.write([tea("d", attribute="favourite"), tea("e", subject="Drink", attribute="favourite")])

    def test_an_update_may_not_take_the_place_of_another(self, backend: MemoryBackend) -> None:
        first, second = tea("tea"), tea("coffee")
        backend.write([first, second])
        with conflict("content_hash", first):
            backend.update([changed(second, content="Tea")])

    def test_verbatim_records_may_repeat_themselves(self, backend: MemoryBackend) -> None:
        same = {"layer": "history", "subject": "s", "attribute": "a"}
        backend.write([tea("yes", **same), tea("yes", **same), tea("yes", subject="s", attribute="a")])
        assert backend.count(Filter(user_id="alice")) == 3

    def test_a_deleted_record_gives_its_place_free(self, backend: MemoryBackend) -> None:
        first = written(backend, tea(subject="s", attribute="a"))
        backend.delete([first.id])
        backend.write([tea(subject="s", attribute="a")])
        with pytest.raises(Conflict):
            backend.update([changed(backend.get([first.id])[0], status="active")])

    def test_deactivations_come_first_wherever_they_stand(self, backend: MemoryBackend) -> None:
        old = written(backend, tea(subject="s", attribute="a"))
        new = tea(subject="s", attribute="a")
        committed = backend.batch(Commit((Change(new), changed(old, status="stale"))))
        assert [(r.id, r.status, r.version) for r in committed.records] == [
            (new.id, "active", 1),
            (old.id, "stale", 2),
        ]
        assert committed.saved

    # All or nothing

    def test_a_commit_that_conflicts_leaves_nothing_behind(self, backend: MemoryBackend) -> None:
        kept, taken = embedded("kept tea"), tea("taken tea")
        backend.write([kept, taken])
        before, rows = everything(backend), len(backend.audit.tail(1000))
        new, again = Change(embedded("new tea", axis=1)), Change(tea("taken tea"))
        changes = (new, changed(kept, content="changed tea"), again)
        with pytest.raises(Conflict):
            backend.batch(Commit(changes, (AuditEvent("memory.write", user_id="alice"),)))
        assert everything(backend) == before
        assert len(backend.audit.tail(1000)) == rows
        assert len(backend.versions(kept.id)) == 1
        found = backend.search(query("new changed", vector=direction(1)), limit=5)
        assert [hit.parts.get("cosine") for hit in found] == [0.0]

    def test_a_commit_with_a_bad_change_leaves_nothing_behind(self, backend: MemoryBackend) -> None:
        for bad, error in (
            (Change(tea(metadata={"x": object()})), InvalidContent),
            (Change(tea(), expects=3), RecordNotFound),
            (Change(with_vector(tea(), np.full(DIMENSION, np.nan, dtype=np.float32))), BadVector),
            (Change(tea(updated_at=float("nan"))), InvalidContent),
        ):
            with pytest.raises(error):
                backend.batch(Commit((Change(tea("fine")), bad), (AuditEvent("memory.write"),)))
        assert not everything(backend)
        assert not backend.audit.tail(10)

    def test_an_event_that_is_already_in_the_log_undoes_the_whole_commit(
        self, backend: MemoryBackend
    ) -> None:
        event = AuditEvent("memory.write")
        backend.batch(Commit((Change(tea("one")),), (event,)))
        with pytest.raises(Conflict):
            backend.batch(Commit((Change(tea("two")),), (AuditEvent("memory.write"), event)))
        assert contents(everything(backend)) == ["one"]

    def test_one_record_can_change_twice_in_a_commit(self, backend: MemoryBackend) -> None:
        record = tea("one")
        backend.batch(Commit((Change(record), changed(record, content="two"))))
        assert [v.content for v in backend.versions(record.id)] == ["one", "two"]

    def test_an_empty_commit_is_fine(self, backend: MemoryBackend) -> None:
        commit = Commit()
        assert backend.batch(commit).id == commit.id
        assert list(backend.write([])) == list(backend.update([])) == []

    # Deleting

    def test_deleting_counts_those_that_were_active(self, backend: MemoryBackend) -> None:
        records = [tea("a"), tea("b"), tea("c", status="pending"), tea("d")]
        backend.write(records)
        assert backend.delete([records[0].id, records[0].id, records[2].id, "unknown"]) == 1
        assert backend.delete([records[0].id]) == 0
        assert backend.delete([]) == 0
        assert [r.status for r in backend.get(ids(records))] == ["deleted", "active", "deleted", "active"]

    def test_deleting_by_filter_takes_what_matches(self, backend: MemoryBackend) -> None:
        backend.write([tea("a", source=Source(session_id="s")), tea("b"), tea("c", user="bob")])
        assert backend.delete(Filter(session_id="s")) == 1
        assert backend.delete(Filter(user_id="alice")) == 1
        assert contents(backend.list(Filter(), limit=9)) == ["c"]

    @pytest.mark.parametrize(
        "where", [Filter(), Filter(statuses=None), Filter(kinds=("identity",), tasks=(None,))]
    )
    def test_deleting_by_a_filter_that_names_nothing_is_refused(
        self, backend: MemoryBackend, where: Filter
    ) -> None:
        backend.write([tea()])
        with pytest.raises(ConfirmationRequired):
            backend.delete(where)
        assert backend.count(Filter()) == 1
