"""Clients of a true scheduler, in the same loop: they submit, cancel, read and follow, and believe nothing unproved."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core import errors
from astraflow.core.contract.events import Event
from astraflow.core.contract.runs import Node
from astraflow.core.contract.words import TERMINAL
from astraflow.core.ids import RunId
from astraflow.core.runs.projections import view_node, view_run
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.transitions import replay
from astraflow.scheduler.runs import Submission
from tests.sim.shells.definitions import draw_definition, node_uid
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from astraflow.scheduler.service import Scheduler
    from tests.sim.shells.site import Site

    Answer = TypeVar("Answer")

__all__ = ["Client"]

PAUSE_S = 0.3
PATIENCE_S = 20.0
IMPATIENCE_S = 0.4
SLOW_S = 1.5
_PASSING = (errors.Unavailable, errors.StoreError, TimeoutError)


class Client:
    """Everybody who asks something of the schedulers of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.world = site.world
        self.last_seen: dict[str, int] = {}
        """The newest event that anybody was shown, by run."""

    async def run_one(self, number: int) -> None:
        """Ask for a run, and watch it to its end."""
        config = self.site.config
        definition, ends = draw_definition(self.world, config, number)
        await asyncio.sleep(self.world.rng.random() * config.fault_phase_s * 0.6)
        if config.packages:
            await self.site.published.wait()  # a node that names no version needs one
        run_id = await self._submit(number, definition)
        tenant = config.tenant_of(number)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(tenant, run_id), name=f"follower of {run_id}")
            group.create_task(self._read(tenant, run_id), name=f"reader of {run_id}")
            if not ends or (config.has("cancel") and self.world.chance(0.4)):
                group.create_task(self._cancel(tenant, run_id), name=f"canceller of {run_id}")

    # -- asking -----------------------------------------------------------------------------

    async def ask(self, ask: Callable[[Scheduler], Awaitable[Answer]]) -> Answer:
        """Ask until there is an answer: what fails for now is asked again, on whoever serves then."""
        is_impatient = self.site.config.has("impatient")
        while True:
            hurries = is_impatient and not self.site.disk.is_healed and self.world.chance(0.3)
            try:
                async with asyncio.timeout(IMPATIENCE_S if hurries else PATIENCE_S):
                    return await ask(self.site.front())
            except _PASSING:
                self.world.sometimes("asked again")
            await asyncio.sleep(PAUSE_S)

    async def _submit(self, number: int, definition: bytes) -> str:
        tenant = self.site.config.tenant_of(number)
        submission = Submission(
            tenant=tenant,
            definition=definition,
            idempotency_key=f"key-{number}",
            fingerprint=f"print-{number}",
        )
        told: str | None = None
        while True:
            accepted = await self.ask(lambda scheduler: scheduler.runs.submit(submission))
            if told is not None and accepted.run_id != told:
                raise Violation("I7", f"submission {number} made {told} and {accepted.run_id}")
            if not accepted.is_new:
                self.world.sometimes("submission deduplicated")
            told = accepted.run_id
            self.site.checkers.told_accepted(told, number)
            if self.world.chance(0.7):
                return told  # otherwise the answer is lost on its way, and it is asked again

    async def _cancel(self, tenant: str, run_id: str) -> None:
        await asyncio.sleep(self.world.rng.random() * 8)
        try:
            await self.ask(
                lambda scheduler: scheduler.runs.cancel(tenant, RunId(run_id), "somebody")
            )
        except errors.Conflict:
            self.world.sometimes("cancel met a finished run")
        else:
            self.site.checkers.told_cancelled(run_id)

    # -- reading ----------------------------------------------------------------------------

    async def _read(self, tenant: str, run_id: str) -> None:
        """Look now and then: what is shown is durable, whole, and never older than what was shown before."""
        while True:
            await asyncio.sleep(self.world.delay(2.0))
            before = self.last_seen.get(run_id, 0)
            shown = await self.ask(
                lambda scheduler: scheduler.reader.view_run(tenant, RunId(run_id))
            )
            folded = self._check_shown(run_id, before, shown.last_event)
            if _stored_run(shown) != _stored_run(view_run(folded)):
                raise Violation("I20", f"{run_id} is shown as its facts are not")
            await self._read_node(tenant, run_id)
            if folded.is_terminal:
                return

    async def _read_node(self, tenant: str, run_id: str) -> None:
        place = self.world.rng.randrange(self.site.config.tasks)
        shown, _ = await self.ask(
            lambda scheduler: scheduler.reader.view_node(tenant, RunId(run_id), node_uid(place))
        )
        facts = self.site.mirror.runs[run_id].facts
        run = self.site.mirror.runs[run_id]
        # A node does not say at which event it was shown: it must be as some committed prefix has it.
        for size in range(len(facts), 0, -1):
            folded = replay(run.plan, [one.fact for one in facts[:size]])
            if _stored(view_node(folded, place)) == _stored(shown):
                return
        raise Violation("I20", f"node {place} of {run_id} was never as it is shown: {shown}")

    def _check_shown(self, run_id: str, before: int, last: int) -> RunRecord:
        stored = self.site.mirror.runs[run_id]
        if last > stored.last_event:
            raise Violation("I20", f"{run_id}: event {last} was shown before it was durable")
        if last < before:
            raise Violation("I20", f"{run_id}: shown at {last} after it was shown at {before}")
        self.last_seen[run_id] = max(last, self.last_seen.get(run_id, 0))
        return replay(stored.plan, [one.fact for one in stored.facts if one.first <= last])

    # -- following --------------------------------------------------------------------------

    async def _follow(self, tenant: str, run_id: str) -> None:
        """Every event once and in order, however often the stream breaks."""
        last, is_over = 0, False
        while not is_over:
            try:
                stream = self.site.front().reader.follow_run(tenant, RunId(run_id), last)
                async with aclosing(stream) as batches:
                    async for events in batches:
                        last, is_over = self._take(run_id, last, events)
                        if is_over or self.world.chance(0.1):
                            break
                        if self.world.chance(0.1):
                            await asyncio.sleep(self.world.rng.random() * SLOW_S)
            except _PASSING:
                await asyncio.sleep(PAUSE_S)
            self.world.sometimes("follower resumed")
        stored = self.site.mirror.runs[run_id]
        if last != stored.last_event:
            raise Violation("I20", f"{run_id} ended at {stored.last_event}, its follower at {last}")

    def _take(self, run_id: str, last: int, events: list[Event]) -> tuple[int, bool]:
        is_over = False
        for event in events:
            if event.id != last + 1:
                raise Violation("I20", f"{run_id}: event {event.id} follows {last}")
            last += 1
            is_end = event.type == "run.status" and event.body.status in TERMINAL
            is_over = is_over or is_end
        if last > self.site.mirror.runs[run_id].last_event:
            raise Violation("I20", f"{run_id}: event {last} was told before it was durable")
        self.last_seen[run_id] = max(last, self.last_seen.get(run_id, 0))
        return last, is_over

    async def follow_tenant(self, tenant: str) -> None:
        """The stream of a tenant, from its beginning, for as long as the world lasts."""
        last = 0
        while True:
            try:
                stream = self.site.front().events.follow(tenant, {0: last})
                async with aclosing(stream) as batches:
                    async for events in batches:
                        for event in events:
                            if event.number != last + 1:
                                raise Violation(
                                    "I20", f"{tenant}: event {event.number} follows {last}"
                                )
                            last = event.number
                        if last > self.site.mirror.heads.get(tenant, 0):
                            raise Violation("I20", f"{tenant}: {last} was told before its commit")
                        if self.world.chance(0.05):
                            break
            except _PASSING:
                pass
            await asyncio.sleep(PAUSE_S)


def _stored_run(view: Any) -> Any:
    return msgspec.structs.replace(view, nodes=[_stored(node) for node in view.nodes])


def _stored(node: Node) -> Node:
    """Without what it shows of the moment alone: whether its worker has acknowledged it, what it waits for."""
    return msgspec.structs.replace(
        node, pending_ack=False, ack_deadline=None, waiting_for=None, retry_at=None
    )
