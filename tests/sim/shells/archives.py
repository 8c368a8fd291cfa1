"""The packages of a world of shells: one that every worker has from the start, and two versions that it may install.

Archives and installed folders are real; what would run in them is imitated (`host_process`).
"""

from __future__ import annotations

import hashlib
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from astraflow.packages import build_archive
from astraflow.packages.archive import MANIFEST
from astraflow.worker.packages.index import ENVIRONMENT, FOLDER, RECORD, Installed
from tests.sim.keeping import EXTRA, NEXT
from tests.sim.shells.config import HANDLERS

__all__ = ["ARCHIVED", "archive_of", "fill_environment", "give_sim"]

ARCHIVED = (EXTRA, NEXT)
SIM = ("sim", "1.0")
_CODE = "# What a host of a simulated world would load.\n"


def _manifest(name: str, version: str) -> dict[str, Any]:
    types = [f"{name}.{handler}" for handler in HANDLERS]
    adapter = {"name": name, "runtime": "python", "entrypoint": f"{name}_nodes:run"}
    return {
        "name": name,
        "version": version,
        "schemaVersion": "1.0.0",
        "adapters": [{**adapter, "capabilities": types}],
        "nodes": [{"type": one} for one in types],
        # Two ways to run attempts: in one host, and each in a host of its own, which keeps no objects.
        "isolation": "attempt" if (name, version) == NEXT else "package",
    }


@cache
def archive_of(name: str, version: str) -> bytes:
    """The archive of a version, as an operator publishes it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        (source / f"{name}_nodes").mkdir(parents=True)
        (source / MANIFEST).write_bytes(msgspec.json.encode(_manifest(name, version)))
        (source / f"{name}_nodes" / "__init__.py").write_text(_CODE)
        return build_archive(source, Path(folder) / "out").path.read_bytes()


def fill_environment(folder: Path) -> None:
    """What is looked for in an environment."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()


def give_sim(data_dir: Path) -> None:
    """Install the package of all simulated nodes on a new machine."""
    raw = msgspec.json.encode(_manifest(*SIM))
    folder = data_dir / FOLDER / SIM[0] / SIM[1]
    fill_environment(folder / ENVIRONMENT)
    (folder / MANIFEST).write_bytes(raw)
    digest = hashlib.sha256(raw).hexdigest()
    record = Installed(*SIM, "0" * 64, digest, "3.11", 0)
    (folder / RECORD).write_bytes(msgspec.json.encode(record))
