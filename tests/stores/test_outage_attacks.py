"""What could go wrong around a journal, tried: lost answers, forks, late calls, erasures in between."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from supervisor_memory.audit.verify import verified
from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import BackendUnavailable, DeadlineExceeded, WasErased
from supervisor_memory.model.records import AuditEvent, Filter, Record, content_hash
from supervisor_memory.stores.journal.breaker import Breaker
from supervisor_memory.stores.journal.link import Link, OutOfReach
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.records import EMBEDDER, NOW, contents, query, tea, with_vector
from tests.breadth import examples
from tests.stores.test_outage import (
    DELAYED,
    comes_back,
    journal_around,
    journal_of,
    memory_over,
    ops,
    texts,
    until,
)
from tests.stores.unreliable import Unreliable


@pytest.fixture
def store() -> Unreliable:
    return Unreliable()


def reworded(record: Record, text: str, **values: Any) -> Record:
    return replace(record, content=text, content_hash=content_hash(text), **values)


def of_alice(**values: Any) -> Filter:
    return Filter(user_id="alice", **values)


class LosesAnswers(Unreliable):
    """A line that is cut after a commit has passed, as often as `losing` says, and then stays as `then`."""

    losing = 0
    then = "refuses"

    def batch(self, *args: Any, **options: Any) -> Any:
        done = super().batch(*args, **options)
        if self.losing:
            self.losing -= 1
            self.how = self.then
            raise BackendUnavailable("the line was cut before the answer came")
        return done


# Lost answers


def test_what_was_deleted_elsewhere_after_a_lost_answer_does_not_come_back() -> None:
    store = LosesAnswers()
    offline, online = memory_over(store), memory_over(Unreliable(store.behind))
    store.losing = 1
    said = offline.write(DELAYED, user_id="alice").id
    assert online.delete(said, user_id="alice") == 1
    comes_back(store, offline)
    assert texts(store) == []
    assert "commit.applied" in ops(offline)


def test_what_was_appended_before_the_answer_was_lost_is_not_appended_again() -> None:
    store = LosesAnswers()
    offline, online = memory_over(store), memory_over(Unreliable(store.behind))
    said = offline.write("The user has a dog.", user_id="alice").id
    store.losing = 1
    offline.update(said, content="It is called Bruno.", metadata={"strategy": "append"}, merge=True)
    online.update(said, content="It is brown.", metadata={"strategy": "append"}, merge=True)
    comes_back(store, offline)
    (text,) = texts(store)
    assert text.count("Bruno") == 1
    assert len(store.behind.versions(said)) == 3


def test_a_store_that_lost_one_answer_and_is_there_again_has_applied_it_once() -> None:
    store = LosesAnswers()
    store.then = "works"
    memory = memory_over(store, copies=True)
    store.losing = 1
    said = memory.write("The user has a dog.", user_id="alice")
    assert (said.status, said.applied) == ("added", True)
    store.losing = 1
    memory.update(said.id, content="It is called Bruno.", metadata={"strategy": "append"}, merge=True)
    (text,) = texts(store)
    assert text.count("Bruno") == 1
    assert ops(memory) == ["add", "update"]
    copy = journal_of(memory)._place.copy
    assert copy is not None
    assert copy.versions() == {said.id: 2}
    assert not any(journal_of(memory).backlog().values())


def test_a_later_deletion_elsewhere_stands_against_an_earlier_change_that_waited(store: Unreliable) -> None:
    offline, online = memory_over(store, copies=True), memory_over(Unreliable(store.behind))
    said = offline.write(DELAYED, user_id="alice").id
    store.how = "refuses"
    offline.update(said, content="Delayed means more than 4 days late.")
    time.sleep(0.01)
    online.delete(said)
    comes_back(store, offline)
    assert texts(store) == []


def test_the_copy_has_what_was_applied_before_its_answer_was_lost() -> None:
    store = LosesAnswers()
    memory = memory_over(store, copies=True)
    store.losing = 1
    memory.write(DELAYED, user_id="alice")
    comes_back(store, memory)
    store.how = "refuses"
    assert [record.content for record in memory.get_all(user_id="alice")] == [DELAYED]


def test_a_call_that_is_answered_late_is_applied_once(store: Unreliable, tmp_path: Path) -> None:
    journal = journal_around(store, tmp_path, write_seconds=0.1)
    first = tea("one")
    store.how, store.hang_seconds = "hangs", 0.6
    assert not journal.batch(Commit((Change(first),))).applied
    store.how = "works"
    changed = journal.batch(Commit((Change(reworded(first, "two"), expects=1),)))
    assert changed.saved
    until(lambda: not any(journal.backlog().values()))
    time.sleep(0.7)
    assert [each.content for each in store.behind.versions(first.id)] == ["one", "two"]


# Readers


class _Meanwhile(Unreliable):
    """Something happens after an answer was made and before it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.then: Callable[[], object] | None = None

    def _over_the_line(self, method: str, *args: Any, **options: Any) -> Any:
        answer = super()._over_the_line(method, *args, **options)
        if self.then is not None and method in {"search", "list", "versions"}:
            then, self.then = self.then, None
            then()
        return answer


@pytest.mark.parametrize("read", ["search", "list", "versions"])
def test_what_is_applied_while_somebody_reads_is_in_what_is_read(tmp_path: Path, read: str) -> None:
    store = _Meanwhile()
    journal = journal_around(store, tmp_path, replays=False)
    record = tea()
    store.how = "refuses"
    journal.write([record])
    store.how = "works"
    until(lambda: journal._link.breaker.is_closed or not journal._link.breaker.open_for)
    store.then = journal.replay
    asks: dict[str, Callable[[], Sequence[Record]]] = {
        "search": lambda: [hit.record for hit in journal.search(query("tea"), limit=5)],
        "list": lambda: journal.list(of_alice(), limit=5),
        "versions": lambda: journal.versions(record.id),
    }
    found = asks[read]()
    assert [each.id for each in found] == [record.id]
    assert store.then is None
    assert not any(journal.backlog().values())


def test_a_vector_that_waits_makes_no_other_version_of_what_waits(store: Unreliable) -> None:
    journal = journal_around(store, replays=False)
    record = tea("one")
    store.how = "refuses"
    journal.write([record])
    again = with_vector(journal.get([record.id])[0], np.ones(4, dtype=np.float32))
    done = journal.batch(Commit((Change(again, expects=1),)))
    assert [each.version for each in done.records] == [1]
    store.how = "works"
    journal._link.breaker.worked()
    assert [each.version for each in journal.versions(record.id)] == [1]
    assert journal.replay()
    assert len(store.behind.versions(record.id)) == 1


def test_hits_that_are_about_to_be_deleted_leave_their_places_to_others(store: Unreliable) -> None:
    journal = journal_around(store, replays=False)
    records = [tea(f"tea {'tea ' * (9 - number)}{number}") for number in range(9)]
    journal.write(records)
    store.how = "refuses"
    journal.batch(
        Commit(tuple(Change(replace(record, status="deleted"), expects=1) for record in records[:4]))
    )
    store.how = "works"
    journal._link.breaker.worked()
    found = [hit.record.id for hit in journal.search(query("tea"), limit=3)]
    assert len(found) == 3
    assert not {record.id for record in records[:4]} & set(found)


def test_messages_of_a_session_that_wait_are_not_counted_among_the_rest(store: Unreliable) -> None:
    journal = journal_around(store, replays=False)
    message = tea("hello", family="session_messages", layer="history")
    journal.write([message, tea("one")])
    store.how = "refuses"
    journal.batch(Commit((Change(replace(message, status="deleted"), expects=1),)))
    store.how = "works"
    journal._link.breaker.worked()
    assert journal.count(of_alice()) == len(journal.list(of_alice(), limit=9)) == 1


def test_the_version_of_a_change_with_a_vector_is_told_right_while_nothing_is_known_of_the_record(
    store: Unreliable,
) -> None:
    journal = journal_around(store, replays=False)
    record = tea("one")
    store.how = "refuses"
    changed = with_vector(reworded(record, "two"), np.ones(4, dtype=np.float32))
    done = journal.batch(Commit((Change(changed, expects=1),)))
    assert [each.version for each in done.records] == [2]
    assert journal.get([record.id])[0].version == 2


def test_a_vector_of_any_length_waits_as_one_of_length_one(store: Unreliable) -> None:
    journal = journal_around(store)
    store.how = "refuses"
    journal.write([with_vector(tea("one"), np.array([0.1, 0.0], dtype=np.float32))])
    (hit,) = journal.search(query("zzz", vector=np.array([1.0, 0.0], dtype=np.float32)), limit=5)
    assert hit.parts["cosine"] == pytest.approx(1.0)


# A store that answers, and takes nothing


class _TakesNothing(Unreliable):
    """A store without room: it can be asked, and not written to. `poisoned` ids it can never take."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        self.poisoned: set[str] = set()

    def batch(self, *args: Any, **options: Any) -> Any:
        (commit,) = args
        if self.is_full or self.poisoned & {change.record.id for change in commit.changes}:
            raise BackendUnavailable("no room left")
        return super().batch(*args, **options)


def test_a_store_without_room_makes_no_dead_letters() -> None:
    store = _TakesNothing()
    journal = journal_around(store, replays=False)
    store.is_full = True
    for number in range(5):
        assert not journal.batch(Commit((Change(tea(f"tea {number}")),))).applied
    for _ in range(12):
        journal._link.breaker.worked()
        assert not journal.replay()
    assert (journal.backlog().get("waiting"), journal.backlog().get("dead")) == (5, None)
    store.is_full = False
    assert journal.replay()
    assert len(texts(store)) == 5


def test_a_commit_that_the_store_alone_cannot_take_blocks_the_others_for_three_tries() -> None:
    store = _TakesNothing()
    journal = journal_around(store, replays=False)
    bad, good = tea("bad"), [tea(f"good {number}") for number in range(3)]
    store.poisoned = {bad.id}
    journal.write([bad])
    for record in good:
        journal.write([record])
    for _ in range(4):
        journal._link.breaker.worked()
        journal.replay()
    assert texts(store) == ["good 0", "good 1", "good 2"]
    assert [letter.commit.changes[0].record.id for letter in journal.dead_letters(9)] == [bad.id]


def test_what_means_a_dead_letter_still_knows_what_it_became(store: Unreliable) -> None:
    journal = journal_around(store, replays=False)
    journal._place.entries.note_merged({"was": "is"})
    store.how = "refuses"
    journal.write([tea("one")])
    store.behind.write([tea("one")])
    store.how = "works"
    journal._link.breaker.worked()
    journal.replay()  # nobody decides again
    assert journal.backlog().get("dead") == 1
    journal.replay()
    assert journal._place.entries.became("was") == "is"


# Callers in a hurry


def test_callers_who_leave_it_no_time_do_not_make_a_store_be_out_of_reach() -> None:
    breaker, bridge = Breaker(failures=3, seconds=60), Bridge()
    link = Link("a store", bridge, breaker)

    def slow() -> str:
        time.sleep(0.15)
        return "an answer"

    def hurried() -> None:
        with pytest.raises(OutOfReach):
            link.call(2.0, slow)

    for _ in range(5):
        with suppress(DeadlineExceeded):  # on a busy machine the outer clock may be first
            bridge.within(0.1, hurried)
    assert breaker.is_closed
    assert link.call(2.0, slow) == "an answer"


def test_callers_in_a_hurry_are_not_the_ones_who_try_whether_it_is_back() -> None:
    now = 0.0
    breaker, bridge = Breaker(failures=1, seconds=30, clock=lambda: now), Bridge()
    link = Link("a store", bridge, breaker)
    breaker.failed()
    now = 31.0

    def hurried() -> None:
        with pytest.raises(OutOfReach):
            link.call(2.0, lambda: "an answer")

    bridge.within(0.1, hurried)
    assert link.call(2.0, lambda: "an answer") == "an answer"
    assert breaker.is_closed


# Processes


def forked(work: Callable[[], object]) -> int:
    """A child of this process that does something and ends; its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def test_a_child_that_is_forked_during_a_replay_does_not_keep_its_parents_turn(tmp_path: Path) -> None:
    store = _Meanwhile()
    journal = journal_around(store, tmp_path, replays=False)
    store.how = "refuses"
    journal.write([tea()])
    store.how = "works"
    until_told, tell = os.pipe()

    def waits() -> None:
        os.close(tell)
        os.read(until_told, 1)

    lone = journal._replay._lone
    assert lone is not None
    with lone.turn() as is_ours:
        assert is_ours
        child = forked(waits)
    try:
        journal._link.breaker.worked()
        assert journal.replay()
    finally:
        os.close(tell)
        os.close(until_told)
        os.waitpid(child, 0)


def test_a_child_can_replay_what_its_parent_was_replaying_when_it_forked(
    store: Unreliable, tmp_path: Path
) -> None:
    journal = journal_around(store, tmp_path, replays=False)
    store.how = "refuses"
    journal.write([tea()])
    out, into = os.pipe()
    with journal._replay._turn:
        child = forked(lambda: os.write(into, b"%d" % journal.replay()))
    os.close(into)
    try:
        until(lambda: os.waitpid(child, os.WNOHANG)[0] == child)
        assert os.read(out, 1) == b"0"
    finally:
        os.close(out)


def test_a_directory_that_is_gone_is_said_as_an_error_of_ours(store: Unreliable, tmp_path: Path) -> None:
    journal = journal_around(store, tmp_path / "journal", replays=False)
    for file in (tmp_path / "journal").iterdir():
        file.unlink()
    (tmp_path / "journal").rmdir()
    with pytest.raises(BackendUnavailable):
        journal.replay()
    with pytest.raises(BackendUnavailable):
        journal.write([tea()])
    assert texts(store) == []


def test_what_was_taken_but_not_noted_is_noted_by_itself(
    store: Unreliable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor_memory.stores.journal.replay._ORPHANED_AFTER", 0.0)
    journal = journal_around(store, tmp_path)
    note, calls = journal._place.entries.remove, []

    def once_without_room(seq: int) -> bool:
        calls.append(seq)
        if len(calls) == 1:
            raise BackendUnavailable("no room left")
        return note(seq)

    monkeypatch.setattr(type(journal._place.entries), "remove", lambda _, seq: once_without_room(seq))
    with pytest.raises(BackendUnavailable):
        journal.write([tea()])
    until(lambda: not any(journal.backlog().values()))
    assert [row.op for row in journal.audit.tail(9)] == ["memory.write", "commit.applied"]
    assert len(texts(store)) == 1


def test_other_processes_see_every_change_of_what_waits(store: Unreliable, tmp_path: Path) -> None:
    one, two = (journal_around(store, tmp_path, replays=False) for _ in range(2))
    store.how = "refuses"
    records = [tea(f"tea {number}") for number in range(4)]
    entries = one._place.entries
    seqs = [entries.begin(Commit((Change(record),)), at=NOW) for record in records]
    for seq in (seqs[0], seqs[1], seqs[3]):
        entries.mark(seq, "waiting")
    assert contents(two.list(of_alice(), limit=9)) == ["tea 0", "tea 1", "tea 3"]
    entries.mark(seqs[1], "dead")
    entries.mark(seqs[2], "waiting")  # as many as before, from the same first to the same last
    assert contents(two.list(of_alice(), limit=9)) == ["tea 0", "tea 2", "tea 3"]
    entries.forget("alice")
    assert contents(two.list(of_alice(), limit=9)) == []


# Erasures in between


class _ErasesMeanwhile(_Meanwhile):
    def _over_the_line(self, method: str, *args: Any, **options: Any) -> Any:
        if self.then is not None and method == "get":
            then, self.then = self.then, None
            then()
        return super()._over_the_line(method, *args, **options)


def test_what_a_user_said_is_not_kept_once_the_user_was_erased_in_between(tmp_path: Path) -> None:
    store = _ErasesMeanwhile()
    journal = journal_around(store, tmp_path, replays=False)
    store.how = "refuses"
    journal.write([tea(user="bob")])
    store.how = "works"
    journal._link.breaker.worked()
    store.then = lambda: journal.erase("alice", at=NOW + 1)
    with pytest.raises(WasErased):
        journal.write([tea("alice's secret")])
    assert journal.search(query("secret"), limit=5).items == ()
    assert [entry.commit.changes[0].record.user_id for entry in journal.waiting(9)] == ["bob"]


def test_the_copy_takes_nothing_of_a_user_who_was_erased_while_the_store_answered(tmp_path: Path) -> None:
    store = Unreliable()
    journal = journal_around(store, tmp_path, copies=True, replays=False)
    record = tea()
    done = journal._store.apply(Commit((Change(record),)))
    journal.erase("alice", at=NOW + 1)
    journal._place.note(Commit((Change(record),)), done)
    assert journal._place.copy is not None
    assert journal._place.copy.versions() == {}


# Odd things in a commit


def test_an_event_may_tell_of_anything(store: Unreliable, tmp_path: Path) -> None:
    journal = journal_around(store, tmp_path)
    detail: Any = {"cosine": np.float32(0.5), "path": tmp_path}
    event = AuditEvent("add", user_id="alice", detail=detail)
    journal.batch(Commit((Change(tea("one")),), (event,)))
    store.how = "refuses"
    again = replace(event, id="another")
    assert not journal.batch(Commit((Change(tea("two")),), (again,))).applied
    store.how = "works"
    until(lambda: not any(journal.backlog().values()))
    assert texts(store) == ["one", "two"]


# Any order of things

_TIMES = st.sampled_from([NOW - 100, NOW, NOW + 100])
_DONE = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "change", "delete", "renew"]),
        st.integers(0, 9),
        st.sampled_from(["user_profile", "domain_facts", "session_messages"]),
        st.sampled_from([None, "reports"]),
        st.sampled_from([None, NOW - 50, NOW + 50]),
        st.sampled_from([None, (1.0, 0.0), (0.6, 0.8), (0.0, 1.0)]),
        _TIMES,
    ),
    min_size=1,
    max_size=14,
)


def _commits(done: Sequence[tuple[Any, ...]]) -> Iterator[Commit]:
    """What was done, as commits that all can be applied one after another."""
    records: list[Record] = []
    for number, (what, which, family, task, expires_at, vector, at) in enumerate(done):
        values = {"updated_at": at, "expires_at": expires_at}
        if vector is not None:
            values |= {"vector": np.array(vector, dtype=np.float32), "embedder": EMBEDDER}
        if what == "add" or not records:
            layer = "history" if family == "session_messages" else "abstract"
            new = tea(f"tea number {number}", id=f"r{number}", family=family, task=task, layer=layer)
            records.append(replace(new, **values))
            yield Commit((Change(records[-1]),))
            continue
        old = records[which % len(records)]
        text = f"tea anew {number}" if what == "change" else old.content
        # What comes to life again while it waits is found by its words alone: its vector is in the store.
        values["expires_at"] = old.expires_at
        status: Any = "deleted" if what == "delete" else old.status
        if what == "renew":
            values["metadata"] = {"renewed": number}
        # A vector alone that waits is taken for a version, where nothing is known of the record before.
        values |= {"importance": number / 100}
        new = replace(reworded(old, text), status=status, version=old.version + 1, **values)
        records[which % len(records)] = replace(new, vector=None)
        yield Commit((Change(new, expects=old.version),))


@settings(max_examples=examples(60), deadline=None)
@given(
    done=_DONE,
    passed=st.integers(0, 14),
    begin=st.integers(0, 3),
    limit=st.integers(0, 12),
    family=st.sampled_from([None, "user_profile", "session_messages"]),
    statuses=st.sampled_from([("active",), ("active", "deleted"), None]),
)
def test_what_waits_over_a_store_reads_as_if_it_were_there(  # noqa: PLR0917
    done: Sequence[tuple[Any, ...]], passed: int, begin: int, limit: int, family: str | None, statuses: Any
) -> None:
    plain, store = InMemoryBackend(), Unreliable()
    with closing(journal_around(store, replays=False)) as journal:
        for number, commit in enumerate(_commits(done)):
            plain.batch(commit)
            store.how = "works" if number < passed else "refuses"
            journal.batch(commit)
        store.how = "works"
        journal._link.breaker.worked()
        where = of_alice(families=None if family is None else (family,), statuses=statuses)
        assert journal.count(where) == plain.count(where)
        assert journal.list(where, limit=limit, offset=begin) == plain.list(where, limit=limit, offset=begin)
        names = [f"r{number}" for number in range(len(done))]
        assert journal.get(names) == plain.get(names)
        for name in names:
            assert [v.content for v in journal.versions(name)] == [v.content for v in plain.versions(name)]
        vector = np.array((0.8, 0.6), dtype=np.float32)
        for asked in (query("tea", vector=vector), query("anew", families=("user_profile",))):
            mine, theirs = (
                {hit.record.id: hit.parts.get("cosine") for hit in each.search(asked, limit=99)}
                for each in (journal, plain)
            )
            assert mine == pytest.approx(theirs)
            few = [hit.record.id for hit in journal.search(asked, limit=2) if "cosine" in hit.parts]
            assert set(few) <= set(mine)
        assert journal.replay()
        assert (
            journal.list(where, limit=99) == store.behind.list(where, limit=99) == plain.list(where, limit=99)
        )


class Outages(RuleBasedStateMachine):
    """A line that comes and goes, processes that end, and one other instance that minds its own records."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.store = Unreliable()
        self.others = journal_around(Unreliable(self.store.behind))
        self.told: dict[str, list[str]] = {}
        self.number = 0
        self.open()

    def open(self) -> None:
        self.journal = journal_around(self.store, Path(self.directory.name), replays=False, copies=True)

    @rule()
    def add(self) -> None:
        record = tea(self.words(), id=f"r{self.number}")
        self.commit(record, None)

    @rule(which=st.integers(0, 20), is_deleted=st.booleans())
    def change(self, which: int, is_deleted: bool) -> None:
        if not self.told:
            return
        name = sorted(self.told)[which % len(self.told)]
        (old,) = self.journal.get([name]) or (None,)
        if old is None:  # the store is out of reach, and the answer of an earlier one was lost
            return
        new = replace(old, status="deleted") if is_deleted else reworded(old, self.words())
        self.commit(replace(new, updated_at=NOW + self.number), old.version)

    @rule(how=st.sampled_from(["works", "refuses", "loses the answer"]))
    def line(self, how: str) -> None:
        self.store.how = how
        self.journal._link.breaker.worked()

    @rule()
    def replay(self) -> None:
        self.journal.replay()

    @rule()
    def process_ends(self) -> None:
        self.journal._place.database.close()  # as a kill does: nothing more is written
        self.open()

    @rule()
    def another_instance_writes(self) -> None:
        self.others.write([tea(self.words(), user="bob")])

    def words(self) -> str:
        self.number += 1
        return f"statement {self.number}"

    def commit(self, record: Record, expects: int | None) -> None:
        version = (expects or 0) + 1
        event = AuditEvent(
            "add", user_id="alice", record_id=record.id, version_after=version, after=record.content
        )
        assert self.journal.batch(Commit((Change(record, expects),), (event,))).saved
        self.told.setdefault(record.id, []).append(record.content)

    @invariant()
    def what_was_told_is_known(self) -> None:
        for name, said in self.told.items():
            (record,) = self.journal.get([name])
            assert record.content == said[-1]

    def teardown(self) -> None:
        self.line("works")
        assert self.journal.replay()
        assert not any(self.journal.backlog().values())
        for name, said in self.told.items():
            assert [version.content for version in self.store.behind.versions(name)] == said
            rows = self.journal.audit.tail(999, record_id=name)
            assert [row.event["version_after"] for row in rows] == list(range(1, len(said) + 1))
        copy = self.journal._place.copy
        assert copy is not None
        assert copy.versions() == {name: len(said) for name, said in self.told.items()}
        assert verified(self.journal.audit, self.journal.get).problems == []
        self.journal.close()
        self.directory.cleanup()


TestOutages = Outages.TestCase
TestOutages.settings = settings(max_examples=examples(25), stateful_step_count=25, deadline=None)
