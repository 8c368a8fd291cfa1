from __future__ import annotations

import pytest

from tests.unit.core.engine.rig import RawWorker, Rig, Worker


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def worker(rig: Rig) -> Worker:
    """One that does what it is told."""
    return rig.worker()


@pytest.fixture
def raw(rig: Rig) -> RawWorker:
    """One that says what the test says."""
    return RawWorker(rig)
