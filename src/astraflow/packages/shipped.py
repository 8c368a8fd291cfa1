"""Packages that come with the installation. They need no signature: who trusts the installation trusts them.

The scheduler publishes them, and a worker that demands signatures takes them all the same: both build the same archives
from their own installation, so both know the same digests. One with any other digest did not come with it.
"""

from __future__ import annotations

import functools
import logging
import tempfile
from importlib import resources
from pathlib import Path
from typing import Final

from astraflow.core import errors
from astraflow.packages.building import Built, build_archive

_log: Final = logging.getLogger(__name__)

NAMES: Final = ("crawlerx_playwright", "embeddings", "llm")


def find_shipped() -> list[Path]:
    """Their source folders: in the wheel, or in the source tree of an editable install."""
    installed = Path(str(resources.files("astraflow"))) / "shipped"
    in_tree = Path(__file__).resolve().parents[3] / "packages"
    base = installed if installed.is_dir() else in_tree
    return [base / name for name in NAMES if (base / name / "manifest.json").is_file()]


def build_shipped(folder: Path, out_dir: Path) -> Built:
    """Not compressed: what a compressor writes differs from machine to machine, and with it the digest.

    Raises:
        Refused, OSError: as `build_archive`.
    """
    return build_archive(folder, out_dir, is_compressed=False)


def is_shipped(sha256: str) -> bool:
    """Whether an archive with this digest is one of this installation's own. Builds them once: not for a loop."""
    return sha256 in _digests()


@functools.cache
def _digests() -> frozenset[str]:
    digests = set()
    with tempfile.TemporaryDirectory() as place:
        for folder in find_shipped():
            try:
                digests.add(build_shipped(folder, Path(place)).sha256)
            except errors.AstraflowError as error:
                _log.warning("%s cannot be built: %s", folder.name, error.message)
    return frozenset(digests)
