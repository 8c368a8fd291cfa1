"""`astra pkg dev`: installs a package on all workers after every save.

Each save becomes a version of its own, `X.devN`, because published versions are immutable. When all workers have
installed it, it is activated; the previous dev version is yanked and removed. A save that cannot be built or installed
changes nothing: the last good version stays active. At the end the previously active version is activated again.
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

from astraflow.cli.exit_codes import note
from astraflow.cli.output import plain, show_json
from astraflow.cli.pkg_build import DIST, build_package, read_manifest
from astraflow.cli.pkg_install import (
    InstallOutcome,
    PackageEvents,
    listening,
    online_workers,
    order,
    wait_for,
)
from astraflow.client.asynchronous import AsyncClient
from astraflow.clock import SystemClock
from astraflow.core import errors
from astraflow.core.contract.packages import Package
from astraflow.packages.building import Built

POLL_S: Final = 0.15
DEBOUNCE_S: Final = 0.05
"""An editor writes a file in several steps; the build starts when no file changes for this long."""
INSTALL_S: Final = 600.0

_DEV: Final = re.compile(r"(?P<base>.+)\.dev(?P<number>\d+)")
_WATCHED_NOT: Final = frozenset({DIST, "__pycache__", "node_modules", "venv"})

Snapshot = dict[str, tuple[int, int]]
SignWith = Callable[[Path], str]


class DevSession:
    """One `astra pkg dev` session for one package."""

    def __init__(self, folder: Path, sign_with: SignWith | None, *, as_json: bool) -> None:
        self._folder = folder
        self._sign_with = sign_with
        self._as_json = as_json
        self._name = str(read_manifest(folder)["name"])
        self._clock = SystemClock()
        self._news = PackageEvents()
        self._before: str | None = None
        self._live: str | None = None
        self._stop = asyncio.Event()

    async def run(self, server: str | None, token: str | None) -> None:
        """Run until SIGINT or SIGTERM."""
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
                note(f"Watching {self._folder.absolute()}; press ^C to stop")
            await self._changed(seen)

    async def _changed(self, seen: Snapshot) -> None:
        """Wait until files were saved and no file changes any more, or until the session ends."""
        while not self._stop.is_set() and _snapshot(self._folder) == seen:
            await self._pause(POLL_S)
        while not self._stop.is_set() and (now := _snapshot(self._folder)) != seen:
            seen = now
            await self._pause(DEBOUNCE_S)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _bring(self, client: AsyncClient) -> None:
        """Build, publish, install and activate. Errors are printed, and the session continues."""
        try:
            await self._try_to_bring(client)
        except errors.AstraflowError as problem:
            self._failed(problem.message, problem.code.code)
        except OSError as problem:  # an editor is replacing the file
            said = f"Cannot use {problem.filename or 'a file'}: {problem.strerror or problem}"
            self._failed(said, errors.INPUT_UNREADABLE.code)

    async def _try_to_bring(self, client: AsyncClient) -> None:
        began = self._clock.now()
        version = self._next_version(await self._published(client))
        built = await self._publish(client, version)
        fates = await self._install(client, built)
        if fates and all(fate.problem for fate in fates):
            self._failed(fates[0].problem, errors.PKG_INSTALL_FAILED.code)
            await client.packages.yank(self._name, version, "Installation failed")
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
                    f"The package was renamed to {built.manifest.name}; restart `astra pkg dev`",
                )
            signature = self._sign_with(built.path) if self._sign_with else None
            await client.packages.publish(built.path, signature)
        return built

    async def _install(self, client: AsyncClient, built: Built) -> list[InstallOutcome]:
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
        await client.packages.yank(self._name, version, "Replaced by `astra pkg dev`")
        workers = [one.worker_id for one in await online_workers(client)]
        await order(client, "pkg.uninstall", self._name, version, workers)

    async def _restore(self, client: AsyncClient) -> None:
        if self._live is None:
            return
        if self._before is None:
            self._say("ended", f"{self._live} stays active: {self._name} has no other version",
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

    # -- output ---------------------------------------------------------------------------------

    def _is_live(self, built: Built, fates: list[InstallOutcome], seconds: float) -> None:
        types = [node.type for node in built.manifest.body.nodes]
        version = built.manifest.version
        good = [fate.worker for fate in fates if not fate.problem]
        where = (
            f"on {len(good)} worker{'s' if len(good) != 1 else ''}"
            if fates
            else "but no worker is online"
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
        stays = f"{self._live} stays active" if self._live else "no version is active yet"
        note(f"hint: correct the error and save; {stays}")

    def _say(self, event: str, text: str, **fields: Any) -> None:
        if self._as_json:
            show_json({"event": event, "name": self._name, **fields})
        else:
            typer.echo(text)


def _last_final(found: Package | None) -> str | None:
    """The version to restore: the active or the newest one, but no dev version of an earlier session."""
    if found is None:
        return None
    finals = [one for one in found.versions if not _DEV.fullmatch(one.version)]
    for one in finals:
        if one.version == found.active:
            return one.version
    return next((one.version for one in finals if one.yanked_at is None), None)


def _snapshot(folder: Path) -> Snapshot:
    """Modification time and size of every file."""
    seen: Snapshot = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _WATCHED_NOT and one[0] != "."]
        for name in names:
            path = os.path.join(at, name)
            try:
                status = os.stat(path)
            except OSError:
                continue  # deleted meanwhile: the next snapshot shows it
            seen[path] = status.st_mtime_ns, status.st_size
    return seen
