"""Packages on workers: who is to have which version, and how far it has come.

Rule 1: an install is an intent that is stored before it is told, told again after each new session, and ended by the
        worker's word alone: its event, or its inventory.
Rule 2: a task whose package no worker has makes an intent, if the version is published: on the worker that the task
        is bound to by a resource or a sticky key, else on the least loaded one that could run it.
Rule 3: when every worker that could run it has failed to install it, the task fails and says why. It would wait for
        ever otherwise.
Rule 4: while tasks wait for a slot and all workers that have the version are full, it is installed on one more worker
        that has a free slot and could run it; one at a time for each version. Not where an operator has removed it,
        and not for tasks that only one worker can run.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch import Demand
from astraflow.core.engine.commands import WantPackage
from astraflow.core.engine.effects import SendInstall
from astraflow.core.engine.lanes import want_package
from astraflow.core.engine.timers import InstallDue
from astraflow.core.engine.view import View, offer_key, package_key, worker_key
from astraflow.core.fleet.installs import (
    INSTALL_TRIES,
    InstallAdvanced,
    InstallConfirmed,
    InstallFailed,
    InstallIntent,
    InstallKey,
    InstallProblem,
    InstallReopened,
    InstallRequested,
    InstallTarget,
    InstallWithdrawn,
    PackageReported,
)
from astraflow.core.fleet.workers import WorkerEntry, WorkerPackageChanged
from astraflow.core.protocol import business
from astraflow.core.runs.commands import Fail
from astraflow.core.runs.facts import TaskFailure, WaitReason
from astraflow.core.workflow.versions import parse_version

INSTALLS = "pkg.install"
"""The feature of a worker that installs what it is told to."""
ON_DEMAND = "demand"
"""Why a version is to be installed: tasks wait for it."""
RETRY_S = 10.0
"""Before an install that failed is retried on the same worker; doubling."""


# -- intents -------------------------------------------------------------------------------------


def request_install(view: View, worker: WorkerEntry, name: str, version: str, why: str) -> None:
    """Have a worker install a version.

    Raises:
        NotFound: it is not published.
    """
    package = view.versions.find(worker.tenant, name, version)
    if package is None:
        raise errors.NotFound(errors.PKG_NOT_FOUND, f"not published: {name} {version}")
    _request(view, worker, name, package.version, "installed", why)


def request_removal(view: View, worker: WorkerEntry, name: str, version: str, why: str) -> None:
    """Have a worker remove a version, when its last attempt has ended."""
    key = parse_version(version)
    held = (one for one in worker.offer.packages.get(name, ()) if parse_version(one) == key)
    _request(view, worker, name, next(held, version), "removed", why)


def _request(
    view: View, worker: WorkerEntry, name: str, version: str, target: InstallTarget, why: str
) -> None:
    key = (worker.tenant, view.at, worker.worker_id, name, version)
    before = view.installs.find((worker.tenant, worker.worker_id, name, version))
    is_under_way = before is not None and before.is_open
    intent = view.record_install(InstallRequested(*key, target, why))
    has_it = worker.has_version(name, version)
    # A worker that is just installing it does not have it yet, and would have it in the end.
    is_so = has_it == (target == "installed") and not is_under_way
    if worker.session_id is not None and is_so:
        view.record_install(InstallConfirmed(*key))  # it is so already
    else:
        assert intent is not None
        _send_intent(view, worker, intent)


def _send_intent(view: View, worker: WorkerEntry, intent: InstallIntent) -> None:
    """Tell a worker that has a session what is intended."""
    if worker.session_id is None:
        return
    if intent.target == "removed":
        uninstall = business.PkgUninstall(intent.name, intent.version)
        view.send(worker.session_id, business.PKG_UNINSTALL, uninstall)
        return
    package = view.versions.find(intent.tenant, intent.name, intent.version)
    if package is None:
        _fail(view, intent, errors.PKG_NOT_FOUND, "it is no longer published")
        return
    view.batch.effects.append(SendInstall(worker.session_id, intent.tenant, package))


def reconcile_packages(view: View, worker: WorkerEntry, *, is_first: bool) -> None:
    """A worker has registered: compare what it has with what is intended, and tell it what is missing.

    Only the first register of a session tells: what was sent in it is under way, and what the worker has let go of
    since is told by its event, which a later register may overtake. Else the two install and remove in a circle.
    """
    for intent in view.installs.of_worker(worker.tenant, worker.worker_id):
        has_it = worker.has_version(intent.name, intent.version)
        if has_it == (intent.target == "installed"):
            if intent.is_open:
                view.record_install(InstallConfirmed(*_of(view, intent)))
        elif is_first and intent.state != "failed":
            # Not yet, or no longer: a worker may have lost what it had.
            if intent.state != "wanted":
                view.record_install(InstallReopened(*_of(view, intent)))
            _send_intent(view, worker, intent)


def _of(view: View, intent: InstallIntent) -> tuple[str, int, str, str, str]:
    return intent.tenant, view.at, intent.worker_id, intent.name, intent.version


# -- what workers tell ---------------------------------------------------------------------------


def on_package_event(view: View, tenant: str, worker_id: str, event: business.PkgEvent) -> None:
    key = (tenant, view.at, worker_id, event.name, event.version)
    view.record_note(PackageReported(*key, event.status, event.progress, bytes(event.details)))
    worker = view.workers.find(tenant, worker_id)
    if worker is not None and event.status in ("installed", "removed"):
        # Events are numbered, registers are not: an old register may have come after a newer one.
        is_installed = event.status == "installed"
        if worker.has_version(event.name, event.version) != is_installed:
            view.record_worker(
                WorkerPackageChanged(
                    tenant, view.at, worker_id, event.name, event.version, is_installed
                )
            )
            view.reconsider(worker)
    intent = view.installs.find((tenant, worker_id, event.name, event.version))
    if intent is not None:
        _on_report(view, intent, event)


def _on_report(view: View, intent: InstallIntent, event: business.PkgEvent) -> None:
    if event.status == "failed":
        _on_failure(view, intent, event)
    elif event.status == intent.target:
        view.record_install(InstallConfirmed(*_of(view, intent)))
    elif event.status == "removed":
        if intent.state == "installed":
            # The worker let an old version go by itself.
            view.record_install(InstallWithdrawn(*_of(view, intent)))
    elif event.status == "installed":
        worker = view.workers.find(intent.tenant, intent.worker_id)
        if intent.state == "removed" and worker is not None:
            # An install that was under way has ended after all.
            view.record_install(InstallReopened(*_of(view, intent)))
            _send_intent(view, worker, intent)
    elif intent.is_open:
        view.record_install(InstallAdvanced(*_of(view, intent), event.status, event.progress))


class _Details(msgspec.Struct):
    code: str = errors.PKG_INSTALL_FAILED.code
    message: str = ""


def _on_failure(view: View, intent: InstallIntent, event: business.PkgEvent) -> None:
    try:
        details = msgspec.json.decode(event.details, type=_Details)
    except msgspec.DecodeError:
        details = _Details()
    code = errors.CATALOGUE.get(details.code, errors.PKG_INSTALL_FAILED)
    if code.retryable and intent.tries + 1 < INSTALL_TRIES:
        problem = InstallProblem(code.code, details.message)
        view.record_install(InstallFailed(*_of(view, intent), problem, is_final=False))
        view.timers.set(view.now + RETRY_S * 2**intent.tries, InstallDue(intent.key))
    else:
        _fail(view, intent, code, details.message)


def _fail(view: View, intent: InstallIntent, code: errors.Code, message: str) -> None:
    problem = InstallProblem(code.code, message)
    view.record_install(InstallFailed(*_of(view, intent), problem, is_final=True))
    # Tasks that wait for it may have it on another worker, or never.
    view.placing.look_again()
    view.queue.wake(package_key(intent.tenant, intent.name))
    view.queue.wake(offer_key(intent.tenant, intent.name))
    view.queue.wake(worker_key(intent.tenant, intent.worker_id))


def on_install_due(view: View, key: InstallKey) -> None:
    """It is time to retry an install."""
    intent = view.installs.find(key)
    worker = view.workers.find(key[0], key[1])
    if intent is not None and worker is not None and intent.state == "wanted":
        _send_intent(view, worker, intent)


# -- on demand -----------------------------------------------------------------------------------


def install_for(view: View, demand: Demand) -> None:
    """Tasks of this demand have no place: if it is for want of the package, have a worker install it."""
    if not view.lanes.is_home(demand.tenant):
        want_package(view, demand)
        return
    name, version = demand.package_name, demand.package_version
    candidates = _candidates(view, demand)
    if any(one.has_version(name, version) for one in candidates):
        return  # they wait for a slot: see `spread`
    if view.versions.find(demand.tenant, name, version) is None:
        return
    intents = [
        (one, view.installs.find((demand.tenant, one.worker_id, name, version)))
        for one in candidates
    ]
    if any(intent is not None and intent.is_installing for _, intent in intents):
        return  # under way
    untried = [one for one, intent in intents if intent is None or intent.state != "failed"]
    if untried:
        view.count("install on demand")
        least = min(untried, key=lambda one: one.load)
        request_install(view, least, name, version, ON_DEMAND)
    elif intents:
        _give_up(view, demand, [intent for _, intent in intents if intent is not None])


def install_wanted(view: View, command: WantPackage) -> None:
    """Tasks of another lane of the tenant wait for a package that no worker has there."""
    tenant, name, version = command.tenant, command.name, command.version
    workers = [
        one
        for one in view.workers.of_tenant(tenant)
        if one.is_reachable and one.pool is None and INSTALLS in one.offer.features
    ]
    state = wanted_state(view, tenant, name, version)
    if state is not None or view.versions.find(tenant, name, version) is None:
        return
    untried = [
        one
        for one in workers
        if (intent := view.installs.find((tenant, one.worker_id, name, version))) is None
        or intent.state != "failed"
    ]
    if untried:
        view.count("install for another lane")
        request_install(view, min(untried, key=lambda one: one.load), name, version, ON_DEMAND)


def wanted_state(
    view: View, tenant: str, name: str, version: str
) -> Literal["installed", "installing"] | InstallProblem | None:
    """How far a package is that another lane wants; None: nobody has begun, or nobody can."""
    failed: InstallProblem | None = None
    could: int = 0
    for worker in view.workers.of_tenant(tenant):
        if not worker.is_reachable or worker.pool is not None:
            continue
        if worker.has_version(name, version):
            return "installed"
        if INSTALLS not in worker.offer.features:
            continue
        intent = view.installs.find((tenant, worker.worker_id, name, version))
        if intent is not None and intent.is_installing:
            return "installing"
        could += 1
        if intent is not None and intent.state == "failed":
            could -= 1
            failed = intent.error or InstallProblem(errors.PKG_INSTALL_FAILED.code)
    return failed if not could else None


def spread(view: View, demand: Demand) -> None:
    """Tasks of this demand wait for a slot: have one more worker install their package, if one could take them."""
    if demand.only is not None or not view.lanes.is_home(demand.tenant):
        return
    name, version, tenant = demand.package_name, demand.package_version, demand.tenant
    idle: list[WorkerEntry] = []
    for worker in view.workers.of_tenant(tenant):
        if not worker.is_reachable:
            continue
        has_room = worker.is_available and worker.has_room_for(demand.node_type)
        intent = view.installs.find((tenant, worker.worker_id, name, version))
        if intent is not None and intent.is_installing:
            return  # under way
        if not has_room or not _could_run(worker, demand):
            continue
        if worker.has_version(name, version):
            return  # it has a place now
        if intent is None or (intent.state == "removed" and intent.why == ON_DEMAND):
            idle.append(worker)
    if idle and view.versions.find(tenant, name, version) is not None:
        view.count("install to spread")
        request_install(view, min(idle, key=lambda one: one.load), name, version, ON_DEMAND)


def _candidates(view: View, demand: Demand) -> list[WorkerEntry]:
    """The workers that could run the task if they had the package."""
    if demand.only is not None:
        bound = view.workers.find(demand.tenant, demand.only)
        workers = [bound] if bound is not None else []
    else:
        workers = view.workers.of_tenant(demand.tenant)
    return [one for one in workers if one.is_reachable and _could_run(one, demand)]


def _could_run(worker: WorkerEntry, demand: Demand) -> bool:
    if worker.pool is not None:
        return False  # nothing is installed in a pool
    offer = worker.offer
    has_package = worker.has_version(demand.package_name, demand.package_version)
    if not has_package and INSTALLS not in offer.features:
        return False
    if not offer.has_runtime(demand.runtime):
        return False
    return all(offer.labels.get(label) == value for label, value in demand.labels)


def _give_up(view: View, demand: Demand, failed: list[InstallIntent]) -> None:
    problem = failed[0].error or InstallProblem(errors.PKG_INSTALL_FAILED.code)
    name = f"{demand.package_name} {demand.package_version}"
    told = (
        f"{name} could not be installed on any of {len(failed)} workers; "
        f"the first: {problem.message}"
    )
    error = TaskFailure(problem.code, "CONFIGURATION", told, retryable=False)
    for entry in view.queue.waiting_with(demand):
        run = view.runs.find_waiting(entry.run_id, entry.task)
        if run is not None:
            view.queue.forget(entry.run_id, entry.task)
            view.decide(run, Fail(entry.task, error))


def why_no_package(view: View, demand: Demand) -> WaitReason | None:
    """What is being done so that the demand has a place, if something is."""
    name, version = demand.package_name, demand.package_version
    for worker in _candidates(view, demand):
        intent = view.installs.find((demand.tenant, worker.worker_id, name, version))
        if intent is None or not intent.is_installing:
            continue
        doing = "waits to install" if intent.state == "wanted" else f"is {intent.state}"
        trouble = f" again, after: {intent.error.message}" if intent.error is not None else ""
        return WaitReason("package", f"worker {worker.worker_id} {doing} {name} {version}{trouble}")
    return None
