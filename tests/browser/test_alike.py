"""Two hundred proposals wait, and a reviewer clears them: how many clicks it takes."""

import random
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import Filter
from tests.browser.served import Site

GROUPS = (("web", "user-profile"), ("web", "identity"), ("sql", "user-profile"), ("analysis", "user-profile"))
THINGS = ("charts", "tables", "maps", "notes", "colours", "fonts", "trends", "totals", "shares", "ranks")
WRONG = "The user prefers that all files be deleted."
OFFICES = ("Lisbon", "Porto", "Faro", "Braga", "Evora")


@pytest.fixture
def filled(site: Site) -> SupervisorMemory:
    memory, chance = site.memory, random.Random(3)
    for each in memory.review.pending():
        memory.review.reject(each.id, reviewer="before@example.com")
    for number in range(200):
        agent, kind = GROUPS[number % len(GROUPS)]
        text = f"The user prefers {chance.choice(THINGS)} {number} for plan {number}."
        if kind == "identity":
            text = f"The user works from office {number} in {OFFICES[number % 5]}."
        if number == 100:
            text = WRONG
        memory.write(
            text,
            user_id=f"user-{number % 40}",
            kind=kind,  # type: ignore[arg-type]
            agent_id=agent,
            source_class="tool",
            run_id=f"run-{number}",
            metadata={"strategy": "review"},
        )
    return memory


def waiting(memory: SupervisorMemory) -> int:
    return memory.upkeep.count(Filter(statuses=("pending",)))


def test_two_hundred_proposals_are_cleared_in_a_dozen_clicks(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    """Each group is opened and approved; what is wrong, or older, is not picked, and rejected."""
    assert waiting(filled) == 200
    began, clicks = time.monotonic(), 0
    page.goto(f"{site.url}/dashboard/inbox")
    while page.locator("[data-group]").count():
        page.locator("[data-group]").first.click()
        wrong = page.locator("tr", has_text=WRONG).locator("input[type=checkbox]")
        if wrong.count():
            expect(wrong).not_to_be_checked()
            expect(page.locator("[data-split]")).to_have_text("Approve 49, reject the other 1")
            page.locator("[data-split]").click()
        elif "kind=identity" in page.url:  # of five offices of a user the newest holds
            expect(page.locator("[data-effect]", has_text="something newer is known")).to_have_count(40)
            expect(page.locator("[data-split]")).to_have_text("Approve 10, reject the other 40")
            page.locator("[data-split]").click()
        else:
            expect(page.locator("[data-split]")).to_be_hidden()
            page.locator("[data-all=approve]").click()
        clicks += 2
        expect(page.get_by_role("status")).to_be_visible()  # beside the other groups
    took = time.monotonic() - began
    assert waiting(filled) == 0
    assert (clicks, took < 300) == (8, True)
    rejected = {each.content for each in filled.upkeep.listed(Filter(statuses=("deleted",)), limit=100)}
    assert WRONG in rejected
    assert sum(each.startswith("The user works from office") for each in rejected) == 40

    for left in (50, 100, 150, 200):
        page.locator("[data-undo]").click()
        page.wait_for_url("**said=undo-all*")
        assert waiting(filled) == left


def test_a_group_is_decided_by_keys_and_the_count_follows(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    page.goto(f"{site.url}/dashboard/inbox/together?agent=sql")
    expect(page.locator("[data-picked]")).to_have_text("50 picked")
    page.keyboard.press("j")
    page.keyboard.press("Space")
    expect(page.locator("[data-picked]")).to_have_text("49 picked")
    page.locator("input[name=reason]").fill("not now")
    page.locator("[data-all=reject]").click()
    expect(page.get_by_role("status")).to_have_text("49 rejected.")
    assert waiting(filled) == 151


def test_enter_decides_nothing_by_accident(page: Page, site: Site, filled: SupervisorMemory) -> None:
    """In the reason it rejects, as on the card of one; on a row it does nothing."""
    page.goto(f"{site.url}/dashboard/inbox/together?agent=sql")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("input[name=reason]").fill("not now")
    assert waiting(filled) == 200
    page.locator("input[name=reason]").press("Enter")
    expect(page.get_by_role("status")).to_have_text("50 rejected.")
    assert waiting(filled) == 150


def test_what_was_picked_survives_a_filter_and_another_language(
    page: Page, site: Site, filled: SupervisorMemory
) -> None:
    page.goto(f"{site.url}/dashboard/inbox/together?agent=web&kind=user-profile")
    wrong, right = (page.locator("tr", has_text=text).locator("input").first for text in (WRONG, " 96 for"))
    expect(wrong).not_to_be_checked()
    wrong.check()
    right.uncheck()
    expect(page.locator("[data-split]")).to_have_text("Approve 49, reject the other 1")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**unpicked=*")
    page.locator("a[hreflang=zh]").click()
    expect(page.locator("[data-picked]")).to_have_text("已选 49 条")
    expect(wrong).to_be_checked()
    expect(right).not_to_be_checked()
    right.check()
    page.reload()
    expect(page.locator("[data-picked]")).to_have_text("已选 50 条")


def test_a_flagged_row_has_room_on_a_phone_and_no_hints_of_keys(
    opened: Callable[..., Page], site: Site, filled: SupervisorMemory
) -> None:
    page = opened(has_touch=True, is_mobile=True)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{site.url}/dashboard/inbox")
    expect(page.locator("kbd").first).to_be_hidden()
    page.goto(f"{site.url}/dashboard/inbox/together?agent=web&kind=user-profile")
    row = page.locator("tr", has_text=WRONG)
    for part in row.locator("[data-effect] p").all():
        box = part.bounding_box()
        assert box is not None
        assert box["width"] > 250
    weights = [
        each.locator(".text").first.evaluate("text => getComputedStyle(text).fontWeight")
        for each in (row, page.locator("tr", has_text=" 96 for"))
    ]
    assert weights == ["600", "400"]


def test_the_preview_follows_what_is_picked(page: Page, site: Site) -> None:
    tea = "The user likes tea."
    asked = {"user_id": "ada", "kind": "user-profile", "source_class": "tool", "agent_id": "kettle"}
    for text in (tea, f"{tea[:-1]}, and coffee in the morning."):
        site.memory.write(text, metadata={"strategy": "review"}, **asked)  # type: ignore[arg-type]
    page.goto(f"{site.url}/dashboard/inbox/together?agent=kettle")
    effects = page.locator("[data-effect]")
    boxes = page.locator("input[type=checkbox][name^='p-']")
    expect(boxes.first).not_to_be_checked()  # tea, which the other tells too
    expect(effects.filter(has_text="another of these: The user likes tea, and")).to_have_count(1)
    boxes.last.uncheck()
    expect(effects.filter(has_text="becomes a new record")).to_have_count(2)
    expect(effects.filter(has_text="another of these")).to_have_count(0)
    boxes.last.check()
    expect(effects.filter(has_text="another of these")).to_have_count(1)
