"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from astraflow.core import errors

__all__ = ["Yes", "confirm"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


def confirm(question: str, yes: bool) -> None:
    """Go on only if a person says so, or `--yes` did.

    Raises:
        Refused: nobody can be asked.
        Abort: the person said no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise errors.Refused(
            errors.INPUT_UNCONFIRMED, f"this must be confirmed, and nobody can be asked: {question}"
        )
    typer.confirm(question, abort=True, err=True)
