"""The packages of a worker: what is installed, what is to come, what is to go.

Rule 1: an order is on the disk when `install` or `uninstall` returns; then the frame may be acknowledged.
Rule 2: one thing at a time, in `run`. What is installed changes only there, between two turns of the loop.
Rule 3: a version that is to go is not offered any more, and stays until the last attempt in it has ended.
Rule 4: every order ends with one event: `installed`, `failed` or `removed`.
Rule 5: what is let go only because there are newer ones, and is then asked for again, stays until it is told to go.
        Without this, a scheduler that wants more versions than are kept and a worker that lets them go would install
        and remove for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol import business, control, limits
from astraflow.core.workflow.core_manifest import CORE_PACKAGE, core_manifest
from astraflow.core.workflow.manifest_rules import is_package_name
from astraflow.core.workflow.versions import parse_version
from astraflow.worker.hosts.settings import HostSpec, PoolSettings
from astraflow.worker.packages.index import Installed, PackageIndex, to_the_end
from astraflow.worker.packages.installation import Installation
from astraflow.worker.packages.notices import PackageNotices, Tell
from astraflow.worker.packages.queue import MAX_TRIES, InstallQueue, Order
from astraflow.worker.packages.removal import run_uninstall_hooks
from astraflow.worker.packages.settings import InstallSettings

__all__ = ["PackageUsers", "Packages"]

_log: Final = logging.getLogger(__name__)
INSTALLED: Final = "installed"
MAX_INSTALLED: Final = limits.MAX_PACKAGES - 1
"""What fits a register, with `core`."""

Key = tuple[str, str]


class PackageUsers(Protocol):
    """The pool, as far as packages are concerned. `changed` is called when an attempt or a host has ended."""

    changed: Callable[[], None]

    def attempts_of(self, name: str, version: str) -> int: ...
    def hosts_of(self, name: str, version: str) -> int: ...
    def retire(self, name: str, version: str) -> None: ...


class Packages:
    """Used on the loop's thread. Make it, `connect` it, then keep `run` running."""

    def __init__(
        self,
        *,
        data_dir: Path,
        clock: Clock,
        settings: InstallSettings,
        hosts: PoolSettings,
        core: HostSpec,
        reached: Callable[[str], None],
    ) -> None:
        """Opens the folder: what an earlier boot left half done is gone.

        Raises:
            OSError: the folder cannot be used.
        """
        self._data_dir = data_dir
        self._clock = clock
        self._settings = settings
        self._hosts = hosts
        self._core = core
        self._reached = reached
        self._shelf = PackageIndex(data_dir)
        self._installed: dict[Key, Installed] = {one.key: one for one in self._shelf.open()}
        self._orders = InstallQueue(self._shelf.root)
        self._woken = asyncio.Event()
        self._users: PackageUsers | None = None
        self._teller: PackageNotices | None = None
        self._offer_changed: Callable[[], None] = _nothing

    def connect(self, users: PackageUsers, tell: Tell, offer_changed: Callable[[], None]) -> None:
        """Whose attempts to wait for, and whom to tell."""
        self._users = users
        users.changed = self._woken.set
        self._teller = PackageNotices(tell, self._clock)
        self._offer_changed = offer_changed

    # -- what is there ----------------------------------------------------------------------

    def inventory(self) -> tuple[control.RegisteredPackage, ...]:
        """What the worker offers, for its register."""
        core = hashlib.sha256(core_manifest().raw).hexdigest()
        offered = [(self._core.name, self._core.version, core)]
        offered += [
            (one.name, one.version, one.manifest_sha256)
            for one in self._installed.values()
            if not self._orders.is_leaving(*one.key)
        ]
        return tuple(
            control.RegisteredPackage(name, version, INSTALLED, digest)
            for name, version, digest in sorted(offered)
        )

    def digest(self) -> str:
        """The inventory in a word, for heartbeats."""
        return hashlib.sha256(msgspec.json.encode(self.inventory())).hexdigest()

    def spec(self, name: str, version: str) -> HostSpec | None:
        """How to run a version. One that is to go can still be run: attempts of it may be on their way."""
        if (name, version) == (self._core.name, self._core.version):
            return self._core
        installed = self._installed.get((name, version))
        if installed is None:
            return None
        return HostSpec(
            name,
            version,
            self._shelf.python(name, version),
            self._shelf.folder(name, version),
            installed.isolation,
            self._settings.memory_limit_bytes,
        )

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
            if self._orders.is_leaving(*key):
                self._orders.left(*key)
                self._offer_changed()
            self._reached("package-ordered")
            self._woken.set()

    def uninstall(self, request: business.PkgUninstall) -> None:
        """Let a version go when nothing runs in it. Its end is told with an event."""
        key = (request.name, request.version)
        if self._orders.is_leaving(*key):
            return  # asked for again, perhaps by a new session: the event is still to come
        if key not in self._installed and not self._orders.has(*key):
            told = f"{request.name[:80]} {request.version[:80]}"
            self._fail(key, errors.PKG_NOT_FOUND, f"not installed here: {told}", "remove")
            return
        try:
            self._orders.leave(*key)
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
            if not is_full and self._orders.add(request):
                return None
        except OSError as problem:
            return f"the order cannot be written down: {problem.strerror or problem}"
        return "too many packages are installed here, or wait for it"

    # -- the work ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Work off the orders, for ever. Cancel it to end; what was begun is begun anew at the next boot."""
        teller = self._tell()
        for one in self._installed.values():
            teller.catalog(one, self._shelf.manifest(*one.key))
        while True:
            self._woken.clear()
            key = self._next_removal()
            if key is not None:
                await self._remove(key)
            elif self._orders.first() is not None:
                await self._work(self._orders.begin())
                self._orders.done()
            else:
                await self._woken.wait()

    async def _work(self, order: Order) -> None:
        request, key = order.request, order.key
        installed = self._installed.get(key)
        if self._orders.is_leaving(*key):
            return  # asked for and taken back before its turn; `_next_removal` tells of it
        if installed is not None and installed.sha256 == request.sha256:
            self._touch(installed)
            self._tell().said(key, "installed")
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
        teller = self._tell()
        installation = Installation(
            request,
            self._shelf,
            self._settings,
            self._hosts,
            self._clock,
            data_dir=self._data_dir,
            reached=self._reached,
            progress=lambda step, part: teller.progress(key, step, part),
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
            if self._orders.was_let_go(*key):
                installed = self._rewritten(msgspec.structs.replace(installed, is_wanted=True))
            self._installed[key] = installed
            self._offer_changed()
            teller.catalog(installed, self._shelf.manifest(*key))
            teller.said(key, "installed", sha256=installed.sha256, signed_by=installed.signed_by)
            _log.info("installed %s %s", *key)
            self._reached("package-installed")
            self._let_old_ones_go(request.name)

    def _touch(self, installed: Installed) -> None:
        """It was asked for again: count it among the newest."""
        fresh = msgspec.structs.replace(installed, installed_ms=self._clock.wall_ms())
        self._installed[fresh.key] = self._rewritten(fresh)

    def _rewritten(self, installed: Installed) -> Installed:
        try:
            self._shelf.rewrite(installed)
        except OSError as problem:  # it counts for this boot, and is not worth a failure
            _log.warning("record of %s %s cannot be written: %s", *installed.key, problem)
        return installed

    def _let_old_ones_go(self, name: str) -> None:
        versions = [
            one for one in self._installed.values() if one.name == name and not one.is_wanted
        ]
        versions.sort(key=lambda one: (one.installed_ms, parse_version(one.version)))
        assert self._users is not None
        for one in versions[: -1 - self._settings.kept]:
            if self._users.attempts_of(*one.key) == 0:
                self._orders.let_go(*one.key)

    # -- removal ----------------------------------------------------------------------------

    def _next_removal(self) -> Key | None:
        assert self._users is not None
        for key in self._orders.removing:
            if self._orders.has(*key):
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
            folder = self._shelf.folder(*key)
            problem = await run_uninstall_hooks(folder, *key, self._settings, self._clock)
            if problem is not None:
                details["message"] = problem
            try:
                await self._clear_away(key)
            except OSError as cause:
                self._orders.left(*key)
                self._installed[key] = installed
                message = f"it could not be removed: {cause.strerror or cause}"
                self._fail(key, errors.PKG_INSTALL_FAILED, message, "remove")
                self._offer_changed()
                return
        self._tell().said(key, "removed", **details)
        self._offer_changed()
        _log.info("removed %s %s", *key)
        self._reached("package-removed")
        self._orders.left(*key)

    async def _clear_away(self, key: Key) -> None:
        try:
            away = await to_the_end(self._shelf.take_away, *key)
        except FileNotFoundError:
            return  # somebody was faster
        self._reached("package-taken-away")
        await to_the_end(self._shelf.discard, away)

    async def _end_hosts(self, key: Key) -> None:
        assert self._users is not None
        self._users.retire(*key)
        while self._users.hosts_of(*key):
            self._woken.clear()
            await self._woken.wait()

    # -- telling ----------------------------------------------------------------------------

    def _tell(self) -> PackageNotices:
        assert self._teller is not None, "connect comes first"
        return self._teller

    def _fail(
        self, key: Key, code: errors.Code, message: str, step: str, pointer: str | None = None
    ) -> None:
        _log.warning("package %s %s failed at %s: %s: %s", *key, step, code, message)
        self._tell().failed(key, code, message, step, pointer)


def _is_key(key: Key) -> bool:
    return is_package_name(key[0]) and parse_version(key[1]) is not None


def _nothing() -> None:
    pass
