"""Check that the configured location of blobs belongs to the store.

Schedulers that share a store must share their blobs too: a package that one has published is read through the next. So
the location holds a marker, a blob with a random id, and the store keeps the same id. A scheduler whose location has
another marker, or none, does not serve: it would respond with 404 for every package.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator
from typing import Final

from astraflow.core import errors
from astraflow.scheduler.blobs import Blobs
from astraflow.store.store import Claim, Store

_log: Final = logging.getLogger(__name__)

MARKER: Final = "site/blobs-id"
STORED: Final = "blobs_id"
MAX_BYTES: Final = 200


class BlobLocation:
    """The configured location of blobs, and the store that it must belong to."""

    def __init__(self, store: Store, blobs: Blobs, name: str) -> None:
        self._store = store
        self._blobs = blobs
        self._name = name

    async def check(self) -> None:
        """
        Raises:
            Refused: the location belongs to another store, or is empty.
            StoreError: the store does not answer.
        """
        stored = await self._store.find_site(STORED)
        if stored is None:
            return  # the first scheduler that serves writes the marker
        try:
            found = await read_marker(self._blobs)
        except errors.Unavailable as error:
            # A bucket that does not answer now is no reason to leave all work undone.
            _log.warning("the location of blobs could not be checked: %s", error.message)
            return
        refuse_other(stored, found, self._name)

    async def take(self, claim: Claim) -> None:
        """As `check`; then write the marker if the store is shared and has none."""
        await self.check()
        if claim.ttl_s is None or await self._store.find_site(STORED) is not None:
            return
        try:
            found = await read_marker(self._blobs)
            if found is None:
                found = secrets.token_hex(16)
                await self._blobs.put_stream(MARKER, _once(found.encode()))
        except errors.Unavailable as error:
            _log.warning(
                "the marker of the location of blobs could not be written: %s", error.message
            )
            return
        # After the marker: a crash between the two leaves a location that the next scheduler accepts, not a store
        # that no location fits.
        await self._store.put_site(claim, STORED, found)


async def read_marker(blobs: Blobs) -> str | None:
    """The id that a location holds. Raises: Unavailable."""
    try:
        size = await blobs.size(MARKER)
        read = [piece async for piece in blobs.read_range(MARKER, 0, min(size, MAX_BYTES))]
    except errors.NotFound:
        return None
    return b"".join(read).decode(errors="replace").strip()


def refuse_other(stored: str, found: str | None, name: str) -> None:
    """Raises: Refused: the location belongs to another store than the one that has stored an id, or is empty."""
    if found != stored:
        raise errors.Refused(
            errors.BLOBS_FOREIGN,
            f"blobs_url must name the folder or bucket that the other schedulers of this database use; here is "
            f"{'another one' if found else 'an empty one'} (to use it all the same, write {stored} into "
            f"{MARKER} in it): {name}",
            pointer="/blobs_url",
        )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
