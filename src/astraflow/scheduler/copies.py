"""Copies of resources in the blob store, for downloads and for workers that need them after their maker is gone.

A worker uploads a resource through a signed URL. The bytes are streamed into a blob, and the resource's row names the
blob. The name of a copy holds its digest: `<key>?sha256=<digest>`. A second upload makes a second blob, and the first
one is swept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from urllib.parse import quote

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.scheduler.blobs import Blobs
from astraflow.scheduler.signed_urls import DownloadGrant, UploadGrant, UrlSigner
from astraflow.store.rows import ResourceRow
from astraflow.store.store import Store

Key = tuple[str, str, str]
"""The tenant, the worker and the id of a resource."""

PREFIX: Final = "artifacts"
UPLOAD_S: Final = 6 * 3_600.0
"""A slow line may take hours for a large file."""
DOWNLOAD_S: Final = 3_600.0


class Copy(msgspec.Struct, frozen=True):
    """A copy as the row of its resource names it."""

    key: str
    sha256: str

    @classmethod
    def parse(cls, text: str) -> Copy:
        key, _, digest = text.partition("?sha256=")
        return cls(key, digest)

    def text(self) -> str:
        return f"{self.key}?sha256={self.sha256}"


class Copies:
    """The copies of all tenants."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        signer: UrlSigner,
        clock: Clock,
        note: Callable[[Key, str], Awaitable[None]],
        *,
        max_bytes: int = 64 * 1024**3,
    ) -> None:
        """`note` keeps the name of a copy that has arrived; when it returns, that is durable. It raises NotFound for a
        resource that is not known any more."""
        self._note = note
        self._store = store
        self._blobs = blobs
        self._signer = signer
        self._clock = clock
        self._max_bytes = max_bytes
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}

    # -- uploads ----------------------------------------------------------------------------

    def upload_url(self, key: Key) -> str:
        """Where the worker puts the bytes of a resource, with PUT."""
        tenant, worker_id, resource_id = key
        grant = UploadGrant(
            tenant=tenant,
            resource_id=resource_id,
            worker_id=worker_id,
            max_bytes=self._max_bytes,
            exp=self._signer.expiry(UPLOAD_S),
        )
        return f"{self._signer.origin}/api/v1/uploads/{self._signer.make(grant)}"

    def open_upload(self, token: str) -> UploadGrant:
        """Raises: Refused."""
        return self._signer.read(token, UploadGrant)

    async def receive(self, grant: UploadGrant, chunks: AsyncIterator[bytes]) -> Copy:
        """Keep what a worker uploads; when this returns, the copy is durable and noted.

        Raises:
            Refused: it is too large.
            NotFound: the resource is not known any more.
            Unavailable: it cannot be kept now.
        """
        place = f"{PREFIX}/{os.urandom(16).hex()}"
        written = await self._blobs.put_stream(place, chunks, grant.max_bytes)
        copy = Copy(place, written.sha256)
        key = (grant.tenant, grant.worker_id, grant.resource_id)
        try:
            await self._note(key, copy.text())
        except errors.NotFound:
            await self._blobs.delete(place)
            raise
        for arrival in self._waiting.pop(key, ()):
            if not arrival.done():
                arrival.set_result(None)
        return copy

    async def keep(self, chunks: AsyncIterator[bytes], max_bytes: int) -> Copy:
        """Keep bytes of the scheduler itself. Raises: Unavailable."""
        place = f"{PREFIX}/{os.urandom(16).hex()}"
        written = await self._blobs.put_stream(place, chunks, max_bytes)
        return Copy(place, written.sha256)

    def give_up(self, key: Key, why: str) -> None:
        """Its worker cannot deliver it: nobody need wait any longer."""
        for arrival in self._waiting.pop(key, ()):
            if not arrival.done():
                arrival.set_exception(
                    errors.Unavailable(
                        errors.WORKER_UNAVAILABLE, f"its worker could not deliver it: {why}"
                    )
                )

    async def wait_for(self, key: Key, timeout_s: float) -> bool:
        """Wait until a copy of the resource arrives; False if none did in time.

        Raises:
            Unavailable: its worker says that it cannot deliver it.
        """
        arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(arrival)
        try:
            async with asyncio.timeout(timeout_s):
                await arrival
        except TimeoutError:
            return False
        finally:
            waiting.discard(arrival)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]
        return True

    # -- downloads --------------------------------------------------------------------------

    def download_url(self, key: Key, ttl_s: float = DOWNLOAD_S) -> tuple[str, int]:
        """A signed URL of the copy, and when it expires."""
        tenant, worker_id, resource_id = key
        grant = DownloadGrant(
            tenant=tenant,
            resource_id=resource_id,
            worker_id=worker_id,
            exp=self._signer.expiry(ttl_s),
        )
        path = f"/api/v1/artifacts/{quote(resource_id, safe='/')}"
        return f"{self._signer.origin}{path}?token={self._signer.make(grant)}", grant.exp

    def open_download(self, token: str, resource_id: str) -> DownloadGrant:
        """Raises: Refused."""
        grant = self._signer.read(token, DownloadGrant)
        if grant.resource_id != resource_id:
            raise errors.Refused(
                errors.AUTH_INVALID_TOKEN, "the signed URL is not valid, or has expired"
            )
        return grant

    async def size(self, copy: Copy) -> int:
        """Raises: NotFound, Unavailable."""
        return await self._blobs.size(copy.key)

    def read(self, copy: Copy, start: int, end: int) -> AsyncIterator[bytes]:
        return self._blobs.read_range(copy.key, start, end)

    # -- tidying ----------------------------------------------------------------------------

    async def sweep(self, before_ms: int) -> int:
        """Remove copies from before then that no resource has, and uploads that broke off."""
        removed = await self._blobs.sweep(before_ms)
        old = [one.key async for one in self._blobs.list(PREFIX) if one.written_at < before_ms]
        # Asked after the list was read: what was noted meanwhile is among these.
        held = {Copy.parse(text).key for text in await self._store.blobs_of_resources()}
        for key in old:
            if key not in held:
                await self._blobs.delete(key)
                removed += 1
        return removed


class _Digest(msgspec.Struct):
    sha256: str | None = None


def with_current_copy(row: ResourceRow) -> ResourceRow:
    """Without a copy that is of other bytes: an id may have been registered again since it was made."""
    if row.blob is None:
        return row
    try:
        said = msgspec.json.decode(row.metadata, type=_Digest).sha256
    except msgspec.DecodeError:
        return row  # a worker of another make says what it likes
    is_current = said is None or said == Copy.parse(row.blob).sha256
    return row if is_current else msgspec.structs.replace(row, blob=None)
