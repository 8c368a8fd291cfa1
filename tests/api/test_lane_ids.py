"""The ids of the stream of a tenant: a number with one lane, the position in all of them with several."""

from __future__ import annotations

from astraflow.api.events import _TenantEncoder
from astraflow.api.stream_batches import _Batches
from astraflow.api.stream_grants import (
    BadGrant,
    RunOpening,
    StreamOpening,
    TenantOpening,
    decode_grant,
    encode_grant,
)
from astraflow.core.contract.streams import StreamItem, StreamPosition
from astraflow.core.ids import RunId
from astraflow.scheduler.mixed_events import MixedOpening, OpenedRun
from astraflow.store.rows import TenantEvent


def event(lane: str, number: int) -> TenantEvent:
    return TenantEvent(lane, number, 0, "run.status", b"{}")


def ids_of(encoded: bytes) -> list[str]:
    return [line[4:] for line in encoded.decode().splitlines() if line.startswith("id: ")]


def test_a_tenant_with_one_lane_has_plain_numbers() -> None:
    encode = _TenantEncoder(TenantOpening("acme", {0: 4}, is_from_now=False))
    said = encode(event("acme", 5))
    assert ids_of(said) == ["5"]
    assert b'"id":5,"type"' in said
    assert b"lane" not in said


def test_an_event_of_several_lanes_has_the_position_in_all_as_its_id() -> None:
    encode = _TenantEncoder(TenantOpening("acme", {0: 4, 1: 0}, is_from_now=False))
    seen = [encode(one) for one in (event("acme/1", 1), event("acme", 5), event("acme/1", 2))]
    assert [ids_of(one) for one in seen] == [["0:4,1:1"], ["0:5,1:1"], ["0:5,1:2"]]
    assert b'"id":1,"lane":1,' in seen[0]
    assert b"lane" not in seen[1].partition(b"data:")[2]


def test_a_gap_names_its_lane() -> None:
    encode = _TenantEncoder(TenantOpening("acme", {0: 4, 1: 3}, is_from_now=False))
    said = encode(event("acme/1", 9))
    assert b'"from":4,"to":8,"lane":1' in said
    from_now = _TenantEncoder(TenantOpening("acme", {0: 4, 1: 3}, is_from_now=True))
    assert b"stream.reset" not in from_now(event("acme/1", 9))
    assert b"stream.reset" in from_now(event("acme/1", 11))


def test_a_batch_counts_the_lanes() -> None:
    batches = _Batches(StreamPosition(17, {"R": 4}, {1: 2}))
    items = [
        StreamItem(id=3, lane=1, type="x", body={}),
        StreamItem(id=18, type="x", body={}),
        StreamItem(run_id="R", id=5, type="x", body={}),
    ]
    (said,) = batches.cut([[item] for item in items])
    assert ids_of(said) == ["0:18,1:3,R:5"]


def test_a_grant_is_read_as_it_was_given() -> None:
    run = OpenedRun(RunId("r"), 1, None, is_over=False)
    openings: list[StreamOpening] = [
        RunOpening("acme", RunId("r"), 7, b"event: run.snapshot\n\n"),
        TenantOpening("acme", {0: 4, 1: 0}, is_from_now=True),
        MixedOpening("acme", {0: 4}, [run], [RunId("s")], True, False, 0.1),
    ]
    for opening in openings:
        assert decode_grant(encode_grant(opening)) == opening
    for bad in (b"", b"\xc1", b"{}", b"\x81\xa4type\xa3run"):
        try:
            decode_grant(bad)
        except BadGrant:
            continue
        raise AssertionError(bad)
