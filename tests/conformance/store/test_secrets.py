from __future__ import annotations

import msgspec

from astraflow.store.rows import DataKeyRow, SecretRow
from tests.conformance.store.backends import Backend

NOW = 1_800_000_000_000
KEY = DataKeyRow(key_id="k1", tenant="a", master_id="m1", wrapped=b"\0\xff", created_at=NOW)
SECRET = SecretRow(
    tenant="a",
    name="openai",
    version=1,
    key_id="k1",
    sealed=bytes(range(256)),
    packages=b'["llm"]',
    created_at=NOW,
    updated_at=NOW + 1,
    updated_by="ann",
)


async def test_a_secret_and_its_key_are_kept_and_replaced(backend: Backend) -> None:
    again = msgspec.structs.replace(KEY, master_id="m2", wrapped=b"other")
    newer = msgspec.structs.replace(SECRET, version=2, sealed=b"x", updated_by="bob")
    other = msgspec.structs.replace(SECRET, tenant="b")
    async with backend.desk() as desk:
        await desk.store.put_data_key(desk.claim, KEY)
        await desk.store.put_secret(desk.claim, SECRET)
        await desk.store.put_secret(desk.claim, other)
        assert await desk.store.data_keys() == [KEY] == await desk.store.data_keys_of_site()
        assert await desk.store.secrets() == [SECRET, other]
        await desk.store.put_data_key(desk.claim, again)
        await desk.store.put_secret(desk.claim, newer)
        assert await desk.store.data_keys() == [again]
        assert await desk.store.secrets() == [newer, other]


async def test_a_secret_is_deleted_in_its_tenant_alone(backend: Backend) -> None:
    other = msgspec.structs.replace(SECRET, tenant="b")
    async with backend.desk() as desk:
        await desk.store.put_secret(desk.claim, SECRET)
        await desk.store.put_secret(desk.claim, other)
        assert await desk.store.delete_secret(desk.claim, "a", "openai")
        assert not await desk.store.delete_secret(desk.claim, "a", "openai")
        assert await desk.store.secrets() == [other]
