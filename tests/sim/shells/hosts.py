"""Hosts that run nothing: attempts that end well, fail, hang, crash, talk, call, or do not listen, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from astraflow.core.ids import TaskId
from astraflow.core.protocol import business
from tests.sim.edges import edge, edge_json, edge_time

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from astraflow.worker.agent_runner import AgentRunner
    from tests.sim.shells.processes import WorkerProcess
    from tests.sim.shells.world import LoopWorld

__all__ = ["FakeHosts"]

_KILL_S = 0.02
_NEVER_ENDING = ("sim.hang", "sim.endless", "sim.stubborn")


class _Host:
    """One attempt, as the operating system sees it."""

    def __init__(self, dispatch: business.Dispatch) -> None:
        self.dispatch = dispatch
        self.fence_at = 0.0
        self.is_alive = True
        self.is_stopping = False
        self.timers: list[asyncio.TimerHandle] = []
        self.fence: asyncio.TimerHandle | None = None


class FakeHosts:
    """The hosts of one boot of a worker; they die with it."""

    def __init__(self, world: LoopWorld, worker: WorkerProcess, link: AgentRunner) -> None:
        self.world = world
        self.worker = worker
        self.link: AgentRunner = link
        self.running: dict[tuple[str, int], _Host] = {}

    # -- what the link asks -----------------------------------------------------------------

    def start(self, dispatch: business.Dispatch, fence_at: float) -> None:
        host = _Host(dispatch)
        self.running[dispatch.task_id, dispatch.attempt] = host
        self.worker.site.checkers.attempt_started(self.worker, dispatch)
        self._set_fence(host, fence_at)
        rng, kind = self.world.rng, dispatch.node_type
        if kind in _NEVER_ENDING:
            return
        seconds = rng.expovariate(1 / 0.3)
        if kind == "sim.slow":
            seconds = 1.0 + rng.random() * 4
        elif kind == "sim.long":
            seconds = 8.0 + rng.random() * 10
        if kind == "sim.wrap":
            self._after(host, seconds, self._call_next)
            return
        if kind == "sim.chatty":
            for index in range(rng.randint(1, 6)):
                self._after(host, seconds * index / 6, self._chat, index)
        if kind == "sim.crash" and rng.random() < 0.5:
            self._after(host, seconds, self._crash)
            return
        fails = kind == "sim.fail" or (kind == "sim.flaky" and rng.random() < 0.5)
        self._after(host, seconds, self._finish, "FAILED" if fails else "SUCCEEDED")

    def cancel(self, task_id: str, attempt: int, grace_s: float, reason: str) -> None:
        host = self.running.get((task_id, attempt))
        if host is None or host.is_stopping:
            return
        host.is_stopping = True
        seconds = self.world.rng.random() * grace_s
        if host.dispatch.node_type == "sim.stubborn":
            seconds = grace_s + _KILL_S  # it is killed when its grace is over
        self._after(host, seconds, self._stopped)

    def kill(self, task_id: str, attempt: int) -> None:
        self.world.after(self.world.rng.random() * _KILL_S, self._killed, task_id, attempt)

    def answer(self, response: business.NextResponse) -> None:
        host = self.running.get((response.task_id, response.attempt))
        if host is not None:
            self.world.sometimes("call answered")
            self._after(host, 0.05, self._finish, "SUCCEEDED")

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        for name, fence_at in fences.items():
            host = self.running.get(name)
            if host is not None:
                self._set_fence(host, fence_at)

    # -- what the operating system does -----------------------------------------------------

    def die(self) -> None:
        """The worker is dead, and its hosts with it."""
        for host in list(self.running.values()):
            self._end(host)

    def _set_fence(self, host: _Host, fence_at: float) -> None:
        """The timer of the kernel: it ends the attempt even if the worker does not."""
        if host.fence is not None:
            host.fence.cancel()
        delay = max(0.0, fence_at - self.world.now) + 0.01
        host.fence = self.world.loop.call_later(delay, self._end, host)

    def _after(self, host: _Host, seconds: float, act: Callable[..., None], *args: object) -> None:
        host.timers.append(self.world.loop.call_later(seconds, act, host, *args))

    def _chat(self, host: _Host, index: int) -> None:
        chunk = business.FeedbackChunk(
            "log", index, f"line {index} \x01\U0010ffff", metadata=edge_json(index)
        )
        said = host.dispatch
        self.link.feedback(
            business.Feedback(
                said.run_id, said.task_id, said.attempt, progress=index / 6, chunks=(chunk,)
            )
        )

    def _call_next(self, host: _Host) -> None:
        said = host.dispatch
        assert said.chain_index is not None
        self.link.call(
            business.NextRequest(
                said.run_id, said.task_id, said.attempt, self.world.new_id(), said.chain_index
            )
        )

    def _finish(self, host: _Host, status: str) -> None:
        said = host.dispatch
        if status == "SUCCEEDED":
            about = (said.task_id, said.attempt)
            value = msgspec.json.encode({"v": [*about], "edge": edge(*about)})
            artifact = business.ResultArtifact(
                f"{said.task_id}/{said.attempt}",
                self.worker.worker_id,
                "thing",
                2**53,
                edge_time(*about),
                metadata=edge_json(*about),
            )
            self._report(host, status, value, None, (artifact,))
        else:
            error = business.AttemptError("E.RUNNER.FAILURE", "USER_CODE", "it failed")
            self._report(host, status, b"{}", error)

    def _crash(self, host: _Host) -> None:
        error = business.AttemptError("E.RUNNER.CRASHED", "INFRASTRUCTURE", "signal 11")
        self._report(host, "FAILED", b"{}", error)

    def _stopped(self, host: _Host) -> None:
        self._report(host, "CANCELLED", b"{}", None)

    def _report(
        self,
        host: _Host,
        status: str,
        value: bytes,
        error: business.AttemptError | None,
        artifacts: tuple[business.ResultArtifact, ...] = (),
    ) -> None:
        said = host.dispatch
        self._end(host)
        result = business.Result(
            said.run_id,
            said.task_id,
            said.attempt,
            status,  # type: ignore[arg-type]
            msgspec.Raw(value),
            artifacts,
            duration_ms=2**53,
            metrics={"\x01": 1e308},
            error=error,
        )
        self.worker.site.checkers.attempt_finished(self.worker, result)
        self.link.finished(result)

    def _killed(self, task_id: str, attempt: int) -> None:
        host = self.running.get((task_id, attempt))
        if host is not None:
            self._end(host)
        self.link.gone(TaskId(task_id), attempt)

    def _end(self, host: _Host) -> None:
        if not host.is_alive:
            return
        host.is_alive = False
        for timer in host.timers:
            timer.cancel()
        if host.fence is not None:
            host.fence.cancel()
        said = host.dispatch
        del self.running[said.task_id, said.attempt]
        self.worker.site.checkers.attempt_ended(said.task_id, said.attempt)
