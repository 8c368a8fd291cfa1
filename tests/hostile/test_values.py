"""Whatever a worker sends and the codec accepts can be stored, shown, and read again after a `kill -9`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.foreign import NODE, Foreign, echo
from tests.processes.postgres import postgres_server
from tests.processes.system import System, running

OUT_OF_RANGE = (
    "9999-12-31T23:59:59.9999999Z",
    "9999-12-31T00:00:00Z",
    "9999-12-30T23:59:59-23:59",
    "1970-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-02-30T00:00:00Z",
    "2026-01-15T10:00:00",
    "when I like",
)
TIMES = (
    "1970-01-01T00:00:00Z",
    "1970-01-01t23:59:00.0000000001+23:59",
    "1969-12-31T23:59:59.999-23:59",
    "9999-12-30T23:59:59.9999999Z",
    "9999-12-31T23:58:59.999+23:59",
    "2016-12-31T23:59:60Z",
    "2026-01-15 10:00:00-00:00",
)
DEEP: Any = 1
for _ in range(58):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    0,
    -0.0,
    2**53,
    -(2**53),
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1.7976931348623157e308,
    -1e308,
    5e-324,
    1e-320,
    True,
    None,
    "",
    "\x01\x1f\x7f\x80",
    "\u2028\u2029\ufeff\ufffe\uffff",
    "\U0001f600\U0010ffff",
    "'\"\\/%00\n\r\t",
    "x" * 100_000,
    [],
    {},
    [[], {}, ""],
    {"": {"": ""}},
    {"\x01": 1, "\U0001f600": 2, "a/b~c": 3},
    DEEP,
    list(range(5_000)),
)
NAMES = ("n" * 256, "\x01", "\U0001f600" * 256, "a/b?c#d%2e", " ", ".", "..", "'; DROP", "\u202e")
IDS = ("n" * 256, "\U0001f600" * 256, "a/b?c#d%2e%2f", " ", "...", "é", "'; DROP", "a\\b")
NO_IDS = ("\x01", "\u202e", ".", "..", "a/../b", "a//b", "/a", "a/")
COUNTS = (0, 1, 2**31, 2**32, 2**53)


def resource_events() -> Iterator[dict[str, Any]]:
    for number, at in enumerate(TIMES):
        yield {
            "resource_id": f"time-{number}",
            "state": "ready",
            "expires_at": at,
            "created_at": at,
        }
    for number, value in enumerate(VALUES):
        metadata = {"value": value, "durable": value}
        yield {"resource_id": f"value-{number}", "state": "ready", "metadata": metadata}
        yield {"resource_id": f"bare-{number}", "state": "ready", "metadata": value}
    for number, name in enumerate(NAMES):
        package = {"name": name, "version": name}
        named = dict.fromkeys(("type", "scope", "run_id", "node_id"), name)
        made = {"resource_id": f"name-{number}", "state": "ready", "package": package}
        yield {**made, **named, "error": name}
    for name in IDS:
        yield {"resource_id": name, "state": "ready"}
    for number, size in enumerate(COUNTS):
        yield {"resource_id": f"size-{number}", "state": "touched", "size_bytes": size}


def other_frames(worker: str, run_id: str) -> Iterator[tuple[str, Any]]:
    task = {"run_id": run_id, "task_id": f"{run_id}.0", "attempt": 1}
    for value in VALUES:
        chunk = {"channel": "c", "index": 2**53, "text": "\x01", "metadata": value}
        yield "biz.exec.feedback", {**task, "chunks": [chunk], "metrics": {"\x01": 1e308}}
        yield "biz.pkg.event", {
            "name": "p", "version": "1", "status": "failed", "progress": 5e-324, "details": value,
        }  # fmt: skip
        yield "biz.pkg.catalog", {
            "name": "p", "version": "1", "manifest_sha256": "0", "manifest": value,
        }  # fmt: skip
    for name in NAMES:
        yield "biz.pkg.event", {"name": name, "version": name, "status": "installed"}
        yield "biz.exec.feedback", {**task, "stage": name, "message": name, "progress": -0.0}
        yield "biz.exec.error", {**task, "attempt": 2**53, "code": name, "message": name}
        yield "biz.exec.next.request", {**task, "request_id": name, "chain_index": 2**53}


def result_of(dispatch: dict[str, Any], worker: str, value: Any) -> dict[str, Any]:
    named = {name: dispatch[name] for name in ("run_id", "task_id", "attempt")}
    artifacts = [
        {
            "resource_id": f"{dispatch['run_id']}-{number}",
            "worker_id": worker,
            "type": NAMES[number % len(NAMES)],
            "size_bytes": 2**53,
            "expires_at": at,
            "metadata": {"value": value},
        }
        for number, at in enumerate(TIMES)
    ]
    return {
        **named,
        "status": "SUCCEEDED",
        "result": value,
        "artifacts": artifacts,
        "duration_ms": 2**53,
        "metrics": {"m": -1e308},
    }


REGISTER = {
    "capabilities": {
        "concurrency": {"max_parallel": 2**53, "per_node_limits": {"core.echo": 2**53, "\x01": 0}},
        "runtimes": ["python", "\x01"],
        "features": ["\U0001f600"],
    },
    "labels": {"\x01": "", "l" * 256: "\U0001f600" * 1000},
    "packages": [
        {"name": "core", "version": "1.0.0", "status": "installed"},
        {"name": "\x01", "version": "v" * 256, "status": "\x01", "manifest_sha256": ""},
    ],
}
HEARTBEAT = {
    "attempts": [],
    "metrics": {
        "cpu_pct": 1e308,
        "mem_pct": 5e-324,
        "disk_pct": -0.0,
        "inflight": 2**53,
        "latency_ms": -1e308,
        "resource": {
            "disk_bytes_in_use": 2**53,
            "mem_bytes_in_use": 2**53,
            "last_gc_seconds": 5e-324,
        },
    },
    "packages": {"digest": "\x01"},
}


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    if request.param != "postgresql":
        url = "memory://" if request.param == "memory" else None
        with running(tmp_path, database_url=url, heartbeat_ms=1000) as server:
            yield server
        return
    with postgres_server() as url, running(tmp_path, database_url=url, heartbeat_ms=1000) as server:
        yield server


async def test_values_at_the_edges_of_every_type_are_kept_and_shown(server: System) -> None:
    async with Foreign(server.port, "edge") as worker:
        await worker.enter(register=REGISTER, incarnation=2**53)
        worker.say("control.heartbeat", HEARTBEAT)
        runs = [await asyncio.to_thread(server.rest.submit, echo()) for _ in VALUES]
        values = dict(zip(runs, VALUES, strict=True))
        worker.answer = lambda dispatch: result_of(dispatch, "edge", values[dispatch["run_id"]])
        await worker.until(lambda: worker.done == len(VALUES))
        for event in resource_events():
            worker.tell("biz.resource.event", event)
            if len(worker.unacked) > 100:
                await worker.until_acked()
        for number, (kind, payload) in enumerate(other_frames("edge", runs[0])):
            worker.tell(kind, payload)
            if number % 100 == 0:
                await worker.until_acked()
        await worker.until_acked()
        assert worker.errors == []
        paths = [f"runs/{run_id}/nodes/{NODE}" for run_id in runs]
        shown = [await asyncio.to_thread(server.rest.get, path) for path in paths]
        assert {node["status"] for node in shown} == {"succeeded"}
        results = [node["result"] for node in shown]
        assert json.dumps(results) == json.dumps(VALUES)
        await asyncio.to_thread(server.rest.read_everything)
    if server.database_url != "memory://":
        server.restart()
    server.rest.read_everything()
    sizes = {
        row["resourceId"]: row["sizeBytes"]
        for row in server.rest.get("resources?limit=200")["items"]
    }
    assert sizes.get("size-4") == 2**53


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_a_time_or_an_id_that_cannot_be_used_is_a_bad_payload_at_every_boot(
    server: System,
) -> None:
    async with Foreign(server.port, "w") as worker:
        await worker.enter()
        sent = [
            worker.tell("biz.resource.event", {"resource_id": "r", "state": "ready", field: at})
            for at in OUT_OF_RANGE[:3]  # ten refusals in ten seconds end a session
            for field in ("expires_at", "created_at")
        ]
        await worker.until_acked()
        assert [(one["for"], one["code"]) for one in worker.errors] == [
            (frame_id, "E.PROTOCOL.BAD_PAYLOAD") for frame_id in sent
        ]
        del worker.errors[:]
        sent = [
            worker.tell("biz.resource.event", {"resource_id": name, "state": "ready"})
            for name in NO_IDS[:2]
        ]
        await worker.until_acked()
        assert [one["for"] for one in worker.errors] == sent
        run_id = await asyncio.to_thread(server.rest.submit, echo())
        worker.answer = lambda dispatch: {
            **result_of(dispatch, "w", 1),
            "artifacts": [
                {"resource_id": "a", "worker_id": "w", "type": "t", "expires_at": OUT_OF_RANGE[0]}
            ],
        }
        await worker.until(lambda: worker.done == 1)
        await worker.until_acked()
        assert await asyncio.to_thread(server.rest.run_status, run_id) == "failed"
        server.restart()
        worker.tell("biz.resource.event", {"resource_id": "r", "state": "ready", "expires_at": "x"})
        await worker.until_acked()
        await asyncio.to_thread(server.rest.read_everything)
