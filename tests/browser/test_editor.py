"""A workflow is built from nothing, with the mouse and with the keyboard, and is run."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from tests.browser.editing import EXAMPLES, Editing


def test_three_steps_with_the_mouse(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.drag_in("Echo", 120, 200)
    editing.drag_in("Template", 420, 200)
    editing.drag_in("Log", 420, 400)
    editing.wire("Echo", "value", "Template", "values")
    editing.wire("Template", "text", "Log", "message")
    expect(editing.wires()).to_have_count(2)

    # A step that is dropped on a wire goes into it, and undo takes it out again in one go.
    wire = editing.wires().first.bounding_box()
    canvas = editing.canvas.bounding_box()
    assert wire is not None
    assert canvas is not None
    x = wire["x"] + wire["width"] / 2 - canvas["x"]
    y = wire["y"] + wire["height"] / 2 - canvas["y"]
    editing.type_in_palette("Do nothing").drag_to(editing.canvas, target_position={"x": x, "y": y})
    expect(editing.wires()).to_have_count(3)
    page.get_by_role("button", name="Undo add Do nothing").click()
    expect(editing.step("Do nothing")).to_be_hidden()
    expect(editing.wires()).to_have_count(2)
    page.get_by_role("button", name="Redo add Do nothing").click()
    expect(editing.wires()).to_have_count(3)
    page.get_by_role("button", name="Undo add Do nothing").click()

    # A wire that is dropped on the empty canvas offers what fits it.
    editing.port("Echo", "value", "source").hover()
    page.mouse.down()
    page.mouse.move(canvas["x"] + 300, canvas["y"] + 600, steps=4)
    page.mouse.up()
    page.get_by_role("dialog", name="Add a step").get_by_role("option", name="Stream").click()
    expect(editing.wires()).to_have_count(3)
    expect(editing.step("Stream")).to_be_visible()
    page.keyboard.press("Delete")
    expect(editing.step("Stream")).to_be_hidden()

    editing.step("Log").dblclick()
    page.get_by_role("textbox", name="Name of the step").fill("Tell")
    page.keyboard.press("Enter")
    expect(editing.step("Tell")).to_be_visible()
    page.get_by_role("textbox", name="Name of the workflow").fill("By mouse")
    page.keyboard.press("Enter")
    editing.wait_until_saved()
    assert '"By mouse"' in editing.draft()


def test_three_steps_with_the_keyboard_and_a_run(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.add_by_key("noth")
    editing.add_by_key("sleep")
    editing.add_by_key("echo")
    expect(editing.wires()).to_have_count(2)
    # The last step is selected: walk back, connect the first with the last, and take it back.
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Connect Do nothing to…")
    expect(dialog.get_by_role("option").first).to_be_visible()
    page.keyboard.type("echo")
    page.keyboard.press("Enter")
    expect(editing.wires()).to_have_count(3)
    page.keyboard.press("Control+z")
    expect(editing.wires()).to_have_count(2)
    page.keyboard.press("Control+Shift+z")
    expect(editing.wires()).to_have_count(3)

    page.keyboard.press("F2")
    page.keyboard.type("Start\n")
    expect(editing.step("Start")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("d")
    expect(editing.step("Sleep").get_by_role("img", name="Disabled")).to_be_visible()
    page.keyboard.press("Control+d")
    expect(editing.step("Sleep 2").or_(editing.step("Sleep")).nth(1)).to_be_visible()
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")
    expect(editing.canvas.get_by_role("group")).to_have_count(6)
    page.keyboard.press("Control+z")
    expect(editing.canvas.get_by_role("group")).to_have_count(3)
    page.keyboard.press("Alt+Shift+l")

    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Run: succeeded")).to_be_visible()
    expect(editing.step("Start").get_by_role("img", name="Succeeded")).to_be_visible()
    expect(page).to_have_url(re.compile("run="))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_problems_lead_to_their_place_and_block_the_run(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.add_by_key("noth")
    editing.add_by_key("http")
    bar = page.get_by_role("toolbar", name="Workflow")
    expect(bar.get_by_role("button", name="1 problem")).to_be_visible()
    expect(bar.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    page.keyboard.press("Escape")
    bar.get_by_role("button", name="1 problem").click()
    page.get_by_role("button", name="Go to").click()
    expect(page).to_have_url(re.compile("node=.*field=parameters"))
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("HTTP")
    # The focus is in the field that lacks something.
    page.keyboard.type("https://example.com")
    page.keyboard.press("Tab")
    expect(bar.get_by_role("button", name="No problems")).to_be_visible()
    expect(bar.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_what_was_not_edited_keeps_its_bytes(editing: Editing) -> None:
    page = editing.page
    text = (EXAMPLES / "playwright-smoke.json").read_text()
    strange = text.replace('"timeoutMs": 30000', '"timeoutMs":3.0e4 , "x-own": [1.0,\t1.50e2]', 1)
    assert strange != text
    workflow_id = str(json.loads(text)["id"])
    editing.save_text(workflow_id, strange)
    editing.open(workflow_id)
    editing.step("Open Base Page").click()
    page.keyboard.press("F2")
    page.keyboard.type("Open it\n")
    expect(editing.step("Open it")).to_be_visible()
    edited = strange.replace('"label": "Open Base Page"', '"label": "Open it"')
    editing.wait_until_saved()
    assert f'"definition":{edited.strip()}' in editing.draft()


def test_containers_middlewares_and_notes(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.drag_in("Container", 300, 200)
    editing.type_in_palette("Echo").drag_to(editing.step("Container"))
    expect(editing.step("Echo")).to_be_visible()
    editing.type_in_palette("Retry").drag_to(editing.step("Echo"))
    chip = editing.step("Echo").get_by_role("button", name="Retry")
    chip.click()
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector).to_contain_text("Retry")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+S")
    page.get_by_role("textbox", name="Text of the note").fill("**Bold** words")
    page.keyboard.press("Escape")
    expect(editing.canvas.get_by_role("group", name="Note").get_by_text("Bold")).to_be_visible()
    editing.wait_until_saved()
    nodes = {one["label"]: one for one in json.loads(editing.draft())["definition"]["nodes"]}
    assert nodes["Echo"]["parent"] == nodes["Container"]["id"]
    assert nodes["Echo"]["middlewares"] == [nodes["Retry"]["id"]]
