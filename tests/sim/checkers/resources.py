"""Resources and packages: I16 (where a task goes), I18 (nothing leaks), I19 (every install intent ends), I20 (rows),
I25 (what was made again has been through all that lies between).

What workers really keep is known to the world alone. It is held against what the rows say, once all is quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from astraflow.core.fleet.resources import GONE
from astraflow.core.runs.facts import TaskFailed, TaskRebuilt
from astraflow.core.workflow.plan import Feature, find_resource_refs
from astraflow.scheduler.fleet_rows import install_row, resource_row
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.core.engine.batch import Batch
    from astraflow.core.engine.view import View
    from astraflow.core.protocol import business
    from astraflow.core.workflow.plan import Plan
    from tests.sim.checkers.state import StateChecker
    from tests.sim.keeping import Kept
    from tests.sim.store import Store
    from tests.sim.worker import WorkerProcess
    from tests.sim.world import World

__all__ = ["ResourceChecker"]

Trouble = tuple[str, str]
"""The invariant that does not hold yet, and how."""


class ResourceChecker:
    """Watches what is made, used, lost and made again."""

    def __init__(self, world: World, store: Store, state: StateChecker) -> None:
        self.world = world
        self.store = store
        self.state = state
        self._copied: dict[tuple[str, str], None] = {}
        store.on_commit.append(self.on_commit)
        store.on_rows.append(self.on_rows)

    # -- told by the world ------------------------------------------------------------------

    def on_start(self, worker: WorkerProcess, dispatch: business.Dispatch) -> None:
        """I16: a task that uses a resource is only ever leased to the worker that holds it, or to one that is told
        where its copy is."""
        copied = {
            ref.resource_id
            for ref in dispatch.resource_refs
            if b"copyUrl" in bytes(ref.metadata) and self._has_copy(worker.tenant, ref.resource_id)
        }
        for ref in find_resource_refs(bytes(dispatch.parameters)):
            if ref.resource_id in copied or ref.resource_id in worker.keeping.fetched:
                continue
            holders = [ref.worker_id] if ref.worker_id is not None else []
            holders = holders or self._holders(worker.tenant, ref.resource_id)
            if holders and worker.worker_id not in holders:
                raise Violation(
                    "I16",
                    f"{dispatch.task_id} uses {ref.resource_id} of {holders}, "
                    f"and went to {worker.worker_id}",
                )

    def _has_copy(self, tenant: str, resource_id: str) -> bool:
        """Whether it has one, or had one: its worker may have come back with it since the dispatch was made."""
        return (tenant, resource_id) in self._copied

    def _holders(self, tenant: str, resource_id: str) -> list[str]:
        return [
            row.worker_id
            for row in self.store.resources.values()
            if row.tenant == tenant and row.resource_id == resource_id and row.state not in GONE
        ]

    def on_use(self, worker: WorkerProcess, dispatch: business.Dispatch) -> None:
        """I25: what was made again has been through everything that lies between its maker and this task."""
        plan = self.store.runs[dispatch.run_id].plan
        if Feature.JOIN_ANY in plan.features:
            return  # a task may begin before all that is upstream of it
        here = plan.index[dispatch.node_id]  # type: ignore[index]
        for ref in dispatch.resource_refs:
            one = worker.keeping.kept.get(ref.resource_id)
            if one is not None and one.run_id == dispatch.run_id:
                self._check_marks(plan, here, one, dispatch)

    def _check_marks(self, plan: Plan, here: int, one: Kept, dispatch: business.Dispatch) -> None:
        maker = plan.index[one.node_id]  # type: ignore[index]
        for index in _changers(plan, maker, here):
            if plan.nodes[index].node_id not in one.marks:
                raise Violation(
                    "I25",
                    f"{dispatch.task_id} is given {one.resource_id}, which node {index} has not seen",
                )

    def on_cleanup(self, worker: WorkerProcess, scope: str) -> None:
        ended_at = self.state.finished_at.get(scope)
        if ended_at is not None and ended_at < worker.ready_at:
            self.world.sometimes("cleanup owed after reconnect")

    def on_commit(self, batch: Batch) -> None:
        for one in batch.facts:
            cause = ""
            if isinstance(one.fact, TaskRebuilt):
                self.world.sometimes("rebuilt")
                cause = one.fact.cause
            elif isinstance(one.fact, TaskFailed):
                cause = one.fact.error.message
            if "evicted it" in cause:
                self.world.sometimes("evicted while waited for")

    def on_rows(self, changes: object) -> None:
        for resource in changes.resources:  # type: ignore[attr-defined]
            if resource.blob is not None:
                self._copied[resource.tenant, resource.resource_id] = None
        for row in changes.intents:  # type: ignore[attr-defined]
            others = [
                other
                for other in self.store.intents.values()
                if (other.tenant, other.name, other.version) == (row.tenant, row.name, row.version)
                and other.worker_id != row.worker_id
            ]
            if row.state == "wanted" and any(other.state == "failed" for other in others):
                self.world.sometimes("install failed and tried elsewhere")

    # -- asked by the world -----------------------------------------------------------------

    def trouble(self, view: View | None, workers: list[WorkerProcess]) -> Trouble | None:
        """What is not as it must be once the world is healed and quiet."""
        gone = {(worker.tenant, worker.worker_id) for worker in workers if worker.is_gone}
        for intent in self.store.intents.values():
            is_open = intent.state not in ("installed", "removed", "failed")
            if is_open and (intent.tenant, intent.worker_id) not in gone:
                return (
                    "I19",
                    f"the intent for {intent.name} on {intent.worker_id} is {intent.state}",
                )
        installed = {
            (worker.tenant, worker.worker_id, *key)
            for worker in workers
            for key in worker.keeping.installed
        }
        for key, intent in self.store.intents.items():
            is_settled = intent.state != "failed" and key[:2] not in gone
            if is_settled and (key in installed) != (intent.state == "installed"):
                return "I19", f"{intent.worker_id} does not have {intent.name} {intent.state}"
        for worker in workers:
            found = None if worker.is_gone else self._trouble_of(worker)
            if found is not None:
                return found
        return ("I20", "nobody serves") if view is None else self._differs(view)

    def trouble_of_forgotten(self, tenant: str, worker_id: str) -> Trouble | None:
        """What is left of a worker that never came back and was forgotten for it: nothing may be."""
        for (of, holder, resource_id), row in self.store.resources.items():
            if (of, holder) == (tenant, worker_id) and row.state not in GONE:
                return "I18", f"{resource_id} of {worker_id}, which is forgotten, is {row.state}"
        for of, holder, name, _ in self.store.intents:
            if (of, holder) == (tenant, worker_id):
                return "I19", f"an intent for {name} on {worker_id}, which is forgotten, is left"
        return None

    def _trouble_of(self, worker: WorkerProcess) -> Trouble | None:
        if worker.agent is None:
            return "I24", f"{worker.name} is not there"
        if len(worker.agent._notices):
            return "I24", f"{worker.name} has not told all"
        rows = {
            row.resource_id: row
            for row in self.store.resources.values()
            if (row.tenant, row.worker_id) == (worker.tenant, worker.worker_id)
            and row.state not in GONE
        }
        for resource_id, one in worker.keeping.kept.items():
            row = rows.pop(resource_id, None)
            if row is None:
                return "I20", f"{worker.name} keeps {resource_id}, of which no row says so"
            is_of_run = one.scope == one.run_id and one.run_id in self.state.finished
            if is_of_run and not row.is_artifact:
                return "I18", f"{worker.name} keeps {resource_id} of an ended run"
        for resource_id, row in rows.items():
            # A worker that dies before it was heard does not say again what it has let go of: it is asked after the
            # end of the run, and of nothing else.
            is_of_run = row.scope == row.run_id and not row.is_artifact
            if worker.incarnation == 1 or is_of_run:
                return "I18", f"{worker.name} has no {resource_id}, and its row says so"
        return None

    def _differs(self, view: View) -> Trouble | None:
        """I20: a scheduler that starts now must know what this one knows."""
        store = self.store
        held = {one.key: resource_row(one) for one in view.resources}
        stored = {key: row for key, row in store.resources.items() if row.state not in GONE}
        if held != stored:
            return "I20", f"the rows of resources are not the view's: {stored} {held}"
        intents = {
            one.key: msgspec.structs.replace(install_row(one), updated_at=0)
            for one in view.installs
        }
        rows = {
            key: msgspec.structs.replace(row, updated_at=0) for key, row in store.intents.items()
        }
        if intents != rows:
            return "I20", f"the rows of install intents are not the view's: {rows} {intents}"
        for tenant, key in view.affinity._records.keys() | store.affinities.keys():
            now, then = view.affinity.lookup(tenant, key), store.affinities.get((tenant, key))
            if now is None or then is None or now.worker_id != then.worker_id:
                return "I20", f"the row of affinity {key} is not the view's: {then} {now}"
        return None


def _changers(plan: Plan, maker: int, here: int) -> list[int]:
    """The nodes between a maker and another node that change what it made."""
    upstream: dict[int, None] = {}
    pending = list(plan.parents[here])
    while pending:
        index = pending.pop()
        if index not in upstream:
            upstream[index] = None
            pending.extend(plan.parents[index])
    return [
        index
        for index in sorted(upstream)
        if plan.nodes[index].type == "sim.change" and maker_of(plan, index) == maker
    ]


def maker_of(plan: Plan, index: int) -> int | None:
    """The node that makes what this one uses, by the way the reference takes."""
    while plan.nodes[index].type != "sim.make":
        source = next(
            (edge.source for edge in plan.nodes[index].inputs if edge.write == ("use",)), None
        )
        if source is None:
            return None
        index = source
    return index
