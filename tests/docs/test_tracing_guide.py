"""The guide to traces is run here as it stands, command by command, with a collector that listens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.e2e.collector import Collector, ReceivedSpan, collecting
from tests.processes.command_line import Up, up
from tests.processes.process import ROOT, clean_environment
from tests.processes.waiting import WAIT_S, until

PAGE = (ROOT / "docs" / "guides" / "tracing.md").read_text("utf-8")
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 "
CALLER = re.findall(r"traceparent: (00-\w+-\w+-\w+)", PAGE)[0].split("-")


def blocks(language: str) -> list[str]:
    return [one.strip() for one in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)]


def _type(server: Up, command: str, programs: Path) -> None:
    """As in a shell whose `astra` is ours, at the port that this server has."""
    environment = clean_environment(PATH=f"{programs}:/usr/local/bin:/usr/bin:/bin")
    done = subprocess.run(
        ["sh", "-c", command.replace("http://127.0.0.1:8080", server.url)],
        cwd=server.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def _runs(collector: Collector, count: int) -> list[list[ReceivedSpan]]:
    """The spans of the runs, once there are so many."""

    def found() -> list[list[ReceivedSpan]]:
        spans = collector.all()
        by_run: dict[str, list[ReceivedSpan]] = {}
        for one in spans:
            by_run.setdefault(one.attributes["astraflow.run.id"], []).append(one)
        is_whole = len(by_run) == count and all(len(one) == 3 for one in by_run.values())
        return list(by_run.values()) if is_whole else []

    return until(found, f"the spans of {count} runs")


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "empty"
    programs.mkdir()
    folder.mkdir()
    (programs / "astra").write_text(f'#!/bin/sh\nexec {sys.executable} -m astraflow "$@"\n')
    (programs / "astra").chmod(0o755)
    first, *others = blocks("sh")
    assert first == f"{ENDPOINT}astra up"
    (folder / "hello.json").write_text(blocks("json")[0])
    with collecting() as collector:
        name, _ = ENDPOINT.split("=", 1)
        with up(folder, **{name: collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}) as server:
            for command in others:
                _type(server, command, programs)
            runs = _runs(collector, len(others))
    for spans in runs:
        by_kind = {one.name.split()[0]: one for one in spans}
        table = re.findall(r"^\| `(\w+) <[^|]*\| `([a-z-]+)` \| (.*) \|$", PAGE, re.MULTILINE)
        assert [kind for kind, _, _ in table] == ["run", "attempt", "execute"]
        for kind, service, attributes in table:
            assert by_kind[kind].service == service
            named = {one for one in re.findall(r"`([a-z.]+)`", attributes) if "." in one}
            # Of failures, and of what is inside of others: `tests/e2e/test_tracing.py` has both.
            named -= {"error.type", "astraflow.scope.path"}
            assert named <= by_kind[kind].attributes.keys(), kind
    traces = {spans[0].trace for spans in runs}
    assert CALLER[1] in traces and len(traces) == len(runs)


def test_the_handler_of_the_guide_continues_the_trace() -> None:
    (code,) = blocks("python")
    module: dict[str, Any] = {}
    exec(code, module)
    told = module["summarize"](SimpleNamespace(traceparent="-".join(CALLER)))
    assert told == {"trace": CALLER[1]}
