from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

from astraflow.core.triggers.fires import Fire
from astraflow.core.triggers.history import entry_of
from astraflow.core.triggers.record import (
    FireRefused,
    FireStarted,
    FireTaken,
    SlotsSkipped,
    TriggerDisabled,
)
from astraflow.core.triggers.signatures import is_signed
from tests.tables import each_row

WHO = ("t", 9, "w", "n")
FIRE = Fire(number=3, slot="webhook d", cause="webhook", scheduled_at=5, taken_at=5, by="ann")
BODY = b'{"a": 1}'
GOOD = hmac.new(b"key", BODY, sha256).hexdigest()


@each_row(
    ("fact", "expected"),
    [
        (FireTaken(*WHO, FIRE, 0, 0), ("pending", None, None, None)),
        (FireStarted(*WHO, FIRE, "r"), ("started", "r", None, None)),
        (FireRefused(*WHO, FIRE, "E.X", "why"), ("refused", None, "E.X", "why")),
    ],
)
def test_an_entry_says_what_became_of_a_fire(fact: Any, expected: tuple[Any, ...]) -> None:
    entry = entry_of(fact)
    assert entry is not None
    assert (entry.outcome, entry.run_id, entry.code, entry.reason) == expected
    assert (entry.number, entry.slot, entry.by, entry.at) == (3, "webhook d", "ann", 9)


def test_a_skip_says_why() -> None:
    overlap, missed = (entry_of(SlotsSkipped(*WHO, 4, 0, why)) for why in ("overlap", "missed"))
    assert overlap is not None and missed is not None
    assert overlap.outcome == "skipped" and "active" in str(overlap.reason)
    assert missed.slot == "time 1970-01-01T00:00:00.000Z" and "passed" in str(missed.reason)
    assert entry_of(TriggerDisabled(*WHO)) is None


@each_row(
    ("headers", "is_good"),
    [
        ({"x-hub-signature-256": f"sha256={GOOD}"}, True),
        ({"x-signature": GOOD}, True),
        ({"x-signature": GOOD.upper()}, True),
        ({"x-hub-signature-256": f"sha256={GOOD}", "x-signature": "0"}, True),
        ({"x-hub-signature-256": "sha256=", "x-signature": GOOD}, False),
        ({"x-signature": GOOD[:-1]}, False),
        ({"x-signature": "é"}, False),
        ({}, False),
    ],
)
def test_a_signature_is_that_of_the_body(headers: dict[str, str], is_good: bool) -> None:
    assert is_signed("key", BODY, headers) is is_good
    assert not is_signed("other", BODY, headers)
    assert not is_signed("key", BODY + b" ", headers)
