"""Promises of a backend: lists, counts and filters."""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from supervisor_memory.model.records import SESSION_FAMILY, Filter, Source, Wanted, new_id
from supervisor_memory.stores.protocol import Commit, MemoryBackend
from supervisor_memory.testing.records import (
    EMBEDDER,
    NOW,
    changed,
    contents,
    direction,
    embedded,
    ids,
    query,
    tea,
    with_vector,
)

YES, NO = (True,), (False,)


class Filtering:
    """Tests of what a filter lets through."""

    def test_lists_begin_with_the_last_updated_and_can_be_paged(self, backend: MemoryBackend) -> None:
        records = [tea(f"tea {n}", updated_at=NOW + n % 4) for n in range(10)]
        backend.write(records)
        expected = ids(sorted(records, key=lambda r: (r.updated_at, r.id), reverse=True))
        where = Filter(user_id="alice")
        assert ids(backend.list(where, limit=100)) == expected
        paged = [backend.list(where, limit=3, offset=offset) for offset in (0, 3, 6, 9, 12)]
        assert [record.id for page in paged for record in page] == expected
        assert not backend.list(where, limit=0)

    def test_every_field_of_a_filter_restricts(self, backend: MemoryBackend) -> None:
        one = tea(
            "tea one",
            kind="identity",
            layer="summary",
            subject="s",
            attribute="a",
            source=Source(session_id="x", agent_id="a"),
        )
        backend.write([one, tea("tea two", subject="t", attribute="a"), tea("tea three", status="pending")])
        for restriction in (
            {"kinds": ("identity",)},
            {"ids": (one.id, "unknown")},
            {"session_id": "x"},
            {"agent_id": "a"},
            {"content_hash": one.content_hash},
            {"layers": ("summary", "history")},
            {"subject": "s"},
            {"subject": "s", "attribute": "a", "kinds": ("identity", "experience")},
        ):
            assert contents(backend.list(Filter(**restriction), limit=9)) == ["tea one"]
            assert backend.count(Filter(**restriction)) == 1
            assert contents(backend.search(query(**restriction), limit=9)) == ["tea one"]
        assert backend.count(Filter(statuses=None)) == 3
        assert backend.count(Filter(statuses=("pending", "active"))) == 3
        assert backend.count(Filter(statuses=())) == 0
        assert backend.count(Filter(attribute="a")) == 2

    def test_all_tags_that_are_asked_for_have_to_be_held(self, backend: MemoryBackend) -> None:
        tags = {
            "tea one": ("drink", "热饮"),
            "tea two": ("drink",),
            "tea three": ("Drink", "drinks"),
            "tea": (),
        }
        backend.write([embedded(text, tags=held) for text, held in tags.items()])
        self._shows_only(
            backend,
            {
                ("drink",): ["tea one", "tea two"],
                ("热饮", "drink"): ["tea one"],
                ("drink", "drink"): ["tea one", "tea two"],
                ("drin",): [],
                ("drink", "\ud800"): [],
                (): sorted(tags),
            },
            "tags",
        )

    def test_since_and_until_are_about_when_it_was_said(self, backend: MemoryBackend) -> None:
        said = {"tea one": NOW - 10.25, "tea two": NOW, "tea three": NOW + 10.25}
        records = [embedded(text, created_at=when) for text, when in said.items()]
        backend.write(records)
        backend.update([changed(backend.get([records[0].id])[0], importance=1.0, updated_at=NOW + 99)])
        self._shows_only(backend, {NOW: ["tea three", "tea two"], NOW + 10.25: ["tea three"]}, "since")
        self._shows_only(backend, {NOW: ["tea one"], NOW - 10.25: [], NOW + 11: sorted(said)}, "until")
        where = Filter(user_id="alice", since=NOW - 10.25, until=NOW + 10.25)
        assert contents(backend.list(where, limit=9)) == ["tea one", "tea two"]

    def test_records_are_found_by_what_they_rest_on(self, backend: MemoryBackend) -> None:
        rests_on = [["table", "Flights"], ["file", "A.csv"]]
        first, other = embedded("tea one", metadata={"rests_on": rests_on}), embedded("tea two", ref_id="m1")
        backend.write([first, other])
        self._shows_only(backend, {("table:flights",): ["tea one"], ("file:a.csv",): []}, "ref_ids")
        backend.update([changed(backend.get([first.id])[0], metadata={"rests_on": rests_on[1:]})])
        self._shows_only(backend, {("table:flights",): [], ("file:A.csv",): ["tea one"]}, "ref_ids")

    def test_records_are_found_by_the_messages_that_they_tell_about(self, backend: MemoryBackend) -> None:
        told: dict[str, dict[str, Any]] = {
            "tea one": {"ref_id": "m1"},
            "tea two": {"ref_id": "m2", "joined_ref_ids": ("m3", "m1")},
            "tea three": {"former_ref_ids": ("m4", "m3")},
        }
        said = tea("said tea", family=SESSION_FAMILY, layer="history", ref_id="m1")
        first, *others = [embedded(text, **messages) for text, messages in told.items()]
        backend.write([first, *others, embedded("tea four"), said])
        expected = {
            ("m1",): ["tea one", "tea two"],
            ("m4", "m"): ["tea three"],
            ("m3", "\ud800"): sorted(told)[1:],
        }
        self._shows_only(backend, {**expected, ("m",): [], (): []}, "ref_ids")
        (done,) = backend.batch(Commit((changed(first, joined_ref_ids=("m5",), vector=None),))).records
        assert (done.version, backend.versions(first.id)) == (1, (done,))  # a link is no new version
        self._shows_only(backend, {("m5",): ["tea one"], **expected}, "ref_ids")
        backend.update([changed(done, content="tea five", ref_id="m6", joined_ref_ids=())])
        self._shows_only(backend, {("m5",): [], ("m6",): ["tea five"], ("m1",): ["tea two"]}, "ref_ids")

    def test_records_whose_time_to_live_has_passed_can_be_listed_and_counted(
        self, backend: MemoryBackend
    ) -> None:
        lives = {"tea one": NOW - 5, "tea two": NOW, "tea three": NOW + 5, "tea four": None}
        backend.write([tea(text, expires_at=until) for text, until in lives.items()])
        for at, texts in {NOW: ["tea one", "tea two"], NOW - 6: [], NOW + 1e9: sorted(lives)[1:]}.items():
            where = Filter(user_id="alice", expired_by=at)
            assert sorted(contents(backend.list(where, limit=9))) == texts
            assert backend.count(where) == len(texts)

    def test_metadata_has_to_have_one_of_the_values(self, backend: MemoryBackend) -> None:
        metadata: dict[str, Mapping[str, Any]] = {
            "tea one": {"n": 1, "project": "阿波罗"},
            "tea two": {"n": True, "project": "apollo"},
            "tea three": {"n": "1", "project": None},
            "tea four": {"n": [1], "project": {"apollo": 1}, "a.b": "q\"uo'te"},
            "tea five": {"n": 2**53 + 1, "a": {"b": 1}},
        }
        backend.write([embedded(text, metadata=held) for text, held in metadata.items()])
        self._shows_only(
            backend,
            {
                (Wanted.of("n", 1),): ["tea one"],
                (Wanted.of("n", 1.0),): ["tea one"],
                (Wanted.of("n", *YES),): ["tea two"],
                (Wanted.of("n", *NO, 0, "True"),): [],
                (Wanted.of("n", "1", *YES),): ["tea three", "tea two"],
                (Wanted.of("n", 2**53 + 1),): ["tea five"],
                (Wanted.of("n", 2**53, float(2**53)),): [],
                (Wanted.of("project", "阿波罗", "apollo"),): ["tea one", "tea two"],
                (Wanted.of("project", "apollo"), Wanted.of("n", 1)): [],
                (Wanted.of("project", None),): ["tea three"],
                (Wanted.of("a.b", 1, "q\"uo'te"),): ["tea four"],
                (Wanted.of("missing", None, ""),): [],
                (): sorted(metadata),
            },
            "metadata",
        )

    def _shows_only(self, backend: MemoryBackend, expected: Mapping[Any, Sequence[str]], field: str) -> None:
        """Check that list, count and search agree for each value of a field of the filter."""
        for value, texts in expected.items():
            where: Any = {field: value}
            assert contents(backend.list(Filter(user_id="alice", **where), limit=9)) == list(texts)
            assert backend.count(Filter(**where)) == len(texts)
            assert contents(backend.search(query(vector=direction(0), **where), limit=9)) == list(texts)

    def test_a_filter_is_applied_before_the_best_are_chosen(self, backend: MemoryBackend) -> None:
        crowd = [embedded(f"tea tea green tea {n}", updated_at=NOW + n) for n in range(120)]
        last = tea(
            "a word about tea, at the end of a longer text",
            tags=("drink",),
            metadata={"project": "apollo"},
            created_at=NOW - 5,
            updated_at=NOW - 5,
            kind="identity",
        )
        by_meaning_alone = with_vector(replace(last, id=new_id(), content="coffee"), -direction(0))
        backend.write([*crowd, with_vector(last, -direction(0)), by_meaning_alone])
        both = sorted([last.content, "coffee"])
        for restriction in (
            {"tags": ("drink",)},
            {"until": NOW},
            {"metadata": (Wanted.of("project", "apollo"),)},
            {"kinds": ("identity",)},
        ):
            asked = query("green tea", vector=direction(0), **restriction)
            assert set(contents(backend.search(asked, limit=1))) <= set(both)
            assert contents(backend.search(asked, limit=2)) == both
            by_words = query("green tea", **restriction)
            assert contents(backend.search(by_words, limit=1)) == [last.content]
            assert contents(backend.list(Filter(user_id="alice", **restriction), limit=2)) == both

    def test_records_without_a_vector_of_an_embedder_can_be_asked_for(self, backend: MemoryBackend) -> None:
        ours = embedded("tea one")
        of_another = with_vector(tea("tea two"), direction(0), embedder="other@1/8")
        backend.write([ours, of_another, tea("tea three")])
        where = Filter(not_embedded_by=EMBEDDER)
        assert sorted(contents(backend.list(where, limit=9))) == ["tea three", "tea two"]
        assert backend.count(where) == 2
        backend.update([changed(of_another, vector=direction(1), embedder=EMBEDDER)])
        backend.update([changed(ours, content="tea four", vector=None, embedder=None)])
        assert sorted(contents(backend.list(where, limit=9))) == ["tea four", "tea three"]
        assert backend.count(where) == 2
