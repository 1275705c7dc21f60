"""Promises of a backend: what was written comes back the same, and to its user alone."""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

import contextlib
from dataclasses import replace

import pytest

from supervisor_memory.errors import InvalidContent, MissingUser
from supervisor_memory.model.records import DIGEST_FAMILY, SESSION_FAMILY, Filter, Query, Source
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.records import (
    ALIKE,
    EMBEDDER,
    NOW,
    ODD_TEXTS,
    changed,
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


class Reading:
    """Tests of reading records back, and of users, families and tasks apart from each other."""

    # Reading back

    def test_what_was_written_comes_back_the_same(self, backend: MemoryBackend) -> None:
        record = tea(
            family="text2sql_memories",
            task="q3",
            tags=("drink", "喜好"),
            importance=0.25,
            metadata={"use_when": "asked for a drink", "nested": {"list": [1, 2.5, None, True]}},
            source=Source("tool", "text2sql", "thread 1", "run-1", "m1", "bob"),
            subject="drink",
            attribute="preference",
            ref_id="r0",
            joined_ref_ids=("r1", "消息"),
            former_ref_ids=("r2",),
            valid_from=NOW - 1.5,
            valid_to=NOW + 1e9,
            expires_at=NOW + 0.001,
        )
        results = backend.write([record])
        assert [(r.id, r.status, r.saved, r.version) for r in results] == [(record.id, "added", True, 1)]
        assert list(backend.get([record.id])) == [record]

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_content_comes_back_exactly(self, backend: MemoryBackend, text: str) -> None:
        record = written(
            backend,
            tea(text, metadata={"text": text, text[:50]: [text[:50]]}, tags=(text[:50],), subject=text[:50]),
        )
        assert list(backend.get([record.id])) == [record]
        assert backend.search(query(text[:200]), limit=5) is not None

    def test_records_come_back_in_the_order_asked_and_unknown_ids_are_left_out(
        self, backend: MemoryBackend
    ) -> None:
        records = [tea(f"tea {number}") for number in range(3)]
        backend.write(records)
        asked = [records[2].id, "no such id", records[0].id, "", "\ud800", records[1].id]
        assert ids(backend.get(asked)) == [records[2].id, records[0].id, records[1].id]
        assert list(backend.get([])) == []

    def test_what_is_stored_changes_with_nothing_that_went_in_or_came_back(
        self, backend: MemoryBackend
    ) -> None:
        mine = {"list": [1]}
        record = written(backend, tea(metadata=mine))
        mine["list"].append(2)
        for found in (backend.get([record.id])[0], backend.search(query(), limit=1)[0].record):
            with contextlib.suppress(TypeError):  # a backend may hand out copies, or what nobody can change
                found.metadata["list"].append(3)
        assert backend.get([record.id])[0].metadata == {"list": [1]}

    def test_a_vector_stays_behind(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded())
        assert backend.get([record.id])[0].vector is None
        assert backend.search(query(vector=direction(0)), limit=1)[0].record.vector is None

    def test_metadata_that_json_cannot_hold_is_refused(self, backend: MemoryBackend) -> None:
        for value in (object(), {1, 2}, b"bytes", "\ud800"):
            with pytest.raises(InvalidContent):
                backend.write([tea(metadata={"value": value})])
        assert not everything(backend)

    # Whose records

    def test_one_user_never_sees_another(self, backend: MemoryBackend) -> None:
        backend.write(
            [embedded(f"tea of user number {number}", user=user) for number, user in enumerate(ALIKE)]
        )
        for number, user in enumerate(ALIKE):
            only = [f"tea of user number {number}"]
            assert contents(backend.search(query(user=user, vector=direction(0)), limit=50)) == only
            assert contents(backend.list(Filter(user_id=user), limit=50)) == only
            assert backend.count(Filter(user_id=user)) == 1

    def test_a_user_nobody_knows_has_nothing(self, backend: MemoryBackend) -> None:
        backend.write([embedded(user=user) for user in ALIKE])
        for user in ("", "1%", "2", "ALICE", "用", "\ud800", "user_profile"):
            assert not backend.search(query(user=user, vector=direction(0)), limit=50)
            assert not backend.list(Filter(user_id=user), limit=50)
            assert backend.delete(Filter(user_id=user)) == 0

    def test_a_search_without_a_user_is_refused(self, backend: MemoryBackend) -> None:
        with pytest.raises(MissingUser):
            backend.search(Query("tea", Filter(), ("tea",)), limit=5)

    def test_families_are_compared_whole(self, backend: MemoryBackend) -> None:
        families = ("user_profile", "user_profile2", "user_profil", "User_Profile", "userXprofile")
        backend.write([embedded(f"tea in {f}", family=f) for f in families])
        found = backend.search(query(families=("user_profile",), vector=direction(0)), limit=50)
        assert contents(found) == ["tea in user_profile"]
        assert backend.count(Filter(families=families[:2])) == 2
        assert backend.count(Filter(families=())) == 0

    def test_records_of_one_task_are_not_seen_in_another(self, backend: MemoryBackend) -> None:
        backend.write([embedded(f"tea of {task}", task=task) for task in (None, "t", "t2")])
        seen = {
            (None,): ["tea of None"],
            ("t",): ["tea of t"],
            (None, "t"): ["tea of None", "tea of t"],
            (): [],
            None: ["tea of None", "tea of t", "tea of t2"],
        }
        for tasks, expected in seen.items():
            assert contents(backend.search(query(tasks=tasks, vector=direction(0)), limit=50)) == expected
            assert contents(backend.list(Filter(user_id="alice", tasks=tasks), limit=50)) == expected

    def test_a_family_and_a_user_cannot_be_shifted_into_each_other(self, backend: MemoryBackend) -> None:
        backend.write(
            [tea("tea one", family="a", user="b", task="c"), tea("tea two", family="a", user='b","c')]
        )
        assert contents(backend.search(query(user="b"), limit=5)) == ["tea one"]
        assert contents(backend.search(query(user='b","c'), limit=5)) == ["tea two"]

    def test_session_messages_are_found_only_when_asked_for(self, backend: MemoryBackend) -> None:
        said = tea("said tea", family=SESSION_FAMILY, layer="history", source=Source(session_id="s1"))
        backend.write([said, tea("likes tea")])
        assert contents(backend.search(query(), limit=5)) == ["likes tea"]
        assert contents(backend.list(Filter(user_id="alice"), limit=5)) == ["likes tea"]
        ways = (
            {"families": (SESSION_FAMILY,)},
            {"session_id": "s1"},
            {"ids": (said.id,)},
            {"layers": ("history",)},
        )
        for asked in ways:
            assert contents(backend.search(query(**asked), limit=5)) == ["said tea"]
            assert contents(backend.list(Filter(**asked), limit=5)) == ["said tea"]

    def test_digests_of_sessions_are_found_only_when_asked_for(self, backend: MemoryBackend) -> None:
        state = tea("digest of tea", family=DIGEST_FAMILY, layer="summary", source=Source(session_id="s1"))
        backend.write([state, tea("likes tea")])
        everywhere = [contents(backend.list(each, limit=5)) for each in Filter(user_id="alice").everywhere()]
        assert contents(backend.search(query(), limit=5)) == ["likes tea"]
        assert everywhere == [["likes tea"], ["digest of tea"]]
        ways = (
            {"families": (DIGEST_FAMILY,)},
            {"session_id": "s1"},
            {"ids": (state.id,)},
            {"layers": ("summary",)},
        )
        for asked in ways:
            assert contents(backend.search(query(**asked), limit=5)) == ["digest of tea"]
            assert contents(backend.list(Filter(**asked), limit=5)) == ["digest of tea"]
            assert backend.count(Filter(**asked)) == 1

    def test_a_session_message_is_found_by_meaning_once_it_has_a_vector(self, backend: MemoryBackend) -> None:
        said = written(backend, tea("said tea", family=SESSION_FAMILY, layer="history"))
        waiting = Filter(families=(SESSION_FAMILY,), not_embedded_by=EMBEDDER)
        asked = query("boat", vector=direction(0), families=(SESSION_FAMILY,))
        assert (backend.count(waiting), len(backend.search(asked, limit=5))) == (1, 0)
        backend.update([changed(with_vector(said, direction(0)))])
        assert (backend.count(waiting), ways(backend.search(asked, limit=5))) == (0, {"said tea": {"cosine"}})
        assert len(backend.search(query("boat", vector=direction(0)), limit=5)) == 0
        assert backend.versions(said.id) == (replace(said, embedder=EMBEDDER),)
