"""The image: its Dockerfile, what is sent to the build, and its health check. Nothing here builds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from astraflow.config import SchedulerSettings
from tests.deploy.product import takes, unknown_settings
from tests.processes.process import ROOT, clean_environment, free_port
from tests.processes.system import running

DOCKERFILE = ROOT / "deploy/Dockerfile"
HEALTHCHECK = ROOT / "deploy/healthcheck.py"
BIN = Path(sys.executable).parent


def instructions() -> list[str]:
    """Each on one line, without comments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def words(instruction: str) -> list[str]:
    """What the last instruction of that name says, in the form of a list."""
    (*_, last) = [one for one in instructions() if one.startswith(f"{instruction} ")]
    found: list[str] = re.findall(r'"([^"]*)"', last)
    return found


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "hadolint"), "--no-color", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_hadolint_finds_nothing() -> None:
    done = lint(DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_hadolint_finds_what_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM debian:12\nRUN apt-get install curl\n")
    assert "DL3008" in lint(wrong).stdout


def test_the_image_runs_as_nobody_in_particular_with_every_role() -> None:
    (user,) = [one.split()[1] for one in instructions() if one.startswith("USER ")]
    assert user == "10001:10001"
    assert words("ENTRYPOINT") == ["astra"]
    takes(words("CMD"))
    takes(["worker"])
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"ARG VERSION={version}" in instructions()
    assert "ARG BASE=python:3.12-slim" in instructions()


def test_the_image_sets_what_exists_and_writes_into_its_volume() -> None:
    (*_, last) = [one for one in instructions() if one.startswith("ENV ")]
    given = dict(one.split("=", 1) for one in last.split()[1:])
    assert unknown_settings(given) == []
    (volume,) = [one.split()[1] for one in instructions() if one.startswith("VOLUME ")]
    folders = {given[name] for name in given if name.endswith("_DATA_DIR") or name == "HOME"}
    assert folders == {volume}


def test_what_is_installed_is_locked() -> None:
    (install,) = [one for one in instructions() if "--require-hashes" in one]
    (locked,) = re.findall(r"--requirement (\S+)", install)
    assert "--only-binary :all:" in install
    assert "--hash=sha256:" in (ROOT / locked).read_text()
    from_checkout = [one for one in instructions() if "--no-deps" in one]
    assert from_checkout and all(one.count("--no-index") == 2 for one in from_checkout)


def sent() -> list[str]:
    """The tracked files that `.dockerignore` lets through: it names folders and files, and leaves the rest out."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines and kept
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    return [name for name in listed if any(PurePosixPath(name).is_relative_to(one) for one in kept)]


def test_what_is_sent_to_the_build_makes_a_whole_wheel(tmp_path: Path) -> None:
    names = sent()
    assert {"deploy/healthcheck.py", "requirements/run.txt"} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "docs/", "web/"))]
    for name in names:
        if (ROOT / name).is_file():
            place = tmp_path / "src" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place)
    command = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--wheel-dir", str(tmp_path), "."]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path / "src",
        env=clean_environment(PYTHONPATH=""),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "astraflow/cli/main.py",
        "astraflow/observe/service_notification.py",
        "astraflow/web/dist/index.html",
        "astraflow/shipped/core/manifest.json",
        "astraflow/shipped/examples/hello.json",
        "astraflow_sdk/__init__.py",
    } <= inside


def check_health(command_line: Path, port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HEALTHCHECK), str(command_line)],
        env=clean_environment(ASTRA_SCHEDULER_PORT=str(port)),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_health_check_asks_a_scheduler_and_nobody_else(tmp_path: Path) -> None:
    scheduler, worker = tmp_path / "scheduler", tmp_path / "worker"
    scheduler.write_bytes(b"/opt/astraflow/bin/python\0/opt/astraflow/bin/astra\0server\0")
    worker.write_bytes(b"/opt/astraflow/bin/python\0/opt/astraflow/bin/astra\0worker\0")
    with running(tmp_path / "site") as system:
        assert check_health(scheduler, system.port).returncode == 0
    nobody = free_port()
    failed = check_health(scheduler, nobody)
    assert failed.returncode == 1
    assert failed.stderr.startswith("the scheduler does not answer: ")
    assert check_health(worker, nobody).returncode == 0


def test_the_health_check_uses_the_port_of_the_settings() -> None:
    assert words("HEALTHCHECK") == ["python", "/opt/astraflow/healthcheck.py"]
    assert f'"ASTRA_SCHEDULER_PORT", "{SchedulerSettings().port}"' in HEALTHCHECK.read_text()


@pytest.mark.parametrize("name", ["healthcheck.py"])
def test_the_image_has_the_health_check(name: str) -> None:
    assert f"COPY deploy/{name} /opt/astraflow/{name}" in instructions()
