"""`astra audit …`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.exit_codes import FAILED, note
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.client import audit_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.audit import AuditEntry

app = command_group("List, export and verify who did what.")

Who = Annotated[str | None, typer.Option(help="Only what this subject or worker did")]
Action = Annotated[
    str | None, typer.Option(help="Only this action, or with a dot at its end all that begin so")
]
Code = Annotated[str | None, typer.Option(help="Only what was refused with this code")]
WithOutcome = Annotated[str | None, typer.Option(help="ok or refused")]
Since = Annotated[
    str | None, typer.Option(help="Only from this time on, as 2026-01-31T00:00:00Z, or 24h ago")
]
Until = Annotated[str | None, typer.Option(help="Only before this time, or before so long ago")]
Corr = Annotated[str | None, typer.Option(help="Only what this request or frame asked for")]
Worker = Annotated[str | None, typer.Option(help="Only what is about this worker")]


@app.command("list")
def list_audit(
    who: Who = None,
    action: Action = None,
    code: Code = None,
    outcome: WithOutcome = None,
    since: Since = None,
    until: Until = None,
    corr: Corr = None,
    worker: Worker = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List who did what, newest first."""
    wanted = _wanted(who, action, code, outcome, since, until, corr, worker)
    show_list(
        partial(requests.list_audit, **wanted),
        kind=AuditEntry,
        columns=("number", "time", "who", "action", "worker", "code", "corr", "subject"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No entries",
    )


@app.command()
def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write", show_default="stdout")
    ] = None,
    who: Who = None,
    action: Action = None,
    code: Code = None,
    outcome: WithOutcome = None,
    since: Since = None,
    until: Until = None,
    corr: Corr = None,
    worker: Worker = None,
    as_json: AsJson = False,
) -> None:
    """Export who did what as JSON lines, oldest first. The hashes of the chain are in it."""
    wanted = _wanted(who, action, code, outcome, since, until, corr, worker)
    with Client() as client:
        pieces = client.pieces(requests.export_audit(**wanted))
        if output is None:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        if not output.name or output.is_dir():
            raise unreadable(f"Cannot write {output}: it is a folder", "name a file")
        # An incomplete export never gets the final name.
        part = output.with_name(f"{output.name}.part")
        try:
            with part.open("wb") as file:
                lines = sum(_write(file, piece) for piece in pieces)
            part.replace(output)
        except OSError as error:
            raise unreadable(
                f"Cannot write {output}: {error.strerror}", "name another file"
            ) from None
        finally:
            part.unlink(missing_ok=True)
    answer({"file": str(output), "entries": lines}, f"Wrote {lines} entries to {output}", as_json)


@app.command()
def verify(
    expect: Annotated[
        str | None,
        typer.Option(metavar="N:HASH", help="Head of an earlier verification, or of the log"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that no entry was changed, removed or inserted. Exits with 1 if one was."""
    if expect is not None and not expect.strip():
        # A variable that is not set must not pass for a head that fits.
        raise unreadable("--expect is empty", "give a head as N:HASH, or leave the option out")
    with Client() as client:
        found = client.audit.verify(expect=expect)
    if found.problem is not None:
        answer(found, f"The audit was tampered with: {found.problem}", as_json)
        raise typer.Exit(FAILED)
    span = "no entries" if found.to is None else f"entries {found.from_} to {found.to}"
    if found.unchained and not as_json:
        note(f"{found.unchained} entries are older than the chain and cannot be verified")
    answer(found, f"The chain is whole: {span}. Its head:", as_json, result=found.head)


def _write(file: Any, piece: bytes) -> int:
    file.write(piece)
    return piece.count(b"\n")


def _wanted(
    who: str | None,
    action: str | None,
    code: str | None,
    outcome: str | None,
    since: str | None,
    until: str | None,
    corr: str | None,
    worker: str | None,
) -> dict[str, Any]:
    if outcome not in (None, "ok", "refused"):
        raise unreadable(f"No such outcome: {outcome}", "use one of: ok, refused")
    return {
        "who": who,
        "action": action,
        "code": code,
        "outcome": outcome,
        "since": _time(since, "--since"),
        "until": _time(until, "--until"),
        "corr": corr,
        "worker_id": worker,
    }


def _time(text: str | None, option: str) -> str | None:
    """A time as the server takes it. Raises: Refused."""
    from astraflow.cli.durations import seconds_of
    from astraflow.clock import SystemClock
    from astraflow.core.timestamps import iso, parse_iso

    if text is None or parse_iso(text) is not None:
        return text
    return iso(SystemClock().wall_ms() - seconds_of(text, option) * 1000)


def _row(one: AuditEntry) -> tuple[object, ...]:
    subject = one.detail.get("subject") if isinstance(one.detail, dict) else None
    return (
        one.number, one.occurred_at, one.who, one.action, one.worker_id, one.code, one.corr, subject,
    )  # fmt: skip
