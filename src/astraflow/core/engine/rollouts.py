"""Rollouts: a version of a package is brought to all workers, in waves (`fleet.rollouts` has the rules of a wave).

Rule 1: at most one rollout runs for a package. It is looked at once a second.
Rule 2: a rollout that ends well makes its version the active one, in the same transaction.
Rule 3: a version that is yanked meanwhile ends the rollout.
"""

from __future__ import annotations

from typing import Final

from astraflow.core import errors
from astraflow.core.engine.commands import ActivateVersion, RollBack, StartRollout
from astraflow.core.engine.effects import Activated
from astraflow.core.engine.packages import INSTALLS, request_install
from astraflow.core.engine.timers import RolloutDue
from astraflow.core.engine.view import View
from astraflow.core.fleet.rollouts import (
    RolloutFailed,
    RolloutRecord,
    RolloutRolledBack,
    RolloutStarted,
    RolloutSucceeded,
    WorkerStanding,
    advance,
)
from astraflow.core.fleet.versions import VersionActivated
from astraflow.core.fleet.workers import WorkerEntry

LOOK_EVERY_S: Final = 1.0


def start_rollout(view: View, command: StartRollout) -> None:
    """Raises: NotFound, if the version is not published; Conflict, if it is yanked or another rollout runs."""
    rollout = command.rollout
    published = view.versions.find(rollout.tenant, rollout.name, rollout.version)
    if published is None:
        raise errors.NotFound(
            errors.PKG_NOT_FOUND, f"not published: {rollout.name} {rollout.version}"
        )
    if published.is_yanked:
        raise errors.Conflict(errors.PKG_YANKED, f"was yanked: {rollout.name} {published.version}")
    other = view.rollouts.find(rollout.tenant, rollout.name)
    if other is not None:
        raise errors.Conflict(
            errors.PKG_CONFLICT, f"a rollout runs already: {rollout.name} {other.version}"
        )
    view.record_rollout(RolloutStarted(rollout.tenant, view.at, rollout.name, rollout))
    watch_rollouts(view)


def watch_rollouts(view: View) -> None:
    """Look at the rollouts that run, a little later, once for all."""
    if len(view.rollouts) and not view.rollouts.is_watched:
        view.rollouts.is_watched = True
        view.timers.set(view.now + LOOK_EVERY_S, RolloutDue())


def on_rollout_due(view: View) -> None:
    view.rollouts.is_watched = False
    for rollout in view.rollouts:
        _look_at(view, rollout)
    watch_rollouts(view)


def _look_at(view: View, rollout: RolloutRecord) -> None:
    published = view.versions.find(rollout.tenant, rollout.name, rollout.version)
    if published is None or published.is_yanked:
        cause = "no longer published" if published is None else "was yanked"
        error = f"{cause}: {rollout.name} {rollout.version}"
        view.record_rollout(RolloutFailed(rollout.tenant, view.at, rollout.name, error))
        return
    step = advance(
        rollout,
        view.at,
        _standings(view, rollout),
        view.rollouts.health_of(rollout),
        view.rollouts.good_for_s(rollout, view.now),
    )
    for worker_id in step.install_on:
        worker = view.workers.find(rollout.tenant, worker_id)
        assert worker is not None, "only workers that are there are told to install"
        request_install(view, worker, rollout.name, rollout.version, rollout.rollout_id)
    if step.fact is None:
        return
    after = view.record_rollout(step.fact)
    if after.state == "running":
        view.rollouts.good_for_s(after, view.now)
    if isinstance(step.fact, RolloutSucceeded):
        _activate(view, rollout.tenant, rollout.name, rollout.version, rollout.started_by)


def _standings(view: View, rollout: RolloutRecord) -> list[WorkerStanding]:
    """The workers that could take the version now: those that are away catch up when they are back."""
    return [
        _standing(view, worker, rollout)
        for worker in view.workers.of_tenant(rollout.tenant)
        if worker.is_reachable
        and worker.pool is None
        and (INSTALLS in worker.offer.features or worker.has_version(rollout.name, rollout.version))
    ]


def _standing(view: View, worker: WorkerEntry, rollout: RolloutRecord) -> WorkerStanding:
    intent = view.installs.find((rollout.tenant, worker.worker_id, rollout.name, rollout.version))
    failure = None
    if intent is not None and intent.why == rollout.rollout_id and intent.state == "failed":
        failure = "" if intent.error is None else intent.error.message
    return WorkerStanding(
        worker.worker_id,
        worker.has_version(rollout.name, rollout.version),
        intent is not None and intent.is_installing,
        failure,
    )


def roll_back(view: View, command: RollBack) -> None:
    """End the rollout that runs: nothing had been activated yet, so that what is active stays so. If none runs, make
    the version active that was so before.

    Raises: Conflict, if no version was.
    """
    running = view.rollouts.find(command.tenant, command.name)
    if running is not None:
        view.record_rollout(RolloutRolledBack(command.tenant, view.at, command.name, command.by))
        return
    active = view.versions.active(command.tenant, command.name)
    if active is None or active.previous is None:
        raise errors.Conflict(
            errors.PKG_NOT_FOUND, f"no version of it was active before: {command.name}"
        )
    _check_usable(view, command.tenant, command.name, active.previous)
    _activate(view, command.tenant, command.name, active.previous, command.by)


def activate_version(view: View, command: ActivateVersion) -> None:
    """Raises: NotFound, if it is not published; Conflict, if it is yanked."""
    _check_usable(view, command.tenant, command.name, command.version)
    active = view.versions.active(command.tenant, command.name)
    if active is None or active.version != command.version:
        _activate(view, command.tenant, command.name, command.version, command.by)


def _check_usable(view: View, tenant: str, name: str, version: str) -> None:
    published = view.versions.find(tenant, name, version)
    if published is None:
        raise errors.NotFound(errors.PKG_NOT_FOUND, f"no such package: {name} {version}")
    if published.is_yanked:
        raise errors.Conflict(
            errors.PKG_YANKED, f"the version is yanked: {name} {version}; choose another"
        )


def _activate(view: View, tenant: str, name: str, version: str, by: str) -> None:
    active = view.record_active(VersionActivated(tenant, view.at, name, version, by))
    view.batch.effects.append(Activated(active))
