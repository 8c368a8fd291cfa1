"""Make a store of this version, to be kept: every later version must read it and go on with it.

    python -m tests.compat.make_store tests/compat/VERSION

It runs the product: a scheduler, a worker, requests; then writes into the folder
    astraflow.db.gz     the SQLite file, as a scheduler that was killed left it
    store.backup        the same as a backup, with its blobs
    expected.json       what the API answered about it, and how its active runs can be ended
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import astraflow
from tests.definitions import link, node, workflow
from tests.e2e.test_versions import write_package
from tests.processes.command_line import astra
from tests.processes.process import ROOT
from tests.processes.rest import Rest
from tests.processes.system import System, running

__all__ = ["ENVIRON", "lasting", "stable", "tenant_events"]

ENVIRON = {"ASTRA_SCHEDULER_SECRETS_KEY": "YSBrZXkgdGhhdCBpcyBrZXB0IGZvciBhbGwgdGltZXM="}
SECRET_VALUE = "a value that was kept"
VOLATILE = frozenset(
    {
        "agoSeconds",
        "connectedAt",
        "hasMore",
        "inflight",
        "lastSeenAt",
        "lastUsedAt",
        "load",
        "nextCursor",
        "nextTimes",
        "sessionId",
        "usedAt",
    }
)
"""What goes on changing."""


def stable(value: Any) -> Any:
    """An answer without what goes on changing."""
    if isinstance(value, dict):
        return {key: stable(one) for key, one in value.items() if key not in VOLATILE}
    return [stable(one) for one in value] if isinstance(value, list) else value


def lasting(workers: dict[str, Any]) -> dict[str, Any]:
    """A list of workers without what they are like now."""
    kept = ("workerId", "name", "labels", "maxParallel", "version", "packages")
    return {"items": [{name: one[name] for name in kept} for one in workers["items"]]}


def tenant_events(rest: Rest, count: int) -> list[dict[str, Any]]:
    """The first events of the tenant's stream."""
    found: list[dict[str, Any]] = []
    fields: dict[str, str] = {}
    with rest.http.stream("GET", "/api/v1/events", headers={"Last-Event-ID": "0"}) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
                continue
            if "id" in fields:
                found.append({**fields, "data": json.loads(fields["data"])})
            fields = {}
            if len(found) == count:
                break
    return found


def python(label: str, code: str, **parameters: Any) -> dict[str, Any]:
    return node("core.python", label, parameters={"code": code, **parameters})


class Maker:
    """Fills one store, and notes what is in it."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.rest = system.rest
        self.paths: list[str] = []
        self.active: dict[str, dict[str, Any]] = {}

    def ended(self, definition: dict[str, Any], status: str, **body: Any) -> str:
        run_id = self.rest.submit(definition, **body)
        if status == "cancelled":
            self.system.until(lambda: self.rest.run_status(run_id) == "running", "a run to cancel")
            self.rest.post(f"runs/{run_id}/cancel", {}, wanted=200)
        assert self.rest.finished(run_id)["status"] == status
        parts = ("", "/definition", "/logs", "/timeline", "/artifacts")
        self.paths += [f"runs/{run_id}{part}" for part in parts]
        self.paths += [
            f"runs/{run_id}/nodes/{one['nodeId']}" for one in self.rest.nodes(run_id).values()
        ]
        return run_id

    def finished_runs(self) -> None:
        say = "def main():\n    print('a line')\n    return {'n': 1, 'text': 'ä ✓'}"
        first, second = python("first", say), node("core.echo", "second", parameters={"value": 2})
        ran = self.ended(workflow(first, second, edges=[link(first, second)]), "succeeded")
        broken = node("core.fail", "Breaks", parameters={"message": "broken on purpose"})
        self.ended(workflow(broken), "failed")
        long = node("core.sleep", "Long sleep", parameters={"seconds": 600})
        self.ended(workflow(long), "cancelled")
        example = json.loads((ROOT / "examples" / "map.json").read_text())
        self.ended(example, "succeeded")
        again = self.rest.post(f"runs/{ran}/rerun", {})["runId"]
        assert self.rest.finished(again)["status"] == "succeeded"
        self.paths += [f"runs/{again}", f"runs/{ran}/compare/{again}", "runs?limit=200"]

    def workflows(self) -> None:
        flow = json.loads((ROOT / "examples" / "triggers.json").read_text())
        place = f"workflows/{flow['id']}"
        self.rest.post("workflows", flow, wanted=201)
        flow["metadata"]["description"] = "Another version"
        saved = self.rest.http.put(f"/api/v1/{place}", json=flow)
        assert saved.status_code == 200, saved.text
        fired = self.rest.post(f"{place}/triggers/{flow['triggers'][0]['id']}/run", {})["runId"]
        assert self.rest.finished(fired)["status"] == "succeeded"
        trigger = f"{place}/triggers/{flow['triggers'][0]['id']}"
        self.paths += ["workflows", place, f"{place}/versions", f"{place}?version=1"]
        self.paths += ["triggers", f"{trigger}/history", f"runs/{fired}"]

    def access(self) -> None:
        put = self.rest.http.put("/api/v1/secrets/kept", json={"value": SECRET_VALUE})
        assert put.status_code in (200, 201), put.text
        user = {"name": "kim", "role": "operator", "password": "a good long password"}
        self.rest.post("users", user, wanted=201)
        self.rest.post("tokens", {"role": "viewer", "label": "kept"}, wanted=201)
        source = write_package(self.system.folder / "source", "1.0.0")
        version = self.rest.publish(source)
        name = json.loads((source / "manifest.json").read_text())["name"]
        self.paths += [f"packages/{name}", f"packages/{name}/{version}"]
        self.paths += ["secrets", "users", "tokens", "packages", "workers"]

    def active_runs(self) -> None:
        """Their worker is killed, and does not come back."""
        held = node("core.sleep", "Held", parameters={"seconds": 2})
        self.active[self.rest.submit(workflow(held))] = {"label": "was running"}
        (run_id,) = self.active
        self.system.until(
            lambda: self.rest.nodes(run_id)["Held"]["status"] == "running", "an attempt"
        )
        self.system.workers["worker-1"].kill()
        approval = node("core.approval", "Ask", approval={"message": "Go on?"})
        asked = self.rest.submit(workflow(approval))
        self.active[asked] = {"approve": approval["id"]}
        signal = node("core.signal", "Paid", signal={"name": "paid"})
        after = node("core.echo", "After", parameters={"value": 1})
        told = self.rest.submit(workflow(signal, after, edges=[link(signal, after)]))
        self.active[told] = {"signal": "paid"}
        secret = "def main(key):\n    return {'length': len(key)}"
        uses = python("Secret", secret, inputs={"key": {"secretRef": {"name": "kept"}}})
        self.active[self.rest.submit(workflow(uses))] = {"label": "uses a secret"}
        self.system.until(lambda: self._are_running(asked, told), "both wait")

    def _are_running(self, *run_ids: str) -> bool:
        return all(self.rest.run_status(run_id) == "running" for run_id in run_ids)

    def expected(self) -> dict[str, Any]:
        audit = self.rest.get("audit", limit=200)
        assert audit["items"]
        reads = {path: stable(self.rest.get(path)) for path in dict.fromkeys(self.paths)}
        reads["workers"] = lasting(reads["workers"])
        reads["audit?limit=200"] = stable(audit)
        return {
            "software": astraflow.__version__,
            "reads": reads,
            "tenantEvents": tenant_events(self.rest, 30),
            "active": self.active,
        }


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, running(Path(place), 1, environ=ENVIRON) as system:
        maker = Maker(system)
        maker.finished_runs()
        maker.workflows()
        maker.access()
        maker.active_runs()
        expected = maker.expected()
        system.scheduler.kill()
        file = system.data / "astraflow.db"
        with closing(sqlite3.connect(file)) as connection:  # the log goes into the file
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        expected["schemaVersion"] = version
        text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / "expected.json").write_text(text + "\n")
        (folder / "astraflow.db.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        backup = ["db", "backup", str((folder / "store.backup").absolute()), "--yes"]
        done = astra(*backup, "--data-dir", str(system.data), cwd=folder, **system.environ)
        assert done.code == 0, done


if __name__ == "__main__":
    make(Path(sys.argv[1]))
