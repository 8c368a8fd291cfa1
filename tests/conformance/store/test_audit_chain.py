"""The audit chain in each store: it is written with the rows, goes on after a restart, and outlives retention."""

from __future__ import annotations

import msgspec

from astraflow.core.security.audit_chain import ChainHead, ChainReport, ChainVerifier
from astraflow.scheduler.audit_chains import AuditChains
from astraflow.store.audits import AuditFilter
from astraflow.store.rows import AuditRow
from astraflow.store.store import Retention, Store
from tests.conformance.store.backends import Backend, Desk
from tests.conformance.store.samples import NOW_MS, audit


async def write(desk: Desk, *rows: AuditRow) -> None:
    chains = AuditChains(await desk.store.audit_heads())
    linked = [chains.link(row) for row in rows]
    await desk.write(audits=linked, audit_heads=chains.heads_of(linked))


async def verified(store: Store, tenant: str = "default") -> ChainReport:
    head, removed = await store.audit_head(tenant)
    verifier = ChainVerifier(head, removed)
    for _, row in await store.audit_after(tenant, limit=100):
        verifier.take(row)
    return verifier.finish()


async def test_each_tenant_has_a_chain_that_goes_on_after_a_restart(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, audit(1), audit(2, "other"), audit(3))
    async with backend.desk() as desk:
        await write(desk, audit(4))
        mine, others = await verified(desk.store), await verified(desk.store, "other")
        assert (mine.problem, mine.first, mine.last) == (None, 1, 3)
        assert (others.problem, others.first, others.last) == (None, 1, 1)
        assert await verified(desk.store, "nobody") == ChainReport(head=ChainHead())


async def test_rows_without_a_hash_stand_before_the_chain(backend: Backend) -> None:
    async with backend.desk() as desk:
        await desk.write(audits=[audit(1), audit(2)])
        await write(desk, audit(3))
        report = await verified(desk.store)
        assert (report.problem, report.unchained, report.last) == (None, 2, 1)


async def test_a_row_in_the_chain_without_a_hash_shows(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, audit(1))
        await desk.write(audits=[audit(2)])
        assert "without a hash" in ((await verified(desk.store)).problem or "")


async def test_retention_removes_the_front_and_the_rest_is_verified(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, audit(1, at=1), audit(2, "other", at=1), audit(3, at=1), audit(4))
        swept = await desk.store.sweep(desk.claim, Retention(audit_s=60.0), NOW_MS)
        assert swept.audits == 3
        report = await verified(desk.store)
        assert (report.problem, report.first, report.last) == (None, 3, 3)
        assert (await verified(desk.store, "other")).problem is None
        await write(desk, audit(5, "other"))
        assert (await verified(desk.store, "other")).first == 2


async def test_a_clock_that_stepped_back_makes_no_gap(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, audit(1, at=1), audit(2), audit(3, at=1), audit(4))
        await desk.store.sweep(desk.claim, Retention(audit_s=60.0), NOW_MS)
        report = await verified(desk.store)
        assert (report.problem, report.first, report.last) == (None, 2, 4)


async def test_the_surplus_goes_from_the_front(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, *(audit(number) for number in range(5)))
        await desk.store.sweep(desk.claim, Retention(audits=2), NOW_MS)
        report = await verified(desk.store)
        assert (report.problem, report.first, report.last) == (None, 4, 5)


async def test_a_cut_end_shows(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, audit(1), audit(2))
        heads = await desk.store.audit_heads()
        ahead = msgspec.structs.replace(heads[0], number=3)
        await desk.write(audit_heads=[ahead])
        assert (await verified(desk.store)).problem == "entries 3 to 3 are missing"


ROWS = [
    AuditRow("default", 10, "ann", "token.create", "r1", None, b"{}"),
    AuditRow("default", 20, "bob", "token.revoke", "r2", None, b"{}"),
    AuditRow("default", 30, "ann", "drain", "r3", None, b'{"worker":"w-1"}', "w-1"),
    AuditRow("default", 40, "eve", "token", None, "E.AUTH.FORBIDDEN", b"{}"),
]


FILTERS = [
    (AuditFilter(), [10, 20, 30, 40]),
    (AuditFilter(who="ann"), [10, 30]),
    (AuditFilter(action="token"), [40]),
    (AuditFilter(prefix="token."), [10, 20]),
    (AuditFilter(prefix="%"), []),
    (AuditFilter(code="E.AUTH.FORBIDDEN"), [40]),
    (AuditFilter(outcome="ok"), [10, 20, 30]),
    (AuditFilter(outcome="refused"), [40]),
    (AuditFilter(corr="r2"), [20]),
    (AuditFilter(worker="w-1"), [30]),
    (AuditFilter(since=20, until=40), [20, 30]),
    (AuditFilter(who="ann", since=11, outcome="ok", prefix="d"), [30]),
]


async def test_filters_go_either_way(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, *ROWS, AuditRow("other", 25, "ann", "token.create", "r1"))
        for wanted, found in FILTERS:
            rows = await desk.store.audit_after("default", limit=9, wanted=wanted)
            assert [row.at for _, row in rows] == found, wanted
            newest = await desk.store.audit("default", limit=9, wanted=wanted)
            assert newest == rows[::-1], wanted


async def test_pages_go_either_way(backend: Backend) -> None:
    async with backend.desk() as desk:
        await write(desk, *ROWS)
        anns = AuditFilter(who="ann")
        ((first, _),) = await desk.store.audit_after("default", limit=1, wanted=anns)
        rest = await desk.store.audit_after("default", limit=9, after=first, wanted=anns)
        assert [row.at for _, row in rest] == [30]
        before = rest[0][0]
        older = await desk.store.audit("default", limit=9, before=before, wanted=anns)
        assert [row.at for _, row in older] == [10]
