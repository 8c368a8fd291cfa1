"""The guides to expressions, conditions, waits and middlewares are run here as they stand, command by command."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from astraflow_sdk import CallFailed
from astraflow_sdk.trial import Trial

from tests.processes.command_line import up
from tests.processes.process import ROOT

GUIDES = ROOT / "docs" / "guides"


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (GUIDES / page).read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.strip().splitlines()]


def inline_of(page: str) -> list[str]:
    """The commands that a page names in sentences and tables."""
    return sorted(set(re.findall(r"`(astra [^`]*)`", (GUIDES / page).read_text("utf-8"))))


@pytest.mark.parametrize(
    "page",
    [
        "expressions.md",
        "conditions.md",
        "inputs.md",
        "maps.md",
        "containers.md",
        "compensation.md",
        "waits.md",
        "middleware.md",
        "placement.md",
        "large-results.md",
    ],
)
def test_the_examples_of_a_guide_are_json(page: str) -> None:
    found = re.findall(r"```json\n(.*?)```", (GUIDES / page).read_text("utf-8"), re.DOTALL)
    assert all(isinstance(json.loads(one), dict) for one in found)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("expressions.md", ["ADA pays 25.0 for tea and pot", "GRACE pays 25.0 for tea and pot"]),
        (
            "middleware.md",
            [
                "Oslo: sunny, said call 3",
                "Oslo: sunny, said call 3",
                "Rome: sunny, said call 3",
            ],
        ),
        ("placement.md", ["small and large"]),
        ("large-results.md", ["500000 numbers, total 124999750000", "10 numbers, total 45"]),
        (
            "inputs.md",
            [
                "Valid: examples/invoice.json",
                "2 items, 7.5 EUR in all",
                "2 items, 7.5 NOK in all",
                "1 items, 2 EUR in all",
            ],
        ),
        (
            "containers.md",
            [
                '"total": 48.0',
                "Saved as version 1",
                '"Hello Grace"',
                '"Hello Alan"',
            ],
        ),
        ("conditions.md", ["1500: asked", "0: nothing", "the service is closed on Mondays"]),
    ],
)
def test_a_guide_works_as_it_stands(tmp_path: Path, page: str, said: list[str]) -> None:
    first, *others = commands_of(page)
    assert first == "astra up"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        printed = [server.typed(command) for command in others]
    assert len(printed) == len(said)
    for text, wanted in zip(printed, said, strict=True):
        assert wanted in text


def test_the_guide_to_waits_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = commands_of("waits.md")
    assert first == "astra up"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        server.typed(others[0])
        run_id = server.astra("approvals", "list", "--json").json["items"][0]["runId"]
        place = others.index("astra run invoice.json --no-watch")
        printed = [server.typed(command.replace("RUN", run_id)) for command in others[1:place]]
        assert "Pay 500 to Ada?" in printed[0]
        assert "succeeded" in printed[-1]
        assert server.astra("approvals", "approve", run_id).code != 0
        shown = server.astra("runs", "show", run_id)
        assert "500 from IT" in shown.out


def test_the_guide_to_maps_works_as_it_stands(tmp_path: Path) -> None:
    first, *others = commands_of("maps.md")
    assert first == "astra up"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        runs = [server.typed(command) for command in others if command.startswith("astra run ")]
        assert "1. Hello Paris; 2. Hello Lagos; 3. Hello Lima" in runs[0]
        assert "1. Hello Oslo; 2. Hello Quito" in runs[1]
        run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
        shown = [server.typed(one.replace("RUN", run_id)) for one in others[len(runs) :]]
        assert [text.count("Hello Oslo") for text in shown] == [1, 0, 0]
        assert "Greet: began its 2 items" in shown[2]
        owner = server.astra("runs", "items", run_id, "Greet", "--json").json["items"][1]["nodeId"]
        said = {
            command: server.typed(_filled(command, run_id, owner, 1))
            for command in inline_of("maps.md")
        }
        assert "2. Hello Quito" in said["astra runs show RUN --node NODE --scope NODE:3"]
        assert "succeeded" in said["astra runs story RUN NODE --scope NODE:3"]
        assert "2 items: 2 succeeded" in said["astra runs show RUN"]
        assert "astra runs logs RUN --scope NODE:3" in said


def _filled(command: str, run_id: str, node_id: str, item: int) -> str:
    """A command of a table, with what it is about in the place of its words."""
    return (
        command.replace("RUN", run_id)
        .replace("NODE:3", f"{node_id}:{item}")
        .replace("NODE", node_id)
    )


def test_what_is_inside_of_a_call_is_shown_as_the_guide_to_containers_says(tmp_path: Path) -> None:
    first, *others = commands_of("containers.md")
    assert first == "astra up"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        for command in others[:3]:
            server.typed(command)
        run = server.astra("runs", "list", "--json").json["items"][0]["runId"]
        nodes = server.astra("runs", "show", run, "--json").json["nodes"]
        call = next(one["nodeId"] for one in nodes if one["type"] == "core.call")
        address, headers = (
            f"{server.url}/api/v1/runs/{run}/nodes",
            {"Authorization": f"Bearer {server.token}"},
        )
        body = httpx.get(f"{address}/{call}/body", headers=headers).json()["nodes"]
        inside = body[0]["nodeId"]
        one = httpx.get(f"{address}/{inside}?scope={call}:0", headers=headers).json()
        assert one["scopePath"] == body[0]["scopePath"] == f"{call}:0"
        [command] = [one for one in inline_of("containers.md") if "--scope" in one]
        shown = server.typed(
            command.replace("RUN", run).replace("CALL", call).replace("NODE", inside)
        )
        assert "succeeded" in shown


def test_what_the_guide_to_inputs_says_of_a_refusal_is_what_is_printed(tmp_path: Path) -> None:
    [text] = re.findall(r"```text\n(.*?)```", (GUIDES / "inputs.md").read_text("utf-8"), re.DOTALL)
    command, *lines = text.strip().splitlines()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        done = server.astra(*command.split()[2:])
    assert done.code == 1
    assert done.err.splitlines()[: len(lines)] == lines


def test_the_guide_to_compensation_works_as_it_stands(tmp_path: Path) -> None:
    first, *fine, broken = commands_of("compensation.md")
    assert first == "astra up"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with up(tmp_path) as server:
        [printed] = [server.typed(command) for command in fine]
        assert "flight, hotel and car" in printed
        done = server.astra(*broken.split()[1:])
    assert done.code == 1
    undone = ["Cancel the hotel", "Cancel the flight", "Tell the traveller"]
    lines = [line for line in done.err.splitlines() if line.endswith(" succeeded")]
    assert lines[-3:] == [f"{label} succeeded" for label in undone]


def test_the_address_of_the_guide_to_waits_works_as_it_stands(tmp_path: Path) -> None:
    *_, first, second, third = commands_of("waits.md")
    page = (GUIDES / "waits.md").read_text("utf-8")
    [document] = re.findall(r"```json\n(.*?)```", page.partition("`invoice.json`")[2], re.DOTALL)
    (tmp_path / "invoice.json").write_text(document)
    with up(tmp_path) as server:
        server.typed(first)
        run_id = server.astra("runs", "list", "--json").json["items"][0]["runId"]
        shown = server.typed(second.replace("RUN", run_id))
        [address] = re.findall(r"http\S+", shown)
        sent = third.replace('"$ADDRESS"', address)
        subprocess.run(shlex.split(sent), check=True, timeout=60)
        assert "succeeded" in server.astra("runs", "watch", run_id).out
        assert "500" in server.astra("runs", "show", run_id).out


def test_the_middleware_of_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    [code] = re.findall(
        r"```python\n(.*?)```", (GUIDES / "middleware.md").read_text("utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(code, "middleware.md", "exec"), names)

    def rest(payload: Any) -> Any:
        if payload is None:
            raise CallFailed("away", category="INFRASTRUCTURE")
        return payload

    trial = Trial(tmp_path)
    given = {"instead": {"url": "other"}}
    outcome = trial.run(names["fallback"], given, next=rest, host={"url": "first", "a": 1})
    trial.close()
    assert outcome.result == {"url": "other", "a": 1}
    assert outcome.logs == [("warning", "host failed with E.NEXT.FAILED")]
