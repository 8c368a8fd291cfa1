"""`astra db …`: maintenance of the store. `status`, `check` and `backup` also work while a scheduler uses it."""

from __future__ import annotations

import os
from typing import Any

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.backups import backup, restore, verify
from astraflow.cli.exit_codes import FAILED, note
from astraflow.cli.facts_version import facts_version
from astraflow.cli.nodes import move, nodes, unpark
from astraflow.cli.output import AsJson, answer, plain, show_json, show_table
from astraflow.cli.prompts import Yes, confirm
from astraflow.cli.server import Config, DataDir, run_loop
from astraflow.cli.store_info import (
    DatabaseUrl,
    file_of,
    holder_of,
    look_into,
    settings_of,
    shown_store,
)
from astraflow.clock import SystemClock
from astraflow.config import SchedulerSettings
from astraflow.core import errors
from astraflow.store import open_store
from astraflow.store.retention import Swept, Usage
from astraflow.store.sqlite_inspection import check_file
from astraflow.store.statements import load_migrations
from astraflow.store.store import Store

app = command_group("Inspect, migrate, sweep, check, back up and restore the store.")
app.command()(backup)
app.command()(restore)
app.command()(verify)
app.command()(nodes)
app.command()(move)
app.command()(unpark)
app.command("facts-version")(facts_version)


@app.command()
def status(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the store. Read-only; works while a scheduler is running."""
    settings = settings_of(data_dir, database_url, config)
    file = file_of(settings)
    found = look_into(settings)
    migrations = load_migrations("postgres" if file is None else "sqlite")
    pending = migrations[found.schema_version :]
    shown: dict[str, Any] = {
        "store": shown_store(settings) if file is None else str(file),
        "openedBy": found.owner if file is None else holder_of(file),
        "schemaVersion": found.schema_version,
        "newestVersion": found.newest_version,
        "pendingMigrations": [f"{one.version:04} {one.name}" for one in pending],
        "writtenBy": found.written_by,
        "factsVersion": found.facts_version,
        **(_counts(found.usage) if found.usage else {}),
    }
    if as_json:
        show_json(shown)
        return
    rows = [(name, ", ".join(one) if isinstance(one, list) else one) for name, one in shown.items()]
    show_table(("what", "value"), rows)
    if found.schema_version == 0:
        note(
            "\nhint: the store does not exist yet; `astra db migrate` or the first start of a scheduler creates it"
        )
    elif pending:
        note("\nhint: the schema is older than this version; upgrade it with `astra db migrate`")
    elif found.is_newer:
        note(f"\nhint: {errors.STORE_NEWER.says}: {errors.STORE_NEWER.do}")


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "schemaVersion": usage.schema_version,
        "bytes": usage.bytes,
        "runs": usage.runs,
        "activeRuns": usage.active_runs,
    }


async def _usage(store: Store) -> Usage:
    await store.open()
    try:
        return await store.usage()
    finally:
        await store.close()


@app.command()
def migrate(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Create the store or upgrade its schema. A scheduler does this when it starts."""
    settings = settings_of(data_dir, database_url, config)
    file = file_of(settings)
    before = 0
    if file is None or file.is_file():
        before = look_into(settings).schema_version
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    after = run_loop(_usage(open_store(settings.store_url))).schema_version
    said = f"The schema is at version {after}"
    if after != before:
        said = f"Upgraded the schema from version {before} to {after}"
    answer({"store": shown_store(settings), "schemaVersion": after}, said, as_json)


@app.command()
def sweep(
    yes: Yes = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Delete expired runs, events and audit rows. A scheduler does this while it runs."""
    settings = settings_of(data_dir, database_url, config)
    confirm(f"Delete everything past its retention from {shown_store(settings)}?", yes)
    swept: Swept = run_loop(_sweep(open_store(settings.store_url), settings))
    shown = {"runs": swept.runs, "events": swept.events, "audits": swept.audits}
    said = f"Deleted {swept.runs} runs, {swept.events} events, {swept.audits} audit rows"
    answer(shown, said, as_json)


async def _sweep(store: Store, settings: SchedulerSettings) -> Swept:
    await store.open()
    try:
        claim = await store.claim(f"astra db sweep, process {os.getpid()}")
        if claim is None:
            raise errors.StoreError(errors.STORE_LOCKED, "A scheduler is using the store")
        total, now_ms = Swept(), SystemClock().wall_ms()
        try:
            while True:
                one = await store.sweep(claim, settings.retention(), now_ms)
                total = Swept(
                    total.runs + one.runs, total.events + one.events, total.audits + one.audits
                )
                if not one.more:
                    return total
        finally:
            await store.release(claim)
    finally:
        await store.close()


@app.command()
def check(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check every page of the SQLite file for damage. Exits with 1 if it is damaged."""
    settings = settings_of(data_dir, database_url, config)
    file = file_of(settings)
    if file is None:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            "Only a SQLite store can be checked",
            detail={"hint": "for PostgreSQL, use the tools of the server, for example pg_amcheck"},
        )
    problems = check_file(file)
    if as_json:
        show_json({"store": str(file), "ok": not problems, "problems": problems})
    elif problems:
        note(f"error: The store is damaged: {file}")
        for problem in problems:
            note(f"  {plain(problem)}")
        note(f"\nhint: {errors.STORE_CORRUPT.do}")
    else:
        note(f"ok: {file}")
    if problems:
        raise typer.Exit(FAILED)
