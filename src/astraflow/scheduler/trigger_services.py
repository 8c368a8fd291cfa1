"""Everything about triggers that a scheduler has, put together."""

from __future__ import annotations

from collections.abc import Coroutine

from astraflow.clock import Clock
from astraflow.core.ids import IdSource
from astraflow.scheduler.current import Current
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.run_reader import RunReader
from astraflow.scheduler.runs import Runs
from astraflow.scheduler.secret_vault import SecretVault
from astraflow.scheduler.trigger_table import TriggerTable
from astraflow.scheduler.triggers import Triggers
from astraflow.scheduler.webhooks import Webhooks
from astraflow.scheduler.workflow_ends import WorkflowEnds
from astraflow.store.store import Store


class TriggerServices:
    """The triggers of all tenants: at work, as people ask for them, and from outside."""

    def __init__(
        self,
        table: TriggerTable,
        store: Store,
        current: Current,
        runs: Runs,
        reader: RunReader,
        vault: SecretVault,
        feed: Feed,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self.table = table
        self.triggers = Triggers(table, store, current, runs, clock, ids)
        self.webhooks = Webhooks(table, self.triggers, vault, clock, ids)
        self._ends = WorkflowEnds(table, store, reader, feed, clock)

    def tend(self) -> list[Coroutine[None, None, None]]:
        """What runs for as long as the scheduler serves."""
        return [self.triggers.tend(), self._ends.follow()]
