"""A memory is closed without an error where the disk is full, and nothing that was acknowledged is lost."""

from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.errors import SupervisorMemoryError
from tests.faults.disk import Disk, on

BACKENDS = ["json", "sqlite"]


def opened(backend: Any, path: Path) -> SupervisorMemory:
    return SupervisorMemory(Settings(backend=backend, path=path, embedding_model="none"))


@pytest.mark.xfail(strict=True, reason="close raises BackendError for the access rows that find no room")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_memory_is_closed_on_a_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    with on(Disk(), monkeypatch) as disk:
        memory = opened(backend, tmp_path)
        memory.write("Use tables by default.", user_id="ada")
        disk.fails_after = 0
        memory.search("tables", user_id="ada")
        memory.recall("how shall it be shown?", Scope("ada", session_id="s1", run_id="r1"))
        memory.close()
        memory.close()
        disk.fails_after = None
    with opened(backend, tmp_path) as memory:
        assert [each.content for each in memory.get_all(user_id="ada")] == ["Use tables by default."]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_of_the_host_is_not_hidden_by_one_of_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    def failing(disk: Disk) -> None:
        with opened(backend, tmp_path) as memory:
            memory.write("Use tables by default.", user_id="ada")
            disk.fails_after = 0
            memory.search("tables", user_id="ada")
            with pytest.raises(SupervisorMemoryError):
                memory.write("Coffee is black.", user_id="ada")
            raise ZeroDivisionError

    with on(Disk(), monkeypatch) as disk:
        with pytest.raises(ZeroDivisionError):
            failing(disk)
        assert disk.failed > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_a_disk_with_room_what_was_read_is_in_the_log_after_closing(tmp_path: Path, backend: str) -> None:
    with opened(backend, tmp_path) as memory:
        memory.write("Use tables by default.", user_id="ada")
        memory.search("tables", user_id="ada")
    with opened(backend, tmp_path) as memory:
        assert memory.backend.audit.accesses(9, op="search")
