"""Records: browsing them, one with its versions and readers, and what a person does with it."""

import re
from collections.abc import Callable

import httpx

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.model.records import FAMILIES, Record, new_id
from tests.interfaces.dashboard.conftest import LATER, REVIEWER, Visitor, last, next_page, proposed

Known = Callable[[str], set[str]]


def test_records_are_browsed_by_what_is_asked(visitor: Visitor, ids: dict[str, str]) -> None:
    def found(**asked: str) -> set[str]:
        page = visitor.get("/dashboard/records", **asked).text
        return {name for name, id_ in ids.items() if f"/dashboard/records/{id_}" in page}

    assert found() == {"tables", "late", "bo"}
    assert found(user="ada") == {"tables", "late"}
    assert found(user="ada", kind="domain-facts") == {"late"}
    assert found(family="user_profile") == {"tables"}
    assert found(status="pending") == {"rival", "charts", "lisbon"}
    assert found(status="any") == set(ids)
    assert found(until="2001-01-01") == set()
    assert found(since="2001-01-01") == {"tables", "late", "bo"}
    assert found(user="ada", q="delayed arrival") == {"late"}
    assert found(user="ada", q="zebra crossing") == set()
    assert found(q="delayed") == set()
    assert "name a user" in visitor.text("/dashboard/records", q="delayed")


def test_records_come_fifty_at_a_time(visitor: Visitor, memory: SupervisorMemory) -> None:
    records = [
        Record(new_id(), (FAMILIES["domain-facts"], "ada"), f"Fact {at}.", "domain-facts", at, at)
        for at in range(1, 121)
    ]
    memory.backend.write(records)

    def rows(page: httpx.Response) -> int:
        return page.text.count("<tr data-item>")

    pages = [visitor.get("/dashboard/records", user="ada")]
    while following := next_page(pages[-1].text):
        pages.append(visitor.get(f"/dashboard/records{following}"))
    assert [rows(page) for page in pages] == [50, 50, 20]
    assert "Fact 120." in pages[0].text
    assert "Fact 1." in pages[2].text


def test_a_record_shows_its_versions_who_read_it_and_what_was_said(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    memory.update(ids["late"], content="Delayed means arrival more than 20 minutes late.", user_id="ada")
    page = visitor.get(f"/dashboard/records/{ids['late']}").text
    assert "more than <del>15</del><ins>20</ins> minutes" in page
    assert '<svg class="time"' in page
    assert ">sql</td>" in page
    assert "run-2" in page
    rival = visitor.get(f"/dashboard/records/{ids['rival']}").text
    assert f"Please note. <mark>{LATER}</mark> Thank you." in rival


def test_of_many_versions_the_latest_are_shown(visitor: Visitor, memory: SupervisorMemory) -> None:
    id_ = memory.write("Use 0 decimals.", user_id="ada").id
    for at in range(1, 55):
        memory.update(id_, content=f"Use {at} decimals.", user_id="ada")
    page = visitor.get(f"/dashboard/records/{id_}").text
    assert "5 earlier versions are not shown here" in page
    assert page.count('<li class="card" data-item>') == 50
    assert "Use <del>4</del><ins>5</ins> decimals." in page
    assert "Use <del>3</del><ins>4</ins> decimals." not in page


def test_looking_at_a_record_is_logged_as_the_reviewers(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    before = len(memory.backend.audit.accesses(100, record_id=ids["tables"]))
    visitor.get(f"/dashboard/records/{ids['tables']}")
    visitor.get("/dashboard/records", user="ada")
    visitor.get("/dashboard/records", user="ada", q="tables")
    visitor.get("/dashboard/preview", user="ada", question="tables?")
    seen = memory.backend.audit.accesses(100, record_id=ids["tables"])[before:]
    assert {row.op for row in seen} == {"get", "history", "messages", "list", "search", "preview"}
    assert {row.agent_id for row in seen} == {REVIEWER}


def test_an_earlier_text_comes_back_as_a_new_version(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    memory.update(ids["tables"], content="Use lists by default.", user_id="ada")
    answer = visitor.post(f"/dashboard/records/{ids['tables']}/revert", version="1")
    assert answer.headers["location"].endswith("said=revert")
    assert "Use tables by default." in known("ada")
    assert last(memory, ids["tables"]) == ("revert", REVIEWER)
    for version in ("9", "x", "-1", ""):
        answer = visitor.post(f"/dashboard/records/{ids['tables']}/revert", version=version)
        assert answer.status_code in (404, 422)


def test_a_record_is_deleted_after_a_question_and_can_be_brought_back(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    assert "It will be found no more." in visitor.text(f"/dashboard/records/{ids['tables']}/delete")
    assert "Use tables by default." in known("ada")
    gone = visitor.post(f"/dashboard/records/{ids['tables']}/delete").headers["location"]
    assert "Use tables by default." not in known("ada")
    row = memory.backend.audit.tail(1, record_id=ids["tables"])[0]
    assert (row.op, row.event["actor"]) == ("delete", REVIEWER)
    assert f"{row.seq} · {row.hash.hex()[:16]}" in visitor.text(gone)  # the receipt
    visitor.post(f"/dashboard/records/{ids['tables']}/restore")
    assert "Use tables by default." in known("ada")


def test_the_question_says_that_the_message_goes_too_and_offers_to_keep_it(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    said = "The messages it was read from are recalled no more either."
    assert said not in visitor.text(f"/dashboard/records/{ids['tables']}/delete")  # it came from none
    memory.remember([("user", "Always answer in French.")], Scope("ada", session_id="s9"))
    [french] = [each.id for each in memory.get_all(user_id="ada") if "French" in each.content]
    page = visitor.text(f"/dashboard/records/{french}/delete")
    assert said in page
    assert "Those messages may still be recalled" in page
    visitor.post(f"/dashboard/records/{french}/delete", **{"keep-said": "yes"})
    assert memory.get(french).metadata["said_kept"] == 2


def test_what_was_rejected_and_is_brought_back_is_said_to_wait_again(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    visitor.post(f"/dashboard/inbox/{ids['charts']}/reject")
    back = visitor.post(f"/dashboard/records/{ids['charts']}/restore").headers["location"]
    assert "It waits for review again." in visitor.text(back)
    assert memory.get(ids["charts"]).status == "pending"


def test_a_user_is_erased_only_when_the_id_is_typed_and_there_is_a_receipt(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], known: Known
) -> None:
    assert "Nothing brings them back." in visitor.text("/dashboard/users/forget", user="ada")
    assert visitor.post("/dashboard/users/forget", user="ada", typed="Ada").status_code == 422
    assert known("ada")
    answer = visitor.post("/dashboard/users/forget", user="ada", typed="ada")
    assert not known("ada")
    assert not memory.backend.get([ids["tables"], ids["rival"]])
    told = visitor.text(answer.headers["location"])
    assert "Erased: ada" in told
    assert "checkpoints of the graph" in told
    assert memory.backend.audit.tail(1, op="erase.begin")[0].event["actor"] == REVIEWER
    assert known("bo")


def test_a_record_tells_its_review_in_words_and_where_it_went(
    visitor: Visitor, memory: SupervisorMemory
) -> None:
    tea, coffee, maps = proposed(
        memory,
        "The user likes tea.",
        "The user likes tea, and coffee in the morning.",
        "The user likes maps.",
    )
    for id_ in (tea, coffee):
        memory.review.approve(id_, reviewer=REVIEWER)
    memory.review.reject(maps, reviewer=REVIEWER, reason="no wish")
    page = visitor.get(f"/dashboard/records/{coffee}").text
    assert f'<a href="/dashboard/records/{tea}" dir="auto">' in page
    told = visitor.text(f"/dashboard/records/{coffee}")
    assert "review was asked for, a tool says it of the user" in told
    assert "it joined what is known" in told
    assert not re.search(r"asked-for|asked for;|strategy|said_kept", told)
    in_chinese = visitor.text(f"/dashboard/records/{coffee}", lang="zh")
    assert "要求人工审核，工具所说的关于用户的话" in in_chinese
    assert "并入已有记录" in in_chinese

    page = visitor.get(f"/dashboard/records/{maps}", lang="en").text
    assert '<span class="tag">rejected</span>' in page
    assert '<span class="tag">deleted</span>' not in page
    assert re.search(rf"<dd>{REVIEWER}: <span[^>]*>no wish</span>", page)
    assert "<button>Let it wait for review again</button>" in page
    memory.review.restore(maps, reviewer=REVIEWER)
    assert "it was deleted" in visitor.text(f"/dashboard/records/{maps}")
