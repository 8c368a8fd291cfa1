"""Everything at once: whatever is done to them, attempts end exactly once and nothing is left."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from astraflow.core.ids import TaskId
from tests.worker.hosts.stage import staged

uvloop.new_event_loop().close()  # the first one leaves a pipe of the whole process open

ATTEMPTS = 150
KINDS = [
    ("core.noop", {}),
    ("core.noop", {}),
    ("core.sleep", {"seconds": 0.01}),
    ("core.sleep", {"seconds": 600}),
    ("core.fail", {}),
    ("core.stream", {"text": "a b c d", "delayMs": 1}),
    ("core.python", {"code": "import time\ndef main():\n    time.sleep(0.01); print('x')"}),
    ("nasty.waits", {}),
    ("nasty.waits_in_a_thread", {}),
    ("nasty.swallows_cancel", {}),
    ("nasty.exits", {"code": 1}),
    ("nasty.twice", {}),
]


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("seed", range(4))
def test_every_attempt_of_a_storm_ends_once_and_nothing_is_left(
    tmp_path: Path, seed: int, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    rng = random.Random(seed)
    pids: set[int] = set()

    async def scene() -> None:
        async with staged(
            tmp_path, max_hosts=4, min_grace_s=0.0, start_backoff_s=0.0, idle_timeout_s=0.3
        ) as stage:
            killed: set[tuple[str, int]] = set()
            for number in range(ATTEMPTS):
                task = f"t{number}"
                node_type, given = rng.choice(KINDS)
                attempt = 2 if rng.random() < 0.1 else 1
                fence_s = 0.5 if rng.random() < 0.05 else 600
                stage.start(node_type, given, task=task, attempt=attempt, fence_s=fence_s)
                await asyncio.sleep(0)
                if rng.random() < 0.1:
                    stage.pool.kill(TaskId(task), attempt)
                    killed.add((task, attempt))
                else:
                    # Those that would end by themselves may do so before they are asked.
                    asyncio.get_running_loop().call_later(
                        rng.random() * 0.5,
                        stage.pool.cancel,
                        TaskId(task),
                        attempt,
                        rng.random() * 0.2,
                        "x",
                    )
                pids.update(pid for one in stage.records() for pid in one.values() if pid)
            await stage.until(lambda: len(stage.results) + len(stage.goners) == ATTEMPTS)
            assert set(stage.goners) <= killed
            assert len(set(stage.goners)) == len(stage.goners)
            assert not {task for task, _ in stage.goners} & stage.results.keys()
            stats = stage.pool.stats()
            assert (stats.attempts, stats.waiting) == (0, 0)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scene())
    assert list(tmp_path.glob("hosts/*")) == []
    assert pids
