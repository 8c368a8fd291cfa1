"""Workers: who is there, and what they are told to do."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar.types import ASGIApp

from astraflow.api.answers import answer_json
from astraflow.api.ports import WorkerCommand
from astraflow.api.requests import Call, decode_json
from astraflow.api.routes import Parts
from astraflow.core.timestamps import iso
from astraflow.scheduler.workers import WorkerView

__all__ = ["WorkerEndpoints"]

_command: Final = msgspec.json.Decoder(WorkerCommand)


class WorkerEndpoints:
    """The endpoints under `/api/v1/workers`."""

    def __init__(self, parts: Parts) -> None:
        self._scheduler = parts.scheduler
        self._cursors = parts.cursors

    async def list_workers(self, call: Call) -> ASGIApp:
        limit = call.limit()
        cursor = call.text("cursor", 512)
        after = self._cursors.read("workers", call.tenant, cursor, str) if cursor else ""
        known = sorted(
            self._scheduler.workers.of_tenant(call.tenant), key=lambda one: one.worker_id
        )
        rest = [one for one in known if one.worker_id > after]
        page = rest[:limit]
        last = page[-1].worker_id if len(rest) > limit else None
        return answer_json(
            {
                "items": [_view(worker) for worker in page],
                "nextCursor": last and self._cursors.make("workers", call.tenant, last),
            }
        )

    async def show(self, call: Call) -> ASGIApp:
        return answer_json(_view(self._scheduler.workers.get(call.tenant, _id(call))))

    async def command(self, call: Call) -> ASGIApp:
        worker_id = _id(call)
        command = decode_json(await call.json_body(), _command)
        command_id = await self._scheduler.workers.command(
            call.tenant, worker_id, command, call.bearer.subject
        )
        kind = type(command).__struct_config__.tag
        view = {"commandId": command_id, "workerId": worker_id, "type": kind}
        return answer_json(view, 202)


def _id(call: Call) -> str:
    value: str = call.params["id"]
    return value


def _view(worker: WorkerView) -> dict[str, Any]:
    view: dict[str, Any] = {
        "workerId": worker.worker_id,
        "name": worker.name,
        "tenant": worker.tenant,
        "status": worker.status,
        "version": worker.version,
        "hostname": worker.hostname,
        "maxParallel": worker.max_parallel,
        "inflight": worker.inflight,
        "packages": worker.packages,
        "labels": worker.labels,
        "lastHeartbeatAt": iso(worker.last_heartbeat_at) if worker.last_heartbeat_at else None,
    }
    if worker.resources:
        view["resources"] = {_camel(name): value for name, value in worker.resources.items()}
    if worker.drain_requested:
        view["drainRequested"] = True
    if worker.has_drifted:
        view["inventoryDrift"] = True
    return view


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
