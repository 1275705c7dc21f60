"""The two hundred proposals of the example wait, and a reviewer clears them: in how many clicks and words."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Filter
from tests.browser.served import Site, propose_two_hundred

WRONG = re.compile(r"be deleted|eve@example|忽略以前")
WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:[.@'-][^\W\u3400-\u9fff]+)*")
"""A word, as its reader counts: an address is one, and so is each Chinese character."""
A_MINUTE = 250
A_CLICK = 10.0
"""Words read in a minute, and seconds for a click with what leads to it."""


@pytest.fixture
def filled(site: Site) -> SupervisorMemory:
    propose_two_hundred(site.memory)
    return site.memory


def waiting(memory: SupervisorMemory) -> int:
    return memory.upkeep.count(Filter(statuses=("pending",)))


def words(page: Page) -> int:
    """How many words of a page its reader sees; lists that are folded away are not."""
    page.evaluate("document.querySelectorAll('select, datalist').forEach(list => { list.hidden = true })")
    return len(WORD.findall(page.inner_text("body")))


def box(page: Page, text: str | re.Pattern[str]) -> Locator:
    """The boxes of claims with such a text, whole."""
    boxes = page.get_by_role("checkbox", name=text)
    return boxes.and_(page.locator("[name^='p-']"))


def test_two_hundred_proposals_are_read_and_cleared_within_five_minutes(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    """A reader who leaves out no word, of the pages' own ones neither, and decides on all."""
    assert waiting(filled) == 200
    began, read, clicks = time.monotonic(), 0, 2
    page.goto(f"{site.url}/dashboard/inbox")
    page.evaluate("document.querySelectorAll('article').forEach(card => { card.hidden = true })")
    read += words(page)  # all but the proposals one by one, which come again together
    page.locator("[data-together]").click()
    expect(page.locator("[data-split]")).to_have_text("Approve 164, reject 5, 31 change nothing")
    for wrong in (wrongs := box(page, WRONG)).all():
        expect(wrong).not_to_be_checked()
    expect(wrongs).to_have_count(5)
    expect(page.locator(".grave [name^='p-']")).to_have_count(5)
    read += words(page)
    page.locator("[data-split]").click()
    expect(page.get_by_role("status")).to_contain_text("164 approved")
    expect(page.get_by_role("status")).to_contain_text("5 rejected; 31 changed nothing.")
    took = time.monotonic() - began
    assert waiting(filled) == 0
    minutes = read / A_MINUTE + clicks * A_CLICK / 60
    assert (read <= 957, minutes + took / 60 <= 5) == (True, True), (read, minutes, took)
    kept = {each.content for each in filled.upkeep.listed(Filter(), limit=500)}
    assert not [text for text in kept if WRONG.search(text)]

    page.locator("[data-undo]").click()
    page.wait_for_url("**said=undo-all*")
    assert waiting(filled) == 200


def test_a_group_is_decided_by_keys_and_the_count_follows(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    page.goto(f"{site.url}/dashboard/inbox/together?agent=text2sql")
    expect(page.locator("[data-picked]")).to_have_text("40 picked")
    page.keyboard.press("j")
    page.keyboard.press("Space")
    expect(page.locator("[data-picked]")).to_have_text("39 picked")
    page.locator("input[name=reason]").fill("not now")
    page.locator("[data-all=reject]").click()
    expect(page.get_by_role("status")).to_have_text("39 rejected.")
    assert waiting(filled) == 161


def test_one_box_picks_all_of_a_group_and_none_picks_what_is_grave(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    page.goto(f"{site.url}/dashboard/inbox/together?agent=web")
    offices, plans = (page.locator("[data-like]", has_text=of) for of in ("works from the", "for plan"))
    expect(page.locator(".grave [data-pick]")).to_have_count(0)
    expect(page.locator("[data-picked]")).to_have_text("49 picked")
    offices.locator("[data-pick]").check()
    expect(page.locator("[data-picked]")).to_have_text("75 picked")
    plans.locator("[data-pick]").uncheck()
    expect(page.locator("[data-picked]")).to_have_text("40 picked")
    page.reload()
    expect(page.locator("[data-picked]")).to_have_text("40 picked")
    expect(offices.locator("[data-pick]")).to_be_checked()


def test_enter_decides_nothing_by_accident(page: Page, site: Site, filled: SupervisorMemory) -> None:
    """Neither on a row nor in the reason."""
    page.goto(f"{site.url}/dashboard/inbox/together?agent=text2sql")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("input[name=reason]").fill("not now")
    page.locator("input[name=reason]").press("Enter")
    page.wait_for_timeout(500)
    assert waiting(filled) == 200
    page.locator("[data-all=reject]").click()
    expect(page.get_by_role("status")).to_have_text("40 rejected.")
    assert waiting(filled) == 160


def test_what_was_picked_survives_a_filter_and_another_language(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    page.goto(f"{site.url}/dashboard/inbox/together?agent=web&kind=user-profile")
    wrong, right = box(page, "plan 140 be deleted"), box(page, "for plan 195.")
    expect(wrong).not_to_be_checked()
    wrong.check()
    right.uncheck()
    expect(page.locator("[data-split]")).to_have_text("Approve 35, reject 5")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**unpicked=*")
    page.locator("a[hreflang=zh]").click()
    expect(page.locator("[data-picked]")).to_have_text("已选 35 条")
    expect(wrong).to_be_checked()
    expect(right).not_to_be_checked()
    right.check()
    page.reload()
    expect(page.locator("[data-picked]")).to_have_text("已选 36 条")


def test_a_grave_claim_has_room_on_a_phone_and_no_hints_of_keys(
    opened: Callable[..., Page], site: Site, filled: SupervisorMemory
) -> None:
    page = opened(has_touch=True, is_mobile=True)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{site.url}/dashboard/inbox")
    expect(page.locator("kbd").first).to_be_hidden()
    page.goto(f"{site.url}/dashboard/inbox/together?agent=web&kind=user-profile")
    for grave in page.locator(".grave .claim .text", has_text="plan").all():
        bounds = grave.bounding_box()
        assert bounds is not None
        assert bounds["width"] > 200
        assert grave.evaluate("text => getComputedStyle(text).fontWeight") == "600"
    for touched in page.locator(".claim a").all()[:3]:
        bounds = touched.bounding_box()
        assert bounds is not None
        assert min(bounds["width"], bounds["height"]) >= 44
    page.locator(".claim").last.scroll_into_view_if_needed()
    expect(page.locator("[data-split]")).to_be_in_viewport()
    assert page.locator(".claims tr:first-child td:nth-child(2)").first.get_attribute("data-label")


def test_the_preview_follows_what_is_picked_and_picks_nothing_itself(page: Page, site: Site) -> None:
    tea = "The user likes tea."
    asked = {"user_id": "ada", "kind": "user-profile", "source_class": "tool", "agent_id": "kettle"}
    for text in (tea, f"{tea[:-1]}, and coffee in the morning."):
        site.memory.write(text, metadata={"strategy": "review"}, **asked)  # type: ignore[arg-type]
    page.goto(f"{site.url}/dashboard/inbox/together?agent=kettle")
    effects, coffee = page.locator("th"), box(page, re.compile("coffee"))
    both = ["User", "becomes a new record", "changes nothing: another of these says it"]
    expect(effects).to_have_text(both)
    expect(box(page, tea)).not_to_be_checked()
    coffee.uncheck()
    expect(effects).to_have_text(both[:2])
    expect(box(page, tea)).not_to_be_checked()
    expect(page.locator("[data-split]")).to_have_text("Reject 1")  # and not what nobody took out
    page.reload()
    expect(page.locator("[data-split]")).to_have_text("Reject 1")
    expect(box(page, tea)).not_to_be_checked()
    coffee.check()
    expect(effects).to_have_text(both)
    expect(page.locator("[data-picked]")).to_have_text("1 picked")


def test_without_scripts_no_box_is_shown_that_does_nothing_and_enter_decides_nothing(
    opened: Callable[..., Page], site: Site, filled: SupervisorMemory
) -> None:
    page = opened(java_script_enabled=False)
    page.goto(f"{site.url}/dashboard/inbox/together?agent=text2sql")
    expect(page.locator("[data-pick]")).to_have_count(1)
    expect(page.locator("[data-pick]")).to_be_hidden()
    page.locator("input[name=reason]").press("Enter")
    page.wait_for_timeout(500)
    assert waiting(filled) == 200
