"""The JSON file: the contract, and what only a file can go through."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from itertools import count
from pathlib import Path

import pytest

from supervisor_memory.errors import BackendError, BackendUnavailable, CorruptStore, ReadOnlyStore
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.memory import json_file
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.backend_contract import PersistentBackendContract
from supervisor_memory.testing.records import assert_chain, direction, query, tea, with_vector

CYCLES = 20
ID_LENGTH = 36


class PowerCutError(BaseException):
    """Nothing may catch it, as nothing runs when the power is gone."""


class TestJson(PersistentBackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = JsonBackend(tmp_path / "store")
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: JsonBackend(tmp_path / "store")


def fill(directory: Path) -> str:
    with closing(JsonBackend(directory)) as backend:
        record = with_vector(tea("喜欢绿茶 tea"), direction(0))
        backend.write([record])
        return record.id


def operations(backend: JsonBackend) -> list[str]:
    return [row.op for row in backend.audit.tail(100)]


def test_the_file_can_be_read_by_people_and_programs(tmp_path: Path) -> None:
    record_id = fill(tmp_path)
    text = (tmp_path / "memory.json").read_text(encoding="utf-8")
    assert '"content": "喜欢绿茶 tea"' in text
    content = json.loads(text)
    assert content["format"] == 1
    assert [record["id"] for record in content["records"]] == [record_id]
    assert list(content["vectors"]) == [record_id]
    assert (tmp_path / "memory.json").stat().st_mode & 0o777 == 0o600


def test_the_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    fill(tmp_path / "new" / "store")
    assert (tmp_path / "new" / "store").stat().st_mode & 0o777 == 0o700


def test_an_edit_by_hand_is_seen(tmp_path: Path) -> None:
    record_id = fill(tmp_path)
    file = tmp_path / "memory.json"
    with closing(JsonBackend(tmp_path)) as backend:
        file.write_text(file.read_text(encoding="utf-8").replace("绿茶", "红茶"), encoding="utf-8")
        assert backend.get([record_id])[0].content == "喜欢红茶 tea"
        assert backend.search(query("红茶"), limit=5)


def test_a_file_that_went_away_is_an_empty_store(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(JsonBackend(tmp_path)) as backend:
        (tmp_path / "memory.json").unlink()
        assert backend.count(Filter()) == 0
        backend.write([tea("new")])
        assert backend.count(Filter()) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: '"memory"',
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"content"', '"contents"'),
        lambda text: text.replace('"namespace"', '"place"'),
        lambda text: text.replace('"records": [', '"records": [7,'),
        lambda text: text.replace('"float32": "', '"float32": "!'),
        lambda text: text.replace("tea", "\x00"),
    ],
    ids=range(11),
)
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, damage: Callable[[str], str]) -> None:
    fill(tmp_path)
    file = tmp_path / "memory.json"
    running = JsonBackend(tmp_path)
    damaged = damage(file.read_text(encoding="utf-8"))
    file.write_text(damaged, encoding="utf-8")
    for attempt in (
        lambda: JsonBackend(tmp_path),
        lambda: running.count(Filter()),
        lambda: running.write([tea("new")]),
    ):
        with pytest.raises(CorruptStore, match="left as it is") as raised:
            attempt()
        assert str(file) in str(raised.value)
    assert not running.health().ok
    assert file.read_text(encoding="utf-8") == damaged
    running.close()


def test_where_nothing_can_be_written_it_can_be_read(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    fill(open_place)
    files = {path.name: path.read_bytes() for path in open_place.iterdir()}
    with read_only(open_place), closing(JsonBackend(open_place)) as backend:
        assert backend.search(query(vector=direction(0)), limit=5)[0].parts["cosine"] == pytest.approx(1)
        assert "read-only" in backend.health().message
        assert backend.audit.tail(5)
        with pytest.raises(ReadOnlyStore):
            backend.write([tea("new")])
        with pytest.raises(ReadOnlyStore):
            backend.delete(Filter(user_id="alice"))
    assert {path.name: path.read_bytes() for path in open_place.iterdir()} == files


def test_a_copy_without_its_log_can_be_read_where_nothing_can_be_written(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    fill(open_place)
    for path in open_place.iterdir():
        if path.name != "memory.json":
            path.unlink()
    with read_only(open_place), closing(JsonBackend(open_place)) as backend:
        assert backend.count(Filter()) == 1
        assert not backend.audit.tail(5)
        assert not backend.audit.accesses(5)
        with pytest.raises(ReadOnlyStore):
            backend.write([tea("new")])


def test_rights_lost_on_the_way_leave_everything_as_it_was(
    open_place: Path, read_only: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with closing(JsonBackend(open_place)) as backend:
        backend.write([tea("before")])
        before = (open_place / "memory.json").read_bytes()
        with read_only(open_place), pytest.raises(ReadOnlyStore):
            backend.write([tea("after")])
        assert (open_place / "memory.json").read_bytes() == before
        assert backend.count(Filter()) == 1


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(JsonBackend(tmp_path)) as backend:
        backend.write([tea("before")])
        before = (tmp_path / "memory.json").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(json_file, "_write_all", no_room)
            with pytest.raises(BackendError, match="No space left"):
                backend.write([tea("after")])
        assert (tmp_path / "memory.json").read_bytes() == before
        assert backend.count(Filter()) == 1
        last = backend.audit.tail(1)[0]
        assert (last.op, last.outcome) == ("commit.done", "failed")
        backend.write([tea("after")])
        assert backend.count(Filter()) == 2


def no_room(descriptor: int, content: bytes) -> None:
    os.write(descriptor, content[: len(content) // 2])
    raise OSError(28, "No space left on device")


# Intent and outcome


def test_a_commit_has_an_intent_and_an_outcome_around_its_events(tmp_path: Path) -> None:
    with closing(JsonBackend(tmp_path)) as backend:
        backend.write([tea("one"), tea("two")])
        rows = backend.audit.tail(9)
        assert [row.op for row in rows] == ["commit.intent", "memory.write", "memory.write", "commit.done"]
        commits = {row.event["detail"].get("commit") for row in rows} - {None}
        assert commits == {json.loads((tmp_path / "memory.json").read_text())["commit"]}


@pytest.mark.parametrize("applied", [False, True])
def test_an_intent_without_outcome_is_settled_by_what_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    backend = JsonBackend(tmp_path)
    backend.write([tea("before")])
    replace = backend._file.replace

    def lose_power(text: str) -> None:
        if applied:
            replace(text)
        raise PowerCutError

    monkeypatch.setattr(backend._file, "replace", lose_power)
    with pytest.raises(PowerCutError):
        backend.write([tea("after")])
    assert operations(backend)[-1] == "commit.intent"
    with closing(JsonBackend(tmp_path)) as again:
        assert operations(again)[-1] == "commit.unknown"
        assert again.audit.tail(1)[0].event["detail"]["applied"] is applied
        assert again.count(Filter()) == 1 + applied
        assert_chain(again.audit.tail(100), again.audit.log_id)
    with closing(JsonBackend(tmp_path)) as again:
        assert operations(again).count("commit.unknown") == 1


def test_a_handle_that_is_open_settles_what_another_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survivor, victim = JsonBackend(tmp_path), JsonBackend(tmp_path)

    def lose_power(text: str) -> None:
        raise PowerCutError

    monkeypatch.setattr(victim._file, "replace", lose_power)
    with pytest.raises(PowerCutError):
        victim.write([tea("lost")])
    survivor.write([tea("kept")])
    assert operations(survivor)[:2] == ["commit.intent", "commit.unknown"]
    assert [record.content for record in victim.list(Filter(), limit=9)] == ["kept"]


def test_a_lock_that_is_held_too_long_is_an_error(tmp_path: Path) -> None:
    holder, waiter = JsonBackend(tmp_path), JsonBackend(tmp_path, lock_seconds=0.05)
    with holder._file.locked(1.0), pytest.raises(BackendUnavailable, match="locked by another process"):
        waiter.write([tea()])
    waiter.write([tea()])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    for cycle in range(CYCLES):
        told, tell = os.pipe()
        writers = [write_for_ever(tmp_path, tell) for _ in range(2)]
        os.close(tell)
        received = os.read(told, ID_LENGTH)
        time.sleep(0.005 * cycle)
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
        while chunk := os.read(told, 1 << 16):
            received += chunk
        os.close(told)
        acknowledged |= {received[at : at + ID_LENGTH].decode() for at in range(0, len(received), ID_LENGTH)}
    with closing(JsonBackend(tmp_path)) as backend:
        assert len(backend.get(sorted(acknowledged))) == len(acknowledged) >= CYCLES
        rows = backend.audit.tail(10**6)
        assert_chain(rows, backend.audit.log_id)
        applied = sum(row.event["detail"].get("applied", False) for row in rows if row.op == "commit.unknown")
        written = sum(row.op == "memory.write" for row in rows)
        assert backend.count(Filter()) == written + applied


def write_for_ever(directory: Path, acknowledge: int) -> int:
    """A process that writes until it is killed, and tells each id once its record is stored."""
    child = os.fork()
    if child:
        return child
    try:
        backend = JsonBackend(directory)
        for number in count():
            record = tea(f"{os.getpid()} tea {number}")
            backend.write([record])
            os.write(acknowledge, record.id.encode())
    finally:
        os._exit(1)
