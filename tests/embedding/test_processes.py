"""Embedders carried over a fork."""

import os
import subprocess
import sys

import pytest

FORK = """
import os, sys, threading
from supervisor_memory.embedding.open import open_embedder
embedder = open_embedder(sys.argv[1], dimension=None)
expected = embedder.embed_query("green tea").tobytes()
stop = threading.Event()
def busy():
    while not stop.is_set():
        embedder.embed_query("something to do in the meantime")
thread = threading.Thread(target=busy)
thread.start()
child = os.fork()
if child == 0:
    os._exit(0 if embedder.embed_query("green tea").tobytes() == expected else 1)
status = os.waitpid(child, 0)[1]
stop.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(
    "model", ["all-MiniLM-L6-v2", pytest.param("multilingual-e5-small", marks=pytest.mark.slow)]
)
def test_a_forked_child_embeds_while_the_parent_is_busy(model: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, model], timeout=120, check=False)
    assert done.returncode == 0
