"""What the front page shows is run here, so that it cannot rot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.processes.process import ROOT
from tests.processes.system import System, running


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("readme"), 1) as system:
        yield system


def test_the_workflow_of_the_front_page_does_what_it_says(system: System) -> None:
    (example,) = blocks("json")
    run = system.rest.run(json.loads(example.replace("localhost:8080", f"127.0.0.1:{system.port}")))
    assert run["status"] == "succeeded", run
    assert run["nodes"][1]["result"] == {"isHealthy": True}


def test_the_request_of_the_front_page_is_accepted_as_it_is(system: System) -> None:
    (command,) = [block for block in blocks("") if block.startswith("curl")]
    named = re.search(r"-d @(\S+)", command)
    assert named is not None
    request = json.loads((ROOT / named[1]).read_text())
    assert system.rest.run(**request)["status"] == "succeeded"
