"""The two clients with packages, node types, resources and files, against the served application."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from astraflow.client import AsyncClient, Client
from astraflow.core import errors
from astraflow.core.security.policy import Role
from astraflow.packages import SigningKey
from tests.api.rig import Rig, serving
from tests.api.scripted import token_of
from tests.api.test_resources import holding
from tests.scheduler.packing import pack, signed

Calling = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def serving_client(kind: str) -> AsyncIterator[tuple[Rig, Any, Calling]]:
    """An application and one client of it; the last makes a call of either kind of client."""
    async with serving() as rig:
        url, token = f"http://127.0.0.1:{rig.port}", token_of(Role.ADMIN)
        if kind == "async":
            async with AsyncClient(url, token) as client:
                yield rig, client, lambda method, *given, **more: method(*given, **more)
        else:
            with Client(url, token) as blocking:
                yield rig, blocking, asyncio.to_thread


KINDS = pytest.mark.parametrize("kind", ["async", "blocking"])


@KINDS
async def test_a_client_publishes_and_looks_at_packages(kind: str, tmp_path: Path) -> None:
    async with serving_client(kind) as (_, client, call):
        for version in ("1.0.0", "2.0.0"):
            archive = pack(version)
            path = tmp_path / f"{version}.cwx"
            path.write_bytes(archive)
            made = await call(client.packages.publish, path, signed(archive, SigningKey.generate()))
            assert made.sha256 == hashlib.sha256(archive).hexdigest()
        assert "demo" in [one.name for one in (await call(client.packages.list)).items]
        assert [one.version for one in (await call(client.packages.get, "demo")).versions] == [
            "2.0.0",
            "1.0.0",
        ]
        assert (await call(client.packages.version, "demo", "1.0.0")).manifest["name"] == "demo"
        assert await call(client.packages.activate, "demo", "2.0.0") is None
        assert await call(client.packages.activate, "demo", "1.0.0") == "2.0.0"
        assert await call(client.packages.roll_back, "demo") == "2.0.0"
        yanked = await call(client.packages.yank, "demo", "2.0.0", "bad")
        assert (yanked.yanked_reason, yanked.active) == ("bad", False)
        assert (await call(client.packages.unyank, "demo", "2.0.0")).yanked_at is None
        begun = await call(client.packages.start_rollout, "demo", "2.0.0", waves=[100])
        assert await call(client.packages.rollouts, "demo") == [begun]
        (found,) = (await call(client.catalog.list, "demo.say", package="demo")).items
        assert (await call(client.catalog.get, "demo.say")).package == found.package
        with pytest.raises(errors.NotFound):
            await call(client.packages.get, "nothing")


@KINDS
async def test_a_client_looks_at_resources_and_downloads_artifacts(
    kind: str, tmp_path: Path
) -> None:
    async with serving_client(kind) as (rig, client, call), holding(rig, "run-1/a b") as worker:
        worker.serve_exports()
        (only,) = (await call(client.resources.list, type="file")).items
        assert await call(client.resources.get, "run-1/a b") == only
        assert (await call(client.resources.extend, "run-1/a b", 60)).expires_at is not None
        into = tmp_path / "file"
        assert await call(client.resources.download, "run-1/a b", into) == len(b"run-1/a b")
        assert into.read_bytes() == b"run-1/a b"
        shared = await call(client.resources.share, "run-1/a b", worker_id="w1")
        assert shared.sha256 == hashlib.sha256(b"run-1/a b").hexdigest()
        await call(client.resources.close, "run-1/a b")
        assert (await worker.next("biz.resource.cleanup"))["resource_id"] == "run-1/a b"
        with pytest.raises(errors.NotFound):
            await call(client.resources.download, "nothing", into)
        assert os.listdir(tmp_path) == ["file"]


def test_a_download_that_breaks_off_goes_on_where_it_was(tmp_path: Path) -> None:
    """The server hangs up after some bytes, and the client asks for the rest."""
    whole = bytes(range(256)) * 400
    etag = f'"{hashlib.sha256(whole).hexdigest()}"'
    asked: list[str | None] = []

    class Torn(httpx.SyncByteStream):
        def __init__(self, body: bytes) -> None:
            self._body = body

        def __iter__(self) -> Any:
            yield self._body[:30_000]
            if len(self._body) > 30_000:
                raise httpx.RemoteProtocolError("the line broke")

    def answer(request: httpx.Request) -> httpx.Response:
        given = request.headers.get("range")
        asked.append(given)
        start = 0 if given is None else int(given.removeprefix("bytes=").rstrip("-"))
        assert request.headers.get("if-range") == (etag if start else None)
        return httpx.Response(
            206 if start else 200, headers={"etag": etag}, stream=Torn(whole[start:])
        )

    with Client("http://127.0.0.1:1", "token") as client:
        client._http = httpx.Client(
            transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:1"
        )
        assert client.resources.download("r", tmp_path / "file") == len(whole)
        client._http.close()
    assert (tmp_path / "file").read_bytes() == whole
    assert asked == [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_a_file_that_came_damaged_is_not_kept(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"etag": '"of something else"'}, content=b"body")

    with Client("http://127.0.0.1:1", "token") as client:
        client._http = httpx.Client(
            transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:1"
        )
        with pytest.raises(errors.Unavailable):
            client.resources.download("r", tmp_path / "file")
        client._http.close()
    assert list(tmp_path.iterdir()) == []
