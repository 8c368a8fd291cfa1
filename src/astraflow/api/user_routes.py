"""Users: an admin makes, changes and deletes them."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.access import acting_tenant
from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_strict
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core.contract.users import (
    ListUsers,
    OfTenant,
    User,
    UserChange,
    UserPage,
    UserRequest,
)
from astraflow.core.security.bearer import TokenRecord
from astraflow.core.security.policy import ADMIN, Role
from astraflow.core.timestamps import iso
from astraflow.scheduler.users import UserUpdate
from astraflow.store.rows import UserRow

USERS: Final = "/api/v1/users"
_create: Final = msgspec.json.Decoder(UserRequest)
_change: Final = msgspec.json.Decoder(UserChange)


class UserEndpoints(Endpoints):
    """The endpoints under `/api/v1/users`."""

    @route("POST", USERS, ADMIN, "createUser", "make a user", tag="access", query=OfTenant,
           body=UserRequest, replies={201: Reply("The user.", User)})  # fmt: skip
    async def create(self, request: Request[OfTenant]) -> AsgiApp:
        tenant = self._tenant(request.bearer, request.query.tenant)
        wanted = decode_strict(await request.json_body(), _create)
        row = await self._scheduler.users.create(
            tenant, wanted.name, Role(wanted.role), wanted.password, by=request.subject
        )
        return json_response(_view(row), 201)

    @route("GET", USERS, ADMIN, "listUsers", "list users by name", tag="access",
           query=ListUsers, replies=UserPage)  # fmt: skip
    async def list_users(self, request: Request[ListUsers]) -> AsgiApp:
        query = request.query
        tenant = self._tenant(request.bearer, query.tenant)
        after = self._cursors.read("users", tenant, query.cursor, str) or ""
        rows = await self._scheduler.users.search(tenant, limit=query.count + 1, after=after)
        page = rows[: query.count]
        cursor = self._cursors.make(
            "users", tenant, page[-1].name if len(rows) > len(page) else None
        )
        return json_response(UserPage(items=[_view(row) for row in page], next_cursor=cursor))

    @route("GET", f"{USERS}/{{name}}", ADMIN, "getUser", "show a user", tag="access",
           query=OfTenant, replies=User)  # fmt: skip
    async def show(self, request: Request[OfTenant]) -> AsgiApp:
        tenant = self._tenant(request.bearer, request.query.tenant)
        return json_response(_view(await self._scheduler.users.get(tenant, request.params["name"])))

    @route(
        "PATCH",
        f"{USERS}/{{name}}",
        ADMIN,
        "changeUser",
        "change the role or the password of a user, disable or enable one",
        tag="access",
        text="What the user loses the right to ends within a second.",
        query=OfTenant,
        body=UserChange,
        replies=User,
    )
    async def change(self, request: Request[OfTenant]) -> AsgiApp:
        tenant = self._tenant(request.bearer, request.query.tenant)
        await self._scheduler.users.get(tenant, request.params["name"])
        wanted = decode_strict(await request.json_body(), _change)
        update = UserUpdate(
            role=None if wanted.role is None else Role(wanted.role),
            is_disabled=wanted.disabled,
            password=wanted.password,
        )
        row = await self._scheduler.users.change(
            tenant, request.params["name"], update, by=request.subject
        )
        return json_response(_view(row))

    @route("DELETE", f"{USERS}/{{name}}", ADMIN, "deleteUser",
           "delete a user with all sessions and tokens", tag="access", query=OfTenant,
           replies={204: Reply("The user is gone.")})  # fmt: skip
    async def delete(self, request: Request[OfTenant]) -> AsgiApp:
        tenant = self._tenant(request.bearer, request.query.tenant)
        await self._scheduler.users.delete(tenant, request.params["name"], by=request.subject)
        return NO_CONTENT

    def _tenant(self, bearer: TokenRecord, wanted: str | None) -> str:
        """Raises: Forbidden; NotFound: there is no such tenant."""
        tenant = acting_tenant(bearer, wanted)
        if tenant != bearer.tenant:
            self._scheduler.tenants.get(tenant)
        return tenant


def _view(row: UserRow) -> User:
    return User(
        tenant=row.tenant,
        name=row.name,
        role=Role(row.role),
        disabled=row.is_disabled,
        created_at=iso(row.created_at),
        created_by=row.created_by,
        updated_at=iso(row.updated_at),
        issuer=row.issuer or None,
    )
