"""Hooks: scripts of a package that run when it is installed or removed, if the operator allows them."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from astraflow.clock import Clock
from astraflow.core import errors
from astraflow.core.workflow.decoding import decode_manifest
from astraflow.packages.archive import MANIFEST
from astraflow.worker.packages.guarded_process import run_guarded
from astraflow.worker.packages.index import ENVIRONMENT
from astraflow.worker.packages.settings import InstallSettings

_log: Final = logging.getLogger(__name__)

_PASSED_ON: Final = (
    "HOME", "LANG", "LC_ALL", "TMPDIR",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""What a script that downloads something needs of this machine. Everything else stays here, tokens first of all."""
MESSAGE_CHARS: Final = 2_000


async def run_hook(
    script: str, folder: Path, name: str, version: str, *, timeout_s: float, clock: Clock
) -> None:
    """Run a hook in the folder of its package, with the package's Python first on the path.

    Raises:
        Unavailable: it ended badly or not in time; nothing of it runs any more.
    """
    environment = folder / ENVIRONMENT
    env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    env["PATH"] = f"{environment / 'bin'}:{os.environ.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(environment)
    env["ASTRAFLOW_PACKAGE"] = name
    env["ASTRAFLOW_PACKAGE_VERSION"] = version
    ended = await run_guarded(
        [str(folder / script)], cwd=folder, env=env, timeout_s=timeout_s, clock=clock
    )
    if ended.code != 0:
        why = f"took longer than {timeout_s:g} s" if ended.is_late else f"ended with {ended.code}"
        raise errors.Unavailable(
            errors.PKG_INSTALL_FAILED,
            f"the hook {script} {why}: {ended.tail[-MESSAGE_CHARS:]}",
        )


async def run_uninstall_hooks(
    folder: Path, name: str, version: str, settings: InstallSettings, clock: Clock
) -> str | None:
    """Run them, if the operator still lets this package. Returns what went wrong: it is removed all the same."""
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
