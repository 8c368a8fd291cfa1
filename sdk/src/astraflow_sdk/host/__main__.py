"""The start of a host: limits, then the guard forks the host proper.

Run as a module, or by the path of this file: then the SDK beside it is used without a folder on `sys.path`, because a
worker runs its own version of the host inside a package's environment, where nothing else of the worker must be seen.
"""

from __future__ import annotations

import os
import sys


def _use_the_sdk_of_this_file() -> None:
    import importlib.util

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "astraflow_sdk", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["astraflow_sdk"] = module
    spec.loader.exec_module(module)


def main() -> None:
    if not __package__:
        _use_the_sdk_of_this_file()
    from astraflow_sdk.host import guard
    from astraflow_sdk.host.settings import HostSettings

    settings = HostSettings.parse(sys.argv[1])
    guard.set_limits(settings)
    if not guard.fork_host(settings.life_fd, (settings.read_fd, settings.write_fd)):
        from astraflow_sdk.host.process import run_host

        run_host(settings)


if __name__ == "__main__":
    main()
