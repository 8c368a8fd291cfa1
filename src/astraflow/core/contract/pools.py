"""HTTP worker pools, as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from astraflow.core.contract.base import (
    MAX_ID_CHARS,
    Count,
    JsonObject,
    Page,
    PageQuery,
    RequestBody,
    RestObject,
    Timestamp,
    doc,
)
from astraflow.core.contract.words import DispatcherKind

_Name = Annotated[str, doc("The package.", min_length=1, max_length=MAX_ID_CHARS)]
_Seconds = float


class OfferedVersion(RestObject, frozen=True, kw_only=True):
    """A package that the workers behind a pool can run."""

    name: _Name
    version: Annotated[
        str, doc("Its version; `*` for any.", min_length=1, max_length=MAX_ID_CHARS)
    ] = "*"


class HttpPool(RestObject, frozen=True, kw_only=True):
    """Where tasks are pushed to, for workers that hold no session."""

    name: Annotated[str, doc("Its name in the tenant.")]
    worker_id: Annotated[str, doc("`workerId` of the nodes that it runs.")]
    dispatcher: Annotated[DispatcherKind, doc("How tasks get there.")]
    url: Annotated[str, doc("Where a task is pushed to.")]
    packages: Annotated[list[OfferedVersion], doc("What its workers can run.")]
    labels: Annotated[dict[str, str], doc("What nodes can ask for; `pool` is its name.")]
    max_parallel: Annotated[Count, doc("How many attempts may be under way in it.")]
    per_node_limits: Annotated[dict[str, int], doc("The same, by the type of the node.")]
    inflight: Annotated[Count, doc("How many attempts are under way.")]
    start_timeout_seconds: Annotated[
        _Seconds, doc("An attempt that nobody starts for so long is lost.")
    ]
    heartbeat_interval_seconds: Annotated[_Seconds, doc("How often a worker reports.")]
    heartbeat_timeout_seconds: Annotated[
        _Seconds, doc("An attempt whose worker is silent for so long has failed.")
    ]
    cancel_grace_seconds: Annotated[_Seconds, doc("How long a cancelled attempt may take to stop.")]
    token_ttl_seconds: Annotated[int, doc("How long a task token is good; heartbeats renew it.")]
    workspace: Annotated[str, doc("`workspaceId` of its envelopes.")]
    callback_url: Annotated[str, doc("What its workers report to.")]
    options: Annotated[dict[str, str], doc("Settings of the dispatcher.")]
    has_secret: Annotated[bool, doc("Whether pushes carry a shared secret. It is never shown.")]
    is_paused: Annotated[bool, doc("It gets nothing new.")]
    updated_at: Annotated[Timestamp, doc("When it was last changed.")]
    updated_by: Annotated[str, doc("By whom.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "name": "functions",
        "workerId": "pool/functions",
        "dispatcher": "http",
        "url": "https://worker.example.com/tasks",
        "packages": [{"name": "core"}],
        "labels": {"pool": "functions"},
        "maxParallel": 10,
        "perNodeLimits": {},
        "inflight": 0,
        "startTimeoutSeconds": 60,
        "heartbeatIntervalSeconds": 30,
        "heartbeatTimeoutSeconds": 90,
        "cancelGraceSeconds": 30,
        "tokenTtlSeconds": 3600,
        "workspace": "default",
        "callbackUrl": "https://astra.example.com",
        "options": {},
        "hasSecret": True,
        "isPaused": False,
        "updatedAt": "2026-01-15T10:00:00.000Z",
        "updatedBy": "ada",
    }


class HttpPoolPage(Page[HttpPool], frozen=True, kw_only=True):
    """A page of HTTP pools, by name."""


class ListPools(PageQuery, frozen=True, kw_only=True):
    """Which pools."""


_Label = Annotated[str, doc("A label.", max_length=MAX_ID_CHARS)]
_Slots = Annotated[int, doc("Attempts at once.", ge=1, le=100_000)]


class HttpPoolSettings(RequestBody, frozen=True, kw_only=True):
    """An HTTP pool to make or to replace. What is left out has its default; a secret that is left out stays."""

    url: Annotated[str, doc("Where a task is pushed to.", min_length=1, max_length=2_048)]
    packages: Annotated[
        list[OfferedVersion], doc("What its workers can run.", min_length=1, max_length=256)
    ]
    dispatcher: Annotated[DispatcherKind, doc("How tasks get there.")] = "http"
    labels: Annotated[dict[_Label, _Label], doc("What nodes can ask for.", max_length=64)] = (
        msgspec.field(default_factory=dict)
    )
    max_parallel: Annotated[_Slots, doc("How many attempts may be under way in it.")] = 10
    per_node_limits: Annotated[
        dict[_Label, _Slots], doc("The same, by the type of the node.", max_length=256)
    ] = msgspec.field(default_factory=dict)
    start_timeout_seconds: Annotated[_Seconds, doc("60 for `http`, 600 for a queue.")] | None = None
    heartbeat_interval_seconds: Annotated[_Seconds, doc("How often a worker reports.")] = 30.0
    heartbeat_timeout_seconds: Annotated[_Seconds, doc("At least twice the interval.")] = 90.0
    cancel_grace_seconds: Annotated[_Seconds, doc("0 to a week.")] = 30.0
    token_ttl_seconds: Annotated[int, doc("1 to 7200.")] = 3600
    workspace: Annotated[
        str, doc("`workspaceId` of its envelopes.", min_length=1, max_length=MAX_ID_CHARS)
    ] = "default"
    callback_url: Annotated[
        str, doc("If its workers reach the scheduler at another address.", max_length=2_048)
    ] = ""
    options: Annotated[
        dict[_Label, Annotated[str, doc("A value.", max_length=2_048)]],
        doc("Settings of the dispatcher.", max_length=16),
    ] = msgspec.field(default_factory=dict)
    secret: (
        Annotated[str, doc("Sent with each push; empty removes it.", max_length=4_096)] | None
    ) = None
    is_paused: Annotated[bool, doc("Give it nothing new.")] = False

    EXAMPLE: ClassVar[JsonObject] = {
        "url": "https://worker.example.com/tasks",
        "packages": [{"name": "core"}],
        "maxParallel": 10,
    }
