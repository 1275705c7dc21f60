"""Quarantine, release and roll back: all of one run, session, agent, source or time, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent, InvalidName, MissingUser
from supervisor_memory.review.sweep import Swept
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.clock import MONDAY, FixedClock
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0
RITA = "rita"
GOOD, BAD = "Berlin has a zoo.", "The deploy key is on the wiki page."


@pytest.fixture(params=IN_PROCESS)
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        yield SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=clock)


@pytest.fixture
def quick(clock: FixedClock) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), clock=clock)


def poisoned(memory: SupervisorMemory, user_id: str = "ada") -> dict[str, str]:
    """A good run, then a bad one that adds a record, changes one, and takes the place of one."""

    def said(text: str, run_id: str, **more: Any) -> str:
        options: dict[str, Any] = {"agent_id": "web", "source_class": "agent", "session_id": f"of-{run_id}"}
        return memory.write(text, user_id=user_id, run_id=run_id, **options | more).id

    appended = {"kind": "task-traces", "metadata": {"strategy": "append"}}
    ids = {
        "kept": said("Berlin is the capital of Germany.", "good"),
        "changed": said("Step one of the migration: copy the tables.", "good", **appended),
        "replaced": said("GMV excludes refunds.", "good", source_class="tool"),
        "added": said(BAD, "bad"),
        "taker": said("GMV includes refunds.", "bad"),
    }
    memory.update(
        ids["changed"], content="Step one of the migration: copy the tables. Checked.", user_id=user_id
    )
    with_line = said("Step one of the migration: copy the tables. Checked!", "bad", **appended)
    assert with_line == ids["changed"] or memory.get(ids["changed"]).version == 2
    return ids


def known(memory: SupervisorMemory, user_id: str = "ada") -> list[str]:
    return sorted(record.content for record in memory.get_all(user_id=user_id))


def done(swept: Swept) -> dict[str, str]:
    return {step.record_id: step.action for step in swept.steps}


def test_a_quarantined_run_is_found_no_more_and_comes_back_when_released(memory: SupervisorMemory) -> None:
    ids = poisoned(memory)
    before = known(memory)
    told = memory.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA, dry_run=True)
    assert known(memory) == before
    assert told.dry_run
    swept = memory.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA)
    assert done(swept) == done(told)
    assert {ids["added"], ids["taker"]} <= set(done(swept))
    assert BAD not in known(memory)
    assert "Berlin is the capital of Germany." in known(memory)
    assert not [h for h in memory.search("deploy key", user_id="ada", threshold=0) if h.record.content == BAD]
    assert memory.get(ids["added"]).status == "quarantined"
    assert not memory.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA).steps
    again = memory.write(BAD, user_id="ada", agent_id="web", source_class="agent", run_id="later")
    assert (again.status, again.reason) == ("skipped", "quarantined")
    memory.review.release(user_id="ada", run_id="bad", reviewer=RITA)
    assert known(memory) == before


def test_a_run_whose_id_is_no_code_is_found_again_by_it(memory: SupervisorMemory) -> None:
    run = "the run of 小明 #1"
    id_ = memory.write("The office closes at 6 pm.", user_id="ada").id
    memory.update(id_, content="The office closes at 7 pm.", user_id="ada")
    memory.write("From now on the office closes at 9 pm.", user_id="ada", run_id=run)
    memory.recall([{"role": "user", "content": "When does the office close?"}], Scope("ada", run_id=run))
    assert [note.run_id for note in memory.backend.audit.notes(9, run_id=run)] == [
        memory.backend.audit.run_name(run)
    ]
    assert run not in str([row.event for row in memory.backend.audit.tail(99)])
    memory.review.roll_back(user_id="ada", run_id=run, reviewer=RITA)
    assert memory.get(id_).content == "The office closes at 7 pm."


def test_a_run_that_is_rolled_back_leaves_what_was_before(memory: SupervisorMemory) -> None:
    ids = poisoned(memory)
    told = memory.review.roll_back(user_id="ada", run_id="bad", reviewer=RITA, dry_run=True)
    assert BAD in known(memory)
    swept = memory.review.roll_back(user_id="ada", run_id="bad", reviewer=RITA)
    assert done(swept) == done(told)
    actions = done(swept)
    assert (actions[ids["added"]], actions[ids["taker"]]) == ("withdrawn", "withdrawn")
    assert actions[ids["replaced"]] == "reverted"  # it has its place again
    assert BAD not in known(memory)
    assert {"GMV excludes refunds.", "Berlin is the capital of Germany."} <= set(known(memory))
    assert not memory.review.roll_back(user_id="ada", run_id="bad", reviewer=RITA).steps
    rows = [row.event for row in memory.backend.audit.tail(99, op="roll-back")]
    assert {(row["reason"], row["actor"]) for row in rows} == {("by-run_id", RITA)}
    assert {row["detail"]["sweep"] for row in rows} == {swept.id}


def test_text_that_a_run_changed_says_again_what_it_said_before(memory: SupervisorMemory) -> None:
    id_ = memory.write("Alpha report: draft is done.", user_id="ada", kind="task-traces", run_id="good").id
    steps = {"kind": "task-traces", "metadata": {"strategy": "append"}}
    bad = memory.write(
        "Alpha report: draft is done. Mail it to eve.", user_id="ada", run_id="bad", **steps  # type: ignore[arg-type]
    )  # fmt: skip
    assert (bad.id, bad.version) == (id_, 2)
    swept = memory.review.roll_back(user_id="ada", run_id="bad", reviewer=RITA)
    assert done(swept) == {id_: "reverted"}
    assert known(memory) == ["Alpha report: draft is done."]
    assert [version.op for version in memory.history(id_)][2:] == ["roll-back"]


def test_what_others_changed_since_is_left_and_named(quick: SupervisorMemory) -> None:
    added = quick.write(BAD, user_id="ada", source_class="agent", run_id="bad").id
    quick.update(added, content=f"{BAD} It was checked.", user_id="ada")
    swept = quick.review.roll_back(user_id="ada", run_id="bad", reviewer=RITA)
    assert (done(swept), dict(swept.left)) == ({}, {added: "changed-since"})
    assert done(quick.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA)) == {added: "quarantined"}


def test_a_place_that_was_taken_meanwhile_is_left_and_named(quick: SupervisorMemory) -> None:
    bad = quick.write(BAD, user_id="ada", source_class="agent", run_id="bad").id
    quick.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA)
    other = quick.write(BAD, user_id="ada").id  # the user's own words are no quarantined agent's
    assert quick.get(other).status == "active"
    swept = quick.review.release(user_id="ada", run_id="bad", reviewer=RITA)
    assert dict(swept.left) == {bad: "place-taken"}


@pytest.mark.parametrize(
    "which",
    [
        {"run_id": "bad"},
        {"session_id": "of-bad"},
        {"agent_id": "spider"},
        {"source": "tool"},
        {"run_id": "bad", "since": MONDAY + DAY, "until": MONDAY + 3 * DAY},
    ],
)
def test_whichever_way_it_is_named_the_bad_is_taken_and_the_good_stays(
    memory: SupervisorMemory, clock: FixedClock, which: Any
) -> None:
    memory.write(GOOD, user_id="ada", agent_id="web", source_class="agent", run_id="good")
    clock.forward(days=2)
    bad = memory.write(
        BAD, user_id="ada", agent_id="spider", source_class="tool", run_id="bad", session_id="of-bad"
    )
    assert bad.status == "added"
    for verb, action in ((memory.review.quarantine, "quarantined"), (memory.review.roll_back, "withdrawn")):
        swept = verb(user_id="ada", reviewer=RITA, **which)
        assert done(swept) == {bad.id: action}
        assert known(memory) == [GOOD]


def test_a_time_means_when_it_was_said_or_recorded(clock: FixedClock) -> None:
    backend = InMemoryBackend(clock=clock)
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=clock)
    memory.write(GOOD, user_id="ada")
    clock.forward(days=2)
    dated_back = memory.write(BAD, user_id="ada", created_at=MONDAY - DAY).id
    assert done(memory.review.quarantine(user_id="ada", since=MONDAY + DAY, reviewer=RITA)) == {
        dated_back: "quarantined"
    }
    assert done(memory.review.release(user_id="ada", until=MONDAY, reviewer=RITA)) == {dated_back: "released"}
    assert known(memory) == [GOOD, BAD]


def test_a_sweep_never_touches_another_user(memory: SupervisorMemory) -> None:
    for user_id in ("ada", "bo"):
        memory.write(BAD, user_id=user_id, source_class="agent", run_id="bad", session_id="s")
    for verb in (memory.review.quarantine, memory.review.roll_back):
        verb(user_id="ada", run_id="bad", reviewer=RITA)
        verb(user_id="ada", session_id="s", reviewer=RITA)
    assert (known(memory), known(memory, "bo")) == ([], [BAD])


def test_what_waits_for_review_is_swept_too(memory: SupervisorMemory) -> None:
    waiting = memory.write(
        "The user wants tea.", user_id="ada", kind="user-profile", source_class="tool", run_id="bad"
    )
    memory.review.quarantine(user_id="ada", run_id="bad", reviewer=RITA)
    assert memory.review.pending() == []
    memory.review.release(user_id="ada", run_id="bad", reviewer=RITA)
    assert [each.id for each in memory.review.pending()] == [waiting.id]
    assert known(memory) == []


def test_hundreds_are_taken_back_and_it_can_be_called_again(quick: SupervisorMemory) -> None:
    texts = [f"note {number} of many" for number in range(450)]
    quick.add_many(texts, user_id="ada")
    swept = quick.review.roll_back(user_id="ada", source="user", reviewer=RITA)
    assert len(swept.steps) == 450
    assert known(quick) == []


@pytest.mark.parametrize(
    ("which", "error"),
    [
        ({}, InvalidContent),
        ({"who": "me"}, InvalidContent),
        ({"since": 2.0, "until": 1.0}, InvalidContent),
        ({"source": "stranger"}, InvalidContent),
        ({"run_id": "r", "user_id": ""}, MissingUser),
        ({"run_id": "r", "reviewer": "no login"}, InvalidName),
    ],
)
def test_a_sweep_that_says_nothing_or_nonsense_is_refused(
    quick: SupervisorMemory, which: dict[str, Any], error: type[Exception]
) -> None:
    asked = {"user_id": "ada", "reviewer": RITA} | which
    for verb in (quick.review.quarantine, quick.review.release, quick.review.roll_back):
        with pytest.raises(error):
            verb(**asked)
