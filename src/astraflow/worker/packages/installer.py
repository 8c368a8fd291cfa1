"""The package installer: works off the install queue of a worker.

Rule 1: a command is on disk when `install` or `uninstall` returns; then its frame may be acknowledged.
Rule 2: one command at a time, in `run`. The inventory changes only there, between two turns of the loop.
Rule 3: a version that is being removed is no longer offered, and is deleted when its last attempt has ended.
Rule 4: every command ends with one event: `installed`, `failed` or `removed`.
Rule 5: a version that was removed to make room for newer ones, and is then requested again, is kept until it is
        uninstalled. Otherwise a scheduler that needs more versions than are kept would cause an endless loop of
        installations and removals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol import business, limits
from astraflow.core.workflow.core_manifest import CORE_PACKAGE
from astraflow.core.workflow.manifest_rules import is_package_name
from astraflow.core.workflow.versions import parse_version
from astraflow.worker.hosts.settings import PoolSettings
from astraflow.worker.packages.hooks import run_uninstall_hooks
from astraflow.worker.packages.index import Installed, to_the_end
from astraflow.worker.packages.installation import Installation
from astraflow.worker.packages.inventory import Key, PackageInventory
from astraflow.worker.packages.notices import PackageNotices, Tell
from astraflow.worker.packages.queue import MAX_TRIES, Order
from astraflow.worker.packages.settings import InstallSettings

_log: Final = logging.getLogger(__name__)
MAX_INSTALLED: Final = limits.MAX_PACKAGES - 1
"""What fits a register, with `core`."""


class PackageUsers(Protocol):
    """The pool, as far as packages are concerned."""

    def attempts_of(self, name: str, version: str) -> int: ...
    def hosts_of(self, name: str, version: str) -> int: ...
    def retire(self, name: str, version: str) -> None: ...


class PackageInstaller:
    """Installs and removes packages, in `run`. Used on the loop's thread."""

    def __init__(
        self,
        inventory: PackageInventory,
        users: PackageUsers,
        *,
        data_dir: Path,
        clock: Clock,
        settings: InstallSettings,
        hosts: PoolSettings,
        tell: Tell,
        offer_changed: Callable[[], None],
        woken: asyncio.Event,
        reached: Callable[[str], None],
    ) -> None:
        """`users` set `woken` when an attempt or a host of theirs has ended."""
        self._inventory = inventory
        self._index = inventory.index
        self._installed = inventory.installed
        self._queue = inventory.queue
        self._users = users
        self._data_dir = data_dir
        self._clock = clock
        self._settings = settings
        self._hosts = hosts
        self._notices = PackageNotices(tell, clock)
        self._offer_changed = offer_changed
        self._woken = woken
        self._reached = reached

    # -- what the scheduler asks ------------------------------------------------------------

    def install(self, request: business.PkgInstall) -> None:
        """Take an order. Its end is told with an event."""
        key = (request.name, request.version)
        if not _is_key(key) or request.name == CORE_PACKAGE:
            told = f"{request.name[:80]} {request.version[:80]}"
            self._fail(key, errors.PKG_INVALID, f"no package can have this name: {told}", "order")
        elif (problem := self._remember(request)) is not None:
            self._fail(key, errors.PKG_INSTALL_FAILED, problem, "order")
        else:
            if self._queue.is_leaving(*key):
                self._queue.left(*key)
                self._offer_changed()
            self._reached("package-ordered")
            self._woken.set()

    def uninstall(self, request: business.PkgUninstall) -> None:
        """Let a version go when nothing runs in it. Its end is told with an event."""
        key = (request.name, request.version)
        if self._queue.is_leaving(*key):
            return  # asked for again, perhaps by a new session: the event is still to come
        if key not in self._installed and not self._queue.has(*key):
            told = f"{request.name[:80]} {request.version[:80]}"
            self._fail(key, errors.PKG_NOT_FOUND, f"not installed here: {told}", "remove")
            return
        try:
            self._queue.leave(*key)
        except OSError as problem:
            message = f"the order cannot be written down: {problem.strerror or problem}"
            self._fail(key, errors.PKG_INSTALL_FAILED, message, "remove")
            return
        self._offer_changed()
        self._woken.set()

    def _remember(self, request: business.PkgInstall) -> str | None:
        """Why it cannot be."""
        is_new = (request.name, request.version) not in self._installed
        try:
            is_full = is_new and len(self._installed) >= MAX_INSTALLED
            if not is_full and self._queue.add(request):
                return None
        except OSError as problem:
            return f"the order cannot be written down: {problem.strerror or problem}"
        return "too many packages are installed here, or wait for it"

    # -- the work ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Work off the orders, for ever. Cancel it to end; what was begun is begun anew at the next boot."""
        for one in self._installed.values():
            self._notices.catalog(one, self._index.manifest(*one.key))
        while True:
            self._woken.clear()
            key = self._next_removal()
            if key is not None:
                await self._remove(key)
            elif self._queue.first() is not None:
                await self._work(self._queue.begin())
                self._queue.done()
            else:
                await self._woken.wait()

    async def _work(self, order: Order) -> None:
        request, key = order.request, order.key
        installed = self._installed.get(key)
        if self._queue.is_leaving(*key):
            return  # asked for and taken back before its turn; `_next_removal` tells of it
        if installed is not None and installed.sha256 == request.sha256:
            self._touch(installed)
            self._notices.said(key, "installed")
        elif installed is not None:
            message = f"{key[0]} {key[1]} is installed with another digest: {installed.sha256}"
            self._fail(key, errors.PKG_CONFLICT, message, "order")
        elif order.tries > MAX_TRIES:
            message = (
                f"the worker ended {MAX_TRIES} times while it was installed: {key[0]} {key[1]}"
            )
            self._fail(key, errors.PKG_INSTALL_FAILED, message, "order")
        else:
            await self._install(request)

    async def _install(self, request: business.PkgInstall) -> None:
        key = (request.name, request.version)
        installation = Installation(
            request,
            self._index,
            self._settings,
            self._hosts,
            self._clock,
            data_dir=self._data_dir,
            reached=self._reached,
            progress=lambda step, part: self._notices.progress(key, step, part),
        )
        try:
            installed = await installation.run()
        except errors.AstraflowError as problem:
            self._fail(key, problem.code, problem.message, installation.step, problem.pointer)
        except TimeoutError:
            message = f"it took longer than {self._settings.install_timeout_s:g} s"
            self._fail(key, errors.PKG_INSTALL_FAILED, message, installation.step)
        except OSError as problem:
            message = f"{problem.strerror or problem}: {problem.filename or key[0]}"
            self._fail(key, errors.PKG_INSTALL_FAILED, message, installation.step)
        else:
            if self._queue.was_let_go(*key):
                installed = self._rewritten(msgspec.structs.replace(installed, is_wanted=True))
            self._installed[key] = installed
            self._offer_changed()
            self._notices.catalog(installed, self._index.manifest(*key))
            self._notices.said(
                key, "installed", sha256=installed.sha256, signed_by=installed.signed_by
            )
            _log.info("installed %s %s", *key)
            self._reached("package-installed")
            self._let_old_ones_go(request.name)

    def _touch(self, installed: Installed) -> None:
        """It was asked for again: count it among the newest."""
        fresh = msgspec.structs.replace(installed, installed_ms=self._clock.wall_ms())
        self._installed[fresh.key] = self._rewritten(fresh)

    def _rewritten(self, installed: Installed) -> Installed:
        try:
            self._index.rewrite(installed)
        except OSError as problem:  # it counts for this boot, and is not worth a failure
            _log.warning("cannot write the record of %s %s: %s", *installed.key, problem)
        return installed

    def _let_old_ones_go(self, name: str) -> None:
        versions = [
            one for one in self._installed.values() if one.name == name and not one.is_wanted
        ]
        versions.sort(key=lambda one: (one.installed_ms, parse_version(one.version)))
        for one in versions[: -1 - self._settings.kept]:
            if self._users.attempts_of(*one.key) == 0:
                self._queue.let_go(*one.key)

    # -- removal ----------------------------------------------------------------------------

    def _next_removal(self) -> Key | None:
        for key in self._queue.removing:
            if self._queue.has(*key):
                continue  # its install has its turn first, which does nothing
            if key not in self._installed or self._users.attempts_of(*key) == 0:
                return key
        return None

    async def _remove(self, key: Key) -> None:
        """Nothing runs in it. From here on nothing can be started in it either."""
        details: dict[str, Any] = {}
        installed = self._installed.pop(key, None)
        if installed is not None:
            await self._end_hosts(key)
            folder = self._index.folder(*key)
            problem = await run_uninstall_hooks(folder, *key, self._settings, self._clock)
            if problem is not None:
                details["message"] = problem
            try:
                await self._clear_away(key)
            except OSError as cause:
                self._queue.left(*key)
                self._installed[key] = installed
                message = f"it could not be removed: {cause.strerror or cause}"
                self._fail(key, errors.PKG_INSTALL_FAILED, message, "remove")
                self._offer_changed()
                return
        self._notices.said(key, "removed", **details)
        self._offer_changed()
        _log.info("removed %s %s", *key)
        self._reached("package-removed")
        self._queue.left(*key)

    async def _clear_away(self, key: Key) -> None:
        try:
            away = await to_the_end(self._index.take_away, *key)
        except FileNotFoundError:
            return  # somebody was faster
        self._reached("package-taken-away")
        await to_the_end(self._index.discard, away)

    async def _end_hosts(self, key: Key) -> None:
        self._users.retire(*key)
        while self._users.hosts_of(*key):
            self._woken.clear()
            await self._woken.wait()

    # -- notices ----------------------------------------------------------------------------

    def _fail(
        self, key: Key, code: errors.Code, message: str, step: str, pointer: str | None = None
    ) -> None:
        _log.warning("package %s %s failed at %s: %s: %s", *key, step, code, message)
        self._notices.failed(key, code, message, step, pointer)


def _is_key(key: Key) -> bool:
    return is_package_name(key[0]) and parse_version(key[1]) is not None
