"""Runs: submit, list, show, cancel, rebind."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import UNSET

from astraflow.api.asgi import AsgiApp
from astraflow.api.downloads import Streamed
from astraflow.api.log_pages import MAX_SCANNED_EVENTS, fits, log_file, newest_lines
from astraflow.api.requests import DEFINITION_BODY_BYTES, Request, check_values, decode_json
from astraflow.api.responses import Response, json_response
from astraflow.api.routes import Endpoints, Header, Place, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.reused_results import ReusedFrom
from astraflow.core.contract.runs import (
    MAX_KEY_CHARS,
    Accepted,
    ArtifactPage,
    ExecutedPackage,
    ListArtifacts,
    ListLogs,
    ListRuns,
    LogLine,
    LogPage,
    Node,
    NodeDetail,
    RebindRequest,
    Rebound,
    Run,
    RunPage,
    RunRequest,
    RunSummary,
    ShowRun,
)
from astraflow.core.contract.scopes import ShowNode
from astraflow.core.contract.timelines import ListTimeline, TimelinePage
from astraflow.core.contract.workflows import Definition
from astraflow.core.errors import Refused
from astraflow.core.ids import RunId
from astraflow.core.runs.facts import TaskFailure
from astraflow.core.runs.history import LogFilter, log_lines
from astraflow.core.runs.projections import error_view
from astraflow.core.security.policy import OPERATE, READ, START
from astraflow.core.timestamps import iso, parse_iso
from astraflow.scheduler.runs import Submission
from astraflow.store.content import MAX_INTEGER
from astraflow.store.rows import RunRow
from astraflow.store.runs import RunFilter

INLINE_DIGEST_BYTES: Final = 1024 * 1024
"""A larger body is digested in a thread, a quarter of a second for the largest: heartbeats must not wait for it."""

INLINE_RESULT_BYTES: Final = 16 * 1024
INLINE_TOTAL_BYTES: Final = 4 * 1024 * 1024
"""A page that shows a run of ten thousand nodes must not carry all that they made."""

SHOWN_PARAMETERS_BYTES: Final = 1024 * 1024
"""Edges may bring several results that are as large as a result may be."""

RUNS: Final = "/api/v1/runs"

_KEY: Final = re.compile(rf"[!-~]{{1,{MAX_KEY_CHARS}}}")
TRACE_HEADER: Final = Header(
    "traceparent", "The trace that the run continues (W3C trace context). What is none is ignored."
)
KEY_HEADER: Final = Header(
    "Idempotency-Key",
    "A name for this submission: sent again with the same body within 24 hours, it returns the same run.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]+$"},
)
_run_request: Final = msgspec.json.Decoder(RunRequest)
_rebind_request: Final = msgspec.json.Decoder(RebindRequest)
_problem: Final = msgspec.json.Decoder(TaskFailure)


class RunEndpoints(Endpoints):
    """The endpoints under `/api/v1/runs`."""

    @route(
        "POST",
        RUNS,
        START,
        "createRun",
        "run a workflow",
        tag="runs",
        text="Runs a definition of the request, which is not saved, or a saved workflow. The run is durable when this "
        "returns. An invalid definition is a 422 that lists every error.",
        headers=(KEY_HEADER, TRACE_HEADER),
        body=RunRequest,
        replies={202: Reply("The run exists.", Accepted, headers={"Location": "Its path."})},
        place=Place.NEW_RUN,
    )
    async def create(self, request: Request[NoQuery]) -> AsgiApp:
        key = idempotency_key(request)
        body = await request.json_body(DEFINITION_BODY_BYTES)
        wanted = decode_json(body, _run_request)
        definition = _check_request(wanted)
        accepted = await self._scheduler.runs.submit(
            Submission(
                tenant=request.tenant,
                by=request.subject,
                definition=definition,
                workflow_id=None if wanted.workflow_id is UNSET else wanted.workflow_id,
                version=wanted.version,
                inputs=wanted.inputs,
                idempotency_key=key,
                fingerprint=None if key is None else await fingerprint_of(body),
                traceparent=traceparent_of(request),
                use_pinned=wanted.use_pinned,
            )
        )
        view = Accepted(
            run_id=accepted.run_id,
            status="queued",  # P3: the same response, also when the run has gone on since
            created_at=iso(accepted.created_at),
        )
        return json_response(view, 202, [(b"location", f"{RUNS}/{view.run_id}".encode())])

    @route("GET", RUNS, READ, "listRuns", "list runs, newest first", tag="runs",
           query=ListRuns, replies=RunPage)  # fmt: skip
    async def list_runs(self, request: Request[ListRuns]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        place = " ".join(("runs", *_filtered_by(query)))
        before = self._cursors.read(place, tenant, query.cursor, tuple[int, str])
        rows = await self._list_rows(tenant, query, before)
        page = rows[: query.count]
        after = (page[-1].created_at, page[-1].run_id) if len(rows) > len(page) else None
        cursor = self._cursors.make(place, tenant, after)
        return json_response(RunPage(items=[_summary(row) for row in page], next_cursor=cursor))

    async def _list_rows(
        self, tenant: str, query: ListRuns, before: tuple[int, str] | None
    ) -> list[RunRow]:
        reader, limit = self._scheduler.reader, query.count + 1
        if not _filtered_by(query):
            return await reader.list_runs(
                tenant,
                limit=limit,
                before=before,
                status=query.status,
                workflow_id=query.workflow_id,
            )
        wanted = RunFilter(
            status=query.status or "",
            workflow_id=query.workflow_id or "",
            trigger=query.trigger or "",
            submitted_by=query.by or "",
            text=query.text,
            since=_time_of(query.since, "since", 0),
            until=_time_of(query.until, "until", MAX_INTEGER),
        )
        return await reader.search_runs(tenant, wanted, limit=limit, before=before)

    @route(
        "GET",
        f"{RUNS}/{{runId}}",
        READ,
        "getRun",
        "show a run with its nodes",
        tag="runs",
        text="Results are in it up to 16 KiB each and 4 MiB in all; other nodes say `resultTruncated`, and "
        "`getRunNode` has their results.",
        query=ShowRun,
        replies=Run,
    )
    async def show(self, request: Request[ShowRun]) -> AsgiApp:
        reader, run_id = self._scheduler.reader, RunId(request.params["runId"])
        if not request.query.nodes:
            return json_response(await reader.view_head(request.tenant, run_id))
        return json_response(bounded(await reader.view_run(request.tenant, run_id)))

    @route("GET", f"{RUNS}/{{runId}}/nodes/{{nodeId}}", READ, "getRunNode",
           "show a node of a run, with what it was given, its whole result, its attempts and its history",
           tag="runs", query=ShowNode, replies=NodeDetail)  # fmt: skip
    async def show_node(self, request: Request[ShowNode]) -> AsgiApp:
        run_id, node_id = RunId(request.params["runId"]), request.params["nodeId"]
        reader, tenant, scope = self._scheduler.reader, request.tenant, request.query.scope or None
        node, execution = await reader.view_node(tenant, run_id, node_id, scope)
        past = await reader.node_history(tenant, run_id, node_id, scope)
        given = execution.parameters
        is_truncated = given is not None and len(given) > SHOWN_PARAMETERS_BYTES
        view = NodeDetail(
            **msgspec.structs.asdict(node),
            package=ExecutedPackage(name=execution.package, version=execution.version),
            parameters=None if given is None or is_truncated else msgspec.Raw(given),
            parameters_truncated=is_truncated,
            attempts=past.attempts,
            story=past.timeline,
            ready_at=past.ready_at,
            reused_from=None
            if past.reused_from is None
            else ReusedFrom(run_id=past.reused_from, node_id=node_id),
        )
        return json_response(view)

    @route(
        "GET",
        f"{RUNS}/{{runId}}/timeline",
        READ,
        "getRunTimeline",
        "list all attempts of all nodes of a run, and what the nodes waited for",
        tag="runs",
        text="In the order of the events that they are of. An attempt that a page does not see the whole of is on the "
        "next one again, with the rest of its members. A page has about `limit` entries. `nextCursor` is null when "
        "nothing more is stored now.",
        query=ListTimeline,
        replies=TimelinePage,
    )
    async def timeline(self, request: Request[ListTimeline]) -> AsgiApp:
        run_id, tenant, query = RunId(request.params["runId"]), request.tenant, request.query
        place = f"timeline {run_id} {query.node_id or ''}"
        after = self._cursors.read(place, tenant, query.cursor, int) or 0
        entries, reached, last = await self._scheduler.reader.timeline(
            tenant, run_id, query.node_id, after=after, limit=query.count
        )
        cursor = self._cursors.make(place, tenant, reached if reached < last else None)
        return json_response(TimelinePage(items=entries, next_cursor=cursor))

    @route("GET", f"{RUNS}/{{runId}}/definition", READ, "getRunDefinition",
           "show the definition of a run, as it was submitted", tag="runs",
           replies=Definition)  # fmt: skip
    async def show_definition(self, request: Request[NoQuery]) -> AsgiApp:
        return Response(
            await self._scheduler.reader.get_definition(
                request.tenant, RunId(request.params["runId"])
            )
        )

    @route(
        "GET",
        f"{RUNS}/{{runId}}/logs",
        READ,
        "listRunLogs",
        "list the output of the nodes of a run",
        tag="runs",
        text="Oldest first, or with `newest` the last one first. `nextCursor` is null when nothing more is stored now; "
        "the event stream has the rest.",
        query=ListLogs,
        replies=LogPage,
    )
    async def list_logs(self, request: Request[ListLogs]) -> AsgiApp:
        run_id, tenant = RunId(request.params["runId"]), request.tenant
        place = f"logs {run_id}"
        if request.query.scope and not request.query.cursor:
            await self._scheduler.reader.check_scope(tenant, run_id, request.query.scope)
        last = await self._last_wanted(request)
        if request.query.newest:
            return await self._list_newest(request, f"{place} newest", last)
        after = self._cursors.read(place, tenant, request.query.cursor, int) or 0
        lines, reached = await self._gather_lines(request, after, last)
        cursor = self._cursors.make(place, tenant, reached if reached < last else None)
        return json_response(LogPage(items=lines, next_cursor=cursor))

    async def _last_wanted(self, request: Request[ListLogs]) -> int:
        """The number of the last event whose output is asked for."""
        last, _ = await self._scheduler.reader.last_event(
            request.tenant, RunId(request.params["runId"])
        )
        before = request.query.before
        return last if before is None else min(last, before - 1)

    async def _list_newest(self, request: Request[ListLogs], place: str, last: int) -> AsgiApp:
        run_id, tenant = RunId(request.params["runId"]), request.tenant
        before = self._cursors.read(place, tenant, request.query.cursor, int) or last + 1
        events = self._scheduler.reader.read_back(tenant, run_id, before)
        lines, reached = await newest_lines(events, request.query, before)
        cursor = self._cursors.make(place, tenant, reached if reached > 1 else None)
        return json_response(LogPage(items=lines, next_cursor=cursor))

    @route(
        "GET",
        f"{RUNS}/{{runId}}/logs/file",
        READ,
        "downloadRunLogs",
        "download the output of the nodes of a run as a text file",
        tag="runs",
        text="All that is stored now, oldest first; `limit`, `cursor` and `newest` do not count. One line for each "
        "piece of output: its time, its node, its attempt, its channel, and what was written.",
        query=ListLogs,
        replies={200: Reply("The file.", None, "text/plain")},
    )
    async def download_logs(self, request: Request[ListLogs]) -> AsgiApp:
        run_id, tenant = RunId(request.params["runId"]), request.tenant
        last = await self._last_wanted(request)
        events = self._scheduler.reader.follow_run(tenant, run_id, 0)
        head = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-disposition", f'attachment; filename="{run_id}.log"'.encode()),
        ]
        return Streamed(200, head, b"", log_file(events, request.query, last))

    async def _gather_lines(
        self, request: Request[ListLogs], after: int, last: int
    ) -> tuple[list[LogLine], int]:
        """Lines beyond `after`, and the number of the last event that was looked at."""
        lines: list[LogLine] = []
        if after >= last:
            return lines, after
        query = request.query
        wanted = LogFilter(query.node_id, query.level, query.scope)
        reached, limit, check = after, query.count, fits(query)
        following = self._scheduler.reader.follow_run(
            request.tenant, RunId(request.params["runId"]), after
        )
        async with aclosing(following) as batches:
            async for events in batches:
                lines.extend(filter(check, log_lines(events, wanted)))
                if len(lines) >= limit:
                    lines = lines[:limit]
                    return lines, min(lines[-1].id, last)
                reached = events[-1].id
                if reached >= last or reached - after >= MAX_SCANNED_EVENTS:
                    break
        return lines, reached

    @route("GET", f"{RUNS}/{{runId}}/artifacts", READ, "listRunArtifacts",
           "list the artifacts that the results of a run refer to", tag="runs",
           query=ListArtifacts, replies=ArtifactPage)  # fmt: skip
    async def list_artifacts(self, request: Request[ListArtifacts]) -> AsgiApp:
        artifacts = await self._scheduler.reader.view_artifacts(
            request.tenant, RunId(request.params["runId"]), request.query.scope
        )
        return json_response(ArtifactPage(items=artifacts, next_cursor=None))

    @route(
        "POST",
        f"{RUNS}/{{runId}}/cancel",
        START,
        "cancelRun",
        "cancel a run",
        tag="runs",
        text="No new attempt starts from here on. Cancelling twice is fine; a run that has succeeded or failed is a "
        "409 with its status.",
        replies=Run,
    )
    async def cancel(self, request: Request[NoQuery]) -> AsgiApp:
        run_id = RunId(request.params["runId"])
        await request.optional_body()
        await self._scheduler.runs.cancel(request.tenant, run_id, request.subject)
        return json_response(bounded(await self._scheduler.reader.view_run(request.tenant, run_id)))

    @route(
        "POST",
        f"{RUNS}/{{runId}}/rebind",
        OPERATE,
        "rebindRun",
        "release a run from its workers",
        tag="runs",
        text="Drops what binds the run to workers. `restart` also withdraws its attempts, and runs them again.",
        body=RebindRequest,
        is_body_required=False,
        replies={202: Reply("It is stored.", Rebound)},
    )
    @route(
        "POST",
        "/api/v1/scheduler/runs/{runId}/rebind",
        OPERATE,
        "rebindRunOld",
        "the older path of rebind",
        tag="runs",
        body=RebindRequest,
        is_body_required=False,
        replies={202: Reply("It is stored.", Rebound)},
    )
    async def rebind(self, request: Request[NoQuery]) -> AsgiApp:
        run_id = RunId(request.params["runId"])
        body = await request.optional_body()
        wanted = decode_json(body, _rebind_request) if body else RebindRequest()
        await self._scheduler.runs.rebind(
            request.tenant, run_id, restart=wanted.running == "restart", by=request.subject
        )
        return json_response(Rebound(run_id=run_id, running=wanted.running), 202)


def _summary(row: RunRow) -> RunSummary:
    return RunSummary(
        run_id=row.run_id,
        workflow_id=row.workflow_id,
        workflow_version=row.workflow_version,
        name=row.name,
        status=row.status,
        cancel_requested=row.cancel_requested,
        created_at=iso(row.created_at),
        started_at=None if row.started_at is None else iso(row.started_at),
        finished_at=None if row.finished_at is None else iso(row.finished_at),
        error=None if row.error is None else error_view(_problem.decode(row.error)),
        rerun_of=row.rerun_of,
        by=row.submitted_by or None,
        trigger=row.trigger_name or None,
    )


def _filtered_by(query: ListRuns) -> tuple[str, ...]:
    """The filters that have no index, each with its name: a cursor is of these filters alone."""
    given = {
        "trigger": query.trigger,
        "by": query.by,
        "text": query.text,
        "since": query.since,
        "until": query.until,
    }
    return tuple(f"{name}={value}" for name, value in given.items() if value)


def _time_of(text: str, name: str, default: int) -> int:
    """A point in time, in wall-clock milliseconds."""
    if not text:
        return default
    at = parse_iso(text)
    if at is None:
        raise Refused(
            errors.REQUEST_INVALID,
            f"must be a time as RFC 3339 writes it: {name}",
            detail={"parameter": name},
        )
    return at


def bounded(view: Run) -> Run:
    """The run without the results that are too large."""
    bounded_nodes(view.nodes)
    return view


def bounded_nodes(nodes: list[Node]) -> list[Node]:
    """The nodes without the results that are too large."""
    left = INLINE_TOTAL_BYTES
    for place, node in enumerate(nodes):
        size = 0 if node.result is None else memoryview(node.result).nbytes
        if size > INLINE_RESULT_BYTES or size > left:
            nodes[place] = msgspec.structs.replace(node, result=None, result_truncated=True)
        else:
            left -= size
    return nodes


async def fingerprint_of(body: bytes) -> str:
    """What tells one request from another with the same key."""
    if len(body) <= INLINE_DIGEST_BYTES:
        return sha256(body).hexdigest()
    return (await asyncio.to_thread(sha256, body)).hexdigest()


def traceparent_of(request: Request[NoQuery]) -> str | None:
    """The trace of the caller. A header that is there twice is ignored, as the standard wants it."""
    given = [value for name, value in request.scope["headers"] if name == b"traceparent"]
    return given[0].decode("latin-1") if len(given) == 1 else None


def idempotency_key(request: Request[NoQuery]) -> str | None:
    key = request.header(b"idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Refused(
            errors.REQUEST_INVALID,
            f"Idempotency-Key must have 1 to {MAX_KEY_CHARS} visible ASCII characters",
        )
    return key


def _check_request(wanted: RunRequest) -> bytes | None:
    """The definition in the request, if it has one."""
    if (wanted.workflow is UNSET) == (wanted.workflow_id is UNSET):
        raise Refused(
            errors.REQUEST_INVALID, "send either workflow or workflowId", pointer="/workflow"
        )
    if wanted.version is not None and wanted.workflow_id is UNSET:
        raise Refused(errors.REQUEST_INVALID, "version needs workflowId", pointer="/version")
    inputs = bytes(wanted.inputs)
    if not inputs.lstrip().startswith(b"{"):
        raise Refused(errors.REQUEST_INVALID, "must be an object", pointer="/inputs")
    check_values(inputs, "/inputs")
    return None if wanted.workflow is UNSET else bytes(wanted.workflow)
