from __future__ import annotations

import pytest

from tests.unit.core.agent.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
