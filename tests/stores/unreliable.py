"""A store that can be out of reach: every call fails, or one does after it has worked."""

import time
from collections.abc import Mapping
from typing import Any

from supervisor_memory.errors import BackendUnavailable
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import Committed, Erased, Health

__all__ = ["Unreliable"]


class Unreliable(InMemoryBackend):
    """Records in memory behind a line that can be cut. Several handles share what is behind it.

    Attributes:
        how: "works", "refuses", "hangs", or "loses the answer" of what it has done.
        asked: The names of the methods that were called.
    """

    def __init__(self, shared: InMemoryBackend | None = None) -> None:
        super().__init__()
        self.behind = shared or InMemoryBackend()
        self.how = "works"
        self.hang_seconds = 1.0
        self.asked: list[str] = []

    def _over_the_line(self, method: str, *args: Any, **options: Any) -> Any:
        self.asked.append(method)
        if self.how == "refuses":
            raise BackendUnavailable("the line is cut")
        if self.how == "hangs":
            time.sleep(self.hang_seconds)
        answer = getattr(self.behind, method)(*args, **options)
        if self.how == "loses the answer":
            raise BackendUnavailable("the line was cut before the answer came")
        return answer

    def batch(self, *args: Any, **options: Any) -> Committed:
        return self._over_the_line("batch", *args, **options)  # type: ignore[no-any-return]

    def search(self, *args: Any, **options: Any) -> Any:
        return self._over_the_line("search", *args, **options)

    def list(self, *args: Any, **options: Any) -> Any:
        return self._over_the_line("list", *args, **options)

    def get(self, *args: Any, **options: Any) -> Any:
        return self._over_the_line("get", *args, **options)

    def count(self, *args: Any, **options: Any) -> int:
        return self._over_the_line("count", *args, **options)  # type: ignore[no-any-return]

    def versions(self, *args: Any, **options: Any) -> Any:
        return self._over_the_line("versions", *args, **options)

    def health(self) -> Health:
        return self._over_the_line("health")  # type: ignore[no-any-return]

    def holds(self, *args: Any) -> Mapping[str, int]:
        return self._over_the_line("holds", *args)  # type: ignore[no-any-return]

    def erase(self, *args: Any, **options: Any) -> Erased:
        return self._over_the_line("erase", *args, **options)  # type: ignore[no-any-return]

    def erase_records(self, *args: Any, **options: Any) -> Erased:
        return self._over_the_line("erase_records", *args, **options)  # type: ignore[no-any-return]

    def stored(self, *args: Any, **options: Any) -> Any:
        return self._over_the_line("stored", *args, **options)

    def take(self, *args: Any) -> Any:
        return self._over_the_line("take", *args)
