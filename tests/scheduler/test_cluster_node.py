"""The life of a node: how it ends when it cannot begin."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any, cast

import pytest

from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.errors import StoreError
from astraflow.scheduler.cluster_node import ClusterNode

if TYPE_CHECKING:
    from astraflow.scheduler.service import Scheduler
    from astraflow.store.cluster import StoredCluster


class NewerStore:
    """A store that a later release has written."""

    async def open(self) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        raise _newer()


class HomeScheduler:
    """It opens the same store, and is the first to fail."""

    is_serving = False

    async def run(self) -> None:
        raise _newer()


def _newer() -> StoreError:
    return StoreError(errors.STORE_NEWER, "a later release wrote the store")


async def test_a_node_and_its_scheduler_that_fail_of_the_same_say_it_once() -> None:
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    node = ClusterNode(
        "otter",
        "http://otter:8080",
        cast("StoredCluster", NewerStore()),
        SystemClock(),
        lambda *_: cast("Scheduler", HomeScheduler()),
    )

    async def joins() -> None: ...

    with pytest.raises(StoreError) as failed:
        await node.run(joins)
    assert failed.value.code is errors.STORE_NEWER
    await asyncio.sleep(0)
    del node, failed
    gc.collect()
    assert said == []
