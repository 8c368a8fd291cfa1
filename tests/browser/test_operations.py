"""What operators do: workers, packages, triggers, secrets, tokens, users."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.editing import Editing
from tests.browser.person import Person

HOOKED = {
    "id": "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f10",
    "metadata": {"name": "Report"},
    "nodes": [
        {
            "id": "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a10",
            "type": "core.echo",
            "parameters": {"value": "reported"},
        },
    ],
    "triggers": [
        {"type": "cron", "id": "weekdays", "expression": "30 6 * * MON-FRI"},
        {"type": "webhook", "id": "push"},
    ],
}

USER = "5f0c7a52-5b0e-4f3a-9a53-0c6f0a8f7f11"


def test_a_worker_is_drained_and_takes_work_again(person: Person, page: Page) -> None:
    person.go("/workers")
    page.get_by_role("button", name="worker-1").click()
    drawer = page.get_by_role("dialog", name="Worker")
    drawer.get_by_role("button", name="Drain").click()
    question = page.get_by_role("dialog", name="Drain worker-1?")
    question.get_by_role("button", name="Drain").click()
    expect(drawer.get_by_text("This worker was drained and has exited")).to_be_visible()
    page.reload()  # the address names the worker
    drawer.get_by_role("button", name="Take work again").click()
    expect(drawer.get_by_role("button", name="Drain")).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.get_by_role("row", name="worker-1").get_by_text("Online")).to_be_visible()


def test_a_package_is_published_installed_and_its_node_used(person: Person, page: Page) -> None:
    server = person.server
    for arguments in (("pkg", "new", "hello"), ("pkg", "build", "hello")):
        assert server.astra(*arguments).code == 0
    archive = next((server.folder / "hello" / "dist").glob("*.cwx"))
    editing = Editing(person)
    editing.begin()
    expect(editing.type_in_palette("Greet")).to_be_hidden()
    other = Person(server, person.context)
    other.go("/packages")
    with other.page.expect_file_chooser() as chooser:
        other.page.get_by_role("button", name="Publish…").click()
    chooser.value.set_files(archive)
    expect(other.page.get_by_text("Published hello 0.1.0")).to_be_visible()
    panel = other.page.get_by_role("region", name="hello")
    expect(panel.get_by_text("hello.greet")).to_be_visible()
    panel.get_by_role("tab", name="Workers").click()
    row = panel.get_by_role("row", name="worker-1")
    expect(row.get_by_text("not installed")).to_be_visible()
    row.get_by_role("button", name="Install").click()
    expect(row.get_by_text("0.1.0", exact=True)).to_be_visible()

    # The tab that was open before has the new node type, without a reload.
    editing.drag_in("Greet", 200, 200)
    editing.step("Greet").click()
    inspector = page.get_by_role("complementary", name="Inspector")
    inspector.get_by_role("textbox", name="Name", exact=True).fill("Ada")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Run: succeeded")).to_be_visible()
    editing.step("Greet").click()
    inspector.get_by_role("tab", name="Output").click()
    expect(page.get_by_text("Hello, Ada").first).to_be_visible()


def test_a_package_lists_the_workflows_that_use_it(person: Person, page: Page) -> None:
    person.call("POST", "/api/v1/workflows", {**HOOKED, "id": USER, "triggers": []})
    person.go("/packages?package=core")
    panel = page.get_by_role("region", name="core")
    expect(panel.get_by_role("heading", name="Used in")).to_be_visible()
    panel.get_by_role("link", name="Report").first.click()
    expect(page).to_have_url(re.compile(r"/workflows/[0-9a-f-]{36}"))


def test_triggers_are_switched_and_run(person: Person, page: Page) -> None:
    person.call("POST", "/api/v1/workflows", HOOKED)
    person.go("/triggers")
    switch = page.get_by_role("switch", name="weekdays is on")
    expect(switch).to_be_checked()
    switch.press("Space")
    expect(switch).not_to_be_checked()
    page.get_by_role("button", name="push", exact=True).click()
    drawer = page.get_by_role("dialog", name="push")
    expect(drawer.get_by_text(f"{person.server.url}/api/v1/hooks/").first).to_be_visible()
    expect(drawer.get_by_text("This trigger has not fired yet.")).to_be_visible()
    drawer.get_by_role("button", name="Run now").click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9A-Za-z-]+"))
    page.go_back()
    expect(drawer.get_by_text("Started")).to_be_visible()


def test_a_secret_is_kept_and_never_shown(person: Person, page: Page) -> None:
    person.go("/settings?tab=secrets")
    page.get_by_role("button", name="Add a secret").click()
    form = page.get_by_role("dialog", name="Add a secret")
    form.get_by_label("Name").fill("api-key")
    form.get_by_label("Value").fill("do-not-show")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("cell", name="api-key")).to_be_visible()
    assert "do-not-show" not in page.content()
    row = page.get_by_role("row", name="api-key")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", name="No secrets yet")).to_be_visible()


def test_a_token_is_shown_once_and_revoked(person: Person, page: Page) -> None:
    person.go("/settings?tab=tokens")
    page.get_by_role("button", name="Make a token").click()
    form = page.get_by_role("dialog", name="Make a token")
    form.get_by_label("Label").fill("dashboard")
    form.get_by_role("button", name="Make a token").click()
    expect(form.get_by_text(re.compile("^astra_"))).to_be_visible()
    form.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name="dashboard")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_be_hidden()
    page.get_by_role("switch", name="Show ended tokens").press("Space")
    expect(row.get_by_text("revoked")).to_be_visible()


def test_a_viewer_looks_and_changes_nothing(person: Person, page: Page, chromium: Browser) -> None:
    person.go("/settings?tab=users")
    page.get_by_role("button", name="Add a user").click()
    form = page.get_by_role("dialog", name="Add a user")
    form.get_by_label("Name").fill("vera")
    form.get_by_role("textbox", name="Password").fill("a long enough password")
    form.get_by_role("combobox", name="Role").click()
    page.get_by_role("option", name="Viewer").click()
    form.get_by_role("button", name="Add a user").click()
    expect(page.get_by_role("cell", name="vera")).to_be_visible()
    context = chromium.new_context()
    viewer = Person(person.server, context)
    viewer.log_in_as("vera", "a long enough password")
    viewer.go("/settings")
    expect(viewer.page.get_by_text("Viewer", exact=True)).to_be_visible()
    expect(viewer.page.get_by_role("tab", name="Tokens")).to_be_visible()
    expect(viewer.page.get_by_role("tab", name="Users")).to_be_hidden()
    viewer.go("/workers")
    viewer.page.get_by_role("button", name="worker-1").click()
    drawer = viewer.page.get_by_role("dialog", name="Worker")
    expect(drawer.get_by_text("Kept resources")).to_be_visible()
    expect(drawer.get_by_role("button", name="Drain")).to_be_hidden()
    viewer.page.keyboard.press("Escape")
    viewer.page.route("**/auth/logout", lambda route: route.abort())
    viewer.page.get_by_role("button", name="Logged in as vera").click()
    viewer.page.get_by_role("menuitem", name="Log out").click()
    expect(viewer.page.get_by_text("You are still logged in")).to_be_visible()
    viewer.page.unroute("**/auth/logout")
    viewer.page.get_by_role("button", name="Logged in as vera").click()
    viewer.page.get_by_role("menuitem", name="Log out").click()
    expect(viewer.page.get_by_label("Password")).to_be_visible()
    viewer.go("/runs")
    expect(viewer.page.get_by_text("You are not logged in")).to_be_visible()
    assert viewer.complaints == []
    context.close()


def test_the_palette_goes_anywhere_from_the_keyboard(person: Person, page: Page) -> None:
    person.call("POST", "/api/v1/workflows", HOOKED)
    person.go("/runs")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    field = page.get_by_role("textbox", name="Find or do something")
    page.get_by_role("button", name="Find or do something").click()
    expect(field).to_be_focused()
    page.keyboard.type("audit", delay=5)
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    field.fill("Repo")
    expect(page.get_by_text("Workflow · ")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/workflows/5f0c7a52"))
    expect(field).to_be_hidden()
    person.go("/triggers")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page).to_have_url(re.compile(r"tab=shortcuts"))
