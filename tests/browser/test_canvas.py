"""What can be done with several things on the canvas, and what it shows while something is dragged."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.editing import Editing
from tests.browser.person import Person


@pytest.fixture
def editing(person: Person) -> Editing:
    return Editing(person)


def fit_of(step: Locator) -> str | None:
    return step.locator("> div").first.get_attribute("data-fit")


def test_a_wire_shows_what_takes_it_and_goes_to_a_step(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.drag_in("Echo", 120, 120)
    editing.drag_in("Template", 660, 200)
    editing.drag_in("Log", 660, 640)
    editing.wire("Echo", "value", "Template", "values")
    expect(editing.wires()).to_have_count(1)

    # A step before cannot take it: it is faint, and the pointer says why. A drop changes nothing.
    editing.port("Template", "text", "source").hover()
    page.mouse.down()
    editing.step("Echo").hover(position={"x": 100, "y": 20})
    hint = editing.canvas.get_by_role("tooltip")
    expect(hint).to_have_text("The edge would close a circle")
    assert fit_of(editing.step("Echo")) == "no"
    assert fit_of(editing.step("Log")) == "yes"
    page.mouse.up()
    expect(hint).to_be_hidden()
    expect(page.get_by_text("The edge would close a circle")).to_be_visible()
    expect(editing.wires()).to_have_count(1)
    assert fit_of(editing.step("Echo")) is None

    # A step that can take it is lit, and takes it by the first port that fits.
    editing.port("Template", "text", "source").hover()
    page.mouse.down()
    editing.step("Log").hover(position={"x": 100, "y": 20})
    expect(hint).to_have_text("Connect to Message")
    assert fit_of(editing.step("Log")) == "next"
    assert editing.port("Log", "message", "target").get_attribute("data-fit") == "next"
    page.mouse.up()
    expect(editing.wires()).to_have_count(2)
    expect(page.get_by_role("button", name="Undo connect")).to_be_visible()
    editing.wait_until_saved()
    assert '"port":"message"' in editing.draft().replace(" ", "")
