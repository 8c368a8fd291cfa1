"""What a worker says that its machine has."""

from __future__ import annotations

import os
from pathlib import Path

from astraflow.core.protocol.wire import MachineAmounts
from astraflow.worker.capacity import capacity_of
from astraflow.worker.hosts.procfs import machine_memory


def test_what_is_set_is_said_also_where_it_is_nothing(tmp_path: Path) -> None:
    assert capacity_of(1.5, 7, 2) == MachineAmounts(1.5, 7, 2)
    assert capacity_of(0, 0, 0) == MachineAmounts()


def test_the_machine_is_counted(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    found = capacity_of(None, None, None, devices=tmp_path, quota=tmp_path / "none")
    assert found.cpu == len(os.sched_getaffinity(0))
    assert found.memory_bytes == machine_memory()
    assert found.gpu == 2


def test_a_container_has_its_share_of_the_processors(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text("50000 100000\n")
    assert capacity_of(None, 0, 0, quota=quota).cpu == 0.5
    for text in ("max 100000\n", "", "what is this"):
        quota.write_text(text)
        assert capacity_of(None, 0, 0, quota=quota).cpu == len(os.sched_getaffinity(0))


def test_a_machine_without_devices_has_no_cards(tmp_path: Path) -> None:
    assert capacity_of(1, 1, None, devices=tmp_path / "none").gpu == 0
