"""Pools that answer badly: by the byte, without end, with far too much, with a redirect, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.http_workers.foreign import ForeignPool, Task
from tests.http_workers.workflows import node, put_pool, workflow
from tests.processes.system import System

Answer = Callable[["Delivery"], None]
READ_S = 60.0


class Delivery:
    """One request, with its connection in the hands of the test."""

    def __init__(self, connection: socket.socket, task: Task) -> None:
        self.connection = connection
        self.task = task
        self.sent = 0
        self.is_closed = threading.Event()

    def say(self, raw: bytes) -> None:
        self.connection.sendall(raw)
        self.sent += len(raw)

    def say_on(self, raw: bytes, pause_s: float = 0.0) -> None:
        """The same again and again, until the other side has gone."""
        while not self.is_closed.wait(pause_s):
            self.say(raw)

    def wait(self) -> None:
        """Until the other side has gone."""
        with suppress(OSError):
            while self.connection.recv(65_536):
                pass
        self.is_closed.set()


class BadPool(ForeignPool):
    """A pool that answers each request with `answer`, each in its own thread."""

    def __init__(self, url: str, answer: Answer) -> None:
        super().__init__(url)
        self.deliveries: list[Delivery] = []
        self._answer = answer

    def serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(READ_S)
            head, body = _request(connection)
            task = Task(json.loads(body), head)
            delivery = Delivery(connection, task)
            self.deliveries.append(delivery)
            self.tasks.append(task)
            watch = threading.Thread(target=delivery.wait, daemon=True)
            watch.start()
            with suppress(OSError):
                self._answer(delivery)
            watch.join()

    def delivery(self, system: System, seen: int = 0) -> Delivery:
        system.until(lambda: len(self.deliveries) > seen, f"delivery {seen + 1}")
        return self.deliveries[seen]


def _request(connection: socket.socket) -> tuple[dict[str, str], bytes]:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += connection.recv(65_536)
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = [line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:]]
    headers = {name.lower(): value for name, _, value in lines}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65_536)
    return headers, body


@contextmanager
def bad_pool(answer: Answer) -> Iterator[BadPool]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pool = BadPool(f"http://127.0.0.1:{server.getsockname()[1]}/tasks", answer)

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=pool.serve, args=(connection,), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        try:
            yield pool
        finally:
            server.shutdown(socket.SHUT_RDWR)


def submit(system: System, pool: BadPool, made: dict[str, Any], **settings: Any) -> str:
    return system.rest.submit(workflow(node(put_pool(system, pool, **settings), **made)))


def until_closed(system: System, delivery: Delivery) -> None:
    system.until(delivery.is_closed.is_set, "the end of the request")


def nothing(delivery: Delivery) -> None:
    """No answer at all."""


def by_the_byte(delivery: Delivery) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX-Long: ":
        delivery.say(bytes([byte]))
    delivery.say_on(b"x", 0.05)


def without_end(delivery: Delivery) -> None:
    delivery.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    delivery.say_on(b"1\r\nx\r\n", 0.05)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (nothing, "completed"),
        (nothing, "cancelled"),
        (by_the_byte, "timed out"),
        (without_end, "completed"),
        (without_end, "cancelled"),
    ],
)
def test_a_request_is_closed_when_its_attempt_has_ended(
    system: System, pool: ForeignPool, answer: Answer, end: str
) -> None:
    with bad_pool(answer) as bad:
        made = {"timeoutSeconds": 0.2} if end == "timed out" else {}
        run_id = submit(system, bad, made, cancelGraceSeconds=0.2)
        delivery = bad.delivery(system)
        task = delivery.task
        assert task.start().status_code == 200
        # Another pool is not kept waiting.
        other = system.rest.submit(workflow(node(put_pool(system, pool))))
        assert pool.next().succeed().status_code == 200
        assert system.rest.finished(other)["status"] == "succeeded"
        assert not delivery.is_closed.is_set()
        if end == "completed":
            assert task.succeed().status_code == 200
        elif end == "cancelled":
            system.rest.post(f"runs/{run_id}/cancel", wanted=200)
            assert task.post("heartbeat").json()["shouldCancel"]
        else:
            system.until(lambda: task.post("heartbeat").json()["shouldCancel"], "the timeout")
        assert system.rest.finished(run_id)["nodes"][0]["attempt"] == 1
        until_closed(system, delivery)
        assert len(bad.deliveries) == 1


def test_an_attempt_that_nobody_starts_leaves_no_request_open(system: System) -> None:
    with bad_pool(nothing) as bad:
        run_id = submit(system, bad, {}, startTimeoutSeconds=0.5)
        first, second = bad.delivery(system), bad.delivery(system, 1)
        assert (first.task.attempt, second.task.attempt) == (1, 2)
        assert second.task.succeed().status_code == 200
        assert system.rest.finished(run_id)["status"] == "succeeded"
        until_closed(system, first)
        until_closed(system, second)


def test_the_body_of_a_refusal_is_not_waited_for(system: System) -> None:
    def later(delivery: Delivery) -> None:
        delivery.say(b"HTTP/1.1 503 Later\r\nContent-Length: 1000000\r\n\r\n")
        delivery.say_on(b"x", 0.05)

    with bad_pool(later) as bad:
        run_id = submit(system, bad, {})
        first, second = bad.delivery(system), bad.delivery(system, 1)
        assert first.task.envelope["dispatchId"] == second.task.envelope["dispatchId"]
        until_closed(system, first)
        assert second.task.succeed().status_code == 200
        assert system.rest.finished(run_id)["nodes"][0]["attempt"] == 1


def test_an_answer_that_is_far_too_long_is_cut_off(system: System) -> None:
    def flood(delivery: Delivery) -> None:
        delivery.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        delivery.say_on(b"x" * 65_536)

    with bad_pool(flood) as bad:
        run_id = submit(system, bad, {})
        delivery = bad.delivery(system)
        until_closed(system, delivery)
        # What lies in the buffers of both sockets was sent, too.
        assert delivery.sent < 20_000_000
        # It had said yes: the attempt is not given away.
        assert system.rest.nodes(run_id)["n"]["status"] == "dispatched"
        assert delivery.task.start().status_code == 200
        assert delivery.task.succeed().status_code == 200
        assert system.rest.finished(run_id)["nodes"][0]["attempt"] == 1
        assert len(bad.deliveries) == 1


@pytest.mark.parametrize("head", [b"X: " + b"x" * 300_000, b"X: x\r\n" * 60_000])
def test_headers_without_end_are_no_answer(system: System, head: bytes) -> None:
    def heads(delivery: Delivery) -> None:
        delivery.say(b"HTTP/1.1 200 OK\r\n" + head)

    with bad_pool(heads) as bad:
        run_id = submit(system, bad, {})
        first, second = bad.delivery(system), bad.delivery(system, 1)
        until_closed(system, first)
        assert second.task.succeed().status_code == 200
        assert system.rest.finished(run_id)["nodes"][0]["attempt"] == 1


def test_a_redirect_is_not_followed(system: System, pool: ForeignPool) -> None:
    def redirect(delivery: Delivery) -> None:
        delivery.say(
            f"HTTP/1.1 307 Elsewhere\r\nLocation: {pool.url}\r\nContent-Length: 0\r\n\r\n".encode()
        )

    with bad_pool(redirect) as bad:
        run = system.rest.finished(submit(system, bad, {}))
        assert run["nodes"][0]["error"]["code"] == "E.DISPATCH.UNAVAILABLE"
        assert not pool.tasks
