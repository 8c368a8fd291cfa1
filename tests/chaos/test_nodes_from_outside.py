"""Nodes with wrong settings, with TLS, and clients that are slow, many, or cut off while their request is passed on."""

from __future__ import annotations

import json
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.test_nodes import TENANTS, Nodes
from tests.definitions import node, workflow
from tests.processes.command_line import astra
from tests.processes.postgres import ask, postgres_server
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System, port_of
from tests.processes.waiting import until

OLD, NEW = (
    "the secret of this site, long ago, and of each node",
    "another one that is as long as the first",
)
AT_ONCE = 400
LARGE = "large " * 150_000
Make = Callable[..., AbstractContextManager[Nodes]]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Make]:
    """Two nodes of one PostgreSQL. The second has settings of its own, and is not started."""
    with postgres_server() as url:

        @contextmanager
        def make(second: dict[str, str], **both: str) -> Iterator[Nodes]:
            system = System(tmp_path, heartbeat_ms=None, database_url=url, environ=both)
            made = Nodes(system)
            set_environ(made.nodes[1], **second)
            try:
                yield made
            finally:
                made.close()
                system.close()

        yield make


def set_environ(process: Process, **values: str) -> None:
    """What it is started with the next time; an empty value is none."""
    given = {**process.environ, **values}
    process.environ = {name: value for name, value in given.items() if value}


def _tenant_at(nodes: Nodes, number: int) -> str:
    """A tenant that a node serves."""
    return next(tenant for tenant in nodes.tokens if nodes.owner_of(tenant) == number)


@pytest.mark.timeout(120)
def test_a_node_with_another_secret_does_not_start_beside_others(pair: Make) -> None:
    with pair({"ASTRA_SCHEDULER_SECRET": NEW}, ASTRA_SCHEDULER_SECRET=OLD) as nodes:
        nodes.system.start()
        assert nodes.nodes[1].start().wait() not in (0, None)
        assert "must be that of the other schedulers of this database" in nodes.nodes[1].said()
        assert f"the one at {nodes.url(0)} has another one" in nodes.nodes[1].said()
        assert nodes.at(0).status("/readyz") == 200
        assert NEW not in nodes.nodes[1].said() and OLD not in nodes.nodes[1].said()
        # Alone it may start: that is how the secret of a site is changed with a stop.
        nodes.system.scheduler.kill()
        nodes.nodes[1].start()
        until(lambda: nodes.at(1).status("/readyz") == 200, "the node that is alone")


@pytest.mark.timeout(120)
def test_a_silent_address_does_not_hide_another_secret(pair: Make) -> None:
    """Its own address is a listener that never answers, as of a network that drops what it is sent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        second = {
            "ASTRA_SCHEDULER_SECRET": NEW,
            "ASTRA_SCHEDULER_NODE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        with pair(second, ASTRA_SCHEDULER_SECRET=OLD) as nodes:
            nodes.system.start()
            assert nodes.nodes[1].start().wait() == 1
            assert f"the one at {nodes.url(0)} has another one" in nodes.nodes[1].said()


@pytest.mark.timeout(180)
def test_the_secret_is_changed_one_node_at_a_time(pair: Make) -> None:
    """As the guide says: the new one below the old one everywhere, then above it, then alone."""
    with pair({}, ASTRA_SCHEDULER_SECRET=OLD) as nodes:
        nodes.start()
        for secret in (f"{OLD}\n{NEW}", f"{NEW}\n{OLD}", NEW):
            for number, one in enumerate(nodes.nodes):
                one.send(signal.SIGTERM)
                assert one.wait() == 0, one.said()[-2000:]
                set_environ(one, ASTRA_SCHEDULER_SECRET=secret)
                one.start()
                until(lambda number=number: nodes.at(number).status("/readyz") == 200, "it again")  # type: ignore[misc]
                for tenant in nodes.tokens:
                    for at in (0, 1):
                        nodes.at(at, tenant).submit(workflow(node("core.noop")))


@pytest.mark.timeout(120)
def test_a_node_does_not_start_with_the_address_of_another(pair: Make) -> None:
    """It would be given tenants that nobody could reach."""
    with pair({}) as nodes:
        nodes.system.start()
        node_ids = "SELECT string_agg(node_id, ' ') FROM astraflow.nodes"
        node_id = ask(nodes.system.database_url or "", node_ids)
        again = f"{nodes.url(0).replace('127.0.0.1', 'LOCALHOST')}/"
        for url in (nodes.url(0), again):
            set_environ(nodes.nodes[1], ASTRA_SCHEDULER_NODE_URL=url)
            assert nodes.nodes[1].start().wait() == 2
            assert f"must be an address of this scheduler alone; {node_id}" in nodes.nodes[1].said()
        assert ask(nodes.system.database_url or "", node_ids) == node_id


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_other", [False, True], ids=["nobody", "the other node"])
def test_a_node_that_gives_a_wrong_address_is_told_of(pair: Make, is_other: bool) -> None:
    with pair({}) as nodes:
        wrong = nodes.url(0) if is_other else "http://127.0.0.1:9"
        set_environ(nodes.nodes[1], ASTRA_SCHEDULER_NODE_URL=wrong)
        for number in (1, 0):  # at first there is nobody who could answer in its place
            nodes.nodes[number].start()
            until(lambda number=number: nodes.at(number).status("/readyz") == 200, "a node")  # type: ignore[misc]
        for tenant in TENANTS:
            nodes.at(1).post("tenants", {"tenant": tenant}, wanted=201)
            made = nodes.at(1).post("tokens", {"tenant": tenant, "role": "admin"}, wanted=201)
            nodes.tokens[tenant] = made["token"]
        said = "answers there" if is_other else "Connect"
        for one in nodes.nodes:
            one.until_said(f"cannot be reached at its node_url {wrong}")
            assert said in one.said()
        lost = 0
        for tenant in nodes.tokens:
            answer = nodes.at(0, tenant).http.get("/api/v1/me")
            lost += answer.status_code != 200
            if answer.status_code != 200:
                assert answer.status_code == 503, answer.text
                assert answer.json()["code"] == "E.SHARD.UNREACHABLE"
                assert "cannot be reached by this one" in answer.json()["detail"]
            assert nodes.at(1, tenant).http.get("/api/v1/me").status_code == 200
        assert lost


@pytest.mark.parametrize(
    "url",
    ["one.example:8080", "ftp://one.example", "http://", "http://one.example/astra", "http://a:b"],
)
def test_an_address_of_a_node_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    done = astra(
        "server", "--data-dir", str(tmp_path / "data"), cwd=tmp_path, ASTRA_SCHEDULER_NODE_URL=url
    )
    assert done.code == 2, done
    assert "node_url: must be http:// or https://, a host, and a port if needed" in done.err


def _certificates(folder: Path) -> Path:
    for arguments in (("init",), ("server", "127.0.0.1", "localhost")):
        done = astra("ca", *arguments, cwd=folder)
        assert done.code == 0, done.err
    return folder / "ca"


def _https(nodes: Nodes, number: int, ca: Path, token: str = TOKEN) -> httpx.Client:
    return httpx.Client(
        base_url=f"https://127.0.0.1:{port_of(nodes.nodes[number])}",
        headers={"authorization": f"Bearer {token}"},
        verify=ssl.create_default_context(cafile=ca / "ca.pem"),
        timeout=30,
    )


@pytest.mark.timeout(180)
def test_nodes_that_speak_tls_pass_on_what_belongs_to_others(pair: Make, tmp_path: Path) -> None:
    ca = _certificates(tmp_path)
    tls = {
        "ASTRA_SCHEDULER_TLS_CERT_FILE": str(ca / "server.pem"),
        "ASTRA_SCHEDULER_TLS_KEY_FILE": str(ca / "server.key"),
        "ASTRA_SCHEDULER_NODE_CA_FILE": str(ca / "ca.pem"),
    }
    with pair({}, **tls) as nodes:
        for scheduler in nodes.nodes:
            scheduler.start()
        with _https(nodes, 0, ca) as first, _https(nodes, 1, ca) as second:
            for one in (first, second):
                until(lambda one=one: _is_ready(one), "a node")  # type: ignore[misc]
            tokens = {}
            for number in range(6):
                made = first.post("/api/v1/tenants", json={"tenant": f"tenant-{number}"})
                assert made.status_code == 201, made.text
                asked = {"tenant": f"tenant-{number}", "role": "admin"}
                answer = second.post("/api/v1/tokens", json=asked)
                assert answer.status_code == 201, answer.text
                tokens[f"tenant-{number}"] = answer.json()["token"]
            for tenant, token in tokens.items():
                for one in (first, second):
                    me = one.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
                    assert (me.status_code, me.json()["tenant"]) == (200, tenant)
        assert not any("cannot be reached" in one.said() for one in nodes.nodes)
        # One that does not know the authority says so, and why it cannot pass anything on.
        nodes.nodes[1].kill()
        set_environ(nodes.nodes[1], ASTRA_SCHEDULER_NODE_CA_FILE="")
        nodes.nodes[1].start()
        nodes.nodes[1].until_said("cannot be reached at its node_url")
        assert "CERTIFICATE_VERIFY_FAILED" in nodes.nodes[1].said()


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def _saved(nodes: Nodes, tenant: str) -> str:
    """A workflow that is large."""
    definition = workflow(*(node("core.echo", parameters={"value": LARGE}) for _ in range(4)))
    made = nodes.at(0, tenant).http.post("/api/v1/workflows", json=definition)
    assert made.status_code == 201, made.text
    return str(definition["id"])


def _request(nodes: Nodes, number: int, tenant: str, line: str, *more: str) -> bytes:
    head = [f"{line} HTTP/1.1", f"host: 127.0.0.1:{port_of(nodes.nodes[number])}"]
    head += [f"authorization: Bearer {nodes.tokens[tenant]}", *more, "", ""]
    return "\r\n".join(head).encode()


@pytest.mark.timeout(180)
def test_a_client_that_reads_slowly_delays_nobody_and_gets_all_of_it(pair: Make) -> None:
    with pair({}) as nodes:
        nodes.start()
        tenant = _tenant_at(nodes, 1)
        workflow_id = _saved(nodes, tenant)
        whole = nodes.at(1, tenant).http.get(f"/api/v1/workflows/{workflow_id}").content
        with closing(socket.create_connection(("127.0.0.1", port_of(nodes.nodes[0])))) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(30)
            slow.sendall(
                _request(
                    nodes, 0, tenant, f"GET /api/v1/workflows/{workflow_id}", "connection: close"
                )
            )
            got = b"".join(slow.recv(1) for _ in range(2_000))
            for one in nodes.tokens:
                assert nodes.at(0, one).http.get("/api/v1/me").status_code == 200
            got += b"".join(iter(lambda: slow.recv(65536), b""))
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        assert len(body) >= len(whole)
        assert whole[-200:] in body


@pytest.mark.timeout(180)
def test_many_requests_are_passed_on_at_once(pair: Make) -> None:
    with pair({}) as nodes:
        nodes.start()
        tenant = _tenant_at(nodes, 1)

        headers = {"authorization": f"Bearer {nodes.tokens[tenant]}"}
        limits = httpx.Limits(max_connections=AT_ONCE)
        body = workflow(node("core.noop"))
        with (
            httpx.Client(base_url=nodes.url(0), headers=headers, limits=limits, timeout=60) as http,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):

            def ask(number: int) -> int:
                if number % 2:
                    return http.post("/api/v1/runs", json={"workflow": body}).status_code
                return http.get("/api/v1/me").status_code

            codes = list(pool.map(ask, range(AT_ONCE)))
        assert set(codes) == {200, 202}, sorted(set(codes))
        listed = nodes.at(1, tenant).get("runs", limit=200)
        assert len(listed["items"]) == AT_ONCE // 2


@pytest.mark.timeout(180)
def test_a_large_request_whose_owner_dies_is_answered_and_may_be_repeated(pair: Make) -> None:
    with pair({}) as nodes:
        nodes.start()
        tenant = _tenant_at(nodes, 1)
        definition = workflow(*(node("core.echo", parameters={"value": LARGE}) for _ in range(4)))
        body = json.dumps({"workflow": definition}).encode()
        more = (
            f"content-length: {len(body)}", "content-type: application/json",
            "idempotency-key: large", "connection: close",
        )  # fmt: skip
        with closing(socket.create_connection(("127.0.0.1", port_of(nodes.nodes[0])))) as cut:
            cut.settimeout(60)
            cut.sendall(_request(nodes, 0, tenant, "POST /api/v1/runs", *more))
            cut.sendall(body[: len(body) // 2])
            nodes.nodes[1].kill()
            answer = b""
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was sent
                cut.sendall(body[len(body) // 2 :])
            with suppress(ConnectionResetError):
                answer = b"".join(iter(lambda: cut.recv(65536), b""))
        status = int(answer.split(b" ", 2)[1]) if answer else 503
        assert status in (202, 503), answer[:300]
        again = _until_accepted(nodes, tenant, body)
        assert status == 503 or json.loads(answer.partition(b"\r\n\r\n")[2])["runId"] == again
        assert [one["runId"] for one in nodes.at(0, tenant).get("runs")["items"]] == [again]


def _until_accepted(nodes: Nodes, tenant: str, body: bytes) -> str:
    headers = {"idempotency-key": "large", "content-type": "application/json"}

    def accepted() -> Any:
        answer = nodes.at(0, tenant).http.post("/api/v1/runs", content=body, headers=headers)
        assert answer.status_code in (202, 503), answer.text
        return answer.json()["runId"] if answer.status_code == 202 else None

    return str(until(accepted, "the run"))
