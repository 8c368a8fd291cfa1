"""Where the SDK and package `core` are: in the wheel, or in the source tree of an editable install."""

from __future__ import annotations

import sys
from importlib import resources, util
from pathlib import Path
from types import ModuleType

from astraflow.core import errors
from astraflow.core.workflow.core_manifest import CORE_PACKAGE, core_manifest
from astraflow.worker.hosts.settings import HostSpec


def core_package() -> HostSpec:
    """Package `core`, which runs in the worker's own environment.

    Raises:
        errors.Bug: the installation lacks it.
    """
    shipped = Path(str(resources.files("astraflow"))) / "shipped" / CORE_PACKAGE
    folder = _first(shipped, _source_tree() / "packages" / CORE_PACKAGE)
    return HostSpec(CORE_PACKAGE, core_manifest().version, Path(sys.executable), folder)


def host_program() -> Path:
    """The file that a package's Python runs to be a host: of this worker's SDK, whatever the package has."""
    return _sdk() / "host" / "__main__.py"


def sdk_module(name: str) -> ModuleType:
    """A module of the SDK that needs no other of it, without the rest."""
    spec = util.spec_from_file_location(f"astraflow_sdk.{name}", _sdk() / f"{name}.py")
    assert spec is not None and spec.loader is not None, "a file of Python can be loaded"
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sdk() -> Path:
    spec = util.find_spec("astraflow_sdk")
    installed = (
        Path(spec.origin).parent if spec is not None and spec.origin else Path("/nonexistent")
    )
    return _first(installed, _source_tree() / "sdk" / "src" / "astraflow_sdk")


def _source_tree() -> Path:
    return Path(__file__).resolve().parents[4]


def _first(*folders: Path) -> Path:
    for folder in folders:
        if folder.is_dir():
            return folder
    raise errors.Bug(errors.INTERNAL, f"the installation lacks: {folders[0]}")
