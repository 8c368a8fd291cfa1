"""The `astra` command: the table of sub-commands and their modules, and the exit of every command.

A module is imported when its command is called. `astra --help` imports none of them, so its lines are in this table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from astraflow import __version__
from astraflow.cli.arguments import spare
from astraflow.cli.exit_codes import ending, fail
from astraflow.core import errors

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class CommandEntry(NamedTuple):
    """The module of a command, its function, and its line in `astra --help`."""

    module: str
    name: str
    says: str


COMMANDS: Final[Mapping[str, CommandEntry]] = MappingProxyType(
    {
        "up": CommandEntry("up", "up", "Start a scheduler and workers on this machine."),
        "server": CommandEntry("server", "server", "Run a scheduler."),
        "worker": CommandEntry("server", "worker", "Run a worker."),
        "run": CommandEntry("run", "run", "Run a workflow and follow its progress."),
        "runs": CommandEntry("runs", "app", "List, show, follow, cancel, repeat and compare runs."),
        "approvals": CommandEntry(
            "approvals", "app", "List the nodes that wait for a person; approve or reject."
        ),
        "workflows": CommandEntry(
            "workflows",
            "app",
            "List, save, publish, compare, restore, exchange and delete workflows.",
        ),
        "triggers": CommandEntry(
            "triggers", "app", "List, enable, disable and run triggers of workflows."
        ),
        "workers": CommandEntry("workers", "app", "List, drain and rebind workers."),
        "secrets": CommandEntry("secrets", "app", "Set, list and delete secrets."),
        "pools": CommandEntry("pools", "app", "List, create, pause and delete HTTP worker pools."),
        "serverless": CommandEntry(
            "serverless", "app", "Run the nodes of a package behind an HTTP worker pool."
        ),
        "pkg": CommandEntry("pkg", "app", "Create, test, build, sign and publish packages."),
        "packages": CommandEntry(
            "packages", "app", "List, install and roll out published packages."
        ),
        "resources": CommandEntry(
            "resources", "app", "List, download and close resources of workers."
        ),
        "login": CommandEntry("login", "login", "Log in, and keep a token for this machine."),
        "logout": CommandEntry("login", "logout", "Revoke the token of `astra login`."),
        "whoami": CommandEntry("login", "whoami", "Show the server, and whose token is used."),
        "login-link": CommandEntry("login", "login_link", "Print a link that logs a browser in."),
        "users": CommandEntry("users", "app", "Create, list, change and delete users."),
        "tenants": CommandEntry("tenants", "app", "Create, limit, suspend and resume tenants."),
        "ca": CommandEntry("ca", "app", "Make certificates for the scheduler and for workers."),
        "audit": CommandEntry("audit", "app", "List, export and verify who did what."),
        "tokens": CommandEntry("tokens", "app", "Create, list and revoke API tokens."),
        "config": CommandEntry("config", "app", "Show the settings and their sources."),
        "db": CommandEntry(
            "database", "app", "Inspect, migrate, sweep, check, back up and restore the store."
        ),
        "doctor": CommandEntry("doctor", "doctor", "Check this installation for problems."),
        "bench": CommandEntry("bench", "bench", "Measure the throughput of this machine."),
        "version": CommandEntry("version", "version", "Print the version."),
    }
)


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`, each loaded when it is called."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        found = getattr(import_module(f"astraflow.cli.{place.module}"), place.name)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(name=cmd_name)(found)
            found = single
        command = get_command(found)
        command.name = cmd_name
        spare(command)
        return command

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            also = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{also}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.says) for name, place in COMMANDS.items()])


app: Final = typer.Typer(
    name="astra",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"astraflow {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """AstraFlow: durable workflows of nodes, executed by workers on any number of machines."""


def main() -> NoReturn:
    """Run the command line and exit with its exit code."""
    arguments = sys.argv[1:]
    if "_ASTRA_COMPLETE" in os.environ:
        app()
    as_json = "--json" in arguments
    command: Any = get_command(app)
    spare(command)
    with ending(as_json=as_json):
        try:
            with command.make_context("astra", arguments) as context:
                command.invoke(context)
        except typer.TyperException as error:
            _refuse(error, as_json=as_json)
    sys.exit(0)


def _refuse(error: typer.TyperException, *, as_json: bool) -> NoReturn:
    """Report a wrong command line: as JSON with `--json`, else in typer's words."""
    show = getattr(error, "show", None)
    if as_json or show is None:
        fail(errors.REQUEST_INVALID, error.format_message(), error.exit_code, as_json=as_json)
    show()
    raise typer.Exit(error.exit_code)
