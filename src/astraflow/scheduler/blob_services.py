"""Blob services: what a scheduler keeps in blobs, packages and copies of artifacts, and the sweep of both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from astraflow.clock import Clock
from astraflow.config import SchedulerSettings
from astraflow.core import errors
from astraflow.packages import TrustedKeys
from astraflow.scheduler.blob_location import BlobLocation
from astraflow.scheduler.blobs import blobs_name, open_blobs
from astraflow.scheduler.catalogs import Catalogs
from astraflow.scheduler.confirmed_time import ConfirmedTime
from astraflow.scheduler.copies import Copies
from astraflow.scheduler.current import Current
from astraflow.scheduler.repository import Repository, Rules
from astraflow.scheduler.shipped_packages import publish_shipped
from astraflow.scheduler.signed_urls import UrlSigner
from astraflow.store.store import HOME_SHARD, Claim, Store

_log: Final = logging.getLogger(__name__)

TIDY_EVERY_S: Final = 3_600.0
RETENTION_S: Final = 24 * 3_600.0
"""What nobody refers to is kept for a day: an upload under way must never be taken for a lost one."""


class BlobServices:
    """Packages and copies, under the claim that is served."""

    def __init__(
        self,
        repository: Repository,
        copies: Copies,
        clock: Clock,
        *,
        location: BlobLocation | None = None,
        ships: bool = False,
    ) -> None:
        """`ships`: whether the packages of the installation are published."""
        self._location = location
        self._ships = ships
        self.repository = repository
        self.copies = copies
        self._clock = clock

    async def check_location(self) -> None:
        """Raises: Refused, when the blobs here are not those of the store; StoreError."""
        if self._location is not None:
            await self._location.check()

    async def begin(self, claim: Claim) -> None:
        """Serving begins. Raises: Refused, as `check_location`; StoreError."""
        if self._location is not None and claim.shard == HOME_SHARD:
            await self._location.take(claim)
        elif self._location is not None:
            await self._location.check()
        await self.repository.load(claim)
        if self._ships:
            await publish_shipped(self.repository)

    def end(self) -> None:
        self.repository.let_go()

    async def tend(self, claim: Claim) -> None:
        """Sweep from time to time. A location that does not answer is retried at the next sweep."""
        if claim.shard != HOME_SHARD:
            await asyncio.Event().wait()  # one owner sweeps the blobs of all
        time = ConfirmedTime(self._clock)
        while True:
            try:
                await self.tidy(time.wall_ms() - int(RETENTION_S * 1000))
            except errors.AstraflowError as error:
                _log.warning("the sweep of blobs failed, and is retried later: %s", error.message)
            await asyncio.sleep(TIDY_EVERY_S)

    async def tidy(self, before_ms: int) -> int:
        """Remove what nobody refers to and what was never finished, from before then."""
        removed = await self.repository.sweep(before_ms)
        return removed + await self.copies.sweep(before_ms)


def open_blob_services(
    settings: SchedulerSettings,
    store: Store,
    secrets: Sequence[bytes],
    clock: Clock,
    catalogs: Catalogs,
    current: Current,
    origin: str,
) -> BlobServices:
    """The blob services that the settings name; `origin` is where the process listens.

    Raises:
        Refused: a key or the location of blobs cannot be used.
    """
    # Workers that are passed on do not reach the scheduler itself: they use the address that they know.
    is_reached = settings.worker_routing == "move"
    signer = UrlSigner(secrets, clock, settings.public_url or (origin if is_reached else ""))
    blobs = open_blobs(settings.blobs_url, settings.data_dir)
    rules = Rules(
        settings.package_policy,
        TrustedKeys.parse(settings.trusted_keys),
        settings.max_package_bytes,
    )
    spool = settings.data_dir / "uploads"
    repository = Repository(
        store,
        blobs,
        signer,
        clock,
        catalogs,
        spool=spool,
        announce=current.note_version,
        rules=rules,
    )
    copies = Copies(
        store, blobs, signer, clock, current.note_copy, max_bytes=settings.max_artifact_bytes
    )
    location = BlobLocation(store, blobs, blobs_name(settings.blobs_url, settings.data_dir))
    return BlobServices(
        repository, copies, clock, location=location, ships=settings.shipped_packages
    )
