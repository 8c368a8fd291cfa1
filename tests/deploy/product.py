"""What the product knows: its settings and its commands, to hold deployment files against."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from astraflow.cli.main import app
from astraflow.config import SchedulerSettings, WorkerSettings

SETTINGS = {
    *(f"ASTRA_SCHEDULER_{one.upper()}" for one in SchedulerSettings.__struct_fields__),
    *(f"ASTRA_WORKER_{one.upper()}" for one in WorkerSettings.__struct_fields__),
}
CLIENT = {"ASTRA_SERVER", "ASTRA_TOKEN"}
"""Variables of the commands that ask a scheduler."""


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Variables with our prefix that nothing reads."""
    return sorted(one for one in names if one.startswith("ASTRA_") and one not in SETTINGS | CLIENT)


def env_file(path: Path, *, with_comments: bool = False) -> dict[str, str]:
    """The variables of an environment file; those that are commented out, too, if they are wanted."""
    start = "^#?" if with_comments else "^"
    return dict(re.findall(rf"{start}([A-Z][A-Z0-9_]*)=(.*)$", path.read_text(), re.MULTILINE))


def takes(words: list[str]) -> None:
    """Assert that `astra` has this command, with these options."""
    here, rest = get_command(app), list(words)
    while isinstance(here, TyperGroup):
        assert rest, f"astra {words} names no command"
        found = here.get_command(Context(here), rest[0])
        assert found is not None, f"astra has no command {rest[0]}"
        here, rest = found, rest[1:]
    here.make_context(words[0], rest)
