"""Programs in processes of their own, which need not each import for two seconds what all of them import.

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
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["run"]

PRELOADED = ["langchain.agents", "langgraph_supervisor", "qdrant_client", "rich", "supervisor_memory"]


def run(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str], timeout: float, check: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run Python with these arguments, of which the first are `-c CODE`, `-m MODULE` or a file.

    Raises:
        subprocess.CalledProcessError: with `check`, it did not end with 0.
        subprocess.TimeoutExpired: it was still running after `timeout` seconds, and was killed.
    """
    given = [str(argument) for argument in arguments]
    if os.environ.get("SLOW") or not hasattr(os, "fork"):
        return subprocess.run(
            [sys.executable, *given],
            cwd=cwd,
            env=env,
            timeout=timeout,
            check=check,
            capture_output=True,
            text=True,
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as said:
        process = context.Process(target=_as_an_interpreter, args=(given, str(cwd), dict(env), said))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(given, timeout)
        out, err = (Path(said, name).read_text("utf-8") for name in ("out", "err"))
    done = subprocess.CompletedProcess(given, process.exitcode, out, err)
    if check:
        done.check_returncode()
    return done


def _as_an_interpreter(given: Sequence[str], cwd: str, env: Mapping[str, str], said: str) -> None:
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(Path(said, name), os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    code = 0
    try:
        _run(given)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
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
