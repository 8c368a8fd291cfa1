"""The Helm chart: rendered by helm with several values, and held against Kubernetes' schemas and the product."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import promql_parser
import pytest
import yaml

from astraflow.api.app import ROUTES
from astraflow.config import load_scheduler, load_worker
from astraflow.config.problems import ConfigError
from astraflow.worker.process import DRAIN_OVERRUN_S
from tests.deploy.product import takes, unknown_settings
from tests.deploy.test_observability import known, parts_of
from tests.processes.process import ROOT

CHART = ROOT / "deploy/helm/astraflow"
OBSERVABILITY = ROOT / "deploy/observability"
CRDS = Path(__file__).parent / "crds"
BIN = Path(sys.executable).parent
VALUES = ["default", "small", "large"]
FILLED = {
    "DATABASE_URL": "postgresql://astraflow@db/astraflow",
    "SECRET": "x" * 32,
    "SECRETS_KEY": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "BOOTSTRAP_TOKEN": "x" * 32,
    "AUTH_TOKEN": "x" * 32,
}
"""What the Secrets of an installation would hold."""


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "helm"), *arguments], capture_output=True, text=True, timeout=60
    )


def template(*arguments: str, name: str = "astra") -> subprocess.CompletedProcess[str]:
    return helm("template", name, str(CHART), "--namespace", "flow", *arguments)


@cache
def text_of(values: str) -> str:
    done = template("--values", str(CHART / f"ci/{values}-values.yaml"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text_of(values)) if one]


def of_kind(values: str, kind: str) -> list[dict[str, Any]]:
    return [one for one in rendered(values) if one["kind"] == kind]


def named(values: str, kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in of_kind(values, kind) if one["metadata"]["name"] == name]
    return found


def pods(values: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The specification of every pod, with what makes it."""
    for one in [*of_kind(values, "StatefulSet"), *of_kind(values, "Deployment")]:
        yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def environment(container: dict[str, Any]) -> dict[str, str]:
    """Its variables, those of Secrets filled in."""
    found = {}
    for one in container.get("env", []):
        short = re.sub(r"^ASTRA_(SCHEDULER|WORKER)_", "", one["name"])
        found[one["name"]] = one["value"] if "value" in one else FILLED.get(short, "filled-in")
    return found


# -- what helm and Kubernetes say ---------------------------------------------------------------


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing(values: str) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(CHART / f"ci/{values}-values.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_values_are_tried() -> None:
    assert {path.name for path in (CHART / "ci").iterdir()} == {
        f"{one}-values.yaml" for one in VALUES
    }


def validate(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "kubernetes-validate"), "--strict", "--no-warn", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("values", VALUES)
def test_kubernetes_takes_what_is_rendered(values: str, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(text_of(values))
    done = validate(path)
    assert done.returncode == 0, done.stdout + done.stderr
    custom = {file.stem for file in CRDS.iterdir()}
    native = [one for one in rendered(values) if one["kind"] not in custom]
    assert (done.stdout + done.stderr).count(" passed ") == len(native)


def test_kubernetes_finds_a_wrong_field(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(text_of("default").replace("minReadySeconds:", "minimalReadySeconds:"))
    done = validate(path)
    assert done.returncode != 0 and "minimalReadySeconds" in done.stdout + done.stderr


def test_the_operators_take_what_is_rendered_for_them() -> None:
    for schema in CRDS.iterdir():
        validator = jsonschema_rs.validator_for(json.loads(schema.read_text()))
        found = of_kind("large", schema.stem)
        assert found, schema.stem
        for one in found:
            validator.validate(one)
            spec = one["spec"]
            assert not validator.is_valid({**one, "spec": {**spec, "selectors": {}}})
    custom = {schema.stem for schema in CRDS.iterdir()}
    assert not custom & {one["kind"] for one in rendered("default")}, "a cluster may lack both"


def test_a_value_that_does_not_exist_is_refused() -> None:
    wrong = template("--set", "scheduler.replica=2")
    assert wrong.returncode != 0 and "replica" in wrong.stderr
    assert template("--set", "workers[0].name=Big_One").returncode != 0
    assert template("--set", "blobs.url=/data").returncode != 0


def test_a_package_of_the_chart_has_the_rules_and_the_dashboard(tmp_path: Path) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as inside:
        names = inside.getnames()
        for name in ("alerts.yml", "dashboard.json"):
            content = inside.extractfile(f"astraflow/files/{name}")
            assert content is not None
            assert content.read() == (OBSERVABILITY / name).read_bytes()
    assert "astraflow/values.schema.json" in names
    assert not [name for name in names if "/ci/" in name]


# -- against the product ------------------------------------------------------------------------


@pytest.mark.parametrize("values", VALUES)
def test_every_setting_and_every_command_exists(values: str) -> None:
    roles = set()
    for name, pod in pods(values):
        for container in pod["containers"]:
            assert unknown_settings(environment(container)) == [], name
            if "args" in container:
                takes(container["args"])
                roles.add(container["args"][0])
    assert roles == {"server", "worker"}


@pytest.mark.parametrize("values", VALUES)
def test_the_product_takes_the_settings(values: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "astraflow.toml"
    nowhere.write_text("")
    kept = {
        "ASTRA_SCHEDULER_DATA_DIR": str(tmp_path),
        "ASTRA_WORKER_DATA_DIR": str(tmp_path),
    }
    hosts, reached = set[str](), set[str]()
    for _, pod in pods(values):
        container = pod["containers"][0]
        environ = {**environment(container), **kept}
        if container.get("args") == ["server"]:
            hosts = set(load_scheduler(environ=environ, file=nowhere).settings.allowed_hosts)
        elif container.get("args") == ["worker"]:
            settings = load_worker(environ=environ, file=nowhere).settings
            reached |= {re.split("[/:]+", url)[1] for url in settings.scheduler_ws_url}
    assert reached and reached <= hosts, "a scheduler takes the names by which workers reach it"
    assert {one["metadata"]["name"] for one in of_kind(values, "Service")} - hosts == {
        "astra-astraflow-scheduler"
    }
    for ingress in of_kind(values, "Ingress"):
        assert ingress["spec"]["rules"][0]["host"] in hosts


@pytest.mark.parametrize("values", VALUES)
def test_the_names_of_schedulers_are_those_of_the_pods(values: str) -> None:
    (pod_set,) = of_kind(values, "StatefulSet")
    name, service = pod_set["metadata"]["name"], pod_set["spec"]["serviceName"]
    wanted = [
        f"{name}-{number}.{service}.flow.svc.cluster.local"
        for number in range(pod_set["spec"]["replicas"])
    ]
    for pod_name, pod in pods(values):
        if "worker" in pod_name:
            urls = environment(pod["containers"][0])["ASTRA_WORKER_SCHEDULER_WS_URL"]
            assert urls.split(",") == [f"ws://{one}:8080/ws/worker" for one in wanted]
    assert named(values, "Service", service)["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize("values", VALUES)
def test_pods_have_no_rights_that_they_do_not_need(values: str) -> None:
    for name, pod in pods(values):
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} >= container["resources"].keys() >= {"requests"}
            assert "livenessProbe" in container
            assert "/tmp" in [one["mountPath"] for one in container["volumeMounts"]]
    assert of_kind(values, "Secret") == [], "nothing secret is in a value"


def test_variables_of_services_would_be_taken_for_settings(tmp_path: Path) -> None:
    """Why pods get none: a service `astra-scheduler` brings ASTRA_SCHEDULER_PORT=tcp://…"""
    environ = {"ASTRA_SCHEDULER_SERVICE_HOST": "10.0.0.1", "ASTRA_SCHEDULER_PORT": "tcp://10.0.0.1"}
    with pytest.raises(ConfigError, match="2 problems"):
        load_scheduler(environ={**environ, "ASTRA_SCHEDULER_DATA_DIR": str(tmp_path)})


@pytest.mark.parametrize("values", VALUES)
def test_a_worker_has_time_to_drain(values: str) -> None:
    for name, pod in pods(values):
        if "worker" in name:
            environ = environment(pod["containers"][0])
            drain_s = int(environ["ASTRA_WORKER_DRAIN_TIMEOUT_SECONDS"])
            assert pod["terminationGracePeriodSeconds"] > drain_s + DRAIN_OVERRUN_S


@pytest.mark.parametrize("values", VALUES)
def test_probes_ask_for_what_exists(values: str) -> None:
    paths = {one.path for one in ROUTES}
    for name, pod in pods(values):
        for container in pod["containers"]:
            ports = {one["name"] for one in container["ports"]}
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                if kind in container:
                    asked = container[kind]["httpGet"]
                    assert asked["path"] in paths and asked["port"] in ports, (name, kind)


def test_a_scheduler_is_ready_when_it_answers_requests() -> None:
    ready = {}
    for values in VALUES:
        (pod_set,) = of_kind(values, "StatefulSet")
        container = pod_set["spec"]["template"]["spec"]["containers"][0]
        ready[values] = container["readinessProbe"]["httpGet"]["path"]
        budgets = [one["metadata"]["name"] for one in of_kind(values, "PodDisruptionBudget")]
        has_several = pod_set["spec"]["replicas"] > 1
        assert ("astra-astraflow-scheduler" in budgets) is has_several
        selector = named(values, "Service", "astra-astraflow")["spec"]["selector"]
        deployments = [one["metadata"]["name"] for one in of_kind(values, "Deployment")]
        part = "router" if "astra-astraflow-router" in deployments else "scheduler"
        assert selector["app.kubernetes.io/component"] == part
        (node_url,) = [one for one in container["env"] if one["name"].endswith("_NODE_URL")]
        service = pod_set["spec"]["serviceName"]
        assert node_url["value"] == f"http://$(POD_NAME).{service}.flow.svc.cluster.local:8080"
    assert set(ready.values()) == {"/readyz"}


def test_the_router_can_be_left_out() -> None:
    """Any scheduler answers for all tenants: the service may lead to all of them."""
    plain = template("--set", "router.enabled=false")
    assert plain.returncode == 0, plain.stderr
    assert "haproxy" not in plain.stdout


@pytest.mark.parametrize("values", ["default", "large"])
def test_the_router_takes_its_configuration(values: str, tmp_path: Path) -> None:
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert program, "haproxy is missing: `make deploy-tools` installs it"
    text = named(values, "ConfigMap", "astra-astraflow-router")["data"]["haproxy.cfg"]
    config = tmp_path / "haproxy.cfg"
    config.write_text(text)
    done = subprocess.run(
        [program, "-c", "-f", str(config)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    replicas = of_kind(values, "StatefulSet")[0]["spec"]["replicas"]
    assert len(re.findall(r"^    server scheduler-\d+ ", text, re.MULTILINE)) == replicas


def test_both_routers_are_configured_alike() -> None:
    """That of the compose file is run by a test; this one differs in the names and in a port for its own health."""
    text = named("default", "ConfigMap", "astra-astraflow-router")["data"]["haproxy.cfg"]
    compose = (ROOT / "deploy/compose/haproxy.cfg").read_text()
    apart = re.compile(r"^(#.*|    server .*|frontend health|    bind :8404|    monitor-uri .*|)\n")
    lines = [
        [line for line in one.splitlines() if line.strip() and not apart.match(line + "\n")]
        for one in (text, compose)
    ]
    assert lines[0] == lines[1]


# -- Prometheus, KEDA ---------------------------------------------------------------------------


def test_the_rules_and_the_dashboard_are_those_that_are_shipped() -> None:
    (rule,) = of_kind("large", "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((OBSERVABILITY / "alerts.yml").read_text())
    board = named("large", "ConfigMap", "astra-astraflow-dashboard")["data"]["astraflow.json"]
    assert json.loads(board) == json.loads((OBSERVABILITY / "dashboard.json").read_text())


def test_the_monitors_select_what_is_there() -> None:
    (services,) = of_kind("large", "ServiceMonitor")
    headless = named("large", "Service", "astra-astraflow-scheduler")
    wanted = services["spec"]["selector"]["matchLabels"].items()
    assert wanted <= headless["metadata"]["labels"].items()
    assert services["spec"]["endpoints"][0]["port"] == headless["spec"]["ports"][0]["name"]
    (workers,) = of_kind("large", "PodMonitor")
    wanted = workers["spec"]["selector"]["matchLabels"].items()
    pools = [one for one in of_kind("large", "Deployment") if "worker" in one["metadata"]["name"]]
    assert len(pools) == 3
    for pool in pools:
        assert wanted <= pool["spec"]["template"]["metadata"]["labels"].items()


def test_a_pool_scales_by_metrics_that_exist() -> None:
    scaled = {one["metadata"]["name"]: one["spec"] for one in of_kind("large", "ScaledObject")}
    assert set(scaled) == {"astra-astraflow-worker-default", "astra-astraflow-worker-render"}
    for name, spec in scaled.items():
        pool = named("large", "Deployment", spec["scaleTargetRef"]["name"])
        assert "replicas" not in pool["spec"], "two would set them"
        (trigger,) = spec["triggers"]
        query = trigger["metadata"]["query"]
        parts = list(parts_of(promql_parser.parse(query)))
        asked = {one.name for one in parts if type(one).__name__ == "VectorSelector"}
        assert asked == {"astraflow_queue_depth", "inflight_tasks"} <= known().keys()
        environ = environment(pool["spec"]["template"]["spec"]["containers"][0])
        parallel = environ["ASTRA_WORKER_CONCURRENCY_MAX_PARALLEL"]
        assert trigger["metadata"]["threshold"] == parallel
        assert re.search(rf'pod=~"{name}-\[', query)
    render = scaled["astra-astraflow-worker-render"]["triggers"][0]["metadata"]["query"]
    assert 'tenant="default",package=~"render|embeddings"' in render
