"""The resources of attempts, between the hosts and the worker's resource registry.

Rule 1: the resources of a dispatch are leased before its host gets the attempt. If a lease is refused, the attempt
        fails with the code of the registry and its handler does not start.
Rule 2: a handler does not wait for the registry. Its registrations and changes are checked here, in order; the first
        refusal becomes the failure of the attempt, at the latest when its result arrives.
Rule 3: all leases of an attempt are released when it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.hosted_attempt import HostedAttempt

if TYPE_CHECKING:
    from astraflow.worker.resources.broker import RegistryBroker

_PASSING: Final = frozenset(
    {
        errors.RESOURCE_LOST,
        errors.RESOURCE_EXPIRED,
        errors.RESOURCE_BUSY,
        errors.RESOURCE_QUOTA,
        errors.STORE_UNAVAILABLE,
    }
)
"""Refusals that are the machine's or the time's doing; the others are mistakes in what was asked for."""
_NO_BROKER: Final = "this worker keeps no resources"


class LeasedAtStart(NamedTuple):
    """The leased resources of a dispatch, and the host in which it must run if one of them is an object."""

    handles: tuple[frames.Handle, ...] = ()
    host: Host | None = None


class AttemptResources:
    """Resources of the attempts of a pool. Without a broker, every request is refused."""

    def __init__(self, broker: RegistryBroker | None) -> None:
        self._broker = broker

    def lease_for(self, running: HostedAttempt) -> bool:
        """Lease what the attempt refers to; False if it must not start."""
        dispatch = running.dispatch
        if not dispatch.resource_refs:
            return True
        try:
            running.leased, running.pinned = self._needed().lease_for(dispatch)
        except errors.AstraflowError as problem:
            running.refusal = refusal_of(problem)
            return False
        return True

    def on_frame(
        self,
        host: Host,
        running: HostedAttempt,
        frame: frames.HostRegister | frames.HostLease | frames.HostUse,
    ) -> None:
        if isinstance(frame, frames.HostLease):
            self._lease(host, running, frame)
            return
        try:
            if isinstance(frame, frames.HostRegister):
                self._needed().register(running.dispatch, host, frame)
            else:
                self._needed().use(running.dispatch, frame)
        except errors.AstraflowError as problem:
            running.refusal = running.refusal or refusal_of(problem)
            if isinstance(frame, frames.HostRegister) and frame.kind == "memory":
                host.close_object(frame.token)

    def _lease(self, host: Host, running: HostedAttempt, frame: frames.HostLease) -> None:
        handle: frames.Handle | None = None
        error: business.AttemptError | None = None
        try:
            handle = self._needed().lease(running.dispatch, host, frame.resource_id)
        except errors.AstraflowError as problem:
            error = refusal_of(problem)
        answer = frames.HostLeased(frame.task_id, frame.attempt, frame.request_id, handle, error)
        host.send(frames.encode(answer))

    def judged(self, running: HostedAttempt, outcome: frames.HostResult) -> frames.HostResult:
        """The outcome, or the failure that the registry makes of it."""
        if outcome.status not in ("SUCCEEDED", "SKIPPED"):
            return outcome
        if running.refusal is None and outcome.artifacts and self._broker is not None:
            try:
                listed = self._broker.artifacts(running.dispatch, outcome.artifacts)
                return msgspec.structs.replace(outcome, artifacts=listed)
            except errors.AstraflowError as problem:
                running.refusal = refusal_of(problem)
        if running.refusal is None:
            return outcome
        return frames.HostResult(outcome.task_id, outcome.attempt, "FAILED", error=running.refusal)

    def ended(self, running: HostedAttempt) -> None:
        if self._broker is not None:
            self._broker.ended(running.dispatch)

    def closed(self, host: Host, closed: frames.HostClosed) -> None:
        if self._broker is not None:
            self._broker.closed(host, closed.token, closed.error)

    def host_gone(self, host: Host) -> None:
        if self._broker is not None:
            self._broker.host_gone(host)

    def count_scratch(self, size_bytes: int) -> None:
        if self._broker is not None:
            self._broker.count_scratch(size_bytes)

    def _needed(self) -> RegistryBroker:
        if self._broker is None:
            raise errors.Refused(errors.RESOURCE_MISSING, _NO_BROKER)
        return self._broker


def refusal_of(problem: errors.AstraflowError) -> business.AttemptError:
    """What the registry refused, as the failure of an attempt."""
    code = problem.code
    return business.AttemptError(
        code.code,
        "INFRASTRUCTURE" if code in _PASSING else "CONFIGURATION",
        problem.message,
        code.retryable,
    )
