"""Bundles: another way to write frames, from which exactly those frames come."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control, limits
from astraflow.core.protocol.bundles import decode_message, encode_first
from astraflow.core.protocol.codec import BadFrame, decode, encode
from astraflow.core.protocol.wire import AckInfo, Envelope, Sender, Unreadable
from tests.tables import each_row
from tests.unit.core.protocol.test_codec import DISPATCH, TS

ACK = AckInfo(False, 7, "3", 256)


def frame_id(number: int) -> str:
    return f"01J8ZK2Q3W4E5R6T7Y8V{number:06d}"


def result(number: int, value: bytes = b'{"ok":true}') -> business.Result:
    return business.Result(
        RunId("run-1"), TaskId(f"run-1.{number}"), 1, "SUCCEEDED", Raw(value), duration_ms=3
    )


def frames(*payloads: object, kind: str = business.RESULT, seq: int = 4) -> deque[Envelope]:
    return deque(
        Envelope(
            kind, frame_id(place), "", "acme", Sender("worker", "w-1"), payload, f"t.{place}",
            seq + place,
        )
        for place, payload in enumerate(payloads)
    )  # fmt: skip


def sent(waiting: deque[Envelope], *, bundled: bool = True) -> list[bytes]:
    """The messages that carry these frames."""
    waiting = deque(waiting)
    messages = []
    while waiting:
        raw, count = encode_first(waiting, TS, bundled=bundled)
        messages.append(raw)
        for _ in range(count):
            waiting.popleft()
    return messages


def told(messages: list[bytes]) -> list[Envelope]:
    return [frame for raw in messages for frame in decode_message(raw)]


def alone(waiting: deque[Envelope]) -> list[Envelope]:
    """The same frames as they come one by one."""
    return [decode(encode(frame, TS)) for frame in waiting]


def test_frames_in_a_bundle_are_those_that_come_alone() -> None:
    waiting = frames(*map(result, range(5)))
    waiting[0] = structs.replace(waiting[0], ack=ACK)
    messages = sent(waiting)
    assert len(messages) == 1
    assert messages[0].startswith(b"[")
    assert told(messages) == alone(waiting)
    assert told(sent(waiting, bundled=False)) == alone(waiting)


def test_dispatches_keep_what_their_authors_wrote() -> None:
    twice = structs.replace(DISPATCH, parameters=Raw(b'{"a":1,"a":2, "b":"\\u00e9"}'))
    waiting = frames(DISPATCH, twice, DISPATCH, kind=business.DISPATCH)
    messages = sent(waiting)
    assert len(messages) == 1
    assert told(messages) == alone(waiting)


@given(
    st.lists(
        st.binary(max_size=3).map(lambda raw: json.dumps({"v": raw.hex()}).encode()),
        min_size=1,
        max_size=9,
    ),
    st.data(),
)
def test_whatever_follows_whatever_comes_through_in_order(values: list[bytes], data: Any) -> None:
    """Runs of frames are cut where a type, a seq, an ack or a flag does not go on."""
    made: list[Envelope] = []
    seq = 0
    for place, value in enumerate(values):
        seq += data.draw(st.sampled_from([1, 1, 1, 3]))
        kind, payload = data.draw(
            st.sampled_from(
                [
                    (business.RESULT, result(place, value)),
                    (business.DISPATCH, DISPATCH),
                    (control.ACK, control.ControlAck(None, 5, "0", 256)),
                ]
            )
        )
        made += frames(payload, kind=kind, seq=seq)
        frame = structs.replace(made[-1], id=frame_id(place))
        if kind == control.ACK:
            frame = structs.replace(frame, seq=None, corr=None)
        elif data.draw(st.booleans()):
            frame = structs.replace(frame, ack=ACK)
        made[-1] = frame
    waiting = deque(made)
    assert told(sent(waiting)) == alone(waiting)


def test_a_bundle_has_a_limit_of_frames_and_of_bytes() -> None:
    many = frames(*map(result, range(2 * limits.MAX_BUNDLE + 1)))
    assert [len(decode_message(raw)) for raw in sent(many)] == [limits.MAX_BUNDLE] * 2 + [1]
    large = json.dumps({"v": "x" * (limits.BUNDLE_BYTES // 3)}).encode()
    messages = sent(frames(*[result(place, large) for place in range(7)]))
    assert [len(decode_message(raw)) for raw in messages] == [2, 2, 2, 1]
    huge = json.dumps({"v": "x" * limits.BUNDLE_BYTES}).encode()
    assert [
        len(decode_message(raw)) for raw in sent(frames(result(0), result(1, huge), result(2)))
    ] == [1, 1, 1]


def bundle(*rows: object, **head: object) -> bytes:
    common = {
        "type": "biz.exec.result", "ts": TS, "tenant": "acme",
        "sender": {"role": "worker", "id": "w-1"}, "seq": 4, **head,
    }  # fmt: skip
    return json.dumps([common, *rows]).encode()


GOOD = {"run_id": "run-1", "task_id": "run-1.0", "attempt": 1, "status": "SUCCEEDED"}


def test_a_bad_payload_costs_its_own_frame_only() -> None:
    bad = {**GOOD, "attempt": 0}
    first, second, third = decode_message(
        bundle([frame_id(0), "t", GOOD], [frame_id(1), None, bad], [frame_id(2), "t", GOOD])
    )
    assert isinstance(first.payload, business.Result)
    assert isinstance(third.payload, business.Result)
    assert isinstance(second.payload, Unreadable)
    assert (second.seq, second.corr, second.payload.code) == (5, None, errors.PROTOCOL_BAD_PAYLOAD)
    assert second.payload.task_id == "run-1.0"


def test_a_key_that_stands_twice_in_a_payload_costs_its_own_frame_only() -> None:
    raw = bundle([frame_id(0), "t", GOOD], [frame_id(1), "t", GOOD])
    twice = raw.replace(b'"attempt": 1', b'"attempt": 1, "attempt": 2', 1)
    first, second = decode_message(twice)
    assert isinstance(first.payload, Unreadable)
    assert isinstance(second.payload, business.Result)


def test_unknown_fields_of_a_payload_are_ignored() -> None:
    (frame,) = decode_message(bundle([frame_id(0), "t", {**GOOD, "new": 1}]))
    assert isinstance(frame.payload, business.Result)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "levels", [limits.MAX_DEPTH - 3, limits.MAX_DEPTH - 2, limits.MAX_DEPTH - 1, limits.MAX_DEPTH]
)
def test_a_payload_may_be_as_deep_as_in_a_frame_alone(levels: int) -> None:
    payload = {**GOOD, "result": {"v": deep(levels)}}
    single = json.dumps(
        {"type": "biz.exec.result", "id": frame_id(0), "ts": TS, "tenant": "acme",
         "sender": {"role": "worker", "id": "w-1"}, "seq": 4, "payload": payload}
    ).encode()  # fmt: skip
    outcomes = []
    for raw in (single, bundle([frame_id(0), None, payload])):
        try:
            outcomes.append(type(decode_message(raw)[0].payload).__name__)
        except BadFrame as error:
            outcomes.append(error.reason)
    assert outcomes[0] == outcomes[1]


ROW = [frame_id(0), "t", GOOD]
LARGE = "x" * limits.MAX_FRAME_BYTES
TWICE = bundle(ROW).replace(b'"seq": 4', b'"seq": 4, "seq": 5', 1)


@each_row(
    ("what", "raw", "code"),
    [
        ("no rows", bundle(), limits.CLOSE_PROTOCOL_ERROR),
        ("nothing", b"[]", limits.CLOSE_PROTOCOL_ERROR),
        ("not JSON", b"[", limits.CLOSE_BAD_TEXT),
        ("too many", bundle(*[ROW] * (limits.MAX_BUNDLE + 1)), limits.CLOSE_PROTOCOL_ERROR),
        ("a row too short", bundle([frame_id(0), GOOD]), limits.CLOSE_PROTOCOL_ERROR),
        ("a row too long", bundle([*ROW, 1]), limits.CLOSE_PROTOCOL_ERROR),
        ("no id", bundle([None, "t", GOOD]), limits.CLOSE_PROTOCOL_ERROR),
        ("another id", bundle(["x", "t", GOOD]), limits.CLOSE_PROTOCOL_ERROR),
        ("an empty corr", bundle([frame_id(0), "", GOOD]), limits.CLOSE_PROTOCOL_ERROR),
        ("a corr with NUL", bundle([frame_id(0), "a\0", GOOD]), limits.CLOSE_BAD_TEXT),
        ("a payload with NUL", bundle([frame_id(0), "t", {**GOOD, "result": {"v": "\0"}}]), limits.CLOSE_BAD_TEXT),
        ("no seq", bundle(ROW, seq=None), limits.CLOSE_PROTOCOL_ERROR),
        ("a seq past the last", bundle(ROW, ROW, seq=limits.SEQ_MAX), limits.CLOSE_PROTOCOL_ERROR),
        ("frames without a seq", bundle(ROW, type="control.ack"), limits.CLOSE_PROTOCOL_ERROR),
        ("no time", bundle(ROW, ts="soon"), limits.CLOSE_PROTOCOL_ERROR),
        ("an unknown key in the head", bundle(ROW, new=1), limits.CLOSE_PROTOCOL_ERROR),
        ("a key twice in the head", TWICE, limits.CLOSE_PROTOCOL_ERROR),
        ("a bundle in a bundle", b"[%b,%b]" % (bundle(ROW), bundle(ROW)), limits.CLOSE_PROTOCOL_ERROR),
        ("too large", bundle([frame_id(0), "t", {**GOOD, "result": LARGE}]), limits.CLOSE_TOO_BIG),
    ],
)  # fmt: skip
def test_what_is_no_bundle_is_a_bad_frame(what: str, raw: bytes, code: int) -> None:
    with pytest.raises(BadFrame) as caught:
        decode_message(raw)
    assert caught.value.close_code == code, what


def test_unknown_types_are_told_apart_by_frame() -> None:
    first, second = decode_message(bundle(ROW, ROW, type="biz.new"))
    assert isinstance(first.payload, Unreadable)
    assert first.payload.code is second.payload.code is errors.CMD_UNKNOWN  # type: ignore[attr-defined]
