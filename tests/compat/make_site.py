"""Make the store of a site of this version, to be kept beside that of `make_store`: several tenants, shards and lanes.

    python -m tests.compat.make_site tests/compat/VERSION

It runs the product on PostgreSQL, and writes into the folder
    site.backup     the store, as a scheduler that was killed left it; the format is one for both databases
    site.json       who can ask for what, what the API answered, and how the active runs can be ended
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import astraflow
from astraflow.core.cluster.lanes import lane_of_key
from tests.compat.make_store import ENVIRON, lasting, stable
from tests.definitions import link, node, workflow
from tests.processes.command_line import astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.rest import Rest
from tests.processes.system import System, running

__all__ = ["SITE", "client_of", "lanes_of", "start_worker"]

SITE = {**ENVIRON, "ASTRA_SCHEDULER_SEVERAL_LANES": "true"}
LANES = {"acme": 2, "globex": 1}
PLACES = "SELECT json_object_agg(name, shard) FROM astraflow.lanes"
LANE_OF = "SELECT lane FROM astraflow.runs WHERE run_id = '{run_id}'"
SCHEMA = "SELECT max(version) FROM astraflow.migrations"


def client_of(system: System, token: str) -> Rest:
    rest = Rest(system.url)
    rest.http.headers["authorization"] = f"Bearer {token}"
    return rest


def start_worker(system: System, tenant: str, token: str) -> None:
    environ = {"ASTRA_WORKER_AUTH_TOKEN": token, "ASTRA_WORKER_TENANT": tenant}
    system.new_worker(f"worker-{tenant}", **environ).start()


def lanes_of(url: str) -> dict[str, int]:
    """The shard of each lane of each tenant, by its name."""
    found: dict[str, int] = json.loads(ask(url, PLACES))
    return found


class SiteMaker:
    """Fills the tenants of one site, and notes what is in them."""

    def __init__(self, system: System, url: str) -> None:
        self.system = system
        self.url = url
        self.tenants: dict[str, dict[str, Any]] = {}

    def make_tenant(self, tenant: str, lanes: int) -> None:
        site = self.system.rest
        site.post("tenants", {"tenant": tenant}, wanted=201)
        made = site.post("tokens", {"tenant": tenant, "role": "admin"}, wanted=201)
        if lanes > 1:
            given = site.http.put(f"/api/v1/tenants/{tenant}/lanes", json={"count": lanes})
            assert given.status_code == 200, given.text
        start_worker(self.system, tenant, made["token"])
        rest = client_of(self.system, made["token"])
        self.system.until(lambda: len(rest.online()) == 1, "the worker of the tenant")
        noop = workflow(node("core.noop"))
        for lane in range(lanes):
            self.system.until(lambda lane=lane: self._run_in(rest, lane, lanes, noop), "the lane")  # type: ignore[misc]
        paths, active = self._fill(rest, lanes)
        self.tenants[tenant] = {"token": made["token"], "paths": paths, "active": active}
        rest.close()

    def _run_in(self, rest: Rest, lane: int, lanes: int, flow: dict[str, Any]) -> str:
        """A run, if it is of this lane: others take runs as soon as a worker is there."""
        while lane_of_key(key := str(uuid4()), range(lanes)) != lane:
            pass
        made = rest.ask(
            "POST", "/api/v1/runs", json={"workflow": flow}, headers={"Idempotency-Key": key}
        )
        assert made.status_code == 202, made.text
        run_id = str(made.json()["runId"])
        return run_id if ask(self.url, LANE_OF.format(run_id=run_id)) == lane else ""

    def _fill(self, rest: Rest, lanes: int) -> tuple[list[str], dict[str, dict[str, Any]]]:
        paths = ["runs?limit=200", "workers", "users", "secrets"]
        active: dict[str, dict[str, Any]] = {}
        for lane in range(lanes):
            first, second = (
                node("core.echo", "a", parameters={"value": lane}),
                node("core.noop", "b"),
            )
            ended = self._run_in(
                rest, lane, lanes, workflow(first, second, edges=[link(first, second)])
            )
            assert rest.finished(ended)["status"] == "succeeded"
            paths += [f"runs/{ended}", f"runs/{ended}/timeline"]
            signal = node("core.signal", "Paid", signal={"name": "paid"})
            after = node("core.echo", "After", parameters={"value": lane})
            waits = workflow(signal, after, edges=[link(signal, after)])
            active[self._run_in(rest, lane, lanes, waits)] = {"lane": lane, "signal": "paid"}
        approval = node("core.approval", "Ask", approval={"message": "Go on?"})
        asked = rest.submit(workflow(approval))
        active[asked] = {"lane": 0, "approve": approval["id"]}
        self.system.until(
            lambda: all(rest.run_status(run_id) == "running" for run_id in active), "all wait"
        )
        user = {"name": "kim", "role": "operator", "password": "a good long password"}
        rest.post("users", user, wanted=201)
        put = rest.http.put("/api/v1/secrets/kept", json={"value": "a value"})
        assert put.is_success, put.text
        return paths, active

    def expected(self) -> dict[str, Any]:
        for tenant in self.tenants.values():
            rest = client_of(self.system, tenant["token"])
            tenant["reads"] = {path: stable(rest.get(path)) for path in tenant.pop("paths")}
            tenant["reads"]["workers"] = lasting(tenant["reads"]["workers"])
            rest.close()
        return {
            "software": astraflow.__version__,
            "schemaVersion": ask(self.url, SCHEMA),
            "lanes": lanes_of(self.url),
            "tenants": self.tenants,
        }


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        postgres_server() as url,
        running(Path(place), environ=SITE, database_url=url) as system,
    ):
        maker = SiteMaker(system, url)
        for tenant, lanes in LANES.items():
            maker.make_tenant(tenant, lanes)
        expected = maker.expected()
        for process in system.processes:
            process.kill()
        text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / "site.json").write_text(text + "\n")
        file = str((folder / "site.backup").absolute())
        kept = ["--data-dir", str(system.data), "--database-url", url, "--yes"]
        done = astra("db", "backup", file, *kept, cwd=folder, **system.environ)
        assert done.code == 0, done


if __name__ == "__main__":
    make(Path(sys.argv[1]))
