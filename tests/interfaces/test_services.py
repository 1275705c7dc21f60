"""The named services of the source documents over one store: fields of records say what is where."""

import numpy as np
import pytest

from supervisor_memory import InvalidContent, Settings, SettingsError, SupervisorMemory
from supervisor_memory.interfaces.services import SERVICES, Service, open_service
from supervisor_memory.model.records import TIER

SETTINGS = Settings(embedding_model="hashing", queue_worker=False)
TEXTS = ("The depot is in Kiel.", "Lund closes at noon.", "Tea is at five.")


@pytest.fixture
def memory() -> SupervisorMemory:
    return SupervisorMemory(SETTINGS)


def texts(service: Service, query: str | None, **options: object) -> list[str]:
    return [each["content"] for each in service.retrieve(query, **options)]  # type: ignore[arg-type]  # by tests


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_keeps_finds_and_deletes_its_own_entries_alone(
    name: str, memory: SupervisorMemory
) -> None:
    service = open_service(name, memory, user_id="ada")
    other = open_service("neuromem_vdb" if name != "neuromem_vdb" else "graph_memory", memory, user_id="ada")
    ids = [service.insert(text, metadata={"topic": text[:3]}) for text in TEXTS]
    hers = open_service(name, memory, user_id="eve").insert("The depot of Eve is in Kiel.")
    own = other.insert("Another depot is in Kiel.")
    assert texts(service, "Where is the depot in Kiel?")[0 if name != "short_term_memory" else -1] == TEXTS[0]
    assert {*texts(service, "depot Kiel")} <= {*TEXTS}
    assert texts(service, "Tea at five", metadata={"topic": "Tea"}) == [TEXTS[2]]
    assert len(service.retrieve(TEXTS[0], top_k=1)) == 1
    assert not service.delete(hers)
    assert not service.delete(own)
    assert service.delete(ids[0])
    assert not service.delete(ids[0])
    assert TEXTS[0] not in texts(service, "Where is the depot in Kiel?")
    assert service.get_status()["pending_items"] == 0


def test_an_entry_is_put_into_indexes_and_taken_out_and_stays_what_it_is(memory: SupervisorMemory) -> None:
    service = open_service("hybrid_memory", memory, user_id="ada")
    first = service.insert(TEXTS[0], insert_mode="active", insert_params={"in.deals": True})
    second = service.insert(TEXTS[1])
    assert texts(service, "depot Lund", index="deals") == [TEXTS[0]]
    service.insert_to_index(second, "deals")
    service.remove_from_index(first, "deals")
    assert texts(service, "depot Lund", index="deals") == [TEXTS[1]]
    assert {*texts(service, "depot Lund")} == {*TEXTS[:2]}
    assert len(memory.get_all(user_id="ada")) == 2  # one store, whatever the indexes
    with pytest.raises(InvalidContent, match="insert_mode 'active'"):
        service.insert(TEXTS[2], insert_params={"tier": "mid"})


def test_over_its_length_a_short_term_memory_tells_the_newest_and_tiers_move_by_a_field(
    memory: SupervisorMemory,
) -> None:
    short = open_service("short_term_memory", memory, user_id="ada", most=2)
    for text in TEXTS:
        short.insert(text)
    assert texts(short, "anything") == [TEXTS[2], TEXTS[1]]
    tiers = open_service("hierarchical_memory", memory, user_id="bob", short=1)
    ids = [tiers.insert(text) for text in TEXTS]
    assert tiers.get_status()["tiers"] == {"short": 3, "mid": 0, "long": 0}
    assert (tiers.get_status()["pending_action"], tiers.get_status()["pending_items"]) == ("migrate", 2)
    assert tiers.optimize("migrate", dry_run=True)["steps"]
    tiers.optimize("migrate")
    assert [memory.get(id).metadata[TIER] for id in ids] == ["mid", "mid", "short"]
    tiers.move(ids[2], "mid")
    assert memory.get(ids[2]).metadata[TIER] == "mid"
    with pytest.raises(InvalidContent, match="'forgetting' starts no chore of this service; it has"):
        tiers.optimize("forgetting")


def test_entries_are_found_by_a_vector_of_ones_own(memory: SupervisorMemory) -> None:
    service = open_service("neuromem_vdb", memory, user_id="ada")
    for text, vector in zip(TEXTS, np.eye(3, dtype=np.float32), strict=True):
        service.insert(text, vector)
    asked = np.array([0.1, 0.9, 0.2], dtype=np.float32)
    assert texts(service, None, vector=asked / np.linalg.norm(asked))[:2] == [TEXTS[1], TEXTS[2]]


def test_several_questions_are_fused_by_their_ranks_and_entries_listed_by_time_and_key(
    memory: SupervisorMemory,
) -> None:
    service = open_service("key_value_memory", memory, user_id="ada")
    for size, text in zip((3, 1, 2), TEXTS, strict=True):
        service.insert(text, metadata={"size": size})
    fused = service.retrieve_multi(["depot Kiel", "tea", "depot"], top_k=1)
    assert [each["content"] for each in fused] == [TEXTS[0]]
    assert fused[0]["score"] == pytest.approx(2 / 61)
    assert [each.content for each in service.in_order("size")] == [TEXTS[1], TEXTS[2], TEXTS[0]]
    assert service.in_order(until="2001-01-01") == []


def test_a_service_or_a_constant_that_there_is_not_is_refused(memory: SupervisorMemory) -> None:
    with pytest.raises(InvalidContent, match="no service 'graf'; there are short_term_memory, "):
        open_service("graf", memory, user_id="ada")
    with pytest.raises(SettingsError, match="no constant 'maxlen'"):
        open_service("short_term_memory", memory, user_id="ada", maxlen=3)
    with pytest.raises(InvalidContent, match="has no constants"):
        open_service("neuromem_vdb", memory, user_id="ada", most=3)
