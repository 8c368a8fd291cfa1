"""A person decides on the page of approvals what all runs wait for."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, expect

from tests.browser.barriers import Barriers
from tests.browser.person import Person
from tests.browser.test_run_view import SECOND, approval, node, workflow

PASSWORD = "a long enough password"
FORM = {
    "type": "object",
    "properties": {"amount": {"type": "number", "title": "Amount", "default": 500}},
    "required": ["amount"],
}


def asking(name: str, message: str, **more: Any) -> dict[str, Any]:
    first = approval("Decide")
    first["approval"] = {"message": message, **more}
    return workflow(name, first, node(SECOND, "core.echo", "Pay", value="paid"))


def status_of(person: Person, run: str) -> str:
    return str(person.call("GET", f"/api/v1/runs/{run}")["status"])


def test_decisions_of_all_runs_are_made_on_one_page(person: Person) -> None:
    page = person.page
    person.go("/approvals")
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    rail = page.get_by_role("navigation", name="Sections")
    expect(rail.get_by_role("link", name="Approvals", exact=True)).to_be_visible()
    # They appear by themselves, with the one that waits longest first.
    first = person.submit(asking("Payment", "Pay Ada?", form=FORM))
    cards = page.get_by_role("article")
    expect(cards).to_have_count(1)
    second = person.submit(asking("Refund", "Refund Grace?"))
    expect(cards).to_have_count(2)
    expect(rail.get_by_role("link", name="Approvals, 2 open")).to_be_visible()
    expect(cards.nth(0)).to_contain_text("Pay Ada?")
    expect(cards.nth(1).get_by_role("link", name="Refund")).to_be_visible()

    cards.nth(0).get_by_role("textbox", name="Amount").fill("480")
    cards.nth(0).get_by_label("Comment").fill("after a discount")
    cards.nth(0).get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: Decide")).to_be_visible()
    expect(cards).to_have_count(1)
    expect(page.get_by_role("region", name="Open approvals")).to_be_focused()
    cards.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    expect(rail.get_by_role("link", name="Approvals", exact=True)).to_be_visible()

    person.go(f"/runs/{first}")
    expect(
        page.get_by_role("region", name="About the run").get_by_text("Succeeded")
    ).to_be_visible()
    decided = person.call("GET", f"/api/v1/runs/{first}")["nodes"][0]["result"]
    assert decided["values"] == {"amount": 480}
    assert decided["comment"] == "after a discount"
    assert status_of(person, second) != "running"


def test_only_those_who_may_decide_are_asked(person: Person, chromium: Browser) -> None:
    person.call("POST", "/api/v1/users", {"name": "eve", "password": PASSWORD, "role": "editor"})
    person.submit(asking("Audit", "Close the books?", roles=["operator"]))
    person.submit(asking("Draft", "Publish the draft?"))
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    editor = Person(person.server, context)
    editor.log_in_as("eve", PASSWORD)
    editor.go("/approvals")
    page = editor.page
    cards = page.get_by_role("article")
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("Publish the draft?")
    page.get_by_text("For others (1)").click()
    expect(cards).to_contain_text("Close the books?")
    expect(cards).to_contain_text("Your role may not decide here")
    expect(cards.get_by_role("button")).to_have_count(0)
    for scheme in ("light", "dark"):
        barriers = Barriers(editor, scheme)
        editor.go("/approvals")
        expect(cards).to_contain_text("Publish the draft?")
        barriers.look("one's own")
        page.get_by_text("For others (1)").click()
        expect(cards).to_contain_text("Close the books?")
        barriers.look("those of others")
        assert barriers.found == [], "\n".join(barriers.found)
    assert editor.complaints == []
    context.close()
    # Admins may decide everything.
    person.go("/approvals")
    expect(person.page.get_by_role("article")).to_have_count(2)
