"""The guides to deployment name what exists: files, settings, variables, values and objects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.product import env_file, unknown_settings
from tests.processes.process import ROOT

PAGES = sorted((ROOT / "docs/guides").glob("deploy*.md"))
CHART = ROOT / "deploy/helm/astraflow"
KUBERNETES = ROOT / "docs/guides/deploy-kubernetes.md"
HELM = Path(sys.executable).parent / "helm"


def test_there_is_a_guide_for_each_way() -> None:
    ways = {"containers", "kubernetes", "systemd"}
    assert {page.stem for page in PAGES} == {"deploy", *(f"deploy-{one}" for one in ways)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_and_variable_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    files = set(re.findall(r"(?<![\w/])deploy/[\w./@-]*[\w]", text)) - {"deploy/.env"}
    assert files and not [one for one in files if not (ROOT / one).exists()]
    assert unknown_settings(re.findall(r"\bASTRA_[A-Z_]+[A-Z]\b", text)) == []
    known = env_file(ROOT / "deploy/compose/env.example", with_comments=True)
    assert set(re.findall(r"\bASTRAFLOW_[A-Z_]+\b", text)) <= known.keys()
    assert "## What was tried" in text or page.stem == "deploy"


def template(*arguments: str) -> str:
    """The release of the guide."""
    done = subprocess.run(
        [str(HELM), "template", "astraflow", str(CHART), "--namespace", "astraflow", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_values_of_the_guide_are_taken(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", KUBERNETES.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        values = tmp_path / f"{number}.yaml"
        values.write_text(block)
        assert "kind: StatefulSet" in template("--values", str(values))


def test_the_objects_and_secrets_of_the_guide_are_those_of_the_chart() -> None:
    text, rendered = KUBERNETES.read_text("utf-8"), template()
    assert "exec astraflow-scheduler-0 " in text
    assert "statefulset astraflow-scheduler " in text
    assert "kind: StatefulSet\nmetadata:\n  name: astraflow-scheduler\n" in rendered
    assert "ASTRA_SERVER=http://astraflow:80 " in text
    assert "kind: Service\nmetadata:\n  name: astraflow\n" in rendered
    lines = text.replace("\\\n", " ")
    made = {
        (name, key)
        for name, rest in re.findall(r"create secret generic (\S+)(.*)", lines)
        for key in re.findall(r"--from-literal=([\w-]+)=", rest)
    }
    wanted = set(re.findall(r"secretKeyRef: \{name: ([\w-]+), key: ([\w-]+)\}", rendered))
    assert made == wanted
