"""The store: what survives every crash, behind one interface over three databases.

Rule 1: one writer. Every write carries the epoch of the claim it is made under; a lower epoch cannot write (R11).
Rule 2: `commit` returns when the rows are durable: flushed, not only written (P1). It is whole or it is not at all.
Rule 3: commits are numbered by the writer, 1, 2, … within an epoch. The number is stored in the same transaction,
        so that a commit whose outcome is unknown is resolved by reading it back, never by guessing (R16).
Rule 4: reads never wait for a write, and see only what is committed.
Rule 5: text with U+0000, lone surrogates and integers beyond 64 bits are refused the same way everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.store.audits import StoredAudits
from astraflow.store.events import StoredEvents
from astraflow.store.identity import StoredIdentity
from astraflow.store.packages import StoredPackages
from astraflow.store.pins import StoredPins
from astraflow.store.runs import StoredRuns
from astraflow.store.secrets import StoredSecrets
from astraflow.store.sweeper import Sweeper
from astraflow.store.triggers import StoredTriggers
from astraflow.store.workers import StoredWorkers
from astraflow.store.workflows import StoredWorkflows

if TYPE_CHECKING:
    from astraflow.store.database import Database


HOME_SHARD = 0
"""Where tenants live that no row of `lanes` names, and whose owner keeps the whole store within its limits."""


class Claim(msgspec.Struct, frozen=True):
    """The right to write a shard, until a higher epoch is claimed. `ttl_s` None: held by a lock of the system."""

    owner: str
    epoch: int
    ttl_s: float | None
    shard: int = HOME_SHARD
    """Every statement of a claim names it."""
    is_parked: bool = False
    """Whether nothing of the shard is to be placed: its work has ended the nodes that served it before."""


class Retention(msgspec.Struct, frozen=True):
    """How long finished runs and what belongs to them are kept. None: for ever."""

    finished_runs_s: float | None = 30 * 24 * 3600.0
    finished_runs: int | None = 100_000
    """At most so many finished runs; the oldest go first."""
    max_bytes: int | None = 10 * 1024**3
    """At most so many bytes in all; the oldest finished runs go first."""
    tenant_events_s: float | None = 7 * 24 * 3600.0
    tenant_events: int | None = 1_000_000
    """At most so many, of all tenants together; those of the longest streams go first."""
    audit_s: float | None = 365 * 24 * 3600.0
    audits: int | None = 1_000_000
    workers_s: float | None = 30 * 24 * 3600.0
    """Since a worker was last there."""
    workflow_versions: int | None = 100
    """At most so many of each saved workflow; the oldest go when another is saved."""


class Store:
    """Use from one asyncio loop. `open` first, `close` last. The methods are those of its parts, by name."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.open = database.open
        self.close = database.close
        self.claim = database.claim
        self.renew = database.renew
        self.release = database.release
        self.commit = database.commit
        self.is_committed = database.is_committed

        self._add_runs(StoredRuns(database))

        workers = StoredWorkers(database)
        self.workers = workers.workers
        self.pools = workers.pools
        self.intents = workers.intents
        self.affinities = workers.affinities
        self.resources = workers.resources
        self.find_resource = workers.find_resource
        self.blobs_of_resources = workers.blobs_of_resources

        packages = StoredPackages(database)
        self.put_package = packages.put_package
        self.yank_package = packages.yank_package
        self.packages = packages.packages
        self.find_package = packages.find_package
        self.active_versions = packages.active_versions
        self.rollouts = packages.rollouts
        self.put_site = packages.put_site
        self.find_site = packages.find_site
        self.written_facts = packages.written_facts
        self.raise_written_facts = packages.raise_written_facts

        workflows, self.pins = StoredWorkflows(database), StoredPins(database)
        self.put_workflow = workflows.put_workflow
        self.delete_workflow = workflows.delete_workflow
        self.find_workflow = workflows.find_workflow
        self.list_workflows = workflows.list_workflows
        self.list_versions = workflows.list_versions
        self.put_draft = workflows.put_draft
        self.find_draft = workflows.find_draft
        self.list_drafts = workflows.list_drafts
        self.delete_draft = workflows.delete_draft

        triggers = StoredTriggers(database)
        self.change_triggers = triggers.change_triggers
        self.triggers = triggers.triggers
        self.trigger_fires = triggers.trigger_fires
        self.find_trigger_fire = triggers.find_trigger_fire

        self._add_access(StoredIdentity(database), StoredSecrets(database))

        events = StoredEvents(database)
        self.event_heads = events.event_heads
        self.tenant_events = events.tenant_events
        self.last_tenant_event = events.last_tenant_event

        audits = StoredAudits(database)
        self.audit = audits.audit
        self.audit_after = audits.audit_after
        self.audit_heads = audits.audit_heads
        self.audit_head = audits.audit_head
        self.sent_audits = audits.sent_audits

        sweeper = Sweeper(database)
        self.sweep = sweeper.sweep
        self.usage = sweeper.usage

    def _add_runs(self, runs: StoredRuns) -> None:
        self.active_runs = runs.active_runs
        self.find_run = runs.find_run
        self.list_runs = runs.list_runs
        self.search_runs = runs.search_runs
        self.find_plan = runs.find_plan
        self.read_segments = runs.read_segments
        self.read_segments_back = runs.read_segments_back
        self.submissions = runs.submissions
        self.find_submission = runs.find_submission

    def _add_access(self, identity: StoredIdentity, secrets: StoredSecrets) -> None:
        self.tenants = identity.tenants
        self.all_tenants = identity.all_tenants
        self.put_token = identity.put_token
        self.good_tokens = identity.good_tokens
        self.list_tokens = identity.list_tokens
        self.find_token = identity.find_token
        self.revoke_tokens = identity.revoke_tokens
        self.touch_tokens = identity.touch_tokens
        self.create_user = identity.create_user
        self.change_user = identity.change_user
        self.delete_user = identity.delete_user
        self.find_user = identity.find_user
        self.list_users = identity.list_users
        self.put_data_key = secrets.put_data_key
        self.data_keys = secrets.data_keys
        self.data_keys_of_site = secrets.data_keys_of_site
        self.put_secret = secrets.put_secret
        self.delete_secret = secrets.delete_secret
        self.secrets = secrets.secrets

    @property
    def shard(self) -> int:
        """What `claim` claims."""
        return self.database.shard

    def of_shard(self, shard: int) -> Store:
        """The same store for the owner of another shard. Open and close each."""
        return Store(self.database.of_shard(shard))

    async def owner(self) -> str:
        """Who claimed last; empty if nobody has."""
        ((owner,),) = await self.database.rows("owner", shard=self.shard)
        return str(owner)
