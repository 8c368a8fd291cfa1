"""What the API answers, typed. Members that this version does not know are ignored."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

__all__ = [
    "TERMINAL",
    "Accepted",
    "Artifact",
    "ArtifactLink",
    "Event",
    "LogLine",
    "Me",
    "Node",
    "NodeDetail",
    "NodeType",
    "Package",
    "PackageSummary",
    "PackageVersion",
    "Page",
    "Resource",
    "Run",
    "RunSummary",
    "TaskError",
    "WaitingFor",
    "Worker",
    "Workflow",
    "WorkflowSummary",
]

TERMINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
"""The statuses in which a run stays."""

Item = TypeVar("Item")


class Model(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """camelCase on the wire, snake_case here."""


class TaskError(Model, frozen=True, kw_only=True):
    """Why a run, a node or an attempt did not succeed."""

    code: str
    category: str = ""
    message: str = ""
    stack: str | None = None


class KeyHolder(Model, frozen=True, kw_only=True):
    """The node that has a concurrency key."""

    run_id: str
    node_id: str


class WaitingFor(Model, frozen=True, kw_only=True):
    """What a node that could run waits for."""

    kind: str
    detail: str = ""
    until: str | None = None
    """When it need not wait any longer, at the latest; of a wait for the next try, `retry_at` says the same."""
    retry_at: str | None = None
    held_by: KeyHolder | None = None


class Artifact(Model, frozen=True, kw_only=True):
    """Something that a worker keeps, as a result returns it."""

    resource_id: str
    worker_id: str
    type: str
    inline: bool = False
    size_bytes: int | None = None
    expires_at: str | None = None
    metadata: Any = None


class Node(Model, frozen=True, kw_only=True):
    """One node of a run."""

    node_id: str
    type: str
    status: str
    label: str | None = None
    attempt: int = 0
    failures: int = 0
    worker_id: str | None = None
    waiting_for: WaitingFor | None = None
    result: Any = None
    result_truncated: bool = False
    error: TaskError | None = None
    progress: float | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    artifacts: list[Artifact] = []


class NodeDetail(Node, frozen=True, kw_only=True):
    """A node with its whole result, its attempts, and its story in sentences."""

    attempts: list[dict[str, Any]] = []
    story: list[str] = []


class RunSummary(Model, frozen=True, kw_only=True):
    """A run in a list."""

    run_id: str
    status: str
    created_at: str
    workflow_id: str = ""
    workflow_version: int | None = None
    name: str = ""
    cancel_requested: bool = False
    started_at: str | None = None
    finished_at: str | None = None
    error: TaskError | None = None
    rerun_of: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in TERMINAL


class Run(RunSummary, frozen=True, kw_only=True):
    """A run. `nodes` is empty when they were not asked for."""

    last_event: int = 0
    outputs: dict[str, Any] | None = None
    nodes: list[Node] = []
    artifacts: list[Artifact] = []

    def node(self, name: str) -> Node:
        """The node with this id or label.

        Raises:
            KeyError: there is none.
        """
        for one in self.nodes:
            if name in (one.node_id, one.label):
                return one
        raise KeyError(name)


class Accepted(Model, frozen=True, kw_only=True):
    """The answer to a submission."""

    run_id: str
    status: str
    created_at: str


class Event(Model, frozen=True, kw_only=True):
    """One event of a stream. `id` is 0 for those without a number."""

    id: int = 0
    type: str
    occurred_at: str = ""
    scope: dict[str, Any] = {}
    body: dict[str, Any] = msgspec.field(default_factory=dict, name="data")


class LogLine(Model, frozen=True, kw_only=True):
    """A piece of what a node said while it ran."""

    id: int
    occurred_at: str
    node_id: str
    attempt: int = 0
    channel: str = ""
    index: int = 0
    mime_type: str = ""
    text: str | None = None
    data_base64: str | None = None
    metadata: dict[str, Any] = {}


class Worker(Model, frozen=True, kw_only=True):
    """A worker that is or was connected."""

    worker_id: str
    name: str
    status: str
    tenant: str = ""
    version: str = ""
    hostname: str = ""
    max_parallel: int = 0
    inflight: int = 0
    packages: list[dict[str, Any]] = []
    labels: dict[str, str] = {}
    last_heartbeat_at: str | None = None
    resources: dict[str, Any] | None = None
    drain_requested: bool = False


class WorkflowSummary(Model, frozen=True, kw_only=True):
    """A saved workflow in a list."""

    id: str
    name: str
    version: int
    created_at: str = ""
    updated_at: str = ""
    updated_by: str = ""


class Workflow(Model, frozen=True, kw_only=True):
    """A saved workflow: its definition as it was saved, and the version."""

    version: int
    definition: dict[str, Any]


class PackageSummary(Model, frozen=True, kw_only=True):
    """A published package in a list. `active` is the version that nodes without one get."""

    name: str
    versions: list[str]
    active: str | None = None
    pinned: bool = False
    nodes: int = 0
    description: str = ""
    published_at: str = ""


class PackageVersion(Model, frozen=True, kw_only=True):
    """A published version of a package."""

    name: str
    version: str
    sha256: str
    active: bool = False
    size_bytes: int = 0
    published_at: str = ""
    published_by: str = ""
    signed_by: str | None = None
    yanked_at: str | None = None
    yanked_reason: str = ""
    nodes: int = 0
    workers: list[str] = []
    manifest: dict[str, Any] | None = None
    signature: dict[str, Any] | None = None


class Package(Model, frozen=True, kw_only=True):
    """A published package with its versions, newest first."""

    name: str
    versions: list[PackageVersion]
    active: str | None = None
    pinned: bool = False
    nodes: int = 0
    description: str = ""
    published_at: str = ""


class NodeType(Model, frozen=True, kw_only=True):
    """A node type that workflows can use."""

    type: str
    package: dict[str, Any]
    label: str = ""
    category: str = ""
    description: str = ""
    tags: list[str] = []
    status: str = ""
    published: bool = True
    schema: dict[str, Any] = {}
    ui: dict[str, Any] = {}
    runtimes: dict[str, Any] = {}


class Resource(Model, frozen=True, kw_only=True):
    """What a worker holds, or the copy of it."""

    resource_id: str
    worker_id: str
    type: str
    state: str
    scope: str = ""
    run_id: str | None = None
    node_id: str | None = None
    package: str = ""
    size_bytes: int | None = None
    created_at: str = ""
    expires_at: str | None = None
    is_artifact: bool = False
    has_copy: bool = False
    metadata: dict[str, Any] = {}


class ArtifactLink(Model, frozen=True, kw_only=True):
    """Where an artifact can be read without a token, for a while."""

    url: str
    expires_at: str
    size_bytes: int
    sha256: str
    mime: str = ""


class Me(Model, frozen=True, kw_only=True):
    """Whose token it is."""

    tenant: str
    subject: str
    role: str
    expires_at: str | None = None


class Page(Model, Generic[Item], frozen=True, kw_only=True):
    """One page of a list."""

    items: list[Item]
    next_cursor: str | None = None
