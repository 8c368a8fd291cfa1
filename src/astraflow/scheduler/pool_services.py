"""What HTTP pools need, composed: dispatchers, task tokens, pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from astraflow.clock import Clock
from astraflow.core.contract.words import DispatcherKind
from astraflow.core.security.keys import KeyRing
from astraflow.scheduler.dispatchers.cloud_tasks import CloudTasksDispatcher
from astraflow.scheduler.dispatchers.dispatcher import Dispatcher
from astraflow.scheduler.dispatchers.http import HttpDispatcher
from astraflow.scheduler.dispatchers.nats import NatsDispatcher
from astraflow.scheduler.pools import Pools
from astraflow.scheduler.pushes import TaskPushes
from astraflow.scheduler.sealing import Sealer
from astraflow.scheduler.task_tokens import PoolTokens

if TYPE_CHECKING:
    from astraflow.scheduler.current import Current


class PoolServices:
    """One of each."""

    def __init__(self, pools: Pools, pushes: TaskPushes, tokens: PoolTokens) -> None:
        self.pools = pools
        self.pushes = pushes
        self.tokens = tokens


def open_pool_services(
    current: Current,
    *,
    ring: KeyRing,
    secrets: Sequence[bytes],
    clock: Clock,
    rng: Random,
    base_url: str,
    dispatchers: Mapping[DispatcherKind, Dispatcher] | None = None,
) -> PoolServices:
    """`base_url`: where workers report to, unless their pool says otherwise; empty: it is not known."""
    if dispatchers is None:
        dispatchers = {
            "http": HttpDispatcher(),
            "cloud_tasks": CloudTasksDispatcher(clock),
            "nats": NatsDispatcher(),
        }
    tokens = PoolTokens(ring)
    sealer = Sealer(secrets)
    pushes = TaskPushes(current, dispatchers, tokens, sealer, clock, rng, base_url)
    return PoolServices(Pools(current, dispatchers, sealer, clock, base_url), pushes, tokens)
