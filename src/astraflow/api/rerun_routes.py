"""Repeat runs, compare them, and cancel or repeat many of them."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec import UNSET

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, check_values, decode_json
from astraflow.api.responses import json_response
from astraflow.api.routes import Endpoints, Place, Reply, route
from astraflow.api.run_routes import (
    KEY_HEADER,
    RUNS,
    TRACE_HEADER,
    fingerprint_of,
    idempotency_key,
    traceparent_of,
)
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.reruns import (
    BulkItem,
    BulkResult,
    CancelManyRequest,
    Rerun,
    RerunManyRequest,
    RerunRequest,
    RunComparison,
)
from astraflow.core.contract.words import RunStatus
from astraflow.core.errors import Refused
from astraflow.core.ids import RunId
from astraflow.core.runs.comparison import compare_runs, side_of
from astraflow.core.security.policy import READ, START
from astraflow.core.timestamps import iso
from astraflow.scheduler.bulk_runs import CancelOrder
from astraflow.scheduler.reruns import RepeatedRun, RerunOrder, key_of_many
from astraflow.store.rows import RunRow

INLINE_BYTES: Final = 64 * 1024
"""More is compared in a thread: heartbeats must not wait for it."""

_rerun_request: Final = msgspec.json.Decoder(RerunRequest)
_cancel_request: Final = msgspec.json.Decoder(CancelManyRequest)
_many_request: Final = msgspec.json.Decoder(RerunManyRequest)


class RerunEndpoints(Endpoints):
    """The endpoints that repeat, compare, and work on many runs."""

    @route(
        "POST",
        f"{RUNS}/{{runId}}/rerun",
        START,
        "rerunRun",
        "repeat a run, whole or in part",
        tag="runs",
        text="A new run, which takes over the results that are not repeated. A run that is active is a 409. What has "
        "changed is validated as in a submission.",
        headers=(KEY_HEADER, TRACE_HEADER),
        body=RerunRequest,
        is_body_required=False,
        replies={202: Reply("The new run exists.", Rerun, headers={"Location": "Its path."})},
    )
    async def rerun(self, request: Request[NoQuery]) -> AsgiApp:
        run_id, key = RunId(request.params["runId"]), idempotency_key(request)
        await self._scheduler.reader.get_row(request.tenant, run_id)
        body = await request.optional_body() or b"{}"
        wanted = decode_json(body, _rerun_request)
        _check_rerun(wanted)
        done = await self._scheduler.reruns.submit(
            RerunOrder(
                tenant=request.tenant,
                run_id=run_id,
                by=request.subject,
                mode=wanted.mode,
                nodes=tuple(wanted.nodes),
                parameters=wanted.parameters,
                inputs=None if wanted.inputs is UNSET else wanted.inputs,
                packages=wanted.packages,
                idempotency_key=key,
                fingerprint=None if key is None else await fingerprint_of(run_id.encode() + body),
                traceparent=traceparent_of(request),
            )
        )
        view = _rerun_view(done, run_id)
        return json_response(view, 202, [(b"location", f"{RUNS}/{view.run_id}".encode())])

    @route("GET", f"{RUNS}/{{first}}/compare/{{second}}", READ, "compareRuns",
           "compare two runs node by node", tag="runs", replies=RunComparison, place=Place.RUN)  # fmt: skip
    async def compare(self, request: Request[NoQuery]) -> AsgiApp:
        first, second = [
            side_of(
                await self._scheduler.reader.get_record(request.tenant, RunId(request.params[name]))
            )
            for name in ("first", "second")
        ]
        if first.size + second.size <= INLINE_BYTES:
            return json_response(compare_runs(first, second))
        return json_response(await asyncio.to_thread(compare_runs, first, second))

    @route(
        "POST",
        f"{RUNS}/cancel",
        START,
        "cancelRuns",
        "cancel many runs",
        tag="runs",
        text="Those that fit, newest first. `dryRun` only lists them.",
        body=CancelManyRequest,
        replies=BulkResult,
    )
    async def cancel_many(self, request: Request[NoQuery]) -> AsgiApp:
        wanted = decode_json(await request.json_body(), _cancel_request)
        statuses: tuple[RunStatus, ...] = ("queued", "running")
        if wanted.status is not None:
            statuses = (wanted.status,)
        rows = await self._scheduler.reruns.find(
            request.tenant,
            statuses,
            limit=wanted.limit + 1,
            before=self._before("cancel", request, wanted.cursor),
            workflow_id=wanted.workflow_id,
        )
        items: list[BulkItem] = []
        for row in rows[: wanted.limit]:
            if row.cancel_requested:
                continue
            items.append(
                BulkItem(run_id=row.run_id) if wanted.dry_run else await self._cancel(request, row)
            )
        return self._bulk("cancel", request, rows, items, wanted)

    async def _cancel(self, request: Request[NoQuery], row: RunRow) -> BulkItem:
        order = CancelOrder(request.tenant, row.run_id, request.subject)
        return await self._scheduler.bulk_runs.carry_out(row.lane, order)

    @route(
        "POST",
        f"{RUNS}/rerun",
        START,
        "rerunRuns",
        "repeat many runs",
        tag="runs",
        text="Those that fit, newest first. `dryRun` only lists them. With an Idempotency-Key, sent again it repeats "
        "no run twice.",
        headers=(KEY_HEADER,),
        body=RerunManyRequest,
        replies=BulkResult,
    )
    async def rerun_many(self, request: Request[NoQuery]) -> AsgiApp:
        key = idempotency_key(request)
        body = await request.json_body()
        wanted = decode_json(body, _many_request)
        rows = await self._scheduler.reruns.find(
            request.tenant,
            (wanted.status,),
            limit=wanted.limit + 1,
            before=self._before("rerun", request, wanted.cursor),
            workflow_id=wanted.workflow_id,
        )
        items = [
            BulkItem(run_id=row.run_id)
            if wanted.dry_run
            else await self._rerun(request, row, wanted, key)
            for row in rows[: wanted.limit]
        ]
        return self._bulk("rerun", request, rows, items, wanted)

    async def _rerun(
        self, request: Request[NoQuery], row: RunRow, wanted: RerunManyRequest, key: str | None
    ) -> BulkItem:
        order = RerunOrder(
            tenant=request.tenant,
            run_id=row.run_id,
            by=request.subject,
            mode=wanted.mode,
            packages=wanted.packages,
            idempotency_key=key_of_many(key, row.run_id),
        )
        return await self._scheduler.bulk_runs.carry_out(row.lane, order)

    def _before(self, what: str, request: Request[NoQuery], cursor: str) -> tuple[int, str] | None:
        return self._cursors.read(f"bulk {what}", request.tenant, cursor, tuple[int, str])

    def _bulk(
        self,
        what: str,
        request: Request[NoQuery],
        rows: list[RunRow],
        items: list[BulkItem],
        wanted: CancelManyRequest | RerunManyRequest,
    ) -> AsgiApp:
        has_more = len(rows) > wanted.limit
        last = rows[wanted.limit - 1] if has_more else None
        after = None if last is None else (last.created_at, last.run_id)
        view = BulkResult(
            items=items,
            dry_run=wanted.dry_run,
            more=has_more,
            next_cursor=self._cursors.make(f"bulk {what}", request.tenant, after),
        )
        return json_response(view)


def _rerun_view(done: RepeatedRun, run_id: RunId) -> Rerun:
    return Rerun(
        run_id=done.run.run_id,
        status="queued",  # P3: the same response, also when the run has gone on since
        created_at=iso(done.run.created_at),
        rerun_of=run_id,
        kept=done.kept,
    )


def _check_rerun(wanted: RerunRequest) -> None:
    if (wanted.mode == "from") != bool(wanted.nodes):
        raise Refused(
            errors.REQUEST_INVALID,
            "nodes are named with mode from, and only with it",
            pointer="/nodes",
        )
    if wanted.inputs is not UNSET:
        inputs = bytes(wanted.inputs)
        if not inputs.lstrip().startswith(b"{"):
            raise Refused(errors.REQUEST_INVALID, "must be an object", pointer="/inputs")
        check_values(inputs, "/inputs")
