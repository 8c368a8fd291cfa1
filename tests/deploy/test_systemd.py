"""The units of systemd: checked by systemd's own program, and against the settings and the commands that they use."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from astraflow.config import SchedulerSettings, WorkerSettings, load_scheduler, load_worker
from astraflow.worker.process import DRAIN_OVERRUN_S
from tests.deploy.product import env_file, takes, unknown_settings
from tests.processes.command_line import astra
from tests.processes.process import ROOT

FOLDER = ROOT / "deploy/systemd"
SCHEDULER, WORKER = "astraflow-scheduler.service", "astraflow-worker@.service"
UNITS = [SCHEDULER, WORKER]
INSTALLED = "/opt/astraflow/bin/astra"


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|min)?", text.strip()).groups()  # type: ignore[union-attr]
    return int(number) * (60 if unit == "min" else 1)


def values(unit: str, key: str) -> list[str]:
    text = (FOLDER / unit).read_text()
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def value(unit: str, key: str) -> str:
    (found,) = values(unit, key)
    return found


def verify(folder: Path, unit: str, text: str) -> subprocess.CompletedProcess[str]:
    """As on a machine where the program is installed."""
    program = shutil.which("systemd-analyze")
    assert program, "systemd-analyze is missing: `make deploy-tools` installs it"
    (folder / unit).write_text(text.replace(INSTALLED, "/bin/true"))
    return subprocess.run(
        [program, "verify", "--man=no", unit.replace("@.", "@otter.")],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    done = verify(tmp_path, unit, (FOLDER / unit).read_text())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_finds_a_wrong_key(tmp_path: Path) -> None:
    wrong = (FOLDER / SCHEDULER).read_text().replace("RestartSec=", "RestartSeconds=")
    done = verify(tmp_path, SCHEDULER, wrong)
    assert "RestartSeconds" in done.stderr


@pytest.mark.parametrize(("unit", "most"), [(SCHEDULER, 20), (WORKER, 45)])
def test_a_unit_is_exposed_no_more_than_it_was(unit: str, most: int) -> None:
    """In tenths of what `systemd-analyze security` counts: 0 is nothing, 100 is everything."""
    program = shutil.which("systemd-analyze")
    assert program
    done = subprocess.run(
        [program, "security", "--offline=true", f"--threshold={most}", str(FOLDER / unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_hardened_and_stops_as_the_product_does(unit: str) -> None:
    assert value(unit, "ProtectSystem") == "strict"
    assert value(unit, "NoNewPrivileges") == "yes"
    assert value(unit, "CapabilityBoundingSet") == ""
    assert (value(unit, "Type"), value(unit, "KillMode")) == ("notify", "mixed")
    assert value(unit, "User") not in ("", "root")


def test_a_unit_with_wrong_settings_is_not_started_again_and_again(tmp_path: Path) -> None:
    refused = {
        SCHEDULER: astra("server", cwd=tmp_path, ASTRA_SCHEDULER_PRT="80"),
        WORKER: astra("worker", cwd=tmp_path, ASTRA_WORKER_NAM="otter"),
    }
    for unit, done in refused.items():
        assert str(done.code) == value(unit, "RestartPreventExitStatus"), done.err


def test_a_worker_has_time_to_drain() -> None:
    stop_s = seconds(value(WORKER, "TimeoutStopSec"))
    configured = int(env_file(FOLDER / "worker.env")["ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS"])
    assert configured == WorkerSettings().drain_timeout_seconds
    assert stop_s > configured + DRAIN_OVERRUN_S


@pytest.mark.parametrize("unit", UNITS)
def test_the_command_of_a_unit_exists(unit: str) -> None:
    program, *words = shlex.split(value(unit, "ExecStart"))
    assert program == INSTALLED
    takes(words)


@pytest.mark.parametrize("unit", UNITS)
def test_the_data_folder_is_one_that_the_unit_may_write(unit: str) -> None:
    folder = f"/var/lib/{value(unit, 'StateDirectory')}"
    given = dict(
        pair.split("=", 1) for line in values(unit, "Environment") for pair in line.split()
    )
    prefix = "ASTRA_SCHEDULER_" if unit == SCHEDULER else "ASTRA_WORKER_"
    assert value(unit, "WorkingDirectory") == folder == given[f"{prefix}DATA_DIR"]
    assert unknown_settings(given) == []


@pytest.mark.parametrize(("unit", "file"), [(SCHEDULER, "scheduler.env"), (WORKER, "worker.env")])
def test_the_environment_file_that_a_unit_reads_is_shipped(unit: str, file: str) -> None:
    assert values(unit, "EnvironmentFile")[0] == f"/etc/astraflow/{file}"
    with_comments = env_file(FOLDER / file, with_comments=True)
    assert unknown_settings(with_comments) == []
    assert with_comments.keys() > env_file(FOLDER / file).keys()


def test_the_shipped_settings_are_taken_once_the_tokens_are_filled_in(tmp_path: Path) -> None:
    filled = {"ASTRA_SCHEDULER_BOOTSTRAP_TOKEN": "x" * 32, "ASTRA_WORKER_AUTH_TOKEN": "x" * 32}
    nowhere = tmp_path / "astraflow.toml"
    nowhere.write_text("")
    scheduler = {**env_file(FOLDER / "scheduler.env"), "ASTRA_SCHEDULER_DATA_DIR": str(tmp_path)}
    loaded = load_scheduler(environ={**scheduler, **filled}, file=nowhere)
    assert loaded.settings.port == SchedulerSettings().port
    worker = {**env_file(FOLDER / "worker.env"), "ASTRA_WORKER_DATA_DIR": str(tmp_path)}
    assert load_worker(environ={**worker, **filled}, file=nowhere).settings.auth_token is not None
