"""A worker whose tenant has several lanes, with real hosts and sockets."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control
from astraflow.worker.hosts import fleet
from astraflow.worker.hosts.hosted_attempt import HostedAttempt
from astraflow.worker.hosts.settings import HostSpec
from tests.worker.lane_rig import LaneScheduler, Rig, lane_rig


def has_told(lane: LaneScheduler, slots: int) -> bool:
    return lane.told_slots == slots


def has_result(lane: LaneScheduler, task: str) -> bool:
    return task in lane.results


async def test_with_one_lane_nothing_is_said_of_slots(tmp_path: Path) -> None:
    async with lane_rig(tmp_path, lanes=1) as rig:
        await rig.until(lambda: rig.home.heartbeats)
        rig.home.dispatch("a")
        await rig.until(lambda: rig.home.results)
        assert rig.home.results["a"].status == "SUCCEEDED"
        (register,) = rig.home.registers
        assert register.slots is None
        assert control.SEVERAL_LANES in register.capabilities.features
        assert rig.home.slots == []


async def test_a_session_is_opened_with_each_lane_and_the_slots_are_divided(tmp_path: Path) -> None:
    async with lane_rig(tmp_path, max_parallel=6, lanes=3) as rig:
        await rig.open_lanes()
        home, first, second = rig.schedulers
        await rig.until(lambda: home.slots and home.slots[-1] == 2)
        for lane in (first, second):
            await rig.until(partial(has_told, lane, 2))
            lane.dispatch(f"of-{lane.lane}")
            await rig.until(partial(has_result, lane, f"of-{lane.lane}"))
            assert lane.results[f"of-{lane.lane}"].status == "SUCCEEDED"
        assert home.results == {}
        assert rig.worker.numbers == [0, 1, 2]


async def test_slots_move_to_a_hungry_lane_after_the_answer(tmp_path: Path) -> None:
    async with lane_rig(tmp_path, max_parallel=4) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        await rig.until(lambda: other.told_slots == 2)
        home.answers_slots = False
        other.hungry(1)
        await rig.until(lambda: home.slots[-1] == 1)
        told = list(other.slots)
        other.dispatch("a")
        await rig.until(lambda: other.results)
        assert other.slots == told, "the home still counts with the slot"
        home.answers_slots = True
        home.answer_slots()
        await rig.until(lambda: other.slots[-1:] == [3])


async def test_an_excess_dispatch_waits_is_named_and_runs_when_there_is_room(
    tmp_path: Path,
) -> None:
    async with lane_rig(tmp_path, max_parallel=2) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(home, "a")
        rig.hold(home, "b")
        await rig.begun("a")
        await rig.begun("b")
        rig.hold(other, "c")
        await rig.until(lambda: rig.worker.working == 3)
        assert rig.worker.waiting == 1
        other.cut()
        await rig.until(lambda: [one.task_id for one in other.heartbeats[-1].attempts] == ["c"])
        assert rig.worker.waiting == 1, "what waits is held, and is named"
        await rig.let_go("a")
        await rig.begun("c")
        await rig.let_go("c")
        await rig.let_go("b")
        await rig.until(lambda: len(home.results) == 2 and len(other.results) == 1)


async def test_what_waits_can_be_cancelled(tmp_path: Path) -> None:
    async with lane_rig(tmp_path, max_parallel=1) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(home, "a")
        await rig.begun("a")
        other.dispatch("b")
        await rig.until(lambda: rig.worker.waiting == 1)
        cancel = business.ExecCancel(RunId("run-1"), TaskId("b"), 1, "cancel", 1000)
        other.send(business.CANCEL, cancel, "b")
        await rig.until(lambda: other.results)
        assert other.results["b"].status == "CANCELLED"
        await rig.let_go("a")
        await rig.until(lambda: home.results)


async def test_lanes_share_no_process_and_the_fence_of_one_kills_nothing_of_another(
    tmp_path: Path,
) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(home, "a")
        rig.hold(other, "b")
        await rig.begun("a")
        await rig.begun("b")
        await _fence(rig, other)
        await rig.until(lambda: rig.worker.working == 1)
        await rig.let_go("a")
        await rig.until(lambda: home.results)
        assert home.results["a"].status == "SUCCEEDED"
        assert other.results == {}


async def _fence(rig: Rig, lane: LaneScheduler) -> None:
    """The answer to the heartbeat after the next connection kills all attempts of the lane, as a fence does."""
    lane.stops_all = True
    lane.cut()
    await rig.until(lambda: lane.heartbeats[-1].attempts)


async def test_lanes_that_shared_a_host_would_be_killed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: hosts are shared by all attempts of a package."""

    def share_of(spec: HostSpec, running: HostedAttempt) -> tuple[tuple[str, str], bool, int]:
        return (spec.name, spec.version), running.dispatch.chain_index is not None, 0

    monkeypatch.setattr(fleet, "_share_of", share_of)
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(home, "a")
        rig.hold(other, "b")
        await rig.begun("a")
        await rig.begun("b")
        await _fence(rig, other)
        await rig.until(lambda: "a" in home.results)
        assert home.results["a"].status == "FAILED"


async def test_lanes_have_hosts_of_their_own(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        code = "import os\ndef main(): return os.getpid()"
        found = []
        for number, lane in enumerate((*rig.schedulers, *rig.schedulers)):
            lane.dispatch(f"t{number}", "core.python", code=code)
            await rig.until(partial(has_result, lane, f"t{number}"))
            result = lane.results[f"t{number}"]
            found.append(json.loads(bytes(result.result))["result"])
        assert found[0] != found[1]
        assert found[:2] == found[2:]


async def test_a_lane_that_is_not_listed_any_more_ends_when_it_is_empty(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(other, "a")
        await rig.begun("a")
        home.lanes()
        await rig.until(lambda: other.heartbeats[-1].draining)
        assert rig.worker.numbers == [0, 1]
        await rig.let_go("a")
        await rig.until(lambda: other.results)
        await rig.until(lambda: rig.worker.numbers == [0])
        await rig.until(lambda: home.slots[-1] == 4)
        home.lanes(other)
        await rig.until(lambda: rig.worker.numbers == [0, 1] and len(other.registers) == 2)


async def test_a_lane_that_is_listed_again_before_it_has_ended_is_opened_anew(
    tmp_path: Path,
) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(other, "a")
        await rig.begun("a")
        home.lanes()
        await rig.until(lambda: other.heartbeats[-1].draining)
        home.lanes(other)
        await rig.let_go("a")
        await rig.until(lambda: len(other.registers) == 2)
        other.dispatch("b")
        await rig.until(lambda: "b" in other.results)


async def test_a_drain_by_the_home_ends_the_worker_when_all_lanes_are_empty(
    tmp_path: Path,
) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        rig.hold(other, "a")
        await rig.begun("a")
        home.drain()
        await rig.until(lambda: other.heartbeats[-1].draining)
        assert rig.code is None
        await rig.let_go("a")
        assert await rig.exit_code() == 0
        assert other.results["a"].status == "SUCCEEDED"


async def test_only_the_home_drains_and_installs(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        other.drain()
        order = business.PkgInstall("demo", "1.0.0", "/blobs/none", "0" * 64)
        other.send(business.PKG_INSTALL, order)
        other.dispatch("a")
        await rig.until(lambda: other.results)
        home.dispatch("b")
        await rig.until(lambda: home.results)
        assert not other.heartbeats[-1].draining
        assert not any(isinstance(one, business.PkgEvent) for one in (*home.frames, *other.frames))


async def test_a_drain_of_the_process_drains_all_lanes(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        rig.worker.drain(None)
        assert await rig.exit_code() == 0


async def test_a_lane_whose_connection_broke_is_told_its_slots_again(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        await rig.until(lambda: other.told_slots == 2)
        before = len(other.slots)
        rig.hold(other, "a")
        await rig.begun("a")
        other.cut()
        await rig.until(lambda: other.resumes == 1 and len(other.slots) == before + 1)
        assert other.slots[-1] == 2
        await rig.let_go("a")
        await rig.until(lambda: other.results)
        home.dispatch("b")
        await rig.until(lambda: home.results)
        assert len(other.registers) == 1


async def test_a_lane_whose_session_is_over_registers_with_the_slots_that_it_has(
    tmp_path: Path,
) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        await rig.until(lambda: other.told_slots == 2)
        home.end()
        await rig.until(lambda: len(home.registers) == 2)
        assert home.registers[-1].slots == 2


async def test_an_identity_that_another_process_has_ends_the_whole_worker(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        rig.schedulers[1].end(errors.SESSION_STALE_BINDING)
        assert await rig.exit_code() == 1


async def test_what_is_offered_and_the_credential_are_told_to_all_lanes(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        rig.worker.offer_changed()
        await rig.until(lambda: all(len(one.registers) >= 2 for one in rig.schedulers))
        rig.worker.present("good")
        await rig.until(lambda: all(one.handshakes == 2 for one in rig.schedulers))


async def test_a_resource_is_told_to_the_lane_in_which_it_was_made(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        other.dispatch("a", "core.file", name="x.txt", text="hello")
        await rig.until(lambda: other.results)
        assert other.results["a"].status == "SUCCEEDED", other.results["a"].error
        events = [one for one in other.frames if isinstance(one, business.ResourceEvent)]
        assert [one.state for one in events] == ["ready"]
        assert not any(isinstance(one, business.ResourceEvent) for one in home.frames)


async def test_a_resource_of_an_earlier_boot_is_told_when_its_lane_is_open(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        rig.schedulers[1].dispatch("a", "core.file", name="x.txt", text="hello")
        await rig.until(lambda: rig.schedulers[1].results)
    async with lane_rig(tmp_path) as again:
        await again.open_lanes()
        home, other = again.schedulers
        await again.until(lambda: other.frames)
        assert [one.state for one in other.frames] == ["ready"]
        assert not any(isinstance(one, business.ResourceEvent) for one in home.frames)


async def test_a_lane_that_has_moved_is_followed(tmp_path: Path) -> None:
    async with lane_rig(tmp_path) as rig:
        await rig.open_lanes()
        home, other = rig.schedulers
        new = LaneScheduler(1, rig.changed)
        async with new.serving():
            other.end(errors.SESSION_MOVED, new.url)
            await rig.until(lambda: new.heartbeats)
            new.dispatch("a")
            await rig.until(lambda: new.results)
            await rig.until(partial(has_told, new, 2))
            rig.worker.end(0, "the test is over")
            await rig.exit_code()
        assert len(home.registers) == 1
