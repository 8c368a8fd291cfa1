"""Re-runs, comparisons of two runs, and what is done to many runs at once."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from astraflow.core.contract.base import (
    MAX_CURSOR_CHARS,
    OBJECT,
    Count,
    Id,
    JsonObject,
    RequestBody,
    RestObject,
    doc,
    no_items,
)
from astraflow.core.contract.runs import Accepted
from astraflow.core.contract.versions import ValueChange
from astraflow.core.contract.words import NodeStatus, RunStatus

MAX_BULK: Final = 200
_RUN: Final = "01JCQ6Z0M3V8R6T2XK9D4HB7WN"
_LATER: Final = "01JCQ71Q4T9W2E6N8R5P3K0D7A"
_NODE: Final = "5b2c3fcb-9c18-4ca2-9b5a-8ad4deb1f164"

Packages = Annotated[
    dict[str, str], doc("Versions that nodes of these packages are executed with, by package.")
]


def _nothing() -> dict[str, Any]:
    return {}


class RerunRequest(RequestBody, frozen=True, kw_only=True):
    """What of a run is executed again, and what is different this time."""

    mode: Annotated[
        Literal["all", "failed", "from"],
        doc(
            "`all` repeats every node; `failed` those that did not succeed, and what follows them; `from` also `nodes` "
            "and what follows them. Other results are taken over."
        ),
    ] = "failed"
    nodes: Annotated[list[Id], doc("The nodes to begin with, by id, if `mode` is `from`.")] = (
        msgspec.field(default_factory=no_items)
    )
    parameters: Annotated[
        dict[str, dict[str, Any]],
        doc(
            "Changed parameters by node: the members named here replace those of the definition. Such a node is "
            "repeated."
        ),
    ] = msgspec.field(default_factory=_nothing)
    inputs: Annotated[
        Raw | UnsetType,
        doc(
            "Other inputs; those of the run by default. Nodes that read inputs are repeated.",
            extra_json_schema=OBJECT,
        ),
    ] = UNSET
    packages: Packages = msgspec.field(default_factory=_nothing)

    EXAMPLE: ClassVar[JsonObject] = {
        "mode": "from",
        "nodes": [_NODE],
        "parameters": {_NODE: {"value": "good morning"}},
    }


class Rerun(Accepted, frozen=True, kw_only=True):
    """The run that repeats another one."""

    rerun_of: Annotated[str, doc("The run that it repeats.")]
    kept: Annotated[list[str], doc("The nodes whose results it takes over.")]

    EXAMPLE: ClassVar[JsonObject] = {
        **Accepted.EXAMPLE,
        "runId": _LATER,
        "rerunOf": _RUN,
        "kept": [],
    }


class NodeSide(RestObject, frozen=True, kw_only=True):
    """A node in one of two runs."""

    status: Annotated[NodeStatus, doc("Where it stands.")]
    attempt: Annotated[
        Count, doc("The number of its last attempt; 0 if its result was taken over.")
    ]
    duration_ms: Annotated[
        Count | None, doc("From its first start to its end, in milliseconds.")
    ] = None
    worker_id: Annotated[str | None, doc("The worker of its last attempt.")] = None
    package: Annotated[str, doc("The package that provides it.")]
    package_version: Annotated[str, doc("The version of the package.")]


class NodeComparison(RestObject, frozen=True, kw_only=True):
    """A node in two runs. It is missing on the side of a run that does not have it."""

    node_id: Annotated[str, doc("The id of the node.")]
    label: Annotated[str, doc("Its label.")]
    type: Annotated[str, doc("Its type.")]
    is_equal: Annotated[bool, doc("Its status, parameters, package and result are the same.")]
    first: Annotated[NodeSide | None, doc("What it is in the first run.")] = None
    second: Annotated[NodeSide | None, doc("What it is in the second run.")] = None
    parameters: Annotated[list[ValueChange], doc("Authored parameters that differ.")] = (
        msgspec.field(default_factory=no_items)
    )
    result: Annotated[
        Literal["equal", "changed", "only_first", "only_second", "none"],
        doc("Whether both have a result, and the same."),
    ]
    result_changes: Annotated[list[ValueChange], doc("What differs in the results.")] = (
        msgspec.field(default_factory=no_items)
    )


class RunComparison(RestObject, frozen=True, kw_only=True):
    """Two runs, node by node."""

    first: Annotated[str, doc("The id of the first run.")]
    second: Annotated[str, doc("The id of the second run.")]
    first_status: Annotated[RunStatus, doc("Where the first run stands.")]
    second_status: Annotated[RunStatus, doc("Where the second run stands.")]
    inputs: Annotated[list[ValueChange], doc("Inputs that differ.")]
    nodes: Annotated[
        list[NodeComparison],
        doc("In the order of the first run; what only the second has is last."),
    ]
    is_truncated: Annotated[bool, doc("More values differ than are listed.")] = False

    EXAMPLE: ClassVar[JsonObject] = {
        "first": _RUN,
        "second": _LATER,
        "firstStatus": "failed",
        "secondStatus": "succeeded",
        "inputs": [],
        "nodes": [
            {
                "nodeId": _NODE,
                "label": "",
                "type": "core.echo",
                "isEqual": False,
                "first": {
                    "status": "failed",
                    "attempt": 1,
                    "package": "core",
                    "packageVersion": "1.0.0",
                },
                "second": {
                    "status": "succeeded",
                    "attempt": 1,
                    "durationMs": 12,
                    "package": "core",
                    "packageVersion": "1.0.0",
                },
                "parameters": [],
                "result": "only_second",
                "resultChanges": [],
            }
        ],
    }


_LIMIT: Final = doc(f"How many runs at most, {MAX_BULK} at the most.", ge=1, le=MAX_BULK)
_CURSOR: Final = doc("`nextCursor` of the response before.", max_length=MAX_CURSOR_CHARS)
_DRY: Final = doc("Only list the runs that it would be done to.")
_OF: Final = doc("Only runs of this workflow.")


class CancelManyRequest(RequestBody, frozen=True, kw_only=True):
    """Which runs to cancel, newest first: those that are active and that nobody has cancelled yet."""

    status: Annotated[Literal["queued", "running"] | None, doc("Only runs with this status.")] = (
        None
    )
    workflow_id: Annotated[Id | None, _OF] = None
    limit: Annotated[int, _LIMIT] = MAX_BULK
    cursor: Annotated[str, _CURSOR] = ""
    dry_run: Annotated[bool, _DRY] = False

    EXAMPLE: ClassVar[JsonObject] = {"status": "queued", "dryRun": True}


class RerunManyRequest(RequestBody, frozen=True, kw_only=True):
    """Which runs to repeat, newest first, and how."""

    status: Annotated[
        Literal["failed", "cancelled", "succeeded"], doc("Only runs with this status.")
    ] = "failed"
    workflow_id: Annotated[Id | None, _OF] = None
    mode: Annotated[
        Literal["all", "failed"], doc("Repeat every node, or those that did not succeed.")
    ] = "failed"
    packages: Packages = msgspec.field(default_factory=_nothing)
    limit: Annotated[int, _LIMIT] = MAX_BULK
    cursor: Annotated[str, _CURSOR] = ""
    dry_run: Annotated[bool, _DRY] = False

    EXAMPLE: ClassVar[JsonObject] = {"status": "failed", "limit": 20, "dryRun": True}


class BulkItem(RestObject, frozen=True, kw_only=True):
    """One of many runs, and what came of it."""

    run_id: Annotated[str, doc("The run.")]
    new_run_id: Annotated[str | None, doc("The run that repeats it.")] = None
    code: Annotated[str | None, doc("Why nothing was done, for programs.")] = None
    message: Annotated[str | None, doc("Why nothing was done, for people.")] = None


class BulkResult(RestObject, frozen=True, kw_only=True):
    """What was done to many runs, or would be."""

    items: Annotated[list[BulkItem], doc("The runs, newest first.")]
    dry_run: Annotated[bool, doc("Nothing was done.")]
    more: Annotated[bool, doc("There are more such runs: send `nextCursor` as `cursor`.")]
    next_cursor: Annotated[str | None, doc("Where the next request goes on.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "items": [{"runId": _RUN, "newRunId": _LATER}],
        "dryRun": False,
        "more": False,
        "nextCursor": None,
    }
