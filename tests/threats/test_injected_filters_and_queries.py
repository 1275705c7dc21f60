"""What stands in a filter or a question is compared, never run: SQL, MATCH syntax, JSON paths, patterns."""

from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import ConfirmationRequired, InvalidContent, SupervisorMemoryError
from supervisor_memory.language.terms import terms
from supervisor_memory.model.arguments import as_filter
from supervisor_memory.model.records import Filter, Kind, Query, Record, Wanted
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.records import EMBEDDER, NOW, direction, tea, with_vector
from tests.cases import every_case
from tests.threats.conftest import EXAMPLES

INJECTIONS = (
    *("x') OR '1'='1", "x' OR 1=1 --", "'; DROP TABLE records; --", '") OR 1=1 --', "%", "_", "*", "ada' --"),
    *("$.content", "$[*]", "json_extract(data,'$')", "' UNION SELECT data FROM records --", "\x00", "\ud800"),
    *('{"$gt": ""}', "{content ns}:secret", "ns:secret", '"', '""', '"tea', "tea OR secret", "tea NOT x"),
    *("NEAR(tea secret)", "tea*", "^tea", "-tea", "+tea", "(tea", "tea)", "a AND", "AND", "[", "\\", "*:*"),
)
hostile = st.sampled_from(INJECTIONS) | st.text(max_size=40)
queries = hostile | st.lists(hostile, max_size=4).map(" ".join)
values = st.none() | hostile
some = st.none() | st.lists(hostile, max_size=3).map(tuple)
made_up = settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def of(user: str, backend: MemoryBackend) -> Record:
    (record,) = backend.list(Filter(user_id=user), limit=9)
    return record


@pytest.fixture
def two_users(backend: MemoryBackend) -> MemoryBackend:
    held: dict[str, Any] = {"tags": ("%", '"tea', "tea"), "metadata": {"a": "x' OR 1=1 --", "x.y": "*"}}
    backend.write([with_vector(tea("tea", user="ada", **held), direction(0))])
    backend.write([with_vector(tea("secret tea", user="bo", subject="s", attribute="a"), direction(0))])
    return backend


@made_up
@given(text=queries, data=st.data())
def test_any_question_of_one_user_finds_nothing_of_another(
    two_users: MemoryBackend, text: str, data: st.DataObject
) -> None:
    asked = data.draw(st.sampled_from((terms(text), tuple(text.split()), (text,))))
    found = two_users.search(Query(text, Filter("ada"), asked, now=NOW), limit=9)
    assert {hit.record.user_id for hit in found} <= {"ada"}
    near = two_users.search(Query(text, Filter("ada"), asked, direction(0), EMBEDDER, NOW), limit=9)
    assert {hit.record.user_id for hit in near} == {"ada"}


@made_up
@given(
    where=st.builds(
        Filter,
        user_id=st.just("ada"),
        families=some,
        tasks=some,
        kinds=some,
        statuses=some,
        ids=some,
        session_id=values,
        content_hash=values,
        subject=values,
        attribute=values,
        not_embedded_by=values,
        tags=some,
        metadata=st.none()
        | st.lists(st.builds(Wanted.of, st.sampled_from(("a", "x.y")), hostile)).map(tuple),
    )
)
def test_any_value_in_a_filter_is_only_compared(two_users: MemoryBackend, where: Filter) -> None:
    expected = [of("ada", two_users)] if where.matches(of("ada", two_users)) else []
    assert list(two_users.list(where, limit=9)) == expected
    assert two_users.count(where) == len(expected)
    assert two_users.count(Filter(user_id="bo")) == 1


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | hostile
    | st.binary(max_size=3)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    max_leaves=6,
)
where = st.dictionaries(
    st.sampled_from(("kind", "tags", "since", "until", "metadata", "user_id", "$or")) | hostile,
    ANYTHING,
    max_size=3,
)


@settings(max_examples=EXAMPLES * 8, deadline=None)
@given(asked=where | ANYTHING)
def test_whatever_is_asked_for_is_a_filter_of_nobody_in_particular_or_refused(asked: Any) -> None:
    found, told = filter_or_refusal(asked)
    if found is None:
        assert 10 < len(told) < 400
    else:
        assert (found.user_id, found.ids, found.session_id) == (None, None, None)
        assert found.statuses == ("active",)
        assert hash(found) == hash(as_filter(asked))


@made_up
@given(asked=where)
def test_what_a_stranger_asks_for_leads_to_no_other_user(two_users: MemoryBackend, asked: Any) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=two_users)
    if filter_or_refusal(asked)[0] is None:
        with pytest.raises(InvalidContent):
            memory.search("tea", user_id="ada", where=asked)
        return
    found = [hit.record for hit in memory.search("tea", user_id="ada", where=asked, threshold=0)]
    for records in (found, memory.get_all(user_id="ada", where=asked)):
        assert {record.user_id for record in records} <= {"ada"}


def filter_or_refusal(asked: Any) -> tuple[Filter | None, str]:
    try:
        return as_filter(asked), ""
    except InvalidContent as error:
        return None, str(error)


@made_up
@given(text=queries)
def test_any_question_is_answered(two_users: MemoryBackend, text: str) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=two_users)
    hits = memory.search(text, user_id="ada", threshold=0)
    assert {hit.record.user_id for hit in hits} <= {"ada"}
    assert not hits.degraded


@every_case(
    "where",
    [
        Filter(),
        Filter(families=("user_profile",)),
        Filter(kinds=get_args(Kind)),
        Filter(tasks=(None,)),
        Filter(statuses=None),
        Filter(content_hash="x"),
        Filter(subject="s"),
        Filter(not_embedded_by="x"),
    ],
)
def test_a_deletion_that_names_neither_user_nor_ids_nor_session_is_refused(
    two_users: MemoryBackend, where: Filter
) -> None:
    with pytest.raises(ConfirmationRequired):
        two_users.delete(where)
    assert two_users.count(Filter()) == 2


@every_case(
    "nothing",
    [[], (), "", [""], Filter(ids=()), Filter(user_id=""), Filter(session_id=""), Filter(ids=("",))],
)
def test_a_deletion_of_nothing_deletes_nothing(two_users: MemoryBackend, nothing: Any) -> None:
    assert two_users.delete(nothing) == 0
    assert two_users.count(Filter()) == 2


def test_all_of_a_user_is_a_verb_of_its_own_and_asks_back(two_users: MemoryBackend) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=two_users)
    for call in (memory.delete_all, memory.erase):
        unclear: Any
        for unclear in (False, "yes", 1):
            with pytest.raises(ConfirmationRequired):
                call(user_id="ada", confirm=unclear)
    with pytest.raises(SupervisorMemoryError):
        memory.delete("", user_id="ada")
    assert memory.delete_all(user_id="ada", confirm=True) == 1
    assert two_users.count(Filter()) == 1
