"""Workers, and the commands that they are given."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from msgspec import field

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
from astraflow.core.contract.words import WorkerStatus

MAX_DRAIN_MS: Final = 7 * 86_400_000
"""The longest deadline that `control.drain` can carry. The protocol has the same number, and a test compares them: a
client does not load the protocol."""


class InstalledPackage(RestObject, frozen=True, kw_only=True):
    """A package on a worker, or on its way to it."""

    name: Annotated[str, doc("The package.")]
    version: Annotated[str, doc("Its version.")]
    status: Annotated[
        str | None, doc("`installed`, or how far the installation is, or that it failed.")
    ] = None


class Worker(RestObject, frozen=True, kw_only=True):
    """A worker that is or was connected."""

    worker_id: Annotated[str, doc("Its id, which stays when it restarts.")]
    name: Annotated[str, doc("The name that it was given.")]
    tenant: Annotated[str, doc("The tenant that it works for.")]
    status: Annotated[WorkerStatus, doc("Where it stands.")]
    version: Annotated[str, doc("The version of its software.")]
    hostname: Annotated[str, doc("The machine that it runs on.")]
    max_parallel: Annotated[Count, doc("How many attempts it runs at once.")]
    inflight: Annotated[Count, doc("How many attempts it has now.")]
    packages: Annotated[list[InstalledPackage], doc("What it has installed, or is installing.")]
    labels: Annotated[dict[str, str], doc("Its labels, which nodes can ask for.")]
    last_heartbeat_at: Annotated[Timestamp | None, doc("When it was last heard of.")]
    resources: Annotated[
        dict[str, float] | None, doc("What it reports about its machine: load, memory, disk.")
    ] = None
    drain_requested: Annotated[
        bool, doc("Somebody has asked it to drain, and nobody has taken that back.")
    ] = False
    inventory_drift: Annotated[
        bool, doc("It has other packages than the scheduler has told it to have.")
    ] = False

    EXAMPLE: ClassVar[JsonObject] = {
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "name": "otter",
        "tenant": "default",
        "status": "online",
        "version": "0.1.0",
        "hostname": "build-7",
        "maxParallel": 16,
        "inflight": 2,
        "packages": [{"name": "core", "version": "1.0.0", "status": "installed"}],
        "labels": {"gpu": "no"},
        "lastHeartbeatAt": "2026-01-15T10:00:00.000Z",
    }


class WorkerAmounts(RestObject, frozen=True, kw_only=True):
    """Amounts of what a machine has."""

    cpu: Annotated[float, doc("Processors.")]
    memory_bytes: Annotated[Count, doc("Bytes of memory.")]
    gpu: Annotated[Count, doc("Graphics cards.")]


class WorkerAttempt(RestObject, frozen=True, kw_only=True):
    """An attempt that a worker has."""

    run_id: Annotated[str, doc("The run.")]
    task_id: Annotated[str, doc("The task.")]
    node_id: Annotated[str, doc("The node.")]
    node_type: Annotated[str, doc("The type of the node.")]
    attempt: Annotated[Count, doc("Its number.")]
    acknowledged: Annotated[bool, doc("Whether the worker has acknowledged its dispatch.")]


class WorkerHandler(RestObject, frozen=True, kw_only=True):
    """A node type that a worker can execute."""

    node_type: Annotated[str, doc("The type of the node.")]
    package: Annotated[str, doc("The package that has it.")]
    version: Annotated[str, doc("The version of the package.")]
    runtime: Annotated[str | None, doc("The runtime that the package needs.")] = None


class WorkerDetail(Worker, frozen=True, kw_only=True):
    """A worker with what it told of itself and what it does now. Its numbers are those of its last heartbeat."""

    incarnation: Annotated[Count, doc("How often it was started.")]
    session_id: Annotated[str | None, doc("Its session; null while it has none.")]
    runtimes: Annotated[list[str], doc("The runtimes that it has.")]
    features: Annotated[list[str], doc("What else it can do.")]
    per_node_limits: Annotated[
        dict[str, Count], doc("How many attempts of a node type it runs at once.")
    ]
    capacity: Annotated[
        WorkerAmounts | None,
        doc("What its machine has for nodes that ask for a part of it; null if it did not say."),
    ]
    reserved: Annotated[
        WorkerAmounts | None, doc("How much of it the attempts that it has asked for.")
    ]
    cpu_pct: Annotated[float | None, doc("The load of its processors; null before a heartbeat.")]
    mem_pct: Annotated[float | None, doc("How much of its memory is in use.")]
    disk_pct: Annotated[float | None, doc("How much of its disk is in use.")]
    latency_ms: Annotated[float | None, doc("How long its last heartbeat took to be answered.")]
    attempts: Annotated[list[WorkerAttempt], doc("The attempts that it has.")]
    handlers: Annotated[list[WorkerHandler], doc("What it can execute, with the packages it has.")]

    EXAMPLE: ClassVar[JsonObject] = {
        **Worker.EXAMPLE,
        "incarnation": 3,
        "sessionId": "01JCQ6Z0M3V8R6T2XK9D4HB7WN",
        "runtimes": ["python"],
        "features": [],
        "perNodeLimits": {},
        "capacity": {"cpu": 8.0, "memoryBytes": 34_359_738_368, "gpu": 1},
        "reserved": {"cpu": 2.5, "memoryBytes": 4_294_967_296, "gpu": 0},
        "cpuPct": 12.5,
        "memPct": 40.0,
        "diskPct": 71.2,
        "latencyMs": 1.2,
        "attempts": [],
        "handlers": [{"nodeType": "core.echo", "package": "core", "version": "1.0.0"}],
    }


class WorkerPage(Page[Worker], frozen=True, kw_only=True):
    """A page of workers, by id."""


class ListWorkers(PageQuery, frozen=True, kw_only=True):
    """Which workers."""

    status: Annotated[WorkerStatus | None, doc("Only workers with this status.")] = None
    package: Annotated[
        str, doc("Only workers that have this package.", max_length=MAX_ID_CHARS)
    ] = ""
    text: Annotated[
        str, doc("Only workers with this text in their name or their id.", max_length=MAX_ID_CHARS)
    ] = ""


_NAME = doc("The package.", min_length=1, max_length=MAX_ID_CHARS)
_VERSION = doc("Its version.", min_length=1, max_length=MAX_ID_CHARS)


class Drain(RequestBody, frozen=True, kw_only=True, tag="drain"):
    """Take no new work and finish what runs; at the deadline stop it."""

    reason: (
        Annotated[str, doc("Why, for people.", min_length=1, max_length=MAX_ID_CHARS)] | None
    ) = None
    deadline_ms: (
        Annotated[
            int,
            doc("What still runs then is stopped.", ge=0, le=MAX_DRAIN_MS),
        ]
        | None
    ) = None

    EXAMPLE: ClassVar[JsonObject] = {"type": "drain", "reason": "update", "deadlineMs": 60_000}


class Undrain(RequestBody, frozen=True, kw_only=True, tag="undrain"):
    """Take work again."""


class Rebind(RequestBody, frozen=True, kw_only=True, tag="rebind"):
    """Release the runs that are bound to this worker."""


class InstallPackage(RequestBody, frozen=True, kw_only=True, tag="pkg.install"):
    """Install a version of a package."""

    name: Annotated[str, _NAME]
    version: Annotated[str, _VERSION]


class UninstallPackage(RequestBody, frozen=True, kw_only=True, tag="pkg.uninstall"):
    """Remove a version of a package."""

    name: Annotated[str, _NAME]
    version: Annotated[str, _VERSION]


WorkerCommand = Drain | Undrain | Rebind | InstallPackage | UninstallPackage


class Command:
    """What a worker is told to do. `type` says which command it is."""

    EXAMPLE: ClassVar[JsonObject] = Drain.EXAMPLE
    ONE_OF: ClassVar[tuple[type, ...]] = (Drain, Undrain, Rebind, InstallPackage, UninstallPackage)


class CommandAccepted(RestObject, frozen=True, kw_only=True):
    """The command is stored; the worker gets it when it is connected."""

    command_id: Annotated[str, doc("The id of the command, as in the audit.")]
    worker_id: Annotated[str, doc("The worker.")]
    type: Annotated[str, doc("The type of the command.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "commandId": "01JCQ72M8V0R6T2XK9D4HB7WNA",
        "workerId": "01JCQ6YV2E5N3A8P7S1F0GKM4C",
        "type": "drain",
    }


_TEXT = doc("For people.", min_length=1, max_length=MAX_ID_CHARS)
_WORKER_ID = doc("Its id, which stays when it restarts.", pattern=r"^[A-Za-z0-9._:-]{1,128}$(?!\n)")


class ReportedPackage(RequestBody, frozen=True, kw_only=True):
    """A package that a worker says it has."""

    name: Annotated[str, _NAME]
    version: Annotated[str, _VERSION]


class RegisterWorker(RequestBody, frozen=True, kw_only=True):
    """A worker that is known over HTTP. It is shown with the others, and nothing is dispatched to it."""

    worker_id: Annotated[str, _WORKER_ID]
    name: Annotated[str, _TEXT] | None = None
    version: Annotated[str, _TEXT] | None = None
    hostname: Annotated[str, _TEXT] | None = None
    max_parallel: Annotated[int, doc("How many attempts it runs at once.", ge=1, le=2**53)] = 1
    packages: Annotated[list[ReportedPackage], doc("What it has.", max_length=1000)] = field(
        default_factory=list
    )
    labels: Annotated[dict[str, str], doc("Its labels.", max_length=64)] = field(
        default_factory=dict
    )

    EXAMPLE: ClassVar[JsonObject] = {
        "workerId": "box-7",
        "name": "the box under the desk",
        "packages": [{"name": "core", "version": "1.0.0"}],
    }


class WorkerKnown(RestObject, frozen=True, kw_only=True):
    """The worker is known. Silence makes it offline."""

    worker_id: Annotated[str, doc("Its id.")]
    heartbeat_interval_ms: Annotated[
        Count, doc("How often to send a heartbeat; after three missed ones register again.")
    ]

    EXAMPLE: ClassVar[JsonObject] = {"workerId": "box-7", "heartbeatIntervalMs": 5000}


_PERCENT = doc("Of the machine, 0 to 100.", ge=0, le=100)


class ReportHeartbeat(RequestBody, frozen=True, kw_only=True):
    """A worker that is known over HTTP lives."""

    worker_id: Annotated[str, _WORKER_ID]
    healthy: Annotated[bool, doc("Whether it could work.")] = True
    draining: Annotated[bool, doc("Whether it takes nothing new.")] = False
    cpu_pct: Annotated[float, doc("The load of its processors.", ge=0)] = 0.0
    mem_pct: Annotated[float, _PERCENT] = 0.0
    disk_pct: Annotated[float, _PERCENT] = 0.0

    EXAMPLE: ClassVar[JsonObject] = {"workerId": "box-7", "healthy": True}


class HeartbeatAnswer(RestObject, frozen=True, kw_only=True):
    """The heartbeat counts."""

    acknowledged: Annotated[bool, doc("Always true.")]
    server_time: Annotated[Timestamp, doc("The scheduler's time.")]

    EXAMPLE: ClassVar[JsonObject] = {
        "acknowledged": True,
        "serverTime": "2026-01-15T10:00:00.000Z",
    }
