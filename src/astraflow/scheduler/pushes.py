"""Pushes: the attempts that are on their way to HTTP pools.

1. A push is made after the lease of its attempt is committed. It is volatile: after a restart the engine has those
   pushed again that nobody has started, under the same `dispatchId`.
2. It is retried until somebody has started the attempt, or the attempt is over. Where it is certain that nothing of it
   runs (it was refused, or nobody could be reached), it is given back at once; else its lease has to run out.
3. A request that is open when its attempt ends is closed a little later: a worker that runs inside of it must have its
   answer first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.contract.tasks import EnvelopePackage, TaskEnvelope
from astraflow.core.contract.words import DispatcherKind
from astraflow.core.engine.commands import RefusePush
from astraflow.core.engine.effects import SendDispatch
from astraflow.core.fleet.pools import PoolRecord
from astraflow.core.ids import TaskId
from astraflow.core.protocol.wire import MachineAmounts
from astraflow.core.runs.callbacks import attempt_id, dispatch_id
from astraflow.core.timestamps import iso
from astraflow.scheduler.dispatchers.dispatcher import Dispatcher, Push, PushFailed
from astraflow.scheduler.sealing import Sealer
from astraflow.scheduler.task_tokens import PoolTokens

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current

_log: Final = logging.getLogger(__name__)

BACKOFF_MIN_S: Final = 0.2
BACKOFF_MAX_S: Final = 5.0
UNREACHED_TRIES: Final = 6
"""So often a pool is tried that nobody could be reached at; then the task may go elsewhere."""
LINGER_S: Final = 10.0
_Attempt = tuple[TaskId, int]


class TaskPushes:
    """Use from one loop."""

    def __init__(
        self,
        current: Current,
        dispatchers: Mapping[DispatcherKind, Dispatcher],
        tokens: PoolTokens,
        sealer: Sealer,
        clock: Clock,
        rng: Random,
        base_url: str,
    ) -> None:
        self._current = current
        self._dispatchers = dispatchers
        self._tokens = tokens
        self._sealer = sealer
        self._clock = clock
        self._rng = rng
        self._base_url = base_url
        self._open: dict[_Attempt, asyncio.Task[None]] = {}
        self._started: set[_Attempt] = set()

    def __len__(self) -> int:
        return len(self._open)

    def push(self, effect: SendDispatch) -> None:
        """Begin to push an attempt. One that is on its way already, from before a restart of the engine, goes on."""
        key = (effect.dispatch.task_id, effect.dispatch.attempt)
        if key in self._open:
            return
        task = asyncio.get_running_loop().create_task(self._run(key, effect))
        self._open[key] = task
        task.add_done_callback(lambda _: self._forget(key))

    def note_started(self, task_id: TaskId, attempt: int) -> None:
        """Somebody runs it: no further try is needed."""
        if (task_id, attempt) in self._open:
            self._started.add((task_id, attempt))

    def end(self, task_id: TaskId, attempt: int) -> None:
        """The attempt is over."""
        task = self._open.get((task_id, attempt))
        if task is not None:
            self._started.add((task_id, attempt))
            asyncio.get_running_loop().call_later(LINGER_S, task.cancel)

    async def close(self) -> None:
        """End all that are open; they are pushed again by whoever serves next."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for dispatcher in self._dispatchers.values():
            await dispatcher.close()

    def _forget(self, key: _Attempt) -> None:
        self._open.pop(key, None)
        self._started.discard(key)

    async def _run(self, key: _Attempt, effect: SendDispatch) -> None:
        pool = effect.channel
        assert isinstance(pool, PoolRecord)
        dispatcher = self._dispatchers[pool.dispatcher]
        tries = unreached = 0
        may_run = False
        while key not in self._started:
            try:
                await dispatcher.push(self._make(effect, pool))
            except PushFailed as failed:
                may_run = may_run or failed.may_run
                unreached += not failed.may_run
                _log_failure(key, pool, failed)
                if failed.is_final or (not may_run and unreached >= UNREACHED_TRIES):
                    self._give_back(key, pool, failed)
                    return
                await asyncio.sleep(max(self._backoff_s(tries), failed.retry_after_s))
                tries += 1
            else:
                return

    def _backoff_s(self, tries: int) -> float:
        ceiling = min(BACKOFF_MAX_S, BACKOFF_MIN_S * 2.0 ** min(tries, 16))
        return ceiling * (0.5 + 0.5 * self._rng.random())

    def _give_back(self, key: _Attempt, pool: PoolRecord, failed: PushFailed) -> None:
        command = RefusePush(
            tenant=pool.tenant,
            task_id=key[0],
            attempt=key[1],
            code=failed.code.code,
            message=failed.message,
        )
        # Unavailable: the engine is being restored, and pushes it again.
        with suppress(errors.Unavailable):
            self._current.execute(command)

    def _make(self, effect: SendDispatch, pool: PoolRecord) -> Push:
        """With a token of now: a push may wait long for its turn."""
        envelope = self._envelope(effect, pool)
        try:
            secret = self._sealer.open(pool.sealed_secret, pool.tenant, pool.name)
        except errors.Refused as refused:
            raise PushFailed(refused.message, is_final=True) from refused
        return Push(
            pool,
            envelope.dispatch_id,
            msgspec.json.encode(envelope),
            secret,
            envelope.traceparent,
        )

    def _envelope(self, effect: SendDispatch, pool: PoolRecord) -> TaskEnvelope:
        dispatch = effect.dispatch
        token, expires_at = self._tokens.mint(pool, dispatch, self._clock.wall_ms() / 1000)
        timeout_ms = dispatch.constraints.timeout_ms
        deadline = None
        if timeout_ms is not None:
            deadline = iso(effect.enqueued_at + int(pool.start_timeout_s * 1000) + timeout_ms)
        return TaskEnvelope(
            task_id=dispatch.task_id,
            run_id=dispatch.run_id,
            asset_id=dispatch.node_id,
            task_key=f"{effect.workflow_id}/{dispatch.node_id}",
            tenant_id=pool.tenant,
            workspace_id=pool.workspace,
            attempt=dispatch.attempt,
            attempt_id=attempt_id(dispatch.task_id, dispatch.attempt),
            dispatch_id=dispatch_id(dispatch.run_id, dispatch.task_id, dispatch.attempt),
            failures=dispatch.failures,
            node_type=dispatch.node_type,
            package=EnvelopePackage(name=dispatch.package.name, version=dispatch.package.version),
            parameters=dispatch.parameters,
            resources=_resources(dispatch.constraints.resources),
            enqueued_at=iso(effect.enqueued_at),
            deadline=deadline,
            timeout_ms=timeout_ms,
            callback_base_url=pool.callback_url or self._base_url,
            task_token=token,
            token_expires_at=iso(expires_at * 1000),
            heartbeat_interval_ms=int(pool.heartbeat_interval_s * 1000),
            heartbeat_timeout_ms=int(pool.heartbeat_timeout_s * 1000),
            cancel_grace_period_ms=int(pool.cancel_grace_s * 1000),
            traceparent=dispatch.traceparent,
            secrets=dispatch.secrets,
        )


def _resources(asked: MachineAmounts | None) -> dict[str, float]:
    """What the node asks for, as an envelope says it; what it does not ask for is left out."""
    if asked is None:
        return {}
    named = {"cpu": asked.cpu, "memoryBytes": asked.memory_bytes, "gpu": asked.gpu}
    return {name: amount for name, amount in named.items() if amount}


def _log_failure(key: _Attempt, pool: PoolRecord, failed: PushFailed) -> None:
    _log.info(
        "a push failed: %s",
        failed.message,
        extra={"tenant": pool.tenant, "corr": key[0], "code": failed.code.code},
    )
