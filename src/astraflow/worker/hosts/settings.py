"""Settings of the host pool: the code and the limits of hosts, and the receiver of their events."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business

MIB: Final = 1024 * 1024


class HostSpec(msgspec.Struct, frozen=True):
    """One package version, installed: `folder` has its manifest and modules, `python` its environment."""

    name: str
    version: str
    python: Path
    folder: Path
    isolation: Literal["package", "attempt"] = "package"
    """As in the manifest: `attempt` gives each attempt a host of its own."""
    memory_limit_bytes: int | None = None


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of hosts. Times in seconds."""

    worker_id: str = "worker"
    """The worker's instance id, which artifacts carry."""
    tenant: str = "default"
    resources_dir: Path | None = None
    """Where hosts put files to be registered; None: nothing is kept."""
    environment: tuple[str, ...] = ()
    """Names of variables that hosts get beside those that all programs need (`variables`)."""
    start_timeout_s: float = 30.0
    """From the start of the process until its package is loaded: large models are loaded later, by handlers."""
    start_backoff_s: float = 0.5
    start_backoff_max_s: float = 30.0
    """Between two starts of a package that did not start; doubling."""
    idle_timeout_s: float = 300.0
    """A host without work is kept warm that long."""
    own_idle_timeout_s: float = 10.0
    """The same for a host that runs one attempt at a time."""
    max_starting: int = 2
    """Hosts for one attempt that start at the same time: each takes a tenth of a second of a core."""
    max_hosts: int = 32
    """Processes at once, but for those that wait for calls or only keep objects. When all work, an attempt that needs
    another host waits."""
    min_grace_s: float = 1.0
    """What every attempt is given to end, even if it is promised less: its kill is the loss of the others in its host,
    and of what the host keeps warm."""
    kill_timeout_s: float = 2.0
    """After which a guard that does not answer is killed itself, with all that can be found below it."""
    max_threads: int = 512
    """In a host, for handlers that are plain functions. More than a worker's slots: waiting middlewares hold one."""
    open_files: int = 4096
    memory_sample_s: float = 0.25
    max_processes: int = 256
    """Below one host. A browser has some thirty."""
    disk_bytes: int | None = None
    """Of what all hosts have written and not registered."""
    result_bytes: int = 4 * MIB - 64 * 1024
    """The frame that carries a result may have four MiB, its envelope and artifacts included."""
    output_bytes: int = 16 * MIB
    output_bytes_per_s: int = MIB
    """Of what an attempt prints; the rest is dropped and counted."""
    feedback_bytes: int = 64 * MIB
    feedback_bytes_per_s: int = 4 * MIB
    """Of all that an attempt streams; the rest is dropped and counted."""


class HostEvents(Protocol):
    """The receiver of the pool's events. Called on the loop's thread, never from inside a call of the pool."""

    def finished(self, result: business.Result) -> None:
        """An attempt has ended and this is its outcome. Once per attempt, unless `gone` is called."""

    def gone(self, task_id: TaskId, attempt: int) -> None:
        """An attempt that `kill` was called for is dead: nothing of it is left."""

    def feedback(self, feedback: business.Feedback) -> None:
        """Something that a running attempt says; all of it comes before `finished`."""

    def call(self, request: business.NextRequest) -> None:
        """A middleware calls the rest of its chain: `answer` it."""
