"""The link of a worker breaks while a middleware waits for its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.proxy import DOWN, Proxy, Weather
from tests.definitions import node, workflow
from tests.e2e.chains import by_label, host, ran
from tests.processes.system import System, running
from tests.processes.waiting import until_seen

WITHIN_S = 60.0


def _cut_while_the_host_runs(proxy: Proxy, go: Path) -> None:
    for _ in range(3):
        proxy.cut()
    go.touch()


def _lose_the_answer(proxy: Proxy, go: Path) -> None:
    """The host ends, and what the scheduler says about it never arrives."""
    proxy.set(DOWN, Weather(is_silent=True))
    go.touch()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("break_link", [_cut_while_the_host_runs, _lose_the_answer])
async def test_a_link_that_breaks_while_a_call_is_open_loses_and_doubles_nothing(
    tmp_path: Path, break_link: Callable[[Proxy, Path], None]
) -> None:
    go, folder = tmp_path / "go", tmp_path / "truth"
    folder.mkdir()
    # The leases are long, so that no attempt is lost because its link was.
    with running(tmp_path, heartbeat_ms=5000) as system:
        proxy = Proxy(system.port)
        await proxy.open()
        system.new_worker("far", url=f"ws://127.0.0.1:{proxy.port}/ws/worker").start()
        await until_seen(lambda: len(system.rest.online()) == 1, WITHIN_S)
        again = node("core.loop", "again", parameters={"times": 2})
        wrapped = host(folder, again, value=1, until=str(go))
        run_id = system.rest.submit(workflow(wrapped, again))
        await until_seen(lambda: len(ran(folder)) == 1, WITHIN_S)
        break_link(proxy, go)
        await until_seen(lambda: _has_ended_a_call(system, run_id, wrapped["id"]), WITHIN_S)
        proxy.cut()
        proxy.heal()
        await until_seen(lambda: system.rest.run_status(run_id) == "succeeded", WITHIN_S)
        nodes = by_label(await asyncio.to_thread(system.rest.get, f"runs/{run_id}"))
        assert ran(folder) == ["1", "1"], "one run of the host for each call"
        assert (nodes["host"]["calls"], nodes["again"]["attempt"]) == (2, 1)
        await asyncio.to_thread(system.workers["far"].stop)
        await proxy.close()


def _has_ended_a_call(system: System, run_id: str, node_id: str) -> bool:
    attempts = system.rest.get(f"runs/{run_id}/nodes/{node_id}")["attempts"]
    return any(one["status"] == "succeeded" for one in attempts)
