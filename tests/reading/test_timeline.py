"""The timeline: what was said, learned, changed and decided, by session, and what its notes cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Message
from supervisor_memory.reading.timeline import Chapter, Cost
from supervisor_memory.testing.clock import MONDAY, FixedClock
from tests.opened import IN_PROCESS, opened

DAY = 86_400.0


@pytest.fixture(params=IN_PROCESS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    settings = Settings(embedding_model="none", queue_worker=False)
    with (
        opened(request.param, tmp_path) as backend,
        SupervisorMemory(
            settings, backend=backend, clock=FixedClock(MONDAY), embedder=HashingEmbedder()
        ) as memory,
    ):
        yield memory


def say(memory: SupervisorMemory, text: str, session: str, *, user: str = "ada", days: float = 1.0) -> None:
    memory.add(text, user_id=user, session_id=session)
    memory.services.clock.forward(days=days)  # type: ignore[attr-defined]


def told(chapter: Chapter) -> list[tuple[str, str, str | None]]:
    return [(each.what, each.text, each.before) for each in chapter.entries]


def test_each_session_tells_what_was_learned_and_changed_in_it(memory: SupervisorMemory) -> None:
    say(memory, "Delayed means arrival more than 15 minutes late.", "t1")
    say(memory, "Good morning!", "t2")
    say(memory, "Delayed means arrival more than 30 minutes late.", "t3")
    say(memory, "I prefer coffee.", "t1", user="bo")
    third, second, first = memory.timeline(user_id="ada")
    assert [each.session.session_id for each in (third, second, first)] == ["t3", "t2", "t1"]
    old, new = (f"Delayed means arrival more than {n} minutes late." for n in (15, 30))
    assert told(first) == [("learned", old, None)]
    assert (told(second), second.said) == ([], 1)
    assert told(third) == [("changed", new, old)]
    assert third.entries[0].id == first.entries[0].id
    assert [each.at for each in (*first.entries, *third.entries)] == [MONDAY, MONDAY + 2 * DAY]


def test_a_period_a_session_and_an_agent_narrow_it_and_pages_follow_each_other(
    memory: SupervisorMemory,
) -> None:
    for number in range(3):
        say(memory, f"Delayed{number} means more than {number} minutes late.", f"t{number}")
    said = [("user", "Which delays?"), Message("assistant", "Many.", name="stats")]
    memory.remember(said, Scope("ada", session_id="t9"))
    assert [each.session.session_id for each in memory.timeline(user_id="ada", agent_id="stats")] == ["t9"]
    names = [each.session.session_id for each in memory.timeline(user_id="ada", since=MONDAY + DAY)]
    assert names == ["t9", "t2", "t1"]
    assert [each.session.session_id for each in memory.timeline(user_id="ada", until=MONDAY + 1)] == ["t0"]
    [only] = memory.timeline(user_id="ada", session_id="t1", with_said=True)
    assert [each.what for each in only.entries] == ["said", "learned"]
    assert only.entries[0].text == only.entries[1].text
    first = memory.timeline(user_id="ada", limit=2)
    rest = memory.timeline(user_id="ada", limit=9, after=first[-1].session.cursor)
    assert [each.session.session_id for each in (*first, *rest)] == ["t9", "t2", "t1", "t0"]
    assert memory.timeline(user_id="cy") == []
    with pytest.raises(InvalidContent, match="after"):
        memory.timeline(user_id="ada", after="t1")


def test_an_agents_timeline_has_the_users_words_and_its_own(memory: SupervisorMemory) -> None:
    said = [
        ("user", "Which delays?"),
        Message("assistant", "Many.", name="stats"),
        ("assistant", "Some, I say."),
    ]
    memory.remember(said, Scope("ada", session_id="t1"))
    memory.services.clock.forward(days=1)  # type: ignore[attr-defined]
    memory.add(
        [("user", "And charts?"), ("assistant", "Here they are.")],
        user_id="ada",
        agent_id="charts",
        session_id="t1",
    )

    def of(agent: str | None) -> list[str]:
        [chapter] = memory.timeline(user_id="ada", agent_id=agent, with_said=True)
        return [each.text for each in chapter.entries]

    assert of("stats") == ["Which delays?", "Many.", "And charts?"]
    assert of("charts") == ["Which delays?", "And charts?", "Here they are."]
    assert len(of(None)) == 5


def test_a_session_that_began_before_the_period_tells_of_the_period_alone(memory: SupervisorMemory) -> None:
    say(memory, "Delayed means arrival more than 15 minutes late.", "t1")
    say(memory, "From now on show delays in minutes.", "t1")
    [chapter] = memory.timeline(user_id="ada", since=MONDAY + DAY)
    assert (chapter.said, [each.what for each in chapter.entries]) == (1, ["learned"])
    assert "minutes" in chapter.entries[0].text
    assert "Delayed" not in chapter.entries[0].text


def test_a_long_session_is_told_piece_by_piece_from_its_end(memory: SupervisorMemory) -> None:
    for number in range(7):
        say(memory, f"Delayed{number} means more than {number} minutes late.", "t1")
    whole = memory.timeline(user_id="ada", with_said=True)[0]
    assert whole.earlier is None
    pieces, until = [], None
    while True:
        [piece] = memory.timeline(user_id="ada", session_id="t1", messages=3, until=until, with_said=True)
        pieces.append(piece)
        if (until := piece.earlier) is None:
            break
    assert [each.said for each in pieces] == [7, 4, 1]
    assert [entry for each in reversed(pieces) for entry in each.entries] == [*whole.entries]
    assert [sum(entry.what == "learned" for entry in each.entries) for each in pieces] == [3, 3, 1]


def test_what_was_said_at_one_moment_is_told_at_once(memory: SupervisorMemory) -> None:
    said = [
        {"content": f"Line {number} of the minutes.", "session_id": "old", "created_at": MONDAY - number // 5}
        for number in range(10)
    ]
    memory.add_many(said, user_id="ada")
    asked: dict[str, Any] = {"user_id": "ada", "session_id": "old", "messages": 2, "with_said": True}
    [last] = memory.timeline(**asked)
    [first] = memory.timeline(**asked, until=last.earlier)
    assert (last.said, last.earlier, len(last.entries)) == (10, MONDAY, 5)
    assert (first.said, first.earlier, len(first.entries)) == (5, None, 5)


def test_notes_are_counted_for_the_time_that_is_told(memory: SupervisorMemory) -> None:
    for number in range(4):
        memory.recall("What does delayed mean?", Scope("ada", session_id="t1"))
        say(memory, f"Delayed{number} means more than {number} minutes late.", "t1")
    [last] = memory.timeline(user_id="ada", session_id="t1", messages=3)
    [first] = memory.timeline(user_id="ada", session_id="t1", messages=3, until=last.earlier)
    assert (last.cost.notes, first.cost.notes) == (3, 1)


def test_what_was_decided_is_told_once_the_session_has_a_digest(memory: SupervisorMemory) -> None:
    said = ["We compared the two carriers all morning.", "We decided to drop the Oslo route in May."]
    for text in said:
        say(memory, text, "t1", days=0.001)
    [open_one] = memory.timeline(user_id="ada")
    assert "decided" not in [each.what for each in open_one.entries]
    memory.sessions.close("t1", user_id="ada")
    memory.flush()
    [chapter] = memory.timeline(user_id="ada")
    assert [each for each in told(chapter) if each[1] == said[1]] == [("decided", said[1], None)]


def test_a_decision_that_was_kept_as_a_record_is_told_until_the_record_says_otherwise(
    memory: SupervisorMemory,
) -> None:
    say(memory, "We decided to drop the Oslo route in May.", "t1")
    memory.sessions.close("t1", user_id="ada")
    memory.flush()
    for entry in memory.timeline(user_id="ada")[0].entries:
        memory.delete(entry.id, user_id="ada")
    [chapter] = memory.timeline(user_id="ada")
    assert chapter.entries == ()


def test_what_was_deleted_is_told_no_more(memory: SupervisorMemory) -> None:
    say(memory, "Delayed means arrival more than 15 minutes late.", "t1")
    [chapter] = memory.timeline(user_id="ada")
    memory.delete(chapter.entries[0].id, user_id="ada")
    [chapter] = memory.timeline(user_id="ada")
    assert chapter.entries == ()


def test_notes_cost_their_tokens_and_stand_for_the_messages_behind_them(memory: SupervisorMemory) -> None:
    long = "Delayed means arrival more than 15 minutes late. " + "So much for that; thank you all. " * 30
    say(memory, long, "t1")
    asked = "What does delayed mean?"
    notes = [
        memory.recall(asked, Scope("ada", session_id="t2", agent_id=agent), said=False)
        for agent in (None, "stats", "stats")
    ]
    say(memory, asked, "t2")
    chapter, first = memory.timeline(user_id="ada")
    tokens, behind = notes[0].tokens, memory.services.count_tokens(long.strip())
    assert chapter.costs[None] == Cost(1, tokens, behind)
    assert chapter.costs["stats"] == Cost(2, notes[1].tokens + notes[2].tokens, 2 * behind)
    assert chapter.cost.spared == 3 * behind - sum(each.tokens for each in notes) > 0
    assert first.cost == Cost()
    assert memory.timeline(user_id="ada", until=MONDAY + 1)[0].cost == Cost()


def test_who_reads_a_timeline_is_in_the_access_log(memory: SupervisorMemory) -> None:
    say(memory, "Delayed means arrival more than 15 minutes late.", "t1")
    [chapter] = memory.read_by("eve").timeline(user_id="ada")
    [row] = memory.audit.accesses(9, user_id="ada", op="timeline")
    assert (row.agent_id, row.record_id) == ("eve", chapter.entries[0].id)


def test_nothing_of_an_erased_session_is_left_in_it(memory: SupervisorMemory) -> None:
    say(memory, "Delayed means arrival more than 15 minutes late.", "t1")
    say(memory, "Delayed means arrival more than 30 minutes late.", "t2")
    memory.sessions.erase("t2", user_id="ada", confirm=True)
    assert "30" not in str([each.to_dict() for each in memory.timeline(user_id="ada", with_said=True)])


def test_a_session_that_was_imported_is_told_too(memory: SupervisorMemory) -> None:
    said = "Delayed means arrival more than 15 minutes late."
    memory.add_many([{"content": said, "session_id": "old", "created_at": MONDAY - DAY}], user_id="ada")
    [chapter] = memory.timeline(user_id="ada", with_said=True)
    assert (chapter.said, chapter.entries[0].what, chapter.entries[0].text) == (1, "said", said)
