from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astraflow.core import errors
from astraflow.core.errors import Refused
from astraflow.core.workflow import InvalidDocument, decode_definition, decode_manifest
from astraflow.core.workflow.decoding import DraftHead, decode_draft
from tests.tables import each_row
from tests.unit.core.workflow.drafts import EXAMPLES, node, uid

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
extras = st.dictionaries(st.text(max_size=5).map(lambda text: "x-" + text), values, max_size=3)


def refusal(raw: bytes, decode: Any = decode_definition) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as refused:
        decode(raw)
    return refused.value


def encode(**fields: Any) -> bytes:
    return msgspec.json.encode({"id": uid(0), "nodes": [node(1)], **fields})


@given(top=extras, inner=extras, on_edge=extras, on_port=extras)
def test_unknown_fields_survive_at_every_level(
    top: dict[str, Any], inner: dict[str, Any], on_edge: dict[str, Any], on_port: dict[str, Any]
) -> None:
    port = {"key": "a", "binding": {"path": "parameters.a", **on_port}, **on_port}
    document = {
        "id": uid(0),
        "nodes": [node(1, ui={"inputPorts": [port], **inner}, **inner), node(2)],
        "edges": [{"source": {"node": uid(1), **on_edge}, "target": {"node": uid(2)}, **on_edge}],
        "metadata": {"name": "n", **inner},
        "runtimes": {"python": {"workerHints": inner, **inner}},
        **top,
    }
    if "\\u0000" in msgspec.json.encode(document).decode():
        return
    decoded = decode_definition(msgspec.json.encode(document))
    assert decoded.document() == document
    assert decode_definition(decoded.raw) == decoded


def test_the_examples_of_the_seed_come_back_as_they_were() -> None:
    raw = (EXAMPLES / "workflow" / "playwright_smoke_check.json").read_bytes()
    assert decode_definition(raw).raw is raw
    raw = (EXAMPLES / "manifest" / "playwright.json").read_bytes()
    assert decode_manifest(raw).document() == msgspec.json.decode(raw)


def test_every_problem_of_shape_is_reported_where_it_is() -> None:
    raw = msgspec.json.encode(
        {
            "nodes": [{"id": 1}, node(1), node(2, retry={"maxAttempts": 0}), 7],
            "edges": {},
            "priority": 1_000,
            "runtimes": {"python": 3},
            "tags": ["fine"],
        }
    )
    assert [(row.pointer, row.message) for row in refusal(raw).problems] == [
        ("", "a required field is missing: id"),
        ("/nodes/0/id", "expected `str`, got `int`"),
        ("/nodes/2/retry/maxAttempts", "expected `int` >= 1"),
        ("/nodes/3", "expected `object`, got `int`"),
        ("/edges", "expected `array`, got `object`"),
        ("/priority", "expected `int` <= 100"),
        ("/runtimes", "expected `object`, got `int`"),
    ]


def test_a_key_that_is_no_plain_name_ends_the_pointer() -> None:
    raw = encode(metadata={"tags": [1]})
    assert refusal(raw).problems[0].pointer == "/metadata/tags"
    raw = encode(inputs={"a.b": 3})
    assert refusal(raw).problems[0].pointer == "/inputs"


@each_row(
    "raw",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'{"id": NaN}',
        b'{"id": "\\ud800"}',
        b'\xef\xbb\xbf{"id": "", "nodes": []}',
        b'{"id": "", "nodes": []',
    ],
)
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    refused = refusal(raw)
    assert isinstance(refused, Refused)
    assert refused.code.code == "E.WORKFLOW.INVALID"
    assert [row.pointer for row in refused.problems] == [""]


def test_bytes_that_are_not_utf8_are_refused_also_where_nobody_looks() -> None:
    refused = refusal(b'{"id": "", "nodes": [], "x": "\xff"}')
    assert "not UTF-8 at byte 30" in refused.message


def test_text_in_any_language_is_taken() -> None:
    assert decode_definition(encode(metadata={"name": "日本語"})).workflow.metadata is not None


@pytest.mark.parametrize("text", [r'"\u0000"', r'"a\\\u0000"'])
def test_the_character_zero_is_refused(text: str) -> None:
    refused = refusal(b'{"id": "", "nodes": [], "x": ' + text.encode() + b"}")
    assert "U+0000" in refused.message


def test_a_backslash_before_u0000_is_only_text() -> None:
    raw = b'{"id": "", "nodes": [], "x": "\\\\u0000"}'
    assert decode_definition(raw).document()["x"] == "\\u0000"


def test_a_document_nested_beyond_reason_is_refused() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    refused = refusal(b'{"id": "", "nodes": [], "x": ' + deep + b"}")
    assert refused.problems[0].code == "E.WORKFLOW.LIMIT"


def test_depth_is_noticed_also_behind_a_value_of_the_wrong_shape() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    refused = refusal(b'{"id": 1, "nodes": [], "x": ' + deep + b"}")
    assert refused.problems[-1].code == "E.WORKFLOW.LIMIT"


def test_a_field_that_is_there_twice_is_refused_when_its_first_value_is_wrong() -> None:
    refused = refusal(b'{"id": 1, "id": "x", "nodes": []}')
    assert [(row.pointer, row.message) for row in refused.problems] == [
        ("/id", "expected `str`, got `int`")
    ]


def test_documents_beyond_their_size_are_refused_before_they_are_read() -> None:
    assert refusal(b" " * (64 * 1024 * 1024 + 1)).code.code == "E.WORKFLOW.LIMIT"
    assert refusal(b" " * (4 * 1024 * 1024 + 1), decode_manifest).code.code == "E.PKG.INVALID"


def test_the_problems_of_a_manifest_have_one_code() -> None:
    raw = msgspec.json.encode({"name": 1, "nodes": [{"type": 2}], "adapters": [{}]})
    problems = refusal(raw, decode_manifest).problems
    assert {row.code for row in problems} == {"E.PKG.INVALID"}
    assert [row.pointer for row in problems] == ["", "", "/name", "/nodes/0/type", "/adapters/0"]
    assert refusal(b"\xff", decode_manifest).code.code == "E.PKG.INVALID"


@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    for decode in (decode_definition, decode_manifest):
        try:
            decode(raw)
        except InvalidDocument as refused:
            assert refused.problems


@given(st.dictionaries(st.sampled_from(["id", "nodes", "edges", "tags", "triggers"]), values))
def test_any_document_is_decoded_or_refused(document: dict[str, Any]) -> None:
    try:
        decode_definition(msgspec.json.encode(document))
    except InvalidDocument as refused:
        assert refused.problems


def test_a_draft_needs_an_id_and_nothing_else() -> None:
    assert decode_draft(b'{"id": "w", "nodes": 5}') == DraftHead("w", "")
    assert decode_draft(b'{"id": "w", "metadata": {"name": "N"}}') == DraftHead("w", "N")
    assert decode_draft(b'{"id": "w", "metadata": {"name": 5}}') == DraftHead("w", "")
    deep = b'{"id": "w", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for bad in (b"[]", b"{}", b'{"id": 5}', b"{", b'{"id": "\\u0000"}', b'{"id": "\xff"}', deep):
        with pytest.raises(InvalidDocument) as caught:
            decode_draft(bad)
        assert caught.value.code is errors.WORKFLOW_INVALID
