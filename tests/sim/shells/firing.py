"""Triggers of a world of shells: schedules, ends of other runs, deliveries; and what must hold of what they start.

The schedules are `*/n` seconds, so that this module knows their slots without the product's calendar. Each run says in
its inputs which slot it is for: that is what counts, not the key that it was submitted with.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from astraflow.core import errors
from astraflow.core.runs.facts import RunAccepted, RunFinished
from astraflow.core.timestamps import iso
from astraflow.core.triggers.decisions import LATE_MS
from astraflow.core.triggers.history import FireEntry
from astraflow.core.triggers.record import TriggerRecord
from astraflow.scheduler.webhooks import Delivery
from tests.sim.config import TENANTS
from tests.sim.world import Violation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from astraflow.core.ids import RunId
    from astraflow.core.triggers.record import TriggerKey
    from astraflow.scheduler.service import Scheduler
    from astraflow.store.trigger_changes import TriggerChanges
    from tests.sim.mirror import Written
    from tests.sim.shells.clients import Client
    from tests.sim.shells.site import Site

__all__ = ["FiringChecker", "FiringWorkload"]

FIRST_UID = 3_000_000
WHO = "ann"
EVERY_S = 5
PAUSE_S = 1.0
HOOK = "hook"
ENDS = "ends"
_record = msgspec.json.Decoder(TriggerRecord)
_entry = msgspec.json.Decoder(FireEntry)
_POLICIES = ("all", "last", "none")
_OVERLAPS = ("allow", "skip", "queue")
Slot = tuple[str, str]
"""A workflow, and what one of its runs was started for."""


@dataclass
class _Owed:
    """What was taken, and by whom."""

    epoch: int
    is_caught_up: bool


@dataclass
class FiringChecker:
    """Told of each transaction that changes triggers or runs, in order."""

    site: Site
    records: dict[TriggerKey, TriggerRecord] = field(default_factory=dict)
    owed: dict[Slot, _Owed] = field(default_factory=dict)
    started: dict[Slot, str] = field(default_factory=dict)
    ended: dict[Slot, None] = field(default_factory=dict)
    """Ends of runs that something waits for."""
    active: dict[str, dict[str, None]] = field(default_factory=dict)
    """By workflow: the runs of its schedule that have not ended."""

    # -- triggers ---------------------------------------------------------------------------

    def on_triggers(self, epoch: int, changes: TriggerChanges) -> None:
        entries: dict[TriggerKey, list[FireEntry]] = {}
        for row in changes.fires:
            key = (row.tenant, row.workflow_id, row.name)
            entries.setdefault(key, []).append(_entry.decode(row.body))
        for key in changes.gone:
            self.records.pop(key, None)
        for stored in changes.triggers:
            record = _record.decode(stored.body)
            self._on_record(epoch, record, entries.get(record.key, []))

    def _on_record(self, epoch: int, record: TriggerRecord, entries: list[FireEntry]) -> None:
        before = self.records.get(record.key)
        self.records[record.key] = record
        for entry in entries:
            if entry.outcome == "refused":
                self._on_refused(record, entry)
            if entry.outcome == "pending" and entry.cause != "manual":
                is_late = entry.cause == "catch_up"
                self.owed[record.workflow_id, _what(entry)] = _Owed(epoch, is_late)
        is_steady = before is not None and before.state == record.state == "enabled"
        if before is None or not is_steady or record.spec.__struct_config__.tag != "cron":
            return
        if record.since < before.since:
            raise Violation("I42", f"{record.name}: times come again that were dealt with")
        self._check_slots(record, before.since, [one for one in entries if _is_slot(one)])

    def _on_refused(self, record: TriggerRecord, entry: FireEntry) -> None:
        """Who has sent a delivery is told when it cannot be accepted now, and sends it again. Nobody else is."""
        if entry.cause not in ("webhook", "manual"):
            raise Violation("I43", f"{entry.slot} of {record.name} is refused: {entry.reason}")
        self.owed.pop((record.workflow_id, _what(entry)), None)

    def _check_slots(self, record: TriggerRecord, since: int, entries: list[FireEntry]) -> None:
        """I43: each time that has passed was taken, or is skipped as the policies have it."""
        spec: Any = record.spec
        taken = {one.scheduled_at for one in entries if one.outcome != "skipped"}
        missed = [one for one in entries if one.reason is not None and "missed" in one.reason]
        overlapped = {one.scheduled_at: one.at for one in entries if one.outcome == "skipped"}
        step = EVERY_S * 1000
        slots = range((since // step + 1) * step, record.since + 1, step)
        newest = max((one.scheduled_at for one in missed), default=0)
        for slot in slots:
            if slot in taken or (slot in overlapped and slot > newest and spec.overlap != "allow"):
                continue
            at = next((one.at for one in missed if slot <= one.scheduled_at), None)
            if at is None or at - slot < LATE_MS:
                raise Violation("I43", f"{record.name}: {iso(slot)} is lost")
            if spec.catch_up == "all":
                raise Violation("I43", f"{record.name}: {iso(slot)} is not made up for")
            self.site.world.sometimes("tick missed")
        if newest and spec.catch_up == "last" and newest + step not in {*taken, *overlapped}:
            raise Violation("I43", f"{record.name}: the last of the late times is lost")
        if overlapped.keys() - {one.scheduled_at for one in missed}:
            self.site.world.sometimes("tick skipped for overlap")

    # -- runs -------------------------------------------------------------------------------

    def on_commit(self, written: Written) -> None:
        # The clock may have been set back between an end and what it has let begin, in one transaction.
        for one in written.facts:
            if isinstance(one.fact, RunFinished):
                self._on_finished(one.run_id, one.fact)
        for one in written.facts:
            if isinstance(one.fact, RunAccepted):
                self._on_accepted(one.run_id, one.fact)

    def _on_finished(self, run_id: str, fact: RunFinished) -> None:
        for runs in self.active.values():
            runs.pop(run_id, None)
        if fact.status == "cancelled":
            return
        plan = self.site.mirror.runs[run_id].plan
        for record in self.records.values():
            spec: Any = record.spec
            if record.name == ENDS and spec.workflow_id == plan.workflow_id:
                self.ended[record.workflow_id, f"end {run_id}"] = None

    def _on_accepted(self, run_id: str, fact: RunAccepted) -> None:
        inputs = msgspec.json.decode(fact.inputs)
        if not inputs.get("slot"):
            return
        kind, world = inputs["kind"], self.site.world
        what = f"{kind} {inputs['slot']}"
        slot = (fact.workflow_id, what)
        if slot in self.started:
            raise Violation("I42", f"{what} has started {self.started[slot]} and {run_id}")
        owed = self.owed.get(slot)
        if owed is None:
            raise Violation("I42", f"{what} has started {run_id} before it was taken")
        self.started[slot] = run_id
        world.sometimes(f"run started by a trigger: {kind}")
        if owed.epoch != self.site.mirror.epoch:
            world.sometimes("tick started by the next scheduler")
        if owed.is_caught_up:
            world.sometimes("tick caught up")
        if kind == "time":
            self._check_overlap(fact.tenant, fact.workflow_id, run_id)

    def _check_overlap(self, tenant: str, workflow_id: str, run_id: str) -> None:
        active = self.active.setdefault(workflow_id, {})
        spec: Any = self.records[tenant, workflow_id, "cron-1"].spec
        if spec.overlap != "allow" and active:
            raise Violation("I42", f"{run_id} overlaps with {', '.join(active)}")
        active[run_id] = None

    # -- at the end -------------------------------------------------------------------------

    def check_end(self) -> None:
        """I43: what was owed was started, and each run that ended has started the one that waits for its end."""
        for slot in {**self.owed, **self.ended}:
            if slot not in self.started:
                raise Violation("I43", f"{slot[1]} of {slot[0]} has no run")

    def what_is_open(self) -> str | None:
        for record in self.records.values():
            if record.pending:
                return f"{record.name} of {record.workflow_id} owes {len(record.pending)} runs"
        late = [slot for slot in self.ended if slot not in self.started]
        return f"nobody has started what waits for {late[0][1]}" if late else None

    def check_table(self, records: list[TriggerRecord]) -> None:
        """I20: what a scheduler that serves knows of triggers is what is stored."""
        known = {one.key: one for one in records}
        if known != self.records:
            names = [
                key for key in {*known, *self.records} if known.get(key) != self.records.get(key)
            ]
            raise Violation("I20", f"triggers are not known as they are stored: {sorted(names)}")


async def _send(scheduler: Scheduler, hook: str, delivery: Delivery) -> RunId:
    webhooks = scheduler.triggers.webhooks
    return await webhooks.deliver(webhooks.find(hook), delivery)


def _is_slot(entry: FireEntry) -> bool:
    return entry.cause in ("schedule", "catch_up")


def _what(entry: FireEntry) -> str:
    """What a run that is started for this says in its inputs."""
    kind = {"webhook": "delivery", "workflow": "end"}.get(entry.cause, "time")
    what = iso(entry.scheduled_at) if _is_slot(entry) else entry.slot.partition(" ")[2]
    return f"{kind} {what}"


def _triggers(workflow_id: str) -> dict[str, dict[str, Any]]:
    """A schedule, and what the ends of the runs of this workflow and deliveries start."""
    return {
        "cron": {"type": "cron", "expression": f"*/{EVERY_S} * * * * *",
                 "inputs": {"slot": "scheduledAt"}, "values": {"kind": "time"}},
        ENDS: {"type": "workflow", "id": ENDS, "workflowId": workflow_id, "on": ["succeeded", "failed"],
               "inputs": {"slot": "runId"}, "values": {"kind": "end"}},
        HOOK: {"type": "webhook", "id": HOOK, "inputs": {"slot": "body.name"},
               "values": {"kind": "delivery"}},
    }  # fmt: skip


class FiringWorkload:
    """Somebody who saves workflows with triggers, switches them, runs them by hand, and sends deliveries."""

    def __init__(self, site: Site, client: Client) -> None:
        self.site = site
        self.world = site.world
        self._client = client

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The tasks that must have ended before the world can be at rest."""
        tenants = enumerate(TENANTS[: self.site.config.tenants])
        return [
            group.create_task(self._live(number, tenant), name=f"triggers of {tenant}")
            for number, tenant in tenants
        ]

    async def _live(self, number: int, tenant: str) -> None:
        rng = self.world.rng
        scheduled, follower, hooked = (
            f"00000000-0000-4000-8000-{FIRST_UID + 10 * number + place:012d}" for place in range(3)
        )
        cron = {
            **_triggers(scheduled)["cron"],
            "catchUp": rng.choice(_POLICIES),
            "overlap": rng.choice(_OVERLAPS),
        }
        await self._save(tenant, follower, _triggers(scheduled)[ENDS])
        await self._save(tenant, hooked, _triggers(scheduled)[HOOK])
        await self._save(tenant, scheduled, cron)
        count = 0
        key = (tenant, scheduled, "cron-1")
        while not self.site.disk.is_healed:
            await asyncio.sleep(self.world.delay(2.0))
            count += 1
            act = rng.randrange(8)
            if act == 0:
                await self._switch(key, is_enabled=False)
                await asyncio.sleep(self.world.delay(3.0))
                await self._switch(key, is_enabled=True)
            elif act == 1:
                await self._save(tenant, scheduled, {**cron, "maxCatchUp": 100 + count})
            elif act == 2:
                await self._run_now(key, f"asked-{count}")
            elif act < 6:
                await self._deliver((tenant, hooked, HOOK), f"delivery-{count}")
        await self._switch(key, is_enabled=False)
        while True:
            await asyncio.sleep(PAUSE_S)
            if self.site.firing.what_is_open() is None and not self._is_busy():
                return

    def _is_busy(self) -> bool:
        runs = self.site.mirror.runs
        return any(not runs[run_id].is_finished for run_id in self.site.firing.started.values())

    async def _save(self, tenant: str, workflow_id: str, trigger: dict[str, Any]) -> None:
        kind = self.world.rng.choice(("ok", "ok", "slow", "fail", "long"))
        text = {"schema": {"type": "string"}, "default": ""}
        definition = {
            "id": workflow_id,
            "inputs": {"slot": text, "kind": text},
            "nodes": [{"id": workflow_id, "type": f"sim.{kind}", "parameters": {"from": {}},
                       "package": {"name": "sim", "version": "1.0"},
                       "ui": {"inputPorts": [], "outputPorts": [{"key": "v", "binding": {
                           "path": "results.v", "mode": "read"}}]}}],
            "triggers": [trigger],
        }  # fmt: skip
        body = msgspec.json.encode(definition)
        await self._client.ask(lambda scheduler: scheduler.workflows.save(tenant, body, by=WHO))

    async def _switch(self, key: TriggerKey, *, is_enabled: bool) -> None:
        await self._client.ask(
            lambda scheduler: scheduler.triggers.triggers.switch(key, is_enabled=is_enabled)
        )
        stored = self.site.firing.records[key].state
        if (stored == "enabled") != is_enabled:
            raise Violation("I12", f"a switch of {key[2]} was acknowledged, and {stored} is stored")

    async def _run_now(self, key: TriggerKey, name: str) -> None:
        await self._ask_twice(
            name, lambda one: one.triggers.triggers.run_now(key, {}, by=WHO, name=name)
        )

    async def _deliver(self, key: TriggerKey, name: str) -> None:
        body = msgspec.json.encode({"name": name})
        headers = {"content-type": "application/json", "idempotency-key": name}
        hook = self.site.firing.records[key].hook_id
        delivery = Delivery(body, headers, {})
        await self._ask_twice(name, lambda one: _send(one, hook, delivery))

    async def _ask_twice(self, name: str, ask: Callable[[Scheduler], Awaitable[RunId]]) -> None:
        try:
            told = {await self._client.ask(ask) for _ in range(2)}
        except errors.AstraflowError as error:
            raise Violation("I43", f"{name} is refused: {error.message}") from error
        self._check_told(name, told)

    def _check_told(self, name: str, told: set[RunId]) -> None:
        if len(told) > 1:
            raise Violation("I42", f"{name} was told to have started {sorted(told)}")
        for run_id in told:
            if run_id not in self.site.mirror.runs:
                raise Violation("I12", f"{name}: run {run_id} was acknowledged, not stored")
