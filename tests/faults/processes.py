"""Processes that write, report what was acknowledged, and are killed."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from supervisor_memory.model.records import AuditEvent, Record, Status
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.records import direction, tea, with_vector

Acknowledged = tuple[str, int]
"""A record's id, and the version that was acknowledged."""

FORKS = (
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
)
_ID, _VERSION = 36, 8


def forked(work: Callable[[], None]) -> int:
    """Run this in a child, which then ends at once: with 0, or 1 where the work raised."""
    if child := os.fork():
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        raise
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a child; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tell(pipe: int, record: Record) -> None:
    """Acknowledge: one `write` that is shorter than PIPE_BUF, so that those of two processes never mix."""
    os.write(pipe, f"{record.id}{record.version:0{_VERSION}}".encode())


def told(received: bytes) -> list[Acknowledged]:
    size = _ID + _VERSION
    parts = [received[at : at + size].decode() for at in range(0, len(received), size)]
    return [(part[:_ID], int(part[_ID:])) for part in parts]


def everything_in(pipe: int) -> bytes:
    received = b""
    while chunk := os.read(pipe, 1 << 16):
        received += chunk
    return received


def commits(seed: int) -> Iterator[tuple[Change, AuditEvent]]:
    """An endless stream of commits, as of a busy graph: new records with vectors, changes, deletions."""
    chance = Random(seed)
    mine: list[Record] = []
    number = 0
    while True:
        number += 1
        if mine and chance.random() < 0.3:
            record = mine.pop(chance.randrange(len(mine)))
            status: Status = "deleted" if chance.random() < 0.3 else "active"
            changed = replace(record, content=f"{record.content} and {number}", status=status, vector=None)
            yield Change(changed, expects=record.version), _event("update", changed, record)
            if status == "active":
                mine.append(replace(changed, version=record.version + 1))
        else:
            user = chance.choice(("alice", "bob"))
            text = f"tea {os.getpid()} {seed} {number} " + "leaf " * chance.randrange(1, 200)
            record = with_vector(tea(text, user=user), direction(number))
            yield Change(record), _event("add", record, None)
            mine.append(replace(record, version=1))


def addition(text: str, *, user: str = "alice") -> Commit:
    """One new record, and its row in the audit log."""
    record = tea(text, user=user)
    return Commit((Change(record),), (_event("add", record, None),))


def _event(op: str, record: Record, before: Record | None) -> AuditEvent:
    return AuditEvent(
        op,
        user_id=record.user_id,
        record_id=record.id,
        version_before=None if before is None else before.version,
        version_after=1 if before is None else before.version + 1,
        before=None if before is None else before.content,
        after=record.content,
    )


def write_for_ever(directory: Path, pipe: int, seed: int) -> None:
    """Commit after commit, each reported once it is acknowledged."""
    backend = SqliteBackend(directory)
    for change, event in commits(seed):
        (record,) = backend.batch(Commit((change,), (event,))).records
        tell(pipe, record)


@contextmanager
def killed_later(works: Sequence[Callable[[int], None]]) -> Iterator[tuple[list[int], int]]:
    """Run children with a pipe, and kill them at the end of the block. Gives their ids and the pipe."""
    reading, writing = os.pipe()
    children = [forked(lambda work=work: work(writing)) for work in works]  # type: ignore[misc]
    os.close(writing)
    try:
        yield children, reading
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def acknowledged_before_a_kill(
    directory: Path, *, writers: int, seed: int, seconds: float, from_the_start: bool
) -> list[Acknowledged]:
    """Let writers write for some seconds, then kill them all; returns the acknowledged commits.

    Args:
        seconds: How long from the first acknowledgement on, or from the start of the processes.
    """
    works = [lambda pipe, at=at: write_for_ever(directory, pipe, seed * 10 + at) for at in range(writers)]
    with killed_later(works) as (_, pipe):
        received = b"" if from_the_start else os.read(pipe, _ID + _VERSION)
        time.sleep(seconds)
    received += everything_in(pipe)
    os.close(pipe)
    return told(received)
