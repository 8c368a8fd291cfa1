"""What was edited is never lost: over a reload, beside another tab, without a connection, and in versions."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.editing import Editing
from tests.browser.person import Person

WORKFLOW = {
    "id": "7e0a7c52-5b0e-4f3a-9a53-0c6f0a8f7f01",
    "metadata": {"name": "Greet"},
    "nodes": [
        {
            "id": "7e0a7c52-5b0e-4f3a-9a53-0c6f0a8f7f02",
            "type": "core.echo",
            "label": "Say",
            "position": {"x": 0, "y": 0},
            "parameters": {"value": "hello"},
        }
    ],
    "edges": [],
}
ID = str(WORKFLOW["id"])


@pytest.fixture
def editing(person: Person) -> Editing:
    person.call("POST", "/api/v1/workflows", WORKFLOW)
    return Editing(person)


def test_a_draft_survives_a_reload_and_a_lost_connection(editing: Editing) -> None:
    page = editing.page
    editing.open(ID)
    editing.add_by_key("sleep")
    page.reload()
    expect(editing.step("Sleep")).to_be_visible()
    editing.wait_until_saved()

    page.route("**/draft", lambda route: route.abort())
    editing.add_by_key("noth")
    expect(page.get_by_text("The scheduler cannot be reached").first).to_be_visible()
    expect(page.get_by_role("button", name="Save version")).to_be_disabled()
    page.unroute("**/draft")
    page.keyboard.press("Control+s")
    editing.wait_until_saved()
    assert "Do nothing" in editing.draft()


def test_two_tabs_see_each_other_and_never_overwrite(editing: Editing) -> None:
    editing.open(ID)
    other = Editing(editing.person, editing.person.context.new_page())
    other.open(ID)
    expect(other.page.get_by_text("Live", exact=True)).to_be_visible()
    editing.add_by_key("sleep")
    expect(other.step("Sleep")).to_be_visible()

    # The other tab cannot save while this one does.
    other.page.route("**/draft", lambda route: route.abort())
    other.add_by_key("fail")
    expect(other.page.get_by_text("The scheduler cannot be reached").first).to_be_visible()
    editing.add_by_key("noth")
    editing.wait_until_saved()
    banner = other.page.get_by_role("alert")
    expect(banner).to_contain_text("has saved this workflow elsewhere")
    other.page.unroute("**/draft")
    banner.get_by_role("button", name="Compare").click()
    changes = other.page.get_by_role("complementary", name="Changes")
    expect(changes).to_contain_text("Do nothing")
    expect(changes).to_contain_text("Fail")
    other.page.get_by_role("button", name="Close", exact=True).click()
    banner.get_by_role("button", name="Reload").click()
    expect(banner).to_be_hidden()
    expect(other.step("Do nothing")).to_be_visible()
    expect(other.step("Fail")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_versions_are_compared_restored_and_free_of_barriers(
    editing: Editing, scheme: Literal["light", "dark"]
) -> None:
    page = editing.page
    page.emulate_media(color_scheme=scheme)
    editing.open(ID)
    editing.add_by_key("http")
    expect(page.get_by_role("button", name="1 problem")).to_be_visible()
    page.get_by_role("button", name="1 problem").click()
    expect(page.get_by_role("button", name="Go to")).to_be_visible()
    assert editing.person.violations() == [], "with a problem"
    page.keyboard.press("Delete")
    editing.add_by_key("sleep")
    editing.wait_until_saved()
    page.get_by_role("button", name="Save version").click()
    page.get_by_role("textbox", name="What is new").fill("sleeps")
    assert editing.person.violations() == [], "the note of a version"
    page.get_by_role("dialog").get_by_role("button", name="Save version").click()
    expect(page.get_by_text("Version 2 is saved")).to_be_visible()

    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Versions").click()
    versions = page.get_by_role("dialog", name="Versions")
    expect(versions).to_contain_text("sleeps")
    versions.get_by_role("checkbox", name="Compare version 1").check()
    versions.get_by_role("checkbox", name="Compare version 2").check()
    assert editing.person.violations() == [], "the versions"
    versions.get_by_role("button", name="Compare the two").click()
    expect(page.get_by_role("complementary", name="Changes")).to_contain_text("Sleep")
    assert editing.person.violations() == [], "a comparison"

    editing.open(ID, "?version=1")
    expect(page.get_by_text("Version 1, read-only")).to_be_visible()
    expect(editing.step("Sleep")).to_be_hidden()
    assert editing.person.violations() == [], "an older version"
    page.get_by_role("button", name="Restore as draft").click()
    expect(page).not_to_have_url(re.compile("version="))
    expect(page.get_by_role("button", name="Save version")).to_be_enabled()
    expect(editing.step("Sleep")).to_be_hidden()
    person = editing.person
    person.go("/workflows")
    expect(page.get_by_role("link", name="Greet")).to_be_visible()
    page.get_by_role("button", name="Examples").click()
    expect(page.get_by_role("button", name=re.compile("^Hello"))).to_be_visible()
    assert person.violations() == [], "the examples"


def test_a_viewer_looks_and_changes_nothing(editing: Editing) -> None:
    server = editing.person.server
    secret = "correct horse battery"
    made = server.astra("users", "create", "vera", "--role", "viewer", stdin=f"{secret}\n")
    assert made.code == 0, made.err
    browser = editing.person.context.browser
    assert browser is not None
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    viewer = Person(server, context)
    viewer.log_in_as("vera", secret)
    looking = Editing(viewer)
    looking.open(ID)
    page = looking.page
    expect(page.get_by_text("your role may not change it")).to_be_visible()
    expect(page.get_by_role("navigation", name="Steps")).to_be_hidden()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_hidden()
    looking.step("Say").click()
    page.keyboard.press("Delete")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(looking.step("Say")).to_be_visible()
    viewer.go("/workflows")
    expect(page.get_by_role("link", name="Greet")).to_be_visible()
    expect(page.get_by_role("link", name="New workflow")).to_be_hidden()
    context.close()
    assert viewer.complaints == []
