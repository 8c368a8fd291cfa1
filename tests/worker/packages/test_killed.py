"""kill -9 at each step of an install and a removal, a disk that is full, a worker that dies again and again.

In all cases: the versions that were there work, what is offered is whole, and the next boot goes on where it must.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from astraflow.chaos import POINTS, VARIABLE
from astraflow.core.protocol import business
from tests.processes.process import ROOT
from tests.worker.packages.rig import Server, details, left_in_staging, package, served, worker
from tests.worker.packages.worker_program import FILE_BYTES

INSTALLING = [point for point in POINTS if point.startswith("package-")][:7]
REMOVING = [point for point in POINTS if point.startswith("package-")][7:]


def start(
    folder: Path,
    server: Server,
    requests: Sequence[business.PkgInstall | business.PkgUninstall],
    *,
    point: str | None = None,
    file_bytes: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a worker and give it these orders."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    if point is not None:
        env[VARIABLE] = point
    if file_bytes is not None:
        env[FILE_BYTES] = str(file_bytes)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.worker.packages.worker_program", str(folder), server.origin],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A limit for files would hold for that of whoever captures what is logged.
        stderr=None if file_bytes is None else subprocess.DEVNULL,
        cwd=ROOT,
        env=env,
    )
    assert process.stdin is not None
    for request in requests:
        process.stdin.write(msgspec.json.encode(request) + b"\n")
    process.stdin.flush()
    return process


async def boot(
    folder: Path,
    server: Server,
    requests: Sequence[business.PkgInstall | business.PkgUninstall],
    *,
    point: str | None = None,
    file_bytes: int | None = None,
    ends: int = 1,
) -> tuple[int, list[str]]:
    """Run a worker with these orders until it is killed, or has told that many ends. Its code and its lines."""
    process = await asyncio.to_thread(
        start, folder, server, requests, point=point, file_bytes=file_bytes
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin as orders:
        lines: list[str] = []
        while ends and (line := await asyncio.to_thread(process.stdout.readline)):
            lines.append(line.decode())
            ends -= line.split()[1] in (b"installed", b"failed", b"removed")
        if not ends:
            orders.close()
        return await asyncio.to_thread(process.wait), lines


@pytest.mark.parametrize("point", INSTALLING)
async def test_a_worker_killed_in_an_install_offers_what_is_whole_and_goes_on(
    tmp_path: Path, point: str
) -> None:
    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            await rig.install(package(tmp_path, version="0.9"), "0.9")
            request = rig.publish(package(tmp_path))
        code, _ = await boot(folder, server, [request], point=point, ends=2)
        assert code == -signal.SIGKILL, "it never came to its point"
        async with worker(folder, server) as rig:
            assert left_in_staging(folder) == []
            is_placed = point in ("package-placed", "package-installed")
            whole = [("demo", "0.9"), ("demo", "1.0.0")]
            assert rig.offered() == (whole if is_placed else whole[:1])
            assert await rig.outcome("t1", "0.9", text="still") == {"text": "still"}
            assert (await rig.end()).status == "installed"
            assert await rig.outcome("t2", "1.0.0", text="new") == {"text": "new"}


@pytest.mark.parametrize("point", REMOVING)
async def test_a_worker_killed_in_a_removal_finishes_it(tmp_path: Path, point: str) -> None:
    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            await rig.install(package(tmp_path, version="0.9"), "0.9")
            await rig.install(package(tmp_path))
        request = business.PkgUninstall("demo", "1.0.0")
        code, _ = await boot(folder, server, [request], point=point, ends=2)
        assert code == -signal.SIGKILL, "it never came to its point"
        async with worker(folder, server) as rig:
            assert rig.offered() == [("demo", "0.9")]
            assert (await rig.end()).status == "removed"
            assert left_in_staging(folder) == []
            assert await rig.outcome("t1", "0.9", text="still") == {"text": "still"}


async def test_a_hook_does_not_outlive_its_worker(tmp_path: Path) -> None:
    """The worker is killed while a hook runs that has a child in a session of its own."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = (
        f"#!/bin/sh\nexec 9> {pipe}\nsetsid sh -c 'echo up >&9; exec sleep 1000' &\nsleep 1000\n"
    )

    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            archive = package(
                tmp_path,
                files={"scripts/hook.sh": script},
                hooks={"install": ["scripts/hook.sh"]},
            )
            request = rig.publish(archive)
        process = start(folder, server, [request])
        with process, await asyncio.to_thread(pipe.open, "rb") as said:
            assert await asyncio.to_thread(said.readline) == b"up\n"
            process.kill()
            # The end of the pipe is the end of the hook: nothing holds it open any more.
            assert await asyncio.to_thread(said.read) == b""
        async with worker(folder, server) as rig:
            assert left_in_staging(folder) == []
            told = details(await rig.end())
            assert told["code"] == "E.PKG.PERMISSION", "this boot allows no hooks"


async def test_an_install_that_kills_its_worker_each_time_is_given_up(tmp_path: Path) -> None:
    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            request = rig.publish(package(tmp_path))
        for requests in ([request], [], []):
            code, _ = await boot(folder, server, requests, point="package-unpacked", ends=2)
            assert code == -signal.SIGKILL
        async with worker(folder, server) as rig:
            event = await rig.end()
            assert (event.status, details(event)["code"]) == ("failed", "E.PKG.INSTALL_FAILED")
            assert "3 times" in details(event)["message"]
            assert (await rig.install(package(tmp_path))).status == "installed"


async def test_a_full_disk_fails_the_install_and_touches_nothing_else(tmp_path: Path) -> None:
    """No file may grow beyond 200 kB: the disk is full in the middle of unpacking."""

    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            await rig.install(package(tmp_path, version="0.9"), "0.9")
            large = package(tmp_path, files={"large.txt": "0123456789" * 100_000})
            request = rig.publish(large)
        code, lines = await boot(folder, server, [request], file_bytes=200_000)
        assert code == 0
        assert lines[-1].startswith("1.0.0 failed ")
        assert "E.PKG.INSTALL_FAILED" in lines[-1]
        assert '"step":"unpack"' in lines[-1]
        assert left_in_staging(folder) == []
        async with worker(folder, server) as rig:
            assert rig.offered() == [("demo", "0.9")]
            assert await rig.outcome("t1", "0.9", text="still") == {"text": "still"}
            assert (await rig.install(large)).status == "installed"


async def test_an_order_that_cannot_be_remembered_is_refused_and_the_worker_lives(
    tmp_path: Path,
) -> None:
    async with served() as server:
        folder = tmp_path / "w"
        async with worker(folder, server) as rig:
            await rig.install(package(tmp_path, version="0.9"), "0.9")
            install = rig.publish(package(tmp_path))
        asked = len(server.asked)
        orders: list[business.PkgInstall | business.PkgUninstall] = [install]
        orders.append(business.PkgUninstall("demo", "0.9"))
        code, lines = await boot(folder, server, orders, file_bytes=16, ends=2)
        assert code == 0
        assert [line.split()[:2] for line in lines] == [["1.0.0", "failed"], ["0.9", "failed"]]
        assert all("written down" in line for line in lines)
        assert len(server.asked) == asked
        async with worker(folder, server) as rig:
            assert rig.offered() == [("demo", "0.9")]
