"""Hooks: run only if they are allowed, in the package's environment, and never beyond their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.worker.packages.rig import details, installing, left_in_staging, package

INSTALL = {"install": ["scripts/install.sh"]}


def hooked(folder: Path, script: str, **fields: Any) -> bytes:
    files = {"scripts/install.sh": script, **fields.pop("files", {})}
    return package(folder, files=files, hooks=fields.pop("hooks", INSTALL), **fields)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def test_a_hook_runs_in_its_package_with_its_python_and_few_of_our_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRA_WORKER_AUTH_TOKEN", "secret-1")
    monkeypatch.setenv("MY_SECRET", "secret-2")
    script = "#!/bin/sh\npwd > told; which python >> told; env >> told\n"

    async with installing(tmp_path, hooks=("demo",)) as rig:
        event = await rig.install(hooked(tmp_path, script))
        assert event.status == "installed", event.details
        steps = [details(one)["step"] for one in rig.events if one.status == "installing"]
        assert steps == ["check", "unpack", "equip", "hooks", "probe", "place"]
        told = (rig.folder / "packages/demo/1.0.0/told").read_text()
        folder, python, *_ = told.splitlines()
        assert folder.endswith("/package")
        assert python == f"{folder}/.venv/bin/python"
        assert "ASTRAFLOW_PACKAGE=demo" in told
        assert "secret" not in told


@pytest.mark.parametrize("allowed", [(), ("other",)])
async def test_a_package_with_hooks_that_is_not_allowed_is_refused_before_it_is_unpacked(
    tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    async with installing(tmp_path, hooks=allowed) as rig:
        event = await rig.install(hooked(tmp_path, f"#!/bin/sh\ntouch {tmp_path}/ran\n"))
        told = details(event)
        assert (told["code"], told["step"]) == ("E.PKG.PERMISSION", "check")
        assert not (tmp_path / "ran").exists()


async def test_a_hook_that_fails_or_cannot_be_run_rolls_the_install_back(tmp_path: Path) -> None:
    async with installing(tmp_path, hooks=("*",)) as rig:
        for script, says in (
            ("#!/bin/sh\necho the reason; exit 3\n", "ended with 3: the reason"),
            ("#!/no/such/interpreter\n", "ended with 126"),
            ("no first line\n", "ended with 126"),
            ("#!/bin/sh\nkill -9 $$\n", "ended with -9"),
        ):
            told = details(await rig.install(hooked(tmp_path, script)))
            assert (told["code"], told["step"]) == ("E.PKG.INSTALL_FAILED", "hooks")
            assert says in told["message"], told
        assert rig.offered() == []
        assert left_in_staging(rig.folder) == []


async def test_a_hook_that_hangs_is_killed_with_all_that_it_forked(tmp_path: Path) -> None:
    """One child in its group, one that has left group, session and parent."""
    pids = tmp_path / "pids"
    script = f"""#!/bin/sh
sleep 1000 &
echo $! >> {pids}
setsid sh -c 'echo $$ >> {pids}; exec sleep 1000' &
while [ $(wc -l < {pids}) -lt 2 ]; do :; done
echo $$ >> {pids}
sleep 1000
"""

    async with installing(tmp_path, hooks=("demo",), hook_timeout_s=1.0) as rig:
        told = details(await rig.install(hooked(tmp_path, script)))
        assert told["step"] == "hooks"
        assert "longer than 1 s" in told["message"]
        started = [int(line) for line in pids.read_text().split()]
        assert len(started) == 3
        assert [pid for pid in started if alive(pid)] == []


async def test_what_a_hook_leaves_running_is_killed_when_it_ends(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"""#!/bin/sh
setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' > /dev/null 2>&1 &
while [ ! -e {pid} ]; do :; done
"""

    async with installing(tmp_path, hooks=("demo",)) as rig:
        assert (await rig.install(hooked(tmp_path, script))).status == "installed"
        assert not alive(int(pid.read_text()))


async def test_uninstall_hooks_run_and_do_not_hold_a_removal_up(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    async with installing(tmp_path, hooks=("demo",)) as rig:
        hooks = {"uninstall": ["scripts/good.sh", "scripts/bad.sh"]}
        files = {
            "scripts/good.sh": f"#!/bin/sh\ncp manifest.json {ran}\n",
            "scripts/bad.sh": "#!/bin/sh\nexit 9\n",
        }
        await rig.install(package(tmp_path, files=files, hooks=hooks))
        event = await rig.uninstall()
        assert event.status == "removed"
        assert "ended with 9" in details(event)["message"]
        assert ran.exists()
        assert rig.offered() == []


async def test_a_dependency_that_must_be_built_is_built_only_where_hooks_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building runs code of others at install, as a hook does."""
    source = tmp_path / "index" / "builds_itself-1.0"
    source.mkdir(parents=True)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: builds-itself\nVersion: 1.0\n")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    )
    (source / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    import tarfile

    with tarfile.open(tmp_path / "index" / "builds_itself-1.0.tar.gz", "w:gz") as packed:
        packed.add(source, arcname="builds_itself-1.0")

    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "index"))
    hooks: tuple[str, ...]
    for name, hooks in (("a", ()), ("b", ("demo",))):
        async with installing(tmp_path / name, hooks=hooks) as rig:
            archive = package(tmp_path, python={"dependencies": ["builds-itself==1.0"]})
            told = details(await rig.install(archive))
            assert told["step"] == "equip"
            assert (tmp_path / "ran").exists() == bool(hooks)
