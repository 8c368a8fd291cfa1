"""What happens to versions over time: restarts, removal under load, and the ones that are kept."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from astraflow.core.protocol import business
from tests.packages.archives import HANDLERS
from tests.worker.packages.rig import Rig, details, left_in_staging, package, served, worker

WAITS = """
import os
import time
from astraflow_sdk import Context, node


@node("demo.say")
def say(ctx: Context, file: str = "", text: str = "") -> dict[str, str]:
    ctx.log("info", "up")
    while file and not os.path.exists(file):
        time.sleep(0.01)
    return {"text": text}
"""


async def until_up(rig: Rig, task: str) -> None:
    await rig.until(lambda: any(one.task_id == task and one.chunks for one in rig.said))


async def test_a_version_in_use_is_removed_when_its_last_attempt_has_ended(tmp_path: Path) -> None:
    async with served() as server, worker(tmp_path / "w", server) as rig:
        await rig.install(package(tmp_path, WAITS))
        rig.start("t1", file=str(tmp_path / "go"), text="whole")
        await until_up(rig, "t1")
        seen = len(rig.events)
        rig.packages.uninstall(business.PkgUninstall("demo", "1.0.0"))
        assert rig.offered() == []
        assert rig.offers[-1] == []
        # The queue goes on: what waits for an attempt holds nobody up.
        event = await rig.install(package(tmp_path, version="2.0.0"), "2.0.0")
        assert (event.version, event.status) == ("2.0.0", "installed")
        assert (rig.folder / "packages/demo/1.0.0").is_dir()
        (tmp_path / "go").touch()
        await rig.until(lambda: any(one.status == "removed" for one in rig.events[seen:]))
        assert json.loads(bytes(rig.results["t1"].result)) == {"text": "whole"}
        assert not (rig.folder / "packages/demo/1.0.0").exists()
        assert rig.inventory.spec("demo", "1.0.0") is None
        assert rig.pool.hosts_of("demo", "1.0.0") == 0
        assert left_in_staging(rig.folder) == []


async def test_a_removal_is_remembered_over_a_restart(tmp_path: Path) -> None:
    async with served() as server:
        async with worker(tmp_path / "w", server) as rig:
            await rig.install(package(tmp_path))
            rig.packages._users = _Busy()
            rig.packages.uninstall(business.PkgUninstall("demo", "1.0.0"))
            assert rig.offered() == []
        async with worker(tmp_path / "w", server) as rig:
            assert rig.offered() == []
            assert (await rig.end()).status == "removed"
            assert not (rig.folder / "packages/demo/1.0.0").exists()


class _Busy:
    """A pool in which an attempt of everything runs, until the worker ends."""

    def attempts_of(self, name: str, version: str) -> int:
        return 1

    def hosts_of(self, name: str, version: str) -> int:
        return 1

    def retire(self, name: str, version: str) -> None:
        """Its hosts live as long as their attempt."""


async def test_an_install_takes_a_removal_back(tmp_path: Path) -> None:
    async with served() as server, worker(tmp_path / "w", server) as rig:
        archive = package(tmp_path, WAITS)
        await rig.install(archive)
        rig.start("t1", file=str(tmp_path / "go"))
        await until_up(rig, "t1")
        rig.packages.uninstall(business.PkgUninstall("demo", "1.0.0"))
        assert (await rig.install(archive)).status == "installed"
        assert rig.offered() == rig.offers[-1] == [("demo", "1.0.0")]
        (tmp_path / "go").touch()
        await rig.until(lambda: "t1" in rig.results)
        assert await rig.outcome("t2", text="stays") == {"text": "stays"}


async def test_removal_of_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async with served() as server, worker(tmp_path / "w", server) as rig:
        event = await rig.uninstall()
        assert (event.status, details(event)["code"]) == ("failed", "E.PKG.NOT_FOUND")


async def test_what_is_installed_is_there_after_a_restart_and_its_manifest_is_told(
    tmp_path: Path,
) -> None:
    async with served() as server:
        async with worker(tmp_path / "w", server) as rig:
            await rig.install(package(tmp_path))
            digest = rig.inventory.digest()
        async with worker(tmp_path / "w", server) as rig:
            assert rig.inventory.digest() == digest
            assert rig.offered() == [("demo", "1.0.0")]
            assert await rig.outcome("t1", text="still") == {"text": "still"}
            assert rig.catalog["demo", "1.0.0"]["version"] == "1.0.0"


async def test_orders_that_wait_are_worked_off_after_a_restart(tmp_path: Path) -> None:
    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with served() as server:
        async with worker(tmp_path / "w", server) as rig:
            first = rig.publish(package(tmp_path))
            second = rig.publish(package(tmp_path, version="2.0.0"), "2.0.0")
            archive = server.files[first.url]
            server.files[first.url] = hangs
            rig.packages.install(first)
            rig.packages.install(second)
            await rig.until(lambda: rig.events)
        server.files[first.url] = archive
        async with worker(tmp_path / "w", server) as rig:
            assert left_in_staging(rig.folder) == []
            await rig.until(lambda: len(rig.offered()) == 2)
            assert [one.version for one in rig.events if one.status == "installed"] == [
                "1.0.0",
                "2.0.0",
            ]


@pytest.mark.parametrize(
    "hurt", ["record", "half a record", "another's record", "manifest", "python"]
)
async def test_what_is_not_whole_is_not_offered_and_can_be_installed_again(
    tmp_path: Path, hurt: str
) -> None:
    async with served() as server:
        archive = package(tmp_path)
        async with worker(tmp_path / "w", server) as rig:
            await rig.install(archive)
        version = tmp_path / "w/packages/demo/1.0.0"
        record = version / ".install.json"
        if hurt == "record":
            record.unlink()
        elif hurt == "half a record":
            record.write_bytes(record.read_bytes()[:20])
        elif hurt == "another's record":
            record.write_text(record.read_text().replace("demo", "other"))
        elif hurt == "manifest":
            (version / "manifest.json").write_text("{}")
        else:
            (version / ".venv/bin/python").unlink()
        async with worker(tmp_path / "w", server) as rig:
            assert rig.offered() == []
            assert (await rig.install(archive)).status == "installed"
            assert await rig.outcome("t1", text="again") == {"text": "again"}


async def test_the_newest_and_some_before_it_are_kept(tmp_path: Path) -> None:
    async with served() as server, worker(tmp_path / "w", server, kept=1) as rig:
        first = package(tmp_path, WAITS, version="1.0")
        await rig.install(first, "1.0")
        await rig.install(package(tmp_path, version="2.0"), "2.0")
        # Asked for again, it counts as new: going back and forth keeps both.
        await rig.install(first, "1.0")
        await rig.install(package(tmp_path, version="3.0"), "3.0")
        await rig.until(lambda: rig.events[-1].status == "removed")
        assert rig.offered() == [("demo", "1.0"), ("demo", "3.0")]
        # What is in use stays.
        rig.start("t1", "1.0", file=str(tmp_path / "go"))
        await until_up(rig, "t1")
        await rig.install(package(tmp_path, version="4.0"), "4.0")
        assert rig.offered() == [("demo", "1.0"), ("demo", "3.0"), ("demo", "4.0")]
        (tmp_path / "go").touch()
        await rig.until(lambda: "t1" in rig.results)


async def test_what_was_let_go_as_too_old_and_is_asked_for_again_stays(tmp_path: Path) -> None:
    """A scheduler that wants two versions, and a worker that keeps one: it ends with both, not with a see-saw."""

    async with served() as server:
        archives = {one: package(tmp_path, version=one) for one in ("1.0", "2.0", "3.0")}
        async with worker(tmp_path / "w", server, kept=0) as rig:
            await rig.install(archives["1.0"], "1.0")
            await rig.install(archives["2.0"], "2.0")
            await rig.until(lambda: rig.events[-1].status == "removed")
            await rig.install(archives["1.0"], "1.0")
            assert rig.offered() == [("demo", "1.0"), ("demo", "2.0")]
        async with worker(tmp_path / "w", server, kept=0) as rig:
            await rig.install(archives["3.0"], "3.0")
            await rig.until(lambda: rig.events[-1].status == "removed")
            assert rig.offered() == [("demo", "1.0"), ("demo", "3.0")]
            assert (await rig.uninstall("1.0")).status == "removed"


async def test_orders_that_cannot_be_read_are_dropped_and_what_is_installed_stays(
    tmp_path: Path,
) -> None:
    async with served() as server:
        async with worker(tmp_path / "w", server) as rig:
            await rig.install(package(tmp_path))
        (tmp_path / "w/packages/.orders.json").write_text("{nonsense")
        async with worker(tmp_path / "w", server) as rig:
            assert rig.offered() == [("demo", "1.0.0")]
            event = await rig.install(package(tmp_path, HANDLERS, version="2.0"), "2.0")
            assert event.status == "installed"


async def test_a_version_whose_folder_was_taken_is_removed_from_the_offer(tmp_path: Path) -> None:
    """Somebody tidied up by hand: what is asked for is done as far as it can be."""

    async with served() as server, worker(tmp_path / "w", server) as rig:
        await rig.install(package(tmp_path))
        shutil.rmtree(tmp_path / "w/packages/demo/1.0.0")
        assert (await rig.uninstall()).status == "removed"
        assert rig.offered() == []


async def test_a_version_that_cannot_be_removed_is_still_there(tmp_path: Path) -> None:
    async with served() as server, worker(tmp_path / "w", server) as rig:
        await rig.install(package(tmp_path))
        staging = tmp_path / "w/packages/.staging"
        staging.rmdir()
        staging.touch()
        event = await rig.uninstall()
        assert (event.status, details(event)["step"]) == ("failed", "remove")
        assert rig.offered() == rig.offers[-1] == [("demo", "1.0.0")]
        assert await rig.outcome("t1", text="still") == {"text": "still"}
        staging.unlink()
        staging.mkdir()
        assert (await rig.uninstall()).status == "removed"
        assert rig.offered() == []
