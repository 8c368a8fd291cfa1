"""Browser sessions in a real Chromium: they follow the edges, and they are lost by name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.pages import Pages, serving
from tests.processes.process import ROOT
from tests.processes.system import System, running
from tests.processes.waiting import until

OPEN = "2b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"
CLICK = "8f5dea1f-6a13-4e43-843f-5361c40f8f5a"
GATE = "11111111-0000-4000-8000-000000000001"
GRACE_S = 3.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A fresh installation: the package came with it, and no worker has it yet."""
    with running(tmp_path_factory.mktemp("browser"), 3) as site:
        yield site


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


def smoke(pages: Pages) -> dict[str, Any]:
    """The two-node example, verbatim but for the address."""
    workflow: dict[str, Any] = json.loads((ROOT / "examples/playwright-smoke.json").read_text())
    workflow["nodes"][0]["parameters"]["url"] = pages.url
    return workflow


def gated(pages: Pages, policy: str | None = None) -> dict[str, Any]:
    """The same with a gate between the two, which the test opens."""
    workflow = smoke(pages)
    gate = {
        "id": GATE,
        "type": "core.http",
        "label": "Gate",
        "parameters": {"url": f"{pages.url}gate", "timeoutSeconds": 60},
    }
    workflow["nodes"].append(gate)
    if policy is not None:
        workflow["nodes"][1]["onResourceLost"] = policy
    workflow["edges"][0]["target"] = {"node": GATE, "port": "trigger"}
    workflow["edges"].append(
        {"source": {"node": GATE, "port": "done"}, "target": {"node": CLICK, "port": "trigger"}}
    )
    return workflow


def test_the_example_runs_both_nodes_in_one_session_on_one_worker_of_three(
    site: System, pages: Pages
) -> None:
    run = site.rest.run(smoke(pages))
    assert run["status"] == "succeeded", run
    opened, clicked = run["nodes"]
    assert opened["workerId"] == clicked["workerId"]
    assert opened["result"]["page"]["resourceRef"] == clicked["result"]["page"]["resourceRef"]
    # The click was made on the page that the first node had opened: it asks with the cookie that page set.
    assert [one for one in pages.asked if one[0] != "/favicon.ico"] == [
        ("/", None),
        ("/login?user=", "visit=1"),
    ]
    assert clicked["result"]["metadata"]["title"] == "In"


def test_the_session_ends_with_its_run(site: System, pages: Pages) -> None:
    run_id = site.rest.submit(smoke(pages))
    assert site.rest.finished(run_id)["status"] == "succeeded"

    def ended() -> bool:
        [session] = site.rest.get("resources", runId=run_id)["items"]
        assert session["type"] == "browserSession"
        return bool(session["state"] == "released")

    until(ended, "the session is released", 20)


def test_a_session_can_be_written_into_read_pictured_and_closed(site: System, pages: Pages) -> None:
    workflow = smoke(pages)
    ids = {
        name: f"22222222-0000-4000-8000-00000000000{n}"
        for n, name in enumerate(["input", "extract", "screenshot", "close"])
    }
    package = workflow["nodes"][0]["package"]
    parameters: dict[str, dict[str, Any]] = {
        "input": {"selector": "#user", "text": "ann"},
        "extract": {"selector": "#who"},
        "screenshot": {},
        "close": {},
    }
    for name, given in parameters.items():
        workflow["nodes"].append(
            {
                "id": ids[name],
                "type": f"playwright.{name}",
                "label": name,
                "package": package,
                "parameters": given,
            }
        )
    # open → input → click → extract → screenshot → close, the page handed on from one to the next.
    del workflow["nodes"][1]["ui"]  # its own ports have no page to hand on; the manifest's have
    steps = [OPEN, ids["input"], CLICK, ids["extract"], ids["screenshot"], ids["close"]]
    workflow["edges"] = [
        {"source": {"node": one, "port": "page"}, "target": {"node": other, "port": "page"}}
        for one, other in pairwise(steps)
    ]
    run = site.rest.run(workflow)
    assert run["status"] == "succeeded", run
    nodes = {node["label"]: node for node in run["nodes"]}
    assert nodes["extract"]["result"]["value"] == "logged in"
    assert "/login?user=ann" in pages.paths()
    [image] = nodes["screenshot"]["artifacts"]
    downloaded = site.rest.http.get(f"/api/v1/artifacts/{image['resourceId']}")
    assert downloaded.status_code == 200
    assert downloaded.content.startswith(b"\x89PNG")
    assert len(downloaded.content) == image["sizeBytes"]


def test_an_element_that_is_not_there_fails_the_node_and_says_which(
    site: System, pages: Pages
) -> None:
    workflow = smoke(pages)
    workflow["nodes"][1]["parameters"].update(selector="#nowhere", timeoutMs=300)
    run = site.rest.run(workflow)
    error = run["nodes"][1]["error"]
    assert error["category"] == "DATA_QUALITY"
    assert "#nowhere" in error["message"]


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[System]:
    """Two workers with the package, one of which will be killed."""
    with running(tmp_path, 2) as site:
        site.rest.install("crawlerx_playwright", "2025.10.0")
        yield site


def _lose_the_owner(site: System, pages: Pages, policy: str) -> tuple[str, str]:
    """Kill the worker that has the session while the run waits at the gate; the run, and who was killed."""
    run_id = site.rest.submit(gated(pages, policy))
    until(lambda: "/gate" in pages.paths(), "the run waits at the gate")
    owner = site.rest.nodes(run_id)["Open Base Page"]["workerId"]
    assert _chromiums(site), "a browser runs"
    name = site.rest.worker(owner)["name"]
    site.workers[name].kill()
    return run_id, name


def test_when_the_owner_is_killed_between_the_nodes_the_run_fails_by_name(
    doomed: System, pages: Pages
) -> None:
    run_id, _ = _lose_the_owner(doomed, pages, "fail")
    killed = time.monotonic()
    pages.gate.set()
    run = doomed.rest.finished(run_id)
    took = time.monotonic() - killed
    assert run["status"] == "failed"
    assert run["error"]["code"] == "E.RESOURCE.LOST"
    assert "did not come back" in doomed.rest.story(run_id, CLICK)
    print(f"lost by name {took:.1f} s after the kill; the grace is {GRACE_S} s")
    # The guard of a host ends everything below it, a browser with its dozen processes included.
    until(lambda: not _chromiums(doomed), "its browser is gone", 20)


def test_with_rebuild_the_maker_runs_again_elsewhere_and_the_run_succeeds(
    doomed: System, pages: Pages
) -> None:
    run_id, name = _lose_the_owner(doomed, pages, "rebuild")
    pages.gate.set()
    run = doomed.rest.finished(run_id)
    assert run["status"] == "succeeded", run
    opened, clicked = run["nodes"][0], run["nodes"][1]
    assert opened["attempt"] == 2
    assert opened["workerId"] == clicked["workerId"]
    assert doomed.rest.worker(opened["workerId"])["name"] != name
    for node_id in (OPEN, CLICK):
        assert "it is made again by 2 nodes" in doomed.rest.story(run_id, node_id)


def _chromiums(site: System) -> list[str]:
    return [command for command in site.family().values() if "chrom" in command]
