"""What a command loads: a person waits for it each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.processes.process import clean_environment

LOADED = """
import sys
sys.argv = ["astra", "runs", "list"]
from astraflow.cli.main import main
try:
    main()
except SystemExit:
    pass
heavy = {"uvicorn", "pydantic", "rich", "asyncio", "astraflow.core.engine", "astraflow.store"}
print(*sorted(heavy & set(sys.modules)))
"""


def test_a_command_that_asks_a_server_loads_none_of_a_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=clean_environment(ASTRA_SERVER="http://127.0.0.1:9"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "", done


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("astraflow.worker.process", {"httpx", "rich", "cryptography.x509", "opentelemetry"}),
        (
            "astraflow.api.process",
            {"joserfc", "nats", "rich", "cryptography.x509", "opentelemetry"},
        ),
    ],
)
def test_an_idle_process_loads_nothing_that_its_settings_do_not_need(
    program: str, heavy: set[str]
) -> None:
    script = f"import sys, {program}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done
