"""The inbox: what waits for review, one proposal at a time, each decision and its undo."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Filter, new_id
from supervisor_memory.stores.protocol import Change, Commit
from tests.interfaces.dashboard.conftest import LATE, LATER, REVIEWER, Visitor, last, next_page, status

Known = Callable[[str], set[str]]


def test_the_inbox_shows_what_is_known_what_is_proposed_and_what_would_be(
    visitor: Visitor, ids: dict[str, str]
) -> None:
    page = visitor.get("/dashboard/inbox").text
    assert "5 waiting" not in page
    assert "3 waiting" in page
    assert "more than <del>15</del><ins>30</ins> minutes late." in page
    assert f"Please note. <mark>{LATER}</mark> Thank you." in page
    assert "it denies what the user said" in page
    assert re.search(r"a tool · web\s* · run-1", page)


def test_approving_takes_the_place_of_what_is_known_and_undo_gives_it_back(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    answer = visitor.post(f"/dashboard/inbox/{ids['rival']}/approve")
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/inbox?said=approve")
    assert LATER in known("ada")
    assert LATE not in known("ada")
    assert last(memory, ids["rival"]) == ("approve", REVIEWER)
    assert LATER in visitor.text("/dashboard/inbox", said="approve")  # as the last decision

    assert visitor.post("/dashboard/inbox/undo").headers["location"].endswith("said=undo")
    assert LATE in known("ada")
    assert LATER not in known("ada")
    assert status(memory, ids["rival"]) == "pending"
    assert last(memory, ids["late"])[1] == REVIEWER


def test_rejecting_keeps_the_reason_and_undo_lets_it_wait_again(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/reject", reason="That was the web page.")
    record = memory.backend.get([ids["charts"]])[0]
    assert record.status == "deleted"
    assert record.metadata["review"]["reason"] == "That was the web page."
    assert last(memory, ids["charts"]) == ("reject", REVIEWER)
    visitor.post("/dashboard/inbox/undo")
    assert status(memory, ids["charts"]) == "pending"


def test_editing_keeps_the_words_of_the_reviewer_and_undo_lets_the_first_words_wait_again(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/edit", content="The user prefers\r\nline charts.")
    assert "The user prefers\nline charts." in known("ada")
    assert memory.backend.get([ids["charts"]])[0].source.agent_id == "web"
    assert last(memory, ids["charts"]) == ("edit", REVIEWER)
    visitor.post("/dashboard/inbox/undo")
    record = memory.backend.get([ids["charts"]])[0]
    assert (record.status, record.content) == ("pending", "The user prefers bar charts.")


def test_undo_goes_back_decision_by_decision_and_then_has_nothing(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/approve")
    visitor.post(f"/dashboard/inbox/{ids['lisbon']}/reject")
    visitor.post("/dashboard/inbox/undo")
    assert (status(memory, ids["charts"]), status(memory, ids["lisbon"])) == ("active", "pending")
    visitor.post("/dashboard/inbox/undo")
    assert (status(memory, ids["charts"]), status(memory, ids["lisbon"])) == ("pending", "pending")
    assert visitor.post("/dashboard/inbox/undo").headers["location"].endswith("said=nothing-to-undo")


@pytest.mark.parametrize("verb", ["approve", "edit", "reject"])
@pytest.mark.parametrize(
    ("known_before", "proposed"),
    [
        ("", "The user likes tea."),
        ("The user likes tea.", "The user likes tea, and coffee in the morning."),
        ("My office is in Porto.", "The user's office is in Lisbon."),
        ("我喜欢喝茶。", "用户喜欢喝咖啡。"),
    ],
)
def test_undo_leaves_everything_as_it_was_before_the_decision(
    visitor: Visitor, memory: SupervisorMemory, verb: str, known_before: str, proposed: str
) -> None:
    if known_before:
        memory.write(known_before, user_id="ada", kind="user-profile")
    waiting = memory.write(
        proposed,
        user_id="ada",
        kind="user-profile",
        source_class="tool",
        metadata={"strategy": "review"},
    )

    def state() -> set[tuple[str, str, str]]:
        where = Filter(user_id="ada", statuses=("active", "pending"))
        return {(each.id, each.status, each.content) for each in memory.backend.list(where, limit=100)}

    before = state()
    visitor.get("/dashboard/inbox")
    visitor.post(f"/dashboard/inbox/{waiting.id}/{verb}", content=f"{proposed} Really.")
    assert state() != before
    visitor.post("/dashboard/inbox/undo")
    assert state() == before


def test_what_was_changed_since_is_not_undone(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/approve")
    memory.update(ids["charts"], content="The user prefers pie charts.", user_id="ada")
    assert visitor.post("/dashboard/inbox/undo").headers["location"].endswith("said=changed-since")
    assert "The user prefers pie charts." in known("ada")


def test_the_second_of_two_reviewers_is_told(visitor: Visitor, ids: dict[str, str]) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/approve")
    answer = visitor.post(f"/dashboard/inbox/{ids['charts']}/reject")
    assert answer.status_code == 409
    assert "Somebody else was faster" in answer.text


def test_a_long_inbox_comes_in_pages(visitor: Visitor, memory: SupervisorMemory) -> None:
    for at in range(12):
        memory.write(f"The user likes colour {at}.", user_id="ada", kind="user-profile", source_class="tool")
    first = visitor.get("/dashboard/inbox").text
    second = visitor.get("/dashboard/inbox" + next_page(first)).text
    assert [page.count("<article") for page in (first, second)] == [10, 2]
    assert "12 waiting" in second


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"why": "about-the-user-by-tool"}, 2),
        ({"why": "instruction-like"}, 0),
        ({"kind": "user-profile", "agent": "web"}, 1),
        ({"run": "run-2"}, 1),
        ({"run": "run-2", "agent": "web"}, 0),
    ],
)
def test_the_inbox_is_narrowed_by_reason_kind_agent_and_run(
    visitor: Visitor, memory: SupervisorMemory, asked: dict[str, str], found: int
) -> None:
    for number, agent in ((1, "web"), (2, "sql")):
        memory.write(
            f"The user likes colour {number}.",
            user_id="ada",
            kind="user-profile",
            source_class="tool",
            agent_id=agent,
            run_id=f"run-{number}",
        )
    assert visitor.get("/dashboard/inbox", **asked).text.count("<article") == found


def test_the_inbox_reads_what_was_said_around_a_proposal_and_not_the_whole_session(
    visitor: Visitor, memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = 1_700_000_000.0
    for hour in range(-40, 40):
        memory.add_many(
            [{"content": f"Hour {hour}.", "session_id": "long", "created_at": noon + 3_600 * hour}],
            user_id="ada",
            family="session_messages",
        )
    [message] = (each for each in memory.session("long", user_id="ada") if each.content == "Hour 0.")
    waits = replace(
        memory.get(message.id),
        id=new_id(),
        namespace=("user_profile", "ada"),
        layer="abstract",
        status="pending",
        ref_id=message.id,
    )
    memory.backend.batch(Commit((Change(waits),)))
    listed = memory.backend.list
    read: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        found = listed(*arguments, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(memory.backend, "list", counted)
    page = visitor.text("/dashboard/inbox")
    assert "Hour 0." in page
    assert "Hour -1." in page
    assert max(read) < 10
