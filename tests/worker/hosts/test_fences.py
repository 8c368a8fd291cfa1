"""A host dies when its worker cannot say that it may go on: dead, frozen, or silent (PROTOCOL §5.3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from astraflow.core.ids import TaskId
from astraflow.worker.hosts import kill_orphans
from astraflow.worker.hosts.orphans import HostRecord, record_host
from astraflow.worker.hosts.procfs import start_time
from tests.processes.process import ROOT, Process
from tests.worker.hosts.stage import error_of, is_alive, staged, value_of, wait_until_dead


@contextmanager
def worker_with_an_attempt(folder: Path, fence_s: float) -> Iterator[Process]:
    """A process that is the worker of one host, in which a handler has left a daemon."""
    program = (sys.executable, "-m", "tests.worker.hosts.worker_program")
    given = [str(folder), str(fence_s), str(folder / "daemon.pid")]
    worker = Process("worker", given, folder, {"PYTHONPATH": str(ROOT)}, program).start()
    try:
        worker.line(lambda line: line == "up")
        yield worker
    finally:
        worker.close()


def everything_of(folder: Path) -> list[int]:
    """The pids of the host, its guard and the daemon."""
    (path,) = (folder / "hosts").glob("*.json")
    record = json.loads(path.read_text())
    return [record["guard_pid"], record["host_pid"], int((folder / "daemon.pid").read_text())]


def test_when_the_worker_is_killed_its_hosts_and_all_they_started_die(tmp_path: Path) -> None:
    with worker_with_an_attempt(tmp_path, 600) as worker:
        pids = everything_of(tmp_path)
        assert all(map(is_alive, pids))
        worker.send(signal.SIGKILL)
        for pid in pids:
            wait_until_dead(pid)


def test_when_the_worker_is_frozen_its_hosts_die_at_their_fence(tmp_path: Path) -> None:
    with worker_with_an_attempt(tmp_path, 3) as worker:
        pids = everything_of(tmp_path)
        worker.send(signal.SIGSTOP)
        for pid in pids[1:]:
            wait_until_dead(pid)
        worker.send(signal.SIGCONT)
        wait_until_dead(pids[0])


async def test_when_the_guard_is_killed_the_kernel_ends_the_host_with_it(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits")
        await stage.up()
        (record,) = stage.records()
        os.kill(record["guard_pid"], signal.SIGKILL)
        assert error_of(await stage.outcome()).code == "E.RUNNER.CRASHED"
        wait_until_dead(record["host_pid"])


async def test_a_guard_that_does_not_answer_is_killed_with_all_below_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "daemon.pid"

    async with staged(tmp_path, kill_timeout_s=0.05) as stage:
        stage.start("nasty.daemonizes", {"pid_file": str(pid_file)})
        await stage.up()
        (record,) = stage.records()
        os.kill(record["guard_pid"], signal.SIGSTOP)
        stage.pool.kill(TaskId("t1"), 1)
        await stage.until(lambda: stage.goners)
        for pid in (record["host_pid"], int(pid_file.read_text())):
            wait_until_dead(pid)


async def test_a_fence_that_nobody_moves_ends_the_host_and_the_attempt_is_lost(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        error = error_of(await stage.outcome_of("nasty.alarm", fence_s=0.5))
        assert (error.code, error.category) == ("E.TASK.HOST_LOST", "INFRASTRUCTURE")


async def test_a_fence_that_is_moved_lets_the_attempt_end(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.outcome_of("core.noop", task="warm")
        stage.start("core.sleep", {"seconds": 0.6}, fence_s=0.4)
        stage.pool.refence({("t1", 1): stage.clock.now() + 600})
        assert value_of(await stage.outcome()) == {"seconds": 0.6}


async def test_a_fence_of_an_ended_attempt_does_not_kill_the_idle_host(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.outcome_of(
            "core.noop"
        )  # the start of a host may take longer than a short fence
        await stage.outcome_of("core.noop", task="t2", fence_s=1.0)
        await stage.outcome_of("core.sleep", {"seconds": 1.3}, task="t3")
        assert stage.pool.stats().died_total == 0


async def test_when_the_guard_itself_is_killed_not_even_a_stray_is_left(tmp_path: Path) -> None:
    """The daemon has left the session and lost its parents: only its environment tells whose it was."""

    async with staged(tmp_path) as stage:
        stage.start("nasty.daemonizes", {"pid_file": str(tmp_path / "daemon.pid")})
        await stage.up()
        guard, _, daemon = everything_of(tmp_path)
        os.kill(guard, signal.SIGKILL)
        assert error_of(await stage.outcome()).code == "E.RUNNER.CRASHED"
        wait_until_dead(daemon)


async def test_the_earliest_fence_in_a_host_counts_for_all_in_it(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.start("nasty.waits", task="far")
        await stage.up("far")
        stage.start("nasty.waits", task="near", fence_s=0.3)
        codes = {error_of(await stage.outcome(task)).code for task in ("far", "near")}
        assert codes == {"E.TASK.HOST_LOST"}


class TestLeftOvers:
    def test_a_left_over_of_an_earlier_boot_is_killed_with_its_session(
        self, tmp_path: Path
    ) -> None:
        program = "import os, signal, sys; os.fork(); sys.stdout.write('x'); sys.stdout.flush(); signal.pause()"
        left = subprocess.Popen(
            [sys.executable, "-c", program], start_new_session=True, stdout=subprocess.PIPE
        )
        try:
            assert left.stdout is not None
            assert left.stdout.read(2) == b"xx"
            started = start_time(left.pid)
            assert started is not None
            # The guard of the record is gone; its pid may be anybody's by now.
            record_host(tmp_path, HostRecord(os.getpid(), 1, left.pid, started))
            assert kill_orphans(tmp_path) == 2
            assert left.wait() == -signal.SIGKILL
            assert list((tmp_path / "hosts").iterdir()) == []
        finally:
            left.kill()
            left.communicate()

    def test_a_process_that_only_has_the_pid_of_a_left_over_is_left_alone(
        self, tmp_path: Path
    ) -> None:
        record_host(tmp_path, HostRecord(os.getpid(), 1))
        assert kill_orphans(tmp_path) == 0

    def test_a_record_that_was_being_written_is_swept(self, tmp_path: Path) -> None:
        record_host(tmp_path, HostRecord(os.getpid(), 1))
        (tmp_path / "hosts" / "12.json").write_text('{"guard_pid": 1')
        (tmp_path / "hosts" / "13.part").write_text("")
        assert kill_orphans(tmp_path) == 0
        assert list((tmp_path / "hosts").iterdir()) == []

    def test_a_folder_without_records_has_no_orphans(self, tmp_path: Path) -> None:
        assert kill_orphans(tmp_path) == 0

    def test_hosts_of_a_worker_that_was_killed_are_gone_after_the_next_boot(
        self, tmp_path: Path
    ) -> None:
        with worker_with_an_attempt(tmp_path, 600) as worker:
            pids = everything_of(tmp_path)
            os.kill(pids[0], signal.SIGSTOP)  # the guard cannot do its part
            worker.send(signal.SIGKILL)
            worker.wait()
            wait_until_dead(pids[1])  # the host itself has seen its pipe close
            assert is_alive(pids[2])
            assert kill_orphans(tmp_path) == 2
            assert not any(map(is_alive, pids))


@pytest.mark.parametrize("node_type", ["nasty.waits", "nasty.blocks_the_loop"])
async def test_a_kill_is_done_when_it_is_told(tmp_path: Path, node_type: str) -> None:
    started = tmp_path / "started"

    async with staged(tmp_path) as stage:
        stage.start(node_type, {"started": str(started)})
        await stage.until_ready()
        (record,) = stage.records()
        stage.pool.kill(TaskId("t1"), 1)
        await stage.until(lambda: stage.goners)
        assert stage.goners == [("t1", 1)]
        assert not is_alive(record["host_pid"])
        assert stage.results == {}
