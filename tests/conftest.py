"""Settings of all tests."""

import dis
import functools
import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import settings

from common.database import ensure_database
from supervisor_memory.settings import Settings
from supervisor_memory.testing.clock import FixedClock

# How long an example takes is the machine's affair; `make slow` asks for more of them.
settings.register_profile("any-machine", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "12")))
settings.load_profile("any-machine")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
GOLDEN = (5**0.5 - 1) / 2
"""Steps of this share of the whole come by all parts of it, whatever the order of the cases repeats."""


def _files_lie_in_memory() -> None:
    """Keep temporary files in memory where there is room: syncing a disk takes a third of the time, and does
    not matter for killed processes. `TMPDIR` overrides it; `make slow` and `make faults` use the disk."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


_files_lie_in_memory()

# A busy machine keeps such deadlines; a test of deadlines sets its own.
for deadline in ("search_timeout_ms", "write_timeout_ms"):
    Settings.model_fields[deadline].default = 60_000
Settings.model_rebuild(force=True)


@functools.cache
def _built_in(folder: Path) -> Path:
    return ensure_database(folder / "flights.sqlite")


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real database; building takes seconds, so all tests of a run read the same file."""
    own = tmp_path_factory.getbasetemp()
    return _built_in(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture
def beside_flights(flights: Path, tmp_path: Path) -> Path:
    """A directory for running a program of the demo, with its database."""
    demo = tmp_path / ".demo"
    demo.mkdir()
    (demo / "flights.sqlite").symlink_to(flights)
    return tmp_path


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collection, which took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def _is_chosen(item: pytest.Item, function: str) -> bool:
    """Whether a case runs: of two cases that differ only in the `either` parameter one runs, chosen by a hash
    of the rest."""
    mark = item.get_closest_marker("either")
    if mark is None or not isinstance(item, pytest.Function):
        return True
    case = item.callspec.id.split("-")
    mine = next(value for value in mark.args if value in case)
    case.remove(mine)
    return crc32(f"{function} {case}".encode()) % 2 == mark.args.index(mine)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests and cases by their marks. With SLOW, as in `make slow`, all run, and so do all cases of
    a test that is named.

    Else those marked `slow` are left out, and of the cases of what is marked `one_in(n)` one of n runs: of a
    function its parameters, at least one, of a class its tests, of a parameter's values those that bear the
    mark. Which one it is differs from test to test if `shift` is "by name". Of two values that are marked
    `either` each case runs with one, which differs from case to case.
    """
    if os.environ.get("SLOW") or any("::" in asked for asked in config.args):
        return
    seen: Counter[tuple[str, object]] = Counter()
    left: set[pytest.Item] = set()
    run: set[str] = set()
    spare: dict[str, pytest.Item] = {}
    for item in items:
        function = item.nodeid.split("[")[0]
        left_by: set[object] = {"slow"} if item.get_closest_marker("slow") else set()
        if not _is_chosen(item, function):
            left.add(item)
            continue
        counted: set[tuple[str, object]] = set()
        for node, mark in item.iter_markers_with_node("one_in"):
            name, shift = node.nodeid.split("[")[0], mark.kwargs.get("shift", 0)
            if (name, shift) in counted:  # in step, one may leave out all that the other runs
                raise pytest.UsageError(f"{name} has two marks one_in with shift {shift!r}: multiply them")
            counted.add((name, shift))
            first = crc32(name.encode()) if shift == "by name" else shift
            if (seen[name, shift] + first) * GOLDEN % 1 >= 1 / mark.args[0]:
                left_by.add(node)
            seen[name, shift] += 1
        if not left_by:
            run.add(function)
            continue
        left.add(item)
        if left_by == {item}:
            spare.setdefault(function, item)
    left -= {item for function, item in spare.items() if function not in run}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Freeze the imported objects, which stay to the end, so that no full garbage collection walks them.

    Garbage is looked for less often than Python does, which took 40 s of the processor of a run.

    A client of Qdrant copies the schemas of all its models, to add those of its caller's, of which there are
    none here. That took 10 ms of each of a thousand clients. In memory it parses the path of a field anew for
    each record that a filter looks at. LangGraph reads the code of each node anew for each graph. pydantic
    reads the signature of what makes a default anew for each model that is written as JSON. Typer makes all
    commands anew for each that is run, in 60 ms. httpx reads all certificates anew for each client.
    """
    if schemas := sys.modules.get("qdrant_client.embed.schema_parser"):
        vars(schemas)["deepcopy"] = copy
    if fields := sys.modules.get("qdrant_client.local.payload_value_extractor"):
        vars(fields)["parse_json_path"] = functools.cache(vars(fields)["parse_json_path"])
    if graphs := sys.modules.get("langgraph.pregel._utils"):
        read = functools.cache(lambda code: tuple(dis.get_instructions(code)))
        vars(graphs)["dis"] = SimpleNamespace(get_instructions=read)
    if models := sys.modules.get("pydantic._internal._fields"):
        vars(models)["takes_validated_data_argument"] = functools.cache(
            vars(models)["takes_validated_data_argument"]
        )
    if cli := sys.modules.get("typer.testing"):
        vars(cli)["_get_command"] = functools.cache(vars(cli)["_get_command"])
    if client := sys.modules.get("httpx._transports.default"):
        vars(client)["create_ssl_context"] = functools.cache(vars(client)["create_ssl_context"])
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
