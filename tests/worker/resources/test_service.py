"""Resources of a worker that runs: what the scheduler asks for, what it is told, and uploads."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astraflow.config import WorkerSettings
from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.core.protocol.wire import Wire
from astraflow.worker.addresses import Schedulers, absolute_url, http_origin
from astraflow.worker.resources import LocalResource, ResourceService, Terms
from tests.worker.resources.bench import Clock, FakeHolder, lessee, maker, take_in
from tests.worker.resources.receiver import Receiver

WAIT_S = 30.0
TOKEN = "0123456789abcdef" * 2
BAD_ADDRESSES = ["file:///etc/passwd", "ftp://h/x", "http://[bad/x", "http://h:99999/", "//\x00/x"]


class Running:
    """A service with its loop under way, and the newest word about each resource."""

    def __init__(self, service: ResourceService, folder: Path) -> None:
        self.service = service
        self.registry = service.registry
        self.folder = folder
        self.told: dict[str, business.ResourceEvent] = {}
        self.states: list[str] = []
        self._changed = asyncio.Event()

    def tell(
        self, key: str, frame_type: str, payload: Wire, corr: str | None, lane: int = 0
    ) -> None:
        assert isinstance(payload, business.ResourceEvent)
        assert (key, frame_type) == (f"resource/{payload.resource_id}", "biz.resource.event")
        self.told[payload.resource_id] = payload
        self.states.append(payload.state)
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def file(self, resource_id: str, content: bytes = b"content", **metadata: Any) -> LocalResource:
        (self.folder / "data").mkdir(exist_ok=True)
        path = self.folder / "data" / "made"
        path.write_bytes(content)
        terms = Terms(metadata=metadata)
        made = take_in(self.registry, resource_id, path, maker=maker(), terms=terms)
        self.registry.release_attempt(lessee())
        return made


@asynccontextmanager
async def running(
    folder: Path, url: str = "ws://127.0.0.1:9/ws", clock: Any = None, **settings: Any
) -> AsyncIterator[Running]:
    given = WorkerSettings(data_dir=folder, scheduler_ws_url=(url,), **settings)
    service = ResourceService(given, folder, "w-1", clock or Clock(), Schedulers([url]).origin)
    found = Running(service, folder)
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(service.run(found.tell))
            await asyncio.sleep(0)
            yield found
            task.cancel()
    finally:
        service.close()


class TestAsked:
    async def test_the_end_of_a_scope_is_done_and_told(self, tmp_path: Path) -> None:
        async with running(tmp_path) as found:
            kept = found.file("run-1/a")
            path = found.registry.files.path_of(kept.token, kept.name)
            found.service.on_cleanup(business.ResourceCleanup(scope="run-1"))
            assert found.told["run-1/a"].state == "released"
            assert not path.exists()

    async def test_one_resource_goes_whatever_it_is(self, tmp_path: Path) -> None:
        async with running(tmp_path) as found:
            found.file("run-1/a").listed = True
            found.service.on_cleanup(business.ResourceCleanup(resource_id="run-1/a"))
            assert found.told["run-1/a"].state == "released"
            found.service.on_cleanup(business.ResourceCleanup(resource_id="run-1/none"))
            assert found.told["run-1/none"].state == "evicted"

    async def test_a_touch_prolongs_and_what_is_not_there_is_told(self, tmp_path: Path) -> None:
        async with running(tmp_path) as found:
            made = found.file("run-1/a")
            before = made.expires_at
            until = "1970-01-12T20:00:00Z"
            found.service.on_touch(business.ResourceTouch("run-1/a", until))
            assert made.expires_at > before
            assert found.told["run-1/a"].expires_at == "1970-01-12T20:00:00.000Z"
            for bad in ("1970-01-01T00:00:00Z", "9999-12-30T00:00:00Z"):
                found.service.on_touch(business.ResourceTouch("run-1/a", bad))
            assert found.told["run-1/a"].expires_at == "1970-01-12T20:00:00.000Z"
            found.service.on_touch(business.ResourceTouch("run-1/none", until))
            assert found.told["run-1/none"].state == "evicted"

    async def test_what_happened_before_the_link_is_told_when_it_is_there(
        self, tmp_path: Path
    ) -> None:
        async with running(tmp_path) as found:
            found.file("run-1/a")
            found.registry.register("run-1/m", "model", token=TOKEN, holder=FakeHolder())
        async with running(tmp_path) as again:
            states = {key: event.state for key, event in again.told.items()}
            assert states == {"run-1/a": "ready", "run-1/m": "evicted"}

    async def test_the_loop_cleans_up_by_itself(self, tmp_path: Path) -> None:
        clock = Clock()
        async with running(tmp_path, clock=clock, resource_gc_interval_seconds=1) as found:
            found.file("run-1/a", b"12345")
            clock.turn(7200)
            await found.until(lambda: found.told["run-1/a"].state == "evicted")
            assert found.registry.reclaimed_bytes == 5
            trash = found.registry.files.root / "trash"
            async with asyncio.timeout(WAIT_S):
                while any(trash.iterdir()):  # noqa: ASYNC110  (nothing would set an event)
                    await asyncio.sleep(0)

    async def test_a_folder_that_cannot_be_swept_does_not_end_the_worker(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(tmp_path) as found:
            tried = asyncio.Event()
            loop = asyncio.get_running_loop()

            def fail(*_: object) -> None:
                loop.call_soon_threadsafe(tried.set)
                raise PermissionError("not yours")

            monkeypatch.setattr(found.registry.files, "sweep", fail)
            found.service.on_cleanup(business.ResourceCleanup(scope="run-1"))
            await tried.wait()
            found.file("run-1/a")
            found.service.on_cleanup(business.ResourceCleanup(scope="run-1"))
            tried.clear()
            await tried.wait()
            assert found.told["run-1/a"].state == "released"


class TestExports:
    @pytest.mark.parametrize("is_relative", [True, False])
    async def test_a_file_is_put_where_it_is_wanted(
        self, tmp_path: Path, is_relative: bool
    ) -> None:
        async with Receiver() as receiver:
            url = f"ws://127.0.0.1:{receiver.port}/ws/worker"
            async with running(tmp_path, url) as found:
                found.file("run-1/a", b"grass" * 1000, mime="text/plain")
                where = "/upload/1?sig=x"
                address = where if is_relative else f"http://127.0.0.1:{receiver.port}{where}"
                found.service.on_export(business.ResourceExport("run-1/a", address))
                await found.until(lambda: found.told["run-1/a"].state == "touched")
                (put,) = receiver.received
                assert (put.method, put.path, put.mime) == ("PUT", where, "text/plain")
                assert put.sha256 == hashlib.sha256(b"grass" * 1000).hexdigest()
                assert put.authorization is None
                assert found.registry.list()[0].in_use_count == 0

    async def test_a_resource_that_is_not_there_is_told_evicted(self, tmp_path: Path) -> None:
        async with running(tmp_path) as found:
            found.service.on_export(business.ResourceExport("run-1/none", "/upload/1"))
            await found.until(lambda: "run-1/none" in found.told)
            assert found.told["run-1/none"].state == "evicted"

    async def test_an_object_is_not_exported(self, tmp_path: Path) -> None:
        async with Receiver() as receiver:
            url = f"ws://127.0.0.1:{receiver.port}/ws/worker"
            async with running(tmp_path, url) as found:
                found.registry.register("run-1/m", "model", token=TOKEN, holder=FakeHolder())
                found.service.on_export(business.ResourceExport("run-1/m", "/upload/1"))
                await found.until(lambda: found.told["run-1/m"].state == "touched")
                assert receiver.received == []

    @pytest.mark.parametrize(("refusals", "tries"), [([503], 2), ([403, 200], 1)])
    async def test_what_may_pass_is_tried_again_and_what_is_refused_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: list[int], tries: int
    ) -> None:
        monkeypatch.setattr("astraflow.worker.resources.exports.RETRY_S", 0.0)

        async with Receiver(refusals) as receiver:
            url = f"ws://127.0.0.1:{receiver.port}/ws/worker"
            async with running(tmp_path, url) as found:
                found.file("run-1/a")
                found.service.on_export(business.ResourceExport("run-1/a", "/upload/1"))
                await found.until(lambda: found.told["run-1/a"].state == "touched")
                assert len(receiver.received) == tries
                assert found.registry.list()[0].in_use_count == 0

    async def test_it_stays_while_it_is_being_uploaded(self, tmp_path: Path) -> None:
        async with Receiver(is_held=True) as receiver:
            url = f"ws://127.0.0.1:{receiver.port}/ws/worker"
            async with running(tmp_path, url) as found:
                found.file("run-1/a")
                found.service.on_export(business.ResourceExport("run-1/a", "/upload/1"))
                await receiver.arrived.wait()
                found.service.on_cleanup(business.ResourceCleanup(scope="run-1"))
                assert found.told["run-1/a"].state == "evicting"
                receiver.let_go.set()
                await found.until(lambda: "released" in found.states)
                newest = found.told["run-1/a"]
                assert newest.state == "released", "the newest word counts"
                assert receiver.received[0].sha256 == hashlib.sha256(b"content").hexdigest()

    def test_a_large_file_does_not_grow_the_worker(self, tmp_path: Path) -> None:
        """In a process of its own, so that the peak is that of the upload alone."""
        program = Path(__file__).parent / "upload_program.py"
        ran = subprocess.run(
            [sys.executable, str(program), str(tmp_path), str(256 * 1024 * 1024)],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=Path(__file__).parents[3],
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        grown, received = map(int, ran.stdout.split())
        assert received == 256 * 1024 * 1024
        assert grown < 32 * 1024 * 1024

    async def test_an_address_that_is_none_does_not_end_the_worker(self, tmp_path: Path) -> None:
        async with Receiver() as receiver:
            url = f"ws://127.0.0.1:{receiver.port}/ws/worker"
            async with running(tmp_path, url) as found:
                for number, address in enumerate(BAD_ADDRESSES):
                    found.file(f"run-1/{number}")
                    export = business.ResourceExport(f"run-1/{number}", address)
                    found.service.on_export(export)
                found.file("run-1/good")
                found.service.on_export(business.ResourceExport("run-1/good", "/upload/1"))
                await found.until(lambda: receiver.received)
                await found.until(lambda: found.told["run-1/good"].state == "touched")

    @pytest.mark.parametrize("address", BAD_ADDRESSES)
    def test_only_addresses_of_http_are_used(self, address: str) -> None:
        with pytest.raises(errors.Refused) as caught:
            absolute_url(address, lambda: "http://h", errors.RESOURCE_INVALID)
        assert caught.value.code is errors.RESOURCE_INVALID

    def test_the_address_of_the_scheduler_follows_from_its_socket(self) -> None:
        origin = http_origin("wss://user:pw@host:1/ws/worker")
        assert origin == "https://host:1"
        found = absolute_url("/a/b?c=d", lambda: origin, errors.RESOURCE_INVALID)
        assert found == "https://host:1/a/b?c=d"


async def test_settings_become_limits(tmp_path: Path) -> None:
    async with running(tmp_path, resource_max_disk_bytes=3) as found:
        with pytest.raises(errors.Refused) as caught:
            found.file("run-1/a", b"1234")
        assert caught.value.code is errors.RESOURCE_QUOTA
