"""Planted bugs of what workers keep: notices, cleanups, intents, pins, rebuilds, rollouts and the rows of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

import astraflow.core.runs.rebuild as rebuilding
from astraflow.core.agent.notices import Notices
from astraflow.core.dispatch import demand
from astraflow.core.engine import (
    engine,
    packages,
    placing,
    recovery,
    reports,
    rollouts,
    sessions,
    timeouts,
    view,
)
from astraflow.core.fleet.affinity import AffinityTable
from astraflow.core.fleet.versions import PublishedVersion
from astraflow.core.runs import calls, decision
from astraflow.core.runs.consequences import EnqueueTask
from astraflow.core.runs.states import READY, Succeeded
from astraflow.scheduler import fleet_rows

__all__ = [
    "activeforgotten",
    "bootforgets",
    "cleanuplost",
    "copyforgotten",
    "copyuntold",
    "earlywave",
    "listedstays",
    "noticelost",
    "pinloose",
    "rebuildbare",
    "rebuildcalls",
    "removalonce",
    "rolloutforgotten",
    "rolloutsplit",
    "rowsforgotten",
    "stickystale",
    "wishonce",
]


def _nothing(*_: Any) -> None:
    """What should be done is not."""


def noticelost() -> AbstractContextManager[Any]:
    """Notices are forgotten with their session (against R10)."""

    def broken(self: Any) -> None:
        for index in (self._told, self._waiting, self._by_frame):
            index.clear()

    return patch.object(Notices, "session_lost", broken)


def cleanuplost() -> AbstractContextManager[Any]:
    """A worker that was away is not told what has ended meanwhile (against §5.7)."""
    return patch.object(sessions, "resend_cleanups", _nothing)


def wishonce() -> AbstractContextManager[Any]:
    """An install intent is sent once, and not again after a new session (against §5.7)."""
    reconcile_packages = packages.reconcile_packages

    def broken(view: Any, worker: Any, *, is_first: bool) -> None:
        with patch.object(packages, "_send_intent", _nothing):
            reconcile_packages(view, worker, is_first=is_first)

    return patch.object(sessions, "reconcile_packages", broken)


@contextmanager
def pinloose() -> Iterator[None]:
    """A task that needs a resource is sent wherever there is room (against P12)."""
    demand_of = demand.demand_of

    def broken(run: Any, task: int, refs: Any, sticky: Any) -> Any:
        return msgspec.structs.replace(demand_of(run, task, refs, sticky), pin=None)

    with (
        patch.object(view, "demand_of", broken),
        patch.object(placing, "_needs_more", lambda *_: False),
    ):
        yield


def rebuildbare() -> AbstractContextManager[Any]:
    """Only what made a resource runs again, and nothing of what is between."""

    def broken(run: Any, task: int, resource_id: str) -> tuple[int, ...]:
        upstream = rebuilding._upstream(run, run.host_of(task))
        named = [one for one in upstream if rebuilding._names(run, one, resource_id)]
        made = [one for one in named if run.plan.nodes[one].type == "sim.make"]
        return tuple(one for one in sorted(made) if type(run.tasks[one].state) is Succeeded)

    return patch.object(rebuilding, "makers_of", broken)


@contextmanager
def rebuildcalls() -> Iterator[None]:
    """What an attempt called is not ended when its resource is made again, nor waited for (against §10)."""
    right = calls.advance_callers

    def broken(made: Any) -> None:
        before = len(made.consequences)
        right(made)
        made.consequences[before:] = [
            one
            for one in made.consequences[before:]
            if not (isinstance(one, EnqueueTask) and made.run.tasks[one.task].state is READY)
        ]

    with (
        patch.object(rebuilding, "end_calls", _nothing),
        patch.object(decision, "advance_callers", broken),
    ):
        yield


def stickystale() -> AbstractContextManager[Any]:
    """The end of a task makes an affinity key live on, also one whose worker is lost."""
    end_use = AffinityTable.end_use

    def broken(self: Any, tenant: str, key: str, worker_id: str, ends_at: float) -> None:
        record = self.lookup(tenant, key)
        if record is not None:
            record.expires_at = ends_at
        end_use(self, tenant, key, worker_id, ends_at)

    return patch.object(AffinityTable, "end_use", broken)


def rowsforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not read what workers hold."""
    return patch.object(engine.Engine, "restore_resource", _nothing)


def bootforgets() -> AbstractContextManager[Any]:
    """A scheduler that starts takes every worker for one that has started, too."""

    def broken(self: Any, tenant: str, worker_id: str, *_: Any) -> None:
        self.view.workers.expect(tenant, worker_id).incarnation = -1

    return patch.object(engine.Engine, "restore_worker", broken)


@contextmanager
def listedstays() -> Iterator[None]:
    """Files that only a refused result lists stay where they are."""
    with (
        patch.object(reports, "close_unlisted", _nothing),
        patch.object(timeouts, "on_cleanup_due", _nothing),
    ):
        yield


def removalonce() -> AbstractContextManager[Any]:
    """A removal is told once, and not again after a new session (against §5.7)."""
    tell = packages._send_intent
    reconcile_packages = packages.reconcile_packages

    def broken(told_view: Any, worker: Any, *, is_first: bool) -> None:
        def only_installs(one: Any, two: Any, intent: Any) -> None:
            if intent.target == "installed":
                tell(one, two, intent)

        with patch.object(packages, "_send_intent", only_installs):
            reconcile_packages(told_view, worker, is_first=is_first)

    return patch.object(sessions, "reconcile_packages", broken)


def rolloutforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not go on with the rollouts that run."""
    return patch.object(engine.Engine, "restore_rollout", _nothing)


def deadlineforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not go on with the deadlines of runs."""
    return patch.object(recovery, "_time_left", lambda deadline_s, age_ms: 1e9)


def deadlineanew() -> AbstractContextManager[Any]:
    """A scheduler that starts gives every run its whole time again."""
    return patch.object(recovery, "_time_left", lambda deadline_s, age_ms: deadline_s)


def activeforgotten() -> AbstractContextManager[Any]:
    """A scheduler that starts does not read which versions are active."""
    restore_version = engine.Engine.restore_version

    def broken(self: Any, version: Any) -> None:
        if isinstance(version, PublishedVersion):
            restore_version(self, version)

    return patch.object(engine.Engine, "restore_version", broken)


def rolloutsplit() -> AbstractContextManager[Any]:
    """A rollout ends well, and its version does not become active in the same transaction."""
    return patch.object(rollouts, "_activate", _nothing)


def earlywave() -> AbstractContextManager[Any]:
    """A wave counts as good although workers of it lack the version."""
    standing = rollouts._standing

    def broken(*args: Any) -> Any:
        return msgspec.structs.replace(standing(*args), has_version=True)

    return patch.object(rollouts, "_standing", broken)


def copyforgotten() -> AbstractContextManager[Any]:
    """The row of a resource does not say where its copy is."""
    row = fleet_rows.resource_row

    def broken(record: Any, lane: int) -> Any:
        return msgspec.structs.replace(row(record, lane), blob=None)

    return patch.object(fleet_rows, "resource_row", broken)


def copyuntold() -> AbstractContextManager[Any]:
    """A task goes to another worker because of a copy, and that worker is not told where the copy is (against P12)."""
    return patch.object(placing, "copies_for", lambda *_: ())
