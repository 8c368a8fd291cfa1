from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.command_line import Up, up


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One `astra up` with a worker for all tests of a module."""
    with up(tmp_path_factory.mktemp("up")) as running:
        yield running
