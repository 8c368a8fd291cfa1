"""Package archives: made, checked, unpacked, signed. What workers, schedulers and authors do alike."""

from __future__ import annotations

from astraflow.packages.archive import Archive, check_archive, check_contents, unpack
from astraflow.packages.building import Built, build_archive
from astraflow.packages.entries import ArchiveEntry, Limits
from astraflow.packages.requirements import check_python
from astraflow.packages.signing import (
    PackageSignature,
    SigningKey,
    TrustedKeys,
    Verdict,
    judge,
    sign,
    verify,
)

__all__ = [
    "Archive",
    "ArchiveEntry",
    "Built",
    "Limits",
    "PackageSignature",
    "SigningKey",
    "TrustedKeys",
    "Verdict",
    "build_archive",
    "check_archive",
    "check_contents",
    "check_python",
    "judge",
    "sign",
    "unpack",
    "verify",
]
