"""What runs at once on a worker with several lanes, and whose it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from astraflow.core.agent.held_attempts import HeldAttempt
from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from astraflow.worker.lane_hosts import LaneHosts, SharedHosts
from tests.unit.core.agent.desk import dispatch_of


class Pool:
    """Hosts that do nothing but remember."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int, float]] = []
        self.said: list[tuple[str, str]] = []
        self.fences: dict[tuple[str, int], float] = {}

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        self.started.append((dispatch.task_id, lane, fence_at))

    def cancel(self, task_id: TaskId, attempt: int, grace_s: float, reason: str) -> None:
        self.said.append(("cancel", task_id))

    def kill(self, task_id: TaskId, attempt: int) -> None:
        self.said.append(("kill", task_id))

    def answer(self, response: business.NextResponse) -> None:
        self.said.append(("answer", response.task_id))

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        self.fences.update(fences)


class Lane:
    """The events of one lane, and its hosts."""

    def __init__(self, shared: SharedHosts, number: int) -> None:
        self.hosts = LaneHosts(shared, number, self)
        self.ended: list[tuple[str, str]] = []

    def finished(self, result: business.Result) -> None:
        self.ended.append((result.task_id, result.status))

    def gone(self, task_id: TaskId, attempt: int) -> None:
        self.ended.append((task_id, "gone"))

    def feedback(self, feedback: business.Feedback) -> None:
        raise AssertionError("nothing is said here")

    def call(self, request: business.NextRequest) -> None:
        raise AssertionError("nothing is called here")


class Scene:
    """Two lanes on one pool."""

    def __init__(self, max_parallel: int = 1, *held: HeldAttempt, is_limited: bool = True) -> None:
        self.pool = Pool()
        self.shared = SharedHosts(self.pool, max_parallel)
        if is_limited:
            self.shared.limit(held)
        self.lanes = [Lane(self.shared, number) for number in range(2)]

    def start(self, lane: int, number: int) -> None:
        self.lanes[lane].hosts.start(dispatch_of(number), 10.0)

    def started(self) -> list[str]:
        return [task for task, _, _ in self.pool.started]

    async def end(self, number: int) -> None:
        self.shared.ended((f"run1.{number}", 1))
        await asyncio.sleep(0)  # the turn in which what waits is started


async def test_with_one_lane_everything_starts_at_once() -> None:
    scene = Scene(is_limited=False)
    for number in (1, 2, 3):
        scene.start(0, number)
    assert scene.started() == ["run1.1", "run1.2", "run1.3"]
    assert scene.shared.waiting == 0


async def test_what_is_too_many_waits_its_turn() -> None:
    scene = Scene(1)
    for lane, number in ((0, 1), (1, 2), (0, 3)):
        scene.start(lane, number)
    assert scene.pool.started == [("run1.1", 0, 10.0)]
    assert scene.shared.waiting == 2
    await scene.end(1)
    await scene.end(2)
    assert scene.pool.started[1:] == [("run1.2", 1, 10.0), ("run1.3", 0, 10.0)]


async def test_what_ran_before_there_were_lanes_counts() -> None:
    held = HeldAttempt(dispatch_of(1), 10.0, 0.0)
    scene = Scene(1, held)
    scene.shared.limit(())
    scene.start(1, 2)
    assert scene.started() == []
    await scene.end(1)
    assert scene.started() == ["run1.2"]


async def test_an_attempt_that_waits_for_a_call_lends_its_slot() -> None:
    scene = Scene(1)
    scene.start(0, 1)
    scene.start(1, 2)
    call = business.NextRequest("run1", "run1.1", 1, "r1", 0)  # type: ignore[arg-type]
    scene.shared.called(call)
    await asyncio.sleep(0)
    assert scene.started() == ["run1.1", "run1.2"]
    scene.lanes[0].hosts.answer(business.NextResponse("run1", "run1.1", 1, "r1"))  # type: ignore[arg-type]
    scene.start(0, 3)
    await scene.end(2)
    assert scene.started() == ["run1.1", "run1.2"], "it has its slot back"
    await scene.end(1)
    assert scene.started()[2:] == ["run1.3"]


async def test_what_waits_is_cancelled_and_killed_without_a_host() -> None:
    scene = Scene(1)
    scene.start(0, 1)
    scene.start(1, 2)
    scene.start(1, 3)
    other = scene.lanes[1]
    other.hosts.cancel(TaskId("run1.2"), 1, 1.0, "cancel")
    other.hosts.kill(TaskId("run1.3"), 1)
    assert other.ended == [], "nobody is told from inside a call"
    await asyncio.sleep(0)
    assert other.ended == [("run1.2", "CANCELLED"), ("run1.3", "gone")]
    assert scene.pool.said == []
    await scene.end(1)
    assert scene.started() == ["run1.1"]


async def test_what_runs_is_cancelled_and_killed_in_its_host() -> None:
    scene = Scene(2)
    scene.start(1, 1)
    scene.lanes[1].hosts.cancel(TaskId("run1.1"), 1, 1.0, "cancel")
    scene.lanes[1].hosts.kill(TaskId("run1.1"), 1)
    assert scene.pool.said == [("cancel", "run1.1"), ("kill", "run1.1")]


async def test_the_fence_of_what_waits_moves() -> None:
    scene = Scene(1)
    scene.start(0, 1)
    scene.start(1, 2)
    scene.lanes[1].hosts.refence({("run1.2", 1): 30.0})
    await scene.end(1)
    assert scene.pool.started[1] == ("run1.2", 1, 30.0)


async def test_an_attempt_of_another_lane_is_not_touched() -> None:
    scene = Scene(2)
    scene.start(0, 1)
    scene.start(1, 1)
    other = scene.lanes[1]
    other.hosts.cancel(TaskId("run1.1"), 1, 1.0, "cancel")
    other.hosts.kill(TaskId("run1.1"), 1)
    await asyncio.sleep(0)
    assert other.ended == [("run1.1", "FAILED"), ("run1.1", "gone")]
    assert scene.pool.said == []
    assert scene.started() == ["run1.1"]
    assert scene.lanes[0].ended == []
