"""Workers without hosts: whole sessions, many in one process. An attempt ends as soon as it begins.

`python -m benchmarks.light_workers PORT COUNT SLOTS [TENANT TOKEN LANE]` runs COUNT of them until it is terminated.
With a lane they have one session each, with that lane alone, and all of their slots are for it.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import NamedTuple

import uvloop

from astraflow.bench.processes import TOKEN, BenchClient
from astraflow.clock import SystemClock
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.protocol import business, control
from astraflow.core.protocol.wire import Envelope
from astraflow.core.protocol.worker_events import Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.core.workflow import core_manifest
from astraflow.ulids import Ulids
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from astraflow.worker.socket import connect

ASKED_EVERY_S = 0.2


class _InstantHosts:
    """Each attempt succeeds at once, and returns its parameters."""

    def __init__(self, runner: AgentRunner) -> None:
        self._runner = runner

    def start(self, dispatch: business.Dispatch, _fence_at: float) -> None:
        self._runner.finished(
            business.Result(
                dispatch.run_id,
                dispatch.task_id,
                dispatch.attempt,
                "SUCCEEDED",
                dispatch.parameters,
            )
        )

    def cancel(self, *_: object) -> None: ...
    def kill(self, *_: object) -> None: ...
    def answer(self, *_: object) -> None: ...
    def refence(self, *_: object) -> None: ...


def _ignore(_: Envelope) -> None:
    """Frames for packages and resources, of which a light worker has none."""


class OfLane(NamedTuple):
    """The lane of a tenant that a light worker is for."""

    tenant: str
    token: str
    lane: int


async def light_worker(
    port: int, number: int, slots: int, clock: SystemClock, place: OfLane | None = None
) -> None:
    """One session, until it is cancelled."""
    tenant, token, lane = place or OfLane("default", TOKEN, 0)
    features = () if place is None else control.FEATURES
    session = WorkerSession(
        WorkerIdentity(tenant, f"light-{number}", 1, "light", "0", "here", lane),
        Credential("token", token),
        ids=Ulids(clock),
        rng=Random(number),
    )
    core = core_manifest()
    offer = RegisterOffer(
        control.Capabilities(control.Concurrency(slots), ("python",), features),
        packages=(control.RegisteredPackage(core.name, core.version, "installed"),),
        slots=None if place is None else slots,
    )
    agent = Agent(session, HeldAttempts(slots), lambda: offer)
    runner = AgentRunner(agent, Schedulers([f"ws://127.0.0.1:{port}/ws/worker"]), connect, clock)
    await runner.run(_InstantHosts(runner), _ignore)


async def all_online(client: BenchClient, count: int) -> None:
    """Wait until the scheduler has so many workers."""
    online = 0
    while online < count:
        await asyncio.sleep(ASKED_EVERY_S)
        online, cursor = 0, ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = await client.request("GET", f"/api/v1/workers?limit=200{more}")
            online += sum(one["status"] == "online" for one in page["items"])
            cursor = page["nextCursor"]


async def _run(port: int, count: int, slots: int, place: OfLane | None) -> None:
    clock = SystemClock()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(light_worker(port, number, slots, clock, place))


if __name__ == "__main__":
    port, count, slots = map(int, sys.argv[1:4])
    of_lane = OfLane(sys.argv[4], sys.argv[5], int(sys.argv[6])) if sys.argv[4:] else None
    uvloop.run(_run(port, count, slots, of_lane))
