"""A plugin of pytest: the fixture `run_node` runs a node without a server.

```python
def test_upper(run_node):
    assert run_node(upper, text="a").result == {"text": "A"}
```

It comes with AstraFlow, `astra pkg test` brings it along, and elsewhere `pytest -p astraflow_sdk.testing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from astraflow_sdk.host.handlers import use_folder
from astraflow_sdk.trial import Outcome, Trial

RunNode = Callable[..., Outcome]
"""The type of the fixture, for hints in tests. What it takes: `astraflow_sdk.trial.Trial.run`."""


def _package_of(path: Path) -> Path | None:
    """The folder of the package that a test belongs to."""
    for folder in (path, *path.parents):
        if (folder / "manifest.json").is_file():
            return folder
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Let tests import the package as a host does: from its folder, and from `adapters` in it."""
    _use_package_of(config.rootpath)


def pytest_collect_file(file_path: Path) -> None:
    """The same where a project has several packages, each with its tests."""
    _use_package_of(file_path.parent)


def _use_package_of(path: Path) -> None:
    package = _package_of(path)
    if package is not None:
        use_folder(str(package))


@pytest.fixture
def run_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunNode]:
    """Runs a node: `run_node(function_or_type, **parameters)`. Resources of one run are there for the next."""
    trial = Trial(tmp_path / "data", _package_of(request.path.parent))
    try:
        yield trial.run
    finally:
        trial.close()
