"""Of ordinary chatter next to nothing is stored, of what is worth keeping nearly everything is kept."""

import pytest

from benchmarks.junk.replay import Judged, judged, read
from supervisor_memory import Settings, SupervisorMemory

LANGUAGES = ("en", "zh")


@pytest.fixture(scope="module")
def results() -> list[Judged]:
    settings = Settings(backend="in_memory", embedding_model="none")
    with SupervisorMemory(settings) as memory:
        return judged(memory, [line for name in LANGUAGES for line in read(name)])


@pytest.mark.parametrize("language", LANGUAGES)
def test_at_most_one_in_fifty_turns_of_chatter_is_stored(results: list[Judged], language: str) -> None:
    chatter = [each for each in results if not each.line.keep and each.line.language == language]
    stored = [each.line.text for each in chatter if each.stored]
    assert len(chatter) == 150
    assert len(stored) <= len(chatter) / 50, stored


@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_statements_are_kept(results: list[Judged], language: str) -> None:
    statements = [each for each in results if each.line.keep and each.line.language == language]
    missed = [each.line.text for each in statements if not each.is_right]
    assert len(statements) == 30
    assert len(missed) <= len(statements) / 10, missed


def test_nothing_of_an_agent_or_a_tool_is_kept_as_the_user_s(results: list[Judged]) -> None:
    told = [each for each in results if each.line.role != "user" and not each.line.keep]
    assert [each.line.text for each in told if each.stored] == []
