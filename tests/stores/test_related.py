"""Walks over a store: two users never meet, what is gone is on no way, and hubs and cycles cost little."""

import os
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query, Record, Seed
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Erases, MemoryBackend, Relates
from supervisor_memory.testing.ports import record
from tests.opened import opened

WALKING = ["in_memory", "json", "sqlite"]
USERS = ("ada", "bo", "cy")
WALKS = int(os.environ.get("WALKS", "1500"))
"""`make slow` asks for ten thousand."""


def asked(user_id: str, text: str = "who?") -> Query:
    return Query(text, Filter(user_id), terms(text), now=4_000_000_000.0)


def near(backend: MemoryBackend, text: str, user_id: str, limit: int = 20) -> Sequence[Record]:
    assert isinstance(backend, Relates)
    found = backend.related([Seed(text)], asked(user_id), limit=limit)
    return [hit.record for hit in found]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", WALKING)
def test_walks_of_three_users_who_name_the_same_things_never_meet(name: str, tmp_path: Path) -> None:
    rng = random.Random(22)
    things = [f"thing_{number}" for number in range(40)]
    with opened(name, tmp_path) as backend:
        assert isinstance(backend, Relates)
        own: dict[str, list[Record]] = {user: [] for user in USERS}
        for number in range(240):
            user = USERS[number % len(USERS)]
            told = f"{rng.choice(things)} feeds {rng.choice(things)} in step {number}"
            own[user].append(record(told, user_id=user))
        backend.write([each for some in own.values() for each in some])
        walks, foreign = WALKS // len(WALKING) + 1, 0
        found = 0
        for _ in range(walks):
            user = rng.choice(USERS)
            seed = rng.choice(own[rng.choice(USERS)])  # a text of anybody
            hits = backend.related([Seed(seed.content, 1.0, seed.id)], asked(user), limit=10)
            found += len(hits)
            ids = {each.id for each in own[user]}
            foreign += sum(hit.record.user_id != user for hit in hits)
            ways = (joint.record_id for hit in hits for joint in hit.path[1:])
            foreign += sum(id_ not in ids for id_ in ways)
        assert found > walks
        assert foreign == 0


@pytest.mark.parametrize("name", WALKING)
def test_what_was_deleted_waits_or_is_stale_is_on_no_way(name: str, tmp_path: Path) -> None:
    first, middle, last = (
        record("Basket Health is built on fct_orders"),
        record("fct_orders comes out of night_job"),
        record("night_job was written by Ilse Brandt"),
    )
    with opened(name, tmp_path) as backend:
        backend.write([first, middle, last])
        assert {each.id for each in near(backend, first.content, "alice")} >= {middle.id, last.id}
        backend.delete((middle.id,))
        assert {each.id for each in near(backend, first.content, "alice")} == {first.id}
    with opened(name, tmp_path / "other") as backend:
        backend.write([first, record(middle.content, status="pending"), last])
        assert {each.id for each in near(backend, first.content, "alice")} == {first.id}


@pytest.mark.parametrize("name", WALKING)
def test_a_seed_without_weight_is_not_found_though_a_way_goes_over_it(name: str, tmp_path: Path) -> None:
    chain = [
        record("Basket Health is built on fct_orders"),
        record("fct_orders comes out of night_job"),
        record("night_job was written by Ilse Brandt"),
    ]
    first, middle, last = chain
    with opened(name, tmp_path) as backend:
        backend.write(chain)
        assert isinstance(backend, Relates)
        seeds = [Seed(first.content, 1.0, first.id), Seed("", 0.0, middle.id)]
        assert [hit.record.id for hit in backend.related(seeds, asked("alice"), limit=1)] == [last.id]
        assert not backend.related(seeds[1:], asked("alice"), limit=5)


@pytest.mark.parametrize("name", WALKING)
def test_what_was_erased_is_gone_from_every_way(name: str, tmp_path: Path) -> None:
    with opened(name, tmp_path) as backend:
        backend.write(
            [record("Mara runs depot_9", user_id="ada"), record("depot_9 is in Ghent", user_id="ada")]
        )
        assert near(backend, "depot_9", "ada")
        assert isinstance(backend, Erases)
        backend.erase("ada", at=5_000_000_000.0)
        assert not near(backend, "depot_9", "ada")


@pytest.mark.parametrize("name", WALKING)
def test_a_changed_record_is_joined_by_its_new_text_alone(name: str, tmp_path: Path) -> None:
    one, other = record("Mara runs depot_9"), record("depot_9 is in Ghent")
    with opened(name, tmp_path) as backend:
        backend.write([one, other])
        backend.update([Change(replace(other, content="quay_7 is in Ghent", content_hash=""), expects=1)])
        assert other.id not in {each.id for each in near(backend, one.content, "alice")}
        assert other.id in {each.id for each in near(backend, "quay_7", "alice")}


def test_a_path_names_what_joins_its_records() -> None:
    backend = InMemoryBackend()
    chain = [
        record("Basket Health is built on fct_orders"),
        record("fct_orders comes out of the night_job"),
        record("the night_job was written by Ilse Brandt"),
    ]
    backend.write(chain)
    found = backend.related([Seed(chain[0].content, 1.0, chain[0].id)], asked("alice"), limit=5)
    way = {hit.record.id: hit.path for hit in found}[chain[2].id]
    assert [(joint.record_id, joint.name) for joint in way] == [
        (chain[0].id, "fct_orders"),
        (chain[1].id, "night_job"),
    ]


def test_a_record_of_sixty_kilobytes_of_names_is_walked_from_in_linear_time() -> None:
    backend = InMemoryBackend()
    long = " ".join(f"name_{n}" for n in range(6_000))
    backend.write([record(long), record("name_3 is kept by Ann"), record("x" * 10_240)])
    begun = time.process_time()
    found = near(backend, long, "alice")
    assert time.process_time() - begun < 2.0
    assert "name_3 is kept by Ann" in {each.content for each in found}
