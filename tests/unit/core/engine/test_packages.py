"""Packages on workers: install intents, what becomes of them, and installs on demand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from astraflow.core import errors
from astraflow.core.engine.commands import DrainWorker
from astraflow.core.engine.effects import LearnManifest
from astraflow.core.engine.packages import request_install, request_removal
from astraflow.core.fleet.installs import (
    INSTALL_TRIES,
    InstallIntent,
    InstallProblem,
    PackageReported,
)
from astraflow.core.fleet.versions import PublishedVersion
from astraflow.core.protocol import business
from astraflow.core.runs.facts import TaskFailed, TaskWaiting
from astraflow.core.workflow.plan import AffinityHint
from tests.unit.core.engine.rig import TENANT, Rig, Worker
from tests.unit.plans import make_plan

INSTALLS = ("pkg.install", "runtime.any")
TEXT = {"package_name": "text", "package_version": "2.0", "runtime": "python"}


def published(*versions: tuple[str, str], **settings: Any) -> Rig:
    rig = Rig(**settings)
    for name, version in versions or [("text", "2.0")]:
        rig.engine.publish(PublishedVersion(TENANT, name, version, "ab" * 32, "signed"))
    return rig


def entry(rig: Rig, worker_id: str = "w1") -> Any:
    found = rig.engine.view.workers.find(TENANT, worker_id)
    assert found is not None
    return found


def intent(rig: Rig, worker_id: str = "w1") -> InstallIntent:
    found = rig.engine.view.installs.find((TENANT, worker_id, "text", "2.0"))
    assert found is not None
    return found


def frames(rig: Rig, kind: type) -> list[Any]:
    return [frame.payload for frame in rig.carried if isinstance(frame.payload, kind)]


def tell(worker: Worker, status: Any, **details: Any) -> None:
    event = business.PkgEvent(
        "text", "2.0", status, details=msgspec.Raw(msgspec.json.encode(details))
    )
    worker.live.tell("pkg/text/2.0", business.PKG_EVENT, event, None, worker.rig.now)
    worker.rig.run()


def has_it(worker: Worker, *names: str) -> None:
    """The worker registers anew, with these packages."""
    from tests.unit.core.engine.rig import _offer

    packages = {"pkg": "1.0", **dict.fromkeys(names, "2.0")}
    worker.offer = _offer(worker.slots, packages, features=INSTALLS, runtimes=("python",))
    worker.live.reoffer(worker.rig.now)
    worker.rig.run()


class TestIntents:
    def test_an_install_is_told_with_all_that_proves_it(self) -> None:
        rig = published()
        rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        assert frames(rig, business.PkgInstall) == [
            business.PkgInstall(
                "text", "2.0", "https://repo.example/text-2.0.cwx", "ab" * 32, "signed"
            )
        ]
        assert (intent(rig).state, intent(rig).why, intent(rig).is_open) == (
            "wanted",
            "command",
            True,
        )

    def test_a_later_register_does_not_bring_back_what_the_worker_has_let_go(self) -> None:
        """The worker lets 2.0 go; its register overtakes the event that says so."""
        rig = published()
        worker = rig.worker("w1", features=INSTALLS, runtimes=("python",))
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        tell(worker, "installed")
        has_it(worker, "text")
        has_it(worker)
        assert len(frames(rig, business.PkgInstall)) == 1
        tell(worker, "removed")
        assert (intent(rig).target, intent(rig).state) == ("removed", "removed")
        rig.wait(0.1)
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_what_the_repository_does_not_have_cannot_be_wished(self) -> None:
        rig = published()
        rig.worker("w1")
        with pytest.raises(errors.NotFound):
            request_install(rig.engine.view, entry(rig), "text", "9.9", "command")

    def test_what_the_worker_has_already_is_fulfilled_at_once(self) -> None:
        rig = published()
        rig.worker("w1", packages={"text": "2.0"})
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        assert intent(rig).state == "installed"
        assert frames(rig, business.PkgInstall) == []
        request_removal(rig.engine.view, entry(rig), "other", "1.0", "command")
        rig.wait(0.1)
        assert frames(rig, business.PkgUninstall) == []

    def test_a_removal_is_told_although_the_install_before_it_is_under_way(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        tell(worker, "installing")
        request_removal(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        assert intent(rig).is_open
        assert len(frames(rig, business.PkgUninstall)) == 1
        tell(worker, "removed")
        assert intent(rig).state == "removed"
        tell(worker, "installed")  # an install that nobody asked for
        assert intent(rig).state == "wanted"
        assert len(frames(rig, business.PkgUninstall)) == 2

    def test_progress_and_end_are_the_workers_word(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        tell(worker, "downloading")
        assert intent(rig).state == "downloading"
        tell(worker, "installing", step="venv")
        assert intent(rig).state == "installing"
        tell(worker, "installed")
        assert (intent(rig).state, intent(rig).is_open) == ("installed", False)
        told = [one.status for one in rig.recorded(PackageReported)]
        assert told == ["downloading", "installing", "installed"]

    def test_an_event_of_something_nobody_wished_is_told_and_nothing_else(self) -> None:
        rig = published()
        worker = rig.worker("w1")
        tell(worker, "installed")
        assert len(rig.engine.view.installs) == 0
        assert [one.status for one in rig.recorded(PackageReported)] == ["installed"]

    def test_a_worker_that_was_away_is_told_when_it_is_back(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        worker.crash()
        rig.wait(20.0)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        assert frames(rig, business.PkgInstall) == []
        worker.boot()
        rig.wait(1.0)
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_an_inventory_that_has_it_ends_the_wish(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        has_it(worker, "text")
        assert intent(rig).state == "installed"

    def test_a_worker_that_lost_what_it_had_is_told_again(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        has_it(worker, "text")
        rig.worker("w1", features=INSTALLS)  # another boot, with an empty folder
        assert len(frames(rig, business.PkgInstall)) == 2
        assert intent(rig).state == "wanted"

    def test_a_version_that_the_worker_let_go_by_itself_is_not_wished_again(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        has_it(worker, "text")
        tell(worker, "removed")
        has_it(worker)
        assert (intent(rig).target, intent(rig).state) == ("removed", "removed")
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_a_removal_ends_when_the_inventory_is_without_it(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        has_it(worker, "text")
        request_removal(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        assert frames(rig, business.PkgUninstall) == [business.PkgUninstall("text", "2.0")]
        has_it(worker)
        assert intent(rig).state == "removed"

    def test_a_failure_that_may_pass_is_tried_again_and_then_rests(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        rig.wait(0.1)
        for tries in range(1, INSTALL_TRIES + 1):
            assert len(frames(rig, business.PkgInstall)) == tries
            tell(worker, "failed", code="E.PKG.INSTALL_FAILED", message="no network")
            rig.wait(60.0)
        assert len(frames(rig, business.PkgInstall)) == INSTALL_TRIES
        assert (intent(rig).state, intent(rig).error) == (
            "failed",
            InstallProblem("E.PKG.INSTALL_FAILED", "no network"),
        )

    def test_a_failure_that_will_not_pass_is_the_end(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        tell(worker, "failed", code="E.PKG.INVALID", message="bad zip")
        rig.wait(120.0)
        assert intent(rig).state == "failed"
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_details_that_are_no_details_are_a_failure_all_the_same(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        request_install(rig.engine.view, entry(rig), "text", "2.0", "command")
        tell(worker, "failed", code=7)
        assert intent(rig).error == InstallProblem("E.PKG.INSTALL_FAILED")

    def test_a_version_that_is_no_longer_published_ends_the_wish(self) -> None:
        rig = published()
        stored = InstallIntent(
            tenant=TENANT,
            worker_id="w1",
            name="gone",
            version="1.0",
            target="installed",
            why="demand",
            updated_at=0,
        )
        rig.engine.restore_install(stored)
        rig.worker("w1", features=INSTALLS)
        failed = rig.engine.view.installs.find(stored.key)
        assert failed is not None and failed.state == "failed"
        assert failed.error is not None and failed.error.code == "E.PKG.NOT_FOUND"


class TestOnDemand:
    def test_a_task_whose_package_nobody_has_is_installed_for(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        rig.submit(make_plan(1, nodes={0: TEXT}))
        assert len(frames(rig, business.PkgInstall)) == 1
        assert intent(rig).why == "demand"
        rig.wait(1.1)
        said = [fact.waiting_for for fact in rig.facts() if isinstance(fact, TaskWaiting)]
        assert said[-1].kind == "package"
        assert said[-1].detail == "worker w1 waits to install text 2.0"
        has_it(worker, "text")
        assert worker.tasks() == [("run1.0", 1)]

    def test_one_worker_installs_it_first_not_all(self) -> None:
        rig = published()
        rig.worker("w1", features=INSTALLS)
        rig.worker("w2", features=INSTALLS)
        rig.submit(make_plan(3, nodes=dict.fromkeys(range(3), TEXT)))
        rig.wait(5.0)
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_a_worker_that_installs_nothing_or_cannot_run_it_is_not_asked(self) -> None:
        rig = published()
        rig.worker("w1")
        rig.worker("w2", features=("pkg.install",))
        rig.submit(make_plan(1, nodes={0: TEXT}))
        rig.wait(5.0)
        assert frames(rig, business.PkgInstall) == []
        rig.worker("w3", features=("pkg.install",), runtimes=("python",))
        rig.wait(2.0)
        assert intent(rig, "w3").is_open

    def test_labels_are_respected(self) -> None:
        rig = published()
        rig.worker("w1", features=INSTALLS)
        rig.worker("w2", features=INSTALLS, labels={"gpu": "1"})
        rig.submit(make_plan(1, nodes={0: {**TEXT, "worker_labels": (("gpu", "1"),)}}))
        assert intent(rig, "w2").is_open

    def test_a_pinned_task_has_it_installed_where_its_resource_is(self) -> None:
        rig = published()
        first = rig.worker("w1", features=INSTALLS)
        rig.worker("w2", features=INSTALLS)
        rig.submit(make_plan(2, [(0, 1)], nodes={1: TEXT}, reads=True))
        maker = first if first.tasks() else rig.workers[f"{TENANT}/w2"]
        maker.finish(value={"resourceRef": {"resourceId": "r", "workerId": "w2"}})
        assert intent(rig, "w2").is_open
        assert rig.engine.view.installs.find((TENANT, "w1", "text", "2.0")) is None

    def test_a_sticky_task_has_it_installed_on_the_worker_of_its_key(self) -> None:
        rig = published()
        rig.worker("w1", packages={"text": "2.0"}, runtimes=("python",))
        rig.worker("w2", features=INSTALLS)
        rig.engine.view.acquire(TENANT, "k", "w2")
        sticky = {**TEXT, "affinity": AffinityHint("k", "sticky")}
        rig.submit(make_plan(1, nodes={0: sticky}))
        assert intent(rig, "w2").is_open

    def test_the_next_worker_is_asked_when_one_has_failed_and_then_the_task_fails(self) -> None:
        rig = published()
        workers = [rig.worker(name, features=INSTALLS) for name in ("w1", "w2")]
        rig.submit(make_plan(1, nodes={0: TEXT}))
        for _ in workers:
            [asked] = [one for one in workers if _is_open(rig, one)]
            tell(asked, "failed", code="E.PKG.INVALID", message="bad zip")
            rig.wait(1.5)
        assert rig.active() == []
        [failed] = [fact for fact in rig.facts() if isinstance(fact, TaskFailed)]
        assert failed.error.code == "E.PKG.INVALID"
        assert (
            "could not be installed on any of 2 workers; the first: bad zip" in failed.error.message
        )

    def test_a_retry_says_what_went_wrong_before(self) -> None:
        rig = published()
        worker = rig.worker("w1", features=INSTALLS)
        rig.submit(make_plan(1, nodes={0: TEXT}))
        tell(worker, "failed", code="E.PKG.INSTALL_FAILED", message="no network")
        rig.wait(1.1)
        said = [fact.waiting_for for fact in rig.facts() if isinstance(fact, TaskWaiting)]
        assert said[-1].detail.endswith("waits to install text 2.0 again, after: no network")

    def test_what_is_not_published_is_waited_for(self) -> None:
        rig = published()
        rig.worker("w1", features=INSTALLS)
        rig.submit(make_plan(1, nodes={0: {**TEXT, "package_version": "3.0"}}))
        rig.wait(5.0)
        assert frames(rig, business.PkgInstall) == []
        assert rig.active() == ["run1"]


class TestSpread:
    """Tasks wait for a slot of the one worker that has their package."""

    def busy(self, tasks: int = 6, *, is_published: bool = True, **nodes: Any) -> Rig:
        rig = published() if is_published else Rig()
        has = {"text": "2.0"}
        rig.worker("w1", packages=has, slots=1, runtimes=("python",), features=INSTALLS)
        rig.submit(make_plan(tasks, nodes={task: {**TEXT, **nodes} for task in range(tasks)}))
        return rig

    def open_intents(self, rig: Rig) -> list[str]:
        return [one.worker_id for one in rig.engine.view.installs if one.is_open]

    def test_a_worker_with_a_free_slot_installs_it_and_takes_its_share(self) -> None:
        rig = self.busy()
        second = rig.worker("w2", features=INSTALLS, slots=2)
        rig.wait(1.1)
        assert self.open_intents(rig) == ["w2"]
        assert intent(rig, "w2").why == "demand"
        has_it(second, "text")
        assert len(second.tasks()) == 2

    def test_one_worker_at_a_time_until_nobody_waits(self) -> None:
        rig = self.busy(4)
        others = {name: rig.worker(name, features=INSTALLS, slots=1) for name in ("w2", "w3", "w4")}
        for count in (1, 2):
            rig.wait(5.0)
            [asked] = self.open_intents(rig)
            assert len(frames(rig, business.PkgInstall)) == count
            has_it(others.pop(asked), "text")
        rig.workers[f"{TENANT}/w1"].finish()  # the last one has its place
        rig.wait(5.0)
        assert self.open_intents(rig) == []
        assert len(frames(rig, business.PkgInstall)) == 2

    def test_a_demand_of_another_node_type_does_not_begin_a_second_install(self) -> None:
        rig = self.busy()
        rig.submit(make_plan(1, nodes={0: {**TEXT, "type": "text.other"}}), "run2")
        rig.worker("w2", features=INSTALLS)
        rig.worker("w3", features=INSTALLS)
        rig.wait(5.0)
        assert len(self.open_intents(rig)) == 1

    @pytest.mark.parametrize(
        "offer",
        [
            {"features": ()},
            {"features": ("pkg.install",)},  # no runtime
            {"features": INSTALLS, "per_node_limits": {"t": 0}},
        ],
    )
    def test_a_worker_that_could_not_run_it_is_not_asked(self, offer: dict[str, Any]) -> None:
        rig = self.busy(type="t")
        rig.worker("w2", **offer)
        rig.wait(5.0)
        assert self.open_intents(rig) == []

    def test_labels_are_respected(self) -> None:
        rig = published()
        one = {"labels": {"gpu": "1"}, "runtimes": ("python",), "features": INSTALLS}
        rig.worker("w1", packages={"text": "2.0"}, slots=1, **one)
        node = {**TEXT, "worker_labels": (("gpu", "1"),)}
        rig.submit(make_plan(3, nodes=dict.fromkeys(range(3), node)))
        rig.worker("w2", features=INSTALLS)
        rig.wait(5.0)
        assert self.open_intents(rig) == []

    def test_a_full_or_draining_worker_is_not_asked(self) -> None:
        rig = self.busy()
        rig.worker("w2", features=INSTALLS, slots=1)
        rig.worker("w3", features=INSTALLS)
        rig.execute(DrainWorker(tenant=TENANT, worker_id="w3"))
        rig.submit(make_plan(1), "run2")
        rig.wait(5.0)
        assert self.open_intents(rig) == []

    def test_sticky_tasks_wait_for_their_worker(self) -> None:
        rig = self.busy(affinity=AffinityHint("k", "sticky"))
        rig.worker("w2", features=INSTALLS)
        rig.wait(5.0)
        assert self.open_intents(rig) == []

    def test_nothing_is_put_where_it_failed_or_was_removed_by_command(self) -> None:
        rig = self.busy()
        second = rig.worker("w2", features=INSTALLS)
        third = rig.worker("w3", features=INSTALLS, packages={"text": "2.0"})
        request_removal(rig.engine.view, entry(rig, "w3"), "text", "2.0", "command")
        has_it(third)
        rig.wait(1.1)
        tell(second, "failed", code="E.PKG.INVALID", message="bad zip")
        rig.wait(5.0)
        assert self.open_intents(rig) == []
        assert len(frames(rig, business.PkgInstall)) == 1

    def test_what_is_not_published_cannot_spread(self) -> None:
        rig = self.busy(is_published=False)
        rig.worker("w2", features=INSTALLS)
        rig.wait(5.0)
        assert self.open_intents(rig) == []


def _is_open(rig: Rig, worker: Worker) -> bool:
    found = rig.engine.view.installs.find((TENANT, worker.worker_id, "text", "2.0"))
    return found is not None and found.is_open


def test_a_version_may_be_asked_for_in_another_spelling() -> None:
    rig = published()
    rig.worker("w1", features=INSTALLS, packages={"text": "1.0"})
    request_install(rig.engine.view, entry(rig), "text", "v2", "command")
    request_removal(rig.engine.view, entry(rig), "text", "1.0.0", "command")
    rig.run()
    assert [one.version for one in frames(rig, business.PkgInstall)] == ["2.0"]
    assert [one.version for one in frames(rig, business.PkgUninstall)] == ["1.0"]


def test_a_manifest_that_a_worker_tells_is_learnt() -> None:
    rig = published()
    worker = rig.worker("w1")
    catalog = business.PkgCatalog("text", "2.0", "ab" * 32, msgspec.Raw(b'{"name":"text"}'))
    worker.live.tell("catalog", business.PKG_CATALOG, catalog, None, rig.now)
    rig.run()
    assert rig.shell_effects == [LearnManifest(TENANT, b'{"name":"text"}')]


def test_all_that_is_asked_through_a_small_window_arrives() -> None:
    rig = published(window=1)
    names = [f"p{number}" for number in range(5)]
    rig.worker("w1", features=INSTALLS, packages=dict.fromkeys(names, "1.0"))
    for name in names:
        request_removal(rig.engine.view, entry(rig), name, "1.0", "command")
    rig.wait(2.0)
    assert [frame.name for frame in frames(rig, business.PkgUninstall)] == names
