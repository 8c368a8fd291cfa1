"""Confirmation prompts for commands that cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from astraflow.core import errors

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation")]


def confirm(question: str, yes: bool) -> None:
    """Continue only after a confirmation at the terminal, or with `--yes`.

    Raises:
        Refused: stdin is not a terminal.
        Abort: the user declined.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise errors.Refused(
            errors.INPUT_UNCONFIRMED, f"Confirmation required; pass --yes ({question})"
        )
    typer.confirm(question, abort=True, err=True)
