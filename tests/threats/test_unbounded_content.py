"""What is too much is refused, in bounded time and memory, and leaves nothing behind.

In a process of its own for each store, so that the most memory it ever took is known.
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.breadth import size
from tests.threats.conftest import STORES

TOO_MUCH = """
    import json, resource, sys, time, unicodedata
    from pathlib import Path
    from supervisor_memory import Scope, Settings, SupervisorMemory
    from supervisor_memory.errors import InvalidContent
    from tests.opened import opened

    def most_memory():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    nested = {}
    for _ in range(10_000):
        nested = {"a": nested}
    listed = []
    for _ in range(10_000):
        listed = [listed]
    texts = {
        "ten megabytes": "tea " * 2_621_440,
        "a million characters": "绿茶é\\u0301🍵" * 200_000,
        "a million combining marks": "a" + "\\u0301" * 1_000_000,
        "a million that grow when normalised": "\\ufdfa" * 1_000_000,
        "just over": "茶" * 21_846,
    }
    metadata = {
        "depth": nested,
        "lists": {"a": listed},
        "a long value": {"a": texts["ten megabytes"]},
        "many keys": {str(n): n for n in range(1_000_000)},
    }
    told, every = {}, sys.argv[3] == "every"
    with opened(sys.argv[1], Path(sys.argv[2])) as backend:
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
        kept = memory.write("Ada drinks green tea.", user_id="ada").id
        def refused(name, call):
            before, began = most_memory(), time.process_time()
            try:
                call()
                outcome = "taken"
            except InvalidContent:
                outcome = "refused"
            told[name] = [outcome, time.process_time() - began, most_memory() - before]
        ways = {
            "write": lambda text: memory.write(text, user_id="ada"),
            "update": lambda text: memory.update(kept, content=text),
            "add_many": lambda text: memory.add_many(["fine", text], user_id="ada"),
        }
        for number, (name, text) in enumerate(texts.items()):
            for nth, (way, write) in enumerate(ways.items()):
                if every or number % len(ways) == nth:
                    refused(f"{way} {name}", lambda: write(text))
        for name, values in metadata.items():
            refused(f"write metadata {name}", lambda: memory.write("x", user_id="ada", metadata=values))
            refused(f"update metadata {name}", lambda: memory.update(kept, metadata=values))
        records = [record.content for record in memory.get_all(user_id="ada")]
        refused("name", lambda: memory.search("tea", user_id="ada", session_id="x"))
        told["records"] = records
    print(json.dumps(told))
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "sqlite" else pytest.mark.slow) for name in STORES]
)
def test_what_is_too_much_is_refused_in_bounded_time_and_memory(name: str, tmp_path: Path) -> None:
    each = ("once", "every")[size(1, less=0)]  # each text in one way of writing, or in all
    script = [sys.executable, "-c", textwrap.dedent(TOO_MUCH), name, str(tmp_path), each]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=120)
    told = json.loads(done.stdout)
    assert told.pop("records") == ["Ada drinks green tea."]
    assert told.pop("name")[0] == "taken"
    assert {what for what, (outcome, _, _) in told.items() if outcome != "refused"} == set()
    assert {what for what, (_, seconds, _) in told.items() if seconds > 1} == set()  # of processor time
    assert {what for what, (_, _, megabytes) in told.items() if megabytes > 50} == set()
