"""What moves from one store into another is the same there, and is found the same way."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, IdentityError, SettingsError
from supervisor_memory.model.records import SESSION_FAMILY
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.moving_contract import all_of, assert_same
from tests.canaries import Dense
from tests.stores.test_moving import KINDS, opened

ADA, BO = "ada", "小波"
QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (ADA, "How should results be shown?", {}),
    (ADA, "When is a flight delayed?", {}),
    (ADA, "What did I say of coffee?", {"families": [SESSION_FAMILY]}),
    (BO, "默认怎么展示结果？", {}),
    (BO, "咖啡", {"threshold": 0.0}),
)


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as ending:
        yield ending


def memory_over(backend: MemoryBackend) -> SupervisorMemory:
    return SupervisorMemory(
        Settings(keep_messages=True),
        backend=backend,
        embedder=Dense(),
        clock=FixedClock(),
    )


def lived(memory: SupervisorMemory) -> None:
    """Two users, two languages: statements, changes, deletions, sessions, imports."""
    for user, shown, late, said in (
        (ADA, "Use tables by default.", "Delayed means 15 minutes late.", "I had coffee."),
        (BO, "以后默认用表格。", "延误是指晚到15分钟以上。", "我喝了咖啡。"),
    ):
        memory.write(shown, user_id=user)
        kept = memory.write(late, user_id=user, metadata={"use_when": "延误", "deep": [{"a": 1.5}]})
        memory.update(kept.id, content=late.replace("15", "20"), user_id=user)
        gone = memory.write(f"{said} {user}", user_id=user, kind="tool-effects")
        memory.delete(gone.id, user_id=user)
        memory.remember([("user", said), ("assistant", "好的。")], Scope(user, session_id="s-1"), turn_id="t")
        memory.add_many([said, said], user_id=user)
        memory.write("tea of a task", user_id=user, task="q3", agent_id="sql")
    assert memory.flush()  # nothing changes in the background any more


def answers(memory: SupervisorMemory) -> list[list[tuple[str, float]]]:
    """What is found, in its order; equally good ones, which are in no order, by their ids."""
    found = [memory.search(text, user_id=user, **options) for user, text, options in QUESTIONS]
    return [
        [
            (hit.record.id, round(hit.score, 4))
            for hit in sorted(hits, key=lambda h: (-round(h.score, 4), h.record.id))
        ]
        for hits in found
    ]


@pytest.mark.one_in(16)
@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("here", KINDS)
def test_copied_records_are_the_same_and_found_the_same_way(
    here: str, there: str, tmp_path: Path, ending: ExitStack
) -> None:
    source = memory_over(opened(here, tmp_path / "here", ending))
    target = memory_over(opened(there, tmp_path / "there", ending))
    ending.callback(source.close)
    ending.callback(target.close)
    lived(source)
    given = all_of(source.backend)
    assert len({each.record.status for each in given}) == 2
    assert any(each.earlier for each in given)
    assert any(each.vector is not None for each in given)
    moved = source.copy_to(target)
    assert moved.is_whole
    assert moved.counts == {"added": len(given)}
    assert_same(all_of(target.backend), given)
    exact = here.partition(" ")[0] == there.partition(" ")[0] or "qdrant" not in (here + there)
    if exact:
        assert answers(target) == answers(source)
    else:  # Qdrant weighs words, and knows what was said before, by what it finds
        found, by_qdrant = answers(source), answers(target)
        if "qdrant" in here:
            found, by_qdrant = by_qdrant, found
        for every, some in zip(found, by_qdrant, strict=True):
            assert {id for id, _ in some} <= {id for id, _ in every}
            assert bool(some) == bool(every)
    assert target.copy_to(source).counts == {"same": len(given)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_through_a_file_comes_back_the_same(kind: str, tmp_path: Path, ending: ExitStack) -> None:
    source = memory_over(opened(kind, tmp_path / "here", ending))
    target = memory_over(opened(kind, tmp_path / "there", ending))
    ending.callback(source.close)
    ending.callback(target.close)
    lived(source)
    given = all_of(source.backend)
    assert source.export(tmp_path / "all.jsonl").counts == {"exported": len(given)}
    moved = target.import_from(tmp_path / "all.jsonl")
    assert (moved.counts, moved.refused) == ({"added": len(given)}, ())
    assert_same(all_of(target.backend), given)
    assert target.import_from(tmp_path / "all.jsonl").counts == {"same": len(given)}
    target.export(tmp_path / "again.jsonl")
    first, second = ((tmp_path / name).read_bytes().splitlines()[1:] for name in ("all.jsonl", "again.jsonl"))
    if "qdrant" not in kind:
        assert first == second
    assert len(first) == len(second)


def test_one_user_can_be_moved_alone(tmp_path: Path, ending: ExitStack) -> None:
    source = memory_over(opened("sqlite", tmp_path / "here", ending))
    lived(source)
    given = all_of(source.backend, user_id=BO)
    source.export(tmp_path / "bo.jsonl", user_id=BO)
    source.export(tmp_path / "all.jsonl")
    for how in ("a file of one", "a file of all", "a copy"):
        target = memory_over(opened("in_memory", tmp_path, ending))
        if how == "a copy":
            source.copy_to(target, user_id=BO)
        else:
            name = "bo.jsonl" if how == "a file of one" else "all.jsonl"
            moved = target.import_from(tmp_path / name, user_id=BO)
            assert moved.is_whole
            assert moved.counts.get("left_out", 0) == (len(given) if how == "a file of all" else 0)
        assert_same(all_of(target.backend), given)
    for move in (source.export, source.import_from):
        with pytest.raises(IdentityError):
            move(tmp_path / "all.jsonl", user_id="null")
    source.close()


def test_who_moved_what_is_in_both_logs(tmp_path: Path, ending: ExitStack) -> None:
    source, target = (memory_over(opened("in_memory", tmp_path, ending)) for _ in range(2))
    lived(source)
    source.copy_to(target, user_id=ADA)
    (row,) = source.backend.audit.tail(9, op="memory.export")
    assert row.event["detail"] == {"to": "in_memory"}
    assert row.subject is not None
    taken = target.backend.audit.tail(99, op="memory.import")
    assert {row.record_id for row in taken} == {each.record.id for each in all_of(target.backend)}


def test_a_place_that_another_page_leaves_is_taken_in_the_end(
    tmp_path: Path, ending: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor_memory.moving.arrival._TAKEN_TOGETHER", 1)
    source, target = (memory_over(opened("in_memory", tmp_path, ending)) for _ in range(2))
    first = source.write("The refund code is 1234.", user_id=ADA)
    source.copy_to(target)
    source.update(first.id, content="The refund code is 5678.", user_id=ADA)
    source.write("The refund code is 1234.", user_id=BO)
    again = source.write("Nothing else is known.", user_id=ADA)
    source.update(again.id, content="The refund code is 1234.", user_id=ADA)
    moved = source.copy_to(target)
    assert moved.is_whole
    assert_same(all_of(target.backend), all_of(source.backend))


def test_a_store_is_not_copied_into_itself_nor_into_one_that_cannot_take(
    tmp_path: Path, ending: ExitStack
) -> None:
    memory = memory_over(opened("in_memory", tmp_path, ending))
    with pytest.raises(SettingsError, match="the store itself"):
        memory.copy_to(memory)

    class Still:
        name = "still"

    with pytest.raises(BackendError, match="still"):
        memory.copy_to(Still())  # type: ignore[arg-type]


async def test_the_async_twins_do_the_same(tmp_path: Path, ending: ExitStack) -> None:
    source, target, third = (memory_over(opened("in_memory", tmp_path, ending)) for _ in range(3))
    lived(source)
    await source.aexport(tmp_path / "f.jsonl")
    await target.aimport_from(tmp_path / "f.jsonl")
    await target.acopy_to(third)
    assert_same(all_of(third.backend), all_of(source.backend))
