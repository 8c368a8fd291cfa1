"""What is shipped for Prometheus and Grafana: checked by their own tools, and against the metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from astraflow.observe.metrics import Histogram, Metrics, WorkerMetrics
from tests.processes.process import ROOT

FOLDER = ROOT / "deploy/observability"
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""
_PARTS = ("lhs", "rhs", "expr", "args", "vector_selector", "param")


def known() -> dict[str, set[str]]:
    """The names of the samples that exist, with their labels."""
    found: dict[str, set[str]] = {}
    for one in [*vars(Metrics()).values(), *vars(WorkerMetrics()).values()]:
        labels = set(one.labels)
        if isinstance(one, Histogram):
            found[f"{one.name}_bucket"] = labels | {"le"}
            found |= {f"{one.name}_sum": labels, f"{one.name}_count": labels}
        else:
            found[one.name] = labels
    return found


def dashboard() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return shown


def queries() -> Iterator[tuple[str, str]]:
    """Every query of the dashboard and the rules, with where it stands."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], _filled(target["expr"])
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def _filled(query: str) -> str:
    """With something for what Grafana fills in."""
    return re.sub(r"\$[a-z]+\b", ".*", query.replace("$__rate_interval", "1m"))


def parts_of(node: Any) -> Iterator[Any]:
    """A query and all its parts."""
    yield node
    for name in _PARTS:
        inner = getattr(node, name, None)
        for one in inner if isinstance(inner, list) else [inner]:
            if type(one).__module__ == type(node).__module__ and one is not None:
                yield from parts_of(one)


def test_every_query_names_metrics_and_labels_that_exist() -> None:
    metrics, used = known(), set[str]()
    for where, query in queries():
        parts = list(parts_of(promql_parser.parse(query)))
        names = {one.name for one in parts if type(one).__name__ == "VectorSelector"}
        assert names, where
        assert names <= metrics.keys(), (where, names - metrics.keys())
        labels = SCRAPED.union(*(metrics[name] for name in names))
        asked = set(re.findall(r"([a-z_]+) *(?:=~|!=|=)", query))
        for group in re.findall(r"by \(([^)]*)\)", query):
            asked |= {one.strip() for one in group.split(",")}
        assert asked <= labels, (where, asked - labels)
        used |= names
    assert {re.sub(r"_(bucket|sum|count)$", "", one) for one in used} == {
        re.sub(r"_(bucket|sum|count)$", "", one) for one in metrics
    }, "the dashboard shows every metric"


def test_a_query_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError):
        promql_parser.parse("sum(rate(x[5m])")


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    given = dashboard()
    model = Dashboard.from_json(given)
    assert (model.title, model.uid) == ("AstraFlow", "astraflow")
    read = json.loads(JSONEncoder().encode(model))
    assert [(one["id"], one["title"], one["type"]) for one in read["panels"]] == [
        (one["id"], one["title"], one["type"]) for one in given["panels"]
    ]
    for panel, as_read in zip(given["panels"], read["panels"], strict=True):
        assert as_read["gridPos"] == panel["gridPos"]
        wanted = [(one["refId"], one["expr"]) for one in panel.get("targets", ())]
        assert [(one["refId"], one["expr"]) for one in as_read.get("targets", ())] == wanted
    assert [one["name"] for one in read["templating"]["list"]] == ["datasource", "tenant"]


def test_no_panel_covers_another_and_each_says_what_it_shows() -> None:
    taken: dict[tuple[int, int], str] = {}
    panels = dashboard()["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert panel["type"] == "row" or panel["description"].endswith(".")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken.get((x, y)))
                taken[x, y] = panel["title"]


def _promtool(*arguments: str) -> None:
    program = shutil.which("promtool")
    assert program, "promtool is missing: `make promtool` installs it"
    done = subprocess.run(
        [program, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_depth_and_slots_are_shown_by_tenant_and_package() -> None:
    shown = {
        panel["title"]: panel["targets"] for panel in dashboard()["panels"] if "targets" in panel
    }
    wanted = {"Waiting by package": "astraflow_queue_depth", "Free slots": "astraflow_slots_free"}
    for title, name in wanted.items():
        (target,) = shown[title]
        assert target["expr"] == f'sum by (tenant, package) ({name}{{tenant=~"$tenant"}})'
        assert target["legendFormat"] == "{{tenant}} {{package}}"


def test_prometheus_takes_the_configuration_and_the_rules() -> None:
    _promtool("check", "config", "--syntax-only", "prometheus.yml")
    _promtool("check", "rules", "alerts.yml")


def test_every_alert_fires_in_its_example() -> None:
    _promtool("test", "rules", "alerts_test.yml")
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    examples = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    fired = {
        one["alertname"]
        for example in examples
        for one in example["alert_rule_test"]
        if one["exp_alerts"]
    }
    assert fired == {rule["alert"] for group in rules for rule in group["rules"]}
