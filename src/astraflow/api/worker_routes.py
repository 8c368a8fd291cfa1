"""Workers: list and show them, and give them commands."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_json
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.workers import (
    Command,
    CommandAccepted,
    HeartbeatAnswer,
    ListWorkers,
    RegisterWorker,
    ReportHeartbeat,
    Worker,
    WorkerCommand,
    WorkerDetail,
    WorkerKnown,
    WorkerPage,
)
from astraflow.core.protocol.control import Heartbeat, HeartbeatMetrics
from astraflow.core.security.policy import OPERATE, READ, WORKER_SESSION
from astraflow.core.timestamps import iso
from astraflow.scheduler.reported_workers import ReportedWorker

WORKERS: Final = "/api/v1/workers"
OVER_HTTP: Final = "/api/workers"
_command: Final = msgspec.json.Decoder(WorkerCommand)
_register: Final = msgspec.json.Decoder(RegisterWorker)
_heartbeat: Final = msgspec.json.Decoder(ReportHeartbeat)


class WorkerEndpoints(Endpoints):
    """The endpoints under `/api/v1/workers`."""

    @route("GET", WORKERS, READ, "listWorkers", "list workers that are or were connected",
           tag="workers", query=ListWorkers, replies=WorkerPage)  # fmt: skip
    async def list_workers(self, request: Request[ListWorkers]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("workers", tenant, query.cursor, str) or ""
        known = sorted(self._scheduler.workers.of_tenant(tenant), key=lambda one: one.worker_id)
        rest = [one for one in known if one.worker_id > after and _fits(one, query)]
        page = rest[: query.count]
        last = page[-1].worker_id if len(rest) > len(page) else None
        cursor = self._cursors.make("workers", tenant, last)
        return json_response(WorkerPage(items=page, next_cursor=cursor))

    @route("GET", f"{WORKERS}/{{id}}", READ, "getWorker", "show a worker", tag="workers",
           replies=WorkerDetail)  # fmt: skip
    async def show(self, request: Request[NoQuery]) -> AsgiApp:
        return json_response(self._scheduler.workers.get(request.tenant, request.params["id"]))

    @route(
        "POST",
        f"{WORKERS}/{{id}}/commands",
        OPERATE,
        "commandWorker",
        "tell a worker to drain, to take work again, to release runs, or to change its packages",
        tag="workers",
        body=Command,
        replies={202: Reply("The command is stored.", CommandAccepted)},
    )
    async def command(self, request: Request[NoQuery]) -> AsgiApp:
        worker_id = request.params["id"]
        command = decode_json(await request.json_body(), _command)
        command_id = await self._scheduler.workers.command(
            request.tenant, worker_id, command, request.subject
        )
        kind = str(type(command).__struct_config__.tag)
        view = CommandAccepted(command_id=command_id, worker_id=worker_id, type=kind)
        return json_response(view, 202)

    @route("POST", f"{OVER_HTTP}/register", WORKER_SESSION, "registerWorker",
           "make a worker known over HTTP; nothing is dispatched to it", tag="workers",
           body=RegisterWorker, replies=WorkerKnown)  # fmt: skip
    async def register(self, request: Request[NoQuery]) -> AsgiApp:
        said = decode_json(await request.json_body(), _register)
        header = request.header(b"authorization") or ""
        worker = ReportedWorker(
            tenant=request.tenant,
            worker_id=said.worker_id,
            token=header.partition(" ")[2].strip(),
            name=said.name or said.worker_id,
            version=said.version or "-",
            hostname=said.hostname or "-",
            max_parallel=said.max_parallel,
            packages=[(one.name, one.version) for one in said.packages],
            labels=said.labels,
        )
        await self._scheduler.reported_workers.register(worker)
        interval_ms = self._services.settings.heartbeat_interval_ms
        return json_response(
            WorkerKnown(worker_id=said.worker_id, heartbeat_interval_ms=interval_ms)
        )

    @route("POST", f"{OVER_HTTP}/heartbeat", WORKER_SESSION, "reportHeartbeat",
           "tell that a worker that was made known over HTTP lives", tag="workers",
           body=ReportHeartbeat, replies=HeartbeatAnswer)  # fmt: skip
    async def heartbeat(self, request: Request[NoQuery]) -> AsgiApp:
        said = decode_json(await request.json_body(), _heartbeat)
        metrics = HeartbeatMetrics(said.cpu_pct, said.mem_pct, said.disk_pct)
        beat = Heartbeat(said.healthy, said.draining, (), metrics)
        await self._scheduler.reported_workers.heartbeat(request.tenant, said.worker_id, beat)
        now = iso(self._services.clock.wall_ms())
        return json_response(HeartbeatAnswer(acknowledged=True, server_time=now))


def _fits(worker: Worker, query: ListWorkers) -> bool:
    """Whether a worker is one of those that are asked for."""
    text = query.text.lower()
    has_package = not query.package or any(
        one.name == query.package and one.status == "installed" for one in worker.packages
    )
    has_text = text in worker.name.lower() or text in worker.worker_id.lower()
    return query.status in (None, worker.status) and has_package and has_text
