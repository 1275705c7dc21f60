"""The double as a process of its own over a directory, so that it can be killed and started again.

Run: python -m tests.stores.qdrant_process DIRECTORY PORT    (port 0: a free one; prints its address)
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from qdrant_client import QdrantClient

from tests import programs
from tests.stores.qdrant_double import Answer, Asked, QdrantDouble, running

__all__ = ["QdrantProcess"]

_ROOT = Path(__file__).parents[2]


class QdrantProcess:
    """A server that keeps what it was given in a directory; its address stays the same."""

    def __init__(self, directory: Path) -> None:
        self.url = ""
        self._directory = directory
        self._process: programs.Program | None = None

    def start(self) -> None:
        self._process = programs.start(
            *("-m", "tests.stores.qdrant_process", self._directory, self.url.rpartition(":")[2] or "0"),
            cwd=_ROOT,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server did not start"

    def kill(self) -> None:
        """As kill -9 does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class _KeptDouble(QdrantDouble):
    """A double over a directory. Which fields are indexed lies beside the points, as local mode has none."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.engine = QdrantClient(path=str(directory / "points"), force_disable_check_same_thread=True)
        self._file = directory / "indexes.json"
        if self._file.exists():
            self.indexes = json.loads(self._file.read_text())

    def apply(self, asked: Asked) -> Answer:
        with self._lock:
            answer = super().apply(asked)
            if asked.what == "PUT /collections/*/index":
                new = self._file.with_suffix(".new")
                new.write_text(json.dumps(self.indexes))
                os.replace(new, self._file)
            return answer


def _serve(directory: Path, port: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with running(_KeptDouble(directory), port=port, keeps_connections=True) as server:
        print(server.url, flush=True)  # noqa: T201  # for who started it
        threading.Event().wait()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
