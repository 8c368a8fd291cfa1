"""Somebody who is here for the first time is shown around."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.person import Person


def test_the_first_steps_tick_themselves_off(person: Person, page: Page) -> None:
    tour = page.get_by_role("region", name="Get started")
    expect(tour.get_by_text("Choose one from the list of workflows")).to_be_visible()
    assert person.violations() == []
    page.get_by_role("button", name="Hello").click()
    expect(tour).to_be_hidden()  # it does not lie over the editor
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()
    run.click()
    page.get_by_role("link", name="Open the run").click()
    page.get_by_text("Type the speech", exact=True).first.click()
    expect(page.get_by_role("complementary", name="Step Type the speech")).to_be_visible()
    page.get_by_role("button", name="Get started").click()
    for step in ("Open an example", "Run it", "Look at what a step did"):
        expect(tour.get_by_text(f"{step} (done)")).to_be_visible()
    expect(tour.get_by_text("then press Save version")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Get started").click()
    tour.get_by_role("button", name="Close for good").click()
    page.reload()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Get started")).to_be_hidden()


def test_examples_that_are_still_to_come_are_a_list_too(person: Person, page: Page) -> None:
    """Found where the machine was slow: people with a screen reader met a list without items."""
    page.route("**/api/v1/examples", lambda _: None)  # it is never answered
    page.reload()
    expect(page.get_by_role("list", name="Examples").get_by_role("listitem")).to_have_count(6)
    assert person.violations() == []
