"""`astra login`, `astra logout`, `astra whoami`, `astra login-link`."""

from __future__ import annotations

import socket
import sys
from typing import Annotated

import msgspec
import typer

from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer, show_table
from astraflow.cli.passwords import read_password
from astraflow.client import access_requests as requests
from astraflow.client.blocking import Client
from astraflow.client.credentials import KeptLogin, KeptLogins
from astraflow.client.endpoint import find_endpoint

Server = Annotated[
    str | None,
    typer.Option(help="URL of the scheduler", show_default="as all commands find it"),
]


def login(
    server: Server = None,
    user: Annotated[str | None, typer.Option(help="Name of the user")] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the user")] = "default",
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Keep a token instead; it is read as a password is")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Log in, and keep a token for this user of this machine.

    The password is read from a prompt, or from stdin.
    """
    url = find_endpoint(server).url
    if with_token:
        kept = _with_token(url, read_password("Token"))
    else:
        name = user or _ask("User", "--user")
        kept = _with_password(url, name, tenant)
    logins = KeptLogins()
    logins.put(url, kept)
    said = f"Logged in to {url} as {kept.subject}; the token is in {logins.place}"
    answer({"server": url, "subject": kept.subject, "expiresAt": kept.expires_at}, said, as_json)


def _ask(what: str, option: str) -> str:
    if not sys.stdin.isatty():
        raise unreadable(f"{option} is missing", f"name the user with {option}")
    answered: str = typer.prompt(what, err=True)
    return answered


def _with_password(url: str, name: str, tenant: str) -> KeptLogin:
    password = read_password(f"Password of {name} at {url}")
    label = f"astra login on {socket.gethostname()}"[:200]
    with Client(url, "") as client:
        made = client.perform(requests.log_in(name, password, tenant=tenant, label=label))
    return KeptLogin(made.token, made.expires_at, made.subject)


def _with_token(url: str, token: str) -> KeptLogin:
    with Client(url, token) as client:
        me = client.me()
    return KeptLogin(token, me.expires_at, me.subject)


def logout(server: Server = None, as_json: AsJson = False) -> None:
    """Revoke the token that `astra login` kept, and forget it."""
    logins = KeptLogins()
    url = (server or logins.current() or find_endpoint().url).rstrip("/")
    kept = logins.find(url)
    if kept is None:
        answer({"server": url, "status": "not logged in"}, f"Not logged in to {url}", as_json)
        return
    try:
        with Client(url, kept.token) as client:
            client.perform(requests.log_out())
    finally:
        logins.remove(url)
    answer({"server": url, "status": "logged out"}, f"Logged out of {url}", as_json)


def whoami(as_json: AsJson = False) -> None:
    """Show the server, and whose token is used."""
    endpoint = find_endpoint()
    with Client() as client:
        me = client.me()
    shown = {"server": endpoint.url, **msgspec.to_builtins(me)}
    if as_json:
        answer(shown, "", as_json)
    else:
        show_table(("what", "value"), list(shown.items()))


def login_link(as_json: AsJson = False) -> None:
    """Print a link that logs a browser in as you. It works once, for ten minutes."""
    with Client() as client:
        made = client.perform(requests.create_link())
    url = find_endpoint().url + made.path
    shown = {"url": url, "expiresAt": made.expires_at}
    answer(shown, f"It works once, until {made.expires_at}", as_json, result=url)
