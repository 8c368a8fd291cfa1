"""Files: pinned where they are, downloaded by link and by range, and those that outlive their worker."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import httpx

from tests.definitions import link, node, workflow
from tests.e2e.pages import serving
from tests.processes.system import System, running
from tests.processes.waiting import until

TEXT = "kept for later\n" * 1000


def made_and_read(url: str | None = None, **file: Any) -> dict[str, Any]:
    """A node makes a file, one reads it; with `url`, a gate between the two that the test opens."""
    make = node("core.file", "make", parameters={"name": "a.txt", **file})
    read = node("core.read_file", "read")
    if url is None:
        return workflow(make, read, edges=[link(make, read, "file")])
    gate = node("core.http", "gate", parameters={"url": f"{url}gate", "timeoutSeconds": 60})
    edges = [link(make, read, "file"), link(make, gate), link(gate, read)]
    return workflow(make, read, gate, edges=edges)


def test_a_file_is_read_where_it_was_made_and_downloaded_by_link_and_by_range(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 2) as site:
        run = site.rest.run(made_and_read(text=TEXT))
        made, read = run["nodes"]
        assert made["workerId"] == read["workerId"]
        assert read["result"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
        [listed] = run["artifacts"]
        link = site.rest.http.post(f"/api/v1/artifacts/{listed['resourceId']}").json()
        assert link["sizeBytes"] == len(TEXT)
        # The link alone opens it, for anybody, and for a part of it.
        whole = httpx.get(link["url"])
        assert (whole.status_code, whole.text) == (200, TEXT)
        part = httpx.get(link["url"], headers={"Range": "bytes=5-8"})
        assert (part.status_code, part.text) == (206, TEXT[5:9])
        assert httpx.get(f"{link['url']}x").status_code == 401
        assert httpx.get(link["url"].partition("?")[0]).status_code == 401


def test_a_reference_of_an_earlier_run_is_pinned_and_refused_when_it_cannot_be_had(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 2) as site:
        run = site.rest.run(made_and_read(text=TEXT))
        file = run["nodes"][0]["result"]["file"]
        owner = run["nodes"][0]["workerId"]
        node = {"id": str(uuid.uuid4()), "type": "core.read_file", "parameters": {"file": file}}
        again = {"id": str(uuid.uuid4()), "nodes": [node], "edges": []}
        second = site.rest.run(again)
        assert second["status"] == "succeeded"
        assert second["nodes"][0]["workerId"] == owner
        elsewhere = {"resourceRef": {**file["resourceRef"], "workerId": "nobody"}}
        both = {**node, "type": "core.echo", "parameters": {"value": [file, elsewhere]}}
        conflict = {**again, "nodes": [both]}
        assert site.rest.http.post("/api/v1/runs", json={"workflow": conflict}).status_code == 409
        site.workers[site.rest.worker(owner)["name"]].kill()
        until(lambda: len(site.rest.online()) == 1, "the owner is missed", 20)
        node["parameters"] = {"file": file}
        refused = site.rest.http.post("/api/v1/runs", json={"workflow": again})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0


def test_a_durable_file_is_read_on_another_worker_when_its_own_is_killed(tmp_path: Path) -> None:
    with serving() as pages, running(tmp_path, 2) as site:
        run_id = site.rest.submit(made_and_read(pages.url, text=TEXT, durable=True))
        until(lambda: "/gate" in pages.paths(), "the run waits at the gate")
        made = site.rest.nodes(run_id)["make"]
        resource_id = made["artifacts"][0]["resourceId"]
        until(lambda: _has_copy(site, resource_id), "the copy is made", 20)
        name = site.rest.worker(made["workerId"])["name"]
        site.workers[name].kill()
        pages.gate.set()
        run = site.rest.finished(run_id)
        assert run["status"] == "succeeded", run
        read = next(node for node in run["nodes"] if node["label"] == "read")
        assert site.rest.worker(read["workerId"])["name"] != name
        assert read["result"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()


def _has_copy(site: System, resource_id: str) -> bool:
    return bool(site.rest.get(f"resources/{resource_id}")["hasCopy"])
