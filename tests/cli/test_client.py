"""`astraflow.Client` and `astraflow.AsyncClient` against a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import astraflow
from astraflow.builder import core, server_catalog
from astraflow.client import RunFailed
from astraflow.core import errors
from tests.cli.workflows import EXAMPLES, FAILING, SLOW, node, workflow
from tests.processes.command_line import Up

RETRY = json.loads((EXAMPLES / "retry.json").read_text())


@pytest.fixture
def client(server: Up) -> Iterator[astraflow.Client]:
    with astraflow.Client(server.url, server.token) as client:
        yield client


def test_a_run_is_started_followed_and_gives_its_results(client: astraflow.Client) -> None:
    handle = client.run(RETRY)
    kinds = [event.type for event in handle.events()]
    assert (kinds[0], kinds[-1]) == ("run.status", "run.status")
    run = handle.wait()
    assert run.status == "succeeded"
    assert run.node("Fails twice").failures == 2
    assert handle.result()[run.node("Third time lucky").node_id] == {
        "value": "it worked in the end"
    }
    assert list(handle.events(after=run.last_event)) == []


def test_a_built_workflow_runs_and_gives_its_results_by_label(client: astraflow.Client) -> None:
    flow = astraflow.Flow("Built", catalog=server_catalog(client.catalog.iterate()))
    name = flow.input("name", {"type": "string"})
    large = core.python(flow, "Large", code="def main():\n    return {'text': 'x' * 20_000}\n")
    said = core.template(flow, "Said", template="Hello, {{name}}", values={"name": name})
    large >> said
    handle = client.run(flow.to_json(), {"name": "Ada"})
    results = handle.results()
    assert results["Said"] == {"text": "Hello, Ada"}
    assert len(results["Large"]["text"]) == 20_000
    run = handle.status()
    assert run.results["Said"] == {"text": "Hello, Ada"}
    with pytest.raises(KeyError, match="too large"):
        run.results["Large"]


async def test_a_list_can_be_walked_to_a_limit(client: astraflow.Client, server: Up) -> None:
    for _ in range(3):
        client.run(workflow(node(1, "noop"))).wait()
    newest = [one.run_id for one in client.runs.list(limit=2).items]
    assert [one.run_id for one in client.runs.iterate(limit=2)] == newest
    assert [one.run_id for one in client.runs.iterate(limit=2, page_size=1)] == newest
    assert list(client.runs.iterate(limit=0)) == []
    assert len(list(client.workers.iterate(limit=5))) == 1
    async with astraflow.AsyncClient(server.url, server.token) as other:
        walked = [one.run_id async for one in other.runs.iterate(limit=2, page_size=1)]
    assert walked == newest


def test_the_same_key_is_the_same_run(client: astraflow.Client) -> None:
    first = client.run(RETRY, idempotency_key="client-key")
    assert client.run(RETRY, idempotency_key="client-key").run_id == first.run_id
    with pytest.raises(errors.Conflict):
        client.run(FAILING, idempotency_key="client-key")


def test_a_failed_run_raises_what_went_wrong(client: astraflow.Client) -> None:
    handle = client.run(FAILING)
    with pytest.raises(RunFailed, match="failed") as raised:
        handle.result()
    assert raised.value.run.node("Breaks").error is not None


def test_waiting_can_be_bounded_and_a_run_cancelled(client: astraflow.Client) -> None:
    handle = client.run(SLOW)
    with pytest.raises(errors.Unavailable, match="has not ended yet"):
        handle.wait(timeout_s=0.05)
    assert handle.cancel().cancel_requested
    assert handle.wait().status == "cancelled"
    with pytest.raises(RunFailed, match="cancelled"):
        handle.result()


def test_workflows_runs_and_workers_are_typed(client: astraflow.Client) -> None:
    definition = workflow(node(7, "noop"))
    saved = client.workflows.create(definition)
    assert client.workflows.save(definition["id"], definition, if_version=1).version == 2
    with pytest.raises(errors.Conflict):
        client.workflows.save(definition["id"], definition, if_version=1)
    assert saved.definition == definition
    assert client.workflows.get(definition["id"], 1).version == 1
    run = client.run(definition["id"]).wait()
    assert run.workflow_id == definition["id"]
    assert run.run_id in [one.run_id for one in client.runs.iterate(page_size=1)]
    assert client.runs.definition(run.run_id) == definition
    assert client.runs.node(run.run_id, definition["nodes"][0]["id"]).story
    client.workflows.delete(definition["id"])
    with pytest.raises(errors.NotFound):
        client.workflows.get(definition["id"])
    (worker,) = client.workers.list().items
    assert client.workers.get(worker.worker_id).name == "worker-1"
    assert client.me().role == "admin"
    assert client.is_ready()


def test_what_is_invalid_is_refused_with_all_problems(client: astraflow.Client) -> None:
    with pytest.raises(errors.Refused) as raised:
        client.workflows.validate(workflow(node(1, "nope"), node(1, "noop")))
    assert raised.value.detail is not None
    assert len(raised.value.detail["errors"]) >= 2


async def test_the_asynchronous_client_does_the_same(server: Up) -> None:
    async with astraflow.AsyncClient(server.url, server.token) as client:
        handle = await client.run(RETRY)
        kinds = [event.type async for event in handle.events()]
        assert kinds[-1] == "run.status"
        assert (await handle.wait()).status == "succeeded"
        assert len(await handle.result()) == 2
        slow = await client.run(SLOW)
        with pytest.raises(errors.Unavailable):
            await slow.wait(timeout_s=0.05)
        assert (await slow.cancel()).cancel_requested
        found = [one.run_id async for one in client.runs.iterate()]
        assert {handle.run_id, slow.run_id} <= set(found)
        assert [one.name async for one in client.workers.iterate()] == ["worker-1"]
        assert await client.is_ready()
        with pytest.raises(errors.NotFound):
            await client.runs.get("nothing")


def read_message(connection: socket.socket) -> bytes:
    """One request or response, with the whole of its body: both may come in pieces."""
    with connection.makefile("rb") as stream:
        head = list(iter(stream.readline, b"\r\n"))
        sizes = [
            int(line.split()[1]) for line in head if line.lower().startswith(b"content-length")
        ]
        return b"".join([*head, b"\r\n", stream.read(*sizes)])


@contextmanager
def cutting(url: str, cuts: int) -> Iterator[str]:
    """A door to the server that loses the first answers: the request goes through, the answer does not come back."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            left = cuts
            while True:
                try:
                    inner, _ = door.accept()
                except OSError:
                    return
                with inner, socket.create_connection((host, int(port))) as outer:
                    outer.sendall(read_message(inner))
                    answer = read_message(outer)
                    if left > 0:
                        left -= 1
                        continue
                    inner.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_submission_whose_answer_is_lost_is_one_run(server: Up, client: astraflow.Client) -> None:
    before = {one.run_id for one in client.runs.iterate()}
    with cutting(server.url, cuts=2) as url, astraflow.Client(url, server.token) as unlucky:
        handle = unlucky.run(workflow(node(1, "noop")))
    after = {one.run_id for one in client.runs.iterate()}
    assert after - before == {handle.run_id}


def test_what_answers_but_is_no_scheduler_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            inner, _ = door.accept()
            with inner:
                inner.recv(65536)
                inner.sendall(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>"
                )

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        with (
            astraflow.Client(url, "t") as client,
            pytest.raises(errors.Unavailable, match="not a scheduler") as raised,
        ):
            client.runs.list()
        thread.join()
    assert raised.value.code is errors.SERVER_FOREIGN
