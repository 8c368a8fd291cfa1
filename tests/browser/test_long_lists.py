"""Lists with thousands of rows stay usable: they come in pages, or only what is in sight is drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect

from tests.browser.person import Person
from tests.browser.test_run_view import FIRST, node, workflow
from tests.processes.waiting import until

AT = "2026-01-15T10:00:00.000Z"
MOST_ROWS = 250
"""Of a list whose page is 200 at most."""
MOST_IN_SIGHT = 120
"""Of a list that draws what is in sight, with some rows above and below."""


def paged(rows: list[dict[str, Any]]) -> Callable[[Route], None]:
    """A list of the API with these rows, page by page, as the scheduler gives them."""

    def answer(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        start = int(query.get("cursor", ["0"])[0])
        end = start + min(200, int(query.get("limit", ["50"])[0]))
        following = str(end) if end < len(rows) else None
        body = {"items": rows[start:end], "nextCursor": following}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    return answer


def package(number: int) -> dict[str, Any]:
    return {
        "name": f"acme.part{number:04}",
        "active": "1.0.0",
        "pinned": False,
        "nodes": 2,
        "description": f"Makes `part {number}`",
        "publishedAt": AT,
        "versions": ["1.0.0"],
    }


def worker(number: int) -> dict[str, Any]:
    return {
        "workerId": f"0000{number:04}",
        "name": f"machine-{number:04}",
        "hostname": f"host-{number}",
        "version": "0.1.0",
        "status": "online",
        "maxParallel": 8,
        "inflight": 0,
        "packages": [],
        "labels": {},
        "runtimes": ["python"],
        "lastHeartbeatAt": AT,
    }


def entry(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "occurredAt": AT,
        "who": f"person-{number}",
        "action": "workflow.save",
        "detail": {},
        "code": None,
        "corr": None,
    }


def test_packages_are_found_among_all_of_them(person: Person) -> None:
    page = person.page
    person.provoke(404)  # the packages of the list do not exist
    page.route(re.compile(r"/api/v1/packages(\?|$)"), paged([package(one) for one in range(900)]))
    person.go("/packages")
    expect(page.get_by_text("900 packages")).to_be_visible()
    rows = page.get_by_role("main").get_by_role("listitem")
    assert rows.count() <= MOST_ROWS
    # One of the last page, by what is shown of it: its description is Markdown.
    page.get_by_label("Find a package").fill("makes part 873")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("acme.part0873")
    expect(rows).to_contain_text("Makes part 873")
    page.get_by_label("Find a package").fill("acme")
    page.get_by_role("button", name=re.compile(r"^Show more \(\d+\)")).click()
    expect(page.get_by_text("acme.part0150", exact=True)).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")


def test_workers_and_the_audit_come_in_pages(person: Person) -> None:
    page = person.page
    page.route(re.compile(r"/api/v1/workers(\?|$)"), paged([worker(one) for one in range(2000)]))
    page.route(re.compile(r"/api/v1/audit(\?|$)"), paged([entry(one) for one in range(5000)]))
    for path, first, second in (
        ("/workers", "machine-0000", "machine-0060"),
        ("/settings?tab=audit", "person-0", "person-150"),
    ):
        person.go(path)
        expect(page.get_by_role("row", name=first).first).to_be_visible()
        rows = page.get_by_role("row")
        seen = rows.count()
        assert seen <= MOST_ROWS
        page.get_by_role("button", name="Load more").click()
        expect(page.get_by_role("row", name=second)).to_be_attached()
        assert seen < rows.count() <= 2 * MOST_ROWS
    page.unroute_all(behavior="ignoreErrors")


def test_runs_are_turned_page_by_page(person: Person) -> None:
    page = person.page
    for number in range(55):
        person.submit(workflow(f"Run {number:02}", node(FIRST, "core.noop", "Rest")))
    person.go("/runs")
    rows = page.get_by_role("main").get_by_role("row")
    expect(rows).to_have_count(51)
    expect(rows.nth(1)).to_contain_text("Run 54")
    page.get_by_role("heading", name="Runs").click()
    page.keyboard.press("l")
    expect(rows).to_have_count(6)
    expect(page.get_by_role("row", name=re.compile("Run 00"))).to_be_visible()
    page.keyboard.press("h")
    expect(rows).to_have_count(51)


def test_timeline_draws_the_rows_in_sight(person: Person) -> None:
    page = person.page
    run = person.submit(workflow("Long", node(FIRST, "core.echo", "Say", value="x")))
    entries = [
        {
            "kind": "attempt",
            "nodeId": f"step-{number:04}",
            "attempt": 1,
            "status": "succeeded",
            "dispatchedAt": AT,
            "startedAt": AT,
            "finishedAt": "2026-01-15T10:00:01.000Z",
        }
        for number in range(1000)
    ]
    page.route(re.compile(r"/timeline(\?|$)"), paged(entries))
    person.go(f"/runs/{run}?tab=timeline")
    rows = page.get_by_role("option")
    expect(rows.first).to_be_visible()
    assert rows.count() <= MOST_IN_SIGHT
    timeline = page.get_by_role("listbox", name="Timeline of the steps")
    timeline.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(page.locator("#timeline-step-0999")).to_be_visible()
    assert rows.count() <= MOST_IN_SIGHT
    page.unroute_all(behavior="ignoreErrors")


LINES = 20_000
TALK = (
    "import time\n\n"
    f"def main():\n    for number in range({LINES}):\n        print('line', number)\n"
    "        if number % 100 == 99:\n            time.sleep(0.015)\n    return {}\n"
)
"""Slow enough that a worker drops nothing of it, and over many batches of the event stream."""


def test_logs_draw_the_lines_in_sight(person: Person) -> None:
    page = person.page
    run = person.submit(workflow("Talk", node(FIRST, "core.python", "Speak", code=TALK, inputs={})))
    path = f"/api/v1/runs/{run}"
    until(lambda: person.call("GET", path)["status"] == "succeeded", "the end of the run")
    person.go(f"/runs/{run}")
    assert_all_lines(page, LINES)


def test_logs_that_are_being_written_come_once_each(person: Person) -> None:
    page = person.page
    for _ in range(3):
        run = person.submit(
            workflow("Talk", node(FIRST, "core.python", "Speak", code=TALK, inputs={}))
        )
        # The page is opened while the step writes: some lines are read, some are told.
        person.go(f"/runs/{run}")
        expect(page.get_by_role("main").get_by_text("Succeeded").first).to_be_visible()
        assert_all_lines(page, LINES)


def assert_all_lines(page: Page, count: int) -> None:
    """The last line is in sight; whoever goes up reads older ones, up to the first; no line is there twice."""
    lines = page.get_by_role("region", name="Lines of output")
    expect(lines.get_by_text(f"line {count - 1}", exact=True)).to_be_visible()
    rows = lines.locator("[data-index]")
    assert 0 < rows.count() <= MOST_IN_SIGHT
    page.wait_for_function(
        """(box) => {
          box.scrollTop = 0;
          return [...box.querySelectorAll('[data-index]')].some((row) => /line 0$/.test(row.innerText.trim()));
        }""",
        arg=lines.element_handle(),
        polling=200,
    )
    assert 0 < rows.count() <= MOST_IN_SIGHT
    lines.press("End")
    last = rows.last
    expect(last).to_contain_text(f"line {count - 1}")
    assert last.get_attribute("data-index") == str(count - 1)
