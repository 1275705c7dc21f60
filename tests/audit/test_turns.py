"""What readers were told, as the log keeps it."""

import json
import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.audit import turns
from supervisor_memory.audit.turns import Injection, grouped
from supervisor_memory.model.records import Considered, Hit, Hits, Query
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import tea
from supervisor_memory.testing.scripted import ScriptedModel

ANA = "ana"
DELAYS = (
    "The tower counts delays of planes from the gate.",
    "Cargo planes are left out of the delays.",
    "Planes of the navy have no delays.",
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SupervisorMemory]:
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none", max_notes=2)
    with closing(SupervisorMemory(settings)) as memory:
        yield memory


def ask(memory: SupervisorMemory, text: str, *, agent: str | None = None, run: str | None = None) -> None:
    memory.recall([{"role": "user", "content": text}], Scope(ANA, agent, "monday", run))


def test_a_note_is_logged_with_the_scores_of_what_it_holds_and_why_the_rest_was_left_out(
    memory: SupervisorMemory,
) -> None:
    memory.add_many([*DELAYS, "The canteen opens at noon."], user_id=ANA, infer=False)
    ask(memory, "Who counts delays of planes?", run="run-1")
    [turn] = grouped(memory.backend.audit.notes(50, user_id=ANA))
    [note] = turn.notes
    assert (turn.run_id, note.op, note.agent_id) == ("run-1", "inject", None)
    assert [each.rank for each in note.shown] == [1, 2]
    assert all(0 < each.score <= 1 and each.parts["relevance"] > 0 for each in note.shown)
    assert note.tokens
    assert {each.reason for each in note.dropped} == {"over-limit"}
    assert not {each.record_id for each in note.dropped} & {each.record_id for each in note.shown}


def test_the_notes_of_a_run_are_one_turn_however_others_run_beside_it(memory: SupervisorMemory) -> None:
    memory.write("Use tables.", user_id=ANA)
    for agent, run in ((None, "one"), (None, "two"), ("sql", "one"), ("math", "two"), (None, None)):
        ask(memory, "Which format?", agent=agent, run=run)
    told = grouped(memory.backend.audit.notes(50))
    assert [(turn.run_id, [note.agent_id for note in turn.notes]) for turn in told] == [
        (None, [None]),
        ("two", [None, "math"]),
        ("one", [None, "sql"]),
    ]


def test_a_note_is_found_by_a_record_that_was_left_out_of_it(memory: SupervisorMemory) -> None:
    written = [result.id for result in memory.add_many(DELAYS, user_id=ANA, infer=False)]
    ask(memory, "Who counts delays of planes?")
    found = [memory.backend.audit.notes(5, record_id=id_) for id_ in written]
    assert all(len(notes) == 1 for notes in found)


def test_pages_of_notes_go_back_to_the_first(memory: SupervisorMemory) -> None:
    memory.write("Use tables.", user_id=ANA)
    for _ in range(5):
        ask(memory, "Which format?")
    log, before = memory.backend.audit, None
    seen: list[Injection] = []
    while page := log.notes(2, before=before):
        seen += page
        before = page[-1].seq
    assert [note.seq for note in seen] == [5, 4, 3, 2, 1]


def test_no_text_name_of_a_user_or_of_a_session_is_kept(memory: SupervisorMemory, tmp_path: Path) -> None:
    memory.write("Zanzibar is spelled with a z.", user_id=ANA)
    ask(memory, "How is Zanzibar spelled?")
    with memory.backend.audit._database.reading() as connection:
        memory.backend.audit.flush()
        [row] = connection.execute("SELECT * FROM notes").fetchall()
    assert not {"Zanzibar", ANA, "monday"} & {word for cell in row for word in str(cell).split('"')}


def test_the_parts_of_a_hit_are_read_as_an_earlier_release_wrote_them(memory: SupervisorMemory) -> None:
    memory.write("Use tables.", user_id=ANA)
    ask(memory, "Which format?")
    log = memory.backend.audit
    log.flush()
    [[told]] = [note.shown for note in log.notes(1)]
    parts = json.dumps({name: round(value, 3) for name, value in told.parts.items()})
    earlier = f'[["{told.record_id}",1,{told.score:.3f},"{told.reason}",{parts}]]'
    with log._database.writing() as connection:
        connection.execute("UPDATE notes SET shown = ?", (earlier,))
    assert log.notes(1)[0].shown == (told,)
    assert told.parts["standing"] == 1.0


def test_the_parts_of_hits_are_read_back_whatever_each_of_them_has() -> None:
    parts: list[dict[str, float]] = [
        {},
        {"a": 0.25, "b": 1e9},
        {"a": 0.5, "b": 0.0},
        {"b": 3.0},
        {},
        {"b": 4},
    ]
    hits = [Hit(tea(), parts=each) for each in parts]
    assert [each.parts for each in turns._unpacked(turns.packed(hits, ())[0])] == parts
    dropped = turns.packed((), [Considered(hit, "over-limit") for hit in hits])[1]
    assert [(each.rank, each.parts) for each in turns._unpacked(dropped)] == [(None, each) for each in parts]


def test_parts_with_their_numbers_behind_each_of_them_are_read_as_an_earlier_release_wrote_them() -> None:
    entry = '["r1",1,0.812,"kept","a\\nb\\nAAAAAAAA0D8AAAAAAADgPw=="]'
    told = turns._unpacked(f"[{entry},{entry}]")
    assert [each.parts for each in told] == [{"a": 0.25, "b": 0.5}] * 2


class _Odd(SqliteBackend):
    """Its hits have a part whose name has two lines."""

    def search(self, query: Query, *, limit: int) -> Hits:
        found = super().search(query, limit=limit)
        named = [replace(hit, parts={"my\nscore": 0.5, **hit.parts}) for hit in found]
        return replace(found, items=tuple(named))


def test_a_part_that_a_backend_names_in_two_lines_is_told_in_one(tmp_path: Path) -> None:
    with closing(SupervisorMemory(Settings(embedding_model="none"), backend=_Odd(tmp_path))) as memory:
        memory.write(DELAYS[0], user_id=ANA)
        ask(memory, "Who counts delays of planes?")
        [note] = memory.backend.audit.notes(9)
        assert note.shown[0].parts["my score"] == 0.5


def test_a_score_that_is_no_number_is_read_back_from_the_log() -> None:
    hit = Hit(tea(), math.nan, parts={"words": 0.25})
    [told] = turns._unpacked(turns.packed([hit], ())[0])
    assert math.isnan(told.score)
    assert told.parts == {"words": 0.25}


def test_an_erasure_removes_what_a_user_was_told_and_counts_it(memory: SupervisorMemory) -> None:
    for user in (ANA, "bob"):
        memory.write("Use tables.", user_id=user)
        memory.recall([{"role": "user", "content": "Which format?"}], Scope(user))
    receipt = memory.erase(user_id=ANA, confirm=True)
    assert receipt.removed["notes"] == 1
    assert not memory.backend.audit.notes(5, user_id=ANA)
    assert len(memory.backend.audit.notes(5)) == len(memory.backend.audit.notes(5, user_id="bob")) == 1


def test_the_oldest_notes_make_room(memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST", 3)
    memory.write("Use tables.", user_id=ANA)
    for _ in range(5):
        ask(memory, "Which format?")
        memory.backend.audit.flush()
    assert [note.seq for note in memory.backend.audit.notes(9)] == [5, 4, 3]


def crew(memory: SupervisorMemory) -> Any:
    boss = ScriptedModel(script=["ask the tower"] * 3)
    tower = ScriptedModel(script=[AIMessage("15 minutes", name="tower")] * 3, label="tower")
    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_node("tower", lambda state: {"messages": [tower.invoke(state["messages"])]})
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "tower")
    return memory.attach(builder, supervisor="supervisor", agents=["tower"]).compile()


def told_three_times(memory: SupervisorMemory) -> str:
    """A reader is told one note three times in a run; returns the id of its record."""
    written = memory.write("Use tables.", user_id=ANA)
    scope = Scope(ANA, None, "monday", "run-1")
    recalled = memory.recalled([{"role": "user", "content": "Which format?"}], scope)
    for _ in range(3):
        recalled.tell(scope)
    recalled.tell(Scope(ANA, "sql", "monday", "run-1"))
    return written.id


def test_what_a_run_tells_a_reader_again_is_written_once_and_told_each_time(memory: SupervisorMemory) -> None:
    id_ = told_three_times(memory)
    [turn] = grouped(memory.backend.audit.notes(9))
    assert [note.agent_id for note in turn.notes] == [None, None, None, "sql"]
    assert [[each.record_id for each in note.shown] for note in turn.notes] == [[id_]] * 4
    assert len({str(note.shown) for note in turn.notes}) == 1
    assert [note.seq for note in memory.backend.audit.notes(9, record_id=id_)] == [4, 3, 2, 1]
    assert [len(note.shown) for note in memory.backend.audit.notes(1, before=3)] == [1]
    assert [row.agent_id for row in memory.backend.audit.accesses(9, op="inject")] == [None, "sql"]
    with memory.backend.audit._database.reading() as connection:
        sizes = [
            row[0] for row in connection.execute("SELECT length(shown || dropped) FROM notes ORDER BY seq")
        ]
    assert max(sizes[1:3]) < 50 < min(sizes[0], sizes[3])


def test_what_was_told_again_makes_room_with_its_first_telling(
    memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOST", 3)
    told_three_times(memory)
    assert [note.seq for note in memory.backend.audit.notes(9)] == [4]


def test_what_a_graph_tells_its_readers_in_one_run_is_one_turn(memory: SupervisorMemory) -> None:
    memory.write("Use tables.", user_id=ANA)
    graph, run = crew(memory), uuid4()
    config: RunnableConfig = {"configurable": {"thread_id": "monday", "user_id": ANA}}
    graph.invoke({"messages": [("user", "Which format?")]}, config)
    graph.invoke({"messages": [("user", "Which format now?")]}, config)
    graph.invoke({"messages": [("user", "And now?")]}, {**config, "run_id": run})
    told = grouped(memory.backend.audit.notes(50))
    assert [[note.agent_id for note in turn.notes] for turn in told] == [[None, "tower"]] * 3
    assert told[0].run_id == str(run)
    assert len({turn.run_id for turn in told}) == 3
    assert len({turn.session for turn in told}) == 1


def rows_of_accesses(memory: SupervisorMemory) -> int:
    with memory.backend.audit._database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM access").get)


def test_the_records_of_a_note_come_into_the_access_log_once_somebody_asks(memory: SupervisorMemory) -> None:
    id_ = memory.write("Use tables.", user_id=ANA).id
    ask(memory, "Which format?")
    memory.backend.audit.flush()
    assert rows_of_accesses(memory) == 0
    log = memory.backend.audit
    assert [len(log.accesses(9, record_id=id_)) for _ in range(2)] == [1, 1]
    ask(memory, "Which format?")
    assert [row.op for row in log.accesses(9, record_id=id_)] == ["inject", "inject"]
    assert log.reads([id_])[id_].times == 2


def test_once_reads_are_asked_for_each_commit_keeps_up_with_the_notes(memory: SupervisorMemory) -> None:
    id_ = memory.write("Use tables.", user_id=ANA).id
    assert memory.backend.audit.reads([id_])[id_].times == 0
    ask(memory, "Which format?")
    memory.write("Planes are counted from the gate.", user_id=ANA)
    assert rows_of_accesses(memory) == 1
    assert memory.backend.audit.reads([id_])[id_].times == 1


def test_a_store_that_can_only_be_read_tells_whom_notes_told_what(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    id_ = memory.write("Use tables.", user_id=ANA).id
    ask(memory, "Which format?", agent="sql")
    memory.backend.audit.flush()
    with closing(SqliteBackend(tmp_path, read_only=True)) as other:
        [row] = other.audit.accesses(9, record_id=id_)
        assert (row.op, row.agent_id, row.rank, row.reason) == ("inject", "sql", 1, "standing")
    [again] = memory.backend.audit.accesses(9, record_id=id_)
    assert replace(again, id=row.id) == row


def test_notes_of_an_earlier_release_are_not_counted_twice(memory: SupervisorMemory, tmp_path: Path) -> None:
    id_ = memory.write("Use tables.", user_id=ANA).id
    ask(memory, "Which format?")
    assert len(memory.backend.audit.accesses(9)) == 1
    with memory.backend.audit._database.writing() as connection:  # as it left the file
        connection.execute("DELETE FROM audit_meta WHERE name = 'read_up_to'")
    with closing(SqliteBackend(tmp_path)) as other:
        assert len(other.audit.accesses(9, record_id=id_)) == 1


def test_a_record_that_was_erased_alone_does_not_come_back_by_a_note(memory: SupervisorMemory) -> None:
    [record] = memory.backend.get([memory.write("Use tables.", user_id=ANA).id])
    ask(memory, "Which format?")
    log = memory.backend.audit
    log.flush()
    assert log.erase_records(ANA, [record], at=2e9)["accesses"] == 1
    assert log.accesses(9, record_id=record.id) == ()


def test_an_erasure_of_the_only_user_leaves_later_notes_their_place(memory: SupervisorMemory) -> None:
    memory.write("Use tables.", user_id=ANA)
    for _ in range(3):
        ask(memory, "Which format?")
    memory.erase(user_id=ANA, confirm=True)
    memory.write("Use charts.", user_id="bob")
    memory.recall([{"role": "user", "content": "Which format?"}], Scope("bob"))
    assert [row.op for row in memory.backend.audit.accesses(9)] == ["inject"]
