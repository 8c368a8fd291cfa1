"""Results on stdout: tables for people, JSON for programs. Messages go to stderr (`exit_codes.note`)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, also for errors")]
Row = Sequence[object]

STYLES: Final = {
    "succeeded": "green",
    "online": "green",
    "ok": "green",
    "running": "cyan",
    "dispatched": "cyan",
    "retrying": "yellow",
    "waiting": "yellow",
    "degraded": "yellow",
    "draining": "yellow",
    "warn": "yellow",
    "failed": "red",
    "lost": "red",
    "fail": "red",
    "cancelled": "magenta",
    "skipped": "bright_black",
    "pending": "bright_black",
    "ready": "bright_black",
    "offline": "bright_black",
}
"""Colours repeat what the words say; nothing depends on them."""

_ID: Final = re.compile(r"\S{20,128}")
"""Values that people copy: ids of runs, workflows, workers and resources, and timestamps."""

_STEERING: Final = (
    *range(32),
    127,
    *range(128, 160),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
"""Control characters, and characters that change the text direction."""
_CONTROL: Final = dict.fromkeys(_STEERING, "\N{REPLACEMENT CHARACTER}")
_KEPT: Final = {key: value for key, value in _CONTROL.items() if key not in (9, 10)}


def plain(text: str, *, lines: bool = False) -> str:
    """Replace control characters in untrusted text. `lines` keeps tabs and newlines."""
    return text.translate(_KEPT if lines else _CONTROL)


def show_json(value: Any) -> None:
    typer.echo(msgspec.json.encode(value).decode())


def answer(value: Any, said: str, as_json: bool, *, result: str = "") -> None:
    """Print the value for a program, or the result and a message for people."""
    from astraflow.cli.exit_codes import note

    if as_json:
        show_json(value)
        return
    if result:
        typer.echo(result)
    note(said)


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def console(*, err: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=err, highlight=False, soft_wrap=not is_terminal(), emoji=False)


def show_table(columns: Sequence[str], rows: Iterable[Row], *, empty: str = "nothing") -> None:
    """Print a table at a terminal; into a pipe, print one line per row with tab-separated fields and no header."""
    from astraflow.cli.exit_codes import note

    if not is_terminal():
        is_empty = True
        for row in rows:
            is_empty = False
            typer.echo("\t".join(_text(value) for value in row))
        if is_empty:
            note(empty)
        return
    gathered = [[_text(value) for value in row] for row in rows]
    if not gathered:
        note(empty)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    kept = 0
    for column, texts in zip(columns, zip(*gathered, strict=True), strict=True):
        # An id that is wrapped over two lines cannot be copied.
        width = max(map(len, texts)) if any(map(_ID.fullmatch, texts)) else None
        table.add_column(column, overflow="fold", no_wrap=width is not None, min_width=width)
        kept += (width or len(column)) + 2
    for cells in gathered:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in cells))
    wide = console()
    wide.width = max(
        wide.width, kept
    )  # the terminal wraps a line that is too wide, so that it can be copied in one piece
    wide.print(table, soft_wrap=True)


def _text(value: object) -> str:
    return "-" if value is None or value == "" else plain(str(value))
