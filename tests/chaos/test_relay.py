"""Two nodes, and workers that reach one of them only: the other one's tenants are served over it."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.test_lanes import Site, key_of
from tests.chaos.test_nodes import TENANTS, WAITS, Nodes
from tests.definitions import node, workflow
from tests.e2e.old_worker import OldWorker
from tests.packages.archives import write_adapter
from tests.processes.command_line import astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System, port_of
from tests.processes.waiting import until

RELAY = {"ASTRA_SCHEDULER_WORKER_ROUTING": "relay"}
HOME_OWNER = (
    "SELECT n.url FROM astraflow.shards AS s JOIN astraflow.nodes AS n ON n.node_id = s.owner "
    "WHERE s.shard = 0"
)
ADAPTER = """
    class Adapter:
        def say(self, ctx):
            return {"said": "hello"}
"""
Make = Callable[..., AbstractContextManager[Nodes]]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Make]:
    """Two nodes of one PostgreSQL with these settings."""
    with postgres_server() as url:

        @contextmanager
        def make(**environ: str) -> Iterator[Nodes]:
            system = System(tmp_path, heartbeat_ms=None, database_url=url, environ=environ)
            made = Nodes(system)
            try:
                yield made
            finally:
                made.close()
                system.close()

        yield make


def of_node(nodes: Nodes, number: int) -> list[str]:
    """The tenants that a node serves."""
    return [tenant for tenant in TENANTS if nodes.owner_of(tenant) == number]


def relayed(nodes: Nodes, number: int) -> int:
    """As the metrics of a node say."""
    said = nodes.at(number).http.get("/metrics").text
    (line,) = (one for one in said.splitlines() if one.startswith("astraflow_relayed_workers "))
    return int(float(line.split()[1]))


def places(worker: Process) -> set[str]:
    """Where a worker says that it was connected."""
    return set(re.findall(r"connected to (wss?://[^\"\s]+)", worker.said()))


def _waiting(folder: Path, name: str) -> dict[str, Any]:
    inputs = {"folder": str(folder), "name": name}
    return workflow(node("core.python", parameters={"code": WAITS, "inputs": inputs}))


@pytest.mark.timeout(240)
def test_a_worker_that_knows_one_node_serves_a_tenant_of_the_other(
    pair: Make, tmp_path: Path
) -> None:
    """Runs, a package that it fetches, and a result that is too large for the connection."""
    with pair(**RELAY) as nodes:
        nodes.start()
        tenant = of_node(nodes, 1)[0]
        nodes.start_worker(tenant, 0)
        near, far = nodes.at(0, tenant), nodes.at(1, tenant)
        until(lambda: len(far.online()) == 1, "the worker")
        assert (relayed(nodes, 0), relayed(nodes, 1)) == (1, 0)
        assert far.run(workflow(node("core.noop")))["status"] == "succeeded"
        far.publish(write_adapter(tmp_path / "demo", "demo", "say", ADAPTER))
        far.install("demo", "1.0.0")
        assert near.run(workflow(node("demo.say")))["status"] == "succeeded"
        write = {"code": "def main(): return {'text': 'lane ' * 600_000}"}
        read = {"code": "def main(text): return [len(text), len(set(text.split()))]"}
        make = node("core.python", "make", parameters=write)
        measure = node("core.python", "measure", parameters=read)
        edge = {
            "source": {"node": make["id"], "port": "result"},
            "target": {"node": measure["id"], "port": "inputs"},
        }
        run = far.run(workflow(make, measure, edges=[edge]))
        assert run["status"] == "succeeded", run
        assert run["nodes"][1]["result"]["result"] == [3_000_000, 1]
        worker = nodes.system.workers[f"worker-{tenant}"]
        assert places(worker) == {f"ws://127.0.0.1:{port_of(nodes.nodes[0])}/ws/worker"}
        assert worker.stop() == 0
        until(lambda: relayed(nodes, 0) == 0, "the end of the relay")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", ["kill", "stop", "freeze"])
def test_an_owner_that_ends_leaves_the_attempts_of_relayed_workers(
    pair: Make, tmp_path: Path, end: str
) -> None:
    with pair(**RELAY) as nodes:
        nodes.start()
        far = of_node(nodes, 1)
        for tenant in far:
            nodes.start_worker(tenant, 0)
        runs = {tenant: nodes.at(0, tenant).submit(_waiting(tmp_path, tenant)) for tenant in far}
        until(lambda: all((tmp_path / f"{one}-1").exists() for one in far), "all attempts")
        assert relayed(nodes, 0) == len(far)
        with _ended(nodes.nodes[1], end):
            until(lambda: of_node(nodes, 0) == list(TENANTS), "the next owner")
            until(lambda: relayed(nodes, 0) == 0, "workers that are served where they are")
            (tmp_path / "go").touch()
            for tenant, run_id in runs.items():
                view = nodes.at(0, tenant).finished(run_id)
                assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)
                assert not (tmp_path / f"{tenant}-2").exists()
                assert nodes.at(0, tenant).run(workflow(node("core.noop")))["status"] == "succeeded"


@contextmanager
def _ended(process: Process, end: str) -> Iterator[None]:
    if end == "freeze":
        with process.frozen():
            yield
        return
    if end == "kill":
        process.kill()
    else:
        assert process.stop() == 0
    yield


@pytest.mark.timeout(300)
def test_a_node_that_passes_workers_on_ends_and_they_go_on_over_another(
    pair: Make, tmp_path: Path
) -> None:
    """They know both, as behind a balancer."""
    with pair(**RELAY) as nodes:
        nodes.start()
        tenant = of_node(nodes, 1)[0]
        nodes.start_worker(tenant, 0, 1)
        run_id = nodes.at(1, tenant).submit(_waiting(tmp_path, tenant))
        until((tmp_path / f"{tenant}-1").exists, "the attempt")
        assert relayed(nodes, 0) == 1
        assert nodes.nodes[0].stop() == 0
        (tmp_path / "go").touch()
        view = nodes.at(1, tenant).finished(run_id)
        assert (view["status"], view["nodes"][0]["attempt"]) == ("succeeded", 1)


@pytest.mark.timeout(240)
async def test_a_worker_of_protocol_1_at_the_wrong_node_works(pair: Make) -> None:
    """With the settings as shipped: others are sent on, this one cannot be."""
    with pair() as nodes:
        nodes.start()
        url = await asyncio.to_thread(ask, nodes.system.database_url or "", HOME_OWNER)
        wrong = 1 - [nodes.url(number) for number in (0, 1)].index(url)
        async with OldWorker(port_of(nodes.nodes[wrong]), "old-1") as old:
            await old.enter()
            assert await asyncio.to_thread(relayed, nodes, wrong) == 1
            rest = nodes.at(wrong)
            working = asyncio.create_task(old.work())
            run = await asyncio.to_thread(
                rest.run, workflow(node("core.echo", parameters={"value": 7}))
            )
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        assert run["status"] == "succeeded", run
        assert run["nodes"][0]["result"] == {"value": 7}


class OneWay(Site):
    """Its workers know the first node only."""

    def start_worker(self, number: int, slots: int) -> None:
        settings = {"ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL": str(slots)}
        url = f"ws://127.0.0.1:{port_of(self.nodes[0])}/ws/worker"
        self.system.new_worker(f"lanes-{number}", url=url, **settings).start()


@pytest.mark.timeout(300)
def test_both_lanes_of_a_tenant_are_served_by_a_worker_that_knows_one_node(tmp_path: Path) -> None:
    with postgres_server() as database:
        environ = {"ASTRA_SCHEDULER_SEVERAL_LANES": "true", **RELAY}
        system = System(tmp_path, heartbeat_ms=None, database_url=database, environ=environ)
        site = OneWay(system)
        try:
            site.start()
            keys = [key_of(lane, f"of-{lane}-{number}") for lane in (0, 1) for number in range(2)]
            definition = _waiting(tmp_path, "of")
            made = [_keyed(site, number % 2, definition, key) for number, key in enumerate(keys)]
            until(lambda: site.at(0).get("tenants/default")["use"]["tasks"] == 4, "all of them")
            (tmp_path / "go").touch()
            for run_id in made:
                assert site.at(0).finished(run_id)["status"] == "succeeded"
            lanes = site.lane_of_runs()
            assert {lanes[run_id] for run_id in made} == {0, 1}
            (worker,) = site.system.workers.values()
            assert places(worker) == {f"ws://127.0.0.1:{port_of(site.nodes[0])}/ws/worker"}
        finally:
            site.close()
            system.close()


def _keyed(site: Site, number: int, definition: dict[str, Any], key: str) -> str:
    headers = {"Idempotency-Key": key}
    body = {"workflow": definition}
    answer = site.at(number).http.post("/api/v1/runs", json=body, headers=headers)
    assert answer.status_code in (201, 202), answer.text
    return str(answer.json()["runId"])


# --- workers with certificates ---


def _tls(folder: Path) -> dict[str, str]:
    """Settings of nodes and workers, with certificates of an authority that is made here."""
    for arguments in (("init",), ("server", "127.0.0.1", "localhost"), ("worker", "w-1")):
        done = astra("ca", *arguments, cwd=folder)
        assert done.code == 0, done.err
    ca = folder / "ca"
    return {
        **RELAY,
        "ASTRA_SCHEDULER_TLS_CERT_FILE": str(ca / "server.pem"),
        "ASTRA_SCHEDULER_TLS_KEY_FILE": str(ca / "server.key"),
        "ASTRA_SCHEDULER_TLS_CLIENT_CA_FILE": str(ca / "ca.pem"),
        "ASTRA_SCHEDULER_NODE_CA_FILE": str(ca / "ca.pem"),
        "ASTRA_SCHEDULER_WORKER_AUTH": "mtls",
        "ASTRA_WORKER_AUTH_MODE": "mtls",
        "ASTRA_WORKER_TLS_CA_FILE": str(ca / "ca.pem"),
        "ASTRA_WORKER_TLS_CERT_FILE": str(ca / "w-1.pem"),
        "ASTRA_WORKER_TLS_KEY_FILE": str(ca / "w-1.key"),
        "SSL_CERT_FILE": str(ca / "ca.pem"),
    }


class Private(Nodes):
    """Two nodes that speak TLS; the tenant is `default`."""

    def url(self, number: int) -> str:
        return f"https://127.0.0.1:{port_of(self.nodes[number])}"

    def client(self, number: int) -> httpx.Client:
        return httpx.Client(
            base_url=self.url(number),
            headers={"authorization": f"Bearer {TOKEN}"},
            verify=ssl.create_default_context(cafile=self.system.folder / "ca" / "ca.pem"),
            timeout=30,
        )

    def is_ready(self, number: int) -> bool:
        with self.client(number) as http, suppress(httpx.TransportError):
            return http.get("/readyz").status_code == 200
        return False

    def start_both(self) -> int:
        """The number of the node that does not serve the tenant."""
        for number, one in enumerate(self.nodes):
            one.start()
            until(lambda number=number: self.is_ready(number), "a node")  # type: ignore[misc]
        url = ask(self.system.database_url or "", HOME_OWNER)
        return 0 if url.endswith(f":{port_of(self.nodes[1])}") else 1

    def start_at(self, number: int) -> Process:
        url = f"wss://127.0.0.1:{port_of(self.nodes[number])}/ws/worker"
        return self.system.new_worker("w-1", url=url).start()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("is_plain", [False, True], ids=["TLS", "a node_url without TLS"])
def test_a_worker_with_a_certificate_is_passed_on_over_tls_alone(
    tmp_path: Path, is_plain: bool
) -> None:
    with postgres_server() as database:
        system = System(tmp_path, heartbeat_ms=None, database_url=database, environ=_tls(tmp_path))
        nodes = Private(system)
        if is_plain:
            for one in nodes.nodes:
                plain = {"ASTRA_SCHEDULER_NODE_URL": f"http://127.0.0.1:{port_of(one)}"}
                one.environ = {**one.environ, **plain}
        try:
            wrong = nodes.start_both()
            worker = nodes.start_at(wrong)
            if is_plain:
                worker.until_said("a certificate is passed on over TLS only")
                worker.until_said("E.SHARD.UNREACHABLE")
                return
            with nodes.client(1 - wrong) as http:

                def shown() -> list[Any]:
                    items = json.loads(http.get("/api/v1/workers").text)["items"]
                    return [one["workerId"] for one in items if one["status"] == "online"]

                assert until(shown, "the worker") == ["w-1"]
                made = http.post("/api/v1/runs", json={"workflow": workflow(node("core.noop"))})
                assert made.status_code == 202, made.text
                path = f"/api/v1/runs/{made.json()['runId']}"
                until(lambda: http.get(path).json()["status"] == "succeeded", "its run")
        finally:
            nodes.close()
            system.close()
