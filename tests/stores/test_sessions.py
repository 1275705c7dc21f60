"""Every store lists the same sessions, by its own means or by its messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.testing.erasing_contract import ErasingRecordsContract
from supervisor_memory.testing.sessions_contract import SessionsContract
from tests.opened import STORES, opened


class TestSessions(SessionsContract, ErasingRecordsContract):
    @pytest.fixture(params=STORES)
    def backend(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
        with opened(request.param, tmp_path) as backend:
            yield backend
