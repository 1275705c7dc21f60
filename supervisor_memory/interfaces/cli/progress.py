"""A bar on stderr for what takes its time."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress

__all__ = ["bar"]


@contextlib.contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how much is done, and of how much. A file or a pipe gets none."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=max(done, total))

        yield told
