from __future__ import annotations

import pytest

from tests.unit.core.engine.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()
