"""Versions in time: what was valid when, what decided it, and going back."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import Conflict, InvalidContent, RecordNotFound
from supervisor_memory.model.records import Record
from supervisor_memory.model.versions import valid_at
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.testing.ports import record
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0
LOVE, HATE = "I love Chinese food.", "I hate Chinese food."


@pytest.fixture(params=IN_PROCESS)
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        yield SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=clock)


@pytest.fixture
def quick(clock: FixedClock) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), clock=clock)


def texts(found: object) -> list[str]:
    assert isinstance(found, (list, tuple))
    return [each.content for each in found]


def test_the_past_is_found_as_it_was_and_the_present_as_it_is(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    id_ = memory.write(LOVE, user_id="ada").id
    clock.forward(days=2)
    memory.update(id_, content=HATE)
    clock.forward(days=2)

    def found(as_of: float | None) -> list[str]:
        hits = memory.search("Chinese food", user_id="ada", threshold=0, as_of=as_of)
        assert texts(memory.get_all(user_id="ada", as_of=as_of)) == [hit.record.content for hit in hits]
        return [hit.record.content for hit in hits]

    assert found(MONDAY - 1) == []
    assert found(MONDAY + DAY) == [LOVE]
    assert found(MONDAY + 3 * DAY) == found(None) == [HATE]
    assert memory.get(id_, as_of=datetime.fromtimestamp(MONDAY + DAY, UTC)).content == LOVE
    with pytest.raises(RecordNotFound, match="did not hold at that time"):
        memory.get(id_, as_of=MONDAY - 1)


def test_history_tells_when_each_version_held_when_it_was_recorded_and_what_decided_it(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    id_ = memory.write(LOVE, user_id="ada", created_at=MONDAY - DAY).id
    clock.forward(days=1)
    memory.update(id_, content=HATE, user_id="ada")
    memory.delete(id_)
    one, two, three = memory.history(id_)
    assert [one.content, two.content, three.status] == [LOVE, HATE, "deleted"]
    assert (one.valid_from, one.valid_to) == (MONDAY - DAY, MONDAY + DAY)
    assert (two.valid_from, two.valid_to) == (MONDAY + DAY, MONDAY + DAY)
    assert [(v.op, v.actor) for v in (one, two, three)] == [
        ("add", "supervisor"),
        ("update", "supervisor"),
        ("delete", "operator"),
    ]
    assert all(version.recorded_at is not None for version in (one, two, three))


def test_what_was_replaced_by_another_record_is_found_in_its_time(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    memory.write("GMV excludes refunds.", user_id="ada", source_class="agent")
    clock.forward(days=2)
    memory.write("GMV includes refunds.", user_id="ada")  # the user is trusted more, and takes its place
    assert texts(memory.get_all(user_id="ada")) == ["GMV includes refunds."]
    assert texts(memory.get_all(user_id="ada", as_of=MONDAY + DAY)) == ["GMV excludes refunds."]
    (hit,) = memory.search("GMV refunds", user_id="ada", threshold=0, as_of=MONDAY + DAY)
    assert hit.record.content == "GMV excludes refunds."


def test_looking_back_brings_nothing_deleted_and_nothing_of_another_user(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    gone = memory.write(LOVE, user_id="ada").id
    memory.write("I love tea.", user_id="bo")
    clock.forward(days=1)
    memory.delete(gone)
    assert memory.get_all(user_id="ada", as_of=MONDAY) == []
    assert not memory.search("love food tea", user_id="ada", threshold=0, as_of=MONDAY)


def test_looking_back_by_meaning_reads_texts_that_were_replaced(clock: FixedClock) -> None:
    memory = SupervisorMemory(Settings(), embedder=HashingEmbedder(), clock=clock)
    id_ = memory.write("The server room is on the third floor.", user_id="ada").id
    clock.forward(days=1)
    memory.update(id_, content="The server room has moved to Leeds.")
    (hit,) = memory.search("third floor server room", user_id="ada", threshold=0, as_of=MONDAY)
    assert hit.record.content.endswith("third floor.")
    assert hit.parts["cosine"] > 0.5


def test_what_had_expired_by_then_was_not_valid_any_more() -> None:
    short = record("soon over", expires_at=MONDAY + DAY, valid_from=MONDAY)
    assert valid_at([short], MONDAY) is not None
    assert valid_at([short], MONDAY + 2 * DAY) is None


@pytest.mark.parametrize(
    "as_of", ["2026-01-05", "2026-01-05T23:00:00", str(MONDAY + 3_600), date(2026, 1, 5), MONDAY + 3_600]
)
def test_a_moment_may_be_written_as_people_do(
    memory: SupervisorMemory, clock: FixedClock, as_of: float | date | str
) -> None:
    id_ = memory.write(LOVE, user_id="ada", created_at=MONDAY).id
    clock.forward(days=2)
    memory.update(id_, content=HATE)
    assert memory.get(id_, as_of=as_of).content == LOVE
    assert texts(memory.get_all(user_id="ada", as_of=as_of)) == [LOVE]
    (hit,) = memory.search("Chinese food", user_id="ada", threshold=0, as_of=as_of)
    assert hit.record.content == LOVE


@pytest.mark.parametrize("as_of", ["yesterday", float("nan"), True, 1e20])
def test_a_time_that_is_none_is_refused(quick: SupervisorMemory, as_of: object) -> None:
    with pytest.raises(InvalidContent, match="as_of"):
        quick.search("tea", user_id="ada", as_of=as_of)  # type: ignore[arg-type]  # a stranger's


def test_reverting_writes_a_new_version_with_the_old_words(
    memory: SupervisorMemory, clock: FixedClock
) -> None:
    id_ = memory.write(LOVE, user_id="ada").id
    clock.forward(days=1)
    memory.update(id_, content=HATE, metadata={"tags": ["food"]})
    clock.forward(days=1)
    done = memory.revert(id_, version=1, user_id="ada")
    assert (done.status, done.version) == ("updated", 3)
    now = memory.get(id_)
    assert (now.content, now.tags, now.version) == (LOVE, (), 3)
    assert texts(memory.history(id_)) == [LOVE, HATE, LOVE]
    assert texts(memory.get_all(user_id="ada", as_of=MONDAY + 1.5 * DAY)) == [HATE]
    (hit,) = memory.search("love food", user_id="ada")
    assert hit.record.content == LOVE
    row = memory.backend.audit.tail(1, op="revert")[0].event
    assert (row["reason"], row["version_before"], row["version_after"]) == ("to-version-1", 2, 3)


def test_reverting_to_what_is_current_is_skipped(memory: SupervisorMemory) -> None:
    id_ = memory.write(LOVE, user_id="ada").id
    memory.update(id_, content=HATE)
    for _ in range(2):
        memory.revert(id_, version=1)
    assert memory.revert(id_, version=3).reason == "is-current"
    assert len(memory.history(id_)) == 3


def test_what_cannot_be_reverted_says_why_and_what_can(quick: SupervisorMemory) -> None:
    id_ = quick.write(LOVE, user_id="ada").id
    quick.update(id_, content=HATE)
    with pytest.raises(RecordNotFound, match="has no version 7; it can go back to 1, 2"):
        quick.revert(id_, version=7)
    with pytest.raises(InvalidContent):
        quick.revert(id_, version=True)
    wrong = id_[:-1] + ("0" if id_[-1] != "0" else "1")
    with pytest.raises(RecordNotFound, match=f"the nearest known are {id_}"):
        quick.revert(wrong, version=1, user_id="ada")
    with pytest.raises(RecordNotFound) as of_another:
        quick.revert(id_, version=1, user_id="bo")
    assert id_ not in str(of_another.value).replace(f"{id_!r}", "")
    quick.delete(id_)
    with pytest.raises(RecordNotFound, match=r"was deleted; bring it back with `memory.review.restore`"):
        quick.revert(id_, version=1)
    quick.erase(user_id="ada", confirm=True)
    with pytest.raises(RecordNotFound, match="there is no record"):
        quick.revert(id_, version=1)


def test_reverting_into_the_words_of_another_record_is_refused(quick: SupervisorMemory) -> None:
    first = quick.write("The office is in Leeds.", user_id="ada").id
    quick.update(first, content="The office is in York.")
    beside = {"strategy": "keep-both"}
    second = quick.write("The office is in Leeds.", user_id="ada", metadata=beside, kind="domain-facts").id
    assert second != first
    with pytest.raises(Conflict) as refused:
        quick.revert(first, version=1)
    assert refused.value.facts["record_id"] == second


def test_an_unknown_id_is_answered_with_the_nearest_of_that_user(quick: SupervisorMemory) -> None:
    mine, others = quick.write(LOVE, user_id="ada").id, quick.write(LOVE, user_id="bo").id
    calls = (
        lambda id_: quick.get(id_, user_id="ada"),
        lambda id_: quick.update(id_, content="x", user_id="ada"),
        lambda id_: quick.delete(id_, user_id="ada"),
        lambda id_: quick.history(id_, user_id="ada"),
    )
    for call in calls:
        with pytest.raises(RecordNotFound) as raised:
            call(mine[:-2] + "zz")
        assert raised.value.facts["nearest"] == (mine,)
        with pytest.raises(RecordNotFound) as of_another:
            call(others[:-2] + "zz")
        assert others not in of_another.value.facts["nearest"]
    with pytest.raises(RecordNotFound, match=r"there is no record 'x' of user 'nobody'$"):
        quick.get("x", user_id="nobody")


def test_a_deleted_record_is_restored_as_it_was(memory: SupervisorMemory, clock: FixedClock) -> None:
    id_ = memory.write(LOVE, user_id="ada").id
    memory.delete(id_)
    clock.forward(days=1)
    done = memory.review.restore(id_, reviewer="rita")
    assert (done.status, done.reason) == ("updated", "restored")
    (hit,) = memory.search("Chinese food", user_id="ada")
    assert (hit.record.content, hit.record.version) == (LOVE, 3)
    assert memory.review.restore(id_, reviewer="rita").reason == "is-active"
    assert memory.history(id_)[-1].actor == "rita"


def test_a_record_whose_place_is_taken_is_not_restored(quick: SupervisorMemory) -> None:
    gone = quick.write(LOVE, user_id="ada").id
    quick.delete(gone)
    again = quick.write(LOVE, user_id="ada").id
    with pytest.raises(Conflict) as refused:
        quick.review.restore(gone, reviewer="rita")
    assert refused.value.facts["record_id"] == again


def test_versions_in_any_order_of_time_have_one_answer_at_each_moment() -> None:
    base = record("a", valid_from=MONDAY)
    back = Record(**{**{n: getattr(base, n) for n in Record.__slots__}, "content": "b", "version": 2,
                     "content_hash": "", "valid_from": MONDAY - DAY})  # fmt: skip
    assert [getattr(valid_at([base, back], when), "content", None) for when in
            (MONDAY - 2 * DAY, MONDAY - DAY / 2, MONDAY)] == [None, "b", "b"]  # fmt: skip
