"""What was made from a record goes where the record goes."""

from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import MADE_FROM, Message, Scope


@pytest.fixture(params=["in_memory", "sqlite", "json"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> SupervisorMemory:
    settings = Settings(backend=request.param, path=tmp_path, embedding_model="none", queue_worker=False)
    return SupervisorMemory(settings)


def made(memory: SupervisorMemory, text: str, *sources: str) -> str:
    return memory.write(text, user_id="ada", kind="experience", metadata={MADE_FROM: list(sources)}).id


def test_it_is_deleted_with_its_source_and_so_is_what_was_made_from_it(memory: SupervisorMemory) -> None:
    with memory:
        kiel = memory.write("The depot of shoes is in Kiel.", user_id="ada").id
        lund = memory.write("Lectures of law begin at noon in Lund.", user_id="ada").id
        first = made(memory, "Both depots are by the sea.", kiel, lund)
        second = made(memory, "All is by the sea.", first)
        other = made(memory, "Lund is a city of students.", lund)
        memory.delete(kiel, user_id="ada")
        assert [memory.get(id).status for id in (first, second, other)] == ["deleted", "deleted", "active"]
        memory.update(lund, content="Lectures begin at one.", user_id="ada")
        assert memory.get(other).status == "deleted"
        assert not memory.audit.verify().problems


def test_it_is_deleted_with_all_of_a_kind(memory: SupervisorMemory) -> None:
    with memory:
        kiel = memory.write("The depot is in Kiel.", user_id="ada", kind="domain-facts").id
        reflection = made(memory, "The depot is by the sea.", kiel)
        memory.delete_all(user_id="ada", where={"kind": ["domain-facts"]}, confirm=True)
        assert memory.get(reflection).status == "deleted"


def test_it_is_erased_with_the_session_of_its_source(memory: SupervisorMemory, tmp_path: Path) -> None:
    with memory:
        scope = Scope("ada", session_id="s")
        memory.remember([Message("user", "GMV means gross merchandise value before returns.")], scope)
        ids = [record.id for record in memory.get_all(user_id="ada")]
        reflection = made(memory, "Ada counts merchandise before returns.", *ids)
        rest = memory.write("Tea is at five.", user_id="ada").id
        memory.sessions.erase("s", user_id="ada", confirm=True)
        assert [record.id for record in memory.get_all(user_id="ada")] == [rest]
        assert not memory.backend.get([reflection])
    left = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"merchandise" not in left
