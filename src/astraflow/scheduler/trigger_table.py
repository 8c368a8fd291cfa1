"""The triggers of all tenants in memory, and their writes: a decision is stored before it counts.

Rule 1: one decision at a time. Each is made against the records as they are stored.
Rule 2: the triggers of a workflow change in the transaction that saves it.
Rule 3: after a write that failed nobody knows what is stored. It is read again before the next decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from secrets import token_urlsafe
from typing import Final

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.triggers.decisions import declare
from astraflow.core.triggers.history import entry_of
from astraflow.core.triggers.record import (
    TriggerFact,
    TriggerKey,
    TriggerRecord,
    TriggerRemoved,
    fold,
)
from astraflow.core.workflow.definition import WorkflowSpec
from astraflow.core.workflow.problems import Problems
from astraflow.core.workflow.trigger_rules import check_triggers
from astraflow.scheduler.current import Current
from astraflow.store.rows import TriggerFireRow, TriggerRow
from astraflow.store.store import Store
from astraflow.store.trigger_changes import TriggerChanges

HOOK_BYTES: Final = 24
"""192 bits: whoever does not know the address of a webhook cannot guess it."""
_record: Final = msgspec.json.Decoder(TriggerRecord)
_Records = dict[TriggerKey, TriggerRecord]


class TriggerTable:
    """Use from the scheduler's loop."""

    def __init__(self, store: Store, current: Current, clock: Clock) -> None:
        self._store = store
        self._current = current
        self._clock = clock
        self._records: _Records = {}
        self._hooks: dict[str, TriggerKey] = {}
        self._turn = asyncio.Lock()
        self._is_stale = False
        self.changed = asyncio.Event()
        """Set when a trigger has changed, until whoever waits for that clears it."""

    async def load(self) -> None:
        """Read what is stored."""
        rows = await self._store.triggers()
        self._is_stale = False
        self._records, self._hooks = {}, {}
        self._accept({one.key: one for one in (_record.decode(row.body) for row in rows)})

    # -- reading ----------------------------------------------------------------------------

    def all(self) -> list[TriggerRecord]:
        return list(self._records.values())

    def find(self, key: TriggerKey) -> TriggerRecord | None:
        return self._records.get(key)

    def get(self, key: TriggerKey) -> TriggerRecord:
        """Raises: NotFound."""
        found = self._records.get(key)
        if found is None:
            raise errors.NotFound(errors.TRIGGER_NOT_FOUND, f"no such trigger: {key[2][:64]}")
        return found

    def of_tenant(self, tenant: str, workflow_id: str | None = None) -> list[TriggerRecord]:
        """By workflow and name."""
        found = [
            one
            for one in self._records.values()
            if one.tenant == tenant and workflow_id in (None, one.workflow_id)
        ]
        return sorted(found, key=lambda one: one.key)

    def by_hook(self, hook_id: str) -> TriggerRecord:
        """Raises: NotFound."""
        key = self._hooks.get(hook_id)
        if key is None:
            raise errors.NotFound(errors.TRIGGER_NOT_FOUND, "there is no webhook at this address")
        return self._records[key]

    # -- writing ----------------------------------------------------------------------------

    async def decide(self, make: Callable[[], Iterable[TriggerFact]]) -> list[TriggerFact]:
        """Make facts of the records as they are now, and store what follows from them.

        Raises: StoreError, Unavailable; and what `make` raises.
        """
        async with self._deciding():
            facts = list(make())
            if facts:
                after = self._folded(facts)
                changes = _changes_of(facts, after)
                async with self._writing():
                    await self._store.change_triggers(self._current.claim, changes)
                self._accept(after)
            return facts

    @asynccontextmanager
    async def saving(self, tenant: str, workflow: WorkflowSpec) -> AsyncIterator[TriggerChanges]:
        """What a save of the workflow changes, to be stored with it; it counts if the block ends well.

        Triggers with problems, as a draft may have them, change nothing.
        """
        async with self._deciding():
            facts = self._declared(tenant, workflow)
            after = self._folded(facts)
            async with self._writing():
                yield _changes_of(facts, after)
            self._accept(after)

    async def forget(self, tenant: str, workflow_id: str) -> None:
        """The workflow is deleted, and with it the rows of its triggers."""
        async with self._deciding():
            for record in self.of_tenant(tenant, workflow_id):
                self._accept({record.key: msgspec.structs.replace(record, state="removed")})

    async def refresh(self) -> None:
        """Read what is stored, if a write has failed. Raises: StoreError."""
        async with self._deciding():
            pass

    @asynccontextmanager
    async def _deciding(self) -> AsyncIterator[None]:
        async with self._turn:
            if self._is_stale:
                await self.load()
            yield

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """A write that fails, or whose caller gives up, may have been done."""
        is_done = False
        try:
            yield
            is_done = True
        finally:
            if not is_done:
                self._is_stale = True
                self.changed.set()

    def _declared(self, tenant: str, workflow: WorkflowSpec) -> list[TriggerFact]:
        problems = Problems()
        check_triggers(workflow, problems)
        if problems.count:
            return []
        return declare(
            self.of_tenant(tenant, workflow.id),
            tenant,
            workflow.id,
            workflow.triggers,
            at=self._clock.wall_ms(),
            events_seen=self._current.writer.rows.head_of(tenant),
            new_hook_id=lambda: token_urlsafe(HOOK_BYTES),
        )

    def _folded(self, facts: Iterable[TriggerFact]) -> _Records:
        after: _Records = {}
        for fact in facts:
            record = after.get(fact.key, self._records.get(fact.key))
            is_gone = record is not None and record.state == "removed"
            after[fact.key] = fold(None if is_gone else record, fact)
        return after

    def _accept(self, after: _Records) -> None:
        for key, record in after.items():
            before = self._records.pop(key, None)
            if before is not None:
                self._hooks.pop(before.hook_id, None)
            if record.state != "removed":
                self._records[key] = record
                if record.hook_id:
                    self._hooks[record.hook_id] = key
        self.changed.set()


def _changes_of(facts: Iterable[TriggerFact], after: _Records) -> TriggerChanges:
    gone: dict[TriggerKey, None] = {}
    fires: dict[tuple[TriggerKey, int], TriggerFireRow] = {}
    for fact in facts:
        entry = entry_of(fact)
        if entry is not None:
            body = msgspec.json.encode(entry)
            row = TriggerFireRow(*fact.key, entry.number, entry.slot, entry.outcome, body, entry.at)
            fires[fact.key, entry.number] = row
        elif isinstance(fact, TriggerRemoved):
            gone[fact.key] = None
    rows = tuple(
        TriggerRow(*key, msgspec.json.encode(record), record.updated_at)
        for key, record in after.items()
        if record.state != "removed"
    )
    return TriggerChanges(rows, tuple(gone), tuple(fires.values()))
