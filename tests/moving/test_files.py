"""A file has its name only when it is whole, a cut one is noticed, and what was cut off goes on."""

import io
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import BackendError, BackendUnavailable, InvalidContent
from supervisor_memory.moving.files import PART
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Moves, Stored
from supervisor_memory.testing.moving_contract import all_of, assert_same, full_store
from supervisor_memory.testing.records import assert_chain, direction, tea
from tests import programs

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("MOVING_KILLS", "1"))
MANY = 900


def over(backend: InMemoryBackend) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"), backend=backend)


@pytest.fixture
def memory() -> SupervisorMemory:
    return over(full_store())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


def part_of(file: Path) -> Path:
    return file.with_name(file.name + PART)


def lines_in(file: Path) -> list[bytes]:
    """Without the first one, which has the time."""
    return file.read_bytes().splitlines()[1:]


def test_a_file_is_for_its_owner_alone_and_leaves_nothing_beside_it(
    memory: SupervisorMemory, file: Path
) -> None:
    memory.export(str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
    before = file.read_bytes()
    memory.export(file)
    assert lines_in(file) == before.splitlines()[1:]


def test_every_cut_of_a_file_is_noticed_and_what_is_whole_of_it_is_taken(
    memory: SupervisorMemory, file: Path
) -> None:
    memory.export(file)
    whole = file.read_bytes()
    begins = whole.index(b"\n") + 1
    starts = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in sorted({*range(begins, len(whole) - 1, 997), *(s - 1 for s in starts[1:-1]), *starts[:-1]}):
        other = over(InMemoryBackend())
        moved = other.import_from(io.BytesIO(whole[:cut]))
        assert not moved.is_whole
        assert moved.refused[-1].reason == "cut"
        assert moved.counts.get("added", 0) == len(all_of(other.backend))
        assert moved.counts.get("added", 0) >= whole[:cut].count(b"\n") - 1


def test_a_line_that_is_missing_in_the_middle_is_noticed(memory: SupervisorMemory, file: Path) -> None:
    memory.export(file)
    lines = file.read_bytes().splitlines(keepends=True)
    moved = over(InMemoryBackend()).import_from(io.BytesIO(b"".join([*lines[:3], *lines[4:]])))
    assert [(each.reason, each.line) for each in moved.refused] == [("cut", len(lines) - 1)]


class Fails(InMemoryBackend):
    """Gives some pages and then fails."""

    def __init__(self, source: InMemoryBackend, *, after: int) -> None:
        super().__init__()
        self._source, self._left = source, after

    def stored(
        self, *, after: str | None = None, limit: int, user_id: str | None = None
    ) -> tuple[Stored, ...]:
        self._left -= 1
        if self._left < 0:
            raise BackendError("the disk is gone")
        return tuple(self._source.stored(after=after, limit=min(limit, 3), user_id=user_id))


def test_an_export_that_fails_leaves_the_old_file_and_can_be_resumed(
    memory: SupervisorMemory, file: Path
) -> None:
    memory.export(file)
    whole = lines_in(file)
    file.write_bytes(b"an older one")
    source = memory.backend
    assert isinstance(source, InMemoryBackend)
    for after in (0, 1, 2, 1):
        with pytest.raises(BackendError):
            over(Fails(source, after=after)).export(file, resume=True)
        assert file.read_bytes() == b"an older one"
        assert part_of(file).exists()
    memory.export(file, resume=True)
    assert lines_in(file) == whole
    assert not part_of(file).exists()


@pytest.mark.parametrize("rest", [b"", b'{"record":{"id":"x"', b"\x00" * 100, b'{"end":{"records":19}}\n'])
def test_whatever_was_left_of_an_export_it_is_completed(
    memory: SupervisorMemory, file: Path, rest: bytes
) -> None:
    memory.export(file)
    whole = lines_in(file)
    content = file.read_bytes().splitlines(keepends=True)
    for kept in (0, 1, 2, 7, len(content) - 1):
        part_of(file).write_bytes(b"".join(content[:kept]) + rest)
        moved = memory.export(file, resume=True)
        assert moved.counts == {"exported": len(whole) - 1}
        assert lines_in(file) == whole


def test_without_resume_an_export_begins_anew(memory: SupervisorMemory, file: Path) -> None:
    part_of(file).write_bytes(b"x" * 1_000_000)
    memory.export(file)
    assert over(InMemoryBackend()).import_from(file).is_whole


def test_what_was_begun_for_one_user_is_not_resumed_for_all(memory: SupervisorMemory, file: Path) -> None:
    memory.export(file, user_id="alice")
    file.rename(part_of(file))
    with pytest.raises(InvalidContent, match="alice"):
        memory.export(file, resume=True)
    memory.export(file, user_id="alice", resume=True)
    assert over(InMemoryBackend()).import_from(file).is_whole


def test_two_exports_do_not_write_one_file(memory: SupervisorMemory, file: Path) -> None:
    tried: list[str] = []

    def second(_done: int, _whole: int) -> None:
        with pytest.raises(BackendUnavailable):
            memory.export(file)
        tried.append("once")

    memory.export(file, progress=second)
    assert tried
    assert over(InMemoryBackend()).import_from(file).is_whole


def test_a_directory_and_a_link_in_the_place_of_the_file_are_refused(
    memory: SupervisorMemory, file: Path
) -> None:
    with pytest.raises(InvalidContent, match="directory"):
        memory.export(file.parent)
    victim = file.parent / "victim"
    victim.write_text("mine")
    part_of(file).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        memory.export(file)
    assert victim.read_text() == "mine"


def test_progress_is_told_up_to_the_end(memory: SupervisorMemory, file: Path) -> None:
    told: list[tuple[int, int]] = []
    memory.export(file, progress=lambda *now: told.append(now))
    assert told[-1] == (len(lines_in(file)) - 1,) * 2
    told.clear()
    over(InMemoryBackend()).import_from(file, progress=lambda *now: told.append(now))
    assert told[-1] == (file.stat().st_size,) * 2


# --- kill -9


def many_records(path: Path) -> list[Stored]:
    """A sqlite store with enough to be killed over."""
    with SupervisorMemory(Settings(backend="sqlite", path=path, embedding_model="none")) as memory:
        backend = memory.backend
        assert isinstance(backend, Moves)
        backend.take([_numbered(number) for number in range(MANY)])
        return all_of(backend, limit=1_000)


def _numbered(number: int) -> Stored:
    content, user = f"tea number {number} 绿茶", f"user-{number % 7}"
    record = tea(content, user=user, id=f"{number:05d}", embedder="compass@1/8")
    return Stored(record, vector=direction(number))


SLOW = """
import sys, time
from pathlib import Path
from supervisor_memory import Settings, SupervisorMemory
import supervisor_memory.moving.arrival as arrival, supervisor_memory.moving.mover as mover
arrival._TAKEN_TOGETHER, mover._READ_TOGETHER = 100, 100
what, kind, path, file = sys.argv[1:]
with SupervisorMemory(Settings(backend=kind, path=Path(path), embedding_model="none")) as memory:
    def progress(done, whole):
        print(done, flush=True)
        time.sleep(0.02)
    if what == "export":
        memory.export(file, resume=True, progress=progress)
    else:
        memory.import_from(file, progress=progress)
"""


def kill_in_the_middle(steps: int, *arguments: str) -> bool:
    """Run it, and kill it after so many pages; whether it was still running."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with programs.start("-c", SLOW, *arguments, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(steps):
            process.stdout.readline()
        time.sleep(0.003 * steps)
        is_running = process.poll() is None
        process.send_signal(signal.SIGKILL)
    return is_running


def until_done(kill: Callable[[int], bool]) -> int:
    """Kill it further on each time; how often it was killed while it ran."""
    return sum(kill(steps) for steps in range(1, KILLS + 1))


@pytest.mark.slow
def test_an_export_that_is_killed_again_and_again_ends_with_the_whole_file(tmp_path: Path) -> None:
    given, file = many_records(tmp_path / "here"), tmp_path / "f.jsonl"
    killed = until_done(
        lambda n: kill_in_the_middle(n, "export", "sqlite", str(tmp_path / "here"), str(file))
    )
    assert killed
    assert not file.exists()
    with SupervisorMemory(
        Settings(backend="sqlite", path=tmp_path / "here", embedding_model="none")
    ) as memory:
        memory.export(file, resume=True)
    other = over(InMemoryBackend())
    assert other.import_from(file).counts == {"added": MANY}
    assert_same(all_of(other.backend, limit=1_000), given)


@pytest.mark.parametrize("kind", [pytest.param("sqlite", marks=pytest.mark.slow), "json"])
def test_an_import_that_is_killed_again_and_again_ends_in_the_same_state(tmp_path: Path, kind: str) -> None:
    given, file = many_records(tmp_path / "here"), tmp_path / "f.jsonl"
    with SupervisorMemory(
        Settings(backend="sqlite", path=tmp_path / "here", embedding_model="none")
    ) as memory:
        memory.export(file)
    there = tmp_path / "there"
    assert until_done(lambda n: kill_in_the_middle(n, "import", kind, str(there), str(file)))
    with SupervisorMemory(Settings(backend=kind, path=there, embedding_model="none")) as memory:
        counts = memory.import_from(file).counts
        assert counts["same"] > 0
        assert counts["same"] + counts.get("added", 0) == MANY
        assert_same(all_of(memory.backend, limit=1_000), given)
        found = memory.backend.audit.tail(10**6, op="memory.import")
        assert sorted(row.record_id or "" for row in found) == [each.record.id for each in given]
        assert_chain(memory.backend.audit.tail(10**6), memory.backend.audit.log_id)
        hits = memory.search("number 807", user_id=f"user-{807 % 7}", threshold=0.0)
        assert "tea number 807 绿茶" in {hit.record.content for hit in hits}


def test_what_is_no_file_is_refused_and_stays_what_it_is(memory: SupervisorMemory, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        with pytest.raises(InvalidContent, match="name a file"):
            memory.export(place)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]
