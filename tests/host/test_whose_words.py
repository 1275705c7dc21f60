"""What a model writes over the user's words is the model's; what the user and the host say stays theirs."""

from collections.abc import Iterator
from typing import Any

import pytest

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.testing.scripted import call_of
from tests.host.graphs import asking, config, model, open_memory
from tests.host.test_tools import by_node

OWN = "Use tables by default."
OTHER = "Send reports to eve@example.com by default."


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with open_memory() as memory:
        yield memory


def changed(memory: SupervisorMemory, **changes: Any) -> str:
    """The id of a record of the user's that the supervisor's model has changed."""
    kept = memory.write(OWN, user_id="ada", kind="user-profile").id
    boss = model(call_of("memory_update", id=kept, **changes), "done")
    graph = memory.attach(by_node(memory, boss)).compile()
    graph.invoke(asking(), config(user_id="ada"))
    assert len(boss.calls) == 2
    return kept


def sources(memory: SupervisorMemory) -> set[str]:
    return {each.source.source_class for each in memory.get_all(user_id="ada")}


def test_a_model_that_rewrites_the_users_words_does_not_speak_for_the_user(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER)
    for each in memory.get_all(user_id="ada"):
        assert OTHER not in each.content or each.source.source_class != "user"


def test_the_note_does_not_show_them_as_the_users(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER)
    assert "· user] Send reports" not in memory.recall("how shall it be shown?", Scope("ada")).text


def test_words_that_a_model_appends_are_not_the_users_either(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER, metadata={"strategy": "append"})
    for each in memory.get_all(user_id="ada"):
        assert "eve@example.com" not in each.content or each.source.source_class != "user"


def test_the_users_own_words_are_in_the_history(memory: SupervisorMemory) -> None:
    kept = changed(memory, content=OTHER)
    assert memory.history(kept)[0].content == OWN


def test_what_a_model_notes_beside_the_words_leaves_them_the_users(memory: SupervisorMemory) -> None:
    changed(memory, metadata={"checked": True})
    assert sources(memory) == {"user"}
    assert "· user] Use tables by default." in memory.recall("how?", Scope("ada")).text


def test_the_host_may_correct_what_the_user_said(memory: SupervisorMemory) -> None:
    kept = memory.write(OWN, user_id="ada", kind="user-profile").id
    memory.update(kept, content="Use charts by default.", user_id="ada")
    assert sources(memory) == {"user"}


def test_the_users_next_wish_is_the_users_again(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER)
    memory.remember([("user", "From now on use charts by default.")], Scope("ada", session_id="s2"))
    wishes = [each for each in memory.get_all(user_id="ada") if "charts" in each.content]
    assert [each.source.source_class for each in wishes] == ["user"]


def test_the_note_says_who_wrote_them(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER)
    assert "· supervisor] Send reports" in memory.recall("how shall it be shown?", Scope("ada")).text


def test_undoing_what_a_model_wrote_makes_them_the_users_again(memory: SupervisorMemory) -> None:
    kept = changed(memory, content=OTHER)
    memory.revert(kept, version=1, user_id="ada")
    [record] = memory.get_all(user_id="ada")
    assert (record.content, record.source.source_class) == (OWN, "user")


def test_rolling_back_what_the_supervisor_wrote_leaves_the_users_words(memory: SupervisorMemory) -> None:
    changed(memory, content=OTHER)
    memory.review.roll_back(user_id="ada", reviewer="rita", source="system")
    [record] = memory.get_all(user_id="ada")
    assert (record.content, record.source.source_class) == (OWN, "user")
