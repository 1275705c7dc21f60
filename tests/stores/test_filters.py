"""A filter means the same in SQL as in Python, and the three backends answer alike."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor_memory.errors import Conflict
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Query, Record, Source, Wanted, spelled
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import direction, tea
from tests.breadth import examples

USERS = ("alice", "Alice", "%", "1", "12", "a\x00b")
FAMILIES = ("user_profile", "user", SESSION_FAMILY)
TASKS = (None, "t", "T", "t%")
NAMES = (None, "x", "X", "", "茶")
STATUSES = ("active", "pending", "deleted")
KINDS = ("identity", "experience")
TAGS = ("茶", "tea", "te", "Tea", "t'a", 't"a', "\\", "\n\x00", "", "\ud800")
KEYS = ("a", "A", "a.b", "-", "0")
TIMES = (0.0, 1.0, 1.1, 1_767_571_200.123_456, 1_767_571_200.123_457, -5.5)
VALUES = (
    *(None, True, False, 0, 1, -1, 0.0, -0.0, 1.0, 0.1, 1e16, 10**16, 2**53 + 1, float(2**53), 1e300),
    *(
        10**300,
        int(1e300),
        2**64,
        -(2**63),
        "",
        "1",
        "true",
        "null",
        "茶",
        "q\"uo'te",
        "\\",
        "a\nb\x00c",
        "\x7f",
    ),
    *("</memory>", "' OR 1=1 --", "\u2028", "\ue000", "😀"),
)
CONTENTS = ("green tea", "tea", "tea tea cake", "绿茶很好喝", "coffee in the morning", "")

names = st.sampled_from(NAMES)
messages = st.lists(st.sampled_from((*filter(None, NAMES), "1", "2")), max_size=2, unique=True)
times = st.sampled_from(TIMES) | st.floats(-1e11, 1e11)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
values = st.sampled_from(VALUES) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
optional_user = st.none() | st.sampled_from(USERS) | st.text(max_size=3)


def some_of(values: tuple[object, ...]) -> st.SearchStrategy[tuple[object, ...] | None]:
    return st.none() | st.lists(st.sampled_from(values), max_size=3).map(tuple)


metadata = st.dictionaries(
    st.sampled_from((*KEYS, 'b"', "茶")),
    values | st.lists(values, max_size=2) | st.just({"a": 1}),
    max_size=4,
)
wanted_metadata = st.lists(
    st.builds(
        lambda key, some: Wanted.of(key, *some),
        st.sampled_from(KEYS),
        st.lists(values | st.just("\ud800"), min_size=1, max_size=12),
    ),
    max_size=2,
).map(tuple)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    count = draw(st.integers(1, 8))
    return [
        tea(
            draw(st.sampled_from(CONTENTS)),
            id=f"r{number}",
            user=draw(st.sampled_from(USERS)),
            family=draw(st.sampled_from(FAMILIES)),
            task=draw(st.sampled_from(TASKS)),
            kind=draw(st.sampled_from(KINDS)),
            status=draw(st.sampled_from(STATUSES)),
            layer="history",
            subject=draw(names),
            attribute=draw(names),
            source=Source(session_id=draw(names), agent_id=draw(names)),
            ref_id=draw(names),
            joined_ref_ids=tuple(draw(messages)),
            former_ref_ids=tuple(draw(messages)),
            updated_at=draw(st.sampled_from((1.0, 2.0))),
            created_at=draw(times),
            tags=tuple(draw(st.lists(st.sampled_from(TAGS[:-1]), max_size=3))),
            metadata=draw(metadata),
            expires_at=draw(st.sampled_from((None, 5.0, 50.0))),
            **draw(
                st.sampled_from(
                    ({}, {"vector": direction(0), "embedder": "e"}, {"vector": direction(1), "embedder": "e"})
                )
            ),
        )
        for number in range(count)
    ]


BY_CONTENT: dict[str, st.SearchStrategy[Any]] = {
    "tags": st.none() | st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    "since": st.none() | times,
    "until": st.none() | times,
    "metadata": st.none() | wanted_metadata,
}
filters = st.builds(
    Filter,
    user_id=optional_user,
    families=some_of(FAMILIES),
    tasks=some_of(TASKS),
    kinds=some_of(KINDS),
    statuses=some_of(STATUSES),
    ids=some_of(("r0", "r1", "R1", "r9", "\ud800")),
    session_id=names,
    agent_id=names,
    content_hash=st.sampled_from((None, tea("tea").content_hash, "x")),
    subject=names,
    attribute=names,
    not_embedded_by=st.sampled_from((None, "e", "E", "\ud800")),
    layers=some_of(("history", "abstract")),
    expired_by=st.sampled_from((None, 4.0, 5.0, 49.0, 1e300)),
    ref_ids=some_of((*filter(None, NAMES), *map(str, range(12)), "\ud800")),
    **BY_CONTENT,
)
usual = st.builds(Filter, user_id=st.sampled_from(USERS), **BY_CONTENT)
"""Filters that leave some records, so that what they say of metadata is put to the test."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("filters")
    return (base / str(number) for number in range(10**9))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(60)
)
@given(stored=records(), wanted=st.lists(filters | usual, min_size=1, max_size=12))
def test_sql_agrees_with_the_meaning_of_a_filter(
    place: Iterator[Path], stored: list[Record], wanted: list[Filter]
) -> None:
    with closing(SqliteBackend(next(place))) as backend:
        backend.write(stored)
        kept = backend.get([record.id for record in stored])
        for where in (*wanted, *map(of_what_it_holds, kept)):
            expected = sorted(filter(where.matches, kept), key=lambda r: (r.updated_at, r.id), reverse=True)
            assert list(backend.list(where, limit=99)) == expected
            assert backend.count(where) == len(expected)
            if where.user_id is not None:
                vector, now = direction(0) + direction(1), 10.0
                found = backend.search(Query("tea", where, ("tea",), vector, "e", now), limit=99)
                seen = {r.id for r in expected if r.is_visible(now)}
                assert {hit.record.id for hit in found} == {
                    r.id for r in expected if r.id in seen and (r.embedder or "tea" in terms(r.searched_text))
                }


def of_what_it_holds(record: Record) -> Filter:
    """A filter of all that can be said of a record's tags, time and metadata."""
    said = {key: value for key, value in record.metadata.items() if key in KEYS and spelled(value)}
    where = Filter(
        families=(record.family,),
        statuses=None,
        tags=record.tags,
        since=record.created_at,
        until=math.nextafter(record.created_at, math.inf),
        metadata=tuple(Wanted.of(key, value) for key, value in said.items()),
    )
    assert where.matches(record)
    return where


Step: TypeAlias = tuple[str, int, str, tuple[str | None, str | None], int | None]
"""A verb, which record, its content, its subject and attribute, the axis of its vector."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "update", "deactivate", "restore", "delete", "move")),
        st.integers(0, 5),
        st.sampled_from(CONTENTS),
        st.sampled_from(((None, None), ("s", "a"), ("s", "b"))),
        st.sampled_from((None, 0, 1, 2)),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=examples(40))
@given(steps=STEPS)
def test_the_backends_answer_alike_after_any_history(place: Iterator[Path], steps: list[Step]) -> None:
    with ExitStack() as stack:
        backends: list[MemoryBackend] = [
            stack.enter_context(closing(backend))
            for backend in (InMemoryBackend(), JsonBackend(next(place)), SqliteBackend(next(place)))
        ]
        for step in steps:
            outcomes = [outcome(backend, step) for backend in backends]
            assert outcomes[0] == outcomes[1] == outcomes[2]
        states = [state(backend) for backend in backends]
        assert states[0] == states[1] == states[2]
        searches = [search(backend) for backend in backends]
        for other in searches[1:]:
            assert {name: set(parts) for name, parts in other.items()} == {
                name: set(parts) for name, parts in searches[0].items()
            }
            for name, parts in other.items():
                assert parts == pytest.approx(searches[0][name], abs=1e-6)


def outcome(backend: MemoryBackend, step: Step) -> object:
    """Do one step and say how it went."""
    verb, number, content, about, axis = step
    stored = backend.get([f"r{number}"])
    values = {"subject": about[0], "attribute": about[1], "content": content}
    if axis is not None:
        values |= {"vector": direction(axis), "embedder": "e"}  # type: ignore[dict-item]  # two types in one
    if verb == "write" or not stored:
        change = Change(replace(tea(id=f"r{number}"), **values), None)  # type: ignore[arg-type]  # see above
    else:
        updates = {
            "update": values,
            "deactivate": {"status": "stale"},
            "restore": {"status": "active"},
            "delete": {"status": "deleted"},
            "move": {"namespace": ("identity", "alice")},
        }[verb]
        change = Change(replace(stored[0], **updates), stored[0].version)  # type: ignore[arg-type]  # see above
    try:
        return [replace(r, created_at=0.0) for r in backend.batch(Commit((change,))).records]
    except Conflict as conflict:
        return conflict.facts


def state(backend: MemoryBackend) -> object:
    everything = backend.list(Filter(statuses=None), limit=99)
    return everything, [backend.versions(record.id) for record in everything]


def search(backend: MemoryBackend) -> dict[str, dict[str, float]]:
    vector = (direction(0) + 2 * direction(1)) / np.sqrt(np.float32(5))
    found = backend.search(
        Query("", Filter(user_id="alice"), terms("green tea 绿茶"), vector, "e", 0.0), limit=99
    )
    return {hit.record.id: dict(hit.parts) for hit in found}
