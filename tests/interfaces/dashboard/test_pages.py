"""All pages in both languages; then the preview, health, relations, the timeline, experience and figures."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qsl

import apsw
import pytest
from fastapi import FastAPI

from supervisor_memory import Scope, SupervisorMemory
from tests.cases import every_case
from tests.interfaces.dashboard.conftest import LATE, LATER, PAGES, POLICY, REVIEWER, Visitor, last, status

Known = Callable[[str], set[str]]


EMPTY = {
    "inbox": ("Nothing waits for review.", "没有待审的内容。"),
    "turns": ("No turn has read memory yet.", "还没有哪一轮读取过记忆。"),
    "timeline": ("Choose a user.", "请选择用户。"),
    "relations": ("Choose a user, and a name or a question.", "请选择用户，并填写名称或问题。"),
    "experience": ("No tool has a guideline.", "还没有工具的经验。"),
    "records": ("Nothing is remembered yet.", "还没有记住任何内容。"),
    "preview": ("Name a user and a question", "填写用户和问题"),
    "figures": ("No new records in this time.", "这段时间没有新增记录。"),
    "health": ("No records yet.", "还没有记录。"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("page", PAGES)
def test_an_empty_store_says_so_on_every_page_in_both_languages(
    app: FastAPI, page: str, language: str
) -> None:
    visitor = Visitor(app, "operator", language)
    answer = visitor.get(f"/dashboard/{page}")
    assert answer.status_code == 200
    assert EMPTY[page][language == "zh"] in answer.text
    assert f'<html lang="{"zh-Hans" if language == "zh" else "en"}">' in answer.text


@every_case("page", [*PAGES, "sign-in", "records/none", "turn?run=none", "receipts/none"])
def test_every_answer_has_the_policy(visitor: Visitor, page: str) -> None:
    headers = visitor.get(f"/dashboard/{page}").headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("name", "kind"), [("dashboard.css", "text/css"), ("dashboard.js", "text/javascript")]
)
def test_style_and_script_are_files_of_their_own(app: FastAPI, name: str, kind: str) -> None:
    answer = Visitor(app).get(f"/dashboard/static/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert Visitor(app, "operator").get("/dashboard/static/visit.py").status_code == 404


def test_a_language_that_is_chosen_stays(visitor: Visitor) -> None:
    assert "待审" in visitor.get("/dashboard/inbox", lang="zh").text
    assert "Nothing waits" not in visitor.get("/dashboard/inbox").text
    assert "Nothing waits" in visitor.get("/dashboard/inbox", lang="en").text


@every_case(
    "path",
    [
        *(
            "records?after=x",
            "records?after=%5B1%5D",
            "inbox?kind=x",
            "records?status=odd",
            "records?kind=x",
        ),
        *("records?family=a/b", "records?since=never", "records?user=%00", "preview?threshold=2&user=ada"),
        *(
            "preview?max_tokens=-1",
            "preview?user=ada&question=x&top_k=1e9",
            "turns?before=%C2%B2",
            "turns?before=x",
        ),
        "users/forget",
    ],
)
def test_what_cannot_be_asked_is_told_on_a_page(visitor: Visitor, path: str) -> None:
    answer = visitor.get(f"/dashboard/{path}")
    assert answer.status_code == 422
    assert "Something in the form cannot be." in answer.text


@pytest.mark.parametrize(("language", "told"), [("en", "There is no such page."), ("zh", "没有这样的页面。")])
def test_an_address_without_a_page_is_told_on_a_page(app: FastAPI, language: str, told: str) -> None:
    visitor = Visitor(app, "operator", language)
    for path in ("nope", "records/a/b/c", "inbox/some-id/approve"):
        answer = visitor.get(f"/dashboard/{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert told in answer.text
        assert 'href="/dashboard/inbox"' in answer.text
    assert visitor.post("/dashboard/nope").status_code == 404
    assert visitor.get("/dashboard/").headers["location"] == "/dashboard/inbox"


def test_the_preview_is_the_note_and_changes_nothing(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    question = "How many flights were delayed?"
    log = memory.backend.audit

    def injected() -> tuple[object, ...]:
        return log.count(), log.notes(100), [row for row in log.accesses(100) if row.op == "inject"]

    before = injected()
    page = visitor.text("/dashboard/preview", user="ada", agent="sql", question=question)
    assert LATE in page
    assert "handed out" in page
    assert injected() == before
    assert "preview" in {row.op for row in log.accesses(5)}
    note = memory.recall([("user", question)], Scope("ada", "sql"))
    assert note.text in page


def test_the_preview_takes_other_limits(visitor: Visitor, ids: dict[str, str]) -> None:
    asked = {"user": "ada", "question": "How many flights were delayed?"}
    assert "it does not fit into the note" in visitor.text("/dashboard/preview", **asked, max_tokens=10)
    assert "under the threshold" in visitor.text("/dashboard/preview", **asked, threshold=1)
    assert "beyond the number" in visitor.text("/dashboard/preview", **asked, top_k=0)


def test_health_tells_of_the_store_the_chain_and_the_counts(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    page = visitor.text("/dashboard/health")
    assert "works" in page
    assert "sqlite" in page
    rows = memory.backend.audit.count()
    assert f"The last {rows} rows are as they were written." in page
    assert f"All {rows} rows are as they were written." in visitor.text("/dashboard/health", verify="all")


def test_health_counts_notes_and_searches_apart(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    assert "No searches in the last 14 days." in visitor.text("/dashboard/health")
    for _ in range(3):
        memory.search("late", user_id="ada")
    page = visitor.text("/dashboard/health")
    notes, searches = page.split("Searches a day; degraded ones are dark")[0:2]
    assert ": 2 · degraded 0" in notes.split("Notes a day; degraded ones are dark")[1]
    assert ": 3 · degraded 0" in searches


def test_one_of_something_is_told_as_one(visitor: Visitor, memory: SupervisorMemory) -> None:
    memory.write("Use tables by default.", user_id="ada")
    page = visitor.text("/dashboard/records")
    assert "1 to 1" not in page
    memory.recall([("user", "Which tables?")], Scope("ada", run_id="r-1"))
    turns = visitor.text("/dashboard/turns")
    assert "1 record" in turns
    assert "1 records" not in turns
    assert "The only row is" in visitor.text("/dashboard/health", verify="all")


@pytest.mark.parametrize("verify", ["", "all"])
def test_a_chain_that_was_changed_turns_the_light_red(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], verify: str
) -> None:
    [file] = [each for each in memory.settings.path.glob("*.db") if _has_chain(each)]
    with apsw.Connection(str(file)) as connection:
        connection.execute("DROP TRIGGER audit_is_never_changed")
        connection.execute(
            "UPDATE audit SET payload = replace(payload, 'supervisor', 'superviser') WHERE seq = 2"
        )
    assert 'data-chain="bad"' in visitor.get("/dashboard/health", verify=verify).text


def _has_chain(file: object) -> bool:
    connection = apsw.Connection(str(file))
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").get)


def test_a_picture_shows_what_is_around_a_thing_and_the_way_to_another(
    visitor: Visitor, memory: SupervisorMemory
) -> None:
    for fact in (
        "Harbour Board is built on top of fct_ships.",
        "The rows of fct_ships come out of tide_job.",
        "tide_job was written by Nils Berg.",
        "The canteen closes at two.",
    ):
        memory.write(fact, user_id="zoe")
    page = visitor.get("/dashboard/relations", user="zoe", about="fct_ships", to="Nils Berg").text
    boxes = re.findall(r'<rect class="node"[^>]*/><text [^>]*>([^<]*)</text>', page)
    assert boxes[0] == "fct_ships"
    assert {"Harbour Board", "tide_job"} <= set(boxes)
    assert boxes[-3:] == ["fct_ships", "tide_job", "Nils Berg"]
    assert "reads from" in page
    assert "made by" in page

    [record] = [each for each in memory.get_all(user_id="zoe") if "written" in each.content]
    assert f"/dashboard/records/{record.id}" in page
    assert (
        f"/dashboard/relations?user=zoe&amp;about={record.id}"
        in visitor.get(f"/dashboard/records/{record.id}").text
    )
    asked = visitor.get("/dashboard/relations", user="zoe", question="What is Harbour Board built on?").text
    assert asked.count('<svg class="picture"') == 2, "a hit of one step, and one of two"
    assert ">fct_ships</text>" in asked
    assert "No record names it." in visitor.text("/dashboard/relations", user="zoe", about="nobody")
    assert "相邻" in visitor.get("/dashboard/relations", user="zoe", about="fct_ships", lang="zh").text


def test_a_timeline_tells_what_was_learned_and_changed_and_leads_on(
    visitor: Visitor, memory: SupervisorMemory
) -> None:
    for session, text in (("t/1", LATE), ("t2", LATER)):
        [done] = memory.add(text, user_id="zoe", session_id=session)
        memory.recall("What is delayed?", Scope("zoe", session_id=session))
    memory.review.approve(done.id, reviewer="eve")
    page = visitor.get("/dashboard/timeline", user="zoe").text
    [record] = memory.get_all(user_id="zoe")
    assert f"/dashboard/records/{record.id}" in page
    assert page.index("changed") < page.index(">learned")
    assert f'<del class="quiet" dir="auto">{LATE}</del>' in page
    assert "Notes for supervisor: 1, of " in page
    one = visitor.text("/dashboard/timeline", user="zoe", session="t/1")
    assert "said" in one
    assert LATER not in one
    assert "No session in that time." in visitor.text("/dashboard/timeline", user="zoe", until="2001-01-01")
    assert "学到" in visitor.get("/dashboard/timeline", user="zoe", lang="zh").text


def test_a_long_session_is_read_on_page_by_page(visitor: Visitor, memory: SupervisorMemory) -> None:
    lines = [{"content": f"Line {n}.", "session_id": "long", "created_at": 1e9 + n} for n in range(101)]
    memory.add_many(lines, user_id="zoe")
    page = visitor.get("/dashboard/timeline", user="zoe", session="long").text
    assert "Line 1." in page
    assert "Line 0." not in page
    before = re.search(r'href="[^"]*/dashboard/timeline\?([^"]*)">What was said before', page)
    assert before is not None
    asked = dict(parse_qsl(unescape(before[1])))
    page = visitor.get("/dashboard/timeline", **asked).text
    assert "Line 0." in page
    assert "said before" not in page


def test_beside_others_a_session_is_told_by_its_end(visitor: Visitor, memory: SupervisorMemory) -> None:
    for number in range(30):
        memory.add(f"Rule{number} means {number} euros.", user_id="zoe", session_id="busy")
    memory.add("Rule99 means 99 euros.", user_id="zoe", session_id="calm")
    page = visitor.get("/dashboard/timeline", user="zoe").text
    assert [f"Rule{n} means" in page for n in (29, 18, 17, 0, 99)] == [True, True, False, False, True]
    assert page.count("All of this session") == 1
    assert "Rule0 means" in visitor.get("/dashboard/timeline", user="zoe", session="busy").text


def test_a_guideline_is_shown_with_its_evidence_and_withdrawn_by_a_person(
    memory: SupervisorMemory, visitor: Visitor
) -> None:
    analyst = Scope("ada", "analyst", "s1", "run-7")
    memory.experience.heard("run_sql", {"sql": "SELECT delay FROM t"}, analyst, error="no such column: delay")
    done = memory.experience.heard("run_sql", {"sql": "SELECT <b>x</b> FROM t"}, analyst)
    assert done is not None
    assert done.status == "pending"
    memory.review.approve(done.id, reviewer=REVIEWER)
    memory.recall("Select delay.", Scope("ada", "analyst", "s2", "run-8"))
    memory.rate("run-8", 1.0, user_id="ada")
    page = visitor.get("/dashboard/experience", user="ada").text
    assert all(told in page for told in ("run_sql", "column: delay", "run-7", "told 1 time", "Withdraw"))
    assert 'data-label="Good runs">1<' in page
    assert "<b>x</b>" not in page
    answer = visitor.post(f"/dashboard/experience/{done.id}/withdraw", user="ada")
    assert answer.status_code == 303
    assert (status(memory, done.id), last(memory, done.id)) == ("deleted", ("delete", REVIEWER))
    assert "No tool has a guideline." in visitor.get("/dashboard/experience", user="ada").text
    assert "run_sql" in visitor.get("/dashboard/experience", user="ada", withdrawn="yes").text


def test_figures_tell_growth_by_kind_and_what_notes_cost_by_agent(
    app: FastAPI, visitor: Visitor, memory: SupervisorMemory
) -> None:
    memory.write("Use tables by default.", user_id="ada")
    memory.write(LATE, user_id="ada")
    for agent in (None, "sql", "sql"):
        memory.recall("What does delayed mean?", Scope("ada", agent, "monday", f"run-{agent}"))
    memory.recall("Good morning!", Scope("ada", "web", "monday", "run-web"))
    page = visitor.get("/dashboard/figures").text
    assert page.count('class="k-user-profile"') == page.count('class="k-domain-facts"') == 1
    rows = {row[0]: row[1:] for row in map(cells, page.split("<tr data-item>")[1:])}
    assert (rows["sql"][:2], rows["web"][:2]) == (["2", "100 %"], ["1", "0 %"])
    assert rows["supervisor"][4:6] == ["2", "2"]
    assert rows["search and recall"][0] == "4"
    of_bo = Visitor(app, "bo").get("/dashboard/figures").text
    assert "sql" not in of_bo
    assert "search and recall" not in of_bo


def cells(row: str) -> list[str]:
    return [unescape(each) for each in re.findall(r"<td[^>]*>([^<]*)</td>", row)]
