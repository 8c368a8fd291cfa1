"""Two nodes on one PostgreSQL: any node answers for any tenant, wherever its shard is, and one outlives the other."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.definitions import node, workflow
from tests.processes.command_line import astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.process import Process
from tests.processes.rest import Rest
from tests.processes.system import SECRET, System, port_of
from tests.processes.waiting import until

TENANTS = ("acme", "globex", "initech", "umbrella")
OWNERS = (
    "SELECT json_agg(json_build_array(l.tenant, s.owner)) "
    "FROM astraflow.lanes AS l JOIN astraflow.shards AS s USING (shard)"
)
OWNER_URL = (
    "SELECT n.url FROM astraflow.lanes AS l JOIN astraflow.shards AS s USING (shard) "
    "JOIN astraflow.nodes AS n ON n.node_id = s.owner WHERE l.tenant = '{tenant}'"
)
WAITS = """
import os, time

def main(folder, name):
    open(os.path.join(folder, f"{name}-{ctx.attempt}"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.05)
    return ctx.attempt
"""


class Nodes:
    """Two nodes, tenants with a token each, and a worker of each tenant that knows both nodes."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.nodes = [system.scheduler, system.new_scheduler()]
        self.tokens: dict[str, str] = {}
        self._clients: list[Rest] = []

    def start(self) -> None:
        self.system.start()
        self.nodes[1].start()
        until(lambda: self.at(1).status("/readyz") == 200, "the second node")
        for number, tenant in enumerate(TENANTS):
            self.at(number % 2).post("tenants", {"tenant": tenant}, wanted=201)
            made = self.at((number + 1) % 2).post(
                "tokens", {"tenant": tenant, "role": "admin"}, wanted=201
            )
            self.tokens[tenant] = made["token"]

    def at(self, number: int, tenant: str | None = None) -> Rest:
        """A client of one node: the admin of the site, or of a tenant."""
        rest = Rest(self.url(number))
        if tenant is not None:
            rest.http.headers["authorization"] = f"Bearer {self.tokens[tenant]}"
        self._clients.append(rest)
        return rest

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{port_of(self.nodes[number])}"

    def owner_of(self, tenant: str) -> int:
        """The number of the node that serves a tenant."""
        url = ask(self.system.database_url or "", OWNER_URL.format(tenant=tenant))
        return [self.url(number) for number in (0, 1)].index(url)

    def start_worker(self, tenant: str, *numbers: int) -> None:
        urls = [f"ws://127.0.0.1:{port_of(self.nodes[one])}/ws/worker" for one in numbers]
        environ = {"ASTRA_WORKER_AUTH_TOKEN": self.tokens[tenant]}
        name = f"worker-{tenant}"
        self.system.new_worker(name, "--tenant", tenant, url=",".join(urls), **environ).start()

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with postgres_server() as url:
        system = System(tmp_path, heartbeat_ms=None, database_url=url)
        made = Nodes(system)
        try:
            made.start()
            yield made
        finally:
            made.close()
            system.close()


def _waiting(tenant: str, folder: Path) -> dict[str, Any]:
    inputs = {"folder": str(folder), "name": tenant}
    return workflow(node("core.python", parameters={"code": WAITS, "inputs": inputs}))


def _events(rest: Rest, run_id: str) -> list[str]:
    """The types of all events of a run, as a stream gives them out."""
    seen: list[str] = []
    with rest.http.stream("GET", f"/api/v1/events?runId={run_id}") as stream:
        assert stream.status_code == 200
        for line in stream.iter_lines():
            if line.startswith("event:"):
                seen.append(line.partition(":")[2].strip())
            if line.startswith("data:") and '"finishedAt":"' in line:
                break
    return seen


def _audited(rest: Rest, action: str) -> list[str]:
    """What the action was done to; empty, where it was done to the tenant of the audit itself."""
    items = rest.get("audit", limit=200)["items"]
    return [one["detail"].get("subject", "") for one in items if one["action"] == action]


@pytest.mark.timeout(240)
def test_any_node_answers_for_any_tenant(nodes: Nodes) -> None:
    owners = dict(json.loads(ask(nodes.system.database_url or "", OWNERS)))
    assert sorted(owners) == sorted(TENANTS)
    for number, tenant in enumerate(TENANTS):
        nodes.start_worker(tenant, number % 2)  # which may not be the node of its tenant
    runs: dict[str, str] = {}
    for number, tenant in enumerate(TENANTS):
        near, far = nodes.at(number % 2, tenant), nodes.at((number + 1) % 2, tenant)
        assert near.get("me")["tenant"] == far.get("me")["tenant"] == tenant
        until(lambda far=far: len(far.online()) == 1, "the worker of the tenant")  # type: ignore[misc]
        runs[tenant] = run_id = near.submit(workflow(node("core.noop")))
        assert far.finished(run_id)["status"] == "succeeded"
        first, second = _events(near, run_id), _events(far, run_id)
        assert first == second and first
        assert [one["runId"] for one in far.get("runs")["items"]] == [run_id]
    for tenant in TENANTS:
        for other in set(TENANTS) - {tenant}:
            for number in (0, 1):
                stranger = nodes.at(number, other)
                assert stranger.status(f"/api/v1/runs/{runs[tenant]}") == 404


@pytest.mark.timeout(240)
def test_any_node_shows_what_all_tenants_use(nodes: Nodes, tmp_path: Path) -> None:
    for tenant in TENANTS:
        nodes.start_worker(tenant, 0, 1)
        nodes.at(0, tenant).submit(_waiting(tenant, tmp_path))
    used = {"runs": 1, "tasks": 1, "workers": 1, "diskBytes": 0, "memoryBytes": 0}
    wanted = {**dict.fromkeys(TENANTS, used), "default": dict.fromkeys(used, 0)}
    for number in (0, 1):

        def shown(number: int = number) -> bool:
            items = nodes.at(number).get("tenants")["items"]
            return {one["tenant"]: one["use"] for one in items} == wanted

        until(shown, "what all tenants use")
        for tenant in TENANTS:
            assert nodes.at(number, tenant).get(f"tenants/{tenant}")["use"] == used
    owner = nodes.owner_of(TENANTS[0])
    silent = {one for one in TENANTS if nodes.owner_of(one) == owner}
    with nodes.nodes[owner].frozen():
        items = nodes.at(1 - owner).get("tenants")["items"]
        found = {one["tenant"]: one["use"] for one in items}
        assert all(found[one] in (None, used) for one in silent)
        assert all(found[one] == used for one in set(TENANTS) - silent)


@pytest.mark.timeout(240)
def test_what_needs_no_credential_is_answered_by_any_node(nodes: Nodes) -> None:
    """Webhooks and signals belong to a tenant by their addresses alone."""
    for number, tenant in enumerate(TENANTS[:2]):
        nodes.start_worker(tenant, 0, 1)
        near = nodes.at(number, tenant)
        saved = workflow(node("core.noop"), triggers=[{"type": "webhook", "id": "push"}])
        made = near.http.post("/api/v1/workflows", json=saved)
        assert made.status_code == 201, made.text
        (trigger,) = near.get(f"workflows/{saved['id']}/triggers")["items"]
        path = trigger["hookPath"]
        for other in (0, 1):
            delivered = httpx.post(f"{nodes.url(other)}{path}", json={})
            assert delivered.status_code == 202, delivered.text
            assert near.finished(delivered.json()["runId"])["status"] == "succeeded"
            wrong = httpx.post(f"{nodes.url(other)}{path}x", json={})
            assert wrong.status_code == 404


@pytest.mark.timeout(240)
def test_what_the_admin_of_the_site_does_is_in_the_audit_of_the_site_once(nodes: Nodes) -> None:
    site = nodes.at(1)
    assert [one["tenant"] for one in site.get("tenants")["items"]] == sorted([*TENANTS, "default"])
    until(
        lambda: sorted(_audited(site, "tenant.configure")) == sorted(TENANTS),
        "the audit of the site",
    )
    assert site.get("audit/verify")["ok"] is True
    for tenant in TENANTS:
        own = nodes.at(0, tenant)
        assert _audited(own, "tenant.configure") == [""]
        assert own.get("audit/verify")["ok"] is True


@pytest.mark.timeout(240)
def test_a_user_of_any_tenant_logs_in_at_any_node_and_is_locked_out_at_all(nodes: Nodes) -> None:
    for tenant in TENANTS[:2]:
        user = {"name": "alice", "password": "correct horse battery", "role": "operator"}
        site = nodes.at(0).http
        made = site.post("/api/v1/users", params={"tenant": tenant}, json=user)
        assert made.status_code == 201, made.text
        login = {"user": "alice", "password": user["password"], "tenant": tenant}
        for number in (0, 1):
            with httpx.Client(base_url=nodes.at(number).http.base_url) as nobody:
                token = nobody.post("/api/v1/auth/token", json=login)
                assert token.status_code == 201, token.text
                bearer = {"authorization": f"Bearer {token.json()['token']}"}
                for other in (0, 1):
                    seen = nodes.at(other).http.get("/api/v1/me", headers=bearer)
                    assert seen.json()["tenant"] == tenant
                wrong = nobody.post("/api/v1/auth/token", json={**login, "password": "no such"})
                assert wrong.status_code == 401
        suspended = nodes.at(1).http.post(f"/api/v1/tenants/{tenant}/suspend")
        assert suspended.status_code == 200, suspended.text
        for number in (0, 1):
            assert nodes.at(number, tenant).status("/api/v1/me") in (401, 403)


@pytest.mark.timeout(240)
def test_a_token_of_the_site_works_and_ends_at_all_nodes(nodes: Nodes) -> None:
    made = nodes.at(0).post("tokens", {"role": "admin"}, wanted=201)
    bearer = {"authorization": f"Bearer {made['token']}"}

    def statuses() -> set[int]:
        return {
            nodes.at(number).http.get(f"/api/v1/tenants/{tenant}", headers=bearer).status_code
            for number in (0, 1)
            for tenant in TENANTS
        }

    assert statuses() == {200}
    for number in (0, 1):
        assert nodes.at(number).http.get("/metrics", headers=bearer).status_code == 200
    gone = nodes.at(1).http.delete(f"/api/v1/tokens/{made['tokenId']}")
    assert gone.status_code == 204, gone.text
    until(lambda: statuses() == {401}, "the end of the token at all nodes")


@pytest.mark.timeout(240)
def test_nobody_but_a_node_can_say_that_a_request_was_passed_on(nodes: Nodes) -> None:
    for number in (0, 1):
        http = nodes.at(number, "acme").http
        for forged in ("1", "10.0.0.1;" + "0" * 64, ";", ""):
            answer = http.get("/api/v1/me", headers={"x-astra-hop": forged})
            assert answer.status_code == 200, forged


@pytest.mark.timeout(240)
def test_a_node_that_is_told_to_end_refuses_nobody_before_the_other_has_its_tenants(
    nodes: Nodes,
) -> None:
    """Readers of tenants of the other node do not keep it either."""
    number = nodes.owner_of(TENANTS[0])
    leaves = nodes.nodes[number]
    with ExitStack() as readers:
        for tenant in TENANTS:
            stream = nodes.at(number, tenant).http.stream("GET", "/api/v1/events")
            assert readers.enter_context(stream).status_code == 200
        clients = [nodes.at(number, tenant) for tenant in TENANTS]
        leaves.send(signal.SIGTERM)
        statuses: set[int] = set()
        with suppress(httpx.TransportError):
            while True:
                statuses.add(clients[0].http.get("/api/v1/me").status_code)
                clients = [*clients[1:], clients[0]]
        owners = {nodes.owner_of(tenant) for tenant in TENANTS}
        assert leaves.wait() == 0
    assert owners == {1 - number}
    assert statuses <= {200, 503}
    assert "timeout graceful shutdown exceeded" not in leaves.said()


@pytest.mark.timeout(300)
def test_a_shard_is_moved_to_the_node_that_somebody_names(nodes: Nodes) -> None:
    tenant, folder = TENANTS[0], nodes.system.folder
    nodes.start_worker(tenant, 0, 1)
    asked = f"SELECT shard FROM astraflow.lanes WHERE tenant = '{tenant}'"
    shard = str(ask(nodes.system.database_url or "", asked))

    def move(*said: str) -> None:
        more = ("--database-url", nodes.system.database_url or "", "--json")
        done = astra("db", "move", shard, *said, *more, cwd=folder, ASTRA_SCHEDULER_SECRET=SECRET)
        assert done.code == 0, done

    run_id = nodes.at(0, tenant).submit(_waiting(tenant, folder))
    until((folder / f"{tenant}-1").exists, "the attempt")
    for number in (1 - nodes.owner_of(tenant), nodes.owner_of(tenant)):
        move(nodes.url(number))
        until(lambda number=number: nodes.owner_of(tenant) == number, "the move")  # type: ignore[misc]
        made = nodes.at(number, tenant).submit(workflow(node("core.noop")))
        assert nodes.at(1 - number, tenant).finished(made)["status"] == "succeeded"
    move("--anywhere")
    (folder / "go").touch()
    view = nodes.at(0, tenant).finished(run_id)
    assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_node_that_ends_leaves_its_tenants_and_their_attempts_to_the_other(
    nodes: Nodes, end: str
) -> None:
    folder = nodes.system.folder
    for tenant in TENANTS:
        nodes.start_worker(tenant, 0, 1)
    runs = {tenant: nodes.at(0, tenant).submit(_waiting(tenant, folder)) for tenant in TENANTS}
    until(lambda: all((folder / f"{one}-1").exists() for one in TENANTS), "all attempts")
    gone: Process = nodes.nodes[1]
    if end == "kill":
        gone.kill()
    else:
        assert gone.stop() == 0
    for tenant in TENANTS:
        rest = nodes.at(0, tenant)
        short = rest.ask("POST", "/api/v1/runs", json={"workflow": workflow(node("core.noop"))})
        assert short.status_code == 202, short.text
        assert rest.finished(short.json()["runId"])["status"] == "succeeded"
    (folder / "go").touch()
    for tenant, run_id in runs.items():
        view = nodes.at(0, tenant).finished(run_id)
        assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)
        assert not (folder / f"{tenant}-2").exists()
    gone.start()
    until(lambda: nodes.at(1).status("/readyz") == 200, "the node that came back")
    for tenant, run_id in runs.items():
        assert nodes.at(1, tenant).get(f"runs/{run_id}")["status"] == "succeeded"
