"""Maps at their limits: too many items, many runs at once by a filter, many readers, and what metrics count."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.definitions import link, node, workflow
from tests.e2e.test_control_flow import by_label
from tests.processes.rest import TOKEN, Rest
from tests.processes.system import System, running

READERS, REQUESTS, ITEMS = 20, 200, 5_000


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path, workers=1) as made:
        yield made


def listed(count: int, row: object = 0, **over: Any) -> dict[str, Any]:
    """A node that returns a list, and a map over it."""
    code = f"def main():\n    return {{'rows': [{row!r}] * {count}}}"
    makes = node("core.python", "makes", parameters={"code": code})
    maps = node(
        "core.echo",
        "maps",
        parameters={"value": "=item"},
        map={"over": "=nodes.makes.results.rows", **over},
    )
    return workflow(makes, maps, edges=[link(makes, maps)])


@pytest.mark.parametrize("row", [0, "x" * 30], ids=["inline", "stored"])
def test_one_item_too_many_fails_the_run_by_name_and_nothing_else(
    system: System, row: object
) -> None:
    rest = system.rest
    view = rest.run(listed(100_001, row))
    shown = by_label(view)["maps"]
    assert (view["status"], view["error"]["code"]) == ("failed", "E.TASK.TOO_MANY")
    assert "100000 items in one map: 100001" in view["error"]["message"]
    assert (shown["status"], shown.get("items")) == ("failed", None)
    path = f"runs/{view['runId']}"
    assert rest.get(f"{path}/nodes/{shown['nodeId']}/items") == {"items": [], "nextCursor": None}
    answer = rest.http.get(f"/api/v1/{path}/logs", params={"scope": f"{shown['nodeId']}:0"})
    assert answer.status_code == 404
    rest.read_everything()
    assert rest.run(listed(3))["status"] == "succeeded"
    system.restart()
    assert rest.get(path)["error"] == view["error"]
    assert rest.run(listed(3))["status"] == "succeeded"


def test_runs_with_maps_are_cancelled_and_repeated_by_a_filter(system: System) -> None:
    rest = system.rest
    code = "import time\ndef main(n):\n    time.sleep(60 if n else 0)\n    return n"
    first = node("core.echo", "first", parameters={"value": [0, 1, 2]})
    box = node(
        "core.container", "box", map={"over": "=nodes.first.results.value", "concurrency": 2}
    )
    inner = node(
        "core.python",
        "inner",
        parent=box["id"],
        parameters={"code": code, "inputs": {"n": "=item"}},
    )
    definition = workflow(first, box, inner, edges=[link(first, box)])
    rest.post("workflows", definition, wanted=201)
    of = {"workflowId": definition["id"]}
    others = rest.submit(listed(3))
    runs = [rest.post("runs", of)["runId"] for _ in range(4)]

    def all_begun() -> bool | None:
        counts = [by_label(rest.get(f"runs/{one}"))["box"].get("items") for one in runs]
        return all(counts) or None

    system.until(all_begun, "four maps that have begun")
    dry = rest.post("runs/cancel", {**of, "dryRun": True}, wanted=200)
    assert [one["runId"] for one in dry["items"]] == runs[::-1]
    pages = rest.post("runs/cancel", {**of, "limit": 3}, wanted=200)
    assert (len(pages["items"]), pages["more"]) == (3, True)
    system.restart()
    rest.post("runs/cancel", of, wanted=200)
    for run_id in runs:
        view = rest.finished(run_id)
        counts = by_label(view)["box"]["items"]
        assert view["status"] == "cancelled", view["error"]
        assert counts["total"] == 3 == counts["succeeded"] + counts["cancelled"], counts
        assert by_label(view)["first"]["status"] == "succeeded"
    assert rest.finished(others)["status"] == "succeeded"

    again = rest.post("runs/rerun", {**of, "status": "cancelled"}, wanted=200)
    assert [one["runId"] for one in again["items"]] == runs[::-1]
    new = [one["newRunId"] for one in again["items"]]
    assert len(set(new)) == 4
    for run_id in new:
        shown = rest.get(f"runs/{run_id}")
        assert shown["rerunOf"] in runs
        assert by_label(shown)["first"]["status"] == "succeeded", "it is taken over"
    rest.post("runs/cancel", of, wanted=200)
    assert {rest.finished(run_id)["status"] for run_id in new} == {"cancelled"}
    assert rest.post("runs/cancel", of, wanted=200)["items"] == []


def at_zero(rest: Rest, gauge: str) -> bool | None:
    return rest.metric(gauge) == 0 or None


class Reader:
    """Reads pages of the items of a map, one after the other, and holds each against what a page is."""

    def __init__(self, system: System, run_id: str, node_id: str, number: int) -> None:
        self._path = f"{system.url}/api/v1/runs/{run_id}/nodes/{node_id}/items"
        self._number = number
        self._cursor: str | None = None
        self._next = 0

    def read(self, http: httpx.Client, count: int) -> int:
        """The number of items that were read."""
        seen = 0
        for _ in range(count):
            seen += self._page(http)
        return seen

    def _page(self, http: httpx.Client) -> int:
        limit = (1, 50, 200)[self._number % 3]
        query: dict[str, Any] = {"limit": limit}
        if self._cursor is not None:
            query["cursor"] = self._cursor
        answer = http.get(self._path, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        items = [one["item"] for one in page["items"]]
        assert items == list(range(self._next, self._next + len(items)))
        for one in page["items"]:
            is_done = one["status"] == "succeeded"
            assert (one["result"] == {"value": one["item"]}) == is_done, one
            assert (one["finishedAt"] is not None) == is_done, one
        self._cursor = page["nextCursor"]
        assert (self._cursor is None) == (self._next + len(items) == ITEMS), (items, self._next)
        self._next = 0 if self._cursor is None else self._next + len(items)
        return len(items)


@pytest.mark.timeout(300)
def test_a_flood_of_readers_sees_consistent_pages_while_a_map_runs(system: System) -> None:
    rest = system.rest
    maps = node(
        "core.echo", "maps", parameters={"value": "=index"}, map={"over": f"=range({ITEMS})"}
    )
    sent = rest.metric("cmd_dispatch_total")
    run_id = rest.submit(workflow(maps))
    system.until(
        lambda: by_label(rest.get(f"runs/{run_id}"))["maps"].get("items"), "a map that has begun"
    )
    readers = [Reader(system, run_id, maps["id"], number) for number in range(READERS)]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with (
        httpx.Client(headers=headers, timeout=60) as http,
        ThreadPoolExecutor(READERS) as threads,
    ):
        each = REQUESTS // READERS
        read = list(threads.map(lambda one: one.read(http, each), readers))
    assert all(read)
    view = rest.finished(run_id, within_s=240)
    assert view["status"] == "succeeded", view["error"]
    assert by_label(view)["maps"]["items"]["succeeded"] == ITEMS
    result = rest.get(f"runs/{run_id}/nodes/{maps['id']}")["result"]
    assert result["items"] == [{"value": item} for item in range(ITEMS)]
    assert rest.metric("cmd_dispatch_total") - sent == ITEMS
    for gauge in ("astraflow_queue_depth", "astraflow_active_tasks"):
        system.until(partial(at_zero, rest, gauge), f"{gauge} at 0")
