"""A `Store` over a database, composed of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from astraflow.store.events import StoredEvents
from astraflow.store.packages import StoredPackages
from astraflow.store.runs import StoredRuns
from astraflow.store.sweeper import Sweeper
from astraflow.store.workers import StoredWorkers
from astraflow.store.workflows import StoredWorkflows

if TYPE_CHECKING:
    from astraflow.store.database import Database
    from astraflow.store.store import Store

D = TypeVar("D", bound="Database")


class ComposedStore(Generic[D]):
    """Which part answers what. All methods of `Store` are here by name, and nothing else is."""

    def __init__(self, database: D) -> None:
        self.database = database
        self.open = database.open
        self.close = database.close
        self.claim = database.claim
        self.owner = database.owner
        self.renew = database.renew
        self.release = database.release
        self.commit = database.commit
        self.is_committed = database.is_committed

        runs = StoredRuns(database)
        self.active_runs = runs.active_runs
        self.find_run = runs.find_run
        self.list_runs = runs.list_runs
        self.find_plan = runs.find_plan
        self.read_segments = runs.read_segments
        self.submissions = runs.submissions
        self.find_submission = runs.find_submission

        workers = StoredWorkers(database)
        self.workers = workers.workers
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

        workflows = StoredWorkflows(database)
        self.put_workflow = workflows.put_workflow
        self.delete_workflow = workflows.delete_workflow
        self.find_workflow = workflows.find_workflow
        self.list_workflows = workflows.list_workflows

        events = StoredEvents(database)
        self.event_heads = events.event_heads
        self.tenant_events = events.tenant_events
        self.audit = events.audit

        sweeper = Sweeper(database)
        self.sweep = sweeper.sweep
        self.usage = sweeper.usage


if TYPE_CHECKING:

    def _is_a_store(store: ComposedStore[Database]) -> Store:
        return store
