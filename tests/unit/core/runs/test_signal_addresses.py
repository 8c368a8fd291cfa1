"""Addresses of signals: made of the key of the run, one for each name, as long as something may wait."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from astraflow.core.ids import RunId
from astraflow.core.runs.accept import accept
from astraflow.core.runs.facts import RunAccepted, SignalKey
from astraflow.core.runs.run import RunRecord
from astraflow.core.runs.signal_addresses import (
    SignalAddresses,
    is_token_of,
    open_signals,
    token_of,
)
from tests.unit.core.workflow.drafts import plan, uid

KEY = SignalKey("a key", "https://example.org")


def waiting(place: int, name: str, **more: Any) -> dict[str, Any]:
    return {"id": uid(place), "type": "core.signal", "signal": {"name": name, **more}}


def run_of(*nodes: dict[str, Any], key: SignalKey | None = KEY) -> RunRecord:
    made = plan(list(nodes))
    accepted = RunAccepted(1, RunId("run-1"), "acme", made.workflow_id, signal_key=key)
    return accept(made, accepted, Random(1)).run


def test_each_name_with_a_webhook_has_an_address_of_its_own() -> None:
    run = run_of(
        waiting(1, "paid", webhook=True), waiting(2, "ö %", webhook=True), waiting(3, "other")
    )
    addresses = SignalAddresses(run)
    assert list(addresses) == ["paid", "ö %"] and len(addresses) == 2
    base = "https://example.org/api/v1/signals/run-1"
    assert addresses["paid"] == f"{base}/paid/{token_of('a key', 'paid')}"
    assert addresses["ö %"] == f"{base}/%C3%B6%20%25/{token_of('a key', 'ö %')}"
    with pytest.raises(KeyError):
        addresses["other"]
    assert is_token_of(run, "paid", token_of("a key", "paid"))
    for token in (token_of("a key", "ö %"), token_of("another", "paid"), "", "é"):
        assert not is_token_of(run, "paid", token)


def test_a_run_without_a_key_has_no_address() -> None:
    run = run_of(waiting(1, "paid", webhook=True), key=None)
    assert not is_token_of(run, "paid", token_of("", "paid"))
    with pytest.raises(KeyError):
        SignalAddresses(run)["paid"]


def test_an_address_is_open_while_something_waits_or_may_wait() -> None:
    inner = {**waiting(2, "inner", webhook=True, secretRef="key"), "parentNode": uid(3)}
    run = run_of(waiting(1, "paid", webhook=True), inner, {"id": uid(3), "type": "core.container"})
    assert [one.secret_ref for one in open_signals(run, "paid")] == [None]
    assert [one.secret_ref for one in open_signals(run, "inner")][:1] == ["key"]
    assert open_signals(run, "other") == []
