"""Worlds whose nodes ask for a part of a worker's machine. Every worker has enough for any one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core.ids import is_pool
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import MachineAmounts
from astraflow.core.workflow.amounts import NOTHING, Amounts
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from astraflow.core.workflow.plan import PlanNode
    from tests.sim.world import World

__all__ = ["MACHINE", "RequestChecker", "ask_some"]

MACHINE = MachineAmounts(4.0, 1_000, 1)
_HAS = Amounts.of(MACHINE.cpu, MACHINE.memory_bytes, MACHINE.gpu)


def ask_some(world: World, nodes: list[PlanNode]) -> None:
    """Most nodes ask for something, some for a whole machine."""
    rng = world.rng
    for index, node in enumerate(nodes):
        if node.host is not None or rng.random() < 0.2:
            continue
        asked = Amounts.of(
            rng.choice((0.0, 0.1, 1.0, 2.0, 4.0)),
            rng.choice((0, 0, 300, 700)),
            rng.choice((0, 0, 1)),
        )
        nodes[index] = msgspec.structs.replace(node, resources=asked or None)


class RequestChecker:
    """I38: what the attempts that really run on a worker have asked for is never more than its machine has. An attempt
    whose stop a silent worker has not confirmed in time counts no more: its task has ended (PROTOCOL §5.7)."""

    def __init__(self, world: World, is_given_up: Callable[[str, int], bool]) -> None:
        """`is_given_up`: whether an attempt has ended without a word of its worker, by what is stored."""
        self._world = world
        self._is_given_up = is_given_up
        self._running: dict[tuple[str, str], dict[tuple[str, int], Amounts]] = {}

    def on_start(self, worker: tuple[str, str], dispatch: business.Dispatch) -> None:
        asked = dispatch.constraints.resources
        if asked is None or is_pool(worker[1]):
            return  # each attempt of a pool has a machine of its own
        running = self._running.setdefault(worker, {})
        amounts = Amounts.of(asked.cpu, asked.memory_bytes, asked.gpu)
        running[dispatch.task_id, dispatch.attempt] = amounts
        counted = (one for key, one in running.items() if not self._is_given_up(*key))
        total = sum(counted, NOTHING)
        if not total.fits_in(_HAS):
            raise Violation("I38", f"worker {worker[1]} runs {running}: more than it has")
        self._world.sometimes("requests side by side" if len(running) > 1 else "a request")

    def on_end(self, task_id: str, attempt: int) -> None:
        for running in self._running.values():
            running.pop((task_id, attempt), None)
