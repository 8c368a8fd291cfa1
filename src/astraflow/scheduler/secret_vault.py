"""Secrets: kept encrypted, given out to the attempt that refers to them, and to nobody else.

1. A secret is encrypted (AES-256-GCM) with a data key of its tenant, and bound to tenant, name and version, so that a
   row that was swapped or changed cannot be read. Data keys are encrypted with the master key (`master_keys.py`).
2. Rows are read when a claim begins, and each change is stored before it counts. Values are decrypted when they are
   sent, after the commit of the lease.
3. A rotation of the master key wraps each data key of the site again, whichever shard its tenant lives in. One that was
   interrupted is finished at the next start.
4. A scheduler alone does not start if it cannot read its data keys. Of several, each compares its keys with those of
   the others before it starts (`api/node_greetings.py`). A data key that cannot be read all the same ends none of them:
   the secrets of its tenant are refused, and everything else is served.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from astraflow.config.problems import ConfigError
from astraflow.core import errors
from astraflow.core.engine.commands import KeepAudit
from astraflow.core.workflow import decode_definition
from astraflow.core.workflow.plan import walk_places
from astraflow.core.workflow.problems import DefinitionProblem
from astraflow.core.workflow.secret_refs import find_secret_refs
from astraflow.scheduler.master_keys import KEY_BYTES, seal, unseal
from astraflow.store.rows import DataKeyRow, SecretRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astraflow.clock import Clock
    from astraflow.core.engine.effects import SendDispatch
    from astraflow.core.ids import IdSource
    from astraflow.core.workflow.plan import Plan
    from astraflow.scheduler.current import Current
    from astraflow.scheduler.master_keys import MasterKeys
    from astraflow.store.store import Claim, Store

_log: Final = logging.getLogger(__name__)

USES_KEPT: Final = 4096
"""Uses by runs that are audited once each."""
_packages: Final = msgspec.json.Decoder(list[str])


class SecretVault:
    """The secrets of the tenants of one shard. Use from the scheduler's loop."""

    def __init__(
        self,
        store: Store,
        current: Current,
        clock: Clock,
        ids: IdSource,
        masters: MasterKeys | None,
    ) -> None:
        self._store = store
        self._current = current
        self._clock = clock
        self._ids = ids
        self._masters = masters
        self._keys: dict[str, AESGCM] = {}
        self._key_ids: dict[str, str] = {}  # of the data key of each tenant
        self._rows: dict[tuple[str, str], SecretRow] = {}
        self._uses: dict[tuple[str, str], None] = {}
        self._turn = asyncio.Lock()

    async def load(self, claim: Claim) -> None:
        """Read what is stored, and finish a rotation that was interrupted.

        Raises:
            ConfigError: the master key is not the one that the secrets are encrypted with, or cannot be had.
            Unavailable: it cannot be had now, and others share the store.
        """
        key_rows = await self._store.data_keys()
        rows = await self._store.secrets()
        self._rows = {(row.tenant, row.name): row for row in rows}
        self._key_ids = {row.tenant: row.key_id for row in reversed(key_rows)}
        self._keys = {}
        if self._masters is None:
            return
        self._masters.reload()
        for row in key_rows:
            await self._load_key(self._masters, claim, row)
        self._masters.end_rotation()

    async def _load_key(self, masters: MasterKeys, claim: Claim, row: DataKeyRow) -> None:
        is_alone = claim.ttl_s is None
        try:
            clear = await masters.unwrap(row.master_id, row.wrapped, _bound_key(row))
        except errors.Unavailable as error:
            if is_alone:
                raise ConfigError([error.message]) from error
            raise
        except ConfigError as error:
            if is_alone:
                raise
            _log.error("the secrets of %s cannot be read: %s", row.tenant, error)
            return
        self._keys[row.key_id] = AESGCM(clear)
        if masters.is_stale(row.master_id):
            await self._wrap_again(claim, row, clear)

    # -- what the API asks --------------------------------------------------------------------

    def of_tenant(self, tenant: str) -> list[SecretRow]:
        return [row for row in self._rows.values() if row.tenant == tenant]

    async def put(
        self, tenant: str, name: str, value: str, packages: Iterable[str], by: str
    ) -> SecretRow:
        """Keep a secret, in the place of one of the same name.

        Raises:
            Conflict: there is no master key.
            Refused: the data key of the tenant cannot be decrypted.
        """
        async with self._turn:
            key_id = await self._key_of(tenant)
            now = self._clock.wall_ms()
            before = self._rows.get((tenant, name))
            row = SecretRow(
                tenant=tenant,
                name=name,
                version=1 if before is None else before.version + 1,
                key_id=key_id,
                sealed=b"",
                packages=msgspec.json.encode(sorted(set(packages))),
                created_at=now if before is None else before.created_at,
                updated_at=now,
                updated_by=by,
            )
            key = self._keys.get(key_id)
            if key is None:
                raise errors.Refused(
                    errors.SECRET_UNREADABLE, "the data key of the tenant cannot be decrypted"
                )
            sealed = seal(key, value.encode(), _bound(row))
            row = msgspec.structs.replace(row, sealed=sealed)
            await self._store.put_secret(self._current.claim, row)
            self._rows[tenant, name] = row
        await self._audited(tenant, by, "secret.set", name)
        return row

    async def delete(self, tenant: str, name: str, by: str) -> None:
        """Raises: NotFound."""
        async with self._turn:
            if not await self._store.delete_secret(self._current.claim, tenant, name):
                raise errors.NotFound(errors.SECRET_NOT_FOUND, f"no such secret: {name[:64]}")
            self._rows.pop((tenant, name), None)
        await self._audited(tenant, by, "secret.delete", name)

    async def rotate(self, tenant: str, by: str) -> int:
        """Encrypt all data keys with another master key; how many there were.

        Raises:
            Conflict: there is no master key.
            ConfigError: a data key cannot be decrypted; the old master keys are kept.
            Unavailable: the key service does not answer.
        """
        if self._masters is None:
            raise errors.Conflict(errors.SECRET_NO_KEY, errors.SECRET_NO_KEY.says)
        async with self._turn:
            self._masters.begin_rotation()
            # As stored: other schedulers, and other engines of this one, have made some.
            rows = await self._store.data_keys_of_site()
            for row in rows:
                clear = await self._masters.unwrap(row.master_id, row.wrapped, _bound_key(row))
                await self._wrap_again(self._current.claim, row, clear)
            self._masters.end_rotation()
        await self._audited(tenant, by, "secret.rotate-key")
        return len(rows)

    # -- what runs need -----------------------------------------------------------------------

    def refusal(self, tenant: str, name: str, package: str) -> tuple[errors.Code, str] | None:
        """Why a node of this package may not have this secret, if so."""
        row = self._rows.get((tenant, name))
        if row is None:
            return errors.SECRET_NOT_FOUND, f"no such secret: {name}"
        allowed = _packages.decode(row.packages)
        if allowed and package not in allowed:
            message = f"the secret {name} is for the packages {', '.join(allowed)}, not {package}"
            return errors.SECRET_SCOPE, message
        return None

    def problems_of(self, tenant: str, plan: Plan, definition: bytes) -> list[DefinitionProblem]:
        """What a workflow refers to and may not have, each with its place in the definition."""
        refused = [
            (place, name, refusal)
            for node, place in walk_places(plan)
            for name in node.secrets
            if (refusal := self.refusal(tenant, name, node.package_name)) is not None
        ]
        if not refused:
            return []
        nodes = decode_definition(definition).workflow.nodes
        place = {node.id: index for index, node in enumerate(nodes)}
        found = []
        for node_id, name, (code, message) in refused:
            index = place[node_id]
            called = nodes[index].call
            if called is not None:
                where = f"/nodes/{index}/call"
                message = f"in the workflow {called.workflow_id}: {message}"
            else:
                pointer = find_secret_refs(bytes(nodes[index].parameters)).places[name]
                where = f"/nodes/{index}/parameters{pointer}"
            found.append(DefinitionProblem(where, code.code, message))
        return found

    def fill(self, effect: SendDispatch) -> SendDispatch:
        """The dispatch with the values of its secrets; or why it cannot have them."""
        dispatch = effect.dispatch
        values: dict[str, str] = {}
        for name in dispatch.secrets or ():
            refusal = self.refusal(effect.tenant, name, dispatch.package.name)
            if refusal is None:
                try:
                    values[name] = self._reveal(self._rows[effect.tenant, name])
                except errors.Refused as refused:
                    refusal = (refused.code, refused.message)
            if refusal is not None:
                return msgspec.structs.replace(effect, refusal=(refusal[0].code, refusal[1]))
            self._note_use(effect.tenant, name, dispatch.run_id)
        filled = msgspec.structs.replace(dispatch, secrets=values)
        return msgspec.structs.replace(effect, dispatch=filled)

    def reveal_key(self, tenant: str, name: str) -> str:
        """A secret that the scheduler itself checks signatures with: it goes to no package, whatever its scope.

        Raises: NotFound; Refused: it cannot be decrypted.
        """
        row = self._rows.get((tenant, name))
        if row is None:
            raise errors.NotFound(errors.SECRET_NOT_FOUND, f"no such secret: {name}")
        return self._reveal(row)

    def _reveal(self, row: SecretRow) -> str:
        key = self._keys.get(row.key_id)
        try:
            if key is None:
                raise InvalidTag
            return unseal(key, row.sealed, _bound(row)).decode()
        except InvalidTag as error:
            message = f"the secret {row.name} cannot be decrypted"
            raise errors.Refused(errors.SECRET_UNREADABLE, message) from error

    def _note_use(self, tenant: str, name: str, run_id: str) -> None:
        """Once for each run. In the next turn: the writer is performing effects."""
        if (run_id, name) in self._uses:
            return
        self._uses[run_id, name] = None
        if len(self._uses) > USES_KEPT:
            del self._uses[next(iter(self._uses))]
        asyncio.get_running_loop().call_soon(
            self._audit, tenant, f"run:{run_id}", "secret.use", name
        )

    async def close(self) -> None:
        if self._masters is not None:
            await self._masters.close()

    # -- keys ---------------------------------------------------------------------------------

    async def _key_of(self, tenant: str) -> str:
        """The id of the data key of a tenant, made if it has none."""
        if self._masters is None:
            raise errors.Conflict(errors.SECRET_NO_KEY, errors.SECRET_NO_KEY.says)
        known = self._key_ids.get(tenant)
        if known is not None:
            return known
        clear = os.urandom(KEY_BYTES)
        row = DataKeyRow(
            key_id=self._ids.new(),
            tenant=tenant,
            master_id="",
            wrapped=b"",
            created_at=self._clock.wall_ms(),
        )
        await self._wrap_again(self._current.claim, row, clear)
        self._key_ids[tenant] = row.key_id
        self._keys[row.key_id] = AESGCM(clear)
        return row.key_id

    async def _wrap_again(self, claim: Claim, row: DataKeyRow, clear: bytes) -> None:
        assert self._masters is not None
        master_id, wrapped = await self._masters.wrap(clear, _bound_key(row))
        row = msgspec.structs.replace(row, master_id=master_id, wrapped=wrapped)
        await self._store.put_data_key(claim, row)

    async def _audited(self, tenant: str, by: str, what: str, name: str = "") -> None:
        """Audit it, durably, before it is answered."""
        self._audit(tenant, by, what, name)
        await self._current.writer.barrier()

    def _audit(self, tenant: str, by: str, what: str, name: str = "") -> None:
        with suppress(errors.Unavailable):  # the scheduler is restarting: what was done is stored
            self._current.execute(KeepAudit(tenant=tenant, by=by, what=what, subject=name))


def _bound(row: SecretRow) -> bytes:
    """What a sealed value belongs to."""
    return "\0".join((row.tenant, row.name, str(row.version), row.key_id)).encode()


def _bound_key(row: DataKeyRow) -> bytes:
    return "\0".join((row.tenant, row.key_id)).encode()
