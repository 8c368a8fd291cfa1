"""The REST API, as tests ask it: blocking, and failing with what was answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from astraflow.packages.building import build_archive
from tests.processes.waiting import WAIT_S, until

__all__ = ["TOKEN", "Rest"]

TOKEN = "a token for tests"
LISTS = ("runs", "workers", "resources", "workflows", "audit", "packages", "catalog/nodes")


class Rest:
    """A client of one scheduler."""

    def __init__(self, url: str) -> None:
        # No connection is kept: a test that opens one must not seem to leave it behind.
        limits = httpx.Limits(max_keepalive_connections=0)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60, limits=limits)

    def close(self) -> None:
        self.http.close()

    def status(self, path: str) -> int:
        """The status of an answer; 0 where there is none."""
        try:
            return self.http.get(path).status_code
        except httpx.TransportError:
            return 0

    def get(self, path: str, **query: Any) -> Any:
        response = self.http.get(f"/api/v1/{path}", params=query or None)
        assert response.status_code == 200, (path, response.status_code, response.text)
        return response.json()

    def post(self, path: str, body: Any = None, *, wanted: int = 202) -> Any:
        response = self.http.post(f"/api/v1/{path}", json=body)
        assert response.status_code == wanted, (path, response.status_code, response.text)
        return response.json()

    def ask(self, method: str, path: str, within_s: float = WAIT_S, **more: Any) -> httpx.Response:
        """Ask until there is an answer that is not "later"."""

        def look() -> httpx.Response | None:
            try:
                response = self.http.request(method, path, **more)
            except httpx.TransportError:
                return None
            return None if response.status_code == 503 else response

        answered = until(lambda: [one for one in [look()] if one], f"{method} {path}", within_s)
        return answered[0]

    # -- runs -------------------------------------------------------------------------------

    def submit(self, workflow: dict[str, Any], **body: Any) -> str:
        return str(self.post("runs", {"workflow": workflow, **body})["runId"])

    def run(self, workflow: dict[str, Any], **body: Any) -> dict[str, Any]:
        """Submit it; the run, when it has ended."""
        return self.finished(self.submit(workflow, **body))

    def run_status(self, run_id: str) -> str:
        return str(self.get(f"runs/{run_id}")["status"])

    def finished(self, run_id: str, within_s: float = WAIT_S) -> dict[str, Any]:
        """The run, when it has ended."""

        def ended() -> dict[str, Any] | None:
            view: dict[str, Any] = self.get(f"runs/{run_id}")
            return view if view["finishedAt"] is not None else None

        return until(ended, f"the end of {self.nodes(run_id)}", within_s)

    def nodes(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The nodes of a run by their labels."""
        return {node["label"]: node for node in self.get(f"runs/{run_id}")["nodes"]}

    def story(self, run_id: str, node_id: str) -> str:
        return "\n".join(self.get(f"runs/{run_id}/nodes/{node_id}")["story"])

    # -- workers and packages ---------------------------------------------------------------

    def worker(self, worker_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"workers/{worker_id}")
        return found

    def online(self) -> list[dict[str, Any]]:
        return [one for one in self.get("workers")["items"] if one["status"] == "online"]

    def publish(self, folder: Path, **built: Any) -> str:
        """Build and publish a package; its version."""
        archive = build_archive(folder, folder.parent / "dist", **built)
        content, headers = archive.path.read_bytes(), {"Content-Type": "application/zip"}
        response = self.http.post("/api/v1/packages", content=content, headers=headers)
        assert response.status_code in (200, 201), response.text
        return str(response.json()["version"])

    def install(self, name: str, version: str) -> None:
        """On every worker."""
        for worker in self.online():
            body = {"type": "pkg.install", "name": name, "version": version}
            self.post(f"workers/{worker['workerId']}/commands", body)
        until(lambda: all(_has(one, name, version) for one in self.online()), f"{name} on all")

    # -- all of it --------------------------------------------------------------------------

    def metric(self, name: str) -> float:
        """The sum of all series of a counter."""
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def read_everything(self) -> None:
        """Every list, and every run, resource and worker that is in one, can be shown."""
        for name in LISTS:
            self.get(name)
        for run in self.get("runs")["items"]:
            for part in ("", "/logs", "/artifacts", "/definition"):
                self.get(f"runs/{run['runId']}{part}")
        for row in self.get("resources")["items"]:
            self.get(f"resources/{quote(row['resourceId'], safe='')}", workerId=row["workerId"])
        for worker in self.get("workers")["items"]:
            self.worker(quote(worker["workerId"], safe=""))
        assert self.status("/metrics") == 200


def _has(worker: dict[str, Any], name: str, version: str) -> bool:
    wanted = {"name": name, "version": version, "status": "installed"}
    return any({**one, **wanted} == one for one in worker["packages"])
