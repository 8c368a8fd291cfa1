"""The view: everything an engine knows about the runs that are active, and the open batch.

Facts are folded into it as they are decided. What the facts demand of the tables (queue, leases, slots, keys)
is done at once, because the next decision of the same batch builds on it: a task that became ready by a result
is leased in the same transaction. What the outside sees of it waits for the commit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from astraflow.core.dispatch import KeyTable, LeaseTable, ReadyQueue
from astraflow.core.dispatch.blocks import MIN_BLOCK
from astraflow.core.dispatch.demand import bind_task, conflict_of, demand_of, lock_of
from astraflow.core.engine.active_runs import ActiveRuns
from astraflow.core.engine.batch import Batch, FleetChange, NumberedFact
from astraflow.core.engine.calls import answer_call, lend_slot, refuse_call
from astraflow.core.engine.effects import AskWorker, EndPush, ReadList, SendStop, StoreValue
from astraflow.core.engine.lanes import LaneTable
from astraflow.core.engine.placement_notes import PlacementNotes
from astraflow.core.engine.sent_frames import SentFrames
from astraflow.core.engine.settings import EngineSettings
from astraflow.core.engine.submissions import Submissions
from astraflow.core.engine.timers import CallDue, CleanupDue, ParkedDue, StopDue, Timers
from astraflow.core.engine.waiting_tasks import queue_together
from astraflow.core.expressions import ExpressionError
from astraflow.core.expressions.stored_value import VALUE_TYPE
from astraflow.core.facts_version import FIRST_FACTS
from astraflow.core.fleet.affinity import (
    AffinityAcquired,
    AffinityFact,
    AffinityReleased,
    AffinityTable,
)
from astraflow.core.fleet.facts import Audited, FleetFact
from astraflow.core.fleet.installs import InstallFact, InstallIntent, InstallTable
from astraflow.core.fleet.resources import ResourceFact, ResourceRecord, ResourceTable
from astraflow.core.fleet.rollouts import RolloutFact, RolloutRecord, RolloutTable
from astraflow.core.fleet.tenants import TenantFact, TenantRecord, TenantTable
from astraflow.core.fleet.versions import ActiveVersionRecord, VersionActivated, VersionTable
from astraflow.core.fleet.workers import WorkerEntry, WorkerFact, WorkerTable
from astraflow.core.ids import NO_SESSION, SessionId, TaskId, is_pool
from astraflow.core.protocol.business import RESOURCE_CLEANUP, ResourceCleanup
from astraflow.core.protocol.business import ExecCancel as CancelFrame
from astraflow.core.protocol.wire import Wire
from astraflow.core.runs.commands import RunCommand
from astraflow.core.runs.conditions import expression_failure
from astraflow.core.runs.consequences import (
    AnswerCall,
    AttemptOver,
    Consequence,
    EnqueueTask,
    FinishRun,
    LendSlot,
    RefuseCall,
    StopAttempt,
    StoreCollected,
    UnqueueTask,
    WatchParked,
)
from astraflow.core.runs.decision import Decision
from astraflow.core.runs.decisions import decide
from astraflow.core.runs.facts import CallOpened, Fact, ScopeOpened
from astraflow.core.runs.keys import affinity_of, concurrency_key, next_affinity
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.scope_opening import awaited_list
from astraflow.core.runs.scope_rules import collected_list
from astraflow.core.runs.value_checks import input_failure
from astraflow.core.workflow.plan import AffinityHint, ResourceRefValue

if TYPE_CHECKING:
    from random import Random

_R = TypeVar("_R")
_ADDS_TASKS: Final = frozenset({CallOpened, ScopeOpened})


def worker_key(tenant: str, worker_id: str) -> Hashable:
    """What tasks that only one worker can run sleep on."""
    return ("worker", tenant, worker_id)


def package_key(tenant: str, package: str) -> Hashable:
    """What tasks that any worker with the package can run sleep on until one has room."""
    return ("package", tenant, package)


def label_key(tenant: str, name: str, value: str) -> Hashable:
    """Room on a worker with this label: what asks for one sleeps on it alone."""
    return ("label", tenant, name, value)


def offer_key(tenant: str, package: str) -> Hashable:
    """What tasks that no worker with the package can run sleep on until there is another one."""
    return ("offer", tenant, package)


def tenant_key(tenant: str) -> Hashable:
    """What the tasks of a suspended tenant sleep on."""
    return ("tenant", tenant)


def key_key(tenant: str, key: str) -> Hashable:
    """What tasks that need a concurrency key sleep on until it is given back."""
    return ("key", tenant, key)


class View:
    """The state of one engine. `now` (monotonic) and `at` (wall, ms) are those of the present input."""

    def __init__(self, settings: EngineSettings, rng: Random, now: float) -> None:
        self.settings = settings
        self.rng = rng
        self.now = now
        self.at = 0
        self.cause: str | None = None  # the id of the frame or command that is being decided
        self.batch = Batch()
        self.runs = ActiveRuns()
        self.workers = WorkerTable()
        self.queue = ReadyQueue()
        self.leases = LeaseTable()
        self.keys = KeyTable()
        self.affinity = AffinityTable()
        self.resources = ResourceTable()
        self.installs = InstallTable()
        self.lanes = LaneTable()
        self.rollouts = RolloutTable()
        self.versions = VersionTable()
        self.tenants = TenantTable()
        self.placing = PlacementNotes()
        self.sent = SentFrames()
        self.submissions = Submissions(settings.remember_submissions_s)
        self.is_parked = False
        """Whether no task is placed (`core.cluster.parking`)."""
        self.counters: dict[str, int] = {}
        self.timers = Timers()
        self._began = now  # from when on workers can have been heard
        self._written = FIRST_FACTS

    def count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    def may_write(self, facts_version: int) -> bool:
        """Whether all nodes read facts of this version (`core.facts_version`)."""
        return facts_version <= self._written

    def let_write(self, facts_version: int) -> None:
        """All nodes read facts up to this version: it never falls."""
        self._written = max(self._written, facts_version)

    # -- what becomes true of the fleet --------------------------------------------------------

    def record_worker(self, fact: WorkerFact) -> WorkerEntry:
        worker = self.workers.apply(fact)
        self.batch.fleet.append(FleetChange(fact, worker.state, self.cause))
        return worker

    def record_resource(self, fact: ResourceFact) -> ResourceRecord:
        return self._recorded(fact, self.resources.apply(fact))

    def record_install(self, fact: InstallFact) -> InstallIntent | None:
        return self._recorded(fact, self.installs.apply(fact))

    def record_rollout(self, fact: RolloutFact) -> RolloutRecord:
        return self._recorded(fact, self.rollouts.apply(fact))

    def record_active(self, fact: VersionActivated) -> ActiveVersionRecord:
        return self._recorded(fact, self.versions.apply(fact))

    def record_tenant(self, fact: TenantFact) -> TenantRecord:
        return self._recorded(fact, self.tenants.apply(fact))

    def record_affinity(self, fact: AffinityFact) -> None:
        self.affinity.apply(fact, self.now)
        self._recorded(fact, None)

    def _recorded(self, fact: FleetFact, after: _R) -> _R:
        self.batch.fleet.append(FleetChange(fact, after, self.cause))
        return after

    def record_note(self, fact: FleetFact) -> None:
        """Record a fact that changes no record: readers see it as an event."""
        self.batch.fleet.append(FleetChange(fact, None, self.cause))

    def audit(
        self,
        tenant: str,
        who: str,
        action: str,
        corr: str | None = None,
        code: str | None = None,
        worker_id: str = "",
        session_id: SessionId = NO_SESSION,
        subject: str = "",
        at: int | None = None,
        sent_id: str = "",
    ) -> None:
        """Keep who did what, with the facts of the same batch (PROTOCOL §6); `code`: why it was refused; `subject`:
        what it was done to."""
        at = self.at if at is None else at
        self.record_note(
            Audited(tenant, at, who, action, corr, code, worker_id, session_id, subject, sent_id)
        )

    # -- what becomes true of runs ---------------------------------------------------------------

    def decide(self, run: RunRecord, command: RunCommand) -> Decision:
        """Decide, fold, and do what the decision demands of the tables."""
        decision = decide(run, command, self.at, self.rng)
        if decision.ignored is not None:
            self.count(decision.ignored)
        self.apply(decision)
        return decision

    def apply(self, decision: Decision) -> None:
        """Put the facts of a decision into the batch and carry out its effects on the tables."""
        run = decision.run
        first = decision.first
        facts = self.batch.facts
        for fact, last in zip(decision.facts, decision.lasts, strict=True):
            facts.append(NumberedFact(run.run_id, first, last, fact, self.cause, run))
            first = last + 1
            if type(fact) in _ADDS_TASKS:
                self._count_added(run, fact)
        consequences: Iterable[Consequence] = decision.consequences
        if len(decision.consequences) >= MIN_BLOCK:
            consequences = queue_together(self, run, consequences)
        for consequence in consequences:
            if isinstance(consequence, EnqueueTask):
                self.enqueue(run, consequence.task, consequence.delay_s)
            elif isinstance(consequence, AttemptOver):
                self.end_attempt(run, consequence.task, consequence.attempt)
            elif isinstance(consequence, StopAttempt):
                self.stop_attempt(run, consequence)
            elif isinstance(consequence, UnqueueTask):
                self.queue.forget(run.run_id, consequence.task)
            elif isinstance(consequence, AnswerCall):
                answer_call(self, run, consequence.call)
                self.timers.end(run.task_id(consequence.call))
            elif isinstance(consequence, RefuseCall):
                refuse_call(self, run, consequence)
            elif isinstance(consequence, LendSlot):
                lend_slot(self, run, consequence)
            elif isinstance(consequence, WatchParked):
                self.watch_parked(run, consequence.task, consequence.left_ms)
            elif isinstance(consequence, StoreCollected):
                value = collected_list(run, consequence.task)
                effect = StoreValue(run.tenant, run.run_id, consequence.task, value)
                self.batch.effects.append(effect)
            elif isinstance(consequence, FinishRun):
                self._finish(run)
            else:
                assert_never(consequence)

    def _count_added(self, run: RunRecord, fact: Fact) -> None:
        """A run has more tasks than its plan has nodes: calls of middlewares, or the bodies of maps and loops."""
        if isinstance(fact, CallOpened):
            self.runs.add_call(fact.call_id, run, fact.task)
            self.watch_call(fact)
        else:
            self.runs.count_tasks(run)

    def watch_parked(self, run: RunRecord, task: int, left_ms: int) -> None:
        """Look at a parked task when its time has come."""
        self.timers.set(self.now + left_ms / 1000, ParkedDue(run.tenant, run.task_id(task)))

    def watch_call(self, call: CallOpened) -> None:
        """Look at a call again when its caller waits no longer."""
        if call.timeout_ms is not None:
            self.timers.set(self.now + call.timeout_ms / 1000, CallDue(call.call_id))

    def enqueue(self, run: RunRecord, task: int, delay_s: float) -> None:
        """Queue a task that may run, or fail it if it can never have a place."""
        node = run.tasks[task].node
        if node.control is not None:
            self._read_list(run, task)
            return
        try:
            parameters, refs = bind_task(run, task)
            hint = node.affinity if node.affinity is None else next_affinity(run, task)
            lock = None if node.concurrency_key is None else lock_of(run, task)
        except ExpressionError as error:
            self.placing.unplaceable.append((run, task, expression_failure(error)))
            return
        misfit = input_failure(run, task, parameters)
        if misfit is not None:
            self.placing.unplaceable.append((run, task, misfit))
            return
        if refs:
            refs = self.locate(run.tenant, refs)
            if any(ref.worker_id is None for ref in refs):
                # The worker that holds it may come back before the task has a place.
                self.placing.unpinned.add(run.run_id)
            conflict = conflict_of(refs)
            if conflict is not None:
                # Failing it here would decide inside a decision; the engine does so right after it.
                self.placing.unplaceable.append((run, task, conflict))
                return
        sticky = None if hint is None else self.sticky_worker(run.tenant, hint)
        self.queue.push(
            run.run_id,
            task,
            demand_of(run, task, refs, sticky),
            priority=node.priority,
            ready_at=self.now + delay_s if delay_s > 0 else None,
            lock=lock,
            affinity=hint,
        )

    def _read_list(self, run: RunRecord, task: int) -> None:
        """A map waits for its list: no worker has to do anything about it."""
        resource_id = awaited_list(run, task)
        assert resource_id is not None, "a node of the scheduler is queued for nothing else"
        holders = self.resources.holders(run.tenant, resource_id)
        copy = next((one.blob for one in holders if one.blob is not None), None)
        effect = ReadList(run.tenant, run.run_id, task, resource_id, copy)
        self.batch.effects.append(effect)

    def sticky_worker(self, tenant: str, hint: AffinityHint) -> str | None:
        """The one worker that a task must go to for its affinity key, whoever else could run it."""
        if hint.mode != "sticky":
            return None
        record = self.affinity.lookup(tenant, hint.key)
        return record.worker_id if record is not None else None

    def locate(self, tenant: str, refs: Sequence[ResourceRefValue]) -> Sequence[ResourceRefValue]:
        """The references, each with the worker that holds it now.

        That is the one it names, unless that one did not come back and the resource has a copy: then it is any worker
        that has fetched the copy, or none yet. One that names no worker is where the resource is known to be.
        """
        return [self._located(tenant, ref) for ref in refs]

    def _located(self, tenant: str, ref: ResourceRefValue) -> ResourceRefValue:
        if ref.type == VALUE_TYPE and self._has_copy(tenant, ref.resource_id):
            # Any worker can read it: it binds nothing to the one that made it.
            return ResourceRefValue(ref.resource_id, None, ref.type, ref.scope)
        if ref.worker_id is not None:
            named = self.resources.find(tenant, ref.resource_id, ref.worker_id)
            if named is None or not self.resources.is_adrift(named):
                return ref
        holders = self.resources.holders(tenant, ref.resource_id)
        there = next((one for one in holders if not self.resources.is_adrift(one)), None)
        if there is None and ref.worker_id is None and not holders:
            return ref
        kind = ref.type or (holders[0].type if holders else None)
        worker_id = None if there is None else there.worker_id
        return ResourceRefValue(ref.resource_id, worker_id, kind, ref.scope)

    def _has_copy(self, tenant: str, resource_id: str) -> bool:
        return any(one.blob is not None for one in self.resources.holders(tenant, resource_id))

    def copy_of(self, tenant: str, ref: ResourceRefValue) -> ResourceRecord | None:
        """The resource behind a reference that no worker holds any more, if it has a copy."""
        if ref.worker_id is not None:
            return None
        holders = self.resources.holders(tenant, ref.resource_id)
        return next((one for one in holders if one.blob is not None), None)

    def send(self, session_id: SessionId, frame_type: str, payload: Wire) -> None:
        """Ask a worker for something, after the commit."""
        self.batch.effects.append(AskWorker(session_id, frame_type, payload))

    def lost_until(self, worker: WorkerEntry, grace_s: float) -> float:
        """Until when a worker that is away has time to come back: the grace counts from its last word."""
        heard = worker.heard_mono if worker.heard_mono is not None else self._began
        return max(self.now, heard + grace_s)

    def acquire(self, tenant: str, key: str, worker_id: str) -> None:
        """The key belongs to the worker, at least for as long as a key lives unused; unless another worker has it."""
        ttl_s = self.settings.affinity_ttl_s
        record = self.affinity.lookup(tenant, key)
        if record is None or (
            record.worker_id == worker_id and record.stored_until < self.now + ttl_s / 2
        ):
            age_s = 0.0 if record is None else self.now - record.acquired_at
            self.record_affinity(
                AffinityAcquired(
                    tenant,
                    self.at,
                    key,
                    worker_id,
                    self.at - int(age_s * 1000),
                    self.at + int(ttl_s * 1000),
                )
            )
        self.affinity.begin_use(tenant, key, worker_id, self.now + ttl_s)

    def release(self, tenant: str, key: str) -> None:
        """An affinity key is gone: what waited for its worker may go anywhere."""
        self.record_affinity(AffinityReleased(tenant, self.at, key))
        self.unbind(tenant, key)

    def unbind(self, tenant: str, key: str) -> None:
        for run_id, task in self.queue.sticky_to(tenant, key):
            self.queue.set_demand(run_id, task, sticky=None)

    def end_scope(self, tenant: str, scope: str) -> None:
        """A run has ended: every worker that holds something of it may let it go."""
        holders = {one.worker_id for one in self.resources.of_scope(tenant, scope)}
        for worker_id in sorted(holders):
            self.owe_cleanup(tenant, worker_id, scope)

    def owe_cleanup(self, tenant: str, worker_id: str, scope: str) -> None:
        worker = self.workers.find(tenant, worker_id)
        if worker is not None and worker.session_id is not None:
            cleanup = ResourceCleanup(scope=scope, reason="its run has ended")
            self.send(worker.session_id, RESOURCE_CLEANUP, cleanup)
            due = self.now + self.settings.cleanup_overdue_s
            self.timers.set(due, CleanupDue(tenant, worker_id, scope))

    def end_attempt(self, run: RunRecord, task: int, attempt: int) -> None:
        """Give back what an attempt held."""
        lease = self.leases.end(run.task_id(task), attempt)
        if lease is None:
            # It was lost, and its report came all the same: what waits is its next attempt.
            self.queue.forget(run.run_id, task)
            return
        self.timers.end(lease.task_id, attempt)
        self.sent.forget(lease)
        worker = lease.worker
        if worker.is_pool:
            self.batch.effects.append(EndPush(lease.task_id, attempt))
        node = run.tasks[task].node
        if not lease.is_lent:
            self.workers.free_slot(worker, node.type, node.resources)
        key = None if node.concurrency_key is None else concurrency_key(run, task)
        if key is not None:
            self.keys.give_back(run.tenant, key, lease.task_id)
            self.queue.wake(key_key(run.tenant, key))
        hint = None if node.affinity is None else affinity_of(run, task)
        if hint is not None:
            ends_at = self.now + self.settings.affinity_ttl_s
            self.affinity.end_use(run.tenant, hint.key, lease.worker_id, ends_at)
        self.wake_for(worker)

    def reconsider(self, worker: WorkerEntry) -> None:
        """The worker was lost or came back: what only it can run waits for something else now."""
        self.queue.wake(worker_key(worker.tenant, worker.worker_id))
        for package in worker.offer.packages:
            self.queue.wake(offer_key(worker.tenant, package))
        self.wake_for(worker)

    def wake_for(self, worker: WorkerEntry) -> None:
        """The worker may have a place for tasks that had none."""
        if not self.queue.has_sleepers or not worker.is_available:
            return
        self.queue.wake(worker_key(worker.tenant, worker.worker_id))
        for package in worker.offer.packages:
            self.queue.wake(package_key(worker.tenant, package))
        for name, value in worker.offer.labels.items():
            self.queue.wake(label_key(worker.tenant, name, value))

    def stop_attempt(self, run: RunRecord, effect: StopAttempt) -> None:
        """Ask the worker after the commit, and look again when it should have answered. An HTTP worker is told in the
        answer to its next report, and its grace counts from there."""
        if is_pool(effect.worker):
            return
        task_id = run.task_id(effect.task)
        self.owe_stop(run, task_id, effect)
        overdue = self.now + effect.grace_ms / 1000 + self.settings.stop_overdue_s
        self.timers.set(overdue, StopDue(task_id, effect.attempt))

    def owe_stop(self, run: RunRecord, task_id: TaskId, effect: StopAttempt) -> None:
        """Send the cancel on the session that the worker has now. One without a session is told when it
        comes back: "nothing S→W lives only in a window" (PROTOCOL §5.7)."""
        worker = self.workers.find(run.tenant, effect.worker)
        if worker is None or worker.session_id is None:
            return
        frame = CancelFrame(run.run_id, task_id, effect.attempt, effect.why, effect.grace_ms)
        self.batch.effects.append(SendStop(frame, worker.session_id))

    def _finish(self, run: RunRecord) -> None:
        """The run is over: nothing of it stays in memory but the answer to a repeated submission."""
        self.queue.forget_run(run.run_id)
        for call in run.calls.values():
            opened = run.tasks[call].call
            assert opened is not None
            self.timers.end(opened.call_id)
        self.placing.forget_run(run.run_id)
        self.end_scope(run.tenant, run.run_id)
        self.timers.end(run.run_id)
        self.runs.remove(run)
