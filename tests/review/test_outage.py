"""Reviewing while the store is out of reach: what is decided waits like everything else."""

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.model.records import AuditEvent, Filter, Source
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stages.insert.again import decide_again
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.ports import ports, record
from tests.stores.test_outage import comes_back, memory_over, until
from tests.stores.unreliable import Unreliable

RITA = "rita"
TABLES = "The user wants tables."


def proposed(memory: SupervisorMemory, text: str = TABLES) -> str:
    return memory.write(text, user_id="ada", kind="user-profile", source_class="tool").id


def statuses(store: Unreliable) -> dict[str, str]:
    return {r.content: r.status for r in store.behind.list(Filter(user_id="ada", statuses=None), limit=99)}


def waits(memory: SupervisorMemory) -> list[str]:
    """What waits for review, as far as the store is in reach."""
    try:
        return [each.id for each in memory.review.pending()]
    except BackendUnavailable:
        return []


def test_what_waits_for_a_person_also_waits_for_the_store() -> None:
    store = Unreliable()
    memory = memory_over(store)
    store.how = "refuses"
    id_ = proposed(memory)
    with pytest.raises(BackendUnavailable, match="out of reach"):
        memory.review.pending()  # this machine cannot know of all
    done = memory.review.approve(id_, reviewer=RITA)
    assert (done.status, done.saved, done.applied) == ("added", True, False)
    comes_back(store, memory)
    assert statuses(store) == {TABLES: "active"}
    assert memory.history(id_)[-1].actor == RITA


def test_what_only_the_store_knows_is_decided_when_it_is_back() -> None:
    store = Unreliable()
    memory = memory_over(store)
    id_ = proposed(memory)
    store.how = "refuses"
    for verb in (memory.review.approve, memory.review.reject, memory.review.restore):
        with pytest.raises(BackendUnavailable, match="out of reach"):
            verb(id_, reviewer=RITA)
    comes_back(store, memory)
    assert statuses(store) == {TABLES: "pending"}
    until(lambda: waits(memory) == [id_])
    assert memory.review.approve(id_, reviewer=RITA).applied


def test_a_proposal_that_is_decided_again_still_waits() -> None:
    backend = InMemoryBackend()
    waiting = record(TABLES, kind="user-profile", status="pending", source=Source("tool"))
    commit = Commit((Change(waiting),), (AuditEvent("propose", user_id="alice", record_id=waiting.id),))
    view = ports(backend=backend).deciding()
    for _ in range(2):  # whatever happens in between, it is there once
        decide_again(commit, lambda id_: id_, insert=DEFAULT.insert, view=view)
        assert [each.status for each in backend.versions(waiting.id)] == ["pending"]
