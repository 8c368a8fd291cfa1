"""What `/proc` tells."""

from __future__ import annotations

import os
import subprocess
import sys

from astraflow.worker.hosts import procfs


def test_a_process_is_named_by_its_pid_and_its_start() -> None:
    mine = procfs.start_time(os.getpid())
    assert mine is not None
    assert mine == procfs.start_time(os.getpid())
    assert procfs.start_time(2**22 + 1) is None


def test_a_process_that_waits_to_be_reaped_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert procfs.start_time(child.pid) is None
    child.wait()


def test_children_are_found_and_killed_with_all_below_them() -> None:
    program = "import os, signal; os.write(1, b'%d\\n' % os.fork()); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    grandchild = max(int(child.stdout.readline()), int(child.stdout.readline()))
    assert child.pid in procfs.children_of(os.getpid())
    assert procfs.tree_of(child.pid) == [child.pid, grandchild]
    assert procfs.held_below(child.pid).rss_bytes > 0
    assert procfs.held_below(grandchild) == (0, 0)
    procfs.kill_all([*procfs.tree_of(child.pid), 2**22 + 1])
    assert child.wait() == -9
    child.stdout.close()


def test_nothing_is_below_a_process_that_is_gone() -> None:
    assert procfs.children_of(2**22 + 1) == []
    assert procfs.held_below(2**22 + 1) == (0, 0)


def test_the_kernels_count_of_kills_is_a_number() -> None:
    assert procfs.oom_kills() >= 0
