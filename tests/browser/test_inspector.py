"""The settings of a step and of a workflow, as a person fills them in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.person import Person, axe_source

EXAMPLES = Path(__file__).parents[2] / "examples"
CONTROL = "ControlOrMeta"


class Inspecting:
    """An example in the editor, with its inspector."""

    def __init__(self, person: Person, name: str) -> None:
        self.page: Page = person.page
        self.person = person
        self.text = (EXAMPLES / f"{name}.json").read_text()
        self.workflow: dict[str, Any] = json.loads(self.text)
        script = """async ([id, text]) => {
          const session = await (await fetch('/api/v1/auth/session')).json();
          const headers = {'content-type': 'application/json', 'x-csrf-token': session.csrfToken};
          return (await fetch(`/api/v1/workflows/${id}/draft`, {method: 'PUT', headers, body: text})).status;
        }"""
        assert self.page.evaluate(script, [self.workflow["id"], self.text]) == 200

    def open(self, label: str | None = None, **search: str) -> None:
        nodes = self.workflow["nodes"]
        wanted = [node["id"] for node in nodes if label is not None and node.get("label") == label]
        search |= {"node": wanted[0]} if wanted else {}
        query = "&".join(f"{name}={value}" for name, value in search.items())
        self.person.go(f"/workflows/{self.workflow['id']}?{query}")
        expect(self.page.get_by_role("complementary", name="Inspector")).to_be_visible()

    def draft(self) -> str:
        script = "async (id) => (await (await fetch(`/api/v1/workflows/${id}/draft`)).text())"
        answer = str(self.page.evaluate(script, self.workflow["id"]))
        # The definition stands in the answer byte for byte, as its last member.
        return answer.partition('"definition":')[2][:-1]

    def barriers(self) -> list[str]:
        """What axe finds in the inspector; the rest of the page has tests of its own."""
        self.page.evaluate(axe_source())
        script = """async () => {
          const found = await axe.run("aside[aria-label='Inspector']", {resultTypes: ['violations']});
          return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html}`));
        }"""
        found: list[str] = self.page.evaluate(script)
        return found

    def save(self) -> None:
        """Ctrl+S, and wait until the scheduler has it."""
        # What was typed a while ago is saved already: then there is no request to wait for.
        self.page.keyboard.press(f"{CONTROL}+s")
        expect(self.page.get_by_text("Saved", exact=True).first).to_be_visible()
        expect(self.page.locator("output[data-state=saved]")).to_be_visible()


@pytest.fixture
def seed(person: Person) -> Inspecting:
    return Inspecting(person, "playwright-smoke")


@pytest.fixture
def expressions(person: Person) -> Inspecting:
    return Inspecting(person, "expressions")


def test_widgets_are_drawn_and_edited_in_place(seed: Inspecting) -> None:
    page = seed.page
    seed.open("Open Base Page")
    url = page.get_by_role("textbox", name="Target URL", exact=True)
    expect(url).to_have_value(seed.workflow["nodes"][0]["parameters"]["url"])
    expect(page.get_by_text("Page URL to open.")).to_be_visible()
    wait_for = page.get_by_role("combobox", name="Wait Strategy")
    expect(wait_for).to_have_value("DOM Content Loaded")
    expect(page.get_by_role("textbox", name="Timeout (ms)")).to_have_value("30000")
    expect(page.get_by_text("Execution Status", exact=True)).to_be_visible()
    expect(page.get_by_text("Page Context", exact=True).first).to_be_visible()
    assert seed.barriers() == []

    # What is typed is in the draft with a save; all other bytes stay.
    url.fill("https://other.example")
    seed.save()
    old = json.dumps(seed.workflow["nodes"][0]["parameters"]["url"])
    assert seed.draft() == seed.text.strip().replace(old, '"https://other.example"', 1)
    wait_for.click()
    page.get_by_role("option").filter(has_text=re.compile("Network Idle")).click()
    page.get_by_role("button", name="Reset Timeout (ms)").click()
    expect(page.get_by_role("textbox", name="Timeout (ms)")).to_have_value("")
    expect(page.get_by_role("textbox", name="Timeout (ms)")).to_have_attribute(
        "placeholder", "30000"
    )
    seed.save()
    parameters = json.loads(seed.draft())["nodes"][0]["parameters"]
    assert parameters == {"url": "https://other.example", "waitFor": "networkidle"}


def test_an_expression_is_completed_and_previewed(expressions: Inspecting) -> None:
    page = expressions.page
    run = expressions.person.submit(expressions.workflow)
    expressions.open("Bill", run=run)
    page.get_by_role("button", name="Use an expression for Template").click()
    editor = page.get_by_role("textbox", name="Expression for Template")
    expect(editor).to_be_focused()
    page.keyboard.press(f"{CONTROL}+a")
    page.keyboard.type("nodes.")
    expect(page.get_by_role("option", name=re.compile("Cart"))).to_be_visible()
    page.keyboard.type("Sum.results.value")
    expect(page.get_by_text("Last run: 25").first).to_be_visible()
    page.keyboard.type(" + 1")
    expect(page.get_by_text("Last run: 26").first).to_be_visible()
    page.keyboard.type(" +")
    expect(page.get_by_text("syntax error").first).to_be_visible()
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(page.get_by_text("Last run: 26").first).to_be_visible()
    page.emulate_media(color_scheme="dark")
    assert expressions.barriers() == []
    expressions.save()
    bill = json.loads(expressions.draft())["nodes"][2]
    assert bill["parameters"]["template"] == "=nodes.Sum.results.value + 1"


def test_a_problem_leads_to_its_field(expressions: Inspecting) -> None:
    page = expressions.page
    expressions.open("Cart")
    inspector = page.get_by_role("complementary", name="Inspector")
    inspector.get_by_text("Retry", exact=True).click()
    attempts = page.get_by_role("textbox", name="Attempts")
    attempts.fill("5000")
    expressions.save()
    expressions.open("Sum")
    page.get_by_role("tab", name=re.compile("Problems")).click()
    page.get_by_role("button", name="Go to").first.click()
    expect(attempts).to_be_focused()
    attempts.fill("3")
    attempts.press("Enter")
    expressions.save()
    assert json.loads(expressions.draft())["nodes"][0]["retry"] == {"maxAttempts": 3}


def test_a_workflow_gets_an_input_and_a_schedule(expressions: Inspecting) -> None:
    page = expressions.page
    expressions.open()
    inspector = page.get_by_role("complementary", name="Inspector")
    inspector.get_by_text("Inputs", exact=True).click()
    page.get_by_role("button", name="Add input").click()
    name = inspector.get_by_role("textbox", name="Name", exact=True).last
    name.fill("city")
    name.press("Enter")
    page.get_by_role("button", name="Move city up").click()
    inspector.get_by_text("Triggers", exact=True).click()
    page.get_by_role("button", name="Add trigger").click()
    page.get_by_role("menuitem", name="Schedule").click()
    inspector.get_by_role("combobox", name="Schedule").click()
    page.get_by_role("option", name="Each night at 3:00").click()
    expect(inspector.get_by_role("textbox", name="Cron expression")).to_have_value("0 3 * * *")
    # A time zone is searched by its words; one that the browser does not know stays as it is typed.
    zone = inspector.get_by_role("combobox", name="Time zone")
    zone.fill("new york")
    page.get_by_role("option", name="America/New_York").click()
    expect(zone).to_have_value("America/New_York")
    assert expressions.barriers() == []
    expressions.save()
    document = json.loads(expressions.draft())
    assert list(document["inputs"]) == ["city", "name"]
    trigger = {"type": "cron", "expression": "0 3 * * *", "timeZone": "America/New_York"}
    assert document["triggers"] == [trigger]
    zone.fill("Mars/Base")
    zone.press("Tab")
    expect(inspector.get_by_text("This browser does not know this time zone")).to_be_visible()
    expect(zone).to_have_value("Mars/Base")
