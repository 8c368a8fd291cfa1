"""Exit codes and error output of commands.

0 success · 1 the operation failed · 2 invalid command line, file, setting or token · 3 the server or the store is
unavailable · 130 interrupted by ^C. Errors go to stderr with a `hint:`; with `--json` they go to stdout as a problem
document, so that a script always gets JSON.
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

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130

SHOWN_PROBLEMS: Final = 20
"""Maximum number of problems that are printed; `--json` contains all of them."""

_WRONG_SETTINGS: Final = frozenset(
    {
        errors.CONFIG_INVALID,
        errors.INPUT_UNREADABLE,
        errors.INPUT_UNCONFIRMED,
        errors.AUTH_INVALID_TOKEN,
        errors.AUTH_BAD_LOGIN,
    }
)


def note(text: str) -> None:
    """Print a message to stderr; stdout is for results."""
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
    """Print an error and exit."""
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
    """Turn every exception of a command into output and an exit code."""
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
            # An internal error: print the traceback for the bug report, and still give a script its JSON.
            traceback.print_exc()
            said = f"{errors.INTERNAL.says}: {type(error).__name__}: {error}"
            fail(errors.INTERNAL, said, FAILED, as_json=as_json)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except typer.Abort:
        note("Cancelled")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe. Without this, Python reports the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
