"""Queue dispatchers: NATS JetStream on a real server, and Cloud Tasks on a fake of its REST API.

The service of Google cannot run here. The fake follows its reference: `projects.locations.queues.tasks.create`, a name
that was used before is 409 ALREADY_EXISTS, a task is delivered until it is answered with 2xx.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import nats
import pytest
from nats.js.api import RetentionPolicy

from tests.http_workers.foreign import ForeignPool
from tests.http_workers.package import write_nodes
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.process import Process, free_port
from tests.processes.system import System, running
from tests.processes.waiting import until

SHOWN = ("pools", "pools/queue", "runs", "workers", "audit")
QUEUE = "projects/acme/locations/europe-west1/queues/tasks"


@contextmanager
def nats_server(folder: Path, port: int, *more: str) -> Iterator[Process]:
    program = str(Path(sys.executable).parent / "nats-server")
    arguments = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "streams"), *more]
    server = Process("nats", arguments, folder, {}, (program,))
    server.start()
    try:
        server.until_said("Server is ready")
        yield server
    finally:
        server.close()


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running(tmp_path / "site") as system:
        yield system


def consumer(
    system: System, package: Path, folder: Path, url: str, pool: str, **environ: str
) -> Process:
    given = ["serverless", "consume", str(package), "--scheduler", system.url]
    return Process("consumer", [*given, "--url", url, "--pool", pool], folder, environ)


class TestNats:
    def test_tasks_wait_on_the_stream_through_restarts_of_everybody(
        self, system: System, tmp_path: Path
    ) -> None:
        package = write_nodes(tmp_path / "served")
        system.rest.publish(package)
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        with nats_server(tmp_path, port) as server:
            settings: dict[str, Any] = {"dispatcher": "nats", "packages": [{"name": "served"}]}
            pool = put_pool(system, ForeignPool(url), "queue", **settings)
            assert system.rest.get(f"pools/{pool}")["startTimeoutSeconds"] == 600
            made = [node(pool, "served.plain", parameters={"text": "abc"}) for _ in range(5)]
            first = system.rest.submit(workflow(*made))
            system.until(
                lambda: system.rest.get(f"pools/{pool}")["inflight"] == 5, "all on the stream"
            )
            system.restart()
            server.kill()
            server.start()
            server.until_said("Server is ready")
            worker = consumer(system, package, tmp_path, url, pool)
            worker.start()
            try:
                run = system.rest.finished(first)
                assert run["status"] == "succeeded"
                assert [one["attempt"] for one in run["nodes"]] == [1] * 5
                second = system.rest.run(workflow(made[0]))
                assert second["nodes"][0]["result"] == {"text": "cba"}
            finally:
                worker.close()

    def test_a_consumer_that_dies_leaves_its_task_to_another(
        self, system: System, tmp_path: Path
    ) -> None:
        package = write_nodes(tmp_path / "served")
        system.rest.publish(package)
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        mark = tmp_path / "mark"
        with nats_server(tmp_path, port):
            settings: dict[str, Any] = {
                "dispatcher": "nats",
                "packages": [{"name": "served"}],
                "heartbeatIntervalSeconds": 0.3,
                "heartbeatTimeoutSeconds": 1.5,
            }
            pool = put_pool(system, ForeignPool(url), "queue", **settings)
            retry = {"maxAttempts": 3, "backoff": {"initialSeconds": 0.05}}
            slow = {"mark": str(mark), "seconds": 0.5}
            made = node(pool, "served.slow", parameters=slow, retry=retry)
            run_id = system.rest.submit(workflow(made))
            worker = consumer(system, package, tmp_path, url, pool)
            worker.start()
            try:
                system.until(lambda: mark.exists(), "the start")
                worker.kill()
                worker.start()
                run = system.rest.finished(run_id)
                assert run["status"] == "succeeded"
                assert run["nodes"][0]["attempt"] == 2
            finally:
                worker.close()

    def test_a_server_that_is_away_is_another_try(self, system: System, tmp_path: Path) -> None:
        url = f"nats://127.0.0.1:{free_port()}"
        pool = put_pool(system, ForeignPool(url), "queue", dispatcher="nats")
        run_id = system.rest.submit(workflow(node(pool)))
        system.until(lambda: system.rest.nodes(run_id)["n"]["attempt"] == 2, "another try")
        told = system.rest.story(run_id, system.rest.nodes(run_id)["n"]["nodeId"])
        assert "E.DISPATCH.PUSH_REFUSED" in told

    @pytest.mark.parametrize("kind", ["token", "user"])
    def test_a_credential_opens_the_server_and_is_never_shown(
        self, system: System, tmp_path: Path, kind: str
    ) -> None:
        package = write_nodes(tmp_path / "served")
        system.rest.publish(package)
        secret = "canary-4711-of-nats"
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        if kind == "token":
            login, options = ["--auth", secret], {}
            environ = {"ASTRA_NATS_TOKEN": secret}
        else:
            login, options = ["--user", "astra", "--pass", secret], {"user": "astra"}
            environ = {"ASTRA_NATS_USER": "astra", "ASTRA_NATS_PASSWORD": secret}
        settings: dict[str, Any] = {
            "dispatcher": "nats",
            "packages": [{"name": "served"}],
            "options": options,
        }
        made = node("queue", "served.plain", parameters={"text": "abc"})
        with nats_server(tmp_path, port, *login):
            put_pool(system, ForeignPool(url), "queue", **settings, secret="wrong-0815-of-nats")
            refused = system.rest.submit(workflow(made))
            system.until(
                lambda: "Authorization Violation" in system.scheduler.said(), "the refusal"
            )
            put_pool(system, ForeignPool(url), "queue", **settings, secret=secret)
            worker = consumer(system, package, tmp_path, url, "queue", **environ)
            worker.start()
            try:
                assert system.rest.run(workflow(made))["status"] == "succeeded"
                assert system.rest.finished(refused)["status"] == "succeeded"
            finally:
                worker.close()
        shown = [system.rest.http.get(f"/api/v1/{path}").text for path in SHOWN]
        shown += [system.rest.story(refused, made["id"]), system.scheduler.said(), worker.said()]
        shown.append(system.rest.http.get("/metrics").text)
        for text in shown:
            assert secret not in text
            assert "wrong-0815-of-nats" not in text

    @pytest.mark.parametrize("url", ["nats://token@127.0.0.1:1", "nats://a:b@127.0.0.1:1"])
    def test_no_credential_stands_in_a_url(self, system: System, url: str) -> None:
        put_pool(system, ForeignPool(url), "queue", wanted=422, dispatcher="nats")

    @pytest.mark.parametrize("limit", ["server", "stream"])
    async def test_a_task_that_is_too_large_fails_at_once(
        self, system: System, tmp_path: Path, limit: str
    ) -> None:
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        config = tmp_path / "nats.conf"
        config.write_text("max_payload: 65536\n" if limit == "server" else "max_payload: 1048576\n")
        with nats_server(tmp_path, port, "-c", str(config)):
            if limit == "stream":
                await small_stream(url, "small", 65_536)
            options = {"stream": "small"} if limit == "stream" else {}
            pool = put_pool(system, ForeignPool(url), "queue", dispatcher="nats", options=options)
            small = system.rest.submit(workflow(node(pool)))
            run = system.rest.run(workflow(node(pool, parameters={"text": "x" * 65_000})))
            failed = run["nodes"][0]
            assert failed["error"]["code"] == "E.DISPATCH.INVALID"
            assert failed["error"]["category"] == "CONFIGURATION"
            assert "at most 65536" in failed["error"]["message"]
            assert failed["attempt"] == 1
            # What fits is not disturbed by it.
            assert system.rest.nodes(small)["n"]["attempt"] == 1
            assert system.rest.nodes(small)["n"]["status"] == "dispatched"

    def test_a_server_that_does_not_answer_delays_no_other(
        self, system: System, tmp_path: Path
    ) -> None:
        package = write_nodes(tmp_path / "served")
        system.rest.publish(package)
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        settings: dict[str, Any] = {"dispatcher": "nats", "packages": [{"name": "served"}]}
        made: dict[str, Any] = {"type": "served.plain", "parameters": {"text": "abc"}}
        with socket.socket() as silent, nats_server(tmp_path, port):
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            away = f"nats://127.0.0.1:{silent.getsockname()[1]}"
            put_pool(system, ForeignPool(away), "away", **settings, maxParallel=50)
            put_pool(system, ForeignPool(url), "queue", **settings)
            stuck = system.rest.submit(workflow(*(node("away", **made) for _ in range(50))))
            system.until(lambda: system.rest.get("pools/away")["inflight"] == 50, "all pushed")
            worker = consumer(system, package, tmp_path, url, "queue")
            worker.start()
            try:
                assert system.rest.run(workflow(node("queue", **made)))["status"] == "succeeded"
                # None of them had its turn alone: all wait for one connection.
                views = system.rest.get(f"runs/{stuck}")["nodes"]
                assert len({view["attempt"] for view in views}) <= 2
            finally:
                worker.close()
            system.rest.post(f"runs/{stuck}/cancel", wanted=200)


async def small_stream(url: str, stream: str, limit: int) -> None:
    """A stream that its operator has made for small messages."""
    client = await nats.connect(url)
    await client.jetstream().add_stream(
        name=stream,
        subjects=["astraflow.tasks.default.queue"],
        retention=RetentionPolicy.WORK_QUEUE,
        max_msg_size=limit,
    )
    await client.close()


class FakeCloudTasks:
    """A queue: it keeps names, refuses one that it knows, and delivers until it gets 2xx."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.requests: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.lost_answers = 0
        self.tokens: list[str] = []
        self.is_open = True

    def create(self, queue: str, token: str, body: dict[str, Any]) -> int:
        if token != "Bearer of-the-machine":
            return 401
        self.tokens.append(token)
        status = self.answers.pop(0) if self.answers else 200
        if status != 200:
            return status
        task = body["task"]
        assert task["name"].startswith(f"{queue}/tasks/")
        if task["name"] in self.names:
            return 409
        self.names.add(task["name"])
        self.requests.append(task["httpRequest"])
        threading.Thread(target=self._deliver, args=(task["httpRequest"],), daemon=True).start()
        if self.lost_answers:
            self.lost_answers -= 1
            return 503  # it was taken, but the answer says otherwise
        return 200

    def _deliver(self, request: dict[str, Any]) -> None:
        def taken() -> bool:
            answer = httpx.request(
                request["httpMethod"],
                request["url"],
                content=base64.b64decode(request["body"]),
                headers=request["headers"],
            )
            return answer.is_success or not self.is_open

        until(taken, "a delivery")


@contextmanager
def cloud_tasks() -> Iterator[tuple[FakeCloudTasks, str]]:
    fake = FakeCloudTasks()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.headers["Metadata-Flavor"] == "Google"
            self._answer(200, {"access_token": "of-the-machine", "expires_in": 3600})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            queue = self.path.removeprefix("/v2/").removesuffix("/tasks")
            self._answer(fake.create(queue, self.headers["Authorization"], body), {})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield fake, f"http://127.0.0.1:{server.server_port}"
    finally:
        fake.is_open = False
        server.shutdown()
        server.server_close()
        thread.join()


class TestCloudTasks:
    def test_a_task_is_created_once_under_its_name(self, system: System, pool: ForeignPool) -> None:
        with cloud_tasks() as (fake, endpoint):
            fake.answers = [429, 503]
            fake.lost_answers = 1
            pool.answers = [503]
            options = {
                "queue": QUEUE,
                "endpoint": endpoint,
                "metadataUrl": f"{endpoint}/token",
                "serviceAccount": "runner@acme.example",
            }
            name = put_pool(
                system, pool, dispatcher="cloud_tasks", options=options, secret="between us"
            )
            run_id = system.rest.submit(workflow(node(name)))
            task = pool.next()
            assert task.headers["x-astraflow-pool-secret"] == "between us"
            assert task.start().status_code == 200
            assert task.succeed(a=1).status_code == 200
            assert system.rest.finished(run_id)["nodes"][0]["attempt"] == 1
            assert len(fake.names) == len(fake.requests) == 1
            assert fake.names == {f"{QUEUE}/tasks/{task.envelope['dispatchId']}"}
            request = fake.requests[0]
            assert request["oidcToken"] == {"serviceAccountEmail": "runner@acme.example"}

    def test_a_task_that_is_too_large_fails_at_once(
        self, system: System, pool: ForeignPool
    ) -> None:
        with cloud_tasks() as (fake, endpoint):
            options = {"queue": QUEUE, "endpoint": endpoint, "metadataUrl": f"{endpoint}/token"}
            name = put_pool(system, pool, dispatcher="cloud_tasks", options=options)
            big = [{"text": "x" * 240_000} for _ in range(4)]
            run = system.rest.run(workflow(node(name, parameters={"parts": big})))
            failed = run["nodes"][0]
            assert failed["error"]["code"] == "E.DISPATCH.INVALID"
            assert "at most 1048576" in failed["error"]["message"]
            assert failed["attempt"] == 1
            assert not fake.tokens

    def test_a_queue_that_is_not_there(self, system: System, pool: ForeignPool) -> None:
        with cloud_tasks() as (fake, endpoint):
            fake.answers = [404] * 10
            options = {"queue": QUEUE, "endpoint": endpoint, "metadataUrl": f"{endpoint}/token"}
            name = put_pool(system, pool, dispatcher="cloud_tasks", options=options)
            run = system.rest.run(workflow(node(name)))
            assert run["nodes"][0]["error"]["code"] == "E.DISPATCH.UNAVAILABLE"
            assert not pool.tasks
