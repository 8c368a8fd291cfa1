"""Many tabs, many steps."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from benchmarks.canvas import FRAMES, WATCH_MS
from benchmarks.canvas import workflow as crowd
from tests.browser.person import Person
from tests.browser.test_run_view import FIRST, expect_status, node, workflow
from tests.processes.waiting import until

TABS = 10
FEWEST_FRAMES = 25
"""In five seconds. A canvas that draws all steps again for each event comes to less than one in a second."""


def open_streams(person: Person) -> int:
    """How many streams the scheduler serves."""
    text = person.page.evaluate("async () => (await fetch('/metrics')).text()")
    counts = re.findall(r"^astraflow_sse_readers\{[^}]*\} (\d+)", text, re.MULTILINE)
    return sum(map(int, counts))


def lock_counts(person: Person) -> tuple[int, int]:
    """How many locks of tabs are held and waited for."""
    script = """async () => {
      const { held, pending } = await navigator.locks.query();
      const count = (all) => all.filter((one) => one.name.startsWith('astraflow-tab-')).length;
      return [count(held), count(pending)];
    }"""
    held, pending = person.page.evaluate(script)
    return held, pending


def test_ten_tabs_are_live_on_one_connection(person: Person) -> None:
    """A browser has six connections to a host: with a stream for each, the seventh tab would not load."""
    wait = {
        "id": FIRST,
        "type": "core.approval",
        "label": "Decide",
        "approval": {"message": "Go on?"},
    }
    run = person.submit(workflow("Shared", wait))
    tabs = [person.page, *(person.context.new_page() for _ in range(TABS - 1))]
    for tab in tabs:
        tab.goto(f"{person.server.url}/runs/{run}")
    for tab in tabs:
        expect_status(tab, "Running")
        expect(tab.get_by_text("Live", exact=True)).to_be_visible()
    assert open_streams(person) == 1
    # Each tab holds a lock, and the shared worker waits for it: a tab that crashes is noticed.
    assert lock_counts(person) == (TABS, TABS)
    person.call("POST", f"/api/v1/runs/{run}/nodes/{FIRST}/approval", {"approved": True})
    for tab in tabs:
        expect_status(tab, "Succeeded")
    other = person.submit(workflow("Other", node(FIRST, "core.echo", "Say", value="x")))
    tabs[3].goto(f"{person.server.url}/runs/{other}")
    expect_status(tabs[3], "Succeeded")
    for tab in tabs[5:]:
        tab.close()
    tabs[4].reload()
    expect_status(tabs[4], "Succeeded")
    until(lambda: open_streams(person) == 1, "the end of streams that nobody reads")
    assert lock_counts(person) == (5, 5)


def test_five_hundred_steps_stay_smooth(person: Person) -> None:
    run = person.submit(crowd())
    person.go(f"/runs/{run}")
    expect(person.page.locator(".react-flow__node").first).to_be_visible()
    found: dict[str, Any] = person.page.evaluate(FRAMES, WATCH_MS)
    expect_status(person.page, "Succeeded")
    assert len(found["frames"]) >= FEWEST_FRAMES
    expect(person.page.get_by_text("500/500 steps")).to_be_visible()
