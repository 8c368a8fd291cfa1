"""Answers on stdout: tables for people, JSON for programs. Everything else goes to stderr (`failing.note`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "STYLES",
    "AsJson",
    "Row",
    "console",
    "is_terminal",
    "plain",
    "show_json",
    "show_table",
    "to_terminal",
]

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, also for errors")]
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
"""Colours only repeat what the words say."""

_STEERING: Final = (
    *range(32),
    127,
    *range(128, 160),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
"""Control characters, and those that turn the direction of writing."""
_CONTROL: Final = dict.fromkeys(_STEERING, "\N{REPLACEMENT CHARACTER}")
_KEPT: Final = {key: value for key, value in _CONTROL.items() if key not in (9, 10)}


def plain(text: str, *, lines: bool = False) -> str:
    """A text of somebody else's, without what would steer the terminal. `lines` keeps tabs and line ends."""
    return text.translate(_KEPT if lines else _CONTROL)


def show_json(value: Any) -> None:
    typer.echo(msgspec.json.encode(value).decode())


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def to_terminal() -> bool:
    """Whether colours and moving pictures are wanted."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def console(*, err: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=err, highlight=False, soft_wrap=not is_terminal(), emoji=False)


def show_table(columns: Sequence[str], rows: Iterable[Row], *, empty: str = "nothing") -> None:
    """A table at a terminal; else one line a row, its fields separated by tabs, without a head."""
    from astraflow.cli.failing import note

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
    for column in columns:
        table.add_column(column, overflow="fold")
    for texts in gathered:
        table.add_row(*(Text(text, style=STYLES.get(text, "")) for text in texts))
    console().print(table)


def _text(value: object) -> str:
    return "-" if value is None or value == "" else plain(str(value))
