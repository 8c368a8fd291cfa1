"""HTTP between workers and schedulers, in memory: real clients, the real application, and a network that breaks.

A request is known by the host that its worker calls the scheduler by, which is another for each boot: a dead boot
sends nothing more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx

from astraflow.core import errors
from tests.sim.shells.wire import TO_SCHEDULER, TO_WORKER
from tests.sim.world import Violation

if TYPE_CHECKING:
    from astraflow.scheduler.copies import Copies
    from tests.sim.shells.keeping import Boot
    from tests.sim.shells.processes import SchedulerProcess
    from tests.sim.shells.site import Site

__all__ = ["VirtualHttp"]

_CREATED = 201
_LOSS = 0.1
"""Of the responses, in worlds whose connections break."""


class VirtualHttp(httpx.AsyncBaseTransport):
    """The transport of one client."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises: httpx.HTTPError, when nobody answers."""
        site = self._site
        boot = site.boot_at(request.url.host)
        await asyncio.sleep(site.network.delay())
        self._check_open(boot, TO_SCHEDULER)
        try:
            process = site.front_process()
        except errors.Unavailable as error:
            raise httpx.ConnectError("nobody serves") from error
        exchange = _Exchange(site, request)
        await exchange.run(process)
        await asyncio.sleep(site.network.delay())
        self._check_open(boot, TO_WORKER)
        if site.config.has("cut") and not site.disk.is_healed and site.world.chance(_LOSS):
            raise httpx.ReadError("planted: the connection was cut")
        body = httpx.ByteStream(exchange.body)
        return httpx.Response(exchange.status, headers=exchange.headers, stream=body)

    def _check_open(self, boot: Boot, direction: int) -> None:
        is_blocked = self._site.world.now < self._site.network.blocked.get(
            (boot.worker.name, direction), 0.0
        )
        if boot.is_dead or is_blocked:
            raise httpx.ConnectTimeout("planted: nothing passes")


class _Exchange:
    """One request and its response, as a server gives it to an application."""

    def __init__(self, site: Site, request: httpx.Request) -> None:
        self._site = site
        self._request = request
        self._over = asyncio.Event()
        """The response is whole, or the client has gone."""
        self._is_whole = False
        self._pieces: Any = aiter(request.stream)  # type: ignore[arg-type]
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def run(self, process: SchedulerProcess) -> None:
        """Raises: httpx.ReadError, when the server dies before it has answered."""
        assert process.scheduler is not None
        copies = process.scheduler.blobs.copies
        answering = self._site.group.create_task(
            self._answer(process.app()), name="an HTTP request"
        )
        process.requests[answering] = None
        answering.add_done_callback(process.requests.pop)
        try:
            await asyncio.wait([answering])
        finally:
            self._over.set()  # the client has gone, whatever the server still does
        if not self._is_whole:
            raise httpx.ReadError("planted: the server is dead")
        self._check_told(copies)

    async def _answer(self, app: Any) -> None:
        url = self._request.url
        scope = {
            "type": "http",
            "method": self._request.method,
            "path": url.path,
            "raw_path": url.raw_path,
            "query_string": url.query,
            "headers": [(b"host", b"localhost"), *self._headers()],
        }
        try:
            await app(scope, self._receive, self._send)
        except asyncio.CancelledError:
            if not self._site.is_over:
                return  # its process was killed
            raise
        finally:
            await self._pieces.aclose()

    def _headers(self) -> list[tuple[bytes, bytes]]:
        raw = [(name.lower(), value) for name, value in self._request.headers.raw]
        return [(name, value) for name, value in raw if name != b"host"]

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._site.network.delay())
        if self._over.is_set():
            return {"type": "http.disconnect"}
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            return await self._end_of_body()
        return {"type": "http.request", "body": piece, "more_body": True}

    async def _end_of_body(self) -> dict[str, Any]:
        if self._request.method == "PUT" and not self.status:
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await asyncio.sleep(self._site.network.delay())
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
            return
        self.body += message.get("body", b"")
        if not message.get("more_body", False):
            self._is_whole = True
            self._over.set()

    def _check_told(self, copies: Copies) -> None:
        """I12: an upload that was acknowledged is noted in the store."""
        if self.status != _CREATED or "/uploads/" not in self._request.url.path:
            return
        token = self._request.url.path.rpartition("/")[2]
        grant = copies.open_upload(token)
        key = (grant.tenant, grant.worker_id, grant.resource_id)
        self._site.world.sometimes("copy noted")
        if key not in self._site.copied:
            raise Violation("I12", f"the copy of {grant.resource_id} was acknowledged, not stored")
