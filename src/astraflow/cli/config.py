"""`astra config …`."""

from __future__ import annotations

from typing import Any

from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import note
from astraflow.cli.output import AsJson, show_json, show_table
from astraflow.cli.server import Config
from astraflow.config import Loaded, load_scheduler, load_worker

app = command_group("Show the settings and their sources.")


@app.callback()
def _group() -> None:
    """Show the settings and their sources."""


@app.command()
def show(config: Config = None, as_json: AsJson = False) -> None:
    """Show every setting of scheduler and worker, with its value and its source."""
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
