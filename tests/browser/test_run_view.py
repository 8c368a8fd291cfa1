"""A person watches runs, sees why one failed, mends it, decides, cancels, and reads logs."""

from __future__ import annotations

import json
import re
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, expect

from tests.browser.editing import EXAMPLES
from tests.browser.person import Person
from tests.processes.command_line import Up
from tests.processes.waiting import until

FIRST = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a01"
SECOND = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a02"
THIRD = "f1d3b1f0-8a55-4c5e-9f7e-2f6f6d7f0a03"
WORDS = [f"word{number}" for number in range(36)]
CHECK = "def main(wanted):\n    assert wanted == 'json', wanted\n    return {'rows': [{'a': 1}, {'a': 2}]}\n"
TALK = (
    "import sys\n"
    "def main():\n"
    "    for number in range(30):\n"
    "        print('plain', number)\n"
    "    print('to stderr', file=sys.stderr)\n"
    "    return {}\n"
)


def workflow(name: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """Nodes one after the other."""
    edges = [
        {"source": {"node": one["id"]}, "target": {"node": other["id"]}}
        for one, other in pairwise(nodes)
    ]
    places = [{**node, "position": {"x": 280 * at, "y": 0}} for at, node in enumerate(nodes)]
    return {
        "id": "3d0f8a52-5b0e-4f3a-9a53-0c6f0a8f7f01",
        "metadata": {"name": name},
        "nodes": places,
        "edges": edges,
    }


def node(node_id: str, kind: str, label: str, **parameters: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "label": label, "parameters": parameters}


def approval(label: str) -> dict[str, Any]:
    return {
        "id": FIRST,
        "type": "core.approval",
        "label": label,
        "approval": {"message": "Pay 500 to Ada?"},
    }


def broken() -> dict[str, Any]:
    return workflow(
        "Breaks",
        node(FIRST, "core.echo", "Given", value="yaml"),
        node(SECOND, "core.python", "Check", code=CHECK, inputs={"wanted": "yaml"}),
        node(THIRD, "core.echo", "Last", value="done"),
    )


def expect_status(page: Page, status: str) -> None:
    """The pill beside the name of the run."""
    expect(
        page.get_by_role("region", name="About the run").get_by_text(status, exact=True)
    ).to_be_visible()


def step_panel(page: Page, label: str) -> Any:
    return page.get_by_role("complementary", name=f"Step {label}")


def test_tokens_stream_live_and_late_viewers_see_all_of_them(person: Person) -> None:
    text = " ".join(WORDS)
    run = person.submit(
        workflow("Story", node(FIRST, "core.stream", "Tell", text=text, delayMs=300))
    )
    person.go(f"/runs/{run}?step={FIRST}")
    stream = stream_in(person.page)
    expect(stream).to_contain_text("word2")
    expect_status(person.page, "Running")

    late = person.context.new_page()
    late.goto(f"{person.server.url}/runs/{run}?step={FIRST}")
    seen = stream_in(late)
    expect(seen).to_contain_text("word0 word1 word2")
    for page, whole in ((person.page, stream), (late, seen)):
        expect_status(page, "Succeeded")
        expect(whole).to_have_text(text)

    late.reload()
    expect(stream_in(late)).to_have_text(text)


def stream_in(page: Page) -> Any:
    """The stream of the step, in front."""
    panel = step_panel(page, "Tell")
    panel.get_by_role("tab", name="Stream").click()
    return panel.get_by_role("region", name="Text of the stream")


def test_failed_run_is_understood_mended_and_compared(person: Person) -> None:
    page = person.page
    run = person.submit(broken())
    person.go(f"/runs/{run}")
    expect_status(page, "Failed")
    why = page.get_by_role("list", name="What the run waits for")
    expect(why).to_contain_text("Check failed")
    why.get_by_role("button", name="Show the step").click()
    panel = step_panel(page, "Check")
    error = panel.get_by_role("region", name="Error")
    expect(error).to_contain_text("E.RUNNER.FAILURE")
    expect(error).to_contain_text("What to do")
    assert f"step={SECOND}" in page.url

    panel.get_by_role("button", name="Re-run from here").click()
    dialog = page.get_by_role("dialog", name="Re-run from Check")
    expect(dialog).to_contain_text("2 steps run again")
    expect(dialog).to_contain_text("1 result is taken over")
    change_parameters(page, {"inputs": {"wanted": "json"}, "code": CHECK})
    expect(dialog).to_contain_text("Changed: inputs")
    dialog.get_by_role("button", name="Re-run", exact=True).click()

    page.wait_for_url(lambda url: "/runs/" in url and run not in url)
    expect_status(page, "Succeeded")
    expect(page.get_by_role("link", name=re.compile("^#"))).to_be_visible()
    page.get_by_role("tab", name="Steps").click()
    expect(page.get_by_role("row", name=re.compile("Given"))).to_contain_text("Cached")

    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Compare with…").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("Failed")).click()
    expect(page.get_by_role("heading", name="Compare runs")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^Check"))).to_contain_text("Succeeded")
    expect(page.get_by_role("table").last).to_contain_text("/inputs/wanted")
    assert person.violations() == []


def change_parameters(page: Page, parameters: dict[str, Any]) -> None:
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radiogroup", name="Show as").get_by_text("JSON").click()
    dialog.get_by_role("textbox", name="Parameters of Check").fill(json.dumps(parameters))


def test_person_approves_and_another_run_is_cancelled(person: Person) -> None:
    page = person.page
    asked = workflow("Payment", approval("Approve"), node(SECOND, "core.echo", "Pay", value="paid"))
    run = person.submit(asked)
    person.go("/runs")
    row = page.get_by_role("row", name=re.compile("Payment"))
    expect(row.get_by_role("img", name="Waits for approval")).to_be_visible()
    row.get_by_role("link", name="Payment").click()
    card = page.get_by_role("article", name="Approve waits for your decision")
    expect(card).to_contain_text("Pay 500 to Ada?")
    card.get_by_label("Comment").fill("fine")
    card.get_by_role("button", name="Approve").click()
    expect_status(page, "Succeeded")
    expect(card).to_be_hidden()

    person.submit({**asked, "metadata": {"name": "Another"}})
    person.go("/runs")
    page.get_by_role("link", name="Another").click()
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect_status(page, "Cancelled")
    page.get_by_role("button", name="Retry failed").click()
    page.wait_for_url(lambda url: run not in url and "/runs/" in url)
    expect(page.get_by_role("article")).to_be_visible()


def test_logs_are_filtered_by_channel_text_and_step(person: Person) -> None:
    page = person.page
    run = person.submit(
        workflow(
            "Talk",
            node(FIRST, "core.python", "Speak", code=TALK, inputs={}),
            node(SECOND, "core.log", "Warn", message="schema differs", level="warning"),
        )
    )
    person.go(f"/runs/{run}")
    lines = page.get_by_role("region", name="Lines of output")
    expect(lines).to_contain_text("schema differs")
    channels = page.get_by_role("radiogroup", name="Which output")
    channels.get_by_text("stderr", exact=True).click()
    expect(lines).to_contain_text("to stderr")
    expect(lines).not_to_contain_text("plain")
    channels.get_by_text("All", exact=True).click()
    page.get_by_label("Find in logs").fill("plain 7")
    expect(lines).to_contain_text("plain 7")
    expect(lines).not_to_contain_text("plain 8")
    page.wait_for_url(lambda url: "q=plain" in url)
    page.reload()
    expect(lines).to_contain_text("plain 7")
    expect(lines).not_to_contain_text("to stderr")
    page.get_by_label("Find in logs").fill("")
    page.get_by_role("tab", name="Timeline").click()
    page.get_by_role("option", name=re.compile("Warn")).click()
    expect(lines).to_contain_text("schema differs")
    expect(lines).not_to_contain_text("plain")
    page.get_by_role("button", name="Show the logs of all steps").click()
    expect(step_panel(page, "Warn")).to_be_visible()
    page.get_by_label("Find in logs").fill("stderr")
    expect(lines).to_contain_text("to stderr")


def test_run_goes_on_in_the_page_after_a_restart(chromium: Browser, tmp_path: Path) -> None:
    server = Up(tmp_path, "--workers", "1")
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    person = Person(server, context)
    again: Up | None = None
    try:
        person.log_in()
        asked = workflow("Long", approval("Wait"), node(SECOND, "core.echo", "Go", value="on"))
        run = person.submit(asked)
        person.go(f"/runs/{run}")
        page = person.page
        page.evaluate("() => { window.isTheSamePage = true; }")
        card = page.get_by_role("article", name="Wait waits for your decision")
        expect(card).to_be_visible()
        server.end(signal.SIGKILL)
        expect(page.get_by_text(re.compile("Reconnecting|Offline since"))).to_be_visible()
        expect(page.get_by_role("heading", name="Long")).to_be_visible()
        again = Up(tmp_path, "--port", server.url.rsplit(":", 1)[1], "--workers", "1")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        card.get_by_role("button", name="Approve").click()
        expect_status(page, "Succeeded")
        assert page.evaluate("() => window.isTheSamePage") is True
        assert person.complaints == []
    finally:
        context.close()
        server.end(signal.SIGKILL)
        if again is not None:
            again.end()


def test_run_pages_have_no_serious_barrier(person: Person) -> None:
    run = person.submit(broken())
    asks = person.submit(workflow("Payment", approval("Approve")))
    look_at_all_pages(person, run, asks, "light")
    look_at_all_pages(person, run, asks, "dark")


def look_at_all_pages(
    person: Person, run: str, asks: str, scheme: Literal["light", "dark"]
) -> None:
    page = person.page
    page.emulate_media(color_scheme=scheme)
    person.go(f"/runs/{run}?step={SECOND}")
    expect_status(page, "Failed")
    expect(step_panel(page, "Check").get_by_role("region", name="Error")).to_be_visible()
    assert person.violations() == []
    for name in ("Timeline", "Steps", "Events", "Inputs & outputs", "Artifacts"):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        assert person.violations() == [], name
    person.go(f"/runs/{run}?step={FIRST}")
    expect(step_panel(page, "Given").get_by_text("Succeeded")).to_be_visible()
    assert person.violations() == []
    person.go(f"/runs/{asks}")
    expect(page.get_by_role("article")).to_be_visible()
    assert person.violations() == []
    person.go("/runs")
    expect(page.get_by_role("row")).to_have_count(3)
    assert person.violations() == []


def test_list_of_runs_is_filtered_walked_and_acted_on(person: Person) -> None:
    page = person.page
    for name in ("Alpha", "Beta"):
        person.submit(workflow(name, node(FIRST, "core.echo", "Say", value=name)))
    failing = workflow("Gamma", node(FIRST, "core.fail", "Fall", message="no such table"))
    person.submit(failing)
    person.go("/runs")
    expect(page.get_by_role("row")).to_have_count(4)
    expect(page.get_by_role("row", name=re.compile("Gamma"))).to_contain_text("no such table")
    page.get_by_label("Find by name or id").fill("alp")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_label("Find by name or id").fill("nothing like this")
    expect(page.get_by_text("No runs match")).to_be_visible()
    page.get_by_role("button", name="Clear filters").last.click()
    expect(page.get_by_role("row")).to_have_count(4)
    person.submit(workflow("Delta", node(FIRST, "core.echo", "Say", value="d")))
    expect(page.get_by_role("row")).to_have_count(5)

    page.get_by_role("row", name=re.compile("Gamma")).get_by_role("checkbox").check()
    page.get_by_role("button", name="Retry failed (1)").click()
    expect(page.get_by_role("row")).to_have_count(6)
    page.get_by_role("heading", name="Runs").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Delta")).to_be_visible()


def test_live_view_is_paused_and_goes_on_with_all_that_came(person: Person) -> None:
    page = person.page
    text = " ".join(WORDS)
    run = person.submit(
        workflow("Story", node(FIRST, "core.stream", "Tell", text=text, delayMs=300))
    )
    person.go(f"/runs/{run}?step={FIRST}")
    stream = stream_in(page)
    expect(stream).to_contain_text("word1")
    page.get_by_role("button", name="Pause").click()
    seen = stream.inner_text()
    expect(page.get_by_role("button", name=re.compile(r"^Resume \(\d+ new\)"))).to_be_visible()
    until(lambda: person.call("GET", f"/api/v1/runs/{run}")["status"] == "succeeded", "its end")
    # The run has ended, and the page still shows it as it was.
    assert stream.inner_text() == seen
    expect_status(page, "Running")
    page.get_by_role("heading", name="Story").click()
    page.keyboard.press("p")
    expect_status(page, "Succeeded")
    expect(stream).to_have_text(text)
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()


def test_keys_show_input_and_output_of_one_step_after_the_other(person: Person) -> None:
    page = person.page
    run = person.submit(broken())
    person.go(f"/runs/{run}?step={FIRST}")
    expect_status(page, "Failed")
    page.get_by_role("heading", name="Breaks").click()
    page.keyboard.press("i")
    panel = step_panel(page, "Given")
    expect(panel.get_by_role("tabpanel", name="Input")).to_contain_text("yaml")
    page.get_by_role("tab", name="Steps").click()
    page.get_by_role("button", name="Check", exact=True).click()
    expect(step_panel(page, "Check").get_by_role("tabpanel", name="Input")).to_be_visible()
    page.keyboard.press("o")
    expect(step_panel(page, "Check").get_by_role("tabpanel", name="Output")).to_be_visible()
    person.go("/settings?tab=you")
    page.get_by_role("switch", name="Single letters are shortcuts").press("Space")
    person.go(f"/runs/{run}?step={FIRST}&part=output")
    expect(panel.get_by_role("tabpanel", name="Output")).to_be_visible()
    page.get_by_role("heading", name="Breaks").click()
    page.keyboard.press("i")
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_url(lambda url: "tab=steps" in url)
    assert "part=output" in page.url


def test_timeline_has_the_calls_of_a_chain_inside_of_the_step(person: Person) -> None:
    page = person.page
    run = person.submit(json.loads((EXAMPLES / "middleware.json").read_text()))
    person.go(f"/runs/{run}?tab=timeline")
    expect_status(page, "Succeeded")
    rows = page.get_by_role("option")
    # The step, the two inner links of its chain, the step as they call it, and the step after it.
    expect(rows).to_have_count(5)
    rows.first.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(rows.nth(3)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(rows.nth(2)).to_have_attribute("aria-selected", "true")
    rows.first.click()
    page.keyboard.press("ArrowLeft")
    expect(rows).to_have_count(2)
    page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(5)
    assert person.violations() == []
