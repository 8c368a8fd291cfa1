"""The runbook: its commands are run as they stand, and its alerts, metrics and settings are those that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.processes.command_line import up
from tests.processes.process import ROOT

PAGE = (ROOT / "docs" / "guides" / "runbook.md").read_text("utf-8")
ALERTS = (ROOT / "deploy" / "observability" / "alerts.yml").read_text("utf-8")
METRICS = (ROOT / "docs" / "observability.md").read_text("utf-8")
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")


def test_the_commands_work_as_they_stand(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    first, *others = [line for block in blocks for line in block.strip().splitlines()]
    assert first == "astra up"
    with up(tmp_path) as server:
        printed = {command: server.typed(command) for command in others}
    assert len(printed) >= 10
    assert "schemaVersion" in printed["astra db status --data-dir drill"]
    assert "ok: " in printed["astra db check --data-dir drill"]
    assert "ok: before.backup" in printed["astra db verify before.backup"]


def test_every_alert_has_its_row() -> None:
    assert re.findall(r"^\| `(Astraflow\w+)` \|", PAGE, re.MULTILINE) == re.findall(
        r"- alert: (\w+)", ALERTS
    )


def test_every_metric_and_setting_exists() -> None:
    metrics = set(re.findall(r"`((?:astraflow|cmd|ws|pkg)_[a-z_]+)`", PAGE))
    assert len(metrics) >= 12
    assert {name for name in metrics if f"`{name}`" not in METRICS} == set()
    settings = {"lease_ttl_ms", "shard_lease_ms", "blobs_url", "database_url"}
    assert {
        name for name in settings if f"`{name}`" not in PAGE or f"`{name}`" not in SETTINGS
    } == set()
