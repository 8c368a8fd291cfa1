"""The network of the browser is gone and comes back: nothing is lost, nothing is loaded again."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.editing import Editing
from tests.browser.network import offline
from tests.browser.person import Person

WAITING = {
    "id": "3d0f8a52-5b0e-4f3a-9a53-0c6f0a8f7f02",
    "metadata": {"name": "Paid"},
    "nodes": [
        {
            "id": "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a11",
            "type": "core.signal",
            "label": "Wait for payment",
            "signal": {"name": "paid"},
        }
    ],
}
AWAY = re.compile("Reconnecting|Offline since")


def test_a_run_that_ends_meanwhile_is_seen_afterwards(person: Person, page: Page) -> None:
    run_id = person.submit(WAITING)
    person.go(f"/runs/{run_id}")
    step = page.get_by_role("group", name="Wait for payment", exact=True)
    expect(step.get_by_role("img", name="Waiting")).to_be_visible()
    page.evaluate("window.sameDocument = true")
    with offline(person.context):
        expect(page.get_by_text(AWAY).first).to_be_visible()
        assert person.server.astra("runs", "signal", run_id, "paid").code == 0
        expect(step.get_by_role("img", name="Waiting")).to_be_visible()
    expect(step.get_by_role("img", name="Succeeded")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert page.evaluate("window.sameDocument") is True


def test_edits_are_kept_and_saved_when_the_network_is_back(person: Person) -> None:
    editing = Editing(person)
    page = editing.page
    editing.begin()
    editing.add_by_key("noth")
    editing.wait_until_saved()
    with offline(person.context):
        editing.add_by_key("sleep")
        expect(page.get_by_text("The scheduler cannot be reached").first).to_be_visible()
        editing.add_by_key("echo")
    editing.wait_until_saved()
    draft = editing.draft()
    assert "core.sleep" in draft
    assert "core.echo" in draft
