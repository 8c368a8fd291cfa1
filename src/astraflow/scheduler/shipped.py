"""Packages that come with the installation, so that a fresh scheduler has more than `core` to offer.

They are published like any other, to the first tenant, when a version is not there yet: what somebody yanked stays
yanked, and what was published under the same version is left alone.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from astraflow import errors
from astraflow.packages.building import build_archive
from astraflow.workflow import decode_manifest

if TYPE_CHECKING:
    from astraflow.scheduler.repository import Repository

__all__ = ["NAMES", "find_shipped", "publish_shipped"]

_log: Final = logging.getLogger(__name__)

NAMES: Final = ("crawlerx_playwright", "embeddings", "llm")
PUBLISHER: Final = "astraflow"


def find_shipped() -> list[Path]:
    """Their source folders: in the wheel, or in the source tree of an editable install."""
    installed = Path(str(resources.files("astraflow"))) / "shipped"
    in_tree = Path(__file__).resolve().parents[3] / "packages"
    base = installed if installed.is_dir() else in_tree
    return [base / name for name in NAMES if (base / name / "manifest.json").is_file()]


async def publish_shipped(repository: Repository, tenant: str) -> None:
    """Publish what is not there yet. One that cannot be published is a line in the log, not a scheduler that fails."""
    for folder in find_shipped():
        try:
            manifest = decode_manifest((folder / "manifest.json").read_bytes())
            repository.find(tenant, manifest.name, manifest.version)
        except errors.NotFound:
            await _publish(repository, tenant, folder)


async def _publish(repository: Repository, tenant: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        try:
            built = await asyncio.to_thread(build_archive, folder, Path(place))
            await repository.publish(tenant, _pieces(built.path), None, PUBLISHER, is_shipped=True)
        except errors.AstraflowError as error:
            _log.warning("%s was not published: %s", folder.name, error.message)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)  # a few thousand bytes
