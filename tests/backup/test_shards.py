"""Tenants of a site live in several shards; a backup of it is restored where there is only one, and the other way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from astraflow.core.security.policy import SITE_TENANT
from tests.backup.test_former_life import command, start_restored
from tests.definitions import node, workflow
from tests.processes.command_line import astra
from tests.processes.postgres import ask, database, postgres_server
from tests.processes.rest import Rest
from tests.processes.system import System, running

TENANTS = ("acme", "globex")
SHARDS = "SELECT count(DISTINCT shard) FROM astraflow.lanes"
SENT = (
    "INSERT INTO astraflow.sent_audits (sent_id, tenant, at, who, action, subject) "
    f"VALUES ('5.1.1', '{SITE_TENANT}', 1, 'an admin', 'tenant.created', 'acme')"
)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A PostgreSQL store, and another one."""
    with postgres_server() as url, database(url, "first") as first, database(url, "other") as other:
        yield first, other


def one_node() -> dict[str, Any]:
    return workflow(node("core.python", parameters={"code": "def main():\n    return 1"}))


class Tenant:
    """A tenant with a run that has ended, and one that waits for a worker."""

    def __init__(self, system: System, name: str) -> None:
        self.name, self._system = name, system
        system.rest.post("tenants", {"tenant": name}, wanted=201)
        made = system.rest.post("tokens", {"tenant": name, "role": "admin"}, wanted=201)
        self.token: str = made["token"]
        with self.client() as rest:
            worker = self.start_worker("first")
            self.ended = rest.submit(one_node())
            before = rest.finished(self.ended)
            worker.stop()
            self.waiting = rest.submit(one_node())
        assert before["status"] == "succeeded"

    @contextmanager
    def client(self) -> Iterator[Rest]:
        rest = Rest(self._system.url)
        rest.http.headers["authorization"] = f"Bearer {self.token}"
        try:
            yield rest
        finally:
            rest.close()

    def start_worker(self, name: str) -> Any:
        named = f"{name}-{self.name}"
        environ = {"ASTRA_WORKER_AUTH_TOKEN": self.token}
        return self._system.new_worker(named, "--tenant", self.name, **environ).start()

    def check(self, place: str) -> None:
        """Everything is there, and goes on."""
        with self.client() as rest:
            listed = {one["runId"] for one in rest.get("runs")["items"]}
            assert listed >= {self.ended, self.waiting}
            assert rest.get(f"runs/{self.ended}")["status"] == "succeeded"
            worker = self.start_worker(place)
            assert rest.finished(self.waiting)["status"] == "succeeded"
            assert rest.run(one_node())["status"] == "succeeded"
            worker.stop()


@pytest.mark.timeout(240)
def test_tenants_of_several_shards_are_restored_into_a_store_with_one(
    tmp_path: Path, stores: tuple[str, str]
) -> None:
    with running(tmp_path / "site", database_url=stores[0]) as system:
        tenants = [Tenant(system, name) for name in TENANTS]
        assert int(ask(stores[0], SHARDS)) > 1
        backup = str(tmp_path / "backup.zip")
        place = ("--database-url", stores[0], "--data-dir", str(system.data))
        system.scheduler.stop()
        ask(stores[0], SENT)  # by a shard whose scheduler ended before that of the site had read it
        command(system, "backup", backup, *place)
        sqlite = f"sqlite:///{system.folder / 'new' / 'astraflow.db'}"
        command(system, "restore", backup, "--database-url", sqlite, "--data-dir", "new")
        system.scheduler = start_restored(system, sqlite)
        system.until_ready()
        for tenant in tenants:
            tenant.check("sqlite")
            with tenant.client() as rest:
                tenant.waiting = rest.submit(one_node())
        audit = system.rest.get("audit", limit=200)["items"]
        assert [one["action"] for one in audit if one["who"] == "an admin"] == ["tenant.created"]
        # And back, from one shard to many.
        command(system, "backup", f"{backup}2", "--database-url", sqlite, "--data-dir", "new")
        system.scheduler.stop()
        command(system, "restore", f"{backup}2", "--database-url", stores[1], "--data-dir", "new")
        system.scheduler = start_restored(system, stores[1])
        system.until_ready()
        for tenant in tenants:
            tenant.check("postgres")


@pytest.mark.timeout(120)
def test_a_tenant_with_several_lanes_is_not_restored_where_there_is_one(
    tmp_path: Path, stores: tuple[str, str]
) -> None:
    lanes = {"ASTRA_SCHEDULER_SEVERAL_LANES": "true"}
    with running(tmp_path / "site", database_url=stores[0], environ=lanes) as system:
        system.rest.post("tenants", {"tenant": "acme"}, wanted=201)
        answer = system.rest.ask("PUT", "/api/v1/tenants/acme/lanes", json={"count": 2})
        assert answer.status_code == 200, answer.text
        backup = str(tmp_path / "backup.zip")
        place = ("--database-url", stores[0], "--data-dir", str(system.data))
        command(system, "backup", backup, *place)
        sqlite = tmp_path / "astraflow.db"
        restored = astra(
            "db", "restore", backup, "--database-url", f"sqlite:///{sqlite}",
            cwd=system.folder, **system.environ,
        )  # fmt: skip
        assert restored.code != 0
        assert "acme has 2 lanes" in restored.err and "PostgreSQL" in restored.err
        assert not sqlite.exists()
        command(system, "restore", backup, "--database-url", stores[1], "--data-dir", "new")


@pytest.mark.timeout(120)
def test_a_backup_of_a_shared_store_is_not_taken_without_its_blobs(
    tmp_path: Path, stores: tuple[str, str]
) -> None:
    """As by somebody who names the database, and not the folder of blobs that its schedulers share."""
    with running(tmp_path / "site", database_url=stores[0]) as system:
        backup = tmp_path / "backup.zip"
        elsewhere = ("--database-url", stores[0], "--data-dir", str(tmp_path / "elsewhere"))
        refused = astra("db", "backup", str(backup), *elsewhere, cwd=tmp_path, **system.environ)
        assert refused.code != 0 and "blobs_url must name" in refused.err, refused
        assert "Traceback" not in refused.err and not backup.exists()
        command(system, "backup", str(backup), *elsewhere, "--without-blobs")
