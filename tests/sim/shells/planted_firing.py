"""Bugs planted in triggers: each takes one promise about what they start away, in a simulated world only."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import count
from typing import Any
from unittest.mock import patch

import msgspec

from astraflow.core.triggers import decisions
from astraflow.core.triggers.fires import key_of
from astraflow.core.triggers.record import FireTaken
from astraflow.scheduler import triggers as firing
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.scheduler.triggers import Triggers
from astraflow.scheduler.workflow_ends import WorkflowEnds
from astraflow.store.rows import TenantEvent

__all__ = [
    "endsunread",
    "fireunstored",
    "keyperattempt",
    "nextfromnow",
    "overlapblind",
    "owedforgotten",
    "slotlesskey",
    "tablestale",
]


def fireunstored() -> AbstractContextManager[Any]:
    """The run of a time is submitted first; that the time is taken is stored with what came of it."""

    look = Triggers.look

    async def broken(self: Triggers) -> float:
        at = self._at()
        due = [one for one in self.table.all() if self._is_due(one, at)]
        facts = self._due_facts([one.key for one in due])
        for fact in facts:
            if isinstance(fact, FireTaken):
                await self._start(self.table.get(fact.key), fact.fire)
        return await look(self)

    return patch.object(Triggers, "look", broken)


def slotlesskey() -> AbstractContextManager[Any]:
    """The key of a run is made of its trigger, without the slot."""

    def broken(workflow_id: str, name: str, slot: str) -> str:
        return key_of(workflow_id, name, "")

    return patch.object(firing, "key_of", broken)


def keyperattempt() -> AbstractContextManager[Any]:
    """Whoever tries again uses another key."""
    attempts = count()

    def broken(workflow_id: str, name: str, slot: str) -> str:
        return key_of(workflow_id, name, f"{slot} {next(attempts)}")

    return patch.object(firing, "key_of", broken)


def nextfromnow() -> AbstractContextManager[Any]:
    """The next time is computed from now, not from the time that was dealt with."""
    add = decisions._Steps._add

    def broken(self: Any, fact: Any) -> None:
        if isinstance(fact, FireTaken):
            fact = msgspec.structs.replace(fact, since=self._at)
        add(self, fact)

    return patch.object(decisions._Steps, "_add", broken)


def owedforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not start what another one owed."""
    load = TriggerTable.load

    async def broken(self: TriggerTable) -> None:
        await load(self)
        for key, record in list(self._records.items()):
            self._records[key] = msgspec.structs.replace(record, pending=())

    return patch.object(TriggerTable, "load", broken)


def overlapblind() -> AbstractContextManager[Any]:
    """Nobody looks whether the run of the time before is active."""
    return patch.object(Triggers, "_is_active", lambda self, record: False)


def endsunread() -> AbstractContextManager[Any]:
    """Ends of other runs are followed from now on, not from where the trigger has come to."""
    follow, take = WorkflowEnds._follow, WorkflowEnds._take
    heads: dict[tuple[WorkflowEnds, str], int] = {}

    async def follows(self: WorkflowEnds, tenant: str) -> None:
        heads[self, tenant] = self._table._current.writer.rows.head_of(tenant)
        await follow(self, tenant)

    async def takes(self: WorkflowEnds, event: TenantEvent) -> None:
        if event.number > heads[self, event.tenant]:
            await take(self, event)

    return patch.multiple(WorkflowEnds, _follow=follows, _take=takes)


def tablestale() -> AbstractContextManager[Any]:
    """After a write whose outcome is unknown, what is known of triggers stays as it was."""

    def never(self: TriggerTable, value: bool) -> None:
        """Forgets it."""

    return patch.object(TriggerTable, "_is_stale", property(lambda self: False, never), create=True)
