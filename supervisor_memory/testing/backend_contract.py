"""The promises of every backend. Inherit, and add a fixture `backend`: an empty backend.

class TestMine(BackendContract):
    @pytest.fixture
    def backend(self):
        return MyBackend()

One whose records outlive it inherits `PersistentBackendContract` and adds a fixture `reopen`: a function
that opens another handle on the same place, as another process would.

A promise that a store cannot keep is named in `limits`, with the reason its test is skipped with:

    class TestMine(PersistentBackendContract):
        limits = {"decides across handles": "the database has no compare-and-set"}
"""

# ruff: noqa: PLR2004 - a test says its numbers where it checks them.

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pytest

from supervisor_memory.audit.rows import GENESIS, Access, AuditRow, row_hash
from supervisor_memory.errors import (
    BadVector,
    ConfirmationRequired,
    Conflict,
    InvalidContent,
    MissingUser,
    RecordNotFound,
)
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    SESSION_FAMILY,
    AuditEvent,
    Filter,
    Hits,
    Namespace,
    Query,
    Record,
    Source,
    Wanted,
    new_id,
)
from supervisor_memory.stores.changes import Vector
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend

Limit: TypeAlias = Literal["decides across handles", "is whole after a kill"]
"""A promise that not every store can keep.

"decides across handles": versions, wordings and places are compared and set as one step, whichever handle
or process commits. "is whole after a kill": a commit that is cut off is there with all its changes, or none.
"""

NOW = 1_767_571_200.0
DIMENSION = 8
EMBEDDER = "compass@1/8"
ALIKE = (
    *("1", "12", "01", "%", "_", "*", "[1]", "../1", "K", "k"),
    *("Users", "users", "用户", "a b", 'a"b', "a'b"),
)
"""Users that a careless comparison would take for each other."""
Reopen: TypeAlias = Callable[[], MemoryBackend]
ODD_TEXTS = (
    "用户喜欢绿茶，不喜欢咖啡",
    "emoji 👩‍👩‍👧‍👦 and flags 🇨🇦",
    "right to left: שלום \u202e end",
    "quotes \" ' ` and \\ and ; DROP TABLE records; --",
    "tabs\tand\nnew\r\nlines",
    "{'json': [1, 2]} </memory> <b>bold</b>",
    "combining e\u0301 and é, K and K",
    "NEAR(a b) AND body:x OR * ^ - +",
    "\ufeffbyte order mark \u200b zero width",
    "x" * 60_000,
)
YES, NO = (True,), (False,)
CANARIES = (
    *("canary-content", "canary-after", "canary-user"),
    *("canary-session", "canary reason", "canary détail"),
)


def direction(number: int, *, dimension: int = DIMENSION) -> Vector:
    """The unit vector along one axis."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[number % dimension] = 1.0
    return vector


def tea(content: str = "likes green tea", *, user: str = "alice", **values: Any) -> Record:
    """A record about tea; `values` replace its fields."""
    family, task = values.pop("family", "user_profile"), values.pop("task", None)
    namespace: Namespace = (family, user) if task is None else (family, user, task)
    settled: dict[str, Any] = {"kind": "user-profile", "created_at": NOW, "updated_at": NOW, "id": new_id()}
    return Record(namespace=namespace, content=content, **(settled | values))


def with_vector(record: Record, vector: Vector, embedder: str = EMBEDDER) -> Record:
    return replace(record, vector=vector, embedder=embedder)


def embedded(content: str = "likes green tea", *, axis: int = 0, **values: Any) -> Record:
    """As `tea`, with the unit vector along an axis."""
    return with_vector(tea(content, **values), direction(axis))


def written(backend: MemoryBackend, record: Record) -> Record:
    """Write a record, and give it back."""
    backend.write([record])
    return record


@contextlib.contextmanager
def conflict(what: str, record: Record) -> Iterator[None]:
    """Check that the block raises a Conflict about a record."""
    with pytest.raises(Conflict) as raised:
        yield
    assert (raised.value.facts["what"], raised.value.facts["record_id"]) == (what, record.id)


def count_up_together(handles: Sequence[MemoryBackend]) -> None:
    """Count up a number in a record 24 times, by threads with handles in turn; none is lost."""
    record = written(handles[0], tea(metadata={"count": 0}))

    def count_up(number: int) -> None:
        handle = handles[number % len(handles)]
        while True:
            current = handle.get([record.id])[0]
            with contextlib.suppress(Conflict):
                handle.update([changed(current, metadata={"count": current.metadata["count"] + 1})])
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count_up, range(24)))
    assert handles[0].get([record.id])[0].metadata == {"count": 24}
    assert len(handles[0].versions(record.id)) == 25


@contextlib.contextmanager
def three(backend: MemoryBackend, reopen: "Reopen") -> Iterator[Sequence[MemoryBackend]]:
    """A backend and two more handles on the same place, which are closed in the end."""
    others = [reopen(), reopen()]
    yield [backend, *others]
    for handle in others:
        handle.close()


def query(text: str = "tea", *, user: str = "alice", now: float = NOW, **values: Any) -> Query:
    """A search by words, and by `vector` where one is given; the rest goes to the filter."""
    vector, embedder = values.pop("vector", None), values.pop("embedder", EMBEDDER)
    where = Filter(user_id=user, **values)
    return Query(text, where, terms(text), vector, embedder if vector is not None else None, now)


def ways(hits: Hits) -> dict[str, set[str]]:
    """By which of meaning and words each hit was found, by content."""
    return {hit.record.content: {*hit.parts} & {"cosine", "bm25"} for hit in hits}


def contents(found: Hits | Iterable[Record]) -> list[str]:
    records = (hit.record for hit in found) if isinstance(found, Hits) else found
    return sorted(record.content for record in records)


def ids(records: Iterable[Record]) -> list[str]:
    return [record.id for record in records]


def changed(record: Record, **values: Any) -> Change:
    """A change of a record that was just written."""
    return Change(replace(record, **values), expects=record.version)


def everything(backend: MemoryBackend) -> Sequence[Record]:
    return backend.list(Filter(statuses=None), limit=1_000_000)


class BackendContract:
    """Promises of the protocol `MemoryBackend`, as tests.

    Attributes:
        limits: The promises that this store cannot keep, each with the reason.
    """

    limits: ClassVar[Mapping[Limit, str]] = MappingProxyType({})

    def skip_where_limited(self, promise: Limit) -> None:
        """Skip the test that calls it, with the reason, where the store cannot keep the promise."""
        if reason := self.limits.get(promise):
            pytest.skip(f"not promised: it {promise}; {reason}")

    def test_its_limits_are_known_and_have_reasons(self) -> None:
        assert set(self.limits) <= set(get_args(Limit))
        assert all(self.limits.values())

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

    # Filters

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
        """What is listed, counted and found with each value of a field of the filter."""
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

    # Searching

    def test_only_active_records_are_found_and_only_until_they_expire(self, backend: MemoryBackend) -> None:
        statuses = ("active", "pending", "stale", "compressed", "quarantined", "deleted")
        backend.write([embedded(f"tea {s}", status=s) for s in statuses])
        backend.write([embedded("tea soon gone", expires_at=NOW + 10)])
        for now, expected in (
            (NOW, ["tea active", "tea soon gone"]),
            (NOW + 10, ["tea active"]),
            (NOW + 1e9, ["tea active"]),
        ):
            found = backend.search(query(now=now, vector=direction(0), statuses=None), limit=50)
            assert contents(found) == expected

    def test_expired_records_do_not_crowd_out_others(self, backend: MemoryBackend) -> None:
        gone = [embedded(f"tea tea {n}", expires_at=NOW - 1) for n in range(200)]
        backend.write([*gone, with_vector(tea("some tea at last"), direction(0) + direction(1))])
        assert contents(backend.search(query(vector=direction(0)), limit=1)) == ["some tea at last"]

    def test_words_of_when_to_use_it_find_a_record_beside_its_own(self, backend: MemoryBackend) -> None:
        steps = tea("close the books first", metadata={"use_when": "the quarterly report is asked for"})
        backend.write([steps, tea()])
        for asked in ("books", "quarterly"):
            assert contents(backend.search(query(asked), limit=5)) == ["close the books first"]
        backend.update([Change(replace(steps, metadata={"use_when": "someone travels"}), expects=1)])
        assert contents(backend.search(query("travels"), limit=5)) == ["close the books first"]
        assert not backend.search(query("quarterly"), limit=5)

    def test_hits_carry_the_parts_that_are_known(self, backend: MemoryBackend) -> None:
        backend.write(
            [
                embedded("both tea"),
                tea("words tea"),
                with_vector(tea("meaning"), direction(0) + direction(1)),
                with_vector(tea("opposite"), -direction(0)),
            ]
        )
        hits = backend.search(query(vector=direction(0)), limit=9)
        parts = {hit.record.content: hit.parts for hit in hits}
        assert ways(hits) == {
            "both tea": {"cosine", "bm25"},
            "words tea": {"bm25"},
            "meaning": {"cosine"},
            "opposite": {"cosine"},
        }
        cosines = {name: values["cosine"] for name, values in parts.items() if "cosine" in values}
        assert cosines == pytest.approx({"both tea": 1.0, "meaning": 2**-0.5, "opposite": -1.0}, abs=1e-6)
        assert all(values["bm25"] > 0 for values in parts.values() if "bm25" in values)
        matches = {name: values["match"] for name, values in parts.items()}
        assert min(matches.values()) >= 0
        assert max(matches, key=lambda name: matches[name]) == "both tea"

    def test_a_hit_found_one_way_carries_the_other_part_too(self, backend: MemoryBackend) -> None:
        near = [embedded(f"near {n}") for n in range(5)]
        far = [embedded(f"far tea tea {n}", axis=1) for n in range(5)]
        middle = embedded("middle " + "word " * 50 + "tea")
        backend.write([*near, *far, middle])
        for hit in backend.search(query(vector=direction(0)), limit=6):
            assert "cosine" in hit.parts
            assert ("bm25" in hit.parts) == ("tea" in hit.record.content)

    def test_the_limit_is_kept_but_for_the_very_best_by_meaning_and_by_words(
        self, backend: MemoryBackend
    ) -> None:
        backend.write([embedded(f"number {n}") for n in range(30)])
        backend.write([tea(f"tea {n}") for n in range(30)])
        for limit in (1, 7, 100):
            found = backend.search(query(vector=direction(0)), limit=limit)
            assert min(limit, 60) <= len(found) <= min(limit + 2 * max(1, limit // 4), 60)
            assert {"cosine", "bm25"} == {way for known in ways(found).values() for way in known}
            assert len({hit.record.id for hit in found}) == len(found)
        for limit in (0, -1):
            assert not backend.search(query(vector=direction(0)), limit=limit)

    def test_what_agrees_in_meaning_and_in_words_is_found_before_what_has_one_of_them(
        self, backend: MemoryBackend
    ) -> None:
        backend.write([with_vector(tea(f"number {n}"), direction(0) + direction(1)) for n in range(9)])
        backend.write([tea(f"tea {n} and many other words beside it") for n in range(9)])
        backend.write([with_vector(tea("both, of tea"), direction(0) + direction(2))])
        hits = backend.search(query(vector=direction(0)), limit=4)
        assert max(hits, key=lambda hit: hit.parts["match"]).record.content == "both, of tea"

    def test_of_two_alike_the_users_words_match_better_than_an_assistants(
        self, backend: MemoryBackend
    ) -> None:
        def said(text: str, seconds: float, source: Source) -> Record:
            return tea(
                text, layer="history", source=source, created_at=NOW + seconds, updated_at=NOW + seconds
            )

        agent = Source("agent", session_id="s1")
        spoken = [said("tea from Lisbon", 60, agent), said("tea of Lisbon", 9_000, Source(session_id="s1"))]
        backend.write(
            [*spoken, said("some tea in Lisbon", 20_000, Source(session_id="s2", speaker="assistant"))]
        )
        found = {hit.record.content: hit.parts["match"] for hit in backend.search(query("Lisbon"), limit=9)}
        assert max(found, key=found.__getitem__) == "tea of Lisbon"
        assert found["tea of Lisbon"] - found["tea from Lisbon"] == pytest.approx(0.25, abs=0.01)

    def test_an_answer_is_found_by_the_question_before_it(self, backend: MemoryBackend) -> None:
        def said(text: str, seconds: float, session: str = "s1", speaker: str = "Ann") -> Record:
            when = NOW - 1e6 + seconds
            where = Source(session_id=session, speaker=speaker)
            vector = direction(0) if "Lisbon" in text else direction(3)
            return with_vector(
                tea(text, layer="history", source=where, created_at=when, updated_at=when), vector
            )

        backend.write(
            [
                said("Where in Lisbon did you stay?", 0),
                said("At a little inn by the river.", 60, speaker="Bob"),
                said("An aunt has room for us.", 30, session="s2"),
                said("Nothing much, to be honest.", 7_200),
            ]
        )
        hits = backend.search(query("Lisbon", vector=direction(0)), limit=9)
        parts = {hit.record.content: hit.parts for hit in hits}
        assert [text for text, known in parts.items() if "answer" in known] == [
            "At a little inn by the river."
        ]
        assert not {"neighbour", "context"} & {*parts.get("An aunt has room for us.", ())}

    def test_rarer_words_count_for_more(self, backend: MemoryBackend) -> None:
        backend.write([tea(f"drink number {n}") for n in range(20)])
        backend.write([tea("drink tea"), tea("drink tea tea tea"), tea("drink mango juice")])
        scores = {h.record.content: h.parts["bm25"] for h in backend.search(query("drink tea"), limit=50)}
        assert scores["drink tea"] > scores["drink mango juice"]
        assert scores["drink tea tea tea"] >= scores["drink tea"]
        assert contents(backend.search(query("drink mango"), limit=1)) == ["drink mango juice"]

    def test_a_short_record_is_not_buried_under_long_ones(self, backend: MemoryBackend) -> None:
        backend.write([tea("tea"), tea("tea " + " ".join(f"other{n}" for n in range(200)))])
        scores = [
            hit.parts["bm25"]
            for hit in sorted(backend.search(query(), limit=5), key=lambda h: len(h.record.content))
        ]
        assert scores[0] > scores[1]

    def test_other_users_do_not_change_a_score(self, backend: MemoryBackend) -> None:
        backend.write([tea("green tea"), tea("black coffee")])
        before = backend.search(query(), limit=5)[0].parts["bm25"]
        backend.write([tea(f"tea {n}", user=f"user {n % 200}") for n in range(400)])
        assert backend.search(query(), limit=5)[0].parts["bm25"] == pytest.approx(before)

    def test_chinese_is_found_by_pairs_of_characters(self, backend: MemoryBackend) -> None:
        backend.write([tea("用户喜欢喝绿茶"), tea("用户住在上海"), tea("海上有风")])
        assert contents(backend.search(query("上海"), limit=5)) == ["用户住在上海"]
        assert contents(backend.search(query("他爱喝绿茶吗"), limit=5)) == ["用户喜欢喝绿茶"]

    def test_names_with_underscores_are_found(self, backend: MemoryBackend) -> None:
        backend.write([tea("use arr_delay for lateness"), tea("use dep_time")])
        assert contents(backend.search(query("arr_delay"), limit=5)) == ["use arr_delay for lateness"]

    def test_a_search_for_nothing_finds_nothing(self, backend: MemoryBackend) -> None:
        backend.write([embedded()])
        for text in ("", " ", "!?", "the of and", "nothing alike"):
            assert not backend.search(query(text), limit=5)

    def test_odd_queries_do_not_fail(self, backend: MemoryBackend) -> None:
        backend.write([tea("tea " + text[:100]) for text in ODD_TEXTS])
        for text in (
            *('"', "'", "tea\x00", "a OR b", "NEAR("),
            *("body:tea", "*", "^tea", "\ud800", "tea " * 5000),
        ):
            odd = (text, text * 2, "tea", "\x00", "")
            where = Filter(user_id="alice")
            assert len(backend.search(Query(text, where, odd), limit=50)) == len(ODD_TEXTS)
            assert backend.search(Query(text, where, terms(text)), limit=50) is not None
        many = tuple(f"word{number}" for number in range(5000))
        assert not backend.search(Query("many", Filter(user_id="alice"), many), limit=5)

    # Vectors

    def test_vectors_of_two_embedders_are_never_compared(self, backend: MemoryBackend) -> None:
        backend.write([with_vector(tea("old tea"), direction(0), "old@1/8"), embedded("new tea")])
        found = backend.search(query(vector=direction(0)), limit=5)
        assert ways(found) == {"new tea": {"cosine", "bm25"}, "old tea": {"bm25"}}
        found = backend.search(query("nothing", vector=direction(0), embedder="other@1/8"), limit=5)
        assert not found

    def test_vectors_of_two_lengths_are_never_compared(self, backend: MemoryBackend) -> None:
        backend.write([with_vector(tea("long"), direction(0, dimension=16)), embedded("short")])
        for dimension, expected in ((8, ["short"]), (16, ["long"]), (4, [])):
            vector = direction(0, dimension=dimension)
            assert contents(backend.search(query("nothing", vector=vector), limit=5)) == expected

    def test_bad_vectors_are_refused(self, backend: MemoryBackend) -> None:
        bad = (
            np.zeros(DIMENSION, dtype=np.float32),
            np.full(DIMENSION, np.inf, dtype=np.float32),
            np.eye(DIMENSION, dtype=np.float32),
            np.zeros(0, dtype=np.float32),
        )
        for vector in bad:
            with pytest.raises(BadVector):
                backend.write([with_vector(tea(), vector)])
        with pytest.raises(BadVector):
            backend.write([replace(tea(), vector=direction(0))])  # of no embedder
        assert not everything(backend)

    def test_an_update_without_a_vector_keeps_the_stored_one(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded())
        backend.update([changed(backend.get([record.id])[0], importance=0.9)])
        assert backend.search(query("nothing", vector=direction(0)), limit=5)[0].parts[
            "cosine"
        ] == pytest.approx(1)

    def test_an_update_can_bring_a_vector_or_drop_it(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        search = query("nothing", vector=direction(1))
        for vector, embedder, expected in (
            (direction(1), EMBEDDER, [1.0]),
            (direction(2), EMBEDDER, [0.0]),
            (None, None, []),
            (direction(1), EMBEDDER, [1.0]),
            (direction(1), "other@1/8", []),
            (None, EMBEDDER, []),  # the stored one is of another embedder: nothing to keep
        ):
            current = backend.get([record.id])[0]
            backend.update([changed(current, vector=vector, embedder=embedder)])
            assert [hit.parts["cosine"] for hit in backend.search(search, limit=5)] == expected
        assert backend.get([record.id])[0].embedder is None

    def test_another_vector_alone_is_no_new_version(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded(metadata={"n": 1}))
        for embedder in (EMBEDDER, "other@1/8", EMBEDDER):
            vector = direction(1)
            (result,) = backend.update([changed(record, vector=vector, embedder=embedder)])
            assert result.version == 1
            assert backend.get([record.id]) == (replace(record, embedder=embedder),)
            assert len(backend.versions(record.id)) == 1
            (event,) = (row.event for row in backend.audit.tail(1, op="memory.update"))
            assert (event["version_before"], event["version_after"]) == (1, 1)
            found = backend.search(query("nothing", vector=vector, embedder=embedder), limit=5)
            assert [hit.parts["cosine"] for hit in found] == [pytest.approx(1.0)]
        backend.update([changed(record, vector=direction(2), importance=0.9)])
        assert [(v.version, v.importance) for v in backend.versions(record.id)] == [(1, 0.5), (2, 0.9)]

    # Audit

    def test_events_are_written_with_the_change_and_hold_no_content(self, backend: MemoryBackend) -> None:
        record = tea("canary-content", user="canary-user", source=Source(session_id="canary-session"))
        event = AuditEvent(
            "memory.add",
            user_id="canary-user",
            family=record.family,
            record_id=record.id,
            version_after=1,
            before="canary-content",
            after="canary-after",
            reason="canary reason",
            source_class="user",
            agent_id="text2sql",
            session_id="canary-session",
            run_id="run-1",
            detail={"cosine_milli": 970, "note": "canary détail", "big": 2**60, "none": None, "yes": True},
        )
        backend.batch(Commit((Change(record),), (event,)))
        row = backend.audit.tail(1, op="memory.add")[0]
        assert not [c for c in CANARIES if c in row.payload.decode() or c in str(row)]
        told = row.event
        assert told == told | {
            "event_id": event.id,
            "record_id": record.id,
            "version_after": 1,
            "reason": "redacted",
            "agent_id": "text2sql",
            "run_id": backend.audit.run_pseudonym("canary-user", "run-1"),
            "detail": dict(event.detail, note="redacted", big=str(2**60)),
        }
        assert told["commit_before"] != told["commit_after"]
        assert backend.audit.tail(5, user_id="canary-user", record_id=record.id)[-1] == row
        assert not backend.audit.tail(5, user_id="somebody else")

    def test_convenient_changes_are_in_the_audit_log_too(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        backend.update([changed(record, content="likes black tea")])
        backend.delete([record.id])
        rows = backend.audit.tail(10, record_id=record.id)
        assert [row.op for row in rows] == ["memory.write", "memory.update", "memory.delete"]
        events = [row.event for row in rows]
        assert [(e["version_before"], e["version_after"]) for e in events] == [(None, 1), (1, 2), (2, 3)]
        assert events[0]["commit_after"] == events[1]["commit_before"]
        assert events[1]["commit_after"] == events[2]["commit_before"]
        assert len({event["subject"] for event in events}) == 1

    def test_the_audit_log_is_a_gapless_chain(self, backend: MemoryBackend) -> None:
        for number in range(5):
            backend.write([tea(f"tea {number}a"), tea(f"tea {number}b")])
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)

    def test_the_access_log_says_who_saw_what(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        seen = [
            Access("memory.search", NOW, "alice", "text2sql", "canary-session", "run-1", record.id, rank, 0.5)
            for rank in (1, 2)
        ]
        backend.audit.record_access([*seen, Access("inject", NOW + 1, "bob", record_id="other")])
        rows = backend.audit.accesses(10, record_id=record.id)
        assert [(r.op, r.agent_id, r.run_id, r.rank, r.score_milli) for r in rows] == [
            ("memory.search", "text2sql", "run-1", 1, 500),
            ("memory.search", "text2sql", "run-1", 2, 500),
        ]
        assert "canary" not in str(rows)
        assert "alice" not in str(rows)
        assert [r.op for r in backend.audit.accesses(10)] == ["memory.search", "memory.search", "inject"]
        assert [r.record_id for r in backend.audit.accesses(10, user_id="bob")] == ["other"]

    # Many at once

    def test_threads_that_write_and_search_lose_nothing(self, backend: MemoryBackend) -> None:
        def work(thread: int) -> None:
            for number in range(8):
                content = f"tea of thread{thread} number{number}"
                backend.write([embedded(content, user=f"user {thread % 2}", axis=number)])
                found = backend.search(
                    query(f"thread{thread}", user=f"user {thread % 2}", vector=direction(number)), limit=99
                )
                assert content in contents(found)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert backend.count(Filter()) == 64
        assert_chain(backend.audit.tail(1000), backend.audit.log_id)

    def test_of_threads_that_change_one_record_each_wins_once(self, backend: MemoryBackend) -> None:
        count_up_together([backend])

    # Itself

    def test_it_says_how_it_is(self, backend: MemoryBackend) -> None:
        health = backend.health()
        assert health.ok
        assert health.name == backend.name
        assert isinstance(backend, MemoryBackend)
        json.dumps(health.details)

    def test_it_can_be_closed_twice(self, backend: MemoryBackend) -> None:
        backend.write([tea()])
        backend.close()
        backend.close()


class PersistentBackendContract(BackendContract):
    """More promises, for backends with records that outlive the process."""

    def test_everything_survives_reopening(self, backend: MemoryBackend, reopen: Reopen) -> None:
        record = embedded(metadata={"茶": [1, 2.5]})
        other = tea("other tea", subject="s", attribute="a")
        backend.write([record, other])
        backend.update([changed(other, content="changed tea")])
        backend.audit.record_access([Access("memory.search", NOW, "alice", record_id=record.id)])
        before = everything(backend), backend.versions(other.id), backend.audit.tail(100)
        found = backend.search(query(vector=direction(0)), limit=5)
        accesses, log_id = backend.audit.accesses(10), backend.audit.log_id
        backend.close()
        again = reopen()
        assert (everything(again), again.versions(other.id), again.audit.tail(100)) == before
        assert again.search(query(vector=direction(0)), limit=5) == found
        assert (again.audit.accesses(10), again.audit.log_id) == (accesses, log_id)
        again.write([tea("one more")])
        with pytest.raises(Conflict):
            again.write([tea("something", subject="s", attribute="a")])
        assert_chain(again.audit.tail(1000), log_id)
        assert again.health().persistent
        again.close()

    def test_two_handles_see_each_others_changes_at_once(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        other = reopen()
        search = query(vector=direction(0))
        for writer, reader in ((backend, other), (other, backend)) * 3:
            record = embedded()
            assert not reader.search(search, limit=5)
            writer.write([record])
            assert [{"cosine", "bm25"} <= set(hit.parts) for hit in reader.search(search, limit=5)] == [True]
            reader.update([changed(record, content="likes tea most", vector=direction(1))])
            assert writer.search(search, limit=5)[0].parts["cosine"] == pytest.approx(0)
            assert writer.get([record.id])[0].content == "likes tea most"
            with pytest.raises(Conflict):
                writer.update([changed(record, content="too late")])
            writer.delete([record.id])
            assert not reader.search(search, limit=5)
            assert reader.get([record.id])[0].status == "deleted"
        assert_chain(other.audit.tail(1000), backend.audit.log_id)
        other.close()

    def test_handles_that_write_at_the_same_time_lose_nothing(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        with three(backend, reopen) as handles:

            def work(number: int) -> None:
                handles[number % 3].write([tea(f"tea {number}", user=f"user {number % 5}")])

            with ThreadPoolExecutor(6) as pool:
                list(pool.map(work, range(60)))
            assert [handle.count(Filter()) for handle in handles] == [60, 60, 60]
            assert_chain(handles[1].audit.tail(1000), backend.audit.log_id)

    def test_of_handles_that_change_one_record_each_wins_once(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("decides across handles")
        with three(backend, reopen) as handles:
            count_up_together(handles)

    def test_of_handles_that_write_one_wording_only_one_succeeds(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("decides across handles")
        with three(backend, reopen) as handles, ThreadPoolExecutor(6) as pool:

            def write(number: int) -> bool:
                with contextlib.suppress(Conflict):
                    return bool(handles[number % 3].write([tea(f"tea {number // 6}")]))
                return False

            assert sum(pool.map(write, range(60))) == 10
            assert backend.count(Filter()) == 10

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
    def test_a_commit_cut_off_by_a_kill_is_there_whole_or_not_at_all(
        self, backend: MemoryBackend, reopen: Reopen
    ) -> None:
        self.skip_where_limited("is whole after a kill")
        backend.close()
        acknowledged = b"".join(_killed_while_writing_threes(reopen, seconds) for seconds in (0, 0.02, 0.05))
        again = reopen()
        threes = {number: again.count(Filter(subject=number)) for number in acknowledged.decode().split()}
        assert threes
        assert set(threes.values()) == {3}
        assert again.count(Filter()) % 3 == 0
        again.close()


def _killed_while_writing_threes(reopen: Reopen, seconds: float) -> bytes:
    """The names of the commits that a process was told are stored, before it was killed."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            _write_threes(reopen(), tell)
        finally:
            os._exit(1)
    os.close(tell)
    try:
        received = os.read(told, 1 << 16)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while chunk := os.read(told, 1 << 16):
            received += chunk
    finally:
        os.close(told)
    return received


def _write_threes(backend: MemoryBackend, tell: int) -> None:
    for number in count():
        name = f"{os.getpid()}-{number}"
        backend.write([tea(f"{name} tea {part}", subject=name) for part in range(3)])
        os.write(tell, f"{name} ".encode())


def assert_chain(rows: Sequence[AuditRow], log_id: str) -> None:
    """The rows are a whole log: gapless from 1, and each hash as it must be."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    previous = GENESIS
    for row in rows:
        assert row.prev_hash == previous
        assert row.hash == row_hash(log_id, previous, row.payload)
        previous = row.hash
