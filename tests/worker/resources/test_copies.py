"""Files of workers that did not come back: fetched before the attempt that needs them starts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business
from astraflow.worker.resources.copies import CopyFetcher
from tests.worker.resources.bench import WORKER, Bench, take_in

CONTENT = b"the bytes of a copy" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
WAIT_S = 30.0


class Source:
    """A server that has one copy, and can be held back."""

    def __init__(self) -> None:
        self.status = b"200 OK"
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.let_go.set()
        self._serving: set[asyncio.Task[None] | None] = set()

    async def __aenter__(self) -> Source:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.let_go.set()
        self._server.close()
        await self._server.wait_closed()
        await asyncio.gather(*filter(None, self._serving), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        self.asked.set()
        await self.let_go.wait()
        head = b"HTTP/1.1 " + self.status + b"\r\nContent-Length: %d\r\n\r\n" % len(CONTENT)
        with suppress(ConnectionError):
            writer.write(head + CONTENT)
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


class Scene:
    """A fetcher, the hosts behind it, and what they were asked and told."""

    def __init__(self, folder: Path, origin: str) -> None:
        self.bench = Bench(folder)
        self.calls: list[tuple[Any, ...]] = []
        self.ends: list[Any] = []
        self.changed = asyncio.Event()
        self.fetcher = CopyFetcher(
            self.bench.registry,
            self,
            self,  # type: ignore[arg-type]
            self.bench.source,
            lambda: origin,
        )

    def start(self, dispatch: business.Dispatch, fence_at: float, lane: int = 0) -> None:
        self._note(("start", dispatch.task_id, fence_at))

    def cancel(self, *given: Any) -> None:
        self._note(("cancel", *given))

    def kill(self, *given: Any) -> None:
        self._note(("kill", *given))

    def answer(self, response: Any) -> None:
        self._note(("answer", response))

    def refence(self, fences: Mapping[tuple[str, int], float]) -> None:
        self.calls.append(("refence", dict(fences)))

    def finished(self, result: business.Result) -> None:
        self.ends.append(result)
        self.changed.set()

    def gone(self, task_id: str, attempt: int) -> None:
        self.ends.append((task_id, attempt))
        self.changed.set()

    def _note(self, call: tuple[Any, ...]) -> None:
        self.calls.append(call)
        self.changed.set()

    async def something(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.changed.wait()
        self.changed.clear()


def dispatch(metadata: object) -> business.Dispatch:
    raw = msgspec.Raw(msgspec.json.encode(metadata))
    return business.Dispatch(
        run_id=RunId("run1"),
        task_id=TaskId("run1.1"),
        attempt=1,
        failures=0,
        node_id="n1",
        node_type="core.read_file",
        package=business.PackageId("core", "1.0.0"),
        parameters=msgspec.Raw(b"{}"),
        lease=business.LeaseGrant(1000, "f"),
        resource_refs=(business.RequiredResource("r1", WORKER, "file", metadata=raw),),
    )


def copy(**metadata: Any) -> dict[str, Any]:
    return {"copyUrl": "/copy", "metadata": {"name": "a.txt", **metadata}}


@asynccontextmanager
async def fetching(tmp_path: Path) -> AsyncIterator[tuple[Scene, Source]]:
    """A fetcher that runs, and where it fetches from."""
    async with Source() as source:
        scene = Scene(tmp_path, source.url)
        running = asyncio.create_task(scene.fetcher.run())
        try:
            await asyncio.sleep(0)
            yield scene, source
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            scene.bench.registry.close()


async def test_an_attempt_that_needs_no_copy_starts_at_once(tmp_path: Path) -> None:
    async with fetching(tmp_path) as (scene, _):
        scene.fetcher.start(dispatch({}), 7.0)
        assert scene.calls == [("start", "run1.1", 7.0)]


async def test_the_copy_becomes_a_resource_here_and_then_the_attempt_starts(tmp_path: Path) -> None:
    async with fetching(tmp_path) as (scene, _):
        scene.fetcher.start(dispatch(copy(sha256=DIGEST, mime="text/plain")), 7.0)
        scene.fetcher.refence({("run1.1", 1): 9.0})
        await scene.something()
        assert scene.calls[-1] == ("start", "run1.1", 9.0)
        found = scene.bench.registry.find("r1")
        assert found is not None
        assert (found.checksum, found.size_bytes, found.listed) == (DIGEST, len(CONTENT), True)
        assert found.metadata["mime"] == "text/plain"
        assert not list((scene.bench.source / "copies").iterdir())


async def test_what_is_here_already_is_not_fetched(tmp_path: Path) -> None:
    async with fetching(tmp_path) as (scene, source):
        path = scene.bench.source / "made"
        path.write_bytes(CONTENT)
        take_in(scene.bench.registry, "r1", path)
        scene.fetcher.start(dispatch(copy()), 7.0)
        assert scene.calls == [("start", "run1.1", 7.0)]
        assert not source.asked.is_set()


@pytest.mark.parametrize("fault", ["not there", "other bytes"])
async def test_a_copy_that_is_not_to_be_had_is_a_loss_by_name(tmp_path: Path, fault: str) -> None:
    async with fetching(tmp_path) as (scene, source):
        source.status = b"404 Not Found" if fault == "not there" else source.status
        scene.fetcher.start(dispatch(copy(sha256="00" * 32)), 7.0)
        await scene.something()
        [result] = scene.ends
        assert (result.status, result.error.code) == ("FAILED", "E.RESOURCE.LOST")
        assert "r1" in result.error.message
        found = scene.bench.registry.find("r1")
        assert found is None or found.is_gone
        assert scene.calls == []


async def test_an_attempt_that_is_cancelled_while_it_fetches_ends_cancelled(tmp_path: Path) -> None:
    async with fetching(tmp_path) as (scene, source):
        source.let_go.clear()
        scene.fetcher.start(dispatch(copy()), 7.0)
        async with asyncio.timeout(WAIT_S):
            await source.asked.wait()
        scene.fetcher.cancel(TaskId("run1.1"), 1, 5.0, "user")
        assert scene.ends == [], "nobody is told from inside a call"
        await scene.something()
        assert [one.status for one in scene.ends] == ["CANCELLED"]
        scene.fetcher.cancel(TaskId("run1.1"), 1, 5.0, "user")
        assert scene.calls == [("cancel", "run1.1", 1, 5.0, "user")]


async def test_an_attempt_that_is_killed_while_it_fetches_is_gone(tmp_path: Path) -> None:
    async with fetching(tmp_path) as (scene, source):
        source.let_go.clear()
        scene.fetcher.start(dispatch(copy()), 7.0)
        async with asyncio.timeout(WAIT_S):
            await source.asked.wait()
        scene.fetcher.kill(TaskId("run1.1"), 1)
        await scene.something()
        assert scene.ends == [("run1.1", 1)]
        scene.fetcher.kill(TaskId("run1.2"), 1)
        assert scene.calls == [("kill", "run1.2", 1)]
