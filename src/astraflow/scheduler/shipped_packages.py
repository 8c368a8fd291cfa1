"""Publish the packages that come with the installation for every tenant, so that a new scheduler has more than `core`.

A version that is not published yet is published like any other; a version that is already published is left alone.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from astraflow.core import errors
from astraflow.core.workflow import decode_manifest
from astraflow.packages.shipped import build_shipped, find_shipped

if TYPE_CHECKING:
    from astraflow.scheduler.repository import Repository

_log: Final = logging.getLogger(__name__)


async def publish_shipped(repository: Repository) -> None:
    """Publish the versions that are missing. A package that cannot be published is logged; the scheduler goes on."""
    for folder in find_shipped():
        manifest = decode_manifest((folder / "manifest.json").read_bytes())
        if not repository.has_shipped(manifest.name, manifest.version):
            await _publish(repository, folder)


async def _publish(repository: Repository, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        try:
            built = await asyncio.to_thread(build_shipped, folder, Path(place))
            await repository.ship(_pieces(built.path))
        except errors.AstraflowError as error:
            _log.warning("%s was not published: %s", folder.name, error.message)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)  # a few thousand bytes
