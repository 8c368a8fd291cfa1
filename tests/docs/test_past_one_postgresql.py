"""What the page on several sites says about moving a tenant, tried between two sites."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.command_line import Done, astra
from tests.processes.rest import TOKEN
from tests.processes.system import System, running
from tests.scheduler.packing import pack

TENANT = "acme"
WORKFLOW = {
    "id": str(uuid.uuid4()),
    "metadata": {"name": "moved"},
    "nodes": [{"id": str(uuid.uuid4()), "type": "core.noop", "parameters": {}}],
    "edges": [],
    "triggers": [{"type": "webhook"}],
}


class Site:
    """A site, and somebody in its tenant."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.done("tenants", "create", TENANT)
        made = self.done("tokens", "create", "--role", "admin", "--tenant", TENANT)
        self._token = made.out.strip()

    def done(self, *command: str, token: str = TOKEN) -> Done:
        """As an admin of the site."""
        system = self._system
        given = {"ASTRA_SERVER": system.url, "ASTRA_TOKEN": token}
        result = astra(*command, cwd=system.folder, **given)
        assert result.code == 0, (command, result.err)
        return result

    def within(self, *command: str) -> Done:
        """As an admin of the tenant."""
        return self.done(*command, token=self._token)

    @property
    def packages(self) -> list[str]:
        listed = self.within("packages", "list", "--json").json["items"]
        return sorted(one["name"] for one in listed)

    @property
    def rest(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx.Client(base_url=f"{self._system.url}/api/v1", headers=headers)

    @property
    def workflow(self) -> Any:
        return self.within("workflows", "show", str(WORKFLOW["id"]), "--json").json

    @property
    def trigger(self) -> Any:
        (one,) = self.within("triggers", "list", "--json").json["items"]
        return one


@pytest.mark.timeout(180)
def test_a_tenant_moves_with_its_workflows_and_without_its_runs(tmp_path: Path) -> None:
    with running(tmp_path / "old") as one, running(tmp_path / "new") as two:
        old, new = Site(one), Site(two)
        (tmp_path / "w.json").write_text(json.dumps(WORKFLOW))
        old.within("workflows", "save", str(tmp_path / "w.json"))

        old.done("tenants", "set", TENANT, "--max-runs", "0")
        with old.rest as rest:
            refused = rest.post("/runs", json={"workflow": WORKFLOW})
            assert (refused.status_code, refused.json()["code"]) == (429, "E.QUOTA.RUNS")

        (tmp_path / "made.cwx").write_bytes(pack())
        old.within("pkg", "publish", str(tmp_path / "made.cwx"))
        (known,) = [one for one in old.packages if one not in new.packages]
        with old.rest as rest:
            archive = rest.get(f"/packages/{known}/1.0.0/archive").content
        (tmp_path / "moved.cwx").write_bytes(archive)
        new.within("pkg", "publish", str(tmp_path / "moved.cwx"))
        assert new.packages == old.packages

        old.within("workflows", "export", "--to", str(tmp_path / "kept"))
        (file,) = (tmp_path / "kept").iterdir()
        new.within("workflows", "import", str(file))
        assert new.workflow["id"] == old.workflow["id"] == WORKFLOW["id"]
        assert new.trigger["hookPath"] != old.trigger["hookPath"], "webhooks have new addresses"

        old.within("audit", "export", "-o", str(tmp_path / "audit.jsonl"))
        assert (tmp_path / "audit.jsonl").read_text().strip()
        old.done("tenants", "suspend", TENANT, "--yes")
        with old.rest as rest:
            assert rest.get("/workflows").status_code == 401
        assert old.done("tenants", "resume", TENANT).code == 0
        assert old.workflow["id"] == WORKFLOW["id"], "history can be read after it"
