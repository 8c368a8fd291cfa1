from __future__ import annotations

from typing import Any

import pytest

from astraflow.core.errors import AstraflowError
from astraflow.store.retention import TOKEN_MS
from astraflow.store.rows import TenantRow, TokenRow, UserRow
from astraflow.store.store import Retention
from tests.conformance.store.backends import Backend

NOW = 1_800_000_000_000


def token(number: int, **fields: Any) -> TokenRow:
    given: dict[str, Any] = {
        "token_id": f"t{number}",
        "tenant": "default",
        "digest": bytes([number]) * 32,
        "subject": "ann",
        "role": "editor",
        "family": f"t{number}",
        "created_at": NOW + number,
    }
    return TokenRow(**{**given, **fields})


async def test_every_field_of_a_token_is_kept(backend: Backend) -> None:
    full = token(
        1,
        kind="session",
        user_name="ann",
        label="a \u00e4 label",
        family="t0",
        created_by="bob",
        expires_at=2**53,
        idle_ms=60_000,
        used_at=NOW,
    )
    async with backend.desk() as desk:
        await desk.store.put_token(desk.claim, full)
        await desk.store.put_token(desk.claim, token(2))
        assert await desk.store.good_tokens(NOW) == [full, token(2)]
        assert await desk.store.find_token("default", "t1") == full
        assert await desk.store.find_token("other", "t1") is None


async def test_a_token_that_is_over_is_not_good_and_is_listed(backend: Backend) -> None:
    late, gone, good = token(1, expires_at=NOW), token(2), token(3, expires_at=NOW + 1)
    async with backend.desk() as desk:
        for row in (late, gone, good):
            await desk.store.put_token(desk.claim, row)
        assert await desk.store.revoke_tokens(desk.claim, ["t2", "nobody"], NOW, "bob") == 1
        assert await desk.store.revoke_tokens(desk.claim, ["t2"], NOW + 9, "eve") == 0
        assert await desk.store.good_tokens(NOW) == [good]
        listed = await desk.store.list_tokens("default", limit=10)
        assert [row.token_id for row in listed] == ["t3", "t2", "t1"]
        assert (listed[1].revoked_at, listed[1].revoked_by) == (NOW, "bob")


async def test_tokens_are_listed_by_page_and_subject_without_links(backend: Backend) -> None:
    rows = [
        token(1),
        token(2, subject="bob"),
        token(3, kind="link", expires_at=NOW),
        token(4),
        token(5, tenant="other"),
    ]
    async with backend.desk() as desk:
        for row in rows:
            await desk.store.put_token(desk.claim, row)
        first = await desk.store.list_tokens("default", limit=2)
        assert first == [rows[3], rows[1]]
        last = (first[-1].created_at, first[-1].token_id)
        assert await desk.store.list_tokens("default", limit=2, before=last) == [rows[0]]
        of_ann = await desk.store.list_tokens("default", limit=9, subject="ann")
        assert of_ann == [rows[3], rows[0]]
        assert await desk.store.list_tokens("default", limit=9, subject="eve") == []


async def test_when_tokens_were_used_is_kept(backend: Backend) -> None:
    async with backend.desk() as desk:
        for number in (1, 2):
            await desk.store.put_token(desk.claim, token(number))
        await desk.store.touch_tokens(desk.claim, {"t1": NOW + 5, "nobody": NOW})
        assert [row.used_at for row in await desk.store.good_tokens(NOW)] == [NOW + 5, None]


async def test_one_text_is_one_token(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.store.put_token(desk.claim, token(1))
        with pytest.raises(AstraflowError):
            await desk.store.put_token(desk.claim, token(2, digest=token(1).digest))
        assert await desk.store.good_tokens(NOW) == [token(1)]


async def test_tokens_that_ended_long_ago_are_swept(backend: Backend) -> None:
    async with backend.desk() as desk:
        for row in (token(1), token(2), token(3, expires_at=NOW - 2), token(4, expires_at=NOW)):
            await desk.store.put_token(desk.claim, row)
        await desk.store.revoke_tokens(desk.claim, ["t2"], NOW - 2, "bob")
        await desk.store.sweep(desk.claim, Retention(), NOW + TOKEN_MS - 1)
        left = await desk.store.list_tokens("default", limit=10)
        assert [row.token_id for row in left] == ["t4", "t1"]


def user(name: str, **fields: Any) -> UserRow:
    given: dict[str, Any] = {
        "tenant": "default",
        "name": name,
        "role": "viewer",
        "password_hash": "$argon2id$of " + name,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return UserRow(**{**given, **fields})


async def test_users_are_made_once_found_and_listed_by_name(backend: Backend) -> None:
    rows = [
        user("bob"),
        user("ann", is_disabled=True, created_by="eve"),
        user("ann", tenant="other", issuer="https://id.example"),
    ]
    async with backend.desk() as desk:
        store, claim = desk.store, desk.claim
        assert [await store.create_user(claim, row) for row in rows] == [True] * 3
        assert not await store.create_user(claim, user("bob", role="admin"))
        assert await store.find_user("default", "ann") == rows[1]
        assert await store.find_user("other", "ann") == rows[2]
        assert await store.find_user("default", "eve") is None
        assert await store.list_users("default", limit=9) == [rows[1], rows[0]]
        assert await store.list_users("default", limit=1, after="ann") == [rows[0]]


async def test_some_fields_of_a_user_are_changed(backend: Backend) -> None:
    async with backend.desk() as desk:
        store, claim = desk.store, desk.claim
        await store.create_user(claim, user("ann"))
        changed = await store.change_user(claim, "default", "ann", role="admin", is_disabled=True)
        assert changed == user("ann", role="admin", is_disabled=True)
        assert await store.find_user("default", "ann") == changed
        assert await store.change_user(claim, "default", "bob", role="admin") is None
        later = await store.change_user(
            claim, "default", "ann", if_hash=changed.password_hash, password_hash="anew"
        )
        assert later is not None and later.password_hash == "anew"
        stale = {"if_hash": changed.password_hash, "password_hash": "too late"}
        assert await store.change_user(claim, "default", "ann", **stale) is None
        assert await store.find_user("default", "ann") == later
        assert await store.delete_user(claim, "default", "ann")
        assert not await store.delete_user(claim, "default", "ann")
        assert await store.find_user("default", "ann") is None


async def test_tenants_are_committed_with_everything_else(backend: Backend) -> None:
    acme = TenantRow("acme", False, b'{"weight":2.0}', NOW, "ann", NOW)
    async with backend.desk() as desk:
        await desk.write(tenants=[acme, TenantRow("zeta", True, b"{}", NOW, "", NOW)])
        assert [row.tenant for row in await desk.store.tenants()] == ["acme", "zeta"]
        suspended = TenantRow("acme", True, b"{}", NOW, "ann", NOW + 1)
        await desk.write(tenants=[suspended])
        assert (await desk.store.tenants())[0] == suspended
