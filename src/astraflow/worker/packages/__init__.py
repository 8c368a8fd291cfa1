"""Packages on a worker: installed side by side, each version in an environment of its own, and removed when unused."""

from __future__ import annotations

from astraflow.worker.packages.installer import PackageInstaller
from astraflow.worker.packages.inventory import PackageInventory
from astraflow.worker.packages.settings import InstallSettings

__all__ = ["InstallSettings", "PackageInstaller", "PackageInventory"]
