"""Secrets: set, list and remove them. No route gives a value out."""

from __future__ import annotations

from typing import Final

import msgspec

from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request, decode_strict
from astraflow.api.responses import NO_CONTENT, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.secrets import (
    KeyRotated,
    ListSecrets,
    PutSecret,
    SecretPage,
    StoredSecret,
)
from astraflow.core.security.policy import ADMIN, READ, SITE
from astraflow.core.timestamps import iso
from astraflow.core.workflow.secret_refs import is_secret_name
from astraflow.store.rows import SecretRow

SECRETS: Final = "/api/v1/secrets"
_put: Final = msgspec.json.Decoder(PutSecret)
_packages: Final = msgspec.json.Decoder(list[str])


class SecretEndpoints(Endpoints):
    """The endpoints under `/api/v1/secrets`."""

    @route("GET", SECRETS, READ, "listSecrets", "list secrets, without their values",
           tag="secrets", query=ListSecrets, replies=SecretPage)  # fmt: skip
    async def list_secrets(self, request: Request[ListSecrets]) -> AsgiApp:
        query, tenant = request.query, request.tenant
        after = self._cursors.read("secrets", tenant, query.cursor, str) or ""
        known = sorted(self._scheduler.secrets.of_tenant(tenant), key=lambda row: row.name)
        rest = [row for row in known if row.name > after]
        page = rest[: query.count]
        last = page[-1].name if len(rest) > len(page) else None
        cursor = self._cursors.make("secrets", tenant, last)
        items = [_view(row) for row in page]
        return json_response(SecretPage(items=items, next_cursor=cursor))

    @route("PUT", f"{SECRETS}/{{name}}", ADMIN, "putSecret", "set a secret", tag="secrets",
           body=PutSecret, replies=StoredSecret)  # fmt: skip
    async def put(self, request: Request[NoQuery]) -> AsgiApp:
        name = _name_in(request)
        said = decode_strict(await request.json_body(), _put)
        if "\0" in said.value:
            raise errors.Refused(
                errors.REQUEST_INVALID, "the value holds the character U+0000", pointer="/value"
            )
        row = await self._scheduler.secrets.put(
            request.tenant, name, said.value, said.packages, request.subject
        )
        return json_response(_view(row))

    @route("DELETE", f"{SECRETS}/{{name}}", ADMIN, "deleteSecret", "remove a secret",
           tag="secrets", replies={204: Reply("It is gone.")})  # fmt: skip
    async def delete(self, request: Request[NoQuery]) -> AsgiApp:
        await self._scheduler.secrets.delete(request.tenant, _name_in(request), request.subject)
        return NO_CONTENT

    @route("POST", f"{SECRETS}/rotate-key", SITE, "rotateSecretsKey",
           "encrypt everything with another master key; an admin of the site only",
           tag="secrets", replies=KeyRotated)  # fmt: skip
    async def rotate(self, request: Request[NoQuery]) -> AsgiApp:
        count = await self._scheduler.secrets.rotate(request.tenant, request.subject)
        return json_response(KeyRotated(data_keys=count))


def _name_in(request: Request[NoQuery]) -> str:
    name = request.params["name"]
    if not is_secret_name(name):
        message = "a name has 1 to 128 letters, digits, dots, dashes and underscores"
        raise errors.Refused(errors.REQUEST_INVALID, message)
    return name


def _view(row: SecretRow) -> StoredSecret:
    return StoredSecret(
        name=row.name,
        version=row.version,
        packages=_packages.decode(row.packages),
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
        updated_by=row.updated_by,
    )
