"""No drawer, dialog or tab has a barrier for those who use a keyboard, a screen reader or little contrast."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.barriers import Barriers, Scheme
from tests.browser.editing import Editing
from tests.browser.person import Person
from tests.browser.test_editor_drafts import ID as GREET
from tests.browser.test_editor_drafts import WORKFLOW as GREETING
from tests.browser.test_operations import HOOKED
from tests.browser.test_run_view import (
    FIRST,
    SECOND,
    approval,
    broken,
    expect_status,
    step_panel,
    workflow,
)

pytestmark = pytest.mark.parametrize("scheme", ["light", "dark"])

PASSWORD = "a long enough password"


def publish_twice(person: Person) -> None:
    """A package with two versions, so that one can be rolled out or back."""
    server = person.server
    assert server.astra("pkg", "new", "hello").code == 0
    assert server.astra("pkg", "publish", "hello").code == 0
    manifest = server.folder / "hello" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"0.1.0"', '"0.2.0"'))
    told = server.astra("pkg", "publish", "hello")
    assert told.code == 0, told.err


def test_workers_triggers_and_the_palette(person: Person, scheme: Scheme) -> None:
    barriers, page = Barriers(person, scheme), person.page
    person.call("POST", "/api/v1/workflows", HOOKED)
    person.go("/workers")
    page.get_by_role("button", name="How to start a worker").click()
    expect(page.get_by_text("The worker needs a token")).to_be_visible()
    barriers.look("how to start a worker")
    page.keyboard.press("Escape")
    drawer = barriers.dialog("Worker", page.get_by_role("button", name="worker-1"))
    expect(drawer.get_by_text("Kept resources")).to_be_visible()
    barriers.look("a worker with all about it")
    barriers.dialog("Drain worker-1?", drawer.get_by_role("button", name="Drain"))

    person.go("/triggers")
    for name in ("weekdays", "push"):
        opener = page.get_by_role("button", name=name, exact=True)
        drawer = barriers.dialog(name, opener)
        expect(drawer.get_by_text("This trigger has not fired yet.")).to_be_visible()
        barriers.look(f"trigger {name} with its history")
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()

    page.get_by_role("button", name="Find or do something").click()
    field = page.get_by_role("textbox", name="Find or do something")
    expect(field).to_be_focused()
    barriers.look("palette")
    field.fill("Repo")
    expect(page.get_by_text("Workflow · ")).to_be_visible()
    barriers.look("palette with what it found")
    field.fill("nothing that is there")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    barriers.look("palette without a hit")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^Logged in as")).click()
    expect(page.get_by_role("menuitem", name="Log out")).to_be_visible()
    barriers.look("menu of the user")
    assert barriers.found == [], "\n".join(barriers.found)


def test_packages(person: Person, scheme: Scheme) -> None:
    barriers, page = Barriers(person, scheme), person.page
    publish_twice(person)
    person.go("/packages?package=hello")
    panel = page.get_by_role("region", name="hello")
    expect(panel.get_by_text("hello.greet")).to_be_visible()
    barriers.dismissed("Roll hello back?", panel.get_by_role("button", name="Roll back"))
    dialog = barriers.dialog("Roll out hello", panel.get_by_role("button", name="Roll out…"))
    dialog.get_by_label("Waves", exact=True).fill("50, 10")
    expect(dialog.get_by_text("Write rising percentages")).to_be_visible()
    barriers.look("rollout with a wrong wave")
    dialog.get_by_role("combobox", name="Version").click()
    expect(page.get_by_role("option", name="0.1.0")).to_be_visible()
    barriers.look("versions to roll out")
    page.keyboard.press("Escape")
    dialog.get_by_label("Waves", exact=True).fill("100")
    dialog.get_by_role("button", name="Roll out…").click()
    expect(dialog).to_be_hidden()
    barriers.tabs(panel, "Steps", "Versions", "Workers", "Rollouts")
    expect(panel.get_by_role("row", name=re.compile("0.1.0"))).to_be_visible()
    barriers.look("a rollout")
    panel.get_by_role("tab", name=re.compile("^Versions")).click()
    withdraw = panel.get_by_role("button", name="Withdraw").first
    barriers.dialog("Withdraw hello 0.2.0?", withdraw).get_by_role(
        "button", name="Withdraw"
    ).click()
    expect(panel.get_by_text("withdrawn")).to_be_visible()
    barriers.look("a version that was withdrawn")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Publish…").click()
    chooser.value.set_files(person.server.folder / "hello" / "README.md")
    expect(page.get_by_text("The package could not be published")).to_be_visible()
    barriers.look("a message that something failed")
    page.get_by_label("Find a package").fill("nothing like it")
    expect(page.get_by_text("No packages match")).to_be_visible()
    barriers.look("no package found")
    assert barriers.found == [], "\n".join(barriers.found)


def test_settings(person: Person, scheme: Scheme) -> None:
    barriers, page = Barriers(person, scheme), person.page
    person.go("/settings")
    barriers.tabs(
        page.get_by_role("main"), "You", "Secrets", "Tokens", "Users", "Serverless pools",
        "Audit", "Shortcuts", "About",
    )  # fmt: skip
    person.call("PUT", "/api/v1/secrets/api-key", {"value": "kept", "packages": ["hello"]})
    person.call("POST", "/api/v1/users", {"name": "vera", "password": PASSWORD, "role": "viewer"})
    person.go("/settings?tab=secrets")
    barriers.dismissed("Add a secret", page.get_by_role("button", name="Add a secret"))
    barriers.dismissed("Replace api-key", page.get_by_role("button", name="Replace"))
    barriers.dismissed("Remove api-key?", page.get_by_role("button", name="Remove"))

    person.go("/settings?tab=tokens")
    form = barriers.dialog("Make a token", page.get_by_role("button", name="Make a token"))
    form.get_by_label("Label").fill("dashboard")
    form.get_by_role("button", name="Make a token").click()
    expect(form.get_by_text(re.compile("^astra_"))).to_be_visible()
    barriers.look("a token that is shown once")
    form.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name="dashboard")
    asked = barriers.dialog("Revoke this token?", row.get_by_role("button", name="Revoke"))
    asked.get_by_role("button", name="Revoke").click()
    page.get_by_role("switch", name="Show ended tokens").press("Space")
    expect(row.get_by_text("revoked")).to_be_visible()
    barriers.look("tokens that have ended")

    person.go("/settings?tab=users")
    form = barriers.dialog("Add a user", page.get_by_role("button", name="Add a user"))
    form.get_by_role("combobox", name="Role").click()
    expect(page.get_by_role("option", name="Viewer")).to_be_visible()
    barriers.look("the roles of a user")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    row = page.get_by_role("row", name="vera")
    barriers.dismissed("Delete vera?", row.get_by_role("button", name="Delete"))
    row.get_by_role("button", name="Disable").click()
    expect(row.get_by_text("disabled")).to_be_visible()
    barriers.look("a user who is disabled")
    assert barriers.found == [], "\n".join(barriers.found)


def test_run_view(person: Person, scheme: Scheme) -> None:
    barriers, page = Barriers(person, scheme), person.page
    person.submit(broken())
    run = person.submit(broken())
    asks = person.submit(workflow("Payment", approval("Approve")))
    person.go(f"/runs/{run}?step={SECOND}")
    expect_status(page, "Failed")
    panel = step_panel(page, "Check")
    expect(panel.get_by_role("region", name="Error")).to_be_visible()
    barriers.tabs(panel, "Output", "Input", "History")
    again = barriers.dialog(
        "Re-run from Check", panel.get_by_role("button", name="Re-run from here")
    )
    again.get_by_role("radiogroup", name="Show as").get_by_text("JSON").click()
    expect(again.get_by_role("textbox", name="Parameters of Check")).to_be_visible()
    barriers.look("parameters as JSON")
    page.keyboard.press("Escape")
    expect(again).to_be_hidden()
    person.go(f"/runs/{run}?step={FIRST}")
    barriers.tabs(step_panel(page, "Given"), "Output", "Input", "History")

    more = page.get_by_role("button", name="More actions")
    more.click()
    expect(page.get_by_role("menuitem", name="Compare with…")).to_be_visible()
    barriers.look("more actions")
    page.get_by_role("menuitem", name="Re-run with changes…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    barriers.look("re-run with changes")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    more.click()
    page.get_by_role("menuitem", name="Compare with…").click()
    other = page.get_by_role("dialog").get_by_role("button", name=re.compile("Failed"))
    expect(other).to_be_visible()
    barriers.look("runs to compare with")
    other.click()
    expect(page.get_by_role("heading", name="Compare runs")).to_be_visible()
    barriers.look("two runs")

    person.go(f"/runs/{asks}")
    card = page.get_by_role("article", name="Approve waits for your decision")
    card.get_by_label("Comment").fill("fine")
    barriers.look("an approval")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    barriers.look("cancel a run")
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect_status(page, "Cancelled")
    barriers.look("a cancelled run")
    person.go("/runs")
    page.get_by_role("row", name=re.compile("Payment")).get_by_role("checkbox").check()
    expect(page.get_by_text("1 selected")).to_be_visible()
    barriers.look("runs that are selected")
    assert barriers.found == [], "\n".join(barriers.found)


def test_editor(person: Person, scheme: Scheme) -> None:
    barriers, page = Barriers(person, scheme), person.page
    asked = {"greeting": {"schema": {"type": "string"}, "default": "hello"}}
    person.call("POST", "/api/v1/workflows", {**GREETING, "inputs": asked})
    editing = Editing(person)
    editing.open(GREET)
    editing.add_by_key("sleep")
    editing.wait_until_saved()
    menu = page.get_by_role("button", name="More", exact=True)
    menu.click()
    expect(page.get_by_role("menuitem", name="Versions")).to_be_visible()
    barriers.look("more about the workflow")
    barriers.dismissed("Versions", page.get_by_role("menuitem", name="Versions"))
    menu.click()
    barriers.dismissed(
        "Keyboard shortcuts", page.get_by_role("menuitem", name="Keyboard shortcuts")
    )
    menu.click()
    barriers.dismissed("Delete Greet?", page.get_by_role("menuitem", name="Delete…"))
    menu.click()
    file = person.server.folder / "notes.json"
    file.write_text("not a workflow")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("menuitem", name="Add steps from a file…").click()
    chooser.value.set_files(file)
    expect(page.get_by_text("This file is not JSON")).to_be_visible()
    barriers.look("a file that is no workflow")

    editing.step("Say").click()
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Connect Say to…")
    expect(dialog).to_be_visible()
    barriers.look("connect")
    dialog.get_by_role("combobox").fill("nothing like it")
    barriers.look("connect, without a hit")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="Add a step")).to_be_visible()
    barriers.look("add a step")
    page.keyboard.type("nothing like it")
    expect(page.get_by_text("No step matches")).to_be_visible()
    barriers.look("add a step, without a hit")
    page.keyboard.press("Escape")
    steps = page.get_by_role("navigation", name="Steps")
    steps.get_by_role("combobox").fill("nothing like it")
    expect(steps.get_by_text("No step matches")).to_be_visible()
    barriers.look("the palette, without a hit")
    page.keyboard.press("Escape")
    editing.step("Say").click(button="right")
    expect(page.get_by_role("menu")).to_be_visible()
    barriers.look("menu of a step")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More ways to run").click()
    barriers.look("ways to run")
    page.get_by_role("menuitem", name="Run with inputs…").click()
    expect(page.get_by_role("dialog", name="Run with inputs")).to_be_visible()
    barriers.look("run with inputs")
    page.keyboard.press("Escape")
    barriers.dismissed("Save version", page.get_by_role("button", name="Save version"))
    look_at_conflict(barriers, editing)
    assert barriers.found == [], "\n".join(barriers.found)


def look_at_conflict(barriers: Barriers, editing: Editing) -> None:
    person, page = editing.person, editing.page
    page.route("**/draft", lambda route: route.abort())
    editing.add_by_key("fail")
    expect(page.get_by_text("The scheduler cannot be reached").first).to_be_visible()
    barriers.look("without a connection")
    other = Editing(person, person.context.new_page())
    other.open(GREET)
    other.add_by_key("noth")
    other.wait_until_saved()
    banner = page.get_by_role("alert")
    expect(banner).to_contain_text("has saved this workflow elsewhere")
    barriers.look("a conflict")
    page.unroute("**/draft")
    banner.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("complementary", name="Changes")).to_contain_text("Do nothing")
    barriers.look("both sides of a conflict")
