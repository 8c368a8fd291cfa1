"""The uninstall hooks of a package. The package is removed even if they fail."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.workflow.decoding import decode_manifest
from astraflow.packages.archive import MANIFEST
from astraflow.worker.packages.hooks import run_hook
from astraflow.worker.packages.settings import InstallSettings

_log: Final = logging.getLogger(__name__)


async def run_uninstall_hooks(
    folder: Path, name: str, version: str, settings: InstallSettings, clock: Clock
) -> str | None:
    """Run them, if the operator still lets this package. Returns what went wrong."""
    try:
        hooks = decode_manifest((folder / MANIFEST).read_bytes()).body.hooks
        if hooks is None or not settings.may_run_hooks(name):
            return None
        for script in hooks.uninstall:
            timeout_s = settings.hook_timeout_s
            await run_hook(script, folder, name, version, timeout_s=timeout_s, clock=clock)
    except (errors.AstraflowError, OSError) as problem:
        _log.warning("uninstall hook of %s %s failed: %s", name, version, problem)
        return str(problem)
    return None
