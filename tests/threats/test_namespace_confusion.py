"""No user, family or task is taken for another, however alike their names are."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import IdentityError, MissingUser
from supervisor_memory.model.records import Filter, Record, Scope, new_id
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.records import direction, query, tea, with_vector
from tests.cases import every_case
from tests.opened import opened
from tests.threats.conftest import EXAMPLES, STORES

ALIKE = (
    *("1", "12", "11", "a", "A", "user", "Users", "user/1", "user:1", "user.1", "user~1", "%", "_", "*", "?"),
    *("[a]", "a*", "..", "../a", "a\\", "a'", 'a"', "a;--", "K", "k", "а", "ａ", "é", "e", "none", "None 1"),
    *('["a"]', "a,b", "{}", "$", "a=b", "=61", "~", "task t", "t", "true", "0", "00", "1.0", "١", "用户"),
)
FAMILIES = ("user_profile", "user", "user_profile.", "User_profile")
NASTY = st.sampled_from(ALIKE) | st.text(alphabet="ab1_%-*?[]/ .~'\"\\éK", min_size=1, max_size=6)
places = st.tuples(NASTY, st.sampled_from(FAMILIES), st.none() | NASTY)


def record_in(place: tuple[str, str, str | None]) -> Record:
    user, family, task = place
    namespace = (family, user) if task is None else (family, user, task)
    return with_vector(replace(tea(), id=new_id(), namespace=namespace), direction(0))


@pytest.mark.parametrize("name", STORES)
@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(taken=st.lists(places, min_size=2, max_size=6, unique=True))
def test_each_place_holds_what_was_put_there_and_nothing_else(
    name: str, taken: list[tuple[str, str, str | None]]
) -> None:
    with TemporaryDirectory() as directory, opened(name, Path(directory)) as backend:
        _each_place_holds_its_own(backend, {place: record_in(place) for place in taken})


def _each_place_holds_its_own(
    backend: MemoryBackend, records: dict[tuple[str, str, str | None], Record]
) -> None:
    backend.write(list(records.values()))
    for (user, family, task), record in records.items():
        where = Filter(user_id=user, families=(family,), tasks=(task,))
        assert [found.id for found in backend.list(where, limit=99)] == [record.id]
        assert backend.count(where) == 1
        asked = query(user=user, families=(family,), tasks=(task,), vector=direction(0))
        assert [hit.record.id for hit in backend.search(asked, limit=99)] == [record.id]
        of_user = {each.id for place, each in records.items() if place[0] == user}
        assert {each.id for each in backend.list(Filter(user_id=user), limit=99)} == of_user
    gone = next(iter(records))[0]
    assert backend.delete(Filter(user_id=gone)) == sum(place[0] == gone for place in records)
    left = {each.id for each in backend.list(Filter(), limit=99)}
    assert left == {each.id for place, each in records.items() if place[0] != gone}


def test_a_user_whom_nobody_knows_holds_nothing_whatever_the_name_looks_like(backend: MemoryBackend) -> None:
    backend.write([record_in((user, "user_profile", None)) for user in ALIKE])
    for stranger in (
        "",
        "u",
        "us",
        "use",
        "%%",
        "a%",
        "_%",
        ".*",
        "user/",
        "user_profile",
        "\ud800",
        "a\x00",
    ):
        assert backend.count(Filter(user_id=stranger)) == 0
        assert not backend.search(query(user=stranger, vector=direction(0)), limit=9)
        assert backend.delete(Filter(user_id=stranger)) == 0
    assert backend.count(Filter()) == len(ALIKE)


@settings(
    deadline=None, max_examples=EXAMPLES * 4, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(user=st.text(max_size=8) | st.sampled_from(("\u212a", "e\u0301", "a\u200b", " a", "a\n", "\ufeffa")))
def test_a_name_is_kept_as_it_is_or_refused_with_an_error_of_ours(user: str) -> None:
    try:
        scope = Scope(user)
    except IdentityError:
        return
    assert scope.user_id == user == user.strip()
    assert all(each.isprintable() or each.isspace() for each in user)


@every_case("nobody", [None, "", " ", "null", "undefined", "None", "NaN", 0, False, [], b"ada"])
def test_no_user_is_refused_by_every_verb_and_writes_nothing(backend: MemoryBackend, nobody: Any) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
    kept = memory.write("Ada drinks tea.", user_id="ada").id
    for call in (
        lambda: memory.write("x", user_id=nobody),
        lambda: memory.add("Always use tables.", user_id=nobody),
        lambda: memory.add_many(["x"], user_id=nobody),
        lambda: memory.search("tea", user_id=nobody),
        lambda: memory.get_all(user_id=nobody),
        lambda: memory.delete_all(user_id=nobody, confirm=True),
        lambda: memory.erase(user_id=nobody, confirm=True),
    ):
        with pytest.raises(MissingUser):
            call()
    assert [record.id for record in backend.list(Filter(statuses=None), limit=9)] == [kept]
