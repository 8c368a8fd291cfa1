"""`astra version`."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from astraflow import __version__
from astraflow.cli.output import AsJson, show_json


def version(
    as_json: AsJson = False,
    *,
    all_parts: Annotated[
        bool, typer.Option("--all", help="Include the Python version and the platform")
    ] = False,
) -> None:
    """Print the version."""
    parts = {"astraflow": __version__}
    if all_parts or as_json:
        parts |= {"python": platform.python_version(), "platform": platform.platform()}
    if as_json:
        show_json(parts)
        return
    for name, value in parts.items():
        typer.echo(f"{name} {value}")
