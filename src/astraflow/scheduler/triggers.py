"""Triggers at work: times, events of other workflows, webhooks, and what people ask.

Rule 1: that a slot is taken is stored before its run is submitted. The run is submitted with a key made of the trigger
        and the slot, so that whoever tries again, after a crash too, gets the same run.
Rule 2: a run that is refused for good is noted in the history. One that cannot be accepted now is tried again.
Rule 3: while a tenant is suspended nothing of it is fired; when it is resumed, its catch-up policies decide.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.ids import IdSource, RunId
from astraflow.core.triggers.decisions import MAX_PENDING, due, give_up, next_due, ready, take
from astraflow.core.triggers.fires import Fire, key_of
from astraflow.core.triggers.history import FireEntry
from astraflow.core.triggers.record import (
    FireRefused,
    FireStarted,
    FireTaken,
    TriggerDisabled,
    TriggerEnabled,
    TriggerFact,
    TriggerKey,
    TriggerRecord,
)
from astraflow.scheduler.current import Current
from astraflow.scheduler.runs import Runs, Submission
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.store.store import Store

_log: Final = logging.getLogger(__name__)
_entry: Final = msgspec.json.Decoder(FireEntry)

NOT_NOW: Final = (errors.QUOTA_RUNS, errors.QUOTA_TASKS, errors.TENANT_SUSPENDED)
"""Why a run is not accepted now, and may be later."""
LOOK_S: Final = 30.0
"""The clock on the wall may be set: it is looked at again after so long."""
RESUME_S: Final = 1.0
"""How soon it is noticed that a tenant is resumed."""
RETRY_S: Final = 0.5
"""Before a fire is tried again that waits for the run before it, or for room."""
STARTS: Final = 32
"""Runs that are submitted at once."""


class Triggers:
    """Use from the scheduler's loop."""

    def __init__(
        self,
        table: TriggerTable,
        store: Store,
        current: Current,
        runs: Runs,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self.table = table
        self._store = store
        self._current = current
        self._runs = runs
        self._clock = clock
        self._ids = ids
        self._times: dict[TriggerKey, tuple[TriggerRecord, int | None]] = {}

    # -- what people ask --------------------------------------------------------------------

    async def switch(self, key: TriggerKey, *, is_enabled: bool) -> TriggerRecord:
        """Enable or disable a trigger. Raises: NotFound."""
        record = self.table.get(key)
        head = self._current.writer.rows.head_of(record.tenant)

        def make() -> list[TriggerFact]:
            known, at = self.table.get(key), self._clock.wall_ms()
            who = (known.tenant, at, known.workflow_id, known.name)
            if is_enabled == (known.state == "enabled"):
                return []
            return [TriggerEnabled(*who, head) if is_enabled else TriggerDisabled(*who)]

        await self.table.decide(make)
        return self.table.get(key)

    async def run_now(
        self, key: TriggerKey, given: Mapping[str, msgspec.Raw], *, by: str, name: str | None = None
    ) -> RunId:
        """Start a run as the trigger would. `name`: the same one gives the same run.

        Raises: NotFound; and what the submission of the run is refused with.
        """
        what = name or self._ids.new()
        return await self.fire(
            key, lambda record: take(record, "manual", what, {}, at=self._at(), by=by, given=given)
        )

    async def history(
        self, key: TriggerKey, *, limit: int, before: int | None = None
    ) -> list[FireEntry]:
        """Newest first. Raises: NotFound."""
        self.table.get(key)
        rows = await self._store.trigger_fires(*key, limit=limit, before=before)
        return [_entry.decode(row.body) for row in rows]

    # -- fires ------------------------------------------------------------------------------

    async def fire(self, key: TriggerKey, make: Callable[[TriggerRecord], FireTaken]) -> RunId:
        """Take a slot, and start its run. A slot that has its run gives that one.

        Raises: NotFound; Unavailable: try again; and what the submission of the run is refused with.
        """
        wanted = make(self.table.get(key)).fire
        stored = await self._store.find_trigger_fire(*key, wanted.slot)
        if stored is not None and stored.outcome == "started":
            return RunId(_entry.decode(stored.body).run_id or "")

        def facts() -> list[TriggerFact]:
            record = self.table.get(key)
            if any(fire.slot == wanted.slot for fire in record.pending):
                return []
            if len(record.pending) >= MAX_PENDING:
                raise errors.Unavailable(errors.TRIGGER_BUSY, errors.TRIGGER_BUSY.says)
            return [make(record)]

        await self.table.decide(facts)
        record = self.table.get(key)
        fire = next((one for one in record.pending if one.slot == wanted.slot), None)
        if fire is None:  # somebody else has started it meanwhile
            return await self.fire(key, make)
        return await self._start_for_caller(record, fire)

    async def _start_for_caller(self, record: TriggerRecord, fire: Fire) -> RunId:
        try:
            run_id = await self._submit(record, fire)
        except errors.AstraflowError as error:
            # If nobody knows whether the run exists, it stays owed.
            if not _is_undecided(error):
                await self._note([_refusal(record, fire, error, self._at())])
            raise
        await self._note([self._started(record, fire, run_id)])
        return run_id

    async def _start(self, record: TriggerRecord, fire: Fire) -> TriggerFact | None:
        """What came of a fire; None: it is to be tried again."""
        try:
            return self._started(record, fire, await self._submit(record, fire))
        except errors.Unavailable:
            return None
        except errors.AstraflowError as error:
            if error.code in NOT_NOW:
                return None
            _log.warning(
                "a trigger could not start its run: %s of %s: %s",
                record.name,
                record.workflow_id,
                error.message,
                extra={"code": error.code.code},
            )
            return _refusal(record, fire, error, self._at())

    async def _submit(self, record: TriggerRecord, fire: Fire) -> RunId:
        submitted = await self._runs.submit(
            Submission(
                tenant=record.tenant,
                by=fire.by or f"trigger:{record.workflow_id}/{record.name}",
                workflow_id=record.workflow_id,
                inputs=fire.inputs,
                idempotency_key=key_of(record.workflow_id, record.name, fire.slot),
                fingerprint=fire.slot,
                depth=fire.depth,
                trigger=record.name,
            )
        )
        return submitted.run_id

    def _started(self, record: TriggerRecord, fire: Fire, run_id: RunId) -> FireStarted:
        return FireStarted(record.tenant, self._at(), record.workflow_id, record.name, fire, run_id)

    async def _note(self, outcomes: Iterable[FireStarted | FireRefused]) -> None:
        """Store what came of fires, as far as they are still owed."""

        def facts() -> list[TriggerFact]:
            return [
                fact
                for fact in outcomes
                if (record := self.table.find(fact.key)) is not None
                and any(one.number == fact.fire.number for one in record.pending)
            ]

        await self.table.decide(facts)

    # -- time -------------------------------------------------------------------------------

    async def tend(self) -> None:
        """Fire what the time brings. Endless.

        Raises: StoreError: then a scheduler starts again from what is stored, and nothing is lost.
        """
        while True:
            self.table.changed.clear()
            wait_s = await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self.table.changed.wait()

    async def look(self) -> float:
        """Deal with what is due; how long there is nothing to do, in seconds."""
        await self.table.refresh()
        known = self.table.all()
        active = [one for one in known if not self.is_suspended(one.tenant)]
        at = self._at()
        keys = [one.key for one in active if one.pending or self._is_due(one, at)]
        if keys:
            await self.table.decide(lambda: self._due_facts(keys))
            await self._start_ready(keys)
        left = [one for one in map(self.table.find, keys) if one is not None]
        if any(one.pending for one in left):
            return RETRY_S
        times = [when for one in active if (when := self._next(self.table.find(one.key)))]
        most_s = LOOK_S if len(active) == len(known) else RESUME_S
        return min([most_s, *(max(0.0, (when - self._at()) / 1000) for when in times)])

    def _due_facts(self, keys: Iterable[TriggerKey]) -> list[TriggerFact]:
        at = self._at()
        facts: list[TriggerFact] = []
        for record in map(self.table.find, keys):
            if record is not None:
                facts += give_up(record, at, errors.TRIGGER_LOST)
                facts += due(record, at, is_active=self._is_active(record))
        return facts

    async def _start_ready(self, keys: Iterable[TriggerKey]) -> None:
        wanted = [
            (record, fire)
            for record in map(self.table.find, keys)
            if record is not None
            for fire in ready(record, is_active=self._is_active(record))
        ]
        for start in range(0, len(wanted), STARTS):
            some = wanted[start : start + STARTS]
            found = await asyncio.gather(*(self._start(*one) for one in some))
            await self._note([one for one in found if isinstance(one, FireStarted | FireRefused)])

    def _is_due(self, record: TriggerRecord, at: int) -> bool:
        when = self._next(record)
        return when is not None and when <= at

    def _next(self, record: TriggerRecord | None) -> int | None:
        """When the trigger is due; computed once for each state of it."""
        if record is None:
            return None
        known = self._times.get(record.key)
        if known is None or known[0] is not record:
            known = self._times[record.key] = (record, next_due(record))
        return known[1]

    def _is_active(self, record: TriggerRecord) -> bool:
        if record.last_run_id is None:
            return False
        run = self._current.engine.ask.run(RunId(record.last_run_id))
        return run is not None and run.status in ("queued", "running")

    def is_suspended(self, tenant: str) -> bool:
        found = self._current.engine.ask.tenant(tenant)
        return found is not None and found.is_suspended

    def _at(self) -> int:
        return self._clock.wall_ms()


def _is_undecided(error: errors.AstraflowError) -> bool:
    detail: Any = error.detail
    return isinstance(detail, Mapping) and detail.get("outcome") == "unknown"


def _refusal(
    record: TriggerRecord, fire: Fire, error: errors.AstraflowError, at: int
) -> FireRefused:
    where = f"{error.pointer}: " if error.pointer else ""
    return FireRefused(
        record.tenant,
        at,
        record.workflow_id,
        record.name,
        fire,
        error.code.code,
        f"{where}{error.message}"[:1_000],
    )
