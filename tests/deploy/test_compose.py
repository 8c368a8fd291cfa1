"""The compose file: against its schema, against the product, and its topology as processes of this machine."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from astraflow.config import WorkerSettings, load_scheduler, load_worker
from astraflow.worker.process import DRAIN_OVERRUN_S
from tests.deploy.product import env_file, takes, unknown_settings
from tests.processes.postgres import postgres_server
from tests.processes.process import ASTRA, ROOT, Process, clean_environment, free_port
from tests.processes.rest import Rest
from tests.processes.waiting import WAIT_S, until
from tests.scheduler.bucket import s3_server

FOLDER = ROOT / "deploy"
FILE = FOLDER / "compose.yaml"
BIN = Path(sys.executable).parent
_VARIABLE = re.compile(r"\$\{([A-Z_0-9]+)(?::([-?])([^}]*))?\}")


@cache
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    return {name: one for name, one in services().items() if "ASTRAFLOW_IMAGE" in one["image"]}


def filled(text: str, given: dict[str, str]) -> str:
    """As compose fills in variables."""

    def fill(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        assert name in given or kind == "-", f"{name} is missing"
        return given.get(name) or rest

    return _VARIABLE.sub(fill, text)


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    """Those of a new installation."""
    file = tmp_path / ".env"
    make_env(file)
    return env_file(file)


def make_env(file: Path) -> str:
    done = subprocess.run(
        ["sh", str(FOLDER / "compose/make-env.sh"), str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def check_schema(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_file_fits_its_schema() -> None:
    done = check_schema(FILE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_finds_a_wrong_key(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(FILE.read_text().replace("stop_grace_period:", "stop_grace_time:"))
    done = check_schema(wrong)
    assert done.returncode == 1 and "stop_grace_time" in done.stdout


def test_every_setting_exists() -> None:
    assert set(ours()) == {"scheduler-1", "scheduler-2", "tokens", "worker"}
    for name, service in ours().items():
        assert unknown_settings(service["environment"]) == [], name


def test_every_command_exists() -> None:
    for name in ("scheduler-1", "scheduler-2", "worker"):
        takes(services()[name]["command"])
    script = (FOLDER / "compose/make-tokens.sh").read_text()
    (typed,) = re.findall(r"^ *astra (.*?) >", script, re.MULTILINE)
    takes(typed.replace('"$3"', "worker").replace('"$1 of compose"', "label").split())


def test_every_mounted_file_and_every_volume_is_there() -> None:
    for name, service in services().items():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (FOLDER / source).is_file(), (name, source)
            else:
                assert source in compose()["volumes"], (name, source)
        for needed in service.get("depends_on", []):
            assert needed in services(), (name, needed)
    build = services()["scheduler-1"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).is_file()


def test_containers_of_ours_cannot_change_their_image() -> None:
    for service in ours().values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]


def test_a_worker_has_time_to_drain() -> None:
    worker = services()["worker"]
    drain_s = int(worker["environment"]["ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS"])
    assert drain_s == WorkerSettings().drain_timeout_seconds
    assert int(worker["stop_grace_period"].removesuffix("s")) > drain_s + DRAIN_OVERRUN_S


def test_the_secrets_are_made_once_and_for_their_owner(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert "wrote" in make_env(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    assert "is there already" in make_env(file)
    assert file.read_text() == before
    made = env_file(file)
    needed = {name for name, kind, _ in _VARIABLE.findall(FILE.read_text()) if kind == "?"}
    optional = {name for name, kind, _ in _VARIABLE.findall(FILE.read_text()) if kind == "-"}
    example = FOLDER / "compose/env.example"
    assert needed == made.keys() == env_file(example).keys()
    assert env_file(example, with_comments=True).keys() == needed | optional
    assert len(set(made.values())) == len(made)


def test_the_product_takes_the_settings(secrets: dict[str, str], tmp_path: Path) -> None:
    nowhere = tmp_path / "astraflow.toml"
    nowhere.write_text("")
    environ = environment("scheduler-1", secrets)
    kept = {"ASTRA_SCHEDULER_DATA_DIR": str(tmp_path), "ASTRA_SCHEDULER_HOST": "0.0.0.0"}
    settings = load_scheduler(environ={**environ, **kept}, file=nowhere).settings
    assert {"router", "scheduler-1", "scheduler-2", "localhost"} == set(settings.allowed_hosts)
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("a token")
    kept = {"ASTRA_WORKER_DATA_DIR": str(tmp_path), "ASTRA_WORKER_AUTH_TOKEN_FILE": str(token)}
    worker = load_worker(environ={**environment("worker", secrets), **kept}, file=nowhere)
    assert len(worker.settings.scheduler_ws_url) == 2


def environment(service: str, given: dict[str, str]) -> dict[str, str]:
    return {
        name: filled(value, given) for name, value in services()[service]["environment"].items()
    }


def test_prometheus_and_grafana_find_what_is_mounted() -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: `make promtool` installs it"
    file = FOLDER / "compose/prometheus.yml"
    done = subprocess.run(
        [promtool, "check", "config", "--syntax-only", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    config = yaml.safe_load(file.read_text())
    places = [mount.split(":")[1] for mount in services()["prometheus"]["volumes"]]
    assert {f"/etc/prometheus/{name}" for name in config["rule_files"]} <= set(places)
    schedulers, workers = config["scrape_configs"]
    targets = schedulers["static_configs"][0]["targets"]
    assert targets == [f"{name}:8080" for name in ("scheduler-1", "scheduler-2")]
    assert schedulers["authorization"]["credentials_file"] == "/run/astraflow/metrics"
    port = services()["worker"]["environment"]["ASTRA_WORKER_METRICS_PORT"]
    assert str(workers["dns_sd_configs"][0]["port"]) == port
    boards = yaml.safe_load((FOLDER / "compose/grafana-dashboards.yml").read_text())
    (provider,) = boards["providers"]
    mounts = " ".join(services()["grafana"]["volumes"])
    assert f"dashboard.json:{provider['options']['path']}/" in mounts


# -- the topology as processes ------------------------------------------------------------------


def router(folder: Path, ports: dict[str, int]) -> Process:
    """haproxy with the configuration that is shipped, at ports of this machine."""
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert program, "haproxy is missing: `make deploy-tools` installs it"
    text = (FOLDER / "compose/haproxy.cfg").read_text()
    text = text.replace("bind :8080", f"bind 127.0.0.1:{ports['router']}")
    for name in ("scheduler-1", "scheduler-2"):
        text = text.replace(f"{name}:8080", f"127.0.0.1:{ports[name]}")
    config = folder / "haproxy.cfg"
    config.write_text(text)
    return Process("router", ["-db", "-f", str(config)], folder, command=(program,))


def as_here(environ: dict[str, str], ports: dict[str, int], **more: str) -> dict[str, str]:
    """The settings of a container with the addresses of this machine."""
    for name, port in ports.items():
        environ = {
            key: value.replace(f"//{name}:8080", f"//127.0.0.1:{port}")
            for key, value in environ.items()
        }
    return {**environ, **more}


def make_tokens(folder: Path, environ: dict[str, str]) -> None:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "astra").write_text(f'#!/bin/sh\nexec {" ".join(ASTRA)} "$@"\n')
    (programs / "astra").chmod(0o755)
    (folder / "tokens").mkdir(exist_ok=True)
    script = FOLDER / "compose/make-tokens.sh"
    done = subprocess.run(
        ["sh", str(script), str(folder / "tokens")],
        env=clean_environment(**environ, PATH=f"{programs}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def up(folder: Path, given: dict[str, str]) -> Iterator[tuple[Rest, dict[str, Process]]]:
    """All of it but Prometheus and Grafana; a client at the router."""
    ports = {name: free_port() for name in ("router", "scheduler-1", "scheduler-2")}
    running: dict[str, Process] = {}
    rest = Rest(f"http://127.0.0.1:{ports['router']}")
    rest.http.headers["Authorization"] = f"Bearer {given['ASTRAFLOW_TOKEN']}"
    with postgres_server() as url, s3_server() as bucket:
        try:
            for name in ("scheduler-1", "scheduler-2"):
                kept = {
                    "ASTRA_SCHEDULER_DATABASE_URL": url,
                    "ASTRA_SCHEDULER_DATA_DIR": str(folder / name),
                    "ASTRA_SCHEDULER_PORT": str(ports[name]),
                    **bucket,
                }
                environ = {**environment(name, given), **kept}
                command = services()[name]["command"]
                running[name] = Process(name, command, folder, environ).start()
            running["router"] = router(folder, ports).start()
            running["router"].until(lambda: rest.status("/readyz") == 200, "a scheduler")
            make_tokens(folder, as_here(environment("tokens", given), ports))
            kept = {
                "ASTRA_WORKER_AUTH_TOKEN_FILE": str(folder / "tokens/worker"),
                "ASTRA_WORKER_DATA_DIR": str(folder / "worker"),
                "ASTRA_WORKER_METRICS_HOST": "127.0.0.1",
                "ASTRA_WORKER_METRICS_PORT": str(free_port()),
            }
            environ = as_here(environment("worker", given), ports, **kept)
            command = services()["worker"]["command"]
            running["worker"] = Process("worker", command, folder, environ).start()
            running["worker"].until(lambda: len(rest.online()) == 1, "a worker")
            yield rest, running
        finally:
            for process in reversed(running.values()):
                process.close()
            rest.close()


def serving(processes: dict[str, Process]) -> Process:
    """The scheduler that serves the tenant of the site."""
    both = [processes[name] for name in ("scheduler-1", "scheduler-2")]
    return until(
        lambda: next((one for one in both if "serving shard 0 " in one.said()), None), "an owner"
    )


HELLO = {
    "id": "ba55c67a-9ad4-4b6f-a719-b84e774c2d11",
    "nodes": [
        {
            "id": "8f5dea1f-6a13-4e43-843f-5361c40f8f5a",
            "type": "core.python",
            "label": "add",
            "parameters": {"code": "def main():\n    return {'sum': 1 + 1}"},
        }
    ],
    "edges": [],
}


def test_the_topology_works_and_one_scheduler_outlives_the_other(
    secrets: dict[str, str], tmp_path: Path
) -> None:
    with up(tmp_path, secrets) as (rest, processes):
        assert rest.run(HELLO)["status"] == "succeeded"

        tokens = tmp_path / "tokens"
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tokens.iterdir()}
        assert modes == {"worker": 0o600, "metrics": 0o644}
        metrics = {"Authorization": f"Bearer {(tokens / 'metrics').read_text().strip()}"}
        assert rest.http.get("/metrics", headers=metrics).status_code == 200
        assert rest.http.post("/api/v1/runs", json={}, headers=metrics).status_code == 403

        serving(processes).kill()
        until(lambda: rest.status("/readyz") == 200, "the other scheduler, through the router")
        processes["worker"].until(lambda: len(rest.online()) == 1, "the worker, at the other")
        assert rest.run(HELLO)["status"] == "succeeded"
