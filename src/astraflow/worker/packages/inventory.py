"""The package inventory of a worker, for its register, its heartbeats and its hosts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from astraflow.core.protocol import control
from astraflow.core.workflow.core_manifest import core_manifest
from astraflow.worker.hosts.settings import HostSpec
from astraflow.worker.packages.index import Installed, PackageIndex
from astraflow.worker.packages.queue import InstallQueue

INSTALLED: Final = "installed"

Key = tuple[str, str]


class PackageInventory:
    """The installed packages and the install queue. Used on the loop's thread."""

    def __init__(self, data_dir: Path, core: HostSpec, memory_limit_bytes: int | None) -> None:
        """Opens the folder and removes unfinished installations of an earlier boot.

        Raises:
            OSError: the folder cannot be used.
        """
        self.index = PackageIndex(data_dir)
        self.installed: dict[Key, Installed] = {one.key: one for one in self.index.open()}
        self.queue = InstallQueue(self.index.root)
        self._core = core
        self._memory_limit_bytes = memory_limit_bytes

    def registered(self) -> tuple[control.RegisteredPackage, ...]:
        """What the worker offers, for its register."""
        core = hashlib.sha256(core_manifest().raw).hexdigest()
        offered = [(self._core.name, self._core.version, core)]
        offered += [
            (one.name, one.version, one.manifest_sha256)
            for one in self.installed.values()
            if not self.queue.is_leaving(*one.key)
        ]
        return tuple(
            control.RegisteredPackage(name, version, INSTALLED, digest)
            for name, version, digest in sorted(offered)
        )

    def digest(self) -> str:
        """The inventory in a word, for heartbeats."""
        return hashlib.sha256(msgspec.json.encode(self.registered())).hexdigest()

    def spec(self, name: str, version: str) -> HostSpec | None:
        """How to run a version. One that is to go can still be run: attempts of it may be on their way."""
        if (name, version) == (self._core.name, self._core.version):
            return self._core
        installed = self.installed.get((name, version))
        if installed is None:
            return None
        return HostSpec(
            name,
            version,
            self.index.python(name, version),
            self.index.folder(name, version),
            installed.isolation,
            self._memory_limit_bytes,
        )
