from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from astraflow.core import errors
from astraflow.core.ids import RunId, TaskId
from astraflow.core.protocol import business, control, limits
from astraflow.core.protocol.codec import BadFrame, Unsendable, check_outgoing, decode, encode
from astraflow.core.protocol.wire import AckInfo, Envelope, Sender, Unreadable, Wire
from tests.tables import each_row

ULID = "01J8ZK2Q3W4E5R6T7Y8V9A0BCD"
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
TS = "2026-01-15T10:00:00.000Z"
DISPATCH = business.Dispatch(
    RunId("run-1"),
    TaskId(UUID),
    1,
    0,
    "node-1",
    "core.noop",
    business.PackageId("core", "1.0.0"),
    Raw(b'{"value":[1,2.5,{"a":null}],"text":"hello"}'),
    business.LeaseGrant(30_000, ULID),
    business.Constraints(30_000),
)
RESULT = business.Result(RunId("run-1"), TaskId(UUID), 1, "SUCCEEDED", Raw(b'{"ok":true}'))
PAYLOADS: list[tuple[str, Wire]] = [
    (business.DISPATCH, DISPATCH),
    (business.RESULT, RESULT),
    (business.CANCEL, business.ExecCancel(RunId("run-1"), TaskId(UUID), 1, "because", 100)),
    (
        business.FEEDBACK,
        business.Feedback(
            RunId("r"),
            TaskId("t"),
            1,
            progress=0.5,
            chunks=(business.FeedbackChunk("log", 0, "line\n"),),
        ),
    ),
    (
        business.NEXT_REQUEST,
        business.NextRequest(RunId("r"), TaskId("t"), 1, "q", 0, Raw(b'{"payload":1}')),
    ),
    (control.HEARTBEAT, control.Heartbeat()),
    (control.ACK, control.ControlAck(ULID, 5, "a", 256)),
    (control.DRAIN, control.ControlDrain("maintenance", 5)),
    (control.RESET, control.Reset("E.SESSION.DENIED", "no")),
]


def envelope(frame_type: str, payload: object, **more: object) -> Envelope:
    return Envelope(frame_type, ULID, "", "acme", Sender("worker", "w-1"), payload, **more)  # type: ignore[arg-type]


def members(**changes: object) -> dict[str, object]:
    """A frame as plain members; `...` leaves one out."""
    frame: dict[str, object] = {
        "type": control.HEARTBEAT,
        "id": ULID,
        "ts": TS,
        "tenant": "acme",
        "sender": {"role": "worker", "id": "w-1"},
        "payload": {},
        **changes,
    }
    return {key: value for key, value in frame.items() if value is not ...}


def text(**changes: object) -> bytes:
    return json.dumps(members(**changes), separators=(",", ":")).encode()


def dispatch_with(parameters: bytes) -> bytes:
    frame = envelope(
        business.DISPATCH, msgspec.structs.replace(DISPATCH, parameters=Raw(parameters))
    )
    return encode(frame, TS)


@each_row(("frame_type", "payload"), PAYLOADS)
@each_row(
    "more",
    [
        {},
        {"corr": "task-1", "seq": 0},
        {"corr": "täsk", "seq": limits.SEQ_MAX, "ack": AckInfo(True, 41, "5", 256)},
        {"ack": AckInfo(True), "flags": ("trace", "x")},
        {"ack": AckInfo(False, None, "0", 256)},
    ],
)
def test_what_is_encoded_is_decoded_the_same(
    frame_type: str, payload: Wire, more: dict[str, object]
) -> None:
    sent = envelope(frame_type, payload, **more)
    assert decode(encode(sent, TS)) == msgspec.structs.replace(sent, ts=TS)


@each_row(("frame_type", "payload"), PAYLOADS)
def test_spacing_and_order_of_keys_do_not_matter(frame_type: str, payload: Wire) -> None:
    quick = encode(envelope(frame_type, payload, corr="c", ack=AckInfo(False, 1, "0", 4)), TS)
    members_ = json.loads(quick)
    turned = json.dumps(dict(reversed(members_.items())), indent=1).encode()
    assert json.loads(encode(decode(turned), TS)) == json.loads(encode(decode(quick), TS))


def test_members_that_are_written_out_although_they_have_their_default_are_read() -> None:
    ack = {"request": False, "seq": 1, "bitmap": "0", "window": 4}
    raw = text(flags=[], corr=None, ack=ack, seq=None)
    assert decode(raw).ack == AckInfo(False, 1, "0", 4)
    payload_last = members(flags=[], corr=None, ack=ack)
    payload_last["payload"] = payload_last.pop("payload")
    quick = json.dumps(payload_last, separators=(",", ":")).encode()
    assert decode(quick).ack == AckInfo(False, 1, "0", 4)


# --- bad frames ---


def refused(raw: bytes, **how: int) -> BadFrame:
    with pytest.raises(BadFrame) as caught:
        decode(raw, **how)
    assert caught.value.code is errors.PROTOCOL_BAD_FRAME
    return caught.value


def test_size_is_checked_before_anything_else() -> None:
    assert refused(b"\xff" * 100, max_bytes=99).close_code == 1009
    assert decode(text(), max_bytes=len(text())).type == control.HEARTBEAT


@each_row(
    "raw",
    [
        b"",
        b"hello",
        b"{",
        b"\xff\xfe",
        text(payload={"x": 10**24})[:-1],
        text().replace(b'"payload":{}', b'"payload":{"x":' + b"9" * 5000 + b"}"),
        dispatch_with(b'{"x":-' + b"1" * 5000 + b"}"),
        b'{"type":"\xff"}',
        text()[:-1],
        text() + b" x",
        b"\xef\xbb\xbf" + text(),
        text(tenant="\ud800"),
        text(payload={"x": "\udc00"}),
        text().replace(b'"payload":{}', b'"payload":{"x":NaN}'),
        text().replace(b'"payload":{}', b'"payload":{"x":Infinity}'),
        text().replace(b'"payload":{}', b'"payload":{"x":1e999}'),
        text().replace(b'"payload":{}', b'"payload":{"x":-1E+999}'),
        text().replace(b'"payload":{}', b'"payload":{"x":' + b"9" * 400 + b".5}"),
        text().replace(b'"payload":{}', b'"payload":{"x":"\xed\xa0\x80"}'),
        text().replace(b'"payload":{}', b'"payload":{"x":18446744073709551616}'),
        text().replace(b'"payload":{}', b'"payload":{"x":[-9223372036854775809]}'),
        text(tenant="a\x00b"),
        text(payload={"x": "\x00"}),
        text(payload={"\x00": 1}),
        text(payload=json.loads("[" * 64 + "]" * 64)),
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        dispatch_with(b'{"x":1e999}'),
        dispatch_with(b'{"x":1E+400}'),
        dispatch_with(b'{"x":1}').replace(b'"parameters"', b'"parameters" :1e999,"parameters"'),
        encode(envelope(business.RESULT, RESULT), TS).replace(
            b'"result":', b'"result":1e999,"result":'
        ),
        dispatch_with(b'{"x":18446744073709551616}'),
        dispatch_with(b'{"x":"\\u0000"}'),
        dispatch_with(b'{"x":"\xff"}'),
        dispatch_with(b"[" * 63 + b"]" * 63),
    ],
)
def test_text_that_no_reader_should_see_ends_the_connection(raw: bytes) -> None:
    assert refused(raw).close_code == 1007


@each_row(
    ("raw", "pointer"),
    [
        (b"[]", ""),
        (b"5", ""),
        (b"null", ""),
        (text(type=...), "/type"),
        (text(id=...), "/id"),
        (text(ts=...), "/ts"),
        (text(tenant=...), "/tenant"),
        (text(sender=...), "/sender"),
        (text(payload=...), "/payload"),
        (text(extra=1), "/extra"),
        (text(sender={"role": "worker"}), "/sender/id"),
        (text(sender={"role": "worker", "id": "w", "x": 1}), "/sender/x"),
        (text(ack={"requested": True}), "/ack/requested"),
        (text(type=5), "/type"),
        (text(type=""), "/type"),
        (text(type="x" * 300), "/type"),
        (text(id=17), "/id"),
        (text(id="17"), "/id"),
        (text(id=ULID.lower()), "/id"),
        (text(id="8" + ULID[1:]), "/id"),
        (text(id=UUID[:-1] + "g"), "/id"),
        (text(ts="yesterday"), "/ts"),
        (text(ts="2026-01-15T10:00:00.000"), "/ts"),
        (text(ts="2026-13-15T10:00:00.000Z"), "/ts"),
        (text(ts="2026-02-30T10:00:00.000Z"), "/ts"),
        (text(ts="2026-W03-4T10:00:00.000Z"), "/ts"),
        (text(ts="9999-12-31T00:00:00.000Z"), "/ts"),
        (text(ts="1969-12-31T23:59:59.999Z"), "/ts"),
        (text(ts="9999-12-30T23:59:59.000-00:01"), "/ts"),
        (text(ts="2026-01-15T10:00:00,000Z"), "/ts"),
        (text(ts="2026-01-15T25:00:00.000Z"), "/ts"),
        (text(seq=-1), "/seq"),
        (text(seq=2**53), "/seq"),
        (text(seq=2**63), "/seq"),
        (text(seq=1.5), "/seq"),
        (text(seq="1"), "/seq"),
        (text(seq=True), "/seq"),
        (text(ack={"seq": 2**60}), "/ack/seq"),
        (text(ack={"bitmap": "f" * 2000}), "/ack/bitmap"),
        (text(flags="trace"), "/flags"),
        (text(flags=["x"] * 17), "/flags"),
        (text(flags=[1]), "/flags/0"),
        (text(tenant="x" * 300), "/tenant"),
        (text(corr=""), "/corr"),
    ],
)
def test_what_is_not_an_envelope_ends_the_connection_and_names_the_field(
    raw: bytes, pointer: str
) -> None:
    error = refused(raw)
    assert error.close_code == 1002
    assert (error.pointer or "") == pointer


@each_row(
    "raw",
    [
        text().replace(b'"tenant":"acme"', b'"tenant":"acme","tenant":"acme"'),
        text().replace(b'"tenant":"acme"', b'"tenant" :"evil","tenant":"acme"'),
        text().replace(b'"role":"worker"', b'"role":"worker","role":"admin"'),
        text().replace(b'"payload":{}', b'"payload":{},"payload":{}'),
        text().replace(b'"payload":{}', b'"payload":{},"id":"' + ULID.encode() + b'"'),
        text().replace(b'{"type"', b'{"payload":5,"type"'),
        text().replace(b',"payload":{}', b',"flags":[],"flags":[],"payload":{}'),
        text().replace(b',"payload":{}', b',"corr":null,"corr":null,"payload":{}'),
        text().replace(b',"payload":{}', b',"ack":{"seq":1,"seq":2},"payload":{}'),
        text().replace(b',"payload":{}', b',"ack":{"request":true,"request":false},"payload":{}'),
        text().replace(
            b',"payload":{}',
            b',"ack":{"request":true},"ack":{"seq":1,"window":2},"payload":{}',
        ),
        text().replace(
            b',"payload":{}',
            b',"ack":{"bitmap":"1"},"ack":{"request":true,"seq":1,"window":2},"payload":{}',
        ),
        text().replace(b',"payload":{}', b',"flags":["a"],"flags":[],"payload":{}'),
        text().replace(b',"payload":{}', b',"seq":1,"seq":null,"payload":{}'),
        text().replace(
            b',"payload":{}', b',"seq":null,"seq":7,"ack":{"request":true},"payload":{}'
        ),
        text().replace(b'"payload":{}', b'"payload":{"healthy":true,"healthy":false}'),
        text().replace(b'"payload":{}', b'"payload":{"metrics":{"cpu_pct":1,"cpu_pct":2}}'),
        text().replace(
            b'"payload":{}',
            b'"payload":{"attempts":[{"task_id":"a","attempt":1,"attempt":2}]}',
        ),
    ],
)
def test_a_key_that_stands_twice_ends_the_connection(raw: bytes) -> None:
    assert refused(raw).close_code == 1002


def twice(frame_type: str, payload: bytes) -> Unreadable:
    """What is read of this payload in a frame of our own spacing, and in one of another."""
    written = [
        text(type=frame_type, seq=0).replace(b'"payload":{}', b'"payload":' + payload),
        text(type=frame_type, seq=0).replace(b'"payload":{}', b'"payload": ' + payload),
    ]
    first, second = (decode(each).payload for each in written)
    assert first == second
    assert isinstance(first, Unreadable)
    assert first.code is errors.PROTOCOL_BAD_PAYLOAD
    assert first.message.startswith("a key stands twice")
    return first


RESULT_HEAD = b'"run_id":"r","task_id":"r.0","attempt":1,"status":"SUCCEEDED"'


@each_row(
    "payload",
    [
        b"{" + RESULT_HEAD + b',"status":"FAILED"}',
        b"{" + RESULT_HEAD + b',"result":{},"result":{}}',
        b"{" + RESULT_HEAD + b',"result":{"a":1,"a":2}}',
        b"{" + RESULT_HEAD + b',"result":[{"b":[{"a":1,"a":1e2}]}]}',
        b"{" + RESULT_HEAD + b',"result":{"a:":1,"a\\u003a":2}}',
        b"{" + RESULT_HEAD + b',"result":{"a":":","b":"\\u003a","a":1}}',
        b"{"
        + RESULT_HEAD
        + b',"artifacts":[{"resource_id":"x","worker_id":"w","type":"t","type":"t"}]}',
        b"{" + RESULT_HEAD + b',"unknown":1,"unknown":2}',
    ],
)
def test_a_key_that_stands_twice_in_a_result_is_a_bad_payload(payload: bytes) -> None:
    assert twice(business.RESULT, payload).task_id == "r.0"


@pytest.mark.parametrize(
    ("frame_type", "payload"),
    [
        (business.FEEDBACK, b'{"run_id":"r","task_id":"r.0","attempt":1,"metrics":{"a":1,"a":2}}'),
        (business.PKG_UNINSTALL, b'{"name":"p","version":"1","version":"2"}'),
        ("ext.vendor.thing", b'{"a":1,"a":2}'),
    ],
)
def test_a_key_that_stands_twice_in_any_payload_is_a_bad_payload(
    frame_type: str, payload: bytes
) -> None:
    twice(frame_type, payload)


@pytest.mark.parametrize(
    "value", [{"a:": ":", "b": {"a:": 1}}, [{"a": 1}, {"a": 1}], {"a": 1.5e300, "é": "\u003a"}]
)
def test_a_key_may_stand_in_two_objects(value: object) -> None:
    for written in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, indent=1),
    ):
        payload = b"{" + RESULT_HEAD + b',"result":' + written.encode() + b"}"
        frame = decode(
            text(type=business.RESULT, seq=0).replace(b'"payload":{}', b'"payload":' + payload)
        )
        assert isinstance(frame.payload, business.Result)
        assert bytes(frame.payload.result) == written.encode()


def test_a_result_with_a_key_twice_is_not_sent() -> None:
    short = business.Result(RunId("r"), TaskId("r.0"), 1, "SUCCEEDED", Raw(b'{"1":1,"1":2}'))
    for bad in (short, msgspec.structs.replace(short, duration_ms=5, metrics={"a": 1.0})):
        with pytest.raises(Unsendable) as caught:
            check_outgoing(business.RESULT, bad)
        assert caught.value.code is errors.RESULT_INVALID


def test_a_field_of_a_dispatch_that_stands_twice_is_a_bad_payload() -> None:
    raw = dispatch_with(b"{}")
    for field in (b'"parameters":{}', b'"attempt":'):
        assert field in raw
    again = decode(raw.replace(b'"parameters":{}', b'"parameters":{},"parameters":{}'))
    assert isinstance(again.payload, Unreadable)


def test_what_a_workflow_says_is_carried_as_it_was_written() -> None:
    frame = decode(dispatch_with(b'{"a":1,"a":2}'))
    assert isinstance(frame.payload, business.Dispatch)
    assert bytes(frame.payload.parameters) == b'{"a":1,"a":2}'


@pytest.mark.parametrize("ts", ["2026-01-15T10:00:00Z", "2026-01-15t10:00:00.1234567890+01:00"])
def test_any_rfc_3339_time_with_a_zone_is_good(ts: str) -> None:
    assert decode(text(ts=ts)).ts == ts


@pytest.mark.parametrize("frame_id", [ULID, UUID, UUID.upper()])
def test_ids_are_ulids_or_uuids(frame_id: str) -> None:
    assert decode(text(id=frame_id)).id == frame_id


@each_row(
    "parameters",
    [
        b'{"x":18446744073709551615,"y":-9223372036854775808}',
        b'{"x":1e308,"y":1e-999}',
        b'{"x":"7e123 1e999 99999999999999999999"}',
        b'{"x":"\\\\u0000"}',
        b'{"x":"\\ud83d\\ude00 \xc3\xa9"}',
        b"[" * 62 + b"]" * 62,
        b'{"x":"' + b"[{" * 200 + b'"}',
        b'{"x":"line\\nline \\"quoted\\" [[["}',
        b"[" + b",".join([b"{}"] * 100) + b"]",
        b"null",
        b'"text"',
    ],
)
def test_user_data_that_only_looks_dangerous_is_carried_unchanged(parameters: bytes) -> None:
    frame = decode(dispatch_with(parameters))
    assert isinstance(frame.payload, business.Dispatch)
    assert bytes(frame.payload.parameters) == parameters


def test_the_sixty_fourth_level_is_the_last() -> None:
    inside = "[" * 62 + "]" * 62
    assert decode(text(type="ext.acme.x", payload={"x": json.loads(inside)}, seq=0)).seq == 0
    refused(text(type="ext.acme.x", payload={"x": json.loads(f"[{inside}]")}, seq=0))


# --- payloads ---


def unreadable(raw: bytes) -> Unreadable:
    payload = decode(raw).payload
    assert isinstance(payload, Unreadable)
    return payload


def test_a_payload_that_does_not_fit_is_marked_with_a_pointer() -> None:
    wrong = unreadable(text(type=control.HEARTBEAT, payload={"metrics": {"mem_pct": "high"}}))
    assert wrong.code is errors.PROTOCOL_BAD_PAYLOAD
    assert wrong.pointer == "/payload/metrics/mem_pct"
    assert wrong.message == "expected `float`, got `str`"
    assert wrong.task_id is None


def test_a_missing_field_of_a_payload_is_named() -> None:
    wrong = unreadable(text(type=business.RESULT, payload={"task_id": "t", "attempt": 3}, seq=1))
    assert wrong.pointer == "/payload/run_id"
    assert (wrong.task_id, wrong.attempt) == ("t", 3)


@each_row(
    "payload",
    [
        {"task_id": 5, "attempt": "1"},
        {"task_id": "", "attempt": 0},
        {"task_id": "x" * 300, "attempt": 2**60},
        {"attempt": True},
        [],
        None,
        "text",
    ],
)
def test_what_a_bad_payload_names_is_believed_only_if_it_makes_sense(payload: object) -> None:
    wrong = unreadable(text(type=business.RESULT, payload=payload, seq=1))
    assert (wrong.task_id, wrong.attempt) == (None, None)


@pytest.mark.parametrize("frame_type", ["biz.exec.unknown", "control.unknown", "hello"])
def test_an_unknown_type_is_not_a_bad_frame(frame_type: str) -> None:
    wrong = unreadable(text(type=frame_type, payload={"task_id": "t", "attempt": 1}))
    assert wrong.code is errors.CMD_UNKNOWN
    assert wrong.pointer == "/type"
    assert wrong.task_id == "t"


def test_integers_beyond_2_53_are_refused_in_protocol_fields() -> None:
    payload = json.loads(msgspec.json.encode(RESULT)) | {"attempt": 2**53 + 1}
    assert (
        unreadable(text(type=business.RESULT, payload=payload, seq=0)).pointer == "/payload/attempt"
    )


@each_row("field", ["expires_at", "created_at"])
@each_row(
    "at", ["9999-12-31T23:59:59.9999999Z", "9999-12-30T23:59:59-23:59", "1970-01-01T00:00:00+00:01"]
)
def test_a_time_that_no_later_step_could_write_is_a_bad_payload(field: str, at: str) -> None:
    payload = {"resource_id": "r", "state": "ready", field: at, "unknown": 1}
    wrong = unreadable(text(type=business.RESOURCE_EVENT, payload=payload, seq=0))
    assert (wrong.code, wrong.pointer) == (errors.PROTOCOL_BAD_PAYLOAD, f"/payload/{field}")
    artifact = {"resource_id": "r", "worker_id": "w", "type": "t", "expires_at": at}
    result = json.loads(msgspec.json.encode(RESULT)) | {"artifacts": [artifact]}
    wrong = unreadable(text(type=business.RESULT, payload=result, seq=0))
    assert wrong.pointer == "/payload/artifacts/0/expires_at"
    assert (wrong.task_id, wrong.attempt) == (UUID, 1)


def test_unknown_fields_of_a_payload_are_ignored_at_any_depth() -> None:
    payload = json.loads(msgspec.json.encode(DISPATCH))
    payload["new"] = {"deep": [1, {"x": 2}]}
    payload["lease"]["new"] = 1
    payload["resource_refs"] = [
        {"resource_id": "r", "worker_id": "w", "type": "file", "new": 1, "metadata": {"kept": 1}}
    ]
    frame = decode(text(type=business.DISPATCH, payload=payload, seq=0))
    assert isinstance(frame.payload, business.Dispatch)
    assert frame.payload.lease == DISPATCH.lease
    assert frame.payload.resource_refs[0].metadata == Raw(b'{"kept":1}')


def test_a_pointer_into_a_list_has_its_index_and_escapes_its_keys() -> None:
    attempts = [{"task_id": "a", "attempt": 1}, {"task_id": "b"}]
    wrong = unreadable(text(payload={"attempts": attempts}))
    assert wrong.pointer == "/payload/attempts/1/attempt"
    assert refused(text(**{"a/b~c": 1})).pointer == "/a~1b~0c"


def test_vendor_payloads_stay_as_they_are() -> None:
    frame = decode(text(type="ext.acme.ping", payload={"any": [1, 2]}, seq=4))
    assert frame.payload == Raw(b'{"any":[1,2]}')


# --- sending ---


def test_a_good_payload_passes_the_senders_check() -> None:
    """It says nothing, and the receiver reads what was sent."""
    for frame_type, payload in PAYLOADS:
        check_outgoing(frame_type, payload)
        frame = Envelope(frame_type, ULID, "", "acme", Sender("worker", "w"), payload, "t", 1)
        assert decode(encode(frame, TS)).payload == payload
    check_outgoing("ext.acme.ping", {"x": 1})


@each_row(
    "result",
    [
        b'{"x":1e999}',
        b'{"x":NaN}',
        b"{",
        b'{"x":"\\u0000"}',
        b'{"x":"\\ud800"}',
        b'{"x":"\xff"}',
        b"[" * 64 + b"]" * 64,
        b'{"x":18446744073709551616}',
    ],
)
def test_a_result_that_the_receiver_would_refuse_is_not_sent(result: bytes) -> None:
    with pytest.raises(Unsendable) as caught:
        check_outgoing(business.RESULT, msgspec.structs.replace(RESULT, result=Raw(result)))
    assert caught.value.code is errors.RESULT_INVALID


def test_a_result_that_is_too_large_is_not_sent() -> None:
    large = msgspec.structs.replace(RESULT, result=Raw(b'"' + b"x" * 10_000 + b'"'))
    with pytest.raises(Unsendable) as caught:
        check_outgoing(business.RESULT, large, max_bytes=8_000)
    assert caught.value.code is errors.RESULT_TOO_LARGE


def test_a_payload_that_is_not_of_its_type_is_not_sent() -> None:
    with pytest.raises(Unsendable) as caught:
        check_outgoing(business.RESULT, {"task_id": "t"})
    assert caught.value.pointer == "/payload/run_id"


def test_a_payload_that_cannot_be_encoded_is_not_sent() -> None:
    with pytest.raises(Unsendable):
        check_outgoing(business.RESULT, {"x": object()})


# --- anything ---

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('abc\\"{[', max_size=4), inner)
    ),
    max_leaves=12,
)


@given(values)
def test_any_json_value_survives_as_parameters(value: object) -> None:
    parameters = msgspec.json.encode(value)
    frame = decode(dispatch_with(parameters))
    assert isinstance(frame.payload, business.Dispatch)
    assert bytes(frame.payload.parameters) == parameters


ack_members = st.sampled_from(["request", "seq", "bitmap", "window"]).flatmap(
    lambda key: st.sampled_from(
        {
            "request": ['"request":true', '"request":false'],
            "seq": ['"seq":1', '"seq":null'],
            "bitmap": ['"bitmap":"0"', '"bitmap":"a"'],
            "window": ['"window":4', '"window":null'],
        }[key]
    )
)
more_members = st.one_of(
    st.sampled_from(['"corr":"c,d"', '"corr":"c"', '"corr":null', '"seq":7', '"seq":null']),
    st.sampled_from(['"flags":[]', '"flags":["a"]', '"flags":["a","b"]', '"ack":null']),
    st.sampled_from(['"tenant":"acme"', '"sender":{"role":"worker","id":"w-1"}', '"ts":"x"']),
    st.lists(ack_members, max_size=4).map(lambda each: '"ack":{' + ",".join(each) + "}"),
)


@given(st.lists(more_members, max_size=4))
def test_no_key_hides_by_standing_twice(more: list[str]) -> None:
    written = text().replace(
        b',"payload"', "".join(["," + each for each in more]).encode() + b',"payload"'
    )
    keys: list[list[str]] = []
    json.loads(written, object_pairs_hook=lambda pairs: keys.append([key for key, _ in pairs]))
    if any(len(set(each)) < len(each) for each in keys):
        refused(written)
    else:
        assert decode(written).tenant == "acme"


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda each: each.encode("utf-8", "ignore"))
)
def test_rubbish_is_a_bad_frame_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(BadFrame):
        decode(raw)


@given(st.data())
def test_a_damaged_frame_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    raw = bytearray(encode(envelope(business.DISPATCH, DISPATCH, corr="c", seq=3), TS))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        frame = decode(bytes(raw))
    except BadFrame:
        return
    assert isinstance(frame.payload, business.Dispatch | Unreadable | Raw)
