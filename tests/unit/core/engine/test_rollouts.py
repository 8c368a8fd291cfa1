"""Rollouts as the engine runs them: installs in waves, the active version, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import ActivateVersion, RollBack, StartRollout
from astraflow.core.engine.effects import Activated
from astraflow.core.fleet.rollouts import (
    RolloutFailed,
    RolloutRecord,
    RolloutRolledBack,
    RolloutStarted,
    RolloutSucceeded,
    RolloutWaveGood,
)
from astraflow.core.fleet.versions import ActiveVersionRecord, PublishedVersion, VersionActivated
from astraflow.core.protocol import business
from tests.unit.core.engine.rig import TENANT, Rig
from tests.unit.core.engine.test_packages import INSTALLS, TEXT, has_it, published, tell
from tests.unit.plans import make_plan

ACTIVATE_1 = ActivateVersion(tenant=TENANT, name="text", version="1.0", by="ann")
ACTIVATE_2 = ActivateVersion(tenant=TENANT, name="text", version="2.0", by="ann")
ROLL_BACK = RollBack(tenant=TENANT, name="text", by="bob")


def rollout(**fields: Any) -> RolloutRecord:
    given: dict[str, Any] = {
        "rollout_id": "r1",
        "tenant": TENANT,
        "name": "text",
        "version": "2.0",
        "waves": (50, 100),
        "soak_seconds": 5.0,
        "started_by": "ann",
        **fields,
    }
    return RolloutRecord(**given)


def start(rig: Rig, **fields: Any) -> None:
    rig.execute(StartRollout(tenant=TENANT, rollout=rollout(**fields)))


def installs(rig: Rig) -> int:
    return len(rig.frames(business.PKG_INSTALL))


def active(rig: Rig) -> str | None:
    found = rig.engine.view.versions.active(TENANT, "text")
    return None if found is None else found.version


class TestWaves:
    def test_a_version_reaches_all_workers_and_becomes_active(self) -> None:
        rig = published()
        first, second = (rig.worker(name, features=INSTALLS) for name in ("w1", "w2"))
        start(rig)
        rig.wait(1.5)
        assert installs(rig) == 1
        has_it(first, "text")
        rig.wait(8.0)
        assert (installs(rig), active(rig)) == (2, None)
        has_it(second, "text")
        rig.wait(8.0)
        assert active(rig) == "2.0"
        kinds = [type(fact) for fact in rig.recorded(RolloutSucceeded, VersionActivated)]
        assert kinds == [RolloutSucceeded, VersionActivated]
        assert rig.shell_effects[-1] == Activated(
            ActiveVersionRecord(
                TENANT, "text", "2.0", None, rig.recorded(VersionActivated)[0].at, "ann"
            )
        )
        assert len(rig.engine.view.rollouts) == 0
        assert rig.engine.view.rollouts.is_watched is False

    def test_a_wall_clock_that_jumps_neither_hurries_nor_holds_up_a_wave(self) -> None:
        rig = published()
        rig.worker("w1", packages={"text": "2.0"})
        start(rig, waves=(100,), soak_seconds=30.0)
        rig.wait(2.0)
        rig.at += 86_400_000
        rig.engine.tick(rig.now, rig.at)
        rig.run()
        assert active(rig) is None
        rig.at -= 2 * 86_400_000
        rig.wait(35.0)
        assert active(rig) == "2.0"

    def test_the_end_and_the_active_version_are_in_one_batch(self) -> None:
        rig = published()
        rig.worker("w1", packages={"text": "2.0"})
        start(rig, waves=(100,), soak_seconds=0.0)
        rig.wait(1.5)
        assert active(rig) is None
        rig.turn(1.0)
        rig.engine.tick(rig.now, rig.at)
        batch = rig.engine.take_batch(rig.now, rig.at)
        assert batch is not None
        kinds = [type(change.fact) for change in batch.fleet]
        assert {RolloutSucceeded, VersionActivated} <= set(kinds)

    def test_a_worker_that_cannot_install_it_ends_the_rollout(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        start(rig)
        rig.wait(1.5)
        tell(worker, "failed", code="E.PKG.INVALID", message="bad zip")
        rig.wait(1.5)
        [failed] = rig.recorded(RolloutFailed)
        assert failed.error == "worker w1 could not install it: bad zip"
        assert active(rig) is None

    def test_attempts_that_fail_end_the_rollout(self) -> None:
        rig = published()
        worker = rig.worker("w1", packages={"text": "2.0"}, runtimes=("python",))
        start(rig, waves=(100,))
        rig.submit(make_plan(1, nodes={0: TEXT}))
        worker.fail()
        rig.wait(1.5)
        [failed] = rig.recorded(RolloutFailed)
        assert failed.error == "1 of 1 attempts of the version failed"

    def test_a_version_that_is_yanked_meanwhile_ends_the_rollout(self) -> None:
        rig = published()
        rig.worker("w1", packages={"text": "2.0"})
        start(rig)
        rig.engine.publish(PublishedVersion(TENANT, "text", "2.0", "ab" * 32, is_yanked=True))
        rig.wait(1.5)
        assert [one.error for one in rig.recorded(RolloutFailed)] == ["was yanked: text 2.0"]

    def test_a_stored_rollout_goes_on(self, rig: Rig) -> None:
        rig.engine.restore_version(PublishedVersion(TENANT, "text", "2.0", "ab" * 32))
        rig.engine.restore_version(ActiveVersionRecord(TENANT, "text", "1.0", None, 0))
        rig.engine.restore_rollout(rollout(waves=(100,), soak_seconds=0.0))
        rig.worker("w1", packages={"text": "2.0"})
        rig.wait(3.0)
        assert active(rig) == "2.0"

    def test_without_its_version_a_stored_rollout_fails(self, rig: Rig) -> None:
        rig.engine.restore_rollout(rollout())
        rig.wait(1.5)
        assert [one.error for one in rig.recorded(RolloutFailed)] == [
            "no longer published: text 2.0"
        ]

    def test_many_rollouts_are_looked_at_together(self) -> None:
        rig = published(("a", "2.0"), ("b", "2.0"))
        rig.worker("w1", packages={"a": "2.0", "b": "2.0"})
        for name in ("a", "b"):
            start(rig, name=name, rollout_id=name)
        assert len(rig.engine.view.timers) == 1
        rig.wait(1.5)
        assert len(rig.recorded(RolloutWaveGood)) == 2


class TestRefusals:
    def test_what_is_not_published_or_yanked_is_refused(self, rig: Rig) -> None:
        with pytest.raises(errors.NotFound):
            start(rig)
        rig.engine.publish(PublishedVersion(TENANT, "text", "2.0", "ab" * 32, is_yanked=True))
        with pytest.raises(errors.Conflict, match="was yanked"):
            start(rig)
        with pytest.raises(errors.Conflict, match="choose another"):
            rig.execute(ACTIVATE_2)
        with pytest.raises(errors.NotFound):
            rig.execute(ACTIVATE_1)
        assert rig.fleet == []

    def test_one_rollout_of_a_package_runs_at_a_time(self) -> None:
        rig = published()
        start(rig)
        with pytest.raises(errors.Conflict, match="a rollout runs already"):
            start(rig, rollout_id="r2")
        assert len(rig.recorded(RolloutStarted)) == 1


class TestRollBack:
    def test_a_rollout_that_runs_is_ended_and_what_is_active_stays_so(self) -> None:
        rig = published(("text", "1.0"), ("text", "2.0"))
        rig.execute(ACTIVATE_1)
        start(rig)
        rig.execute(ROLL_BACK)
        [ended] = rig.recorded(RolloutRolledBack)
        assert (ended.by, active(rig)) == ("bob", "1.0")
        rig.wait(3.0)
        assert len(rig.engine.view.timers) == 0

    def test_without_one_the_version_before_is_active_again(self) -> None:
        rig = published(("text", "1.0"), ("text", "2.0"))
        with pytest.raises(errors.Conflict, match="no version of it was active before"):
            rig.execute(ROLL_BACK)
        rig.execute(ACTIVATE_1)
        rig.execute(ACTIVATE_2)
        rig.execute(ACTIVATE_2)  # it is so already
        rig.execute(ROLL_BACK)
        assert active(rig) == "1.0"
        assert [one.version for one in rig.recorded(VersionActivated)] == ["1.0", "2.0", "1.0"]

    def test_a_version_that_is_yanked_is_not_gone_back_to(self) -> None:
        rig = published(("text", "1.0"), ("text", "2.0"))
        rig.execute(ACTIVATE_1)
        rig.execute(ACTIVATE_2)
        rig.engine.publish(PublishedVersion(TENANT, "text", "1.0", "ab" * 32, is_yanked=True))
        with pytest.raises(errors.Conflict, match="choose another"):
            rig.execute(ROLL_BACK)
        assert active(rig) == "2.0"
