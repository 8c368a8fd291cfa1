"""The canvas of the web app: 500 nodes while a run sends about 200 events a second, beside the same page at rest."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from statistics import median, quantiles
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from astraflow.bench.processes import TOKEN, running
from benchmarks.figures import Figure

CHAINS = 50
STEPS = 10
SLEEP_S = 0.7
WATCH_MS = 5_000
ROUNDS = 3

FRAMES = """(ms) => new Promise((resolve) => {
  const frames = [], tasks = [];
  const watcher = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)));
  watcher.observe({type: 'longtask'});
  const begun = performance.now();
  let before = begun;
  const look = (now) => {
    frames.push(now - before);
    before = now;
    if (now - begun < ms) return requestAnimationFrame(look);
    watcher.disconnect();
    resolve({frames: frames.slice(1), tasks});
  };
  requestAnimationFrame(look);
})"""


def workflow() -> dict[str, Any]:
    """Chains side by side, drawn as a grid."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for chain in range(CHAINS):
        for step in range(STEPS):
            place = {"x": (chain // 25) * 3_000 + step * 280, "y": chain % 25 * 120}
            nodes.append(
                {
                    "id": str(uuid.uuid4()),
                    "type": "core.sleep",
                    "label": f"Step {chain}.{step}",
                    "parameters": {"seconds": SLEEP_S},
                    "position": place,
                }
            )
            if step > 0:
                source, target = nodes[-2]["id"], nodes[-1]["id"]
                edges.append({"source": {"node": source}, "target": {"node": target}})
    metadata = {"name": "Canvas"}
    return {"id": str(uuid.uuid4()), "metadata": metadata, "nodes": nodes, "edges": edges}


def watched(page: Page) -> tuple[float, float, float]:
    """The median and the 95th percentile of the time of a frame, and the share of time in long tasks."""
    found = page.evaluate(FRAMES, WATCH_MS)
    frames = found["frames"]
    return median(frames), quantiles(frames, n=20)[18], sum(found["tasks"]) / WATCH_MS


def figures() -> list[Figure]:
    live: list[tuple[float, float, float]] = []
    rest: list[tuple[float, float, float]] = []
    program = os.environ.get("ASTRA_CHROMIUM") or shutil.which("chromium") or "google-chrome"
    with running() as system, sync_playwright() as driver:
        url = f"http://127.0.0.1:{system.port}"
        client = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False
        )
        browser = driver.chromium.launch(
            executable_path=shutil.which(program), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url + client.post("/api/v1/auth/links").json()["path"])
        page.get_by_text("Live", exact=True).wait_for()
        for _ in range(ROUNDS):
            run_id = client.post("/api/v1/runs", json={"workflow": workflow()}).json()["runId"]
            page.goto(f"{url}/runs/{run_id}")
            page.locator(".react-flow__node").first.wait_for()
            live.append(watched(page))
            until_ended(client, run_id)
            rest.append(watched(page))
        browser.close()
    middle = [median(column) for column in zip(*live, strict=True)]
    still = [median(column) for column in zip(*rest, strict=True)]
    return [
        Figure("frame of 500 nodes at 200 events/s, median", middle[0], "ms"),
        Figure("frame of 500 nodes at 200 events/s, 95th percentile", middle[1], "ms"),
        Figure("the same, beside the page at rest", middle[0] / still[0], "times", budget=1.5),
        Figure("share of time in tasks over 50 ms", middle[2], "of 1", budget=0.1),
        Figure("frame of the page at rest, median", still[0], "ms"),
    ]


def until_ended(client: httpx.Client, run_id: str) -> None:
    while (status := client.get(f"/api/v1/runs/{run_id}").json()["status"]) != "succeeded":
        assert status in ("queued", "running"), status
        time.sleep(0.2)
