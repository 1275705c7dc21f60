"""A reviewer's walk through the six pages, in both languages: clicks, and what is in the store then."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.interfaces.dashboard.words import WORDS, Language
from supervisor_memory.model.records import Record
from tests.browser.served import REVIEWER, Site

Say = Callable[[str], str]


@pytest.fixture(params=["en", "zh"])
def say(request: pytest.FixtureRequest, page: Page, site: Site) -> Say:
    """The phrases of a language that the page was switched to."""
    language: Language = request.param
    page.goto(f"{site.url}/dashboard/inbox")
    page.locator(f".right a[lang={language}]").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans" if language == "zh" else "en")
    return lambda key: WORDS[key][language]


def to(page: Page, name: str) -> None:
    page.locator("nav a", has_text=name).click()
    expect(page.locator("h1")).to_have_text(name)


def card(page: Page, text: str) -> str:
    """The selector of what waits with this text."""
    id_ = page.locator("article", has=page.locator("[data-proposed]", has_text=text)).get_attribute("id")
    return f"[id='{id_}']"


def holding(memory: SupervisorMemory, text: str, *, user_id: str = "ada") -> Record:
    """The active record of a user that holds a text."""
    [found] = [each for each in memory.get_all(user_id=user_id) if text in each.content]
    return found


def ops(memory: SupervisorMemory, record_id: str) -> list[tuple[str, str]]:
    rows = memory.backend.audit.tail(20, record_id=record_id)
    return [(row.op, row.event["actor"]) for row in rows]


def known(memory: SupervisorMemory, user_id: str = "ada") -> set[str]:
    return {record.content for record in memory.get_all(user_id=user_id)}


def test_inbox(page: Page, site: Site, say: Say) -> None:
    memory = site.memory
    charts = "The user prefers bar charts for monthly totals."
    waiting = len(memory.review.pending())

    rival = card(page, "30 minutes")
    expect(page.locator(f"{rival} del")).to_have_text("15")
    expect(page.locator(f"{rival} ins")).to_have_text("30")
    expect(page.locator(f"{rival} mark")).to_contain_text("30 minutes late")
    old = holding(memory, "arrival more than 15")
    page.locator(f"{rival} [data-do=a]").click()
    expect(page.get_by_role("status")).to_have_text(say("said.approve"))
    assert holding(memory, "arrival more than 30").id == old.id
    proposal = rival.removeprefix("[id='p-").removesuffix("']")
    assert memory.backend.get([proposal])[0].status == "stale"
    assert ("approve", REVIEWER) in ops(memory, proposal)

    page.locator("[data-undo]").click()
    expect(page.get_by_role("status")).to_have_text(say("said.undo"))
    assert holding(memory, "arrival more than 15").id == old.id
    assert memory.backend.get([proposal])[0].status == "pending"
    assert ops(memory, old.id)[-1] == ("revert", REVIEWER)

    box = card(page, charts)
    page.locator(f"{box} input[name=reason]").fill("a page said so / 网页所说")
    page.locator(f"{box} [data-do=r]").click()
    expect(page.get_by_role("status")).to_have_text(say("said.reject"))
    rejected = memory.backend.get([box.removeprefix("[id='p-").removesuffix("']")])[0]
    assert (rejected.content, rejected.status) == (charts, "deleted")
    assert rejected.metadata["review"]["reason"] == "a page said so / 网页所说"

    box = card(page, "用户希望结果按航空公司排序")
    page.locator(f"{box} [data-do=e]").click()
    page.locator(f"{box} textarea").fill("用户希望结果按航空公司名称排序。")
    page.locator(f"{box} details.edit button").click()
    expect(page.get_by_role("status")).to_have_text(say("said.edit"))
    edited = holding(memory, "航空公司名称")
    assert edited.source.agent_id == "sql"
    assert ("edit", REVIEWER) in ops(memory, edited.id)
    assert len(memory.review.pending()) == waiting - 2


def test_turn(page: Page, site: Site, say: Say) -> None:
    to(page, say("turns"))
    page.locator("tr", has_text="run-2").locator("a").first.click()
    told = site.memory.backend.audit.notes(50, run_id="run-2")[::-1]
    assert len(told) > 2
    edges = page.locator("svg a.edge")
    expect(edges).to_have_count(len(told))
    at = next(at for at, note in enumerate(told) if note.agent_id == "analysis")
    edges.nth(at).locator("text").first.click()
    expect(page.locator("h2").first).to_have_text(say("given-to").format(reader="analysis"))
    for shown in told[at].shown:
        text = site.memory.backend.get([shown.record_id])[0].content
        expect(page.locator("[data-shown]")).to_contain_text(text)
    expect(page.locator(".head").first).to_contain_text(say("n-tokens").format(n=told[at].tokens))
    page.locator("section details summary").first.click()
    expect(page.locator("table.bars").first).to_contain_text(say("part.decay"))
    dropped = next(at for at, note in enumerate(told) if note.dropped)
    edges.nth(dropped).locator("text").first.click()
    reason = say(f"reason.{told[dropped].dropped[0].reason}")
    expect(page.locator("section").nth(2)).to_contain_text(reason)
    assert site.memory.backend.audit.notes(50, run_id="run-2")[::-1] == told  # looking is no turn
    assert "turn" in {row.op for row in site.memory.backend.audit.accesses(50)}


def test_record(page: Page, site: Site, say: Say) -> None:
    memory = site.memory
    office = holding(memory, "Porto and Lisbon")
    to(page, say("records"))
    page.get_by_role("link", name=office.content).click()
    expect(page.locator("ins").first).to_have_text("and Lisbon offices")
    expect(page.locator("svg.time rect.bar")).to_have_count(2)
    page.get_by_role("button", name=say("revert")).click()
    expect(page.get_by_role("status")).to_have_text(say("said.revert"))
    assert memory.backend.get([office.id])[0].content == "The June report goes to the Porto office."
    assert ops(memory, office.id)[-1] == ("revert", REVIEWER)

    page.get_by_role("link", name=say("delete")).click()
    page.get_by_role("button", name=say("delete")).click()
    expect(page.get_by_role("status")).to_have_text(say("said.delete"))
    row = memory.backend.audit.tail(1, record_id=office.id)[0]
    assert (row.op, row.event["actor"]) == ("delete", REVIEWER)
    expect(page.locator("main")).to_contain_text(f"{row.seq} · {row.hash.hex()[:16]}")
    page.get_by_role("button", name=say("restore")).click()
    expect(page.get_by_role("status")).to_have_text(say("said.restore"))
    assert memory.backend.get([office.id])[0].status == "active"

    page.get_by_role("link", name=say("forget")).click()
    page.locator("input[name=typed]").fill("ada")
    page.get_by_role("button", name=say("forget")).click()
    expect(page.locator("h1")).to_have_text(say("receipt"))
    expect(page.locator("main")).to_contain_text(say("receipt-complete"))
    assert known(memory) == set()
    assert memory.backend.get([office.id]) == ()
    begun = memory.backend.audit.tail(2)[0]
    assert (begun.op, begun.event["actor"]) == ("erase.begin", REVIEWER)
    assert known(memory, "bo")


def test_preview(page: Page, site: Site, say: Say) -> None:
    memory, question = site.memory, "Which airlines were delayed from LaGuardia?"
    log = memory.backend.audit
    before = (log.count(), [note.id for note in log.notes(100)])
    to(page, say("preview"))
    page.locator("input[name=user]").fill("ada")
    page.locator("input[name=agent]").fill("text2sql")
    page.locator("input[name=question]").fill(question)
    page.get_by_role("button", name=say("preview")).click()
    expect(page.locator("[data-note]")).to_be_visible()
    assert (log.count(), [note.id for note in log.notes(100)]) == before
    note = memory.recall([("user", question)], Scope("ada", "text2sql"))
    assert (page.locator("[data-note]").text_content() or "").strip() == note.text
    page.locator("input[name=max_tokens]").fill("1")
    page.get_by_role("button", name=say("preview")).click()
    expect(page.locator(".cards")).to_contain_text(say("reason.over-budget"))
    expect(page.locator("[data-note]")).to_have_count(0)


def test_health(page: Page, site: Site, say: Say) -> None:
    to(page, say("health"))
    rows = site.memory.backend.audit.count()
    expect(page.locator("[data-chain=good]")).to_contain_text(say("chain-ok").format(n=rows))
    page.get_by_role("link", name=say("chain-whole")).click()
    expect(page.locator("[data-chain=good]")).to_contain_text(say("chain-ok-all").format(n=rows))
    profile = sum(
        record.kind == "user-profile"
        for user in ("ada", "bo")
        for record in site.memory.get_all(user_id=user)
    )
    row = page.locator("table.bars tr", has_text=say("kind.user-profile")).first
    expect(row.locator(".number")).to_have_text(str(profile))
    notes = page.get_by_role("img", name=say("notes-a-day"))
    expect(notes.locator("rect.bar")).to_have_count(14)
    expect(page.get_by_role("heading", name=say("searches-a-day"))).to_be_visible()


def test_records(page: Page, site: Site, say: Say) -> None:
    memory = site.memory
    to(page, say("records"))
    page.locator("input[name=user]").fill("ada")
    page.locator("select[name=kind]").select_option("domain-facts")
    page.get_by_role("button", name=say("find")).click()
    wanted = [each for each in memory.get_all(user_id="ada") if each.kind == "domain-facts"]
    expect(page.locator("tbody tr")).to_have_count(len(wanted))
    page.locator("select[name=kind]").select_option("")
    page.locator("input[name=q]").fill("Porto")
    page.get_by_role("button", name=say("find")).click()
    expect(page.locator("tbody tr").first).to_contain_text("Porto and Lisbon")
    page.locator("input[name=q]").fill("")
    page.locator("select[name=status]").select_option("pending")
    page.get_by_role("button", name=say("find")).click()
    expect(page.locator("tbody tr")).to_have_count(len(memory.review.pending(user_id="ada")))
    page.locator("input[name=user]").fill("nobody")
    page.get_by_role("button", name=say("find")).click()
    expect(page.locator(".empty")).to_contain_text(say("browse-empty"))
    read = memory.backend.audit.accesses(100)
    assert {row.agent_id for row in read if row.op == "search"} == {REVIEWER}
