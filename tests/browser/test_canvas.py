"""What can be done with several things on the canvas, and what it shows while something is dragged."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.editing import Editing


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


def left_of(editing: Editing, label: str) -> float:
    box = editing.step(label).bounding_box()
    assert box is not None
    return box["x"]


def test_align_distribute_and_tidy_up_a_selection(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.drag_in("Echo", 120, 120)
    editing.drag_in("Template", 660, 200)
    editing.drag_in("Log", 560, 640)
    editing.step("Echo").click()
    editing.step("Template").click(modifiers=["Shift"])
    page.keyboard.press("Alt+Shift+X")
    expect(page.get_by_role("button", name="Undo distribute")).to_be_hidden()
    page.keyboard.press("Alt+Shift+A")
    expect(page.get_by_role("button", name="Undo align")).to_be_visible()
    assert left_of(editing, "Echo") == left_of(editing, "Template") != left_of(editing, "Log")
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Undo add Log")).to_be_visible()

    # The menu has the same, as a row that arrow keys walk through.
    editing.step("Log").click(modifiers=["Shift"])
    editing.step("Log").click(button="right")
    menu = page.get_by_role("menu")
    menu.get_by_role("menuitem", name="Align right").click()
    assert left_of(editing, "Echo") == left_of(editing, "Template") == left_of(editing, "Log")
    editing.step("Log").click(button="right")
    menu.get_by_role("menuitem", name="Distribute vertically").click()
    expect(page.get_by_role("button", name="Undo distribute")).to_be_visible()

    # Only what is selected is tidied up.
    still = left_of(editing, "Log")
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    editing.step("Echo").click()
    editing.step("Template").click(modifiers=["Shift"])
    page.keyboard.press("Alt+Shift+l")
    expect(page.get_by_role("button", name="Undo tidy up")).to_be_visible()
    assert left_of(editing, "Log") == still


def test_a_group_is_made_named_moved_and_shown_with_a_run(editing: Editing) -> None:
    page = editing.page
    editing.begin()
    editing.drag_in("Echo", 120, 120)
    editing.drag_in("Log", 600, 640)
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+g")
    page.get_by_role("textbox", name="Name of the group").fill("Say it")
    page.keyboard.press("Enter")
    frame = editing.canvas.get_by_role("group", name="Group Say it, 2 steps")
    expect(frame).to_be_visible()
    page.get_by_role("button", name="Make the group green").click()
    assert editing.person.violations() == []

    # Its title drags all of it, in one entry of the history.
    before = left_of(editing, "Echo"), left_of(editing, "Log")
    title = frame.get_by_text("Say it")
    title.hover()
    page.mouse.down()
    box = title.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60, steps=5)
    page.mouse.up()
    expect(page.get_by_role("button", name="Undo move")).to_be_visible()
    moved = left_of(editing, "Echo") - before[0]
    assert moved > 0
    assert left_of(editing, "Log") - before[1] == moved

    # By the keyboard: the focus selects it, and the inspector names its steps.
    page.keyboard.press("Escape")
    frame.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector.get_by_role("heading", name="Group")).to_be_visible()
    expect(inspector.get_by_role("button", name="Echo", exact=True)).to_be_visible()
    editing.wait_until_saved()
    assert '"label":"Say it"' in editing.draft().replace('": "', '":"')

    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Run: succeeded")).to_be_visible()
    page.get_by_role("link", name="Open the run").click()
    graph = page.get_by_role("application", name="Graph of the workflow")
    expect(graph.get_by_role("group", name="Group Say it, 2 steps")).to_be_visible()
    page.go_back()
    expect(frame).to_be_visible()
    frame.get_by_text("Say it").click()
    page.keyboard.press("Control+Shift+g")
    expect(frame).to_be_hidden()
    expect(editing.step("Echo")).to_be_visible()
