"""Values of the last run come into the fields of a step, with the pointer and with the keyboard."""

from __future__ import annotations

import json
import uuid

from playwright.sync_api import expect

from tests.browser.editing import Editing

ECHO, LOG = str(uuid.uuid4()), str(uuid.uuid4())


def test_a_value_is_dragged_and_inserted_into_a_field(editing: Editing) -> None:
    page = editing.page
    workflow_id = str(uuid.uuid4())
    document = {
        "formatVersion": "1.0",
        "id": workflow_id,
        "metadata": {"name": "Values"},
        "nodes": [
            {
                "id": ECHO,
                "type": "core.echo",
                "label": "Two words",
                "position": {"x": 0, "y": 0},
                "parameters": {"value": {"city": "Bern", "size": 3}},
            },
            {
                "id": LOG,
                "type": "core.log",
                "label": "Log",
                "position": {"x": 320, "y": 0},
                "parameters": {"message": "plain"},
            },
        ],
        "edges": [{"source": {"node": ECHO}, "target": {"node": LOG}}],
    }
    editing.save_text(workflow_id, json.dumps(document))
    editing.open(workflow_id)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Run: succeeded")).to_be_visible()

    editing.step("Log").click()
    inspector = page.get_by_role("complementary", name="Inspector")
    inspector.get_by_text("Values from before").click()
    tree = inspector.get_by_role("tree")
    tree.get_by_role("treeitem").filter(has_text="Two words").click()
    tree.get_by_role("treeitem").filter(has_text="results").click()
    tree.get_by_role("treeitem").filter(has_text="value").click()
    city = tree.get_by_role("treeitem").filter(has_text="Bern")
    city.drag_to(inspector.get_by_role("textbox", name="Message"))
    expression = inspector.get_by_role("textbox", name="Expression for Message")
    named = 'nodes["Two words"].results.value.city'
    expect(expression).to_have_text(named)
    expect(inspector.get_by_text("Bern").first).to_be_visible()
    editing.wait_until_saved()
    log = json.loads(editing.draft())["definition"]["nodes"][1]
    assert log["parameters"]["message"] == f"={named}"
    page.get_by_role("toolbar", name="Workflow").get_by_role("button", name="Undo").click()
    expect(inspector.get_by_role("textbox", name="Message")).to_have_text('"plain"')

    # With the keyboard: the field first, then the value.
    inspector.get_by_role("textbox", name="Message").focus()
    tree.focus()
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    expect(tree.get_by_role("treeitem", selected=True)).to_contain_text("size")
    page.keyboard.press("Enter")
    expect(expression).to_have_text('nodes["Two words"].results.value.size')
    assert editing.person.violations() == []
