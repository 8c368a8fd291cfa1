"""Versions of one package: side by side, rolled out in waves, rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import node, workflow
from tests.packages.archives import write_adapter
from tests.processes.system import System, running
from tests.processes.waiting import until

SIX = {"1.0.0": "1.15.0", "2.0.0": "1.16.0"}
"""Two pins that no single environment can have."""

ADAPTER = """
    import six

    class Adapter:
        def version(self, ctx):
            return {"six": six.__version__, "package": "%s", "worker": ctx.worker_id}
"""
BROKEN = """
    raise RuntimeError("this version cannot be loaded")
"""


def write_package(folder: Path, version: str, code: str | None = None) -> Path:
    """The source of package `clash` in one version."""
    python = {"dependencies": [f"six=={SIX.get(version, '1.16.0')}"], "closed": True}
    code = ADAPTER % version if code is None else code
    more = {"version": version, "python": python}
    return write_adapter(folder, "clash", "version", code, manifest=more)


def clashing(*versions: str | None) -> dict[str, Any]:
    """A node for each version; None names none."""
    wanted = [{} if one is None else {"version": one} for one in versions]
    made = [
        node("clash.version", f"n{n}", package={"name": "clash", **one})
        for n, one in enumerate(wanted)
    ]
    return workflow(*made)


def results(site: System, *versions: str | None) -> list[dict[str, Any]]:
    run = site.rest.run(clashing(*versions))
    assert run["status"] == "succeeded", run
    return [node["result"] for node in run["nodes"]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("versions")
    with running(folder / "site", 2) as site:
        for version in SIX:
            site.rest.publish(write_package(folder / version, version))
        site.rest.install("clash", "1.0.0")
        answer = site.rest.http.put("/api/v1/packages/clash/active", json={"version": "1.0.0"})
        assert answer.status_code == 200, answer.text
        yield site


def test_two_versions_with_pins_that_clash_run_side_by_side_on_one_worker(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "site", 1) as alone:
        for version in SIX:
            alone.rest.publish(write_package(tmp_path / version, version))
        first, second = results(alone, "1.0.0", "2.0.0")
    assert (first["six"], second["six"]) == ("1.15.0", "1.16.0")
    assert (first["package"], second["package"]) == ("1.0.0", "2.0.0")
    assert first["worker"] == second["worker"]


def _held(worker: dict[str, Any]) -> list[str]:
    packages = worker["packages"]
    return [
        one["version"]
        for one in packages
        if one["name"] == "clash" and one["status"] == "installed"
    ]


def _rollout(site: System, version: str) -> dict[str, Any]:
    body = {"version": version, "waves": [50, 100], "soakSeconds": 0.2}
    site.rest.post("packages/clash/rollout", body)
    return _end_of_rollout(site)


def _end_of_rollout(site: System) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        newest: dict[str, Any] = site.rest.get("packages/clash/rollout")["items"][0]
        return newest if newest["state"] != "running" else None

    return until(ended, "the end of the rollout")


def test_a_rollout_brings_a_version_to_all_workers_and_one_command_takes_it_back(
    site: System,
) -> None:
    assert results(site, None)[0]["package"] == "1.0.0"
    rollout = _rollout(site, "2.0.0")
    assert (rollout["state"], rollout["previous"]) == ("succeeded", "1.0.0")
    held = [_held(worker) for worker in site.rest.online()]
    assert held == [["1.0.0", "2.0.0"]] * 2
    assert results(site, None)[0]["package"] == "2.0.0"
    site.rest.post("packages/clash/rollback", wanted=200)
    assert results(site, None)[0]["package"] == "1.0.0"


def test_a_version_that_cannot_be_loaded_stops_at_its_first_wave(
    site: System, tmp_path: Path
) -> None:
    site.rest.publish(write_package(tmp_path / "broken", "3.0.0", BROKEN))
    site.rest.http.put("/api/v1/packages/clash/active", json={"version": "1.0.0"})
    rollout = _rollout(site, "3.0.0")
    assert rollout["state"] == "failed"
    assert "this version cannot be loaded" in rollout["error"]
    assert results(site, None)[0]["package"] == "1.0.0"
    told = [
        one["status"]
        for w in site.rest.online()
        for one in w["packages"]
        if one["version"] == "3.0.0"
    ]
    assert told == ["failed"], "one was asked, and nobody offers what could not be loaded"


def test_a_yanked_version_is_not_chosen_and_not_accepted(site: System, tmp_path: Path) -> None:
    site.rest.publish(write_package(tmp_path / "next", "4.0.0"))
    site.rest.post("packages/clash/4.0.0/yank", {"reason": "leaks"}, wanted=200)
    refused = site.rest.http.post("/api/v1/runs", json={"workflow": clashing("4.0.0")})
    assert refused.status_code == 422
    assert "E.PKG.YANKED" in refused.text


def test_a_version_that_is_yanked_on_its_way_ends_its_rollout_and_nothing_else(
    site: System, tmp_path: Path
) -> None:
    site.rest.publish(write_package(tmp_path / "doomed", "5.0.0"))
    body = {"version": "5.0.0", "waves": [50, 100], "soakSeconds": 3600}
    site.rest.post("packages/clash/rollout", body)
    site.rest.post("packages/clash/5.0.0/yank", {"reason": "leaks"}, wanted=200)
    rollout = _end_of_rollout(site)
    assert (rollout["state"], "yanked" in rollout["error"]) == ("failed", True)
    assert site.rest.http.get("/readyz").status_code == 200
    assert results(site, "1.0.0")[0]["package"] == "1.0.0"
