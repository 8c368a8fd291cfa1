"""One installation, step by step. The package becomes visible in the last step, by one rename.

1. verify    the signature, by policy, before anything is fetched
2. download  to the staging folder, its digest taken while it is read
3. check     the whole table of contents, the manifest, the Python that it needs, the hooks that it wants to run
4. unpack    counting
5. equip     an environment with its dependencies; files that the manifest names by URL
6. hooks     if the operator allows them
7. probe     its handlers are loaded once, in a real host
8. place     everything is on the disk, then one rename
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.protocol import business
from astraflow.core.workflow.manifest import ResourceFile
from astraflow.packages import Archive, Verdict, check_archive, check_python, judge, unpack
from astraflow.packages.archive import digest_of
from astraflow.packages.shipped import is_shipped
from astraflow.worker.addresses import absolute_url
from astraflow.worker.hosts.probe import probe
from astraflow.worker.hosts.settings import HostSpec, PoolSettings
from astraflow.worker.packages.environment import make_environment
from astraflow.worker.packages.hooks import run_hook
from astraflow.worker.packages.index import ENVIRONMENT, Installed, PackageIndex, to_the_end
from astraflow.worker.packages.settings import InstallSettings

_log: Final = logging.getLogger(__name__)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
PREPARED: Final = "package"
_PYTHON: Final = ".".join(map(str, sys.version_info[:3]))
"""Of this worker, whose environments have the same; without what a development build adds."""


class Installation:
    """Installs one package version. `step` is the current step, for error reports."""

    def __init__(
        self,
        request: business.PkgInstall,
        index: PackageIndex,
        settings: InstallSettings,
        hosts: PoolSettings,
        clock: Clock,
        *,
        data_dir: Path,
        reached: Callable[[str], None],
        progress: Callable[[str, float | None], None],
    ) -> None:
        self.step = "verify"
        self._request = request
        self._index = index
        self._settings = settings
        self._hosts = hosts
        self._clock = clock
        self._data_dir = data_dir
        self._reached = reached
        self._progress = progress

    async def run(self) -> Installed:
        """Install it; on failure nothing of it is left.

        Raises:
            Refused: it must not be installed; trying again does not help.
            Unavailable: something failed that may work later.
            OSError: the disk is full, or the like.
            TimeoutError: it took longer than allowed.
        """
        verdict = await self._verify()
        staging = await to_the_end(self._index.new_staging)
        try:
            async with asyncio.timeout(self._settings.install_timeout_s):
                installed = await self._prepare(staging, verdict)
            # Outside of the time limit: it is placed or it is not, and who is told so must be told the truth.
            self._begin("place")
            await to_the_end(self._index.place, staging / PREPARED, installed)
            self._reached("package-placed")
            return installed
        finally:
            await to_the_end(self._index.discard, staging)

    async def _verify(self) -> Verdict:
        request = self._request
        if not _SHA256.fullmatch(request.sha256):
            raise errors.Refused(
                errors.PKG_INVALID, f"not a sha256 in lower-case hex: {request.sha256[:80]!r}"
            )
        policy = self._settings.policy
        is_unsigned = policy != "off" and request.signature is None
        if is_unsigned and await to_the_end(is_shipped, request.sha256):
            return Verdict()
        verdict = judge(
            policy,
            request.signature,
            self._settings.trusted,
            sha256=request.sha256,
            name=request.name,
            version=request.version,
        )
        if verdict.warning is not None:
            _log.warning("%s", verdict.warning)
        return verdict

    async def _prepare(self, staging: Path, verdict: Verdict) -> Installed:
        archive = await self._fetch(staging / "package.cwx")
        folder = staging / PREPARED
        folder.mkdir()
        self._begin("unpack")
        await to_the_end(unpack, archive, folder)
        self._reached("package-unpacked")
        await self._equip(archive, folder, staging / "requirements.txt")
        await self._run_hooks(archive, folder)
        installed = self._record(archive, verdict)
        self._begin("probe")
        await probe(self._spec(installed, folder), self._hosts, self._data_dir, self._clock)
        self._reached("package-probed")
        return installed

    def _begin(self, step: str) -> None:
        self.step = step
        self._progress(step, None)

    async def _fetch(self, path: Path) -> Archive:
        request, settings = self._request, self._settings
        self._begin("download")
        await _download(
            absolute_url(request.url, settings.origin, errors.PKG_INVALID),
            path,
            sha256=request.sha256,
            max_bytes=settings.limits.archive_bytes,
            tls=settings.tls,
            progress=lambda part: self._progress("download", part),
        )
        self._reached("package-downloaded")
        self._begin("check")
        archive = await asyncio.to_thread(
            check_archive,
            path,
            limits=settings.limits,
            name=request.name,
            version=request.version,
            unpinned=settings.unpinned,
        )
        check_python(archive.manifest, _PYTHON)
        hooks = archive.manifest.body.hooks
        has_hooks = hooks is not None and (hooks.install or hooks.uninstall)
        if has_hooks and not settings.may_run_hooks(request.name):
            raise errors.Refused(
                errors.PKG_PERMISSION,
                f"Package {request.name} has hooks, but is not listed in package_hooks",
                pointer="/hooks",
            )
        return archive

    async def _equip(self, archive: Archive, folder: Path, requirements: Path) -> None:
        body = archive.manifest.body
        self._begin("equip")
        await make_environment(
            folder / ENVIRONMENT,
            body.python,
            requirements,
            may_build=self._settings.may_run_hooks(archive.manifest.name),
            timeout_s=self._settings.install_timeout_s,
            clock=self._clock,
        )
        for file in body.resource_files():
            await self._bring(file, folder)
        self._reached("package-equipped")

    async def _bring(self, file: ResourceFile, folder: Path) -> None:
        """A file that the manifest names is there, and is what it says."""
        path = folder / file.path
        if file.url is not None:
            assert file.sha256 is not None, "the archive was checked"
            path.parent.mkdir(parents=True, exist_ok=True)
            await _download(
                file.url,
                path,
                sha256=file.sha256,
                max_bytes=self._settings.resource_bytes,
                tls=self._settings.tls,
                progress=lambda part: self._progress("equip", part),
            )
        elif file.sha256 is not None and path.is_file():
            found = await asyncio.to_thread(_digest, path)
            if found != file.sha256:
                raise errors.Refused(
                    errors.PKG_INVALID, f"the sha256 of {file.path} is not the manifest's: {found}"
                )

    async def _run_hooks(self, archive: Archive, folder: Path) -> None:
        hooks = archive.manifest.body.hooks
        for script in hooks.install if hooks is not None else ():
            self._begin("hooks")
            await run_hook(
                script,
                folder,
                archive.manifest.name,
                archive.manifest.version,
                timeout_s=self._settings.hook_timeout_s,
                clock=self._clock,
            )

    def _record(self, archive: Archive, verdict: Verdict) -> Installed:
        return Installed(
            archive.manifest.name,
            archive.manifest.version,
            archive.sha256,
            archive.manifest_sha256,
            _PYTHON,
            self._clock.wall_ms(),
            archive.manifest.body.isolation,
            verdict.signed_by,
        )

    def _spec(self, installed: Installed, folder: Path) -> HostSpec:
        return HostSpec(
            installed.name,
            installed.version,
            folder / ENVIRONMENT / "bin" / "python",
            folder,
            installed.isolation,
            self._settings.memory_limit_bytes,
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return digest_of(file)


async def _download(url: str, into: Path, **given: Any) -> None:
    # Imported when it is first needed, in a thread: the HTTP client takes a third of a second and a fifth of the
    # memory of an idle worker.
    module = await asyncio.to_thread(import_module, "astraflow.worker.packages.download")
    await module.download(url, into, **given)
