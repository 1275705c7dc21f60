"""Every kind of host with memory: what its models read, what it says, what is remembered, and for whom."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from supervisor_memory import SupervisorMemory
from tests.graph.hosts import CANARIES, CONCLUSION, HOSTS, Built, Host, How, everything, opened, play

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HOW = pytest.mark.parametrize("how", ["sync", "async"])
CELLS = [pytest.param(host, how, id=f"{host.name}, {how}") for host in HOSTS for how in host.how]
CELL = pytest.mark.parametrize(("host", "how"), CELLS)


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with opened() as memory:
        yield memory


def read_by(call: list[BaseMessage]) -> str:
    return "\n".join(str(message.text) for message in call)


def said(state: Any, built: Built) -> list[tuple[str, str, str | None]]:
    """The messages; of a memory tool's result, that it came."""
    asked = {"memory_search"}
    return [(m.type, "" if m.name in asked else m.text, m.name) for m in state[built.key]]


def of_others(memory: SupervisorMemory) -> list[tuple[str, str, int]]:
    return sorted((r.id, r.content, r.version) for r in everything(memory) if r.user_id != "ada")


@CELL
async def test_every_host(memory: SupervisorMemory, host: Host, how: How) -> None:
    before = of_others(memory)
    bare = host.build(None, InMemorySaver())
    expected = await play(bare, how)
    built = host.build(memory, InMemorySaver())
    state = await play(built, how)

    # Each call holds one note, of the reader's own.
    own, foreign = CANARIES["ada"], CANARIES["eve"]
    for agent, model in built.readers():
        assert model.calls
        for call in model.calls:
            # What the supervisor found by a tool stands in its messages, and need not be in a note again.
            is_found = agent is None and "memory_search" in [m.name for m in call]
            assert read_by(call).count("<memory id=") in ((0, 1) if is_found else (1,))
            assert foreign not in read_by(call)
        for other in ("worker", "other"):
            is_read = f"{own} {other}" in read_by(model.calls[0])
            assert is_read == (agent in (None, other)), (agent, other)
        assert f"{own} net of tax" in read_by(model.calls[0])

    # The host says what it says without memory.
    assert said(state, built) == said(expected, bare)

    # What the user stated and the agent concluded is kept, for this user alone.
    kept = {(r.family, r.content) for r in memory.get_all(user_id="ada")}
    assert any(f == "user_profile" and "bullet points" in text for f, text in kept)
    assert any(f == f"{built.concluding}_memories" and CONCLUSION in text for f, text in kept)
    assert of_others(memory) == before
