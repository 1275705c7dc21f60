"""SeCom: three exchanges make a segment, which is found and told whole."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import Message, Scope
from supervisor_memory.recipes.operators.segments import SEGMENT

SETTINGS = Settings(embedding_model="hashing", queue_worker=False)
TALK = [
    ("The depot in Kiel floods.", "Noted."),
    ("It needs a pump.", "Which one?"),
    ("The big one from Lund.", "Ordered."),
    ("Now about tea.", "Yes?"),
]


def talk(memory: SupervisorMemory, user_id: str = "ada", session_id: str = "s", *, turns: int = 4) -> None:
    scope = Scope(user_id, session_id=session_id)
    for n, (said, answer) in enumerate(TALK[:turns]):
        both = [Message("user", said), Message("assistant", answer)]
        memory.remember(both, scope, turn_id=f"{session_id}{n}")
        memory.services.clock.now += 60  # type: ignore[attr-defined]  # the clock of these tests


@pytest.fixture
def memory() -> SupervisorMemory:
    from supervisor_memory.testing.clock import FixedClock

    return SupervisorMemory(SETTINGS, recipe="secom", clock=FixedClock())


def segments(memory: SupervisorMemory, user_id: str = "ada") -> list[str]:
    return [r.content for r in memory.get_all(user_id=user_id) if SEGMENT in r.tags]


WHOLE = (
    "user: The depot in Kiel floods.\nagent: Noted.\nuser: It needs a pump.\nagent: Which one?\n"
    "user: The big one from Lund.\nagent: Ordered."
)


def test_the_third_exchange_completes_a_segment_and_the_fourth_waits(memory: SupervisorMemory) -> None:
    with memory:
        talk(memory, turns=2)
        assert segments(memory) == []
        talk(memory, session_id="t")
        assert segments(memory) == [WHOLE]
        talk(memory, "bob", "s")
        assert segments(memory) == [WHOLE] == segments(memory, "bob")
        found = memory.search("Which pump does the flooded depot need?", user_id="ada", threshold=0.0)
        assert WHOLE in [hit.record.content for hit in found]
        assert {hit.record.user_id for hit in found} == {"ada"}
        assert found[0].record.embedder is not None


def test_a_conversation_that_is_imported_is_cut_in_order_and_its_parts_are_not_told_twice(
    memory: SupervisorMemory,
) -> None:
    with memory:
        entries = [
            {"content": f"Crate {n} holds pears.", "speaker": "Kim", "created_at": float(n)}
            for n in range(14)
        ]
        memory.add_many(entries, user_id="ada", infer=False)
        last = {**entries[0], "content": "Crate 14 holds figs.", "created_at": 14.0}
        memory.add_many([last], user_id="ada", infer=False)
        made = sorted(segments(memory))
        assert made == [
            "\n".join(f"Kim: Crate {n} holds pears." for n in run) for run in (range(6), range(6, 12))
        ]
        found = memory.search("Which crate holds pears?", user_id="ada", threshold=0.0, limit=3)
        told = [id for hit in found for id in hit.record.made_from]
        assert not {hit.record.id for hit in found} & set(told)
        assert len(found) <= 3


def test_a_segment_is_found_by_how_often_it_says_a_word_and_its_messages_are_not_found_beside_it(
    memory: SupervisorMemory,
) -> None:
    said = ["pears", "figs", "tea", "rain", "soap", "ink", "pears", "pears", "pears", "salt", "wool", "tin"]
    with memory:
        entries = [
            {"content": f"About {word}.", "speaker": "Kim", "created_at": float(n)}
            for n, word in enumerate(said)
        ]
        memory.add_many(entries, user_id="ada", infer=False)
        found = memory.search("Who spoke of pears?", user_id="ada", threshold=0.0, limit=9)
        assert [hit.record.content.count("pears") for hit in found] == [3, 1]
        assert all(SEGMENT in hit.record.tags for hit in found)


def test_half_an_hour_of_silence_ends_a_session_that_has_no_name(memory: SupervisorMemory) -> None:
    with memory:
        times = [*range(0, 240, 60), *range(7_200, 7_680, 60)]  # four messages, two hours, eight messages
        entries = [
            {"content": f"Crate {n} holds pears.", "speaker": "Kim", "created_at": float(when)}
            for n, when in enumerate(times)
        ]
        memory.add_many(entries, user_id="ada", infer=False)
        made = sorted(segments(memory))
        assert [each.count("Kim") for each in made] == [4, 6]
        assert made[0].startswith("Kim: Crate 0")


def test_texts_by_themselves_are_in_no_segment(memory: SupervisorMemory) -> None:
    with memory:
        memory.add_many([f"Crate {n} holds pears." for n in range(14)], user_id="ada", infer=False)
        assert segments(memory) == []


def test_a_segment_goes_with_a_message_and_with_its_session(memory: SupervisorMemory) -> None:
    with memory:
        talk(memory)
        message = memory.sessions.messages("s", user_id="ada")[0]
        talk(memory, session_id="t")
        memory.sessions.erase("t", user_id="ada", confirm=True)
        assert len(segments(memory)) == 1
        memory.delete(message.id, user_id="ada")
        assert segments(memory) == []
