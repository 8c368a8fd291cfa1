"""The kit for workers without a session, as processes: the same handlers, the same outcomes, the same fence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk.serverless import ServerlessWorker

from tests.http_workers.foreign import ForeignPool
from tests.http_workers.package import write_nodes
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.process import Process
from tests.processes.system import System, running

RETRY = {"maxAttempts": 3, "backoff": {"initialSeconds": 0.05, "maxSeconds": 0.1}}
SECRET = "between the two of us"
QUICK: dict[str, Any] = {"heartbeatIntervalSeconds": 0.3, "heartbeatTimeoutSeconds": 2.0}


class Served(ForeignPool):
    """A pool that is the kit in a process of its own."""

    def __init__(self, system: System, package: Path, folder: Path, *arguments: str) -> None:
        given = ["serverless", "serve", str(package), "--scheduler", system.url, "--port", "0"]
        environ = {"ASTRA_POOL_SECRET": SECRET}
        self.process = Process("served", [*given, *arguments], folder, environ)
        super().__init__("")

    def start(self) -> None:
        self.process.start()
        line = self.process.line(lambda text: text.startswith("listening on "))
        self.url = line.removeprefix("listening on ").strip() + "/tasks"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("kit")) as system:
        yield system


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, system: System) -> Path:
    folder = write_nodes(tmp_path_factory.mktemp("source") / "served")
    system.rest.publish(folder)
    return folder


@pytest.fixture(params=["in the request", "in the background"])
def served(
    request: pytest.FixtureRequest, system: System, package: Path, tmp_path: Path
) -> Iterator[Served]:
    more = ["--background"] if request.param == "in the background" else []
    served = Served(system, package, tmp_path, *more)
    try:
        served.start()
        yield served
    finally:
        served.process.close()


def pushed(system: System, served: ForeignPool, settings: dict[str, Any] | None = None) -> str:
    more = {"packages": [{"name": "served"}], "secret": SECRET, **(settings or {})}
    return put_pool(system, served, **more)


def lines(mark: Path) -> list[str]:
    return [line.split()[0] for line in mark.read_text().splitlines()] if mark.exists() else []


class TestOutcomes:
    def test_results_failures_and_what_is_unknown(self, system: System, served: Served) -> None:
        pool = pushed(system, served)
        ran = system.rest.run(workflow(node(pool, "served.upper", parameters={"text": "abc"})))
        assert ran["nodes"][0]["result"]["text"] == "ABC"
        ran = system.rest.run(workflow(node(pool, "served.plain", parameters={"text": "abc"})))
        assert ran["nodes"][0]["result"] == {"text": "cba"}
        ran = system.rest.run(workflow(node(pool, "served.bad", parameters={}, retry=RETRY)))
        error = ran["nodes"][0]["error"]
        assert error["category"] == "DATA_QUALITY"
        assert error["message"] == "row 3 has no name"
        assert "served_nodes" in error["stack"]
        assert ran["nodes"][0]["attempt"] == 1

    def test_a_wrong_secret_runs_nothing(self, system: System, served: Served) -> None:
        pool = pushed(system, served, {"secret": "guessed"})
        ran = system.rest.run(workflow(node(pool, "served.plain", parameters={"text": "abc"})))
        assert ran["nodes"][0]["error"]["code"] == "E.DISPATCH.UNAVAILABLE"

    def test_a_scheduler_that_is_not_named_is_refused(self, system: System, served: Served) -> None:
        pool = pushed(system, served, {"callbackUrl": "http://127.0.0.1:9"})
        ran = system.rest.run(workflow(node(pool, "served.plain", parameters={"text": "abc"})))
        assert ran["nodes"][0]["error"]["code"] == "E.DISPATCH.UNAVAILABLE"

    def test_cancel_and_timeout_stop_it(
        self, system: System, served: Served, tmp_path: Path
    ) -> None:
        pool = pushed(system, served, QUICK)
        mark = tmp_path / "mark"
        slow = {"mark": str(mark), "seconds": 60}
        run_id = system.rest.submit(workflow(node(pool, "served.slow", parameters=slow)))
        system.until(lambda: "begin" in lines(mark), "the start")
        system.rest.post(f"runs/{run_id}/cancel", wanted=200)
        run = system.rest.finished(run_id)
        assert run["status"] == "cancelled"
        assert run["nodes"][0]["status"] == "cancelled"
        assert lines(mark) == ["begin", "cancelled"]
        ran = system.rest.run(
            workflow(node(pool, "served.slow", parameters=slow, timeoutSeconds=0.5))
        )
        assert ran["nodes"][0]["error"]["category"] == "TIMEOUT"

    def test_progress_is_shown(self, system: System, served: Served, tmp_path: Path) -> None:
        pool = pushed(system, served, QUICK)
        slow = {"mark": str(tmp_path / "mark"), "seconds": 3}
        run_id = system.rest.submit(workflow(node(pool, "served.slow", parameters=slow)))
        seen = system.until(lambda: system.rest.nodes(run_id)["n"]["progress"], "progress")
        assert 0 < seen <= 1
        assert system.rest.finished(run_id)["status"] == "succeeded"


class TestSecrets:
    @pytest.mark.parametrize("how", ["returns", "raises", "logs"])
    def test_a_secret_is_masked_in_all_that_is_reported(
        self, system: System, served: Served, tmp_path: Path, how: str
    ) -> None:
        value = "canary-4711/of the kit"
        answer = system.rest.http.put("/api/v1/secrets/kit", json={"value": value})
        assert answer.is_success, answer.text
        pool = pushed(system, served, QUICK)
        go_on = tmp_path / "go on"
        given = {"key": {"secretRef": {"name": "kit"}}, "how": how, "go_on": str(go_on)}
        run_id = system.rest.submit(workflow(node(pool, "served.telling", parameters=given)))
        shown = system.until(lambda: system.rest.nodes(run_id)["n"]["message"], "a message")
        assert shown in ("logged ***", "logged ***\n", "at work with ***")
        go_on.touch()
        ended = system.rest.finished(run_id)["nodes"][0]
        if how == "raises":
            assert ended["error"]["message"] == "refused ***"
            assert "refused ***" in ended["error"]["stack"]
        else:
            assert ended["result"] == {
                "returned": "***", "inside": ["a *** b"], "***": 1, "twice": "b'***'",
            }  # fmt: skip
        texts = [json.dumps(ended), system.rest.story(run_id, ended["nodeId"])]
        query = {"runId": run_id}
        texts.append(system.rest.http.get("/api/v1/events", params=query).text)
        texts += [system.scheduler.said(), served.process.said()]
        assert not [text for text in texts if "canary-4711" in text]


def test_the_same_file_runs_with_a_session(package: Path, tmp_path: Path) -> None:
    with running(tmp_path / "site", 1) as system:
        system.rest.publish(package)
        made = node("none", "served.upper", parameters={"text": "abc"})
        del made["workerHints"]
        ran = system.rest.run(workflow(made))
        assert ran["nodes"][0]["result"]["text"] == "ABC"
        assert not ran["nodes"][0]["workerId"].startswith("pool/")


class TestFaults:
    def test_the_scheduler_is_killed_while_it_runs(self, package: Path, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        with running(tmp_path / "site") as system:
            system.rest.publish(package)
            served = Served(system, package, tmp_path)
            try:
                served.start()
                pool = pushed(system, served, {**QUICK, "heartbeatTimeoutSeconds": 30.0})
                slow = {"mark": str(mark), "seconds": 2}
                run_id = system.rest.submit(workflow(node(pool, "served.slow", parameters=slow)))
                system.until(lambda: "begin" in lines(mark), "the start")
                system.restart()
                run = system.rest.finished(run_id)
                assert run["status"] == "succeeded"
                assert run["nodes"][0]["attempt"] == 1
                assert lines(mark) == ["begin", "end"]
            finally:
                served.process.close()

    def test_a_scheduler_that_was_killed_before_the_start_pushes_again(
        self, tmp_path: Path, pool: ForeignPool
    ) -> None:
        with running(tmp_path / "site") as system:
            name = put_pool(system, pool)
            run_id = system.rest.submit(workflow(node(name)))
            first = pool.next()
            system.restart()
            second = pool.next(1)
            assert second.attempt == first.attempt == 1
            assert second.envelope["dispatchId"] == first.envelope["dispatchId"]
            assert first.start().status_code == 200
            assert second.start().status_code == 409
            system.restart()
            assert first.start().status_code == 200
            assert first.post("heartbeat").status_code == 200
            assert first.succeed(a=1).status_code == 200
            system.restart()
            assert first.succeed(a=1).json()["finalState"] == "SUCCEEDED"
            assert system.rest.finished(run_id)["nodes"][0]["result"] == {"a": 1}
            assert len(pool.tasks) == 2

    def test_the_worker_is_killed(self, system: System, package: Path, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        served = Served(system, package, tmp_path)
        try:
            served.start()
            pool = pushed(system, served, QUICK)
            slow = {"mark": str(mark), "seconds": 1}
            made = node(pool, "served.slow", parameters=slow, retry=RETRY)
            run_id = system.rest.submit(workflow(made))
            system.until(lambda: "begin" in lines(mark), "the start")
            served.process.kill()
            served.start()
            put_pool(system, served, pool, packages=[{"name": "served"}], **QUICK)
            run = system.rest.finished(run_id)
            assert run["status"] == "succeeded"
            assert run["nodes"][0]["failures"] == 1
            assert lines(mark) == ["begin", "begin", "end"]
        finally:
            served.process.close()

    def test_a_handler_that_does_not_stop_at_its_fence_ends_the_process(
        self, system: System, package: Path, tmp_path: Path
    ) -> None:
        mark = tmp_path / "mark"
        served = Served(system, package, tmp_path)
        try:
            served.start()
            pool = pushed(system, served, {**QUICK, "heartbeatTimeoutSeconds": 3.0})
            stubborn = {"mark": str(mark), "seconds": 120}
            made = node(pool, "served.stubborn", parameters=stubborn)
            run_id = system.rest.submit(workflow(made))
            system.until(lambda: "alive" in lines(mark), "the start")
            with system.scheduler.frozen():
                assert served.process.wait() == 70
            assert "end" not in lines(mark)
            assert system.rest.finished(run_id)["status"] == "failed"
        finally:
            served.process.close()

    def test_two_deliveries_run_once(
        self, system: System, package: Path, pool: ForeignPool, tmp_path: Path
    ) -> None:
        worker = ServerlessWorker.of_package(str(package), schedulers=[system.url])
        mark = tmp_path / "mark"
        name = put_pool(system, pool, packages=[{"name": "served"}], **QUICK)
        slow = {"mark": str(mark), "seconds": 0.5}
        run_id = system.rest.submit(workflow(node(name, "served.slow", parameters=slow)))
        raw = json.dumps(pool.next().envelope).encode()
        replies: list[bytes] = []

        def deliver() -> None:
            replies.append(worker.handle(raw, {}).body)

        threads = [threading.Thread(target=deliver) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert system.rest.finished(run_id)["status"] == "succeeded"
        assert lines(mark) == ["begin", "end"]
        said = sorted(json.loads(one)["status"] for one in replies)
        assert said == ["completed", "ignored", "ignored", "ignored"]
        late = worker.handle(raw, {})
        assert (late.status, json.loads(late.body)["status"]) == (200, "ignored")
        assert lines(mark) == ["begin", "end"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "status"),
        [
            ({"tenantId": "umbrella"}, 403),
            ({"callbackBaseUrl": "http://127.0.0.1:1"}, 403),
            ({"callbackBaseUrl": "http://127.0.0.1@evil.example/"}, 403),
            ({"callbackBaseUrl": "file:///etc/passwd"}, 403),
            ({"taskToken": None}, 400),
            ({"attempt": 0}, 400),
            ({"attempt": True}, 400),
            ({"parameters": []}, 400),
            ({"heartbeatTimeoutMs": 0}, 400),
        ],
    )
    def test_a_push_that_is_not_run(
        self,
        system: System,
        package: Path,
        pool: ForeignPool,
        change: dict[str, Any],
        status: int,
    ) -> None:
        name = put_pool(system, pool, packages=[{"name": "served"}])
        run_id = system.rest.submit(
            workflow(node(name, "served.plain", parameters={"text": "abc"}))
        )
        task = pool.next()
        worker = ServerlessWorker.of_package(str(package), schedulers=[system.url])
        reply = worker.handle(json.dumps({**task.envelope, **change}).encode(), {})
        assert reply.status == status, reply
        assert task.token.encode() not in reply.body
        assert system.rest.nodes(run_id)["n"]["status"] == "dispatched"
        assert worker.handle(json.dumps(task.envelope).encode(), {}).status == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"

    @pytest.mark.parametrize("raw", [b"", b"null", b"[1]", b"{", b"\xff", b"[" * 100_000])
    def test_a_body_that_is_no_envelope(self, package: Path, raw: bytes) -> None:
        worker = ServerlessWorker.of_package(str(package), schedulers=["http://127.0.0.1:1"])
        assert worker.handle(raw, {}).status == 400
