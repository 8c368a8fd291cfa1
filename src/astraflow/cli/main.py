"""The `astra` command."""

from __future__ import annotations

import typer

from astraflow.cli import serving

__all__ = ["app", "main"]

app = typer.Typer(
    name="astra",
    help="AstraFlow: durable workflows of nodes, executed by workers on any number of machines.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(serving.server)
app.command()(serving.worker)


def main() -> None:
    app()
