"""Whether the blobs of this scheduler are those of its store.

Schedulers that share a store must share their blobs too: packages that one has published are asked of the next. So the
place has a marker, a blob with a random id, and the store keeps the same id. A scheduler whose place has another one,
or none, does not serve: it would answer 404 for every package.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator
from typing import Final

from astraflow.core import errors
from astraflow.scheduler.blobs import Blobs
from astraflow.store.store import Claim, Store

__all__ = ["MARKER", "BlobPlace"]

_log: Final = logging.getLogger(__name__)

MARKER: Final = "site/blobs-id"
STORED: Final = "blobs_id"
MAX_BYTES: Final = 200


class BlobPlace:
    """The place for blobs that the settings name, and the store that it must belong to."""

    def __init__(self, store: Store, blobs: Blobs, name: str) -> None:
        self._store = store
        self._blobs = blobs
        self._name = name

    async def check(self) -> None:
        """
        Raises:
            Refused: the place is not the one that the store belongs to.
            StoreError: the store does not answer.
        """
        stored = await self._store.find_site(STORED)
        if stored is None:
            return  # the first one that serves marks its place
        try:
            found = await self._read()
        except errors.Unavailable as error:
            # A bucket that does not answer now is no reason to leave all work undone.
            _log.warning("the place for blobs could not be checked: %s", error.message)
            return
        if found != stored:
            raise errors.Refused(
                errors.BLOBS_FOREIGN,
                f"blobs_url must name the folder or bucket that the other schedulers of this database use; here is "
                f"{'another one' if found else 'an empty one'} (to use it all the same, write {stored} into "
                f"{MARKER} in it): {self._name}",
                pointer="/blobs_url",
            )

    async def take(self, claim: Claim) -> None:
        """As `check`; of a store that is shared the place is marked, unless it is."""
        await self.check()
        if claim.ttl_s is None or await self._store.find_site(STORED) is not None:
            return
        try:
            found = await self._read()
            if found is None:
                found = secrets.token_hex(16)
                await self._blobs.put_stream(MARKER, _once(found.encode()))
        except errors.Unavailable as error:
            _log.warning("the place for blobs could not be marked: %s", error.message)
            return
        # After the marker: a crash between the two leaves a place that the next one takes, not a store that none fits.
        await self._store.put_site(claim, STORED, found)

    async def _read(self) -> str | None:
        try:
            size = await self._blobs.size(MARKER)
            read = [
                piece async for piece in self._blobs.read_range(MARKER, 0, min(size, MAX_BYTES))
            ]
        except errors.NotFound:
            return None
        return b"".join(read).decode(errors="replace").strip()


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
