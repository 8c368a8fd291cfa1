"""The numbers of an engine must fit each other."""

from __future__ import annotations

import pytest

from astraflow.core import errors
from astraflow.core.engine.settings import EngineSettings


def test_the_defaults_are_those_of_the_protocol() -> None:
    settings = EngineSettings()
    assert (settings.lease_ttl_s, settings.heartbeat_interval_s) == (30.0, 5.0)
    assert (settings.dispatch_ack_timeout_s, settings.stop_overdue_s) == (5.0, 15.0)


def test_a_fence_that_covers_two_heartbeats_is_long_enough() -> None:
    assert EngineSettings(lease_ttl_s=10.0, heartbeat_interval_s=3.0).lease_ttl_s == 10.0


def test_a_lease_too_short_for_its_heartbeats_is_refused() -> None:
    with pytest.raises(errors.Refused) as caught:
        EngineSettings(lease_ttl_s=10.0, heartbeat_interval_s=3.1)
    assert caught.value.code is errors.CONFIG_INVALID
    assert caught.value.pointer == "/lease_ttl_s"
