"""What serves now: the engine under the present claim, or the reason why there is none.

It is made first, and passed to every part that needs the engine. When the store fails, the engine is discarded and
restored; the parts stay.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from astraflow.core import errors
from astraflow.core.contract.events import PackageChange
from astraflow.core.engine.commands import AnnounceChange, KeepAudit, NoteCopy, OperatorCommand

if TYPE_CHECKING:
    from astraflow.core.contract.base import RestObject
    from astraflow.core.engine.engine import Engine
    from astraflow.core.fleet.resources import ResourceKey
    from astraflow.core.fleet.versions import PublishedVersion
    from astraflow.scheduler.serving import Serving
    from astraflow.scheduler.writer import Writer
    from astraflow.store.store import Claim

_CHANGES: Final = {"pkg.publish": "published", "pkg.yank": "yanked", "pkg.unyank": "unyanked"}
"""What events call that which the audit has a word for."""
_STARTING: Final = "starting"


class Current:
    """The serving that is current. Only the life cycle begins and ends it."""

    def __init__(self) -> None:
        self._serving: Serving | None = None
        self._problem = _STARTING

    def begin(self, serving: Serving) -> None:
        self._serving = serving

    def end(self) -> None:
        self._serving = None

    def explain(self, problem: str) -> bool:
        """Why nothing serves; whether that is news."""
        is_news = problem != self._problem
        self._problem = problem
        return is_news

    def problem(self) -> str | None:
        """Why it is not ready."""
        return self._problem if self._serving is None else self._serving.problem()

    @property
    def is_starting(self) -> bool:
        """Whether it has neither served nor found out why it cannot."""
        return self._serving is None and self._problem == _STARTING

    @property
    def is_serving(self) -> bool:
        return self._serving is not None

    @property
    def serving(self) -> Serving:
        """Raises: Unavailable, when nothing serves."""
        if self._serving is None:
            raise errors.Unavailable(errors.SCHEDULER_NOT_READY, f"not ready: {self._problem}")
        return self._serving

    @property
    def writer(self) -> Writer:
        """Raises: Unavailable."""
        return self.serving.writer

    @property
    def engine(self) -> Engine:
        """Raises: Unavailable."""
        return self.serving.writer.engine

    @property
    def claim(self) -> Claim:
        """Raises: Unavailable."""
        return self.serving.claim

    @property
    def claim_with_room(self) -> Claim:
        """The claim, for what makes the store grow. Raises: Unavailable, also when the store is full."""
        if self.serving.is_full:
            raise errors.Unavailable(errors.STORE_FULL, "the store has reached retention_bytes")
        return self.serving.claim

    def note_version(self, version: PublishedVersion, by: str, action: str) -> None:
        """The repository has stored a version, or has yanked it, or taken that back."""
        self.engine.publish(version)
        what = f"{version.name} {version.version}"
        self.execute(KeepAudit(tenant=version.tenant, by=by, what=action, subject=what))
        body = PackageChange(name=version.name, version=version.version, by=by)
        self.announce(version.tenant, f"package.{_CHANGES[action]}", body)

    def announce(self, tenant: str, kind: str, body: RestObject) -> None:
        """Tell the readers of the tenant's stream of a change that is stored. If nothing serves any more they are not
        told: their stream ends, and they look anew when they come back."""
        with suppress(errors.Unavailable):
            self.execute(AnnounceChange(tenant=tenant, kind=kind, body=msgspec.json.encode(body)))

    async def note_copy(self, key: ResourceKey, blob: str) -> None:
        """A copy of a resource is in the blob store; when this returns, that is durable.

        Raises: NotFound, if the resource is not known any more; Unavailable.
        """
        tenant, worker_id, resource_id = key
        self.execute(
            NoteCopy(tenant=tenant, worker_id=worker_id, resource_id=resource_id, blob=blob)
        )
        await self.writer.barrier()

    def execute(self, command: OperatorCommand) -> None:
        """Have the engine decide a command. It is durable after the next barrier.

        Raises: Unavailable, and what the command is refused with.
        """
        self.writer.execute(command)
