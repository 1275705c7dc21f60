"""`--forks N`: tests run side by side in N processes, forked off this one once it has collected them.

The workers of pytest-xdist (`-n`) each import and collect all of it anew, which takes twelve seconds of a
processor; these begin with what is here, and what one of them changes no other sees.
"""

import atexit
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn
from warnings import WarningMessage

import pytest

from tests import programs

__all__ = ["pytest_addoption", "pytest_runtestloop", "pytest_sessionstart"]

SHARES = 4
"""A worker is given this share of its part of what is left: long blocks, whose tests share what a module sets
up, and short ones at the end, so that all workers end at once."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run tests in so many forked processes")


def pytest_sessionstart(session: pytest.Session) -> None:
    """What the programs of the tests need is imported while the tests are."""
    if session.config.getoption("--forks") and not session.config.option.collectonly:
        programs.begin_server()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = min(session.config.getoption("--forks"), len(session.items))
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    run = _Run(session)
    workers = [_Worker(session) for _ in range(count)]
    try:
        while workers:
            for line in wait([worker.line for worker in workers]):
                worker = next(each for each in workers if each.line is line)
                if not run.heard(worker):
                    workers.remove(worker)
                    workers += [_Worker(session)] if run.left else []
                if session.shouldfail or session.shouldstop:
                    raise session.Failed(session.shouldfail or session.shouldstop)
    finally:
        for worker in workers:
            os.kill(worker.process, signal.SIGKILL)
            worker.ended()
    return True


class _Worker:
    """A process, our end of the line to it, and the numbers of the tests that it has been given."""

    def __init__(self, session: pytest.Session) -> None:
        self.line, theirs = Pipe()
        self.given: deque[int] = deque()
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if not self.process:
            _be_worker(session, theirs)
        theirs.close()

    def ended(self) -> int:
        """What it ended with."""
        self.line.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


class _Run:
    """What is left to do, and what is told of what was done."""

    def __init__(self, session: pytest.Session) -> None:
        self._items = session.items
        self._hook, self._config = session.config.hook, session.config
        self.left = deque(range(len(session.items)))
        self._workers = session.config.getoption("--forks")

    def heard(self, worker: _Worker) -> bool:
        """Read what a worker says: a test is done, or it asks for more; whether it goes on."""
        try:
            said = worker.line.recv()
        except (EOFError, ConnectionResetError):
            self._ended(worker)
            return False
        if said is None:
            size = max(1, len(self.left) // (SHARES * self._workers))
            block = [self.left.popleft() for _ in range(min(size, len(self.left)))]
            worker.given += block
            worker.line.send(block)
            return True
        reports, warned = said
        for message, category, filename, lineno, nodeid in warned:
            told = WarningMessage(message, category, filename, lineno)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": told, "when": "runtest", "nodeid": nodeid, "location": None}
            )
        for data in reports:
            report = self._hook.pytest_report_from_serializable(config=self._config, data=data)
            self._hook.pytest_runtest_logreport(report=report)
        self._finished(worker)
        return True

    def _ended(self, worker: _Worker) -> None:
        """It has done all that there was, or died in the first of what it was given."""
        died = list(worker.given)
        code = worker.ended()
        if died:
            item = self._items[died[0]]
            told = f"the worker that ran it ended with {code}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", told, "call")
            self._hook.pytest_runtest_logreport(report=report)
            self.left.extendleft(reversed(died[1:]))

    def _finished(self, worker: _Worker) -> None:
        item = self._items[worker.given.popleft()]
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Teller:
    """The plugin of a worker: tells of each test when it is done."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line
        self._reports: list[dict[str, Any]] = []
        self._warned: list[tuple[str, type[Warning], str, int, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(
            self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        )

    def pytest_warning_recorded(self, warning_message: WarningMessage, nodeid: str) -> None:
        told = warning_message
        self._warned.append((str(told.message), told.category, told.filename, told.lineno, nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        done = yield
        self._line.send((self._reports, self._warned))
        self._reports, self._warned = [], []
        return done


def _be_worker(session: pytest.Session, line: Connection) -> NoReturn:
    """Run what is given until there is no more, and end as an interpreter ends."""
    code = 1
    try:
        _work(session, line)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        code = 0
    except BaseException:  # noqa: BLE001  # else it would go on as the process that it was forked off
        traceback.print_exc()
    finally:
        os._exit(code)


def _work(session: pytest.Session, line: Connection) -> None:
    programs.keep_server()
    plugins = session.config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture = plugins.getplugin("capturemanager")
    capture.suspend_global_capture(in_=True)
    capture._global_capturing = (
        None  # its files are those of all workers, and stay open for who has kept them
    )
    capture.start_global_capturing()
    plugins.register(_Teller(session.config, line))
    numbers = _given(line)
    number = next(numbers, None)
    while number is not None:
        following = next(numbers, None)  # before this one runs: what both use stays set up
        session.config.hook.pytest_runtest_protocol(
            item=session.items[number], nextitem=None if following is None else session.items[following]
        )
        number = following


def _given(line: Connection) -> Iterator[int]:
    """Ask for numbers of tests as long as there are any."""
    while True:
        line.send(None)
        if not (block := line.recv()):
            return
        yield from block
