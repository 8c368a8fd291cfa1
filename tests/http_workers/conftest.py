"""One scheduler for all tests of a module, and a pool for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http_workers.foreign import ForeignPool, foreign_pool
from tests.processes.system import System, running


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("http")) as system:
        yield system


@pytest.fixture
def pool() -> Iterator[ForeignPool]:
    with foreign_pool() as pool:
        yield pool
