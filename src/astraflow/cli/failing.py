"""How a command ends: exit codes, and errors that say what to do next.

0 it is so · 1 the thing asked about failed · 2 the command line or the settings are wrong · 3 nobody answers ·
130 the person pressed ^C. Errors go to stderr, with a `hint:` from the catalogue; with `--json` they go to stdout as a
problem document, so that a script always gets JSON.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import msgspec
import typer

from astraflow import errors

__all__ = ["FAILED", "INTERRUPTED", "UNAVAILABLE", "USAGE", "fail", "failing", "note"]

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130


def note(text: str) -> None:
    """Say something that is not the answer."""
    typer.echo(text, err=True)


def fail(
    code: errors.Code, message: str, exit_code: int, *, as_json: bool, hint: str = ""
) -> NoReturn:
    """End the command with an error."""
    hint = hint or code.do
    if as_json:
        problem = {"code": code.code, "title": code.says, "detail": message, "hint": hint}
        typer.echo(msgspec.json.encode(problem).decode())
    else:
        note(f"error: {message}")
        if hint:
            note(f"\nhint: {hint}")
    raise typer.Exit(exit_code)


def exit_code_of(error: errors.AstraflowError) -> int:
    if isinstance(error, errors.Unavailable | errors.StoreError):
        return UNAVAILABLE
    if error.code is errors.CONFIG_INVALID:
        return USAGE
    return FAILED


@contextmanager
def failing(*, as_json: bool = False) -> Iterator[None]:
    """Turn what a command may raise into its end."""
    try:
        yield
    except errors.AstraflowError as error:
        fail(error.code, error.message, exit_code_of(error), as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
