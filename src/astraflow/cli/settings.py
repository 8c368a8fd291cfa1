"""`astra config …`."""

from __future__ import annotations

from typing import Any

import typer

from astraflow.cli.failing import note
from astraflow.cli.serving import Config
from astraflow.cli.showing import AsJson, show_json, show_table
from astraflow.config import Loaded, load_scheduler, load_worker

__all__ = ["app"]

app = typer.Typer(
    help="What this machine is configured to do, and by whom.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _group() -> None:
    """What this machine is configured to do, and by whom."""


@app.command()
def show(config: Config = None, as_json: AsJson = False) -> None:
    """Every setting of both processes, its value, and where that came from."""
    processes: dict[str, Loaded[Any]] = {
        "scheduler": load_scheduler(file=config),
        "worker": load_worker(file=config),
    }
    notes = [text for loaded in processes.values() for text in loaded.notes]
    if as_json:
        shown = {
            process: {
                name: {"value": value, "source": source} for name, value, source in loaded.shown()
            }
            for process, loaded in processes.items()
        }
        show_json({**shown, "notes": notes})
        return
    show_table(
        ("setting", "value", "source"),
        (
            (f"{process}.{name}", value, source)
            for process, loaded in processes.items()
            for name, value, source in loaded.shown()
        ),
    )
    for text in notes:
        note(f"note: {text}")
