from __future__ import annotations

import base64
import itertools
import json
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.worker.hosts.secret_mask import NO_MASK, SecretMask, masked_json

VALUE = 'p"ss/w+rd é'
MASK = SecretMask([VALUE, "1234567", "abc"])


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        quote(VALUE),
        quote(VALUE, safe=""),
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(VALUE)[1:-1])[1:-1],
        repr(VALUE.encode())[2:-1],
        base64.b64encode(VALUE.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_every_spelling_is_hidden(text: str) -> None:
    assert MASK.text(f"a {text} b") == "a *** b"


def test_a_key_of_several_lines_is_hidden_as_errors_show_it() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n"
    shown = f"{ValueError(key)!r} {key!r} {key.encode()!r} {json.dumps({'env': json.dumps({'key': key})})}"
    assert "MIIE" not in SecretMask([key]).text(shown)


@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"user:"])
@pytest.mark.parametrize("after", [b"", b"1", b"12", b":more"])
def test_base64_inside_of_base64_is_hidden(before: bytes, after: bytes) -> None:
    text = base64.b64encode(before + VALUE.encode() + after).decode()
    masked = MASK.text(text)
    around = len(base64.b64encode(before)) + len(base64.b64encode(after))
    assert "***" in masked
    assert len(masked.replace("***", "")) <= around + 4, "only letters that others have a part in"


def test_short_values_are_not_hidden() -> None:
    assert MASK.text("abcdef") == "abcdef"
    assert not SecretMask(["abc"]) and not NO_MASK and MASK
    assert NO_MASK.text("x") == "x"
    assert NO_MASK.piece("c", "x") == "x"
    assert NO_MASK.data("eA==") == "eA=="
    assert masked_json(NO_MASK, msgspec.Raw(b"1")) == msgspec.Raw(b"1")


def test_json_stays_json() -> None:
    value = {"a": [VALUE, 1234567, 12345678.5, True, None, 1], VALUE: {"b": "x1234567y"}}
    masked = json.loads(bytes(masked_json(MASK, msgspec.Raw(json.dumps(value).encode()))))
    assert masked == {"a": ["***", "***", "***", True, None, 1], "***": {"b": "x***y"}}
    plain = msgspec.Raw(b'{ "a" : 1 }')
    assert masked_json(MASK, plain) is plain
    broken = msgspec.Raw(b"{")
    assert masked_json(MASK, broken) is broken


def test_bytes_are_looked_into() -> None:
    hidden = MASK.data(base64.b64encode(b"\xff" + VALUE.encode()).decode())
    assert base64.b64decode(hidden) == b"\xff***"
    plain = base64.b64encode(b"plain").decode()
    assert MASK.data(plain) == plain
    assert MASK.data("no base64: 1234567") == "no base64: ***"


@given(
    cuts=st.lists(st.integers(0, 60), max_size=8), others=st.lists(st.text(max_size=5), max_size=3)
)
def test_a_value_that_is_cut_is_hidden_and_nothing_else_is_lost(
    cuts: list[int], others: list[str]
) -> None:
    mask = SecretMask([VALUE])
    whole = f"before {VALUE} between {''.join(others)} {VALUE[:4]} and {VALUE} after {VALUE[:3]}"
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[start:end] for start, end in itertools.pairwise(places)]
    out = "".join(mask.piece("c", piece) for piece in pieces)
    out += "".join(text for _, text in mask.take_waiting())
    assert out == whole.replace(VALUE, "***")
    assert mask.take_waiting() == []


def test_channels_do_not_wait_for_each_other() -> None:
    mask = SecretMask([VALUE])
    assert mask.piece("a", VALUE[:3]) == ""
    assert mask.piece("b", "text") == "text"
    assert mask.piece("a", VALUE[3:] + "!") == "***!"
