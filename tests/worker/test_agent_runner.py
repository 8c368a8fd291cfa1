"""The shell around an agent, before it runs."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from astraflow.clock import SystemClock
from astraflow.core.agent.agent import Agent, RegisterOffer
from astraflow.core.agent.held_attempts import HeldAttempts
from astraflow.core.protocol import control
from astraflow.core.protocol.worker_events import Credential, WorkerIdentity
from astraflow.core.protocol.worker_session import WorkerSession
from astraflow.worker.addresses import Schedulers
from astraflow.worker.agent_runner import AgentRunner
from tests.unit.core.protocol.pair import CountedIds


async def test_a_worker_that_is_drained_before_it_runs_ends_when_it_runs() -> None:
    async def connect(url: str, listener: object) -> Any:
        raise ConnectionError(f"cannot connect to {url}")

    session = WorkerSession(
        WorkerIdentity("acme", "w1", 1, "one", "0.1.0", "box"),
        Credential("token", "a token"),
        ids=CountedIds("2"),
        rng=Random(2),
    )
    offer = RegisterOffer(control.Capabilities(control.Concurrency(1)))
    agent = Agent(session, HeldAttempts(1), lambda: offer)
    runner = AgentRunner(agent, Schedulers(["ws://127.0.0.1:1"]), connect, SystemClock())
    runner.drain(0.0)
    await asyncio.sleep(0)  # the turn in which the drain is looked at
    hosts: Any = object()
    async with asyncio.timeout(30):
        ended = await runner.run(hosts, lambda envelope: None)
    assert (ended.code, ended.reason) == (0, "drained")
