"""A worker as far as packages are concerned: a real index, a real pool of hosts, a server on the loopback interface."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from astraflow.chaos import reached_from
from astraflow.clock import SystemClock
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import Wire
from astraflow.packages import build_archive
from astraflow.worker.hosts import HostPool, PoolSettings, core_package
from astraflow.worker.packages import InstallSettings, PackageInstaller, PackageInventory
from astraflow.worker.resources import LocalResourceRegistry, RegistryBroker
from tests.packages.archives import HANDLERS, manifest, write_folder

WAIT_S = 30.0
"""For what must happen; it is never waited out unless something is broken."""
FENCE_S = 60.0
ENDS = ("installed", "failed", "removed")


class Server:
    """Serves bytes by path. A value that is a function answers for itself."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | Callable[[asyncio.StreamWriter], Any]] = {}
        self.asked: list[str] = []
        self.origin = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ")[1]
            self.asked.append(head)
            found = self.files.get(path)
            if callable(found):
                await found(writer)
            elif found is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(found) + found)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which is what some tests are about
        finally:
            writer.close()


@asynccontextmanager
async def served(tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0, ssl=tls) as listening:
        scheme = "http" if tls is None else "https"
        server.origin = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server


class Rig:
    """What was told so far, and ways to wait for more."""

    def __init__(self, folder: Path, server: Server, environ: dict[str, str], **given: Any) -> None:
        self.folder = folder
        self.server = server
        self.events: list[business.PkgEvent] = []
        self.catalog: dict[tuple[str, str], Any] = {}
        self.results: dict[str, business.Result] = {}
        self.said: list[business.Feedback] = []
        self.offers: list[list[tuple[str, str]]] = []
        self._changed = asyncio.Event()
        clock = SystemClock()
        self.clock = clock
        hosts = PoolSettings(start_timeout_s=given.pop("start_timeout_s", 30.0))
        settings = InstallSettings(origin=lambda: server.origin, **given)
        self.inventory = PackageInventory(folder, core_package(), settings.memory_limit_bytes)
        self.registry = LocalResourceRegistry(
            folder, folder / "data", worker_id=hosts.worker_id, clock=clock
        )
        woken = asyncio.Event()
        self.pool = HostPool(
            folder=folder,
            clock=clock,
            settings=hosts,
            packages=self.inventory.spec,
            events=self,
            broker=RegistryBroker(self.registry, hosts.worker_id),
            changed=woken.set,
        )
        self.packages = PackageInstaller(
            self.inventory,
            self.pool,
            data_dir=folder,
            clock=clock,
            settings=settings,
            hosts=hosts,
            tell=self.tell,
            offer_changed=self.offer_changed,
            woken=woken,
            reached=reached_from(environ),
        )

    # -- what is told -----------------------------------------------------------------------

    def tell(self, key: str, frame_type: str, payload: Wire, corr: str | None = None) -> None:
        if isinstance(payload, business.PkgEvent):
            assert (key, frame_type) == (f"pkg/{payload.name}/{payload.version}", "biz.pkg.event")
            self.events.append(payload)
        else:
            assert isinstance(payload, business.PkgCatalog)
            self.catalog[payload.name, payload.version] = json.loads(bytes(payload.manifest))
        self._changed.set()

    def offer_changed(self) -> None:
        self.offers.append(self.offered())

    def finished(self, result: business.Result) -> None:
        self.results[result.task_id] = result
        self._changed.set()

    def gone(self, task_id: str, attempt: int) -> None:
        raise AssertionError("no attempt is killed here")

    def feedback(self, feedback: business.Feedback) -> None:
        self.said.append(feedback)
        self._changed.set()

    def call(self, request: business.NextRequest) -> None:
        raise AssertionError("nothing here calls")

    # -- what tests do ----------------------------------------------------------------------

    def offered(self) -> list[tuple[str, str]]:
        return [
            (one.name, one.version) for one in self.inventory.registered() if one.name != "core"
        ]

    def publish(self, archive: bytes, version: str = "1.0.0", **fields: Any) -> business.PkgInstall:
        digest = hashlib.sha256(archive).hexdigest()
        path = f"/blobs/{digest}"
        self.server.files[path] = archive
        request = business.PkgInstall("demo", version, path, digest)
        return msgspec.structs.replace(request, **fields)

    async def install(
        self, archive: bytes, version: str = "1.0.0", **fields: Any
    ) -> business.PkgEvent:
        """Order an install and wait for its end."""
        seen = len(self.events)
        self.packages.install(self.publish(archive, version, **fields))
        return await self.end(seen)

    async def uninstall(self, version: str = "1.0.0") -> business.PkgEvent:
        seen = len(self.events)
        self.packages.uninstall(business.PkgUninstall("demo", version))
        return await self.end(seen)

    async def end(self, seen: int = 0) -> business.PkgEvent:
        """The first event after the ones seen that ends an order."""
        await self.until(lambda: any(one.status in ENDS for one in self.events[seen:]))
        return next(one for one in self.events[seen:] if one.status in ENDS)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def start(self, task: str, version: str = "1.0.0", **parameters: Any) -> None:
        dispatch = business.Dispatch(
            RunId("run-1"),
            TaskId(task),
            1,
            0,
            "node-1",
            "demo.say",
            business.PackageId("demo", version),
            msgspec.Raw(msgspec.json.encode(parameters)),
            business.LeaseGrant(30_000, "hb-1"),
        )
        self.pool.start(dispatch, self.clock.now() + FENCE_S)

    async def outcome(self, task: str, version: str = "1.0.0", **parameters: Any) -> Any:
        """What the node of a version returns."""
        self.start(task, version, **parameters)
        await self.until(lambda: task in self.results)
        result = self.results[task]
        assert result.error is None, result.error
        return json.loads(bytes(result.result))


@asynccontextmanager
async def worker(
    folder: Path, server: Server, environ: Any = None, **given: Any
) -> AsyncIterator[Rig]:
    """One boot of a worker."""
    rig = Rig(folder, server, environ or {}, **given)
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(rig.packages.run())
            yield rig
            running.cancel()
    finally:
        await rig.pool.close()
        rig.registry.close()


def package(folder: Path, code: str = HANDLERS, **fields: Any) -> bytes:
    """The archive of a small package; `files` are more of its files."""
    files = {"demo_nodes/__init__.py": code, **fields.pop("files", {})}
    folder = folder / f"src-{len(list(folder.glob('src-*')))}"
    write_folder(folder, manifest(**fields), files)
    return build_archive(folder, folder / "dist").path.read_bytes()


def details(event: business.PkgEvent) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(event.details))
    return found


def left_in_staging(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "packages" / ".staging").iterdir())


@asynccontextmanager
async def installing(folder: Path, **given: Any) -> AsyncIterator[Rig]:
    """A server and one boot of a worker."""
    async with served() as server, worker(folder / "worker", server, **given) as rig:
        yield rig
