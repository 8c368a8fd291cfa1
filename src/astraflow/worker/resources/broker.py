"""The resource broker: the registry as hosts and their attempts use it.

Rule 1: the resources of a dispatch are leased before its host gets the attempt. If a lease is refused, the attempt
        fails with the code of the registry and its handler does not start.
Rule 2: a handler does not wait for the registry. Its registrations and changes are checked here, in order; the first
        refusal becomes the failure of the attempt, at the latest when its result arrives.
Rule 3: all leases of an attempt are released when it ends.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.worker.hosts import frames
from astraflow.worker.hosts.host import Host
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from astraflow.worker.resources.files import StoredFile
from astraflow.worker.resources.registry import LocalResourceRegistry
from astraflow.worker.resources.resource import Lessee, LocalResource, Maker, invalid, refused
from astraflow.worker.resources.terms import Terms

_log: Final = logging.getLogger(__name__)

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


class RegistryBroker:
    """Translates what attempts and hosts say into calls of the registry, and its refusals into failures."""

    def __init__(self, registry: LocalResourceRegistry, worker_id: str) -> None:
        self._registry = registry
        self._worker_id = worker_id

    # -- what attempts do -------------------------------------------------------------------

    def lease_for(self, running: HostedAttempt) -> bool:
        """Lease all that the attempt refers to, or nothing; False if it must not start."""
        if running.dispatch.resource_refs:
            try:
                self._lease_all(running)
            except errors.AstraflowError as problem:
                self._registry.release_attempt(Lessee.of(running.dispatch))
                running.refusal = _failure(problem)
        return running.refusal is None

    def on_frame(
        self,
        host: Host,
        running: HostedAttempt,
        frame: frames.HostRegister | frames.HostLease | frames.HostUse,
    ) -> None:
        if isinstance(frame, frames.HostLease):
            self._answer_lease(host, running, frame)
            return
        try:
            if isinstance(frame, frames.HostRegister):
                self._register(running, host, frame)
            else:
                self._use(running.dispatch, frame)
        except errors.AstraflowError as problem:
            running.refusal = running.refusal or _failure(problem)
            if isinstance(frame, frames.HostRegister) and frame.kind == "memory":
                host.close_object(frame.token)

    def judged(self, running: HostedAttempt, outcome: frames.HostResult) -> frames.HostResult:
        """The outcome with its artifacts as the registry knows them, or the failure that the registry makes of it."""
        if outcome.status not in ("SUCCEEDED", "SKIPPED"):
            return outcome
        if running.refusal is None and outcome.artifacts:
            try:
                listed = self._artifacts(running.dispatch, outcome.artifacts)
                return msgspec.structs.replace(outcome, artifacts=listed)
            except errors.AstraflowError as problem:
                running.refusal = _failure(problem)
        if running.refusal is None:
            return outcome
        return frames.HostResult(outcome.task_id, outcome.attempt, "FAILED", error=running.refusal)

    def ended(self, running: HostedAttempt) -> None:
        """Give back what the attempt leases."""
        self._registry.release_attempt(Lessee.of(running.dispatch))

    # -- what hosts tell --------------------------------------------------------------------

    def closed(self, host: Host, closed: frames.HostClosed) -> None:
        """A host has closed an object."""
        if closed.error is not None:
            _log.warning("close of an object of %s failed: %s", host.spec.name, closed.error)
        if self._registry.memory.holder_of(closed.token) is host:
            self._registry.closed(closed.token)

    def host_gone(self, host: Host) -> None:
        """A host is dead, and what it held with it."""
        self._registry.host_gone(host)

    def count_scratch(self, size_bytes: int) -> None:
        """What attempts and hosts have written and not registered takes that much room."""
        self._registry.scratch_bytes = size_bytes

    # -- inside: AstraflowError is a refusal -------------------------------------------------

    def _lease_all(self, running: HostedAttempt) -> None:
        dispatch = running.dispatch
        lessee = Lessee.of(dispatch)
        handles: dict[str, frames.Handle] = {}
        host: Host | None = None
        for ref in dispatch.resource_refs:
            resource = self._resource_of(ref, lessee)
            if ref.resource_id in handles:
                continue
            self._registry.lease(ref.resource_id, lessee)
            holder = self._holder_of(resource, dispatch)
            if holder is not None and holder.lane != running.lane:
                message = "the object was made in another lane of the tenant, and is used there"
                raise refused(errors.RESOURCE_CONFLICT, message, ref.resource_id)
            if holder is not None and host not in (None, holder):
                message = "the objects that the node needs are in different hosts"
                raise refused(errors.RESOURCE_CONFLICT, message, ref.resource_id)
            host = holder or host
            handles[ref.resource_id] = self._handle(resource)
        running.leased, running.pinned = tuple(handles.values()), host

    def _resource_of(self, ref: business.RequiredResource, lessee: Lessee) -> LocalResource:
        if ref.worker_id != self._worker_id:
            message = f"the resource is on another worker, {ref.worker_id}"
            raise refused(errors.RESOURCE_CONFLICT, message, ref.resource_id)
        resource = self._registry.get(ref.resource_id, lessee.run_id)
        if resource.type != ref.type:
            message = f"the reference says {ref.type}, the resource is a {resource.type}"
            raise refused(errors.RESOURCE_INVALID, message, ref.resource_id)
        return resource

    def _holder_of(self, resource: LocalResource, dispatch: business.Dispatch) -> Host | None:
        """The host that an object is in; none for a file.

        Raises:
            Refused: another package made it, or its host is ending.
        """
        if resource.kind == "file":
            return None
        holder = self._registry.memory.holder_of(resource.token)
        assert isinstance(holder, Host), "only hosts hold objects"
        package = dispatch.package
        if (holder.spec.name, holder.spec.version) != (package.name, package.version):
            message = (
                f"the object lives in a host of {holder.spec.name} {holder.spec.version} and cannot "
                f"be used by {package.name} {package.version}"
            )
            raise refused(errors.RESOURCE_CONFLICT, message, resource.resource_id)
        if holder.is_ending:
            message = "the host that holds the object is ending"
            raise refused(errors.RESOURCE_LOST, message, resource.resource_id)
        return holder

    def _register(self, running: HostedAttempt, host: Host, frame: frames.HostRegister) -> None:
        dispatch = running.dispatch
        lessee = Lessee.of(dispatch)
        maker = Maker(lessee, dispatch.node_id, dispatch.package, running.lane)
        terms = Terms(
            scope=frame.scope,
            metadata=_metadata(frame),
            size_bytes=frame.size_bytes,
            ttl_s=frame.ttl_s,
            expires_at=frame.expires_at,
        )
        if frame.kind == "file":
            if frame.sha256 is None:
                message = "a file is registered with its digest"
                raise refused(errors.RESOURCE_INVALID, message, frame.resource_id)
            filed = StoredFile(
                frame.token, frame.name, frame.size_bytes, frame.mtime_ns, frame.sha256
            )
            self._registry.adopt(
                frame.resource_id, filed, frame.resource_type, maker=maker, terms=terms
            )
            return
        if host.spec.isolation == "attempt":
            message = "each attempt of the package has a host of its own, which keeps no objects"
            raise refused(errors.RESOURCE_INVALID, message, frame.resource_id)
        self._registry.register(
            frame.resource_id,
            frame.resource_type,
            token=frame.token,
            holder=host,
            maker=maker,
            terms=terms,
            shares=frame.shares,
        )

    def _answer_lease(self, host: Host, running: HostedAttempt, frame: frames.HostLease) -> None:
        """A running attempt wants something more."""
        handle: frames.Handle | None = None
        error: business.AttemptError | None = None
        try:
            handle = self._lease(running.dispatch, host, frame.resource_id)
        except errors.AstraflowError as problem:
            error = _failure(problem)
        answer = frames.HostLeased(frame.task_id, frame.attempt, frame.request_id, handle, error)
        host.send(frames.encode(answer))

    def _lease(self, dispatch: business.Dispatch, host: Host, resource_id: str) -> frames.Handle:
        lessee = Lessee.of(dispatch)
        resource = self._registry.get(resource_id, lessee.run_id)
        holder = self._holder_of(resource, dispatch)
        if holder is not None and holder is not host:
            message = "the object is in another host: give the node a reference to it"
            raise refused(errors.RESOURCE_CONFLICT, message, resource_id)
        return self._handle(self._registry.lease(resource_id, lessee))

    def _use(self, dispatch: business.Dispatch, frame: frames.HostUse) -> None:
        lessee = Lessee.of(dispatch)
        if frame.action == "gc":
            self._registry.gc()
        elif frame.action == "release_scope":
            scope = frame.scope or dispatch.run_id
            self._registry.release_scope(scope, frame.reason, lessee)
        elif frame.resource_id is None:
            raise invalid(f"{frame.action} needs a resource id")
        elif frame.action == "touch":
            self._registry.touch(frame.resource_id, lessee, expires_at=frame.expires_at)
        elif frame.action == "release":
            self._registry.release(frame.resource_id, lessee, reason=frame.reason)
        else:
            self._registry.evict(frame.resource_id, frame.reason, lessee)

    def _artifacts(
        self, dispatch: business.Dispatch, artifacts: tuple[business.ResultArtifact, ...]
    ) -> tuple[business.ResultArtifact, ...]:
        return tuple(
            one
            if one.inline or one.worker_id != self._worker_id
            else self._registry.mark_listed(one.resource_id, dispatch.run_id).artifact()
            for one in artifacts
        )

    def _handle(self, resource: LocalResource) -> frames.Handle:
        path = None
        if resource.kind == "file":
            path = str(self._registry.files.path_of(resource.token, resource.name).absolute())
        return frames.Handle(
            resource.resource_id,
            resource.type,
            resource.scope,
            resource.token,
            resource.state,
            path,
            resource.told_metadata(),
            resource.size_bytes,
            resource.checksum,
            resource.created_at,
            resource.expires_at,
            resource.in_use_count,
            resource.run_id,
            resource.node_id,
        )


def _failure(problem: errors.AstraflowError) -> business.AttemptError:
    """What the registry refused, as the failure of an attempt."""
    code = problem.code
    return business.AttemptError(
        code.code,
        "INFRASTRUCTURE" if code in _PASSING else "CONFIGURATION",
        problem.message,
        code.retryable,
    )


def _metadata(frame: frames.HostRegister) -> dict[str, object]:
    try:
        found: dict[str, object] = msgspec.json.decode(frame.metadata, type=dict[str, object])
    except msgspec.DecodeError as problem:
        message = f"metadata must be an object of JSON: {problem}"
        raise invalid(message) from problem
    return found
