"""Whether what is said is kept word for word can be told for each user, each session and each run."""

from typing import Any

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY
from supervisor_memory.testing.clock import FixedClock
from tests.host.graphs import asking, config, model, open_memory, team

WISH = "Always round revenue to whole numbers."
Memory: Any = SupervisorMemory


def words(memory: SupervisorMemory, user: str = "ada") -> list[str]:
    return sorted(each.content for each in memory.get_all(user_id=user, families=[SESSION_FAMILY]))


def wishes(memory: SupervisorMemory, user: str = "ada") -> list[str]:
    return [each.content for each in memory.get_all(user_id=user)]


def opened(keep: Any, **settings: Any) -> Any:
    given = Settings(embedding_model="none", **settings)
    return Memory(given, keep_messages=keep, clock=FixedClock())


def test_a_user_may_not_be_quoted_and_is_remembered_all_the_same() -> None:
    with opened(lambda scope: scope.user_id != "ada") as memory:
        for user in ("ada", "bo"):
            memory.remember([("user", WISH)], Scope(user, session_id="s1"))
        assert (words(memory), words(memory, "bo")) == ([], [WISH])
        assert wishes(memory) == wishes(memory, "bo") == [WISH]


def test_a_session_may_not_be_quoted() -> None:
    with opened(lambda scope: scope.session_id != "private") as memory:
        memory.remember([("user", WISH)], Scope("ada", session_id="private"))
        memory.remember([("user", "What was the revenue?")], Scope("ada", session_id="open"))
        assert words(memory) == ["What was the revenue?"]


def test_a_callable_that_says_yes_wins_over_the_setting() -> None:
    with opened(lambda scope: True, keep_messages=False) as memory:
        memory.remember([("user", WISH)], Scope("ada", session_id="s1"))
        assert words(memory) == [WISH]


def test_a_callable_that_fails_keeps_nothing_word_for_word_and_breaks_nothing() -> None:
    def fails(_: Scope) -> bool:
        raise RuntimeError("the directory of consents is down")

    with opened(fails) as memory:
        results = memory.remember([("user", WISH)], Scope("ada", session_id="s1"))
        assert all(result.saved for result in results)
        assert words(memory) == []
        assert wishes(memory) == [WISH]


def test_add_asks_it_too() -> None:
    with opened(lambda scope: scope.user_id != "ada") as memory:
        for user in ("ada", "bo"):
            memory.add(WISH, user_id=user, session_id="s1")
        assert (words(memory), words(memory, "bo")) == ([], [WISH])


async def test_a_graph_asks_it_in_both_worlds() -> None:
    for how in ("sync", "async"):
        with opened(lambda scope: scope.user_id != "ada") as memory:
            graph = memory.attach(team(model(*["done"] * 4), {})).compile()
            for user in ("ada", "bo"):
                given: Any = (asking(WISH), config(f"thread-{user}", user_id=user))
                if how == "async":
                    await graph.ainvoke(*given)
                else:
                    graph.invoke(*given)
            assert (words(memory), wishes(memory)) == ([], [WISH])
            assert WISH in words(memory, "bo")


async def test_a_run_may_not_be_quoted_and_the_next_one_of_its_thread_may() -> None:
    for how in ("sync", "async"):
        with open_memory() as memory:
            graph = memory.attach(team(model(*["done"] * 4), {})).compile()
            runs: list[tuple[str, Any]] = [
                (WISH, {"memory_keep_messages": False}),
                ("What was the revenue?", {}),
            ]
            for text, more in runs:
                given: Any = (asking(text), config(user_id="ada", **more))
                if how == "async":
                    await graph.ainvoke(*given)
                else:
                    graph.invoke(*given)
            assert WISH not in words(memory)
            assert "What was the revenue?" in words(memory)
            assert wishes(memory) == [WISH]


def test_nothing_of_what_is_not_kept_stands_in_any_file(tmp_path: Any) -> None:
    given = Settings(embedding_model="none", backend="sqlite", path=tmp_path)
    said = "The weather in Quito was lovely, thanks."
    with Memory(given, keep_messages=lambda scope: False) as memory:
        memory.remember([("user", said)], Scope("ada", session_id="s1"))
        memory.flush()
    found = [file for file in tmp_path.rglob("*") if file.is_file() and b"Quito" in file.read_bytes()]
    assert found == []


def test_a_call_may_say_that_its_words_are_not_kept_and_one_that_says_no_wins() -> None:
    for keep in (None, lambda scope: True):
        with opened(keep) as memory:
            memory.remember([("user", WISH)], Scope("ada", session_id="s1"), keep_messages=False)
            assert (words(memory), wishes(memory)) == ([], [WISH])
            memory.remember([("user", "And the tax?")], Scope("ada", session_id="s1"), keep_messages=True)
            assert words(memory) == ["And the tax?"]
    with opened(lambda scope: False) as memory:
        memory.remember([("user", WISH)], Scope("ada", session_id="s1"), keep_messages=True)
        assert words(memory) == []


def test_without_any_of_it_the_setting_decides() -> None:
    for keep in (True, False):
        with SupervisorMemory(Settings(embedding_model="none", keep_messages=keep)) as memory:
            memory.remember([("user", WISH)], Scope("ada", session_id="s1"))
            assert words(memory) == ([WISH] if keep else [])
