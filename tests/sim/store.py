"""The simulated store: durable, shared, fenced by epochs, and able to fail at the worst moment."""

from __future__ import annotations

from enum import Enum

from astraflow.core.engine.batch import Batch, NumberedFact
from astraflow.core.runs.facts import Fact, RunAccepted, RunFinished
from astraflow.core.workflow.plan import Plan
from astraflow.store.rows import (
    ActiveRow,
    AffinityRow,
    Changes,
    InstallIntentRow,
    PoolRow,
    ResourceRow,
    RolloutRow,
)
from tests.sim.config import Config
from tests.sim.world import Violation, World

__all__ = ["CommitOutcome", "KeptRows", "Store", "StoredRun"]


class CommitOutcome(Enum):
    """What became of a commit, and what the scheduler was told."""

    DONE = "done"
    FENCED = "fenced"  # a newer epoch owns the shard: nothing was written
    REFUSED = "refused"  # busy or full: nothing was written, and the scheduler knows
    UNKNOWN_WRITTEN = "unknown, written"  # the connection died in COMMIT
    UNKNOWN_LOST = "unknown, lost"


class StoredRun:
    """A run as it is stored."""

    __slots__ = ("facts", "is_finished", "last_event", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.facts: list[NumberedFact] = []
        self.last_event = 0
        self.is_finished = False

    def bare_facts(self) -> list[Fact]:
        return [one.fact for one in self.facts]


class KeptRows:
    """The rows of what workers hold."""

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str, str], ResourceRow] = {}
        self.intents: dict[tuple[str, str, str, str], InstallIntentRow] = {}
        self.incarnations: dict[tuple[str, str], int] = {}
        self.affinities: dict[tuple[str, str], AffinityRow] = {}
        self.rollouts: dict[str, RolloutRow] = {}
        self.pools: dict[tuple[str, str], PoolRow] = {}
        self.active_versions: dict[tuple[str, str], ActiveRow] = {}
        self.on_rows: list[object] = []

    def keep(self, rows: Changes) -> None:
        """They are durable now."""
        for worker in rows.workers:
            self.incarnations[worker.tenant, worker.worker_id] = worker.incarnation
        for resource in rows.resources:
            self.resources[resource.tenant, resource.worker_id, resource.resource_id] = resource
        for intent in rows.intents:
            self.intents[intent.tenant, intent.worker_id, intent.name, intent.version] = intent
        for rollout in rows.rollouts:
            self.rollouts[rollout.rollout_id] = rollout
        for active in rows.active_versions:
            self.active_versions[active.tenant, active.name] = active
        for affinity in rows.affinities:
            self.affinities[affinity.tenant, affinity.key] = affinity
        for pool in rows.pools:
            self.pools[pool.tenant, pool.name] = pool
        for key in rows.affinities_gone:
            self.affinities.pop(key, None)
        for gone in rows.intents_gone:
            self.intents.pop(gone, None)
        for listener in self.on_rows:
            listener(rows)  # type: ignore[operator]


class Store(KeptRows):
    """What survives every crash."""

    LEASE_TTL_S = 6.0

    def __init__(self, world: World, config: Config) -> None:
        super().__init__()
        self.world = world
        self.config = config
        self.is_healed = False
        self.epoch = 0
        self.lease_until = 0.0
        self.owner: str | None = None
        self.commits = 0
        self.runs: dict[str, StoredRun] = {}
        self.submissions: dict[tuple[str, str], tuple[str | None, str]] = {}
        self.on_commit: list[object] = []
        self.blobs: dict[tuple[str, int], bytes] = {}
        """What maps have stored, by run and task: the last value of each."""
        self.copies: dict[str, bytes] = {}
        """The same by the name of the copy: nothing is written over."""

    # -- ownership --------------------------------------------------------------------------

    def acquire(self, name: str) -> int | None:
        """Take the shard if nobody holds it; the new epoch, or None."""
        if self.world.now < self.lease_until and self.owner != name:
            return None
        self.epoch += 1
        self.owner = name
        self.lease_until = self.world.now + self.LEASE_TTL_S
        return self.epoch

    def renew(self, epoch: int) -> bool:
        if epoch != self.epoch:
            return False
        self.lease_until = self.world.now + self.LEASE_TTL_S
        return True

    # -- transactions -----------------------------------------------------------------------

    def commit(self, epoch: int, batch: Batch, rows: Changes) -> CommitOutcome:
        """One transaction. The epoch is checked inside it (R11)."""
        if self.is_stale(epoch):
            return CommitOutcome.FENCED
        outcome = CommitOutcome.DONE
        if not self.is_healed and self.world.chance(self.config.commit_fault):
            outcome = self.world.rng.choice(
                (CommitOutcome.REFUSED, CommitOutcome.UNKNOWN_WRITTEN, CommitOutcome.UNKNOWN_LOST)
            )
        if outcome in (CommitOutcome.DONE, CommitOutcome.UNKNOWN_WRITTEN):
            self.keep(rows)
            self._write(epoch, batch)
        return outcome

    def is_stale(self, epoch: int) -> bool:
        return epoch < self.epoch

    def _write(self, epoch: int, batch: Batch) -> None:
        if epoch < self.epoch:
            raise Violation("I21", f"epoch {epoch} committed after epoch {self.epoch}")
        self.commits += 1
        for run_id, request in batch.submitted.items():
            self.runs[run_id] = StoredRun(request.plan)
        for one in batch.facts:
            run = self.runs[one.run_id]
            run.facts.append(one)
            if isinstance(one.fact, RunAccepted) and one.fact.idempotency_key is not None:
                key = (one.fact.tenant, one.fact.idempotency_key)
                self.submissions[key] = (one.fact.fingerprint, one.run_id)
            if isinstance(one.fact, RunFinished):
                run.is_finished = True
        for listener in self.on_commit:
            listener(batch)  # type: ignore[operator]

    def active(self) -> list[StoredRun]:
        return [run for run in self.runs.values() if not run.is_finished]
