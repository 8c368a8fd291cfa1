"""Chains of middlewares for tests on real processes: a host that writes down each time that it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.definitions import node

__all__ = ["by_label", "host", "ran"]

HOST = """
import os, pathlib, time
def main(folder, value=None, until=None):
    with open(pathlib.Path(folder) / "ran", "a") as ran:
        ran.write(f"{value} {os.getpid()}\\n")
    while until is not None and not os.path.exists(until):
        time.sleep(0.02)
    return {"value": value}
"""


def host(folder: Path, *middlewares: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    """A node that writes down that it ran, with these around it."""
    given = {"code": HOST, "inputs": {"folder": str(folder), **inputs}}
    chain = [one["id"] for one in middlewares]
    return node("core.python", "host", parameters=given, middlewares=chain)


def ran(folder: Path) -> list[str]:
    """What the host was given, each time that it ran."""
    path = folder / "ran"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [line.split()[0] for line in lines]


def by_label(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["label"]: one for one in view["nodes"]}
