"""A pool of real hosts, and what it has told so far."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from astraflow.clock import SystemClock
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.hosts import HostPool, HostSpec, PoolSettings, core_package
from astraflow.worker.resources import LocalResourceRegistry, RegistryBroker, ResourceLimits

NASTY = HostSpec("nasty", "1.0.0", Path(sys.executable), Path(__file__).parent / "nasty")
WAIT_S = 30.0
"""For what must happen; it is never waited out unless something is broken."""
FENCE_S = 60.0


class Stage:
    """Starts attempts and waits for what becomes of them."""

    def __init__(
        self,
        folder: Path,
        settings: PoolSettings,
        *specs: HostSpec,
        limits: ResourceLimits | None = None,
    ) -> None:
        self.folder = folder
        self.clock = SystemClock()
        self.results: dict[str, business.Result] = {}
        self.goners: list[tuple[str, int]] = []
        self.said: list[business.Feedback] = []
        self.calls: list[business.NextRequest] = []
        self.durations: list[str] = []
        self.events: list[business.ResourceEvent] = []
        self.lanes_told: list[int] = []
        self._changed = asyncio.Event()
        self.registry = LocalResourceRegistry(
            folder,
            folder / "data",
            worker_id=settings.worker_id,
            clock=self.clock,
            limits=limits or ResourceLimits(),
            tell=self.told,
        )
        settings = msgspec.structs.replace(settings, resources_dir=self.registry.files.root)
        known = {spec.name: spec for spec in (core_package(), NASTY, *specs)}
        self.pool = HostPool(
            folder=folder,
            clock=self.clock,
            settings=settings,
            packages=lambda name, version: known.get(name),
            events=self,
            broker=RegistryBroker(self.registry, settings.worker_id),
            observe_duration=lambda duration_ms, node_type: self.durations.append(node_type),
        )

    # -- the events of the pool -------------------------------------------------------------

    def finished(self, result: business.Result) -> None:
        assert result.task_id not in self.results, "an attempt has one outcome"
        self.results[result.task_id] = result
        self._changed.set()

    def gone(self, task_id: str, attempt: int) -> None:
        self.goners.append((task_id, attempt))
        self._changed.set()

    def feedback(self, feedback: business.Feedback) -> None:
        assert feedback.task_id not in self.results, "feedback comes before the result"
        self.said.append(feedback)
        self._changed.set()

    def call(self, request: business.NextRequest) -> None:
        self.calls.append(request)
        self._changed.set()

    def told(self, event: business.ResourceEvent, lane: int = 0) -> None:
        self.events.append(event)
        self.lanes_told.append(lane)
        self._changed.set()

    # -- what tests do ----------------------------------------------------------------------

    def start(
        self,
        node_type: str,
        parameters: object = None,
        *,
        task: str = "t1",
        attempt: int = 1,
        failures: int = 0,
        fence_s: float = FENCE_S,
        run: str = "run-1",
        lane: int = 0,
        **fields: Any,
    ) -> None:
        dispatch = business.Dispatch(
            RunId(run),
            TaskId(task),
            attempt,
            failures,
            "node-1",
            node_type,
            business.PackageId(node_type.partition(".")[0], "1.0.0"),
            msgspec.Raw(json.dumps(parameters or {}).encode()),
            business.LeaseGrant(30_000, "hb-1"),
            **fields,
        )
        self.pool.start(dispatch, self.clock.now() + fence_s, lane)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def outcome(self, task: str = "t1") -> business.Result:
        await self.until(lambda: task in self.results)
        return self.results[task]

    async def outcome_of(
        self, node_type: str, parameters: object = None, **fields: Any
    ) -> business.Result:
        self.start(node_type, parameters, **fields)
        return await self.outcome(fields.get("task", "t1"))

    async def up(self, task: str = "t1") -> None:
        """Until the handler of a task has logged that it is there."""
        await self.until(lambda: any(one.task_id == task and one.chunks for one in self.said))

    async def until_ready(self) -> None:
        """Until every host has loaded its package and been written down as a whole."""
        await self._until_seen(
            lambda: self.records() and all(one["host_pid"] for one in self.records())
        )

    async def until_no_hosts(self) -> None:
        await self._until_seen(lambda: self.pool.stats().hosts == 0)

    async def until_exists(self, path: Path) -> None:
        await self._until_seen(path.exists)

    async def _until_seen(self, condition: Callable[[], object]) -> None:
        """For what the pool does not tell: looked at in each turn of the loop."""
        async with asyncio.timeout(WAIT_S):
            while not condition():  # noqa: ASYNC110  (nothing would set an event)
                await asyncio.sleep(0)

    def texts(self, channel: str, task: str = "t1") -> list[str]:
        return [
            chunk.text or ""
            for one in self.said
            if one.task_id == task
            for chunk in one.chunks
            if chunk.channel == channel
        ]

    def dropped(self) -> int:
        return sum(one.dropped for one in self.said)

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in (self.folder / "hosts").glob("*.json")]


@asynccontextmanager
async def staged(
    folder: Path, *specs: HostSpec, limits: ResourceLimits | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    stage = Stage(folder, PoolSettings(worker_id="w-1", **settings), *specs, limits=limits)
    try:
        yield stage
    finally:
        await stage.pool.close()
        stage.registry.check()
        assert all(not one.in_use_count for one in stage.registry.list()), (
            "all leases were given back"
        )
        stage.registry.close()
        assert stage.records() == [], "a host that is dead is forgotten"


def value_of(result: business.Result) -> Any:
    assert result.status == "SUCCEEDED", result.error
    return json.loads(bytes(result.result))


def error_of(result: business.Result) -> business.AttemptError:
    assert result.status == "FAILED", result
    assert result.error is not None
    return result.error


def wait_until_dead(pid: int) -> None:
    """Until a process that need not be ours is gone."""
    try:
        pid_fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(pid_fd, select.POLLIN)
        assert poll.poll(WAIT_S * 1000), f"process {pid} is still there"
    finally:
        os.close(pid_fd)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
