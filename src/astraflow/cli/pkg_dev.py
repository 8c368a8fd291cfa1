"""`astra pkg dev`: what the author saves is on the workers a moment later.

Each save becomes a version of its own, `X.devN`, because what is published never changes. When all workers have it, it
is made the active one; the one before is withdrawn and removed. A save that cannot be built, or that a worker cannot
install, changes nothing: the last good one stays. At the end the version that was active before is active again.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import typer

from astraflow.cli.failing import note
from astraflow.cli.pkg_building import DIST, build_package, read_manifest
from astraflow.cli.pkg_installing import Fate, News, listening, online_workers, order, wait_for
from astraflow.cli.showing import plain, show_json
from astraflow.client.asynchronous import AsyncClient
from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.contract.packages import Package
from astraflow.packages.building import Built

__all__ = ["Developing"]

POLL_S: Final = 0.15
SETTLE_S: Final = 0.05
"""An editor writes a file in several steps; nothing is built until nothing changes any more."""
INSTALL_S: Final = 600.0

_DEV: Final = re.compile(r"(?P<base>.+)\.dev(?P<number>\d+)")
_WATCHED_NOT: Final = frozenset({DIST, "__pycache__", "node_modules", "venv"})

Snapshot = dict[str, tuple[int, int]]
SignWith = Callable[[Path], str]


class Developing:
    """One session of development of one package."""

    def __init__(self, folder: Path, sign_with: SignWith | None, *, as_json: bool) -> None:
        self._folder = folder
        self._sign_with = sign_with
        self._as_json = as_json
        self._name = str(read_manifest(folder)["name"])
        self._clock = SystemClock()
        self._news = News()
        self._before: str | None = None
        self._live: str | None = None
        self._stop = asyncio.Event()

    async def run(self, server: str | None, token: str | None) -> None:
        """Until SIGINT or SIGTERM."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        async with AsyncClient(server, token) as client:
            found = await self._published(client)
            self._before = _last_final(found)
            async with listening(client, self._news):
                try:
                    await self._watch(client)
                finally:
                    await self._restore(client)

    async def _watch(self, client: AsyncClient) -> None:
        while not self._stop.is_set():
            seen = _snapshot(self._folder)
            await self._bring(client)
            if not self._as_json:
                note(f"watching {self._folder.absolute()}; ^C ends it")
            await self._changed(seen)

    async def _changed(self, seen: Snapshot) -> None:
        """Return when something was saved and nothing changes any more, or when it is to end."""
        while not self._stop.is_set() and _snapshot(self._folder) == seen:
            await self._pause(POLL_S)
        while not self._stop.is_set() and (now := _snapshot(self._folder)) != seen:
            seen = now
            await self._pause(SETTLE_S)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _bring(self, client: AsyncClient) -> None:
        """Build, publish, install, activate; what goes wrong is the author's to read, and the session goes on."""
        try:
            await self._try_to_bring(client)
        except errors.AstraflowError as problem:
            self._failed(problem.message, problem.code.code)
        except OSError as problem:  # a file that an editor has just replaced
            said = f"cannot be used: {problem.strerror or problem}: {problem.filename or 'a file'}"
            self._failed(said, errors.INPUT_UNREADABLE.code)

    async def _try_to_bring(self, client: AsyncClient) -> None:
        began = self._clock.now()
        version = self._next_version(await self._published(client))
        built = await self._publish(client, version)
        fates = await self._install(client, built)
        if fates and all(fate.problem for fate in fates):
            self._failed(fates[0].problem, errors.PKG_INSTALL_FAILED.code)
            await client.packages.yank(self._name, version, "it could not be installed")
            return
        await client.packages.activate(self._name, version)
        replaced, self._live = self._live, version
        self._is_live(built, fates, self._clock.now() - began)
        if replaced is not None:
            await self._withdraw(client, replaced)

    async def _publish(self, client: AsyncClient, version: str) -> Built:
        with tempfile.TemporaryDirectory(prefix="astra-dev-") as out:
            built = await asyncio.to_thread(build_package, self._folder, Path(out), version=version)
            if built.manifest.name != self._name:
                raise errors.Refused(
                    errors.PKG_INVALID,
                    f"the package has another name now: {built.manifest.name}; end this and start it again",
                )
            signature = self._sign_with(built.path) if self._sign_with else None
            await client.packages.publish(built.path, signature)
        return built

    async def _install(self, client: AsyncClient, built: Built) -> list[Fate]:
        workers = [one.worker_id for one in await online_workers(client)]
        name, version = self._name, built.manifest.version
        await order(client, "pkg.install", name, version, workers)
        return await wait_for(
            client,
            "pkg.install",
            name,
            version,
            workers,
            self._news,
            timeout_s=INSTALL_S,
            clock=self._clock,
        )

    async def _withdraw(self, client: AsyncClient, version: str) -> None:
        await client.packages.yank(self._name, version, "a version of `astra pkg dev`")
        workers = [one.worker_id for one in await online_workers(client)]
        await order(client, "pkg.uninstall", self._name, version, workers)

    async def _restore(self, client: AsyncClient) -> None:
        if self._live is None:
            return
        if self._before is None:
            self._say("ended", f"{self._live} stays active: nothing else of {self._name} is published",
                      version=self._live)  # fmt: skip
            return
        await client.packages.activate(self._name, self._before)
        await self._withdraw(client, self._live)
        self._say("ended", f"{self._name} {self._before} is active again", version=self._before)

    async def _published(self, client: AsyncClient) -> Package | None:
        try:
            return await client.packages.get(self._name)
        except errors.NotFound:
            return None

    def _next_version(self, found: Package | None) -> str:
        written = str(read_manifest(self._folder)["version"]).partition("+")[0]
        match = _DEV.fullmatch(written)
        base = match["base"] if match else written
        taken = [_DEV.fullmatch(one.version) for one in (found.versions if found else ())]
        numbers = [int(one["number"]) for one in taken if one and one["base"] == base]
        return f"{base}.dev{max(numbers, default=0) + 1}"

    # -- saying ---------------------------------------------------------------------------------

    def _is_live(self, built: Built, fates: list[Fate], seconds: float) -> None:
        types = [node.type for node in built.manifest.body.nodes]
        version = built.manifest.version
        good = [fate.worker for fate in fates if not fate.problem]
        where = (
            f"on {len(good)} worker{'s' if len(good) != 1 else ''}" if fates else "on no worker yet"
        )
        said = f"{self._name} {version} is live {where} after {seconds:.2f} s: {', '.join(types)}"
        self._say(
            "live", said, version=version, seconds=round(seconds, 3), workers=good, nodes=types
        )
        for fate in fates:
            if fate.problem:
                note(f"  {fate.worker}: {plain(fate.problem)}")

    def _failed(self, message: str, code: str) -> None:
        if self._as_json:
            self._say("failed", "", code=code, message=message, live=self._live)
            return
        note(f"error: {plain(message, lines=True)}")
        stays = f"{self._live} stays live" if self._live else "nothing is live yet"
        note(f"hint: correct it and save; {stays}")

    def _say(self, event: str, text: str, **fields: Any) -> None:
        if self._as_json:
            show_json({"event": event, "name": self._name, **fields})
        else:
            typer.echo(text)


def _last_final(found: Package | None) -> str | None:
    """The version to go back to: the active one, or the newest, but none of an earlier session."""
    if found is None:
        return None
    finals = [one for one in found.versions if not _DEV.fullmatch(one.version)]
    for one in finals:
        if one.version == found.active:
            return one.version
    return next((one.version for one in finals if one.yanked_at is None), None)


def _snapshot(folder: Path) -> Snapshot:
    """When each file was changed and how large it is."""
    seen: Snapshot = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _WATCHED_NOT and one[0] != "."]
        for name in names:
            path = os.path.join(at, name)
            try:
                status = os.stat(path)
            except OSError:
                continue  # gone meanwhile: the next look will see
            seen[path] = status.st_mtime_ns, status.st_size
    return seen
