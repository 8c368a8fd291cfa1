"""A workflow is edited as JSON: one that the canvas cannot show, and any other by choice."""

from __future__ import annotations

import json
import uuid

from playwright.sync_api import Locator, expect

from tests.browser.editing import Editing


def code(editing: Editing) -> Locator:
    return editing.page.get_by_role("textbox", name="The workflow as JSON")


def test_what_cannot_be_drawn_is_mended_as_text(editing: Editing) -> None:
    page = editing.page
    workflow_id = str(uuid.uuid4())
    broken = {
        "formatVersion": "1.0",
        "id": workflow_id,
        "name": "Broken",
        "nodes": [{"id": 7, "type": "core.noop", "label": "Nothing"}],
        "edges": [],
    }
    editing.save_text(workflow_id, json.dumps(broken, indent=2))
    editing.open(workflow_id)
    problem = page.get_by_text("The canvas cannot show this document. Line 7")
    expect(problem).to_be_visible()
    expect(editing.canvas).to_be_hidden()
    # The place is marked, and whoever cannot see it reads the line.
    expect(page.locator(".cm-lintRange-error").first).to_have_text("7")
    assert editing.person.violations() == []

    # What is no JSON yet is not saved, and says so.
    mended = json.dumps(broken, indent=2).replace('"id": 7', f'"id": "{uuid.uuid4()}"')
    code(editing).fill(mended[:-1])
    expect(page.get_by_text("Not saved yet, because this is not JSON")).to_be_visible()
    code(editing).fill(mended)
    expect(editing.step("Nothing")).to_be_visible()
    expect(problem).to_be_hidden()
    editing.wait_until_saved()
    assert f'"definition":{mended}' in editing.draft()

    # Undo brings the text back, redo the canvas.
    page.get_by_role("button", name="Undo edit the JSON").click()
    expect(problem).to_be_visible()
    page.get_by_role("button", name="Redo edit the JSON").click()
    expect(editing.step("Nothing")).to_be_visible()


def test_any_workflow_is_edited_as_json_and_drawn_again(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.add_by_key("sleep")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Edit as JSON").click()
    expect(code(editing)).to_contain_text("core.sleep")
    expect(page.get_by_role("button", name="Tidy up")).to_be_hidden()
    editing.wait_until_saved()
    text = json.loads(editing.draft())["definition"]
    text["nodes"][0]["label"] = "Doze"
    code(editing).fill(json.dumps(text, indent=2))
    page.get_by_role("button", name="Show the canvas").click()
    expect(editing.step("Doze")).to_be_visible()
    editing.wait_until_saved()
    assert '"Doze"' in editing.draft()
