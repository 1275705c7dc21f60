"""Who may see and change what: forms of other callers and sites, readers, people bound to a user."""

import re

from fastapi import FastAPI

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import new_id
from tests.cases import every_case
from tests.interfaces.dashboard.conftest import PAGES, POLICY, Visitor, status


def test_nobody_decides_on_what_is_anothers(
    app: FastAPI, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    answer = Visitor(app, "bo").post("/dashboard/inbox/approve", **{f"p-{ids['charts']}": "yes"})
    assert answer.status_code == 404
    assert memory.get(ids["charts"]).status == "pending"


@every_case("word", ["", "0" * 64, "é"])
def test_a_form_without_its_word_changes_nothing(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], word: str
) -> None:
    answer = visitor.post(f"/dashboard/inbox/{ids['charts']}/approve", word=word)
    assert answer.status_code == 403
    assert status(memory, ids["charts"]) == "pending"


@every_case("body", [b"%ED%A0%80", b"word=\xff", b"{}", b"a=1&" * 100, b"--x\r\n", b""])
def test_what_is_no_form_changes_nothing(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], body: bytes
) -> None:
    answer = visitor.ask("POST", f"/dashboard/inbox/{ids['charts']}/approve", content=body)
    assert answer.status_code in (403, 422)
    assert answer.headers["content-security-policy"] == POLICY
    assert status(memory, ids["charts"]) == "pending"


def test_the_word_of_another_caller_is_not_taken(
    app: FastAPI, visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    word = Visitor(app, "two").word
    assert word != visitor.word
    assert visitor.post(f"/dashboard/inbox/{ids['charts']}/approve", word=word).status_code == 403
    assert status(memory, ids["charts"]) == "pending"


def test_another_site_cannot_send_the_form(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    visitor.headers["Origin"] = "https://evil.example"
    assert visitor.post(f"/dashboard/inbox/{ids['charts']}/approve").status_code == 403
    assert status(memory, ids["charts"]) == "pending"


def test_who_may_read_alone_sees_no_buttons_and_changes_nothing(
    app: FastAPI, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    reader = Visitor(app, "reader")
    page = reader.get("/dashboard/inbox").text
    assert "The user prefers bar charts." in page
    assert "/approve" not in page
    assert "/delete" not in reader.get(f"/dashboard/records/{ids['tables']}").text
    for path in (f"inbox/{ids['charts']}/approve", f"records/{ids['tables']}/delete", "users/forget"):
        assert reader.post(f"/dashboard/{path}", user="ada", typed="ada").status_code == 403
    assert status(memory, ids["charts"]) == "pending"
    assert status(memory, ids["tables"]) == "active"


def test_who_is_bound_to_a_user_sees_nothing_of_others(
    app: FastAPI, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    bo = Visitor(app, "bo")
    for page in PAGES:
        told = bo.get(f"/dashboard/{page}").text
        assert "tables" not in told.lower()
        assert "ada" not in re.sub("[0-9a-f-]{32,}|dashboard", "", told)  # but ids may hold it by chance
    assert "Invoices mean" in bo.get("/dashboard/records").text
    for path in (f"records/{ids['tables']}", f"records/{ids['tables']}/delete", f"records/{new_id()}"):
        assert bo.get(f"/dashboard/{path}").status_code == 404
    for path in ("records?user=ada", "inbox?user=ada", "turns?user=ada", "users/forget?user=ada"):
        assert bo.get(f"/dashboard/{path}").status_code == 403
    assert "web" not in bo.get("/dashboard/turn", run="run-2").text
    for path in (f"inbox/{ids['charts']}/approve", f"records/{ids['tables']}/delete"):
        assert bo.post(f"/dashboard/{path}").status_code == 404
    assert bo.post("/dashboard/users/forget", user="ada", typed="ada").status_code == 403
    assert status(memory, ids["charts"]) == "pending"
    denied = [row.event for row in memory.backend.audit.tail(20, op="access")]
    assert {event["reason"] for event in denied} == {"record-of-another-user"}


def test_who_has_several_users_sees_one_at_a_time(app: FastAPI, ids: dict[str, str]) -> None:
    two = Visitor(app, "two")
    assert "Use tables" in two.get("/dashboard/records").text
    assert "Use tables" not in two.get("/dashboard/records", user="bo").text
    assert two.get(f"/dashboard/records/{ids['bo']}").status_code == 200


def test_the_address_of_the_store_is_not_told_to_who_is_bound(app: FastAPI, memory: SupervisorMemory) -> None:
    assert str(memory.settings.path) in Visitor(app, "operator").text("/dashboard/health")
    assert str(memory.settings.path) not in Visitor(app, "bo").text("/dashboard/health")
