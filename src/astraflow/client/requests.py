"""The requests of the API as values: what to send, and how to read the response. Both clients send the same ones.

A function that makes a request has the signature and the docstring of the method that sends it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from astraflow.client.list_filters import LogFilters, RunFilters, WorkerFilters
from astraflow.core import errors
from astraflow.core.contract.base import Page, Query
from astraflow.core.contract.log_levels import LogLevel
from astraflow.core.contract.packages import (
    ActivateRequest,
    ActiveVersion,
    ListNodeTypes,
    ListPackages,
    NodeType,
    NodeTypePage,
    Package,
    PackagePage,
    PackageSummary,
    PackageVersion,
    Rollout,
    RolloutPage,
    ShowNodeType,
    YankRequest,
)
from astraflow.core.contract.resources import (
    ArtifactLink,
    Extension,
    ListResources,
    OfWorker,
    Resource,
    ResourcePage,
)
from astraflow.core.contract.runs import (
    MAX_KEY_CHARS,
    Accepted,
    ListLogs,
    ListRuns,
    LogLine,
    LogPage,
    NodeDetail,
    RebindRequest,
    Rebound,
    Run,
    RunPage,
    RunSummary,
    ShowRun,
)
from astraflow.core.contract.scopes import ShowNode
from astraflow.core.contract.system import Me, Status
from astraflow.core.contract.workers import (
    CommandAccepted,
    ListWorkers,
    Worker,
    WorkerDetail,
    WorkerPage,
)
from astraflow.core.contract.workflows import (
    ListWorkflows,
    SaveWorkflow,
    ShowWorkflow,
    Validity,
    Workflow,
    WorkflowPage,
    WorkflowSummary,
)

Response = TypeVar("Response", covariant=True)
Item = TypeVar("Item", covariant=True)
Definition = Mapping[str, Any] | bytes
"""A workflow definition: an object, or its JSON as it is."""

RUNS: Final = "/api/v1/runs"
WORKFLOWS: Final = "/api/v1/workflows"
WORKERS: Final = "/api/v1/workers"
PACKAGES: Final = "/api/v1/packages"
NODES: Final = "/api/v1/catalog/nodes"
JSON: Final = {"content-type": "application/json"}
_AS_JSON: Final = (
    "use null or a text for NaN and the infinities; objects, lists, texts and numbers for all else"
)


class ApiReply(msgspec.Struct, frozen=True):
    """A successful response."""

    body: bytes
    headers: Mapping[str, str]


class ApiRequest(msgspec.Struct, Generic[Response], frozen=True):
    """One request. `again`: it may be retried without harm when it is unknown whether it arrived."""

    method: str
    path: str
    read: Callable[[ApiReply], Response]
    params: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | Path | None = None
    """What is sent, or the file that is."""
    again: bool = True

    def raw(self) -> ApiRequest[msgspec.Raw]:
        """The same request; its response is the JSON as it came."""
        return ApiRequest(
            self.method, self.path, _as_it_came, self.params, self.headers, self.body, self.again
        )


class ApiDownload(msgspec.Struct, frozen=True):
    """A file of the API, and the file here that it is downloaded into."""

    path: str
    params: Mapping[str, str]
    into: Path


class Pages(msgspec.Struct, Generic[Item], frozen=True):
    """The requests of a list, one for each page. `limit`: at most so many items of it."""

    after: Callable[[str | None], ApiRequest[Page[Item]]]
    """The request of the page that follows a cursor, or of the first."""
    limit: int | None = None


def _as_it_came(reply: ApiReply) -> msgspec.Raw:
    msgspec.json.decode(reply.body)  # what is not JSON is not from a scheduler
    return msgspec.Raw(reply.body)


@cache
def _as(kind: Any) -> Callable[[ApiReply], Any]:
    """Reads a body into its struct."""
    decoder = msgspec.json.Decoder(kind)
    return lambda reply: decoder.decode(reply.body)


def _field(kind: type[msgspec.Struct], name: str) -> Callable[[ApiReply], Any]:
    """Reads a body into its struct, and returns one of its members."""
    read = _as(kind)
    return lambda reply: getattr(read(reply), name)


def _checked(kind: type[msgspec.Struct]) -> Callable[[ApiReply], None]:
    """Only checks that a body is its struct."""

    def read(reply: ApiReply) -> None:
        _as(kind)(reply)

    return read


def _as_nothing(reply: ApiReply) -> None:
    return None


def _as_workflow(reply: ApiReply) -> Workflow:
    version = reply.headers.get("etag", '"0"').strip('W/"')
    return Workflow(version=int(version), definition=msgspec.json.decode(reply.body))


def _part(text: str) -> str:
    return quote(text, safe="")


def _query(struct: type[Query], **given: Any) -> dict[str, str]:
    """The parameters of a query; what is None is left out."""
    query = struct(**{name: value for name, value in given.items() if value is not None})
    values: dict[str, Any] = msgspec.to_builtins(query)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _raw(definition: Definition) -> bytes:
    return definition if isinstance(definition, bytes) else _encode(definition, "definition")


def _encode(value: object, what: str) -> bytes:
    """Encode as JSON. msgspec would write NaN and the infinities as null, without a word.

    Raises:
        Refused: it holds something that JSON has no form for.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=msgspec.to_builtins)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the {what} holds what JSON cannot hold: {error}"
        raise errors.Refused(errors.INPUT_UNREADABLE, message, detail={"hint": _AS_JSON}) from error


# -- runs -----------------------------------------------------------------------------------


def submit(
    workflow: Definition | str,
    inputs: Mapping[str, Any] | None,
    key: str,
    version: int | None = None,
    *,
    use_pinned: bool = False,
) -> ApiRequest[Accepted]:
    """Raises: Refused, when the key cannot be one."""
    if (
        not 1 <= len(key) <= MAX_KEY_CHARS
        or not key.isascii()
        or not key.isprintable()
        or " " in key
    ):
        raise errors.Refused(
            errors.REQUEST_INVALID,
            f"an idempotency key has 1 to {MAX_KEY_CHARS} visible ASCII characters: {key!r}",
        )
    body: dict[str, Any] = {"inputs": msgspec.Raw(_encode(inputs or {}, "inputs"))}
    if use_pinned:
        body["usePinned"] = True
    if isinstance(workflow, str):
        body["workflowId"] = workflow
        if version is not None:
            body["version"] = version
    else:
        body["workflow"] = msgspec.Raw(_raw(workflow))
    headers = {**JSON, "idempotency-key": key}
    return ApiRequest("POST", RUNS, _as(Accepted), headers=headers, body=msgspec.json.encode(body))


def list_runs(
    *, limit: int | None = None, cursor: str | None = None, **wanted: Unpack[RunFilters]
) -> ApiRequest[Page[RunSummary]]:
    """One page, newest first."""
    params = _query(ListRuns, limit=limit, cursor=cursor, **wanted)
    return ApiRequest("GET", RUNS, _as(RunPage), params)


def iterate_runs(
    *, limit: int | None = None, page_size: int = 200, **wanted: Unpack[RunFilters]
) -> Pages[RunSummary]:
    """All of them or so many, newest first, a page at a time."""
    return Pages(lambda cursor: list_runs(limit=page_size, cursor=cursor, **wanted), limit)


def get_run(run_id: str, *, nodes: bool = True) -> ApiRequest[Run]:
    return ApiRequest("GET", f"{RUNS}/{_part(run_id)}", _as(Run), _query(ShowRun, nodes=nodes))


def get_node(run_id: str, node_id: str, *, scope: str | None = None) -> ApiRequest[NodeDetail]:
    path = f"{RUNS}/{_part(run_id)}/nodes/{_part(node_id)}"
    return ApiRequest("GET", path, _as(NodeDetail), _query(ShowNode, scope=scope))


def get_definition(run_id: str) -> ApiRequest[dict[str, Any]]:
    return ApiRequest("GET", f"{RUNS}/{_part(run_id)}/definition", _as(dict[str, Any]))


def cancel_run(run_id: str) -> ApiRequest[Run]:
    return ApiRequest("POST", f"{RUNS}/{_part(run_id)}/cancel", _as(Run))


def rebind_run(run_id: str, running: Literal["keep", "restart"] = "keep") -> ApiRequest[None]:
    body = msgspec.json.encode(RebindRequest(running=running))
    path = f"{RUNS}/{_part(run_id)}/rebind"
    return ApiRequest(
        "POST", path, _checked(Rebound), headers=JSON, body=body, again=running == "keep"
    )


def iterate_logs(
    run_id: str,
    *,
    node_id: str | None = None,
    level: LogLevel | None = None,
    scope: str | None = None,
    limit: int | None = None,
    **more: Unpack[LogFilters],
) -> Pages[LogLine]:
    """The output of the nodes so far, oldest first; with a `level`, what has that or a higher one; with a `scope`,
    what was written inside of it."""
    path = f"{RUNS}/{_part(run_id)}/logs"

    def page(cursor: str | None) -> ApiRequest[Page[LogLine]]:
        params = _query(ListLogs, node_id=node_id, level=level, scope=scope, cursor=cursor, **more)
        return ApiRequest("GET", path, _as(LogPage), params)

    return Pages(page, limit)


# -- workflows ------------------------------------------------------------------------------


def list_workflows(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    text: str | None = None,
    package: str | None = None,
) -> ApiRequest[Page[WorkflowSummary]]:
    """One page, last changed first. `package`: only those that use it, `name` or `name@version`."""
    params = _query(ListWorkflows, limit=limit, cursor=cursor, text=text, package=package)
    return ApiRequest("GET", WORKFLOWS, _as(WorkflowPage), params)


def iterate_workflows(*, limit: int | None = None, page_size: int = 200) -> Pages[WorkflowSummary]:
    return Pages(lambda cursor: list_workflows(limit=page_size, cursor=cursor), limit)


def get_workflow(workflow_id: str, version: int | None = None) -> ApiRequest[Workflow]:
    params = _query(ShowWorkflow, version=version)
    return ApiRequest("GET", f"{WORKFLOWS}/{_part(workflow_id)}", _as_workflow, params)


def create_workflow(definition: Definition, *, note: str = "") -> ApiRequest[Workflow]:
    """A new workflow. One with errors is Refused with all of them; `save_draft` takes it."""
    params, body = _query(SaveWorkflow, note=note), _raw(definition)
    return ApiRequest("POST", WORKFLOWS, _as_workflow, params, headers=JSON, body=body, again=False)


def save_workflow(
    workflow_id: str,
    definition: Definition,
    *,
    if_version: int | None = None,
    note: str = "",
) -> ApiRequest[Workflow]:
    """A new version. With `if_version` only if that one is still the newest; else Conflict."""
    params, body = _query(SaveWorkflow, note=note), _raw(definition)
    headers = {**JSON, **_if_match(if_version)}
    path = f"{WORKFLOWS}/{_part(workflow_id)}"
    return ApiRequest("PUT", path, _as_workflow, params, headers=headers, body=body, again=False)


def delete_workflow(workflow_id: str, *, if_version: int | None = None) -> ApiRequest[None]:
    path = f"{WORKFLOWS}/{_part(workflow_id)}"
    return ApiRequest("DELETE", path, _as_nothing, headers=_if_match(if_version), again=False)


def validate_workflow(definition: Definition) -> ApiRequest[Validity]:
    """What may be a mistake in a definition that can be run is in `warnings`.

    Raises: Refused, whose `detail["errors"]` lists all that is wrong.
    """
    path, body = f"{WORKFLOWS}/validate", _raw(definition)
    return ApiRequest("POST", path, _as(Validity), headers=JSON, body=body)


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}


# -- workers --------------------------------------------------------------------------------


def list_workers(
    *, limit: int | None = None, cursor: str | None = None, **wanted: Unpack[WorkerFilters]
) -> ApiRequest[Page[Worker]]:
    params = _query(ListWorkers, limit=limit, cursor=cursor, **wanted)
    return ApiRequest("GET", WORKERS, _as(WorkerPage), params)


def iterate_workers(*, limit: int | None = None, page_size: int = 200) -> Pages[Worker]:
    return Pages(lambda cursor: list_workers(limit=page_size, cursor=cursor), limit)


def get_worker(worker_id: str) -> ApiRequest[WorkerDetail]:
    return ApiRequest("GET", f"{WORKERS}/{_part(worker_id)}", _as(WorkerDetail))


def command_worker(worker_id: str, command: Mapping[str, Any]) -> ApiRequest[str]:
    """Give a worker a command, as `{"type": "drain"}`; returns the id of the command."""
    path, body = f"{WORKERS}/{_part(worker_id)}/commands", _encode(command, "command")
    read = _field(CommandAccepted, "command_id")
    return ApiRequest("POST", path, read, headers=JSON, body=body, again=False)


# -- packages and node types ----------------------------------------------------------------


def publish_package(path: Path, signature: str | None = None) -> ApiRequest[PackageVersion]:
    """Publish a `.cwx` file; `signature` is the text of its detached signature.

    It may be sent again: the same file is published once.

    Raises:
        Refused: it is no package, or not signed as it must be.
        Conflict: this version is published with another content.
        OSError: the file cannot be read.
    """
    headers = {"content-type": "application/zip", "content-length": str(path.stat().st_size)}
    if signature is not None:
        headers["astra-signature"] = base64.b64encode(signature.encode()).decode()
    return ApiRequest("POST", PACKAGES, _as(PackageVersion), headers=headers, body=path)


def list_packages(
    *, limit: int | None = None, cursor: str | None = None
) -> ApiRequest[Page[PackageSummary]]:
    params = _query(ListPackages, limit=limit, cursor=cursor)
    return ApiRequest("GET", PACKAGES, _as(PackagePage), params)


def iterate_packages(*, limit: int | None = None, page_size: int = 200) -> Pages[PackageSummary]:
    return Pages(lambda cursor: list_packages(limit=page_size, cursor=cursor), limit)


def get_package(name: str) -> ApiRequest[Package]:
    return ApiRequest("GET", f"{PACKAGES}/{_part(name)}", _as(Package))


def get_package_version(name: str, version: str) -> ApiRequest[PackageVersion]:
    """One version, with its manifest."""
    return ApiRequest("GET", f"{PACKAGES}/{_part(name)}/{_part(version)}", _as(PackageVersion))


def yank_package(name: str, version: str, reason: str = "") -> ApiRequest[PackageVersion]:
    """Withdraw a version: nothing new gets it."""
    path = f"{PACKAGES}/{_part(name)}/{_part(version)}/yank"
    body = msgspec.json.encode(YankRequest(reason=reason))
    return ApiRequest("POST", path, _as(PackageVersion), headers=JSON, body=body)


def unyank_package(name: str, version: str) -> ApiRequest[PackageVersion]:
    path = f"{PACKAGES}/{_part(name)}/{_part(version)}/unyank"
    return ApiRequest("POST", path, _as(PackageVersion))


def activate_package(name: str, version: str) -> ApiRequest[str | None]:
    """Choose the version that nodes without one get; returns the one before."""
    body = msgspec.json.encode(ActivateRequest(version=version))
    path = f"{PACKAGES}/{_part(name)}/active"
    return ApiRequest("PUT", path, _field(ActiveVersion, "previous"), headers=JSON, body=body)


def start_rollout(name: str, version: str, **more: Any) -> ApiRequest[Rollout]:
    """Bring a version to all workers, in waves: `waves=[10, 50, 100]`, `soakSeconds=30`."""
    body = _encode({"version": version, **more}, "rollout")
    path = f"{PACKAGES}/{_part(name)}/rollout"
    return ApiRequest("POST", path, _as(Rollout), headers=JSON, body=body, again=False)


def list_rollouts(name: str) -> ApiRequest[list[Rollout]]:
    """Newest first."""
    return ApiRequest("GET", f"{PACKAGES}/{_part(name)}/rollout", _field(RolloutPage, "items"))


def roll_back(name: str) -> ApiRequest[str]:
    """Go back to the version that was active before; returns it."""
    path = f"{PACKAGES}/{_part(name)}/rollback"
    return ApiRequest("POST", path, _field(ActiveVersion, "version"), again=False)


def list_node_types(
    q: str | None = None,
    *,
    category: str | None = None,
    package: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> ApiRequest[Page[NodeType]]:
    """One page, best fit first."""
    params = _query(
        ListNodeTypes, q=q, category=category, package=package, limit=limit, cursor=cursor
    )
    return ApiRequest("GET", NODES, _as(NodeTypePage), params)


def iterate_node_types(
    q: str | None = None,
    *,
    category: str | None = None,
    package: str | None = None,
    limit: int | None = None,
    page_size: int = 200,
) -> Pages[NodeType]:
    return Pages(
        lambda cursor: list_node_types(
            q, category=category, package=package, limit=page_size, cursor=cursor
        ),
        limit,
    )


def get_node_type(node_type: str, *, package: str | None = None) -> ApiRequest[NodeType]:
    params = _query(ShowNodeType, package=package)
    return ApiRequest("GET", f"{NODES}/{_part(node_type)}", _as(NodeType), params)


# -- resources ------------------------------------------------------------------------------


def list_resources(
    *,
    run_id: str | None = None,
    worker_id: str | None = None,
    type: str | None = None,
    state: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> ApiRequest[Page[Resource]]:
    """One page, newest first."""
    wanted = {"run_id": run_id, "worker_id": worker_id, "type": type, "state": state}
    params = _query(ListResources, limit=limit, cursor=cursor, **wanted)
    return ApiRequest("GET", "/api/v1/resources", _as(ResourcePage), params)


def iterate_resources(
    *, limit: int | None = None, page_size: int = 200, **wanted: str | None
) -> Pages[Resource]:
    """All of them, newest first; `wanted` as in `list`."""
    return Pages(lambda cursor: list_resources(limit=page_size, cursor=cursor, **wanted), limit)


def get_resource(resource_id: str, *, worker_id: str | None = None) -> ApiRequest[Resource]:
    return ApiRequest("GET", _resource_path(resource_id), _as(Resource), _on_worker(worker_id))


def extend_resource(
    resource_id: str, ttl_s: int, *, worker_id: str | None = None
) -> ApiRequest[Resource]:
    """Keep it for so long from now."""
    body = msgspec.json.encode(Extension(ttl_seconds=ttl_s))
    path, params = _resource_path(resource_id), _on_worker(worker_id)
    return ApiRequest("PATCH", path, _as(Resource), params, headers=JSON, body=body)


def close_resource(resource_id: str, *, worker_id: str | None = None) -> ApiRequest[None]:
    return ApiRequest("DELETE", _resource_path(resource_id), _as_nothing, _on_worker(worker_id))


def share_artifact(resource_id: str, *, worker_id: str | None = None) -> ApiRequest[ArtifactLink]:
    """A signed URL of an artifact: whoever has it needs no token, for an hour."""
    return ApiRequest("POST", _artifact_path(resource_id), _as(ArtifactLink), _on_worker(worker_id))


def download_artifact(resource_id: str, into: Path, *, worker_id: str | None = None) -> ApiDownload:
    """Download an artifact into a file; its size. An interrupted download is continued, and the digest is checked.

    Raises:
        NotFound: no such resource.
        Unavailable: its worker is away, or the server is.
        OSError: the file cannot be written.
    """
    return ApiDownload(_artifact_path(resource_id), _on_worker(worker_id), into)


def _on_worker(worker_id: str | None) -> dict[str, str]:
    """The query that names the worker of a resource."""
    return _query(OfWorker, worker_id=worker_id)


def _artifact_path(resource_id: str) -> str:
    return f"/api/v1/artifacts/{quote(resource_id, safe='/')}"


def _resource_path(resource_id: str) -> str:
    return f"/api/v1/resources/{quote(resource_id, safe='/')}"


# -- the scheduler itself -------------------------------------------------------------------


def get_me() -> ApiRequest[Me]:
    return ApiRequest("GET", "/api/v1/me", _as(Me))


def get_readiness() -> ApiRequest[Status]:
    return ApiRequest("GET", "/readyz", _as(Status))
