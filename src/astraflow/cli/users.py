"""`astra users …`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, cast

import typer

from astraflow.cli.arguments import command_group
from astraflow.cli.inputs import unreadable
from astraflow.cli.output import AsJson, answer
from astraflow.cli.pagination import Cursor, Limit, show_list
from astraflow.cli.passwords import read_password
from astraflow.cli.prompts import Yes, confirm
from astraflow.client import access_requests as requests
from astraflow.client.blocking import Client
from astraflow.core.contract.users import PersonRole, User
from astraflow.core.security.policy import PERSON_ROLES

app = command_group("Create, list, change and delete users.")

Name = Annotated[str, typer.Argument(metavar="USER", help="Name of the user")]
Tenant = Annotated[
    str | None, typer.Option(help="Tenant of the user. Only an admin of the site names another")
]


def _person_role(text: str) -> PersonRole:
    if text not in PERSON_ROLES:
        raise unreadable(f"No such role: {text}", "use one of: admin, operator, editor, viewer")
    return cast("PersonRole", text)


@app.command()
def create(
    name: Name,
    role: Annotated[str, typer.Option(help="admin, operator, editor or viewer")] = "viewer",
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Create a user. The password is read from a prompt or from stdin."""
    wanted = _person_role(role)
    password = read_password(f"Password of {name}", is_new=True)
    with Client() as client:
        made = client.users.create(name, password, role=wanted, tenant=tenant)
    answer(made, f"Created {made.name} ({made.role}) of tenant {made.tenant}", as_json)


@app.command("list")
def list_users(
    tenant: Tenant = None, limit: Limit = 50, cursor: Cursor = None, as_json: AsJson = False
) -> None:
    """List users by name."""
    show_list(
        partial(requests.list_users, tenant=tenant),
        kind=User,
        columns=("user", "role", "state", "created", "by"),
        row=_row,
        limit=limit,
        cursor=cursor,
        as_json=as_json,
        empty="No users; create one with `astra users create`",
    )


def _row(user: User) -> tuple[object, ...]:
    state = "disabled" if user.disabled else "enabled"
    return user.name, user.role, state, user.created_at, user.created_by


@app.command()
def role(
    name: Name,
    role: Annotated[str, typer.Argument(help="admin, operator, editor or viewer")],
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Give a user another role. Ends the sessions of the user."""
    with Client() as client:
        changed = client.users.change(name, role=_person_role(role), tenant=tenant)
    answer(changed, f"{name} is {changed.role}", as_json)


@app.command()
def password(name: Name, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Give a user another password, from a prompt or from stdin. Ends the sessions of the user."""
    new = read_password(f"New password of {name}", is_new=True)
    with Client() as client:
        changed = client.users.change(name, password=new, tenant=tenant)
    answer(changed, f"Changed the password of {name}", as_json)


@app.command()
def disable(name: Name, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Lock a user out. Ends all sessions and tokens of the user."""
    with Client() as client:
        changed = client.users.change(name, disabled=True, tenant=tenant)
    answer(changed, f"{name} is disabled", as_json)


@app.command()
def enable(name: Name, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Let a disabled user log in again."""
    with Client() as client:
        changed = client.users.change(name, disabled=False, tenant=tenant)
    answer(changed, f"{name} is enabled", as_json)


@app.command()
def delete(name: Name, tenant: Tenant = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a user with all sessions and tokens."""
    confirm(f"Delete user {name}?", yes)
    with Client() as client:
        client.users.delete(name, tenant=tenant)
    answer({"name": name, "status": "deleted"}, f"Deleted {name}", as_json)
