"""Reading a stream of events, and when a call or a stream is tried again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.client.retries import RETRY_FOR_S, Retries
from astraflow.client.stream import Cut, EventReader, Following, read_event
from astraflow.core import errors
from astraflow.core.contract.events import Event


def wire(number: int, kind: str = "node.state", **body: object) -> bytes:
    event = {"id": number, "type": kind, "occurredAt": "now", "scope": {}, "data": body}
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, kind.encode(), msgspec.json.encode(event))


@given(st.lists(st.integers(min_value=0, max_value=600), max_size=8))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    stream = (
        b": ping\n\n"
        + wire(1, text="a\u00e9\n")
        + b": ping\n\n"
        + wire(2, "run.status", status="x")
    )
    places = sorted({min(cut, len(stream)) for cut in cuts})
    reader = EventReader(read_event)
    found: list[Event] = []
    for start, stop in zip([0, *places], [*places, len(stream)], strict=True):
        found += reader.feed(stream[start:stop])
    assert [(one.id, one.type) for one in found] == [(1, "node.state"), (2, "run.status")]
    assert found[0].body == {"text": "a\u00e9\n"}


@pytest.mark.parametrize("kind", [b"overflow", b"error"])
def test_a_stream_that_the_server_ends_early_is_a_cut(kind: bytes) -> None:
    reader = EventReader(read_event)
    assert list(reader.feed(b"event: " + kind + b"\n")) == []
    with pytest.raises(Cut, match=r"E\.OVERLOADED"):
        list(reader.feed(b'data: {"code":"E.OVERLOADED"}\n\n'))


def test_what_is_no_event_is_a_cut() -> None:
    with pytest.raises(Cut, match="not an event"):
        list(EventReader(read_event).feed(b"data: <html>\n\n"))


def test_a_reader_goes_on_behind_the_last_event_it_saw() -> None:
    following = Following("r", 0, now=0.0)
    assert following.params() == {"runId": "r", "lastEventId": "0"}
    assert following.take(Event(id=1, type="run.status", body={"status": "queued"}))
    assert following.take(Event(id=2, type="node.state"))
    assert not following.take(Event(id=2, type="node.state")), "seen before"
    assert following.params()["lastEventId"] == "2"
    assert not following.is_over
    assert following.take(Event(id=3, type="run.status", body={"status": "cancelled"}))
    assert following.is_over


def test_a_reader_waits_longer_each_time_and_not_for_ever() -> None:
    following = Following("r", 0, now=0.0, patience_s=60.0)
    waits = [following.patience.cut(1.0, "gone") for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(0.1)
    assert waits[-1] == pytest.approx(2.0)
    following.patience.heard(50.0)
    assert following.patience.cut(60.0, "gone") == pytest.approx(0.1), "it was there meanwhile"
    with pytest.raises(errors.Unavailable, match=r"gone for 60 s .*: r$"):
        following.patience.cut(110.0, "gone")


def test_nobody_is_asked_twice_where_nobody_is() -> None:
    assert Retries(0.0, may_repeat=True).failed(0.0, "refused") is None


def test_what_may_have_arrived_is_sent_again_only_if_that_does_no_harm() -> None:
    assert Retries(0.0, may_repeat=False).failed(0.0, "unknown") is None
    tries = Retries(0.0, may_repeat=True)
    assert tries.failed(0.0, "unknown") == pytest.approx(0.1)
    assert tries.failed(1.0, "refused") == pytest.approx(0.2), "it may be starting again"
    assert tries.failed(RETRY_FOR_S, "refused") is None


def test_a_busy_server_is_asked_again_when_it_said() -> None:
    tries = Retries(0.0, may_repeat=False)
    assert tries.failed(0.0, "busy", after_s=1.0) == pytest.approx(1.0)
    assert tries.failed(RETRY_FOR_S - 1, "busy", after_s=5.0) is None
