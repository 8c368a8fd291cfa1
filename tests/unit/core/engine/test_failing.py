"""An engine that fails at an input says whose it was; when only a session is half done, only that is given up."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.engine import reports, sessions
from astraflow.core.engine.engine import InputFailed, SessionFailed
from astraflow.core.protocol import business, open_sessions
from tests.unit.core.engine.rig import TENANT, RawWorker, Rig
from tests.unit.plans import make_plan


def fail(*_: Any) -> None:
    raise RuntimeError("a fault of the test")


def test_an_engine_that_fails_at_a_frame_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    raw = RawWorker(rig)
    monkeypatch.setattr(reports, "on_resource_event", fail)
    with pytest.raises(InputFailed) as caught:
        raw.send(business.RESOURCE_EVENT, business.ResourceEvent("r", "ready"))
    assert (caught.value.tenant, caught.value.worker) == (TENANT, "w1")
    assert caught.value.frame_id is not None


def test_an_engine_that_fails_at_anything_else_names_the_worker(
    monkeypatch: pytest.MonkeyPatch, rig: Rig, raw: RawWorker
) -> None:
    monkeypatch.setattr(sessions, "MeasuredLoad", fail)
    with pytest.raises(InputFailed) as caught:
        raw.heartbeat()
    assert (caught.value.worker, caught.value.frame_id) == ("w1", None)


def test_a_session_that_fails_is_given_up_and_the_engine_goes_on(
    monkeypatch: pytest.MonkeyPatch, rig: Rig, raw: RawWorker
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(open_sessions, "Delivered", fail)
        with pytest.raises(SessionFailed):
            raw.send(business.RESOURCE_EVENT, business.ResourceEvent("r", "ready"))
    rig.engine.abandon(raw.conn, rig.now, rig.at)
    rig.run()
    rig.engine.check()
    left = rig.engine.view.workers.find(TENANT, "w1")
    assert left is not None
    assert left.status == "offline"
    rig.worker("w2")
    rig.submit(make_plan(1))
    rig.engine.check()
