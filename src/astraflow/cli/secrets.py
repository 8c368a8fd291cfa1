"""`astra secrets …`. A value is never an argument: those are seen by everybody on the machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import read_file, unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import secret_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.secrets import StoredSecret

app = command_group("Set, list and delete secrets.")

SecretName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret")]


@app.command("set")
def set_secret(
    name: SecretName,
    file: Annotated[
        str | None, typer.Option(help="File with the value; - is stdin", show_default="a prompt")
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(help="Package whose nodes may have it; may be repeated", show_default="all"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set a secret. The value is read from a prompt, or from a file without its last line end."""
    with Client() as client:
        made = client.secrets.put(name, _value_from(file), packages=package or ())
    said = f"Set {made.name}, version {made.version}"
    answer(made, said, as_json)


def _value_from(file: str | None) -> str:
    """Raises: Refused."""
    if file is None and sys.stdin.isatty():
        value: str = typer.prompt("Value", hide_input=True, err=True)
        return value
    raw = read_file("-" if file is None else file)
    try:
        value = raw.decode()
    except UnicodeDecodeError as error:
        raise unreadable("the value of a secret must be UTF-8 text") from error
    value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise unreadable("the value is empty")
    return value


@app.command("list")
def list_secrets(limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False) -> None:
    """List secrets, without their values."""
    show_list(
        requests.list_secrets,
        kind=StoredSecret,
        columns=("secret", "version", "packages", "updated", "by"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No secrets; set one with `astra secrets set NAME`",
    )


def _row(one: StoredSecret) -> tuple[object, ...]:
    packages = ", ".join(one.packages) or "all"
    return one.name, one.version, packages, one.updated_at, one.updated_by


@app.command()
def delete(name: SecretName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a secret. Nodes that refer to it fail from now on."""
    confirm(f"Delete the secret {name}?", yes)
    with Client() as client:
        client.secrets.delete(name)
    answer({"name": name, "status": "deleted"}, f"Deleted {name}", as_json)


@app.command("rotate-key")
def rotate_key(as_json: AsJson = False) -> None:
    """Encrypt all secrets with a new master key, while the scheduler serves."""
    with Client() as client:
        done = client.secrets.rotate_key()
    answer(done, f"{done.data_keys} data keys are encrypted with the new master key", as_json)
