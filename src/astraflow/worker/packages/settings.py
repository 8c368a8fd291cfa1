"""Settings of the installer."""

from __future__ import annotations

import ssl
from typing import Final

import msgspec

from astraflow.config import WorkerSettings
from astraflow.packages import Limits, TrustedKeys
from astraflow.packages.signing import Policy
from astraflow.worker.addresses import Origin

ALL: Final = "*"


class InstallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sources, trusted keys and timeouts. Times in seconds."""

    origin: Origin
    """Of the scheduler, such as `https://flow.example:8080`: what a URL without one is meant from."""
    policy: Policy = "warn"
    trusted: TrustedKeys = TrustedKeys({})
    hooks: tuple[str, ...] = ()
    unpinned: bool = False
    kept: int = 3
    install_timeout_s: float = 600.0
    hook_timeout_s: float = 60.0
    memory_limit_bytes: int | None = None
    limits: Limits = Limits()
    resource_bytes: int = 64 * 1024**3
    """Of one file that a manifest names: the weights of a large model."""
    tls: ssl.SSLContext | None = None
    """Whom to believe when files are fetched; none: whom the system believes."""

    @classmethod
    def of(
        cls, settings: WorkerSettings, origin: Origin, tls: ssl.SSLContext | None = None
    ) -> InstallSettings:
        """Raises Refused when a trusted key is none."""
        return cls(
            origin=origin,
            policy=settings.package_policy,
            trusted=TrustedKeys.parse(settings.trusted_keys),
            hooks=settings.package_hooks,
            unpinned=settings.package_unpinned,
            kept=settings.packages_kept,
            install_timeout_s=float(settings.package_install_timeout_seconds),
            hook_timeout_s=float(settings.package_hook_timeout_seconds),
            memory_limit_bytes=settings.host_max_mem_bytes,
            tls=tls,
        )

    def may_run_hooks(self, name: str) -> bool:
        return name in self.hooks or ALL in self.hooks
