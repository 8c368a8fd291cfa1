"""Packages on workers: who is to have which version, and how far it has come.

Rule 1: an install is a wish that is stored before it is told, told again after each new session, and ended by the
        worker's word alone: its event, or its inventory.
Rule 2: a task whose package no worker has makes a wish, if the repository has the version: on the worker that the task
        is bound to by a resource or a sticky key, else on the least loaded one that could run it.
Rule 3: when every worker that could run it has failed to install it, the task fails and says why. It would wait for
        ever otherwise.
Rule 4: while tasks wait for a slot and all workers that have the version are full, it is installed on one more worker
        that has a free slot and could run it; one at a time for each version. Not where an operator has removed it,
        and not for tasks that only one worker can run.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from astraflow.core import errors
from astraflow.core.dispatch import Demand, WorkerEntry
from astraflow.core.dispatch.wishes import INSTALL_TRIES, Wish, WishKey
from astraflow.core.engine.batch import PackageTold, WishChanged
from astraflow.core.engine.timers import WishDue
from astraflow.core.engine.view import View, offer_key, package_key, worker_key
from astraflow.core.protocol import business
from astraflow.core.runs.commands import Fail
from astraflow.core.runs.facts import Problem, WaitingFor
from astraflow.core.workflow.versions import parse_version

__all__ = [
    "PackageSource",
    "Sources",
    "install_for",
    "on_package_event",
    "on_wish_due",
    "owe_packages",
    "spread",
    "why_no_package",
    "wish_installed",
    "wish_removed",
]

INSTALLS = "pkg.install"
"""The feature of a worker that installs what it is told to."""
ON_DEMAND = "demand"
"""Why a version was wished: tasks wait for it."""
RETRY_S = 10.0
"""Before an install that failed is tried again on the same worker; doubling."""


class PackageSource(msgspec.Struct, frozen=True):
    """Where a worker gets a version from, and how it knows that it got the right one."""

    version: str
    """As it was published: whoever asks may spell the same version in another way."""
    url: str
    sha256: str
    signature: str | None = None


Sources = Callable[[str, str, str], PackageSource | None]
"""By tenant, name and version: what the repository has."""


# -- wishing -----------------------------------------------------------------------------------


def wish_installed(view: View, worker: WorkerEntry, name: str, version: str, why: str) -> Wish:
    """Have a worker install a version.

    Raises:
        NotFound: the repository does not have it.
    """
    source = view.sources(worker.tenant, name, version)
    if source is None:
        raise errors.NotFound(errors.PKG_NOT_FOUND, f"not published: {name} {version}")
    return _wish(view, worker, name, source.version, "installed", why)


def wish_removed(view: View, worker: WorkerEntry, name: str, version: str, why: str) -> Wish:
    """Have a worker remove a version, when its last attempt has ended."""
    key = parse_version(version)
    held = (one for one in worker.offer.packages.get(name, ()) if parse_version(one) == key)
    return _wish(view, worker, name, next(held, version), "removed", why)


def _wish(view: View, worker: WorkerEntry, name: str, version: str, what: str, why: str) -> Wish:
    key = (worker.tenant, worker.worker_id, name, version)
    wish = Wish(key, "installed" if what == "installed" else "removed", why, view.at)
    view.wishes.put(wish)
    has_it = version in worker.offer.packages.get(name, ())
    if worker.session_id is not None and has_it == (what == "installed"):
        wish.state = wish.wish  # it is so already
    view.batch.notices.append(WishChanged(key))
    _owe(view, worker, wish)
    return wish


def _owe(view: View, worker: WorkerEntry, wish: Wish) -> None:
    if worker.session_id is None or not wish.is_open:
        return
    if wish.wish == "removed":
        uninstall = business.PkgUninstall(wish.name, wish.version)
        view.send(worker.session_id, business.PKG_UNINSTALL, uninstall)
        return
    source = view.sources(wish.tenant, wish.name, wish.version)
    if source is None:
        _end(view, wish, errors.PKG_NOT_FOUND, "it is no longer published")
        return
    install = business.PkgInstall(
        wish.name, wish.version, source.url, source.sha256, source.signature
    )
    view.send(worker.session_id, business.PKG_INSTALL, install)


def owe_packages(view: View, worker: WorkerEntry, *, is_first: bool) -> None:
    """A worker has registered: compare what it has with what is wished, and tell it what is missing.

    Only the first register of a session tells: what was sent in it is under way, and what the worker has let go of
    since is told by its event, which a later register may overtake. Else the two install and remove in a circle.
    """
    for wish in view.wishes.of_worker(worker.tenant, worker.worker_id):
        has_it = wish.version in worker.offer.packages.get(wish.name, ())
        if has_it == (wish.wish == "installed"):
            if wish.is_open:
                _fulfil(view, wish)
        elif is_first and wish.state != "failed":
            # Not yet, or no longer: a worker may have lost what it had.
            wish.state = "wanted"
            _owe(view, worker, wish)


def _fulfil(view: View, wish: Wish) -> None:
    wish.state = wish.wish
    wish.error = None
    wish.progress = None
    wish.updated_at = view.at
    view.batch.notices.append(WishChanged(wish.key))


# -- what workers tell ---------------------------------------------------------------------------


def on_package_event(view: View, tenant: str, worker_id: str, event: business.PkgEvent) -> None:
    view.batch.notices.append(PackageTold(tenant, worker_id, event))
    worker = view.workers.find(tenant, worker_id)
    if worker is not None and event.status in ("installed", "removed"):
        # Events are numbered, registers are not: an old register may have come after a newer one.
        is_there = event.status == "installed"
        if view.workers.set_package(worker, event.name, event.version, is_there):
            view.reconsider(worker)
    wish = view.wishes.find((tenant, worker_id, event.name, event.version))
    if wish is None:
        return
    wish.updated_at = view.at
    wish.progress = event.progress
    if event.status == "failed":
        _failed(view, wish, event)
    elif event.status in ("installed", "removed"):
        if event.status == wish.wish:
            _fulfil(view, wish)
        elif event.status == "removed" and wish.state == "installed":
            # The worker let an old version go by itself: what was wished was had, and is not wished for ever.
            wish.wish = "removed"
            _fulfil(view, wish)
    elif wish.is_open:
        is_new = wish.state != event.status
        wish.state = event.status
        if is_new:
            view.batch.notices.append(WishChanged(wish.key))


class _Details(msgspec.Struct):
    code: str = errors.PKG_INSTALL_FAILED.code
    message: str = ""


def _failed(view: View, wish: Wish, event: business.PkgEvent) -> None:
    try:
        details = msgspec.json.decode(event.details, type=_Details)
    except msgspec.DecodeError:
        details = _Details()
    wish.tries += 1
    code = errors.CATALOGUE.get(details.code, errors.PKG_INSTALL_FAILED)
    if code.retryable and wish.tries < INSTALL_TRIES:
        wish.state = "wanted"
        wish.error = (code.code, details.message)
        view.timers.set(view.now + RETRY_S * 2 ** (wish.tries - 1), WishDue(wish.key))
        view.batch.notices.append(WishChanged(wish.key))
    else:
        _end(view, wish, code, details.message)


def _end(view: View, wish: Wish, code: errors.Code, message: str) -> None:
    wish.state = "failed"
    wish.error = (code.code, message)
    wish.updated_at = view.at
    view.batch.notices.append(WishChanged(wish.key))
    # Tasks that wait for it may have it on another worker, or never.
    view.looked.clear()
    view.queue.wake(package_key(wish.tenant, wish.name))
    view.queue.wake(offer_key(wish.tenant, wish.name))
    view.queue.wake(worker_key(wish.tenant, wish.worker_id))


def on_wish_due(view: View, key: WishKey) -> None:
    """It is time to try an install again."""
    wish = view.wishes.find(key)
    worker = view.workers.find(key[0], key[1])
    if wish is not None and worker is not None and wish.state == "wanted":
        _owe(view, worker, wish)


# -- on demand -----------------------------------------------------------------------------------


def install_for(view: View, demand: Demand) -> None:
    """Tasks of this demand have no place: if it is for want of the package, have a worker install it."""
    name, version = demand.package_name, demand.package_version
    candidates = _candidates(view, demand)
    if any(version in one.offer.packages.get(name, ()) for one in candidates):
        return  # they wait for a slot: see `spread`
    if view.sources(demand.tenant, name, version) is None:
        return
    wishes = [
        (one, view.wishes.find((demand.tenant, one.worker_id, name, version))) for one in candidates
    ]
    if any(wish is not None and wish.wish == "installed" and wish.is_open for _, wish in wishes):
        return  # under way
    untried = [one for one, wish in wishes if wish is None or wish.state != "failed"]
    if untried:
        view.count("install on demand")
        least = min(untried, key=lambda one: one.load)
        wish_installed(view, least, name, version, ON_DEMAND)
    elif wishes:
        _give_up(view, demand, [wish for _, wish in wishes if wish is not None])


def spread(view: View, demand: Demand) -> None:
    """Tasks of this demand wait for a slot: have one more worker install their package, if one could take them."""
    if demand.only is not None:
        return
    name, version, tenant = demand.package_name, demand.package_version, demand.tenant
    idle: list[WorkerEntry] = []
    for worker in view.workers.of_tenant(tenant):
        if not worker.is_reachable:
            continue
        has_room = worker.is_available and worker.has_room_for(demand.node_type)
        wish = view.wishes.find((tenant, worker.worker_id, name, version))
        if wish is not None and wish.wish == "installed" and wish.is_open:
            return  # under way
        if not has_room or not _could_run(worker, demand):
            continue
        if version in worker.offer.packages.get(name, ()):
            return  # it has a place now
        if wish is None or (wish.state == "removed" and wish.why == ON_DEMAND):
            idle.append(worker)
    if idle and view.sources(tenant, name, version) is not None:
        view.count("install to spread")
        wish_installed(view, min(idle, key=lambda one: one.load), name, version, ON_DEMAND)


def _candidates(view: View, demand: Demand) -> list[WorkerEntry]:
    """The workers that could run the task if they had the package."""
    if demand.only is not None:
        bound = view.workers.find(demand.tenant, demand.only)
        workers = [bound] if bound is not None else []
    else:
        workers = view.workers.of_tenant(demand.tenant)
    return [one for one in workers if one.is_reachable and _could_run(one, demand)]


def _could_run(worker: WorkerEntry, demand: Demand) -> bool:
    offer = worker.offer
    has_package = demand.package_version in offer.packages.get(demand.package_name, ())
    if not has_package and INSTALLS not in offer.features:
        return False
    if not offer.has_runtime(demand.runtime):
        return False
    return all(offer.labels.get(label) == value for label, value in demand.labels)


def _give_up(view: View, demand: Demand, failed: list[Wish]) -> None:
    code, message = failed[0].error or (errors.PKG_INSTALL_FAILED.code, "")
    name = f"{demand.package_name} {demand.package_version}"
    told = f"{name} could not be installed on any of {len(failed)} workers; the first: {message}"
    error = Problem(code, "CONFIGURATION", told, retryable=False)
    for entry in view.queue.waiting_with(demand):
        view.queue.forget(entry.run_id, entry.task)
        view.decide(view.runs[entry.run_id], Fail(entry.task, error))


def why_no_package(view: View, demand: Demand) -> WaitingFor | None:
    """What is being done so that the demand has a place, if something is."""
    name, version = demand.package_name, demand.package_version
    for worker in _candidates(view, demand):
        wish = view.wishes.find((demand.tenant, worker.worker_id, name, version))
        if wish is None or wish.wish != "installed" or not wish.is_open:
            continue
        doing = "waits to install" if wish.state == "wanted" else f"is {wish.state}"
        trouble = f" again, after: {wish.error[1]}" if wish.error is not None else ""
        return WaitingFor("package", f"worker {worker.worker_id} {doing} {name} {version}{trouble}")
    return None
