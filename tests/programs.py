"""Programs in processes of their own, forked from a server that has done the common imports, which take two
seconds.

They are forked off a server that has imported the packages, and end as an interpreter ends. With SLOW, as in
`make slow`, each is a new interpreter.
"""

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import reduction
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypeVar, cast

import pytest

from supervisor_memory.settings import Settings

__all__ = ["COMMAND", "Program", "environment", "forks", "run", "start"]

COMMAND = Path(sys.executable).with_name("supervisor-memory")
"""The command line, a program in Python too."""
PRELOADED = ["tests.preloaded"]
Test = TypeVar("Test", bound=Callable[..., None])


UNHURRIED = {"MEMORY_SEARCH_TIMEOUT_MS": "60000", "MEMORY_WRITE_TIMEOUT_MS": "60000"}


def forks(test: Test) -> Test:
    """Mark a test that forks this process, where processes can."""
    quietly = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    able = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
    return cast(Test, quietly(able(test)))


def environment(**given: str) -> dict[str, str]:
    """This process's environment, with deadlines of memory that even a busy machine keeps."""
    ours = Settings.env_names().values()
    return {n: v for n, v in os.environ.items() if n not in ours} | UNHURRIED | given


class Program(Protocol):
    """A started program, with a part of the interface of `subprocess.Popen`."""

    @property
    def stdin(self) -> IO[str] | None: ...
    @property
    def stdout(self) -> IO[str] | None: ...
    @property
    def stderr(self) -> IO[str] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


def run(
    *arguments: str | Path,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run Python with these arguments, of which the first are `-c CODE`, `-m MODULE` or a file.

    Raises:
        subprocess.CalledProcessError: with `check`, it did not end with 0.
        subprocess.TimeoutExpired: it was still running after `timeout` seconds, and was killed.
    """
    given = [str(argument) for argument in arguments]
    if _each_is_new():
        return subprocess.run(
            [sys.executable, *given],
            cwd=cwd,
            env=env,
            timeout=timeout,
            check=check,
            capture_output=True,
            text=True,
        )
    with tempfile.TemporaryDirectory() as said:
        files = [os.open(Path(said, name), os.O_WRONLY | os.O_CREAT) for name in ("out", "err")]
        process = _Forked(given, cwd, env, dict(zip((1, 2), files, strict=True)))
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out, err = (Path(said, name).read_text("utf-8") for name in ("out", "err"))
    done = subprocess.CompletedProcess(given, process.wait(), out, err)
    if check:
        done.check_returncode()
    return done


def start(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Program:
    """Start Python with these arguments; PIPE is a pipe of text, as `subprocess.Popen` has it."""
    given = [str(argument) for argument in arguments]
    wanted = {number: how for number, how in enumerate((stdin, stdout, stderr)) if how is not None}
    if _each_is_new():
        return subprocess.Popen(
            [sys.executable, *given], cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, text=True
        )
    ours: dict[int, int] = {}
    theirs: dict[int, int] = {}
    for number, how in wanted.items():
        if how == subprocess.PIPE:
            read, write = os.pipe()
            ours[number], theirs[number] = (read, write) if number else (write, read)
        else:
            assert how == subprocess.DEVNULL, "nothing else is asked for"
            theirs[number] = os.open(os.devnull, os.O_RDWR)
    return _Forked(given, cwd, env, theirs, ours)


def _each_is_new() -> bool:
    return bool(os.environ.get("SLOW")) or not hasattr(os, "fork")


class _Forked:
    """A program forked off the server.

    Args:
        theirs: Its descriptors → what they are here, closed once it has them. The others are the server's.
        ours: Its descriptors → our ends of its pipes.
    """

    def __init__(
        self,
        given: Sequence[str],
        cwd: Path | None,
        env: Mapping[str, str] | None,
        theirs: Mapping[int, int],
        ours: Mapping[int, int] | None = None,
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        # Where `python -m pytest` is the main program, each process would import it.
        main = [] if "PYTEST_XDIST_WORKER" in os.environ else ["pytest"]
        context.set_forkserver_preload([*PRELOADED, *main])
        self._given = list(given)
        self._process = context.Process(
            target=_as_an_interpreter,
            args=(
                self._given,
                str(cwd or Path.cwd()),
                dict(os.environ if env is None else env),
                {number: _Descriptor(there) for number, there in theirs.items()},
            ),
            daemon=True,
        )
        self._process.start()
        for there in theirs.values():
            os.close(there)
        files: dict[int, IO[str]] = {
            number: os.fdopen(here, "r" if number else "w", encoding="utf-8")
            for number, here in (ours or {}).items()
        }
        self.stdin, self.stdout, self.stderr = (files.get(number) for number in range(3))

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._given, timeout or 0)
        return self._process.exitcode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None and self._process.pid is not None:
            os.kill(self._process.pid, sig)

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait()


class _Descriptor:
    """A file descriptor that is sent to another process when it is pickled."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (reduction.DupFd(self._number),)


def _arrived(sent: Any) -> int:
    return int(sent.detach())


def _as_an_interpreter(
    given: Sequence[str], cwd: str, env: Mapping[str, str], descriptors: Mapping[int, int]
) -> None:
    for number, descriptor in descriptors.items():
        os.dup2(descriptor, number)
        os.close(descriptor)
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding=encoding) for number in (1, 2))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    code = 0
    try:
        _run(given)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
        if isinstance(left.code, str):
            sys.stderr.write(f"{left.code}\n")
    except BaseException:  # noqa: BLE001  # an interpreter tells of it, whatever it is
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as at the end of an interpreter
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(given: Sequence[str]) -> None:
    match given:
        case ["-c", code, *more]:
            sys.argv, sys.path[:0] = ["-c", *more], [""]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case ["-m", module, *more]:
            sys.argv, sys.path[:0] = [module, *more], [""]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [file, *more]:
            sys.argv, sys.path[:0] = [file, *more], [str(Path(file).parent)]
            runpy.run_path(file, run_name="__main__")
