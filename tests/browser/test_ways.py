"""By keys, without scripts, in the dark, on a phone; and with texts that would run if they could."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.filled import TURNS
from tests.browser.served import REVIEWER, Site, propose_two_hundred
from tests.interfaces.dashboard.hostile import PAYLOADS, attack

JOINED = [
    "Basket Health is built on top of fct_orders.",
    "The rows of fct_orders come out of night_job.",
    "night_job was written by Ilse Brandt.",
]

Opened = Callable[..., Page]


def waiting(site: Site) -> list[str]:
    return [each.id for each in site.memory.review.pending()]


def test_by_keys_alone(page: Page, site: Site) -> None:
    first, second, third, *_ = waiting(site)
    page.keyboard.press("j")
    expect(page.locator(f"[id='p-{first}']")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(f"[id='p-{second}']")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("?")
    expect(page.locator("details.keys dl")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_be_visible()
    assert first not in waiting(site)
    page.keyboard.press("u")
    page.wait_for_url("**said=undo")
    assert site.memory.backend.get([first])[0].status == "pending"

    page.keyboard.press("j")
    page.keyboard.press("j")
    rejected = (page.locator("article:focus").get_attribute("id") or "").removeprefix("p-")
    page.keyboard.press("r")
    page.wait_for_url("**said=reject")
    assert site.memory.backend.get([rejected])[0].status == "deleted"

    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.locator("article textarea").first).to_be_focused()
    page.keyboard.type("aru?jk ")  # letters of a text, no keys
    page.keyboard.press("Escape")
    assert site.memory.backend.audit.tail(1)[0].event["actor"] == REVIEWER
    assert third in waiting(site)


def test_everything_works_without_scripts(opened: Opened, site: Site) -> None:
    page = opened(java_script_enabled=False)
    first = waiting(site)[1]
    page.locator(f"[id='p-{first}'] [data-do=a]").click()
    page.wait_for_url("**said=approve")
    assert site.memory.backend.get([first])[0].status == "active"
    page.locator("[data-undo]").click()
    page.wait_for_url("**said=undo")
    assert site.memory.backend.get([first])[0].status == "pending"
    page.locator(f"[id='p-{first}'] [data-do=e]").click()
    page.locator(f"[id='p-{first}'] textarea").fill("The user works from the Faro office.")
    page.locator(f"[id='p-{first}'] details.edit button").click()
    page.wait_for_url("**said=edit")
    assert site.memory.backend.get([first])[0].content == "The user works from the Faro office."


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_it_is_dark_where_the_reader_wants_it_dark(opened: Opened, scheme: str, dark: bool) -> None:
    page = opened(color_scheme=scheme)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    parts = [int(part) for part in back.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (max(parts) < 80) is dark


def test_nothing_is_cut_off_on_a_phone(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    record = site.memory.get_all(user_id="ada")[0]
    for path in (*every_page(site), f"records/{record.id}"):
        page.goto(f"{site.url}/dashboard/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def every_page(site: Site) -> list[str]:
    record = next(each for each in site.memory.get_all(user_id="ada") if "Porto" in each.content)
    asked = "user=ada&agent=text2sql&question=Which airlines were delayed from LaGuardia?"
    return [
        *("inbox", "inbox/together", "turns", "turn?run=run-2&edge=4", "timeline?user=ada", "experience"),
        *("records", f"records/{record.id}", f"records/{record.id}/delete", f"preview?{asked}", "health"),
        *("figures", "figures?user=ada"),
        "users/forget?user=ada",
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (1180, "dark"), (360, "light")])
def test_axe_finds_nothing(opened: Opened, site: Site, width: int, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    wrong: list[str] = []
    for path in every_page(site):
        page.goto(f"{site.url}/dashboard/{path}")
        for found in Axe().run(page).response["violations"]:
            wrong += [f"{path}: {found['id']} {node['html'][:160]}" for node in found["nodes"][:3]]
    assert not wrong, "\n".join(wrong)


def test_times_are_those_of_the_browser(opened: Opened, site: Site) -> None:
    told: dict[str, str] = {}
    for zone in ("UTC", "Asia/Shanghai"):
        page = opened(timezone_id=zone)
        page.goto(f"{site.url}/dashboard/turns")
        told[zone] = page.locator("tbody time").first.text_content() or ""
        expect(page.locator("footer")).to_contain_text(zone)
    here, there = (datetime.strptime(each, "%Y-%m-%d %H:%M") for each in told.values())
    assert there - here == timedelta(hours=8)


def test_a_turn_shows_the_question_and_leads_to_its_trace(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/dashboard/turn?run=run-2")
    expect(page.locator("[data-question]")).to_have_text(TURNS[2][1])


def test_hostile_texts_run_nowhere(page: Page, site: Site) -> None:
    ids = attack(site.memory)
    paths = ["inbox", "inbox/together", "inbox/together?user=eve"]
    paths += ["turns", "records?status=any", "records?user=eve&q=alert+script", "health"]
    paths += ["preview?user=eve&question=alert+script", "users/forget?user=eve"]
    paths += [f"turn?run=run-{at}" for at in range(len(PAYLOADS))]
    paths += [f"records/{id_}" for id_ in ids]
    for path in paths:
        page.goto(f"{site.url}/dashboard/{path}", wait_until="load")
        page.keyboard.press("j")  # focuses what could listen to it
    for payload in PAYLOADS:
        page.goto(
            f"{site.url}/dashboard/records?"
            + "&".join(f"{name}={_quoted(payload)}" for name in ("q", "user"))
        )
    page.goto(f"{site.url}/dashboard/inbox?user=eve")
    assert page.locator("article").count(), page.content()
    page.locator("article").first.hover()
    page.wait_for_timeout(300)
    assert (
        page.evaluate("document.querySelectorAll('img, iframe, style, base, script:not([src])').length") == 0
    )


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


@pytest.mark.skipif(
    "DASHBOARD_IMAGES" not in os.environ, reason="DASHBOARD_IMAGES names the directory to put them in"
)
@pytest.mark.parametrize(
    "name", ["inbox", "together", "turn", "record", "preview", "figures", "health", "relations"]
)
def test_pictures_of_the_documentation(opened: Opened, site: Site, name: str) -> None:
    if name == "together":
        propose_two_hundred(site.memory)
    for fact in JOINED if name == "relations" else ():
        site.memory.write(fact, user_id="ada")
    page = opened(color_scheme="light", device_scale_factor=1)
    record = next(each for each in site.memory.get_all(user_id="ada") if "Porto" in each.content)
    paths = {
        "together": "inbox/together",
        "turn": "turn?run=run-2&edge=4",
        "record": f"records/{record.id}",
        "preview": "preview?user=ada&agent=text2sql&question=Which airlines were delayed from LaGuardia?",
        "relations": "relations?user=ada&about=fct_orders&to=Ilse Brandt"
        "&question=What is Basket Health built on?",
    }
    height = {"together": 1020, "relations": 1440}.get(name, 760)
    page.set_viewport_size({"width": 1000, "height": height})
    page.goto(f"{site.url}/dashboard/{paths.get(name, name)}")
    for place in page.locator("dd code", has_text=str(site.memory.settings.path)).all():
        place.evaluate("place => { place.textContent = '.supervisor_memory/memory.db' }")
    file = Path(os.environ["DASHBOARD_IMAGES"]) / f"dashboard-{name}.png"
    page.screenshot(path=file)
    assert file.stat().st_size < 150_000
