"""A store behind a journal goes out of reach and comes back: nothing is lost, nothing is there twice."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendUnavailable, Conflict, InvalidContent
from supervisor_memory.model.records import Filter, Record, content_hash
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.erasing_contract import LATER
from supervisor_memory.testing.records import tea
from tests import programs
from tests.breadth import size
from tests.stores.unreliable import Unreliable

ALICE = Scope("alice", session_id="s1")
SETTINGS = Settings(embedding_model="none")
TABLES = "From now on always answer in tables."
DELAYED = "Delayed means more than 3 days late."


@pytest.fixture
def store() -> Unreliable:
    return Unreliable()


def journal_around(store: Unreliable, path: Path | None = None, **options: Any) -> JournalBackend:
    return JournalBackend(store, path, breaker=Breaker(seconds=0.05), **options)


def memory_over(store: Unreliable, path: Path | None = None, **options: Any) -> SupervisorMemory:
    return SupervisorMemory(SETTINGS, backend=journal_around(store, path, **options))


def journal_of(memory: SupervisorMemory) -> JournalBackend:
    assert isinstance(memory.backend, JournalBackend)
    return memory.backend


def until(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, "it did not come true in time"
        time.sleep(0.01)


def comes_back(store: Unreliable, *memories: SupervisorMemory) -> None:
    store.how = "works"
    for memory in memories:
        until(lambda memory=memory: not any(journal_of(memory).backlog().values()))  # type: ignore[misc]


def texts(store: Unreliable, user_id: str = "alice") -> list[str]:
    return sorted(r.content for r in store.behind.list(Filter(user_id=user_id), limit=999))


def ops(memory: SupervisorMemory) -> list[str]:
    return [row.op for row in memory.backend.audit.tail(999)]


# While it is away


@pytest.mark.parametrize("how", ["refuses", "hangs"])
def test_what_is_said_meanwhile_is_saved_found_and_marked_as_not_yet_applied(
    store: Unreliable, how: str
) -> None:
    memory = memory_over(store, read_seconds=0.1, write_seconds=0.1)
    store.how = how
    result = memory.write(DELAYED, user_id="alice")
    assert (result.saved, result.applied) == (True, False)
    hits = memory.search("what does delayed mean?", user_id="alice")
    assert [hit.record.content for hit in hits] == [DELAYED]
    assert hits.degraded
    assert any("out of reach" in note for note in hits.notes)
    comes_back(store, memory)
    assert texts(store) == [DELAYED]
    assert not memory.search("what does delayed mean?", user_id="alice").degraded


def test_the_audit_log_tells_what_waited_and_that_it_was_applied(store: Unreliable) -> None:
    memory = memory_over(store)
    store.how = "refuses"
    memory.write(DELAYED, user_id="alice")
    deferred = memory.backend.audit.tail(1, op="commit.deferred")[0]
    assert deferred.outcome == "degraded"
    comes_back(store, memory)
    applied = memory.backend.audit.tail(1, op="commit.applied")[0]
    assert applied.event["detail"]["commit"] == deferred.event["detail"]["commit"]
    assert ops(memory).count("add") == 1


def test_a_recall_is_degraded_and_brings_what_waits(store: Unreliable) -> None:
    memory = memory_over(store)
    memory.write("The user lives in Lisbon.", user_id="alice")
    store.how = "refuses"
    memory.write(TABLES, user_id="alice")
    note = memory.recall("how many were delayed?", ALICE)
    assert "tables" in note.text
    assert "Lisbon" not in note.text
    assert note.degraded


def test_what_waits_is_found_by_what_it_will_hold_and_not_by_what_it_held(store: Unreliable) -> None:
    memory = memory_over(store, read_seconds=0.1, write_seconds=0.1)
    held = {"tags": ["plan"], "state": "open"}
    old = memory.write("The plan of May is to sail.", user_id="alice", metadata=held)
    store.how = "refuses"
    new = memory.write("The plan of June is to fly.", user_id="alice", metadata=held)
    memory.update(new.id, metadata={"state": "closed"})
    closed: dict[str, Any] = {"tags": "plan", "metadata": {"state": "closed"}}
    for where, expected in ((closed, [new.id]), ({"metadata": {"state": "open"}}, [])):
        found = memory.search("which plan is it?", user_id="alice", where=where)
        assert [hit.record.id for hit in found] == expected
        assert [hit.record.id for hit in memory.search("", user_id="alice", where=where)] == expected
    comes_back(store, memory)
    assert [r.id for r in memory.get_all(user_id="alice", where={"metadata": {"state": "open"}})] == [old.id]
    assert [r.id for r in memory.get_all(user_id="alice", where=closed)] == [new.id]


def test_what_can_only_be_told_by_the_store_raises_instead_of_denying_it(store: Unreliable) -> None:
    memory = memory_over(store)
    known = memory.write(DELAYED, user_id="alice").id
    store.how = "refuses"
    for ask in (
        lambda: memory.get(known),
        lambda: memory.get_all(user_id="alice"),
        lambda: memory.update(known, content="Delayed means more than 4 days late."),
        lambda: memory.delete(known, user_id="alice"),
        lambda: memory.delete_all(user_id="alice", confirm=True),
        lambda: memory.history(known),
        lambda: memory.backend.count(Filter(user_id="alice")),
        lambda: memory.backend.delete(Filter(user_id="alice")),
    ):
        with pytest.raises(BackendUnavailable, match=r"out of reach|did not answer|does not answer"):
            ask()
    comes_back(store, memory)
    assert texts(store) == [DELAYED]


def test_what_waits_can_be_read_changed_and_deleted_meanwhile(store: Unreliable) -> None:
    memory = memory_over(store)
    store.how = "refuses"
    kept = memory.write(DELAYED, user_id="alice").id
    gone = memory.write(TABLES, user_id="alice").id
    memory.update(kept, content="Delayed means more than 4 days late.", user_id="alice")
    assert memory.delete(gone, user_id="alice") == 1
    assert memory.get(kept).version == 2
    comes_back(store, memory)
    assert texts(store) == ["Delayed means more than 4 days late."]
    assert [r.version for r in memory.history(kept)] == [1, 2]
    assert memory.get(gone).status == "deleted"


def test_bad_input_is_refused_and_nothing_of_it_waits(store: Unreliable) -> None:
    journal = journal_around(store)
    store.how = "refuses"
    with pytest.raises(InvalidContent):
        journal.write([tea(metadata={"odd": object()})])
    first = tea()
    journal.write([first])
    with pytest.raises(Conflict):
        journal.write([first])
    with pytest.raises(Conflict):
        journal.update([Change(first, expects=7)])
    assert journal.backlog()["waiting"] == 1


def test_after_three_failures_it_is_not_asked_again_for_a_while(store: Unreliable) -> None:
    journal = JournalBackend(store, breaker=Breaker(failures=3, seconds=60))
    store.how = "refuses"
    for _ in range(10):
        journal.get(["an-id"])
    assert store.asked == ["get"] * 3


def test_one_call_tries_when_the_time_has_come_and_the_others_go_on_waiting() -> None:
    now = 0.0
    breaker = Breaker(failures=2, seconds=30, clock=lambda: now)
    for _ in range(2):
        assert breaker.allows()
        breaker.failed()
    assert not breaker.allows()
    now = 31.0
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.failed()
    now = 60.0
    assert not breaker.allows()
    now = 62.0
    assert breaker.allows()
    breaker.worked()
    assert breaker.allows()
    assert breaker.open_for == 0


# When it is back


def test_everything_is_there_once_and_in_order(store: Unreliable) -> None:
    memory = memory_over(store)
    for number in range(30):
        store.how = ("works", "refuses", "loses the answer")[number % 3]
        memory.write(f"Ticket {number} was closed.", user_id="alice")
    comes_back(store, memory)
    assert texts(store) == sorted(f"Ticket {number} was closed." for number in range(30))
    assert ops(memory).count("add") == 30


def test_an_answer_that_is_lost_is_not_applied_twice(store: Unreliable) -> None:
    memory = memory_over(store)
    record_id = memory.write(DELAYED, user_id="alice").id
    store.how = "loses the answer"
    memory.backend.write([tea()])
    store.how = "works"
    comes_back(store, memory)
    assert len(store.behind.versions(record_id)) == 1
    assert len(texts(store)) == 2


def test_what_another_instance_said_meanwhile_is_not_said_twice(store: Unreliable) -> None:
    offline = memory_over(store)
    online = memory_over(Unreliable(store.behind))
    store.how = "refuses"
    offline.write(TABLES, user_id="alice")
    offline.write("The user's dog is called Bruno.", user_id="alice")
    online.write(TABLES, user_id="alice")
    comes_back(store, offline)
    assert texts(store) == sorted([TABLES, "The user's dog is called Bruno."])
    assert "commit.decided-again" in ops(offline)


@pytest.mark.parametrize("later", ["offline", "online"])
def test_of_two_that_contradict_the_later_one_wins_and_the_other_stays_in_history(
    store: Unreliable, later: str
) -> None:
    offline = memory_over(store)
    online = memory_over(Unreliable(store.behind))
    four = "Delayed means more than 4 days late."
    store.how = "refuses"
    if later == "offline":
        online.write(DELAYED, user_id="alice")
        offline.write(four, user_id="alice")
    else:
        offline.write(DELAYED, user_id="alice")
        online.write(four, user_id="alice")
    comes_back(store, offline)
    assert texts(store) == [four]
    known = store.behind.list(Filter(user_id="alice", statuses=None), limit=9)
    assert DELAYED in {version.content for r in known for version in store.behind.versions(r.id)}


def test_what_was_deleted_while_it_waited_is_deleted_in_what_it_became(store: Unreliable) -> None:
    offline = memory_over(store)
    online = memory_over(Unreliable(store.behind))
    store.how = "refuses"
    waiting = offline.write(TABLES, user_id="alice").id
    offline.delete(waiting, user_id="alice")
    online.write(TABLES, user_id="alice")
    comes_back(store, offline)
    assert texts(store) == []


def test_a_record_that_others_changed_meanwhile_keeps_both_in_its_history(store: Unreliable) -> None:
    offline = memory_over(store)
    online = memory_over(Unreliable(store.behind))
    record_id = online.write(DELAYED, user_id="alice").id
    record = offline.get(record_id)
    store.how = "refuses"
    commit = Commit((Change(_reworded(record, "Delayed means more than 5 days late."), expects=1),))
    assert not offline.backend.batch(commit).applied
    online.update(record_id, content="Delayed means more than 4 days late.")
    comes_back(store, offline)
    assert texts(store) == ["Delayed means more than 5 days late."]
    said = [version.content for version in online.history(record_id)]
    assert said[:2] == [DELAYED, "Delayed means more than 4 days late."]


def _reworded(record: Record, text: str) -> Record:
    later = record.updated_at + 60
    return replace(record, content=text, content_hash=content_hash(text), updated_at=later)


def test_a_commit_that_cannot_be_decided_again_is_kept_as_a_dead_letter_and_blocks_nobody(
    store: Unreliable,
) -> None:
    memory = memory_over(store)

    def never(commit: Commit, became: Callable[[str], str]) -> Any:
        raise RuntimeError("no")

    journal_of(memory).decides_again(never)
    first, second = tea("one"), tea("two")
    store.how = "refuses"
    memory.backend.write([first])
    memory.backend.write([second])
    store.behind.write([tea("one")])
    store.how = "works"
    until(lambda: journal_of(memory).backlog().get("dead") == 1)
    until(lambda: not journal_of(memory).backlog().get("waiting"))
    assert [letter.commit.changes[0].record.id for letter in journal_of(memory).dead_letters(9)] == [first.id]
    assert store.behind.get([second.id])
    assert "dead letters" in memory.backend.health().message
    assert memory.backend.audit.tail(1, op="commit.dead")[0].outcome == "failed"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(20))
def test_a_call_that_was_not_made_does_not_count_against_a_commit(store: Unreliable, seed: int) -> None:
    class Moody(Breaker):
        """Stops calls to a store that is well."""

        stops: Callable[[], bool] = staticmethod(lambda: True)

        def allows(self) -> bool:
            return not self.stops()

    breaker, luck = Moody(), random.Random(seed)
    journal = JournalBackend(store, breaker=breaker, replays=False)
    for number in range(5):
        journal.write([tea(str(number))])
    breaker.stops = lambda: luck.random() < 0.6
    until(journal.replay)
    assert not any(journal.backlog().values())
    assert texts(store) == ["0", "1", "2", "3", "4"]


def test_dead_letters_can_be_let_wait_again(store: Unreliable) -> None:
    journal = journal_around(store)  # nobody decides again
    store.how = "refuses"
    journal.write([tea("one")])
    rival = tea("one")
    store.behind.write([rival])
    store.how = "works"
    until(lambda: journal.backlog().get("dead") == 1)
    store.behind.delete([rival.id])
    assert journal.retry_dead_letters() == 1
    until(lambda: not any(journal.backlog().values()))
    assert texts(store) == ["one"]


def test_an_entry_that_cannot_be_read_is_a_dead_letter_and_blocks_nobody(
    store: Unreliable, tmp_path: Path
) -> None:
    before = journal_around(store, tmp_path)
    store.how = "refuses"
    before.write([tea("one")])
    before.write([tea("two")])
    before.close()
    journal = journal_around(store, tmp_path)
    with journal._place.database.writing() as connection:
        connection.execute("UPDATE journal SET body = '{\"changes\": 7}' WHERE seq = 1")
    assert [record.content for record in journal.list(Filter(user_id="alice"), limit=9)] == ["two"]
    store.how = "works"
    until(journal.replay)
    assert journal.backlog() == {"dead": 1, "erasures": 0}
    assert texts(store) == ["two"]
    assert [letter.reason for letter in journal.dead_letters(9)] == ["illegible"]


# Crashes, processes, threads

KILLED = """
import os, sys
from pathlib import Path
from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.stores.journal.store import JournalBackend
from tests.stores.unreliable import Unreliable
store = Unreliable()
store.how = sys.argv[2]
memory = SupervisorMemory(Settings(embedding_model="none"), backend=JournalBackend(store, Path(sys.argv[1])))
for number in range(20):
    print(memory.write(f"Ticket {number} was closed.", user_id="alice").id, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_what_waited_when_the_process_was_killed_is_applied_by_the_next_one(
    store: Unreliable, tmp_path: Path
) -> None:
    done = programs.run("-c", KILLED, tmp_path, "refuses", timeout=120)
    told = done.stdout.split()
    assert done.returncode == -9, done.stderr
    assert len(told) == 20
    memory = memory_over(store, tmp_path)
    comes_back(store, memory)
    assert texts(store) == sorted(f"Ticket {number} was closed." for number in range(20))
    assert {r.id for r in store.behind.list(Filter(user_id="alice"), limit=999)} == set(told)


def test_a_commit_that_was_begun_and_never_answered_is_completed(store: Unreliable, tmp_path: Path) -> None:
    cut = journal_around(store, tmp_path, clock=lambda: time.time() - 3600)
    store.how = "works"
    record = tea()
    cut._place.entries.begin(Commit((Change(record),)), at=time.time() - 3600)
    memory = memory_over(store, tmp_path)
    comes_back(store, memory)
    assert texts(store) == [record.content]
    assert "commit.applied" in ops(memory)


def test_two_processes_over_one_journal_see_what_waits_in_it(store: Unreliable, tmp_path: Path) -> None:
    one, two = memory_over(store, tmp_path), memory_over(store, tmp_path)
    store.how = "refuses"
    one.write(DELAYED, user_id="alice")
    two.write(TABLES, user_id="alice")
    for memory in (one, two):
        found = {hit.record.content for hit in memory.search("x", user_id="alice", threshold=0)}
        assert found == {DELAYED, TABLES}
    comes_back(store, one, two)
    assert texts(store) == sorted([DELAYED, TABLES])


def test_sixteen_threads_while_the_line_comes_and_goes_lose_nothing(
    store: Unreliable, tmp_path: Path
) -> None:
    memory = memory_over(store, tmp_path)
    told: list[bool] = []

    def work(thread: int) -> None:
        said = [f"Ticket {thread}-{number} was closed." for number in range(8)]
        told.extend(memory.write(text, user_id="alice").saved for text in said)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(16)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.how = "refuses" if store.how == "works" else "works"
        time.sleep(0.02)
    comes_back(store, memory)
    assert told == [True] * 128
    assert texts(store) == sorted(f"Ticket {t}-{n} was closed." for t in range(16) for n in range(8))


# The copy


@pytest.fixture
def copying(store: Unreliable, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with memory_over(store, tmp_path, copies=True) as memory:
        yield memory


def test_with_a_copy_all_that_is_known_is_found_meanwhile(
    store: Unreliable, copying: SupervisorMemory
) -> None:
    known = copying.write(DELAYED, user_id="alice").id
    store.how = "refuses"
    copying.write(TABLES, user_id="alice")
    hits = copying.search("what does delayed mean?", user_id="alice")
    assert [hit.record.content for hit in hits] == [DELAYED]
    assert hits.degraded
    assert any("copy" in note for note in hits.notes)
    assert copying.get(known).content == DELAYED
    assert {record.content for record in copying.get_all(user_id="alice")} == {DELAYED, TABLES}
    assert copying.backend.count(Filter(user_id="alice")) == 2
    assert copying.search("x", user_id="bob", threshold=0).items == ()


def test_with_a_copy_a_known_record_can_be_changed_meanwhile(
    store: Unreliable, copying: SupervisorMemory
) -> None:
    known = copying.write(DELAYED, user_id="alice").id
    store.how = "refuses"
    four = "Delayed means more than 4 days late."
    assert copying.update(known, content=four, user_id="alice").saved
    assert [hit.record.content for hit in copying.search("delayed", user_id="alice")] == [four]
    comes_back(store, copying)
    assert texts(store) == [four]
    store.how = "refuses"
    assert [hit.record.content for hit in copying.search("delayed", user_id="alice")] == [four]


def test_reconcile_brings_what_others_wrote_and_gives_back_what_the_store_lost(
    store: Unreliable, copying: SupervisorMemory
) -> None:
    copying.write(DELAYED, user_id="alice")
    lost = copying.write(TABLES, user_id="alice").id
    others = memory_over(Unreliable(store.behind))
    others.write("The user lives in Lisbon.", user_id="bob")
    store.behind = _without(store.behind, lost)
    done = journal_of(copying).reconcile()
    assert (done.compared, done.brought, done.restored, done.refused) == (2, 1, 1, {})
    assert texts(store) == sorted([DELAYED, TABLES])
    again = journal_of(copying).reconcile()
    assert (again.compared, again.brought, again.restored) == (3, 0, 0)
    store.how = "refuses"
    assert [r.content for r in copying.get_all(user_id="bob")] == ["The user lives in Lisbon."]


def test_reconcile_does_not_bring_back_whom_another_instance_erased(
    store: Unreliable, copying: SupervisorMemory
) -> None:
    copying.write(DELAYED, user_id="alice")
    others = memory_over(Unreliable(store.behind))
    time.sleep(0.01)
    assert others.erase(user_id="alice", confirm=True).is_complete
    done = journal_of(copying).reconcile()
    assert (done.forgotten, done.restored) == (1, 0)
    assert texts(store) == []
    store.how = "refuses"
    assert copying.search("x", user_id="alice", threshold=0).items == ()


def _without(store: InMemoryBackend, record_id: str) -> InMemoryBackend:
    other = InMemoryBackend()
    other.take([each for each in store.stored(limit=999) if each.record.id != record_id])
    return other


# Erasing


def test_a_user_who_is_erased_while_the_store_is_away_is_gone_here_at_once_and_there_when_it_is_back(
    store: Unreliable, copying: SupervisorMemory, tmp_path: Path
) -> None:
    copying.write("alice's canary is Zinfandel-7", user_id="alice")
    copying.write(DELAYED, user_id="bob")
    store.how = "refuses"
    copying.write("alice waits for Tempranillo-9", user_id="alice")
    receipt = copying.erase(user_id="alice", confirm=True)
    assert not receipt.is_complete
    assert copying.search("canary", user_id="alice", threshold=0).items == ()
    comes_back(store, copying)
    assert texts(store) == []
    assert texts(store, "bob") == [DELAYED]
    until(lambda: not copying.backend.audit.tombstones.unfinished())
    assert copying.backend.audit.tail(1)[0].op == "erase.done"
    copying.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Zinfandel" not in raw
    assert b"Tempranillo" not in raw


def test_what_waited_of_a_user_does_not_come_back_after_the_erasure(
    store: Unreliable, copying: SupervisorMemory
) -> None:
    store.how = "refuses"
    copying.write(TABLES, user_id="alice")
    copying.erase(user_id="alice", confirm=True)
    time.sleep(0.01)
    copying.write(DELAYED, user_id="alice")
    comes_back(store, copying)
    assert texts(store) == [DELAYED]


def test_an_erasure_that_begins_while_another_is_finished_is_not_called_done(
    store: Unreliable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Unreliable(store.behind)
    journal, other = (journal_around(each, tmp_path, replays=False) for each in (store, away))
    journal.write([tea(), tea(user="bob")])
    away.how = "refuses"
    entries = journal._place.entries
    look = entries.erasures

    def and_another_begins() -> Mapping[str, float]:
        found = look()
        monkeypatch.setattr(entries, "erasures", look)
        assert other.erase("bob", at=LATER).pending
        return found

    monkeypatch.setattr(entries, "erasures", and_another_begins)
    assert journal.erase("alice", at=LATER).pending == ()
    told = [row.op for row in journal.audit.tail(99)]
    assert (told.count("erase.begin"), told.count("erase.done")) == (2, 1)
    assert journal.replay()
    assert not journal.audit.tombstones.unfinished()
    assert not store.behind.list(Filter(user_id="bob", statuses=None), limit=9)
    journal.close()
    other.close()


# A backlog


def test_a_backlog_is_applied_many_at_a_time_and_each_is_told_of(store: Unreliable) -> None:
    memory = memory_over(store)
    store.how = "refuses"
    tickets = size(150, less=60)
    written = [memory.write(f"Ticket {number} was closed.", user_id="alice") for number in range(tickets)]
    memory.update(written[0].id, content="Ticket 0 was opened again.", user_id="alice")
    store.asked.clear()
    comes_back(store, memory)
    assert store.asked.count("batch") < tickets / 5
    assert ops(memory).count("commit.applied") == tickets + 1
    assert len(texts(store)) == tickets
    assert "Ticket 0 was opened again." in texts(store)


def test_of_many_the_one_that_is_refused_is_decided_again_and_the_others_are_applied(
    store: Unreliable,
) -> None:
    offline = memory_over(store)
    store.how = "refuses"
    for number in range(20):
        offline.write(f"Ticket {number} was closed.", user_id="alice")
    memory_over(Unreliable(store.behind)).write("Ticket 7 was closed.", user_id="alice")
    comes_back(store, offline)
    assert texts(store) == sorted(f"Ticket {number} was closed." for number in range(20))
    assert ops(offline).count("commit.applied") == 19
    assert ops(offline).count("commit.decided-again") == 1


def test_what_was_cut_off_halfway_is_applied_as_the_same_commit_again(
    store: Unreliable, tmp_path: Path
) -> None:
    journal = journal_around(store, tmp_path, replays=False)
    store.how = "refuses"
    for number in range(5):
        journal.write([tea(f"tea {number}")])
    store.how = "works"
    tried = []

    def dies(commit: Commit) -> Any:
        tried.append(commit.id)
        raise KeyboardInterrupt

    store.behind.batch = dies  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            journal_around(store, tmp_path, replays=False).replay()
    assert len(tried) == 2
    assert len(set(tried)) == 1
    del store.behind.batch
    until(journal.replay)
    assert texts(store) == [f"tea {number}" for number in range(5)]


def test_a_session_is_erased_with_what_waits_of_it_and_nothing_of_it_comes_back(
    store: Unreliable, tmp_path: Path
) -> None:
    memory = memory_over(store, tmp_path)
    memory.add("Delayed means what the quetzal says.", user_id="alice", session_id="s1")
    memory.add(TABLES, user_id="alice", session_id="s2")
    store.how = "refuses"
    memory.add("Cancelled means that the quetzal is silent.", user_id="alice", session_id="s1")
    with pytest.raises(BackendUnavailable):
        memory.sessions.erase("s1", user_id="alice", confirm=True)
    assert journal_of(memory).backlog()["waiting"]
    comes_back(store, memory)
    assert memory.sessions.erase("s1", user_id="alice", confirm=True).is_complete
    memory.close()
    with memory_over(store, tmp_path) as again:
        journal_of(again).replay()
        assert [row.session_id for row in again.sessions.list(user_id="alice")] == ["s2"]
        assert not any("quetzal" in text for text in texts(store))
    assert b"quetzal" not in b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
