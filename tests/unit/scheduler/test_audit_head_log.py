"""The ends of the audit chains stand in the log, so that an end that is cut off is known elsewhere."""

from __future__ import annotations

import logging

import pytest

from astraflow.scheduler.audit_chains import AuditChains
from astraflow.scheduler.audit_head_log import HEADS_EVERY_S, AuditHeadLog
from astraflow.store.rows import AuditRow


def test_each_head_that_moved_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    chains, log = AuditChains(()), AuditHeadLog()
    chains.link(AuditRow("a", 1, "ann", "login"))
    chains.link(AuditRow("b", 1, "bob", "login"))
    log.log(chains, 0.0)
    first = {record.tenant: record.message for record in caplog.records}  # type: ignore[attr-defined]
    assert first == {one: f"audit head: {chains.head(one)}" for one in ("a", "b")}
    caplog.clear()
    chains.link(AuditRow("b", 2, "bob", "logout"))
    log.log(chains, HEADS_EVERY_S - 1)
    assert not caplog.records
    log.log(chains, HEADS_EVERY_S)
    assert [record.message for record in caplog.records] == [f"audit head: {chains.head('b')}"]
