"""Every route of the API, in one table: the action, its endpoint, its description."""

from __future__ import annotations

from typing import Any, Final

from astraflow.api import examples
from astraflow.api.catalog_routes import CatalogEndpoints
from astraflow.api.events import EventEndpoints, Timing
from astraflow.api.package_routes import PackageEndpoints
from astraflow.api.package_table import catalog_routes, package_routes, resource_routes
from astraflow.api.resource_routes import ResourceEndpoints
from astraflow.api.routes import PAGED, Doc, Parameter, Parts, Reply, Route, ok
from astraflow.api.run_routes import RunEndpoints
from astraflow.api.system_routes import SystemEndpoints
from astraflow.api.worker_routes import WorkerEndpoints
from astraflow.api.workflow_routes import WorkflowEndpoints

__all__ = ["make_routes"]

_TEXT: Final = {"type": "string"}
_IF_MATCH: Final = Parameter(
    "If-Match", "the ETag that the change was made from; another one is a 409", _TEXT, "header"
)
_VERSION: Final = {"ETag": "the version of the workflow, in quotes"}


def make_routes(parts: Parts, timing: Timing) -> tuple[list[Route], SystemEndpoints]:
    """All routes, and the endpoints that are told the description made of them."""
    system = SystemEndpoints(parts)
    return [
        *_run_routes(RunEndpoints(parts)),
        *_event_routes(EventEndpoints(parts, timing)),
        *_workflow_routes(WorkflowEndpoints(parts)),
        *_worker_routes(WorkerEndpoints(parts)),
        *catalog_routes(CatalogEndpoints(parts)),
        *package_routes(PackageEndpoints(parts)),
        *resource_routes(ResourceEndpoints(parts)),
        *_access_routes(system),
        *_system_routes(system),
    ], system


def _run_routes(runs: RunEndpoints) -> list[Route]:
    return [*_run_reads(runs), *_run_writes(runs)]


def _run_writes(runs: RunEndpoints) -> list[Route]:
    key = Parameter(
        "Idempotency-Key",
        "a name for this submission: sent again with the same body within 24 hours, it gives the same run",
        {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "header",
    )
    rebound = Reply("the order is taken", "Rebound", {"runId": "…", "running": "keep"})
    rebind = Doc(
        name="rebindRun",
        tag="runs",
        summary="let a run find other workers",
        text="Drops what binds the run to workers. `restart` also withdraws what runs and runs it anew.",
        body="RebindRequest",
        body_required=False,
        body_example={"running": "keep"},
        replies={202: rebound},
    )
    old_rebind = Doc(
        name="rebindRunOld",
        tag="runs",
        summary="the older path of rebind",
        body="RebindRequest",
        body_required=False,
        body_example={"running": "keep"},
        replies={202: rebound},
    )
    create = Doc(
        name="createRun",
        tag="runs",
        summary="run a workflow",
        text="Of a definition in the request, which is not saved, or of a saved workflow. When it is answered, the run "
        "is durable. An invalid definition is a 422 that lists every problem.",
        parameters=(key,),
        body="RunRequest",
        body_example=examples.RUN_REQUEST,
        replies={
            202: Reply(
                "the run exists",
                "Accepted",
                examples.ACCEPTED,
                headers={"Location": "where the run is"},
            )
        },
    )
    cancel = Doc(
        name="cancelRun",
        tag="runs",
        summary="stop a run",
        text="No new attempt starts from here on. Fine when it is being or was cancelled; a run that has succeeded or "
        "failed is a 409 that tells its status.",
        replies=ok("Run", {**examples.RUN, "status": "cancelled", "cancelRequested": True}),
    )
    return [
        Route("POST", "/api/v1/runs", runs.create, create),
        Route("POST", "/api/v1/runs/{runId}/cancel", runs.cancel, cancel),
        Route("POST", "/api/v1/runs/{runId}/rebind", runs.rebind, rebind),
        Route("POST", "/api/v1/scheduler/runs/{runId}/rebind", runs.rebind, old_rebind),
    ]


def _run_reads(runs: RunEndpoints) -> list[Route]:
    status = {"enum": ["queued", "running", "succeeded", "failed", "cancelled"], **_TEXT}
    list_runs = Doc(
        name="listRuns",
        tag="runs",
        summary="runs, newest first",
        parameters=(
            *PAGED,
            Parameter("status", "only those with this status", status),
            Parameter("workflowId", "only those of this workflow", _TEXT),
        ),
        replies=ok("RunPage", examples.page(examples.SUMMARY)),
    )
    show = Doc(
        name="getRun",
        tag="runs",
        summary="one run with the state of its nodes",
        text="Results are in it up to 16 KiB each and 4 MiB in all; others say `resultTruncated`, and the node itself "
        "has them.",
        parameters=(
            Parameter("nodes", "false leaves nodes and artifacts out", {"type": "boolean"}),
        ),
        replies=ok("Run", examples.RUN),
    )
    show_node = Doc(
        name="getRunNode",
        tag="runs",
        summary="one node of a run, with its whole result, its attempts and its story",
        replies=ok("NodeDetail", examples.NODE_DETAIL),
    )
    definition = Doc(
        name="getRunDefinition",
        tag="runs",
        summary="what a run executes, as it was submitted",
        replies=ok("Definition", examples.DEFINITION),
    )
    logs = Doc(
        name="listRunLogs",
        tag="runs",
        summary="what the nodes of a run said while they ran",
        text="Oldest first. `nextCursor` is null when nothing more is stored now; the event stream brings the rest.",
        parameters=(*PAGED, Parameter("nodeId", "only what this node said", _TEXT)),
        replies=ok("LogPage", {"items": [], "nextCursor": None}),
    )
    artifacts = Doc(
        name="listRunArtifacts",
        tag="runs",
        summary="what the results of a run point to",
        replies=ok("ArtifactPage", {"items": [], "nextCursor": None}),
    )
    return [
        Route("GET", "/api/v1/runs", runs.list_runs, list_runs),
        Route("GET", "/api/v1/runs/{runId}", runs.show, show),
        Route("GET", "/api/v1/runs/{runId}/nodes/{nodeId}", runs.show_node, show_node),
        Route("GET", "/api/v1/runs/{runId}/definition", runs.show_definition, definition),
        Route("GET", "/api/v1/runs/{runId}/logs", runs.list_logs, logs),
        Route("GET", "/api/v1/runs/{runId}/artifacts", runs.list_artifacts, artifacts),
    ]


def _event_routes(events: EventEndpoints) -> list[Route]:
    number = {"type": "integer", "minimum": 0}
    says = "the last id that was seen: the stream goes on behind it"
    doc = Doc(
        name="followEvents",
        tag="events",
        summary="events as they happen, as Server-Sent Events",
        text="Of a run (`runId`): numbered from 1 without gaps, replayed from the first if no last id is given; the "
        "stream ends after the terminal `run.status`, and coming back at that one is a 204. Without `runId`: the "
        "tenant's own stream, from now on. A comment is sent every 15 seconds. A reader that does not read for 30 "
        "seconds is dropped, and may come back.",
        parameters=(
            Parameter("runId", "the run to follow", _TEXT),
            Parameter("lastEventId", says, number),
            Parameter("Last-Event-ID", f"{says}; wins over `lastEventId`", number, "header"),
            Parameter(
                "snapshot",
                "true begins with `run.snapshot`, which has no id, and goes on from there",
                {"type": "boolean"},
            ),
        ),
        replies={
            200: Reply("the stream", None, examples.EVENTS, "text/event-stream"),
            204: Reply("the run has ended and its last event was seen"),
        },
    )
    return [Route("GET", "/api/v1/events", events.open, doc)]


def _workflow_routes(workflows: WorkflowEndpoints) -> list[Route]:
    def doc(name: str, summary: str, replies: dict[int, Reply], **more: Any) -> Doc:
        return Doc(name=name, tag="workflows", summary=summary, replies=replies, **more)

    body = {"body": "Definition", "body_example": examples.DEFINITION}
    shown = ok("Definition", examples.DEFINITION, "the definition, byte for byte", **_VERSION)
    created = Reply(
        "saved", "Definition", examples.DEFINITION, headers={"Location": "where it is", **_VERSION}
    )
    version = Parameter(
        "version", "an older version; the newest if left out", {"type": "integer", "minimum": 1}
    )
    draft = Parameter(
        "draft", "true saves work in progress, whatever is still wrong with it", {"type": "boolean"}
    )
    page = ok("WorkflowPage", examples.page(examples.WORKFLOW_SUMMARY))
    valid = ok("Validity", {"valid": True, "errors": []}, "it can be run; else 422 lists why not")
    path = "/api/v1/workflows"
    return [
        Route("GET", path, workflows.list_workflows,
              doc("listWorkflows", "saved workflows, last changed first", page, parameters=PAGED)),
        Route("POST", path, workflows.create,
              doc("createWorkflow", "save a new workflow", {201: created}, parameters=(draft,),
                  **body)),
        Route("POST", f"{path}/validate", workflows.validate,
              doc("validateWorkflow", "say all that is wrong with a definition", valid, **body)),
        Route("GET", f"{path}/{{id}}", workflows.show,
              doc("getWorkflow", "a saved workflow", shown, parameters=(version,))),
        Route("PUT", f"{path}/{{id}}", workflows.save,
              doc("saveWorkflow", "save a new version", shown, parameters=(_IF_MATCH, draft),
                  **body)),
        Route("DELETE", f"{path}/{{id}}", workflows.delete,
              doc("deleteWorkflow", "delete it with all its versions; its runs stay",
                  {204: Reply("it is gone")}, parameters=(_IF_MATCH,))),
    ]  # fmt: skip


def _worker_routes(workers: WorkerEndpoints) -> list[Route]:
    listing = Doc(
        name="listWorkers",
        tag="workers",
        summary="workers that are or were here",
        parameters=PAGED,
        replies=ok("WorkerPage", examples.page(examples.WORKER)),
    )
    show = Doc(
        name="getWorker",
        tag="workers",
        summary="one worker",
        replies=ok("Worker", examples.WORKER),
    )
    command = Doc(
        name="commandWorker",
        tag="workers",
        summary="tell a worker to drain, to take work again, to let go of runs, or to change its packages",
        body="Command",
        body_example={"type": "drain", "reason": "update", "deadlineMs": 60_000},
        replies={
            202: Reply(
                "the order is taken",
                "CommandAccepted",
                {"commandId": "…", "workerId": "…", "type": "drain"},
            )
        },
    )
    return [
        Route("GET", "/api/v1/workers", workers.list_workers, listing),
        Route("GET", "/api/v1/workers/{id}", workers.show, show),
        Route("POST", "/api/v1/workers/{id}/commands", workers.command, command),
    ]


def _access_routes(system: SystemEndpoints) -> list[Route]:
    audit = Doc(
        name="listAudit",
        tag="audit",
        summary="who did what, newest first",
        parameters=PAGED,
        replies=ok("AuditPage", {"items": [], "nextCursor": None}),
    )
    me = Doc(
        name="getMe",
        tag="access",
        summary="whose token this is",
        replies=ok(
            "Me",
            {"tenant": "default", "subject": "bootstrap", "role": "admin", "expiresAt": None},
        ),
    )
    return [
        Route("GET", "/api/v1/audit", system.list_audit, audit),
        Route("GET", "/api/v1/me", system.me, me),
    ]


def _system_routes(system: SystemEndpoints) -> list[Route]:
    def doc(name: str, summary: str, reply: Reply) -> Doc:
        return Doc(name=name, tag="system", summary=summary, replies={200: reply})

    return [
        Route("GET", "/healthz", system.health,
              doc("getHealth", "the process lives", Reply("it does", "Status", {"status": "ok"}))),
        Route("GET", "/readyz", system.readiness,
              doc("getReadiness", "it takes requests; 503 says why not",
                  Reply("it does", "Status", {"status": "ready"}))),
        Route("GET", "/metrics", system.metrics,
              doc("getMetrics", "numbers for Prometheus: those of the token's tenant, and those of none",
                  Reply("they", None, None, "text/plain"))),
        Route("GET", "/api/docs", system.docs,
              doc("getDocs", "this description for people", Reply("a page", None, None, "text/html"))),
        Route("GET", "/samples/login", system.sample,
              doc("getSamplePage", "a page for trying browser nodes",
                  Reply("a page", None, None, "text/html"))),
        Route("GET", "/", system.root,
              Doc(name="getRoot", tag="system", summary="leads to the description for people",
                  replies={307: Reply("go there", headers={"Location": "where it is"})})),
        Route("GET", "/api/openapi.json", system.openapi,
              doc("getDescription", "this description", Reply("an OpenAPI 3.1 document", None))),
    ]  # fmt: skip
