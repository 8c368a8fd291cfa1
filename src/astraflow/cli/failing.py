"""How a command ends: exit codes, and errors that say what to do next.

0 it is so · 1 the thing asked about failed · 2 the command line or the settings are wrong · 3 nobody answers ·
130 the person pressed ^C. Errors go to stderr, with a `hint:` from the catalogue; with `--json` they go to stdout as a
problem document, so that a script always gets JSON.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import typer

from astraflow.core import errors

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "UNAVAILABLE",
    "USAGE",
    "ending",
    "exit_code_of",
    "fail",
    "note",
]

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130

SHOWN_PROBLEMS: Final = 20
"""Of a definition with hundreds; `--json` has all of them."""

_WRONG_SETTINGS: Final = frozenset(
    {
        errors.CONFIG_INVALID,
        errors.INPUT_UNREADABLE,
        errors.INPUT_UNCONFIRMED,
        errors.AUTH_INVALID_TOKEN,
    }
)


def note(text: str) -> None:
    """Say something that is not the answer."""
    typer.echo(text, err=True)


def fail(
    code: errors.Code,
    message: str,
    exit_code: int,
    *,
    as_json: bool = False,
    hint: str = "",
    problems: list[dict[str, Any]] | None = None,
) -> NoReturn:
    """End the command with an error."""
    hint = hint or code.do
    if as_json:
        import msgspec

        problem: dict[str, Any] = {
            "type": f"urn:astraflow:error:{code.code}",
            "title": code.says,
            "status": code.http,
            "detail": message,
            "code": code.code,
            "hint": hint,
        }
        if problems:
            problem["errors"] = problems
        typer.echo(msgspec.json.encode(problem).decode())
    else:
        note(f"error: {message}")
        for one in (problems or ())[:SHOWN_PROBLEMS]:
            note(f"  {one.get('pointer', '')}: {one.get('message', '')}")
        if problems and len(problems) > SHOWN_PROBLEMS:
            note(f"  and {len(problems) - SHOWN_PROBLEMS} more")
        if hint and not hint.startswith("nothing"):
            note(f"\nhint: {hint}")
    raise typer.Exit(exit_code)


def exit_code_of(error: errors.AstraflowError) -> int:
    if error.code in _WRONG_SETTINGS:
        return USAGE
    if isinstance(error, errors.Unavailable | errors.StoreError):
        return UNAVAILABLE
    return FAILED


@contextmanager
def ending(*, as_json: bool = False) -> Iterator[None]:
    """Turn what a command may raise into the end of the process."""
    try:
        try:
            yield
            sys.stdout.flush()
        except errors.AstraflowError as error:
            detail = error.detail or {}
            fail(
                error.code,
                error.message,
                exit_code_of(error),
                as_json=as_json,
                hint=detail.get("hint") or "",
                problems=detail.get("errors"),
            )
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            # A bug of ours: whoever reports it needs where it was, and a script still needs its JSON.
            traceback.print_exc()
            said = f"{errors.INTERNAL.says}: {type(error).__name__}: {error}"
            fail(errors.INTERNAL, said, FAILED, as_json=as_json)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except typer.Abort:
        note("nothing was done")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
