"""A simulated scheduler process that stores by the real row writer and starts by the real recovery."""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from astraflow.core import errors
from astraflow.core.engine.batch import Batch
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.protocol.events import GatewaySettings
from astraflow.core.workflow.stored_plan import encode_plan
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.feed import Feed
from astraflow.scheduler.plans import Plans
from astraflow.scheduler.row_writer import RowWriter
from astraflow.scheduler.serving import Parts, open_serving
from astraflow.scheduler.shell_effects import ShellEffects
from astraflow.scheduler.writer import pass_by
from astraflow.store.store import Claim, Retention
from tests.sim.scheduler import SchedulerProcess
from tests.sim.shells.processes import Gauge
from tests.sim.shells.simulation import watched
from tests.sim.sqlite.store import SqliteBackedStore
from tests.sim.store import CommitOutcome
from tests.sim.wire import SimIds, authenticate, tokens_for

__all__ = ["SqliteSchedulerProcess"]

MONTH_S = 30 * 24 * 3600.0


class SqliteSchedulerProcess(SchedulerProcess):
    """Everything it knows after a crash it has read from rows."""

    store: SqliteBackedStore

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.feed: Feed | None = None
        self._claim = Claim("", 0, None)
        self._rows: RowWriter | None = None
        self._number = 0

    def _open(self, epoch: int) -> None:
        store, config = self.store, self.config
        self._claim = Claim(self.name, epoch, store.LEASE_TTL_S)
        self.feed = Feed(store.sqlite)
        parts = Parts(
            scheduler_id=self.name,
            store=store.sqlite,
            clock=self.clock,
            ids=SimIds(self.world),
            rng=Random(self.world.rng.getrandbits(64)),
            engine=self._settings(),
            gateway=GatewaySettings(
                window=config.window,
                heartbeat_interval_s=config.heartbeat_s,
                lease_ttl_s=config.lease_s,
            ),
            retention=Retention(),
            authenticate=authenticate,
            tokens=tokens_for(config),
            gauge=Gauge(),
            reached=pass_by,
        )
        catalogs = Catalogs([])
        plans, effects = Plans(store.sqlite, catalogs), ShellEffects(catalogs)
        with watched(self.checkers):
            serving = store.loop.run_until_complete(
                open_serving(parts, self._claim, plans, self.feed, effects)
            )
        self.engine = serving.engine
        self._rows = serving.writer.rows
        self._number = 0
        self._serve()

    def _settings(self) -> EngineSettings:
        # Keys are remembered by the wall clock, which steps by days here: a step past the limit is a key forgotten.
        return msgspec.structs.replace(super()._settings(), remember_submissions_s=MONTH_S)

    def _drop(self) -> None:
        super()._drop()
        if self.feed is not None:
            self.feed.end()
            self.feed = None

    def _write_down(self, batch: Batch) -> None:
        assert self._rows is not None
        for run_id, request in batch.submitted.items():
            body = encode_plan(request.plan)
            batch.submitted[run_id] = msgspec.structs.replace(
                request,
                plan_id=sha256(body).hexdigest(),
                definition=b"{}",
                plan_body=body,
                name="sim",
            )
        self._number += 1
        self._changes = self._rows.changes_of(batch)

    def _store(self, batch: Batch) -> CommitOutcome:
        return self.store.commit_rows(self._claim, self._number, batch, self._changes)

    def _is_written(self, outcome: CommitOutcome) -> bool:
        """R16: by reading back, which must agree with what the world knows."""
        try:
            is_written = self.store.is_committed(self._claim, self._number)
        except errors.StoreError as error:
            assert error.code is errors.STORE_FENCED
            return False
        assert is_written == (outcome is CommitOutcome.UNKNOWN_WRITTEN)
        return is_written

    def _publish(self) -> None:
        assert self.feed is not None
        self.feed.publish(self._changes.segments, self._changes.events)
